"""Reads paraphrase pairs and STS sets from PARAFORGE_DATA."""

import gzip
import itertools
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.hardware import data_directory
from paraforge.base.errors import InputError
from paraforge.base.text.pair_blocks import PairBlock, read_pair_file
from paraforge.embeddings.evaluation.sets import SentencePairs, read_sets

FILES = {
    "captions": "captions/train.en5.tsv.gz",
    "bible": "bitext/bkr_cs_x_en7.tsv.gz",
    "news": "mt_outputs/newstest2021.cs-en.tsv.gz",
    "tatoeba": "bitext/tatoeba.en-cs.tsv.gz",
    "ppdb": "ppdb/ppdb-1.0-xxxl-lexical.extended.synonyms.uniquepairs.gz",
    "paranmt": "paranmt/pairs.tsv.gz",
}
"""What each source of pairs is made of, under PARAFORGE_DATA."""
SOURCES = ("captions", "bible", "news", "tatoeba", "ppdb")
"""Those that models are trained on unless others are named."""
BIBLE_PAIRS_A_VERSE = 2
PAIRS_A_TRANSLATION = 6
_BLOCK = 20_000


def paraphrases(source: str) -> Iterator[PairBlock]:
    """Return all pairs of a source.

    captions: any two of an image's five captions, images whose English is in an STS or SICK set left out.
    bible: two pairs of versions a verse. news: any two of two human references and eight systems.
    tatoeba: English sentences of one Czech sentence, up to six pairs of them.
    ppdb: lexical pairs. paranmt: pairs of the released corpora.
    """
    data = data_directory()
    if source == "ppdb":
        yield from read_pair_file(data / FILES[source], "tsv")
        return
    if source == "paranmt":
        yield from read_pair_file(data / FILES[source], "tsv", (1, 2))
        return
    makers = {
        "captions": _captions,
        "bible": _bible,
        "news": _news,
        "tatoeba": _tatoeba,
    }
    most = {"bible": BIBLE_PAIRS_A_VERSE, "tatoeba": PAIRS_A_TRANSLATION}.get(source)
    texts = makers[source](data)
    generator = np.random.default_rng(1)
    pairs: list[tuple[str, str]] = []
    for versions in texts:
        found = [(first, second) for first, second in itertools.combinations(versions, 2) if first and second]
        if most is not None and len(found) > most:
            chosen = generator.choice(len(found), most, replace=False)
            found = [found[number] for number in sorted(chosen)]
        pairs += found
        if len(pairs) >= _BLOCK:
            yield _block(pairs)
            pairs = []
    if pairs:
        yield _block(pairs)


def _block(pairs: list[tuple[str, str]]) -> PairBlock:
    return PairBlock(pa.array([left for left, _ in pairs]), pa.array([right for _, right in pairs]))


def _lines(path: Path) -> list[list[str]]:
    """Yield the fields of a TSV's lines, split only at line feeds."""
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [line.split("\t") for line in data.decode("utf-8").split("\n") if line.strip()]


def _captions(data: Path) -> Iterator[list[str]]:
    leaked = {int(row[0]) for row in _lines(data / "leakage" / "multi30k_train.contaminated_rows.tsv")[1:]}
    for number, row in enumerate(_lines(data / FILES["captions"])):
        if number not in leaked:
            yield row
    for name in ("val", "test_2016"):
        yield from _lines(data / "captions" / f"{name}.en5.tsv.gz")


def _bible(data: Path) -> Iterator[list[str]]:
    for row in _lines(data / FILES["bible"])[1:]:
        yield [text.strip() for text in row[2:]]


def _news(data: Path) -> Iterator[list[str]]:
    for row in _lines(data / FILES["news"])[1:]:
        yield row[1:]


def _tatoeba(data: Path) -> Iterator[list[str]]:
    by_translation: dict[str, set[str]] = {}
    for _, english, czech in _lines(data / FILES["tatoeba"]):
        by_translation.setdefault(czech, set()).add(english)
    yield from (sorted(texts) for texts in by_translation.values() if len(texts) > 1)


STS_GROUPS = ("2012", "2013", "2014", "2017", "stsb-dev", "SICK_trial")


def sts_files() -> list[Path]:
    """Return the sets for evaluation, without those that models may be trained on."""
    directory = data_directory() / "sts"
    found = [path for path in sorted(directory.glob("*.t*")) if path.name.split(".")[0] in STS_GROUPS]
    if missing := {*STS_GROUPS} - {path.name.split(".")[0] for path in found}:
        raise InputError(f"no STS set of {', '.join(sorted(missing))}", directory)
    return found


def sts_sets() -> list[SentencePairs]:
    """Read the sets of :func:`sts_files`."""
    return read_sets(sts_files())
