"""The dataset card: front matter that the Hub reads, and tables that text cannot break."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from paraforge.publication.card import size_category, table
from paraforge.publication.manifest import read_manifest
from tests.selection.corpora import random_pairs
from tests.selection.published import publish_pairs


def split(text: str) -> tuple[dict[str, object], str]:
    _, metadata, body = text.split("---\n", 2)
    return yaml.safe_load(metadata), body


def test_the_card_of_a_corpus(tmp_path: Path) -> None:
    publish_pairs(
        tmp_path, name="My corpus", licence="cc-by-4.0", languages=["en", "cs"], tags=["paraphrase"]
    )
    metadata, body = split((tmp_path / "corpus" / "README.md").read_text(encoding="utf-8"))
    manifest = read_manifest(tmp_path / "corpus")
    assert metadata["license"] == "cc-by-4.0"
    assert metadata["language"] == ["en", "cs"]
    assert metadata["size_categories"] == ["n<1K"]
    assert metadata["configs"] == [
        {"config_name": "default", "data_files": [{"split": "train", "path": "shard-*.parquet"}]}
    ]
    assert body.startswith("\n# My corpus\n")
    assert manifest.signature in body
    assert "| tatoeba | CC-BY 2.0 FR |" in body
    assert "| news | not stated |" in body
    assert f"| all | 1,000 | {manifest.rows:,} |" in body
    assert "| (0.8, 1.0] |" in body
    assert "## Examples" in body
    refused, text = split((tmp_path / "rejected" / "README.md").read_text(encoding="utf-8"))
    assert refused["configs"] == [
        {"config_name": "default", "data_files": [{"split": "rejected", "path": "shard-*.parquet"}]}
    ]
    assert "## Examples" not in text


def test_the_hub_accepts_the_front_matter(tmp_path: Path) -> None:
    hub = pytest.importorskip("huggingface_hub")
    publish_pairs(tmp_path, rows=100)
    card = hub.DatasetCard.load(tmp_path / "corpus" / "README.md")
    assert card.data.pretty_name == "Paraforge corpus"
    assert card.data.license == "other"


def test_text_cannot_break_a_table() -> None:
    made = table(["a", "b"], [["x|y", "<b>&\nnew  line"]], right=[1])
    assert made.splitlines() == ["| a | b |", "|---|---:|", "| x\\|y | &lt;b&gt;&amp; new line |"]


def test_a_pair_with_markup_in_the_card(tmp_path: Path) -> None:
    pairs = random_pairs(30, seed=1)
    place = pairs.column_names.index("reference")
    texts = ["a | b <script> \n c"] * 30
    publish_pairs(tmp_path, table=pairs.set_column(place, pairs.schema.field(place), [texts]), filters={})
    _, body = split((tmp_path / "corpus" / "README.md").read_text(encoding="utf-8"))
    assert "a \\| b &lt;script&gt; c" in body
    assert "<script>" not in body


@pytest.mark.parametrize(
    ("rows", "category"),
    [(0, "n<1K"), (999, "n<1K"), (1_000, "1K<n<10K"), (51_400_000, "10M<n<100M"), (10**12, "n>1T")],
)
def test_size_categories(rows: int, category: str) -> None:
    assert size_category(rows) == category
