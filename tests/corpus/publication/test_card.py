"""The dataset card: front matter for the Hub, and tables that no text can break."""

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml

from paraforge.base.errors import InputError
from paraforge.corpus.columns import COLUMNS, LABELS
from paraforge.corpus.publication.card import CARD_NAME, configs, describe, size_category
from paraforge.corpus.publication.manifest import read_manifest
from paraforge.corpus.selection.parameters import explain_reasons
from tests.base.test_markdown import RENDER, Seen, plain
from tests.corpus.selection.corpora import random_pairs, with_columns
from tests.corpus.selection.published import publish_pairs


def split(text: str) -> tuple[dict[str, Any], str]:
    _, metadata, body = re.split(r"^---\n", text, maxsplit=2, flags=re.MULTILINE)
    return yaml.safe_load(metadata), body


def test_card_of_corpus(tmp_path: Path) -> None:
    made = {"name": "My corpus", "license": "cc-by-4.0", "languages": ["en", "cs"], "tags": ["paraphrase"]}
    report = publish_pairs(tmp_path, **made)
    metadata, body = split((tmp_path / "corpus" / "_README.md").read_text(encoding="utf-8"))
    manifest = read_manifest(tmp_path / "corpus")
    assert len(manifest.sources) > 1 and metadata["license"] == "cc-by-4.0"
    assert metadata["language"] == ["en", "cs"]
    assert metadata["size_categories"] == ["n<1K"]
    assert metadata["tags"] == ["paraphrase", "synthetic"]
    assert metadata["language_creators"] == ["found", "machine-generated"]
    assert metadata["source_datasets"] == [f"extended|other-{source}" for source in sorted(manifest.sources)]
    (config,) = metadata["configs"]
    assert config == {
        "config_name": "default",
        "description": manifest.publication,
        "data_files": [{"split": "train", "path": "shard-*.parquet"}],
    }
    assert body.startswith("\n# My corpus\n")
    assert describe(tmp_path / "corpus") == body.lstrip("\n")
    assert manifest.signature in body
    assert "| tatoeba | CC-BY 2.0 FR |" in body
    assert "| news | not stated |" in body
    for name, counts in [*manifest.sources.items(), ("all sources", manifest.counts)]:
        left_out = f"{counts.rejected.total():,} | {counts.failed.total():,}"
        share = f"{100 * counts.kept / counts.rows_in:.1f}"
        assert f"| {name} | {counts.rows_in:,} | {counts.kept:,} | {left_out} | {share} |" in body
    assert manifest.counts.rows_in == 1_000 and manifest.counts.kept == manifest.rows
    assert manifest.counts.failed.total() > 10
    for band in report.statistics.bands():
        shown = (band["band"], band["pairs"], f"{band['overlap_3']:.2f}", band["kept"])
        assert f"| {' | '.join(map(str, shown))} | {band['kept_overlap_3']:.2f} |" in body
    for column, mean in report.statistics.means().items():
        assert f"| {LABELS[column]} | {mean:.3f} |" in body
    for reason, number in manifest.counts.rejected.items():
        assert f"| rejected | {reason} | {number:,} | {explain_reasons(manifest.steps)[reason]} |" in body
    assert f"| failed | engine_error | {manifest.counts.failed['engine_error']} |" in body
    assert "## Examples" in body
    refused, text = split((tmp_path / "rejected" / "_README.md").read_text(encoding="utf-8"))
    files = [{"split": "rejected", "path": "shard-*.parquet"}]
    assert refused["configs"] == [{**config, "data_files": files}]
    assert "## Examples" not in text and text.startswith("\n# My corpus: rejected pairs\n")


def test_hub_accepts_front_matter(tmp_path: Path) -> None:
    hub = pytest.importorskip("huggingface_hub")
    publish_pairs(tmp_path, rows=100)
    card = hub.DatasetCard.load(tmp_path / "corpus" / "_README.md")
    assert card.data.pretty_name == "Paraforge corpus"
    assert card.data.license == "other"


