"""Stores all training pairs that experiments choose from, with their sources and perhaps scores."""

import sys
from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.hardware import data_directory
from experiments.pairs import FILES, paraphrases
from experiments.tables import Pairs
from paraforge.base.files import atomic_path, hash_json, sha256_file
from paraforge.base.shards.store import ShardView, write_parquet
from paraforge.base.text.pair_blocks import PairBlock
from paraforge.base.text.units import make_units
from paraforge.corpus.scoring import general
from paraforge.corpus.scoring.pairs import Pairs as ScoredPairs
from paraforge.corpus.scoring.scorers.words import Overlap
from paraforge.corpus.scoring.word_scorer import WordScorer
from paraforge.embeddings.evaluation.leakage import LeakageFilter
from paraforge.embeddings.evaluation.sets import read_sets
from paraforge.embeddings.trainer.pair_store import PairStore, build_pair_store
from paraforge.embeddings.trainer.parameters import VocabularyParameters

UNITS = ("word", "trigram", "bare_word", "bare_trigram")
SCORED = "paranmt"
"""The source whose pairs are scored, next to those of corpora."""
LABELS = "labels.parquet"
HELD_OUT = 1000
"""Pairs next to those that are trained on, of the same sources, which are looked at and not trained on."""
_COLUMNS = ["source", "reference", "translation"]
_FORMAT = 4


class Pool:
    """All pairs as ids, without those that have a sentence of an STS set.

    labels: source and scores of each pair; NaN for a pair without a score.
    fingerprint: hash of the pairs and of what scores them.
    """

    def __init__(self, directory: Path, corpora: list[Path]) -> None:
        """Open the pool of these corpora in `directory`; it is made if it does not exist or a file has
        changed.

        corpora: row-aligned shard directories with source, reference, translation, and perhaps a translation
            score; all pairs with a translation are taken, also those that selection refused.
        """
        files = [data_directory() / name for name in FILES.values()]
        files += [path for place in (data_directory() / "sts", *corpora) for path in sorted(place.rglob("*"))]
        scorer = general_scorer().fingerprint
        what = [_FORMAT, scorer, [str(path) for path in corpora], [_size(path) for path in files]]
        place = directory / hash_json(what)[:16]
        if not (place / LABELS).is_file():
            self._build(place, corpora)
        self.labels = pq.read_table(place / LABELS)
        self.store = PairStore(place / "pairs")
        self.fingerprint = hash_json([sha256_file(place / "pairs" / "pairs.json"), scorer])

    def _build(self, directory: Path, corpora: list[Path]) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        leakage = LeakageFilter(
            {pairs.name: pairs.sentences for pairs in read_sets([data_directory() / "sts"])}
        )
        labels: list[pa.Table] = []

        def blocks() -> Iterator[PairBlock]:
            for block, translation_score in _labeled(corpora):
                # They have a token, so none is skipped later on.
                both = pc.and_(
                    *(pc.match_substring_regex(side, r"[\pL\pN]") for side in (block.left, block.right))
                )
                keep = both.to_numpy(zero_copy_only=False)
                keep[keep] = ~leakage.look_at(block.filter(both))
                if not keep.any():
                    continue
                kept = block.filter(pa.array(keep))
                scores = {**_scores(kept), "translation_score": translation_score[keep]}
                labels.append(pa.table({"source": [kept.source] * len(kept), **scores}))
                yield kept

        units = [make_units(name) for name in UNITS]
        limits = VocabularyParameters(maximum_size=60_000)
        store = build_pair_store(directory / "pairs", blocks(), units, limits)
        if store.skipped:
            raise SystemExit(f"{store.skipped} pairs without a token: their labels would be wrong")
        with atomic_path(directory / LABELS) as path:
            write_parquet(pa.concat_tables(labels), path)

    @property
    def names(self) -> list[str]:
        """The sources that have pairs."""
        found: list[str] = pc.unique(self.labels["source"]).to_pylist()
        return found

    def choose(self, units: Collection[str], pairs: Pairs, seed: int = 1) -> tuple[PairStore, PairStore]:
        """Return the pairs that a row trains on, and up to 1,000 others that it could have chosen, as
        units."""
        keep = np.ones(len(self.labels), dtype=bool)
        scores = self.labels[pairs.by].to_numpy()
        if pairs.sources is not None:
            wanted = [name for name in self.names if {name, name.split("/")[0]} & {*pairs.sources}]
            keep &= pc.is_in(self.labels["source"], pa.array(wanted, pa.string())).to_numpy()
        if pairs.minimum is not None:
            keep &= scores >= pairs.minimum  # not where there is none
        if pairs.decile is not None:
            keep = _tenth(scores, keep, pairs.decile)
        chosen = np.flatnonzero(keep)
        others = chosen[:0]
        if pairs.limit is not None and len(chosen) > pairs.limit:
            drawn = np.random.default_rng(seed).permutation(chosen)
            chosen = np.sort(drawn[: pairs.limit])
            others = np.sort(drawn[pairs.limit : pairs.limit + HELD_OUT])
        store = self.store.of_units(units)
        return store.subset(chosen), store.subset(others)


