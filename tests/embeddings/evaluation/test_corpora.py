"""Pairs of a published corpus as a training reads them."""

from pathlib import Path

from paraforge.corpus.publication.datasets import open_published, published_tables
from paraforge.embeddings.evaluation.corpora import corpus_blocks
from tests.corpus.selection.published import publish_pairs


def test_pairs_of_the_training_split_have_their_sources(tmp_path: Path) -> None:
    publish_pairs(tmp_path, rows=300, splits={"test": 60})
    columns = ["source", "reference", "translation"]
    training = open_published(tmp_path / "corpus").training
    expected = [
        tuple(row[name] for name in columns)
        for table in published_tables(training, columns)
        for row in table.to_pylist()
    ]
    found = []
    for block in corpus_blocks(tmp_path / "corpus"):
        sides = zip(block.left.to_pylist(), block.right.to_pylist(), strict=True)
        found += [(block.source, *row) for row in sides]
    assert sorted(found, key=str) == sorted(expected, key=str)
    assert len(found) == training.rows > 0