@pytest.mark.parametrize("content", ["corpus", "rejected"])
def test_card_has_the_features_that_datasets_infers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    publish_pairs(tmp_path, rows=400)
    directory = tmp_path / content
    front = yaml.safe_load((directory / CARD_NAME).read_text(encoding="utf-8").split("---\n")[1])
    for metadata in (front, yaml.safe_load((directory / ".huggingface.yaml").read_text(encoding="utf-8"))):
        (information,) = metadata["dataset_info"]
        stated = datasets.Features._from_yaml_list(information["features"])
        split = metadata["configs"][0]["data_files"][0]["split"]
        inferred = datasets.load_dataset("parquet", data_files=f"{directory}/shard-*.parquet", split="train")
        assert stated == inferred.features
    assert datasets.load_dataset(str(directory), split=split).features == stated
    assert front["license"] and front["size_categories"] and front["configs"]


@pytest.mark.parametrize(
    ("engine", "languages", "expected"),
    [
        (None, ("de", "fr"), ["de", "fr"]),
        (None, ("deu_Latn", "fra"), ["de", "fr"]),
        ("none", ("en", "cs"), ["en"]),
        ("none", ("de", "cs"), ["de"]),
    ],
)
def test_card_languages_and_kinds(
    tmp_path: Path, engine: str | None, languages: tuple[str, str], expected: list[str]
) -> None:
    model = tmp_path / "model.json"
    model.write_text(json.dumps({"target_language": languages[0], "source_language": languages[1]}))
    translated = {"parameters": {"engine": engine}, "fingerprints": {}} if engine else None
    publish_pairs(tmp_path, 60, 30, translated=translated, model=model, name="Mine")
    metadata, body = split((tmp_path / "corpus" / CARD_NAME).read_text(encoding="utf-8"))
    assert metadata["language"] == expected
    assert body.startswith("\n# Mine\n")
    given = engine == "none"
    assert ("back-translation" in body, "machine translation" in body) == (not given, not given)
    assert ("back-translation" in metadata["tags"], "annotations_creators" in metadata) == (not given,) * 2
    assert ("synthetic" in metadata["tags"], len(metadata["language_creators"])) == (not given, 2 - given)
    assert ("English side" in body) == (expected[0] == "en" and not given)


FORWARD = {"parameters": {"beam": 4}, "fingerprints": {"model": "ab" * 32}}
KNOWN = {"sentences": 9, "sentences_from_memory": 5, "forward": FORWARD, "chosen": {"maximum_sentences": 7}}
INTO_GERMAN = "machine translation of the foreign side into the language de"


@pytest.mark.parametrize(
    ("translated", "reference", "translation", "made"),
    [
        (KNOWN, "a sentence, as it was given", INTO_GERMAN, "the machine translation of that back"),
        ({}, "side of the bitext in the language de", INTO_GERMAN, "a machine translation of its foreign"),
        ({"parameters": {"engine": "none"}}, "a sentence", "paraphrase of the reference, as it was given",
         "given as paraphrases of each other"),
    ],
    ids=["round trip", "bitext", "paraphrases"],
)  # fmt: skip
def test_card_describes_texts(
    tmp_path: Path, translated: dict[str, Any], reference: str, translation: str, made: str
) -> None:
    """The columns' descriptions and the card describe the texts; the manifest has what is known about the
    translation.
    """
    publish_pairs(tmp_path, 60, 30, translated=translated, languages=["de", "fr"])
    manifest = read_manifest(tmp_path / "corpus")
    meanings = {column["name"]: column["description"] for column in manifest.columns}
    assert (meanings["reference"], meanings["translation"]) == (reference, translation)
    foreign = "machine translation of the reference into another language"
    assert (meanings["source_text"] == foreign) == ("forward" in translated)
    assert made in describe(tmp_path / "corpus")
    assert translated.items() <= manifest.steps["translate"].items() and manifest.group_score == 0.8


