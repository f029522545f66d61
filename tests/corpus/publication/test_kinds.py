"""Cards say what a corpus is: its languages, given paraphrases; no column of it is empty throughout."""

import json
from pathlib import Path

import pytest

from paraforge.base.files import read_json, write_json
from paraforge.base.shards.store import INDEX_NAME, ShardDirectory
from paraforge.corpus.publication.card import CARD_NAME
from paraforge.corpus.publication.parameters import PublishParameters
from paraforge.corpus.publication.publication import publish
from paraforge.corpus.selection.parameters import SelectParameters
from paraforge.corpus.selection.select import select
from tests.corpus.publication.test_card import split
from tests.corpus.selection.corpora import cut, random_pairs, resources, write_corpus
from tests.corpus.selection.published import FILTERS


@pytest.mark.parametrize(
    ("engine", "languages", "expected"),
    [
        (None, ("de", "fr"), ["de", "fr"]),
        (None, ("deu_Latn", "fra"), ["de", "fr"]),
        ("none", ("en", "cs"), ["en"]),
        ("none", ("de", "cs"), ["de"]),
    ],
)
def test_languages_and_kinds(
    tmp_path: Path, engine: str | None, languages: tuple[str, str], expected: list[str]
) -> None:
    inputs = write_corpus(random_pairs(60, seed=7), tmp_path, cut(60, 30))
    if engine:
        index = read_json(inputs[0] / INDEX_NAME)
        write_json(inputs[0] / INDEX_NAME, {**index, "parameters": {"engine": engine}, "fingerprints": {}})
    model = tmp_path / "model.json"
    model.write_text(json.dumps({"target_language": languages[0], "source_language": languages[1]}))
    select(SelectParameters.model_validate(FILTERS), inputs, tmp_path / "selected", resources(tmp_path))
    outputs = (tmp_path / "corpus", tmp_path / "rejected")
    parameters = PublishParameters(name="Mine")
    publish(parameters, inputs, tmp_path / "selected", *outputs, resources(tmp_path), model=model)
    metadata, body = split((tmp_path / "corpus" / CARD_NAME).read_text(encoding="utf-8"))
    assert metadata["language"] == expected
    assert body.startswith("\n# Mine\n")
    given = engine == "none"
    assert ("back-translation" in body, "machine translation" in body) == (not given, not given)
    assert ("back-translation" in metadata["tags"], "annotations_creators" in metadata) == (not given,) * 2
    assert ("synthetic" in metadata["tags"], len(metadata["language_creators"])) == (not given, 2 - given)
    assert ("English side" in body) == (expected[0] == "en" and not given)


def test_no_column_is_empty_throughout(tmp_path: Path) -> None:
    inputs = write_corpus(random_pairs(60, seed=7), tmp_path, cut(60, 30))
    select(SelectParameters.model_validate(FILTERS), inputs, tmp_path / "selected", resources(tmp_path))
    outputs = (tmp_path / "corpus", tmp_path / "rejected")
    publish(PublishParameters(), inputs, tmp_path / "selected", *outputs, resources(tmp_path))
    kept, rejected = (ShardDirectory(path).schema.names for path in outputs)
    assert set(rejected) - set(kept) == {"rejected", "failed"}
    assert set(kept) - set(rejected) == {"group"}