def _size(path: Path) -> int | None:
    return path.stat().st_size if path.is_file() else None


def _tenth(
    scores: npt.NDArray[np.float32], among: npt.NDArray[np.bool_], decile: int
) -> npt.NDArray[np.bool_]:
    """Return which pairs are in a tenth of their ranking, 1 the lowest; equal scores are in random order."""
    known = np.flatnonzero(among & np.isfinite(scores))
    order = np.lexsort((np.random.default_rng(1).random(len(known)), scores[known]))
    keep = np.zeros(len(scores), dtype=bool)
    keep[known[np.array_split(order, 10)[decile - 1]]] = True
    return keep


def _scores(block: PairBlock) -> dict[str, npt.NDArray[np.float32]]:
    """Return built-in score and trigram overlap of the pairs of a scored source, NaN for other sources."""
    if block.source != SCORED and not block.source.startswith("corpus/"):
        unknown = np.full(len(block), np.nan, dtype=np.float32)
        return {"paraphrase_score": unknown, "overlap_3": unknown}
    pairs = ScoredPairs.of(block.left, block.right)
    return {
        "paraphrase_score": general_scorer().scores(pairs.reference_tokens, pairs.translation_tokens),
        "overlap_3": Overlap()(pairs)["overlap_3"].to_numpy(),
    }


@cache
def general_scorer() -> WordScorer:
    """Return the built-in scorer, opened once."""
    return WordScorer.open(general.DIRECTORY)


def _labeled(corpora: list[Path]) -> Iterator[tuple[PairBlock, npt.NDArray[np.float32]]]:
    """Yield blocks of one source each, with the translation scores of their pairs, NaN if they have none."""
    for source in FILES:
        if not (data_directory() / FILES[source]).is_file():
            print(f"no pairs of {source}: {FILES[source]} is missing", file=sys.stderr)
            continue
        for block in paraphrases(source):
            yield replace(block, source=source), np.full(len(block), np.nan, dtype=np.float32)
    yield from corpus_pairs(corpora)


def corpus_pairs(corpora: list[Path]) -> Iterator[tuple[PairBlock, npt.NDArray[np.float32]]]:
    """Yield the back-translations in row-aligned shard directories, with the source `corpus/NAME`, and their
    translation scores."""
    if not corpora:
        return
    view = ShardView(*corpora)
    optional = [name for name in ("failed", "translation_score") if name in view.column_names]
    for table in view.tables([*_COLUMNS, *optional]):
        table = table.filter(pc.is_valid(table.column("translation")))
        if "failed" in optional:
            table = table.filter(pc.is_null(table.column("failed")))
        for source in sorted(pc.unique(table.column("source")).to_pylist()):
            part = table.filter(pc.equal(table.column("source"), source))
            left, right = (part.column(name).cast(pa.string()).combine_chunks() for name in _COLUMNS[1:])
            score = np.full(len(part), np.nan, dtype=np.float32)
            if "translation_score" in optional:
                score = part.column("translation_score").cast(pa.float32()).to_numpy()
            yield PairBlock(left, right, f"corpus/{source}"), score