def test_languages_of_pivots(tmp_path: Path) -> None:
    pivots = pa.array(["cs", "de+pl"] * 30)
    pairs = random_pairs(60, seed=1).append_column(COLUMNS["pivot"], pivots)
    place = pairs.column_names.index("source")
    pairs = pairs.set_column(place, COLUMNS["source"], pa.array(["web", "web/news"] * 30))
    report = publish_pairs(tmp_path, table=pairs, languages=["en", "cs"])
    assert {name: one["rows_in"] for name, one in report.metrics()["pivots"].items()} == {
        "cs": 30,
        "de+pl": 30,
    }
    metadata, body = split((tmp_path / "corpus" / CARD_NAME).read_text(encoding="utf-8"))
    assert metadata["language"] == ["en", "cs", "de", "pl"]
    assert metadata["source_datasets"] == ["extended|other-news", "extended|other-web"]
    assert metadata["multilinguality"] == ["translation"]
    assert "Where it is de+pl, both sides are translations of one reference." in body
    assert re.search(r"\| de\+pl \| 30 \| ", body)
    assert "| all sources | 60 |" in body and "| all pivots | 60 |" in body
    assert "no two splits" not in body


def test_no_description(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        describe(tmp_path)
    (tmp_path / CARD_NAME).write_text("# a page of somebody", encoding="utf-8")
    with pytest.raises(InputError, match="not the card"):
        describe(tmp_path)


def test_card_uses_type_names_of_datasets() -> None:
    columns = [{"name": "a", "type": kind} for kind in ("double", "list<element: float>")]
    (info,) = configs({"default": ({}, columns)}, "")["dataset_info"]
    assert info["features"] == [{"name": "a", "dtype": "float64"}, {"name": "a", "list": "float32"}]


@pytest.mark.parametrize(
    ("rows", "category"),
    [(0, "n<1K"), (999, "n<1K"), (1_000, "1K<n<10K"), (51_400_000, "10M<n<100M"), (10**12, "n>1T")],
)
def test_size_categories(rows: int, category: str) -> None:
    assert size_category(rows) == category


HOSTILE = (
    "<script>alert(1)</script>",
    "![x](javascript:alert(1))",
    "a | b\n# c `d",
    "---\nlicense: mit\n---",
    "**bold** _it_ ~~no~~ $x$",
)


@pytest.mark.parametrize("text", HOSTILE)
def test_user_names_are_escaped_in_card(tmp_path: Path, text: str) -> None:
    """Names of the corpus and its sources, licenses, tags and sentences appear in front matter, headings,
    tables and code.
    """
    texts = [text] * 60
    pairs = with_columns(random_pairs(60, seed=1), reference=texts, translation=texts, source=texts)
    publish_pairs(tmp_path, table=pairs, filters={}, name=text, licenses={text: text}, tags=[text])
    card = (tmp_path / "corpus" / "_README.md").read_text(encoding="utf-8")
    metadata, body = split(card)
    assert describe(tmp_path / "corpus") == body.lstrip("\n") and "| all |" not in body
    assert (metadata["pretty_name"], metadata["license"]) == (text, "other")
    assert metadata["tags"] == [text, "synthetic"]
    assert metadata["source_datasets"] == [f"extended|other-{text}"]
    seen = Seen(RENDER.render(body))
    assert seen.tags.count("h1") == 1 and seen.text.startswith(plain(text))
    known = ["h1", "h2", "p", "table", "thead", "tbody", "tr", "th", "td", "code", "pre"]
    assert set(seen.tags) <= set(known)
    assert "javascript" not in RENDER.render(body) or "javascript" in seen.text
    rows = seen.text.count(plain(text))
    assert rows >= 3 + 2 * 2  # the title, the source and its license, and two examples
