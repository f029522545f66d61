"""Held-out sentences reach no stage that trains."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from paraforge.base.errors import InputError
from paraforge.base.files import read_json
from paraforge.corpus.publication.datasets import corpus_blocks, open_published, published_tables
from paraforge.corpus.publication.manifest import MANIFEST_NAME
from paraforge.products.lexicon.pair_sources import open_pairs
from paraforge.products.lexicon.parameters import LexiconFilters
from paraforge.translation.engines.fake import _word
from tests.corpus.selection.published import publish_pairs
from tests.here import inside, run_stage
from tests.project import ROOT, made_once, make_project, read_parameters, stage_names, write_parameters

STAGES: dict[str, Any] = yaml.safe_load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"]
# What these read of a held-out pair is described or shown.
DESCRIBE = {"statistics", "report"}
SETTINGS = (
    "triplets=default",
    "lexicon.minimum_pairs=1",
    "lexicon.filters.minimum_score=-1",
    "embeddings.models.word.encoder.dimension=8",
    "embeddings.models.word.training.epochs=1",
    "embeddings.corpus_pairs=false",
    "embeddings.pair_files=[{path: all.tsv}]",
    "paraphraser=small",
    "paraphraser.architecture={encoder_layers: 1, decoder_layers: 1, width: 16, feed_forward: 32, heads: 2}",
    "paraphraser.training.maximum_updates=4",
    "paraphraser.training.warmup_updates=1",
    "paraphraser.validation.held_out=20",
    "paraphraser.validation.every_updates=2",
    "publish.splits={validation: 20, test: 30}",
)
LINES = 900
# Of other things, or no sentence is far enough from another one to be a triplet's negative.
ABOUT = (
    "muž viděl starý dům",
    "ceny pšenice rostly loni",
    "loď ztratila dva motory",
    "lékař podal nový lék",
    "náš tým prohrál zápas",
    "housle koupilo drahé muzeum",
    "růže potřebují hodně vody",
)
NAME = re.compile(r"\bname\d+\b")


def makers(stage: str) -> set[str]:
    """The stages that one reads of, and those that these read of."""
    outputs = {out: name for name in STAGES for out in STAGES[name]["outs"] if isinstance(out, str)}
    deps = [dep.removesuffix("/model.json") for dep in STAGES[stage]["deps"]]
    direct = {outputs[dep] for dep in deps if dep in outputs}
    return direct.union(*map(makers, direct))


TRAINED = sorted(STAGES.keys() - makers("publish") - {"publish"} - DESCRIBE)


def make(directory: Path) -> None:
    """A project to its corpus: every reference, which has a name of its own, with two foreign sentences, of
    which selection rejects some."""
    make_project(directory, *SETTINGS)
    content = read_parameters(directory)
    topics = [ABOUT[line // 2 % len(ABOUT)] for line in range(LINES)]
    # Near its translation, a reference says what the fake engine says of the topic.
    references = [
        f"{' '.join(_word(1, word) for word in topics[2 * line].split())} name{line}."
        for line in range(LINES // 2)
    ]
    rows = [f"{topics[line]} {line}\t{references[line // 2]}\n" for line in range(LINES)]
    (directory / "own.tsv").write_text("".join(rows), encoding="utf-8")
    pairs = [f"{reference}\tSomebody said: {reference}\n" for reference in references]
    (directory / "all.tsv").write_text("".join(pairs), encoding="utf-8")
    own = {"format": "tsv", "name": "own", "path": "own.tsv", "columns": {"source_text": 0, "reference": 1}}
    content["ingest"]["sources"] = [own]
    content["select"] = {"filters": [{"kind": "bounds", "score": "translation_score", "minimum": -1.0}]}
    write_parameters(directory, content)
    with inside(directory):
        for name in stage_names():
            if name == "publish" or name in makers("publish"):
                run_stage(name)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_once(tmp_path_factory, "held-out", make)


def texts(directory: Path) -> Iterator[str]:
    """All text of all files below a directory."""
    for path in directory.rglob("*"):
        if path.suffix == ".parquet":
            yield str(pq.read_table(path, partitioning=None).to_pydict())
        elif path.suffix == ".arrow":
            with pa.memory_map(str(path)) as source:
                yield str(pa.ipc.open_file(source).read_all().to_pydict())
        elif path.is_file():
            yield path.read_bytes().decode("latin-1")


def names(directory: Path) -> set[str]:
    return {name for text in texts(directory) for name in NAME.findall(text)}


def test_training_stages_are_known() -> None:
    assert {"embeddings", "lexicon", "paraphraser", "triplets"} == {*TRAINED}
    assert {"ingest", "nmt", "translate", "paragram", "score", "select"} == makers("publish")


@pytest.mark.full
@pytest.mark.timeout(300)
@pytest.mark.parametrize("stage", TRAINED)
def test_held_out_sentences_are_never_trained_on(stage: str, project: Path) -> None:
    held, kept = set[str](), set[str]()
    for name, split in open_published(project / "data/corpus").splits.items():
        found = held if name != "train" else kept
        for table in published_tables(split, ["reference"]):
            found.update(NAME.findall(str(table["reference"].to_pylist())))
    assert len(held) > 20 and not held & kept and len(kept) > 100
    assert held <= names(project / "data/translated")
    with inside(project):
        run_stage(stage)
    outputs = [Path(str(out).replace("${item.name}", "word")) for out in STAGES[stage]["outs"]]
    trained = names(project / "work" / stage).union(
        *(names(project / out) for out in outputs if (project / out).is_dir())
    )
    assert len(trained) > 100
    assert not trained & held
    if stage == "lexicon":
        report = read_json(project / "metrics/lexicon.json")
        assert report["rows"] == report["pairs"] + sum(report["dropped"].values()) == LINES
        assert report["dropped"]["held_out"] >= len(held)


def test_readers_of_corpus_exclude_held_out_splits(tmp_path: Path) -> None:
    """Even without a manifest, the index of shards names the files of all splits."""
    report = publish_pairs(tmp_path, rows=300, splits={"test": 50})
    corpus = tmp_path / "corpus"
    readers: tuple[Callable[[], int], ...] = (
        lambda: open_pairs([corpus], LexiconFilters(minimum_score=None)).rows,
        lambda: sum(len(block) for block in corpus_blocks(corpus)),
    )
    assert [read() for read in readers] == [report.corpus.rows - 50] * 2
    (corpus / MANIFEST_NAME).unlink()
    for read in readers:
        with pytest.raises(InputError, match="not a published corpus"):
            read()
