"""The parameters of selection: what is allowed, and that the shipped choices are."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from paraforge.corpus.publication.parameters import PublishParameters
from paraforge.corpus.selection.filters.decontamination import TestFileParameters
from paraforge.corpus.selection.parameters import SelectParameters
from paraforge.intake.bitext.block import REASONS

CONFIGS = Path(__file__).parents[3] / "configs"


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ([{"kind": "bounds", "score": "paraphrase_scor", "minimum": 0}], "no such column: scores are line,"),
        ([{"kind": "bounds", "score": "translation", "minimum": 0}], "is a string column, not a number"),
        ([{"kind": "decile", "score": "reference", "top": 2}], "is a string column, not a number"),
        ([{"kind": "decile", "score": "runaway", "top": 2}], "is a bool column, not a number"),
        ([{"kind": "bounds", "score": "overlap_3", "minimum": 0.7, "maximum": 0.4}], "minimum 0.7 is above"),
        ([{"kind": "length", "minimum": 31, "maximum": 30}], "minimum 31 is above maximum 30"),
        ([{"kind": "bounds", "score": "overlap_3"}], "neither minimum nor maximum"),
        ([{"kind": "bounds", "score": "overlap_3", "minimum": 1, "maximum": 1, "closed": "left"}], "no sc"),
        ([{"kind": "decile", "score": "overlap_3"}], "either top or keep"),
        ([{"kind": "decile", "score": "overlap_3", "top": 1, "keep": [1]}], "either top or keep"),
        ([{"kind": "decile", "score": "overlap_3", "top": 11}], "less than or equal to 10"),
        ([{"kind": "decile", "score": "overlap_3", "keep": []}], "at least 1 item"),
        ([{"kind": "flag", "column": "overlap_3"}], "not a flag: flags are"),
        ([{"kind": "sample", "size": 0}], "greater than or equal to 1"),
        ([{"kind": "near_duplicates", "per_reference": 0}], "greater than or equal to 1"),
        ([{"kind": "decontamination", "files": []}], "at least 1 item"),
        ([{"kind": "decontamination", "files": [{"path": "x"}], "exact": False}], "neither exact nor ngram"),
        ([{"kind": "length", "maximum": 3}, {"kind": "length", "maximum": 4}], "two filters are called"),
        ([{"kind": "lenght", "maximum": 3}], "does not match any of the expected tags"),
        ([{"kind": "length", "maximum": 3, "max": 4}], "Extra inputs are not permitted"),
        ([{"kind": "length", "maximum": 3, "name": "Length!"}], "should match pattern"),
        *(([{"kind": "length", "maximum": 3, "name": name}], f"{name}: ingest has") for name in REASONS),
    ],
)  # fmt: skip
def test_what_is_refused(filters: list[Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        SelectParameters.model_validate({"filters": filters})


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(ValidationError) as error:
        SelectParameters.model_validate(
            {"required": ["x"], "deciles": ["source_text"], "filters": [{"kind": "flag"}]}
        )
    assert {problem["loc"][0] for problem in error.value.errors()} == {"required", "deciles", "filters"}


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ({"path": "a", "columns": [1]}, "a plain file has no columns"),
        ({"path": "a", "format": "tsv"}, "a TSV needs columns"),
        ({"path": "a", "format": "tsv", "columns": [-1]}, "counted from 0"),
        ({"path": ""}, "at least 1 character"),
    ],
)
def test_test_files(file: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        TestFileParameters.model_validate(file)


def test_environment_variables_in_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARAFORGE_DATA", "/somewhere")
    assert TestFileParameters(path="$PARAFORGE_DATA/sts/x.tsv").location() == Path("/somewhere/sts/x.tsv")


@pytest.mark.parametrize("choice", sorted(path.stem for path in (CONFIGS / "select").glob("*.yaml")))
def test_shipped_choices(choice: str) -> None:
    text = (CONFIGS / "select" / f"{choice}.yaml").read_text(encoding="utf-8")
    assert text.startswith("# @package _global_\n")
    parameters = SelectParameters.model_validate(yaml.safe_load(text)["select"])
    assert "paraphrase_score" in parameters.required


def test_the_papers_choice() -> None:
    content = yaml.safe_load((CONFIGS / "select" / "paranmt.yaml").read_text(encoding="utf-8"))
    *_, decile, length, sample = SelectParameters.model_validate(content["select"]).filters
    assert decile.tenths() == (9, 10)
    assert (length.minimum, length.maximum) == (None, 30)
    assert sample.size == 5_000_000


def test_shipped_publication() -> None:
    content = yaml.safe_load((CONFIGS / "publish" / "default.yaml").read_text(encoding="utf-8"))
    PublishParameters.model_validate(content["publish"])
    with pytest.raises(ValidationError, match="no licence is given for tatoeba"):
        PublishParameters.model_validate({"licences": {"tatoeba": " "}})
