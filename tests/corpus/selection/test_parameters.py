"""Parameters of selection, the shipped choices, and select=quality."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml
from pydantic import ValidationError

from paraforge.base.errors import ConfigurationError
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.store import ShardDirectory
from paraforge.corpus.columns import schema_of
from paraforge.corpus.publication.parameters import PublishParameters
from paraforge.corpus.publication.verdict_words import verdict_words
from paraforge.corpus.scoring.general import DIRECTORY
from paraforge.corpus.scoring.score import score
from paraforge.corpus.scoring.verdict import FEWEST_CHANGED, judge_changed, upper_bound
from paraforge.corpus.selection import thresholds
from paraforge.corpus.selection.filters.bounds import BoundsParameters
from paraforge.corpus.selection.filters.decontamination import TestFileParameters
from paraforge.corpus.selection.parameters import SelectParameters
from paraforge.corpus.selection.select import select
from paraforge.corpus.selection.thresholds import settle, verdict
from paraforge.intake.bitext.source import REASONS
from tests.corpus.scoring.test_score import WITHOUT_LANGUAGE
from tests.corpus.selection.corpora import write_shards

CONFIGS = Path(__file__).parents[3] / "configs"
PARAMETERS = SelectParameters.model_validate(
    yaml.safe_load((Path(__file__).parents[3] / "configs" / "select" / "quality.yaml").read_text())["select"]
)
SCHEMA = schema_of([
    "source", "line", "source_text", "reference", "translation",
    "runaway", "output_truncated", "rejected", "failed",
])  # fmt: skip
THINGS = [
    "dog", "house", "river", "teacher", "garden", "letter", "window", "morning", "church", "horse",
    "letter",
]  # fmt: skip
VERBS = ["saw", "painted", "liked", "remembered", "described", "photographed", "visited"]
SHARE = {"kind": "bounds", "score": "paraphrase_score", "minimum": {"wrong_pairs": 0.01}}
DECONTAMINATION = {"kind": "decontamination"}
FAILED = {
    "copied_words": "The žena viděla dog in the park.",
    "unknown_words": "The corimentmast ablethion saw dog.",
    "source_similarity": "This woman saw that dog there in this park.",
    "paraphrase_score": "It will rain all day tomorrow in Paris.",
    "contradiction": "The woman never saw the dog in the park.",
    "trigram_overlap": "The woman saw the dog in the park.",
    None: "This woman saw that dog there in this park.",
}


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ([{"kind": "bounds", "score": "paraphrase_scor", "minimum": 0}], "did you mean 'paraphrase_score'"),
        ([{"kind": "bounds", "score": "zzz", "minimum": 0}], "no such column: scores are line,"),
        ([{"kind": "bounds", "score": "paraphrase_score", "minimum": 45}], "values are from -1 to 1"),
        ([{"kind": "bounds", "score": "overlap_3", "maximum": 90}], "values are from 0 to 1"),
        ([{"kind": "bounds", "score": "overlap_3", "minimum": -0.1}], "values are from 0 to 1"),
        ([{"kind": "bounds", "score": "source_similarity", "minimum": 2}], "values are at most 1"),
        ([{"kind": "bounds", "score": "translation_score", "minimum": 1}], "values are at most 0"),
        ([{"kind": "length", "minimum": -3}], "values are at least 0"),
        ([{"kind": "bounds", "score": "translation", "minimum": 0}], "is a string column, not a number"),
        ([{"kind": "decile", "score": "reference", "top": 2}], "is a string column, not a number"),
        ([{"kind": "decile", "score": "runaway", "top": 2}], "is a bool column, not a number"),
        ([{"kind": "bounds", "score": "overlap_3", "minimum": 0.7, "maximum": 0.4}], "minimum 0.7 is above"),
        ([{"kind": "length", "minimum": 31, "maximum": 30}], "minimum 31 is above maximum 30"),
        ([{"kind": "bounds", "score": "overlap_3"}], "set minimum, maximum or both"),
        ([{"kind": "bounds", "score": "overlap_3", "maximum": float("nan")}], "should be a finite number"),
        ([{"kind": "decile", "score": "overlap_3"}], "Field required"),
        ([{"kind": "decile", "score": "overlap_3", "top": 11}], "less than or equal to 10"),
        ([{"kind": "flag", "column": "runway"}], "not a flag: .* did you mean 'runaway'"),
        ([{"kind": "language", "languages": ["english"]}], "should match pattern"),
        ([{"kind": "sample", "size": 0}], "greater than or equal to 1"),
        ([{"kind": "near_duplicates", "per_reference": 0}], "greater than or equal to 1"),
        ([DECONTAMINATION | {"files": []}], "at least 1 item"),
        ([{"kind": "length", "maximum": 3}, {"kind": "length", "maximum": 4}], "two filters are called"),
        ({"a": {"kind": "length", "maximum": 3, "name": "b"}}, "a: the key is the filter's name"),
        ({"length": {"kind": "length", "maximum": 3}, "lenght": {"maximum": 4}},
         "no filter 'lenght': the filters are length, and a new one needs its kind; did you mean 'length'"),
        ([{"kind": "lenght", "maximum": 3}], "does not match any of the expected tags"),
        ([{"kind": "length", "maximum": 3, "max": 4}], "Extra inputs are not permitted"),
        ([{"kind": "length", "maximum": 3, "name": "Length!"}], "should match pattern"),
        ([SHARE | {"minimum": {"wrong_pairs": 1.0}}], "less than 1"),
        ([SHARE | {"minimum": {"wrong_pairs": -0.1}}], "greater than or equal to 0"),
        ([SHARE | {"minimum": {"wrong_pairs": "few"}}], "valid number"),
        ([SHARE | {"minimum": {}}], "required"),
        ([SHARE | {"minimum": {"wrong_pairs": 0.1, "seed": 1}}], "not permitted"),
        ([SHARE | {"minimum": "low"}], "valid number"),
        ([SHARE | {"maximum": {"wrong_pairs": 0.1}}], "maximum.share.good_pairs"),
        ([SHARE | {"score": "reference_tokens"}], "no reference_tokens: use a number"),
        ([SHARE | {"score": "translation_score"}], "pairs have no translation_score: use"),
        ([{"kind": "length", "minimum": {"wrong_pairs": 0.01}}], "valid number"),
        ([{"kind": "bounds", "score": "unknown_words", "maximum": {"good_pairs": 0.02}}],
         "the sample of good pairs has no unknown_words"),
        ([DECONTAMINATION | {"files": [{"path": "a", "columns": [-1]}]}], "greater than or equal to 0"),
        ([DECONTAMINATION | {"files": [{"path": ""}]}], "at least 1 character"),
        *(([{"kind": "length", "maximum": 3, "name": name}], f"{name}: this is the reason")
          for name in (*REASONS, "no_overlap_3")),
    ],
)  # fmt: skip
def test_invalid_select_parameters(filters: list[Any] | dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        SelectParameters.model_validate({"filters": filters})


def test_named_filters_use_configured_order() -> None:
    one = {"kind": "length", "maximum": 3}
    given = {"order": ["d", "b"], "filters": {"c": one, "b": one, "a": one, "d": one, "e": None}}
    assert [found.reason for found in SelectParameters.model_validate(given).filters] == ["d", "b", "a", "c"]
    for order, message in ((["d", "x"], "order names x, but"), (["d", "d"], "order names a filter twice")):
        with pytest.raises(ValidationError, match=message):
            SelectParameters.model_validate({**given, "order": order})


def test_all_problems_are_reported_at_once() -> None:
    with pytest.raises(ValidationError) as error:
        SelectParameters.model_validate(
            {"required": ["x"], "deciles": ["overlap_1"] * 2, "filters": [{"kind": "flag"}]}
        )
    assert "a score is named twice" in str(error.value)
    assert {problem["loc"][0] for problem in error.value.errors()} == {"required", "deciles", "filters"}


def test_environment_variables_in_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARAFORGE_DATA", "/somewhere")
    assert TestFileParameters(path="$PARAFORGE_DATA/sts/x.tsv").location() == Path("/somewhere/sts/x.tsv")


def test_paper_selection() -> None:
    content = yaml.safe_load((CONFIGS / "select" / "paranmt.yaml").read_text(encoding="utf-8"))
    *_, decile, length, sample = SelectParameters.model_validate(content["select"]).filters
    assert decile.tenths() == (9, 10)
    assert (length.minimum, length.maximum) == (None, 30)
    assert sample.size == 5_000_000


def test_blank_license_is_error() -> None:
    with pytest.raises(ValidationError, match="no license is given for tatoeba"):
        PublishParameters.model_validate({"licenses": {"tatoeba": " "}})


def test_missing_scores_have_reasons(tmp_path: Path) -> None:
    right = [
        (f"{a[::-1]} {verb[::-1]} {b[::-1]}", f"The {a} {verb} the {b}.", f"This {a} {verb} that {b} there.")
        for a in THINGS
        for b in THINGS
        for verb in VERBS[:6]
        if a != b
    ]
    failed = [
        (
            "Esroh detisiv hcruhc." if reason == "source_similarity" else "Žena viděla psa v parku.",
            "The woman saw the dog in the park.",
            text,
        )
        for reason, text in FAILED.items()
    ]
    rows = [("s", 0, *texts, False, False, None, None) for texts in (*right, *failed)]
    columns = [list(column) for column in zip(*rows, strict=True)]
    columns[1] = list(range(1, len(rows) + 1))
    write_shards(pa.table(columns, schema=SCHEMA), tmp_path / "translated", 50_000)
    resources = Resources(work=tmp_path / "work", workers=1)
    score(WITHOUT_LANGUAGE, tmp_path / "translated", DIRECTORY, tmp_path / "scored", resources)
    select(PARAMETERS, [tmp_path / "translated", tmp_path / "scored"], tmp_path / "selected", resources)
    found = ShardDirectory(tmp_path / "selected").read(0)["rejected"].to_pylist()
    assert found[-len(FAILED) :] == list(FAILED)


def test_no_source_similarity_without_foreign_side() -> None:
    scores = pa.array([k / 1000 for k in range(1000)], pa.float32())
    names = ("paraphrase_score", "contradiction", "source_similarity")
    columns = {f"{side}{name}": scores for name in names for side in ("", "right_")}
    asked = {rule.reason for rule in PARAMETERS.filters}
    for null, expected in ((False, asked), (True, asked - {"source_similarity"})):
        if null:
            nothing = pa.nulls(1000, pa.float32())
            columns |= {"source_similarity": nothing, "right_source_similarity": nothing}
        columns |= {"weight": pa.array([1.0] * 1000), "rule": pa.nulls(1000, pa.string())}
        settled = settle(PARAMETERS, pa.table(columns))
        assert {rule.reason for rule in settled.filters} == expected
    refusing = {"kind": "bounds", "score": "source_similarity", "minimum": {"wrong_pairs": 0.01}}
    with pytest.raises(ConfigurationError, match="no mismatched pair has this score"):
        settle(SelectParameters.model_validate({"filters": [refusing]}), pa.table(columns))


@pytest.mark.parametrize("bounds", [(0.3, 0.6), (0.6, 0.3)])
@pytest.mark.parametrize("missing", ["accept", "refuse"])
def test_verdict_uses_strictest_bound(bounds: tuple[float, float], missing: str) -> None:
    policy = {"missing": missing}
    chosen = SelectParameters.model_validate(
        {
            "required": [],
            "filters": [
                {"kind": "bounds", "score": score, side: bound, "name": f"{side}_{place}"} | policy
                for side, score in (("minimum", "paraphrase_score"), ("maximum", "contradiction"))
                for place, bound in enumerate(bounds)
            ],
        }
    )
    found = thresholds.minima(chosen, {})
    assert found == {"paraphrase_score": 0.6}
    highest = thresholds.maxima(chosen)
    assert highest == {"contradiction": 0.3}
    nan = float("nan")
    columns = {"paraphrase_score": [0.1, 0.9, 0.9, nan, 0.9], "contradiction": [0.1, 0.4, 0.1, 0.1, nan]}
    sample = pa.table({f"right_{name}": pa.array(one, pa.float32()) for name, one in columns.items()})
    kept = thresholds._kept(sample, chosen, found, highest)
    assert kept.tolist() == [False, False, True, *[missing == "accept"] * 2]


def bounded(**given: Any) -> SelectParameters:
    """A selection by one filter."""
    one = {"kind": "bounds", "score": "contradiction", "missing": "accept", **given}
    return SelectParameters.model_validate({"required": [], "deciles": [], "filters": [one]})


def sampled(rows: int, seed: int = 0) -> pa.Table:
    """Mismatched pairs with other rows' translations, and as many with changed meanings."""
    random = np.random.default_rng(seed)
    right = np.where(random.random(rows) < 0.7, 0, random.random(rows)).astype(np.float32)
    wrong = np.concatenate([random.random(rows), 1 - random.random(rows) ** 4 / 2]).astype(np.float32)
    return pa.table(
        {
            "source": ["s"] * 2 * rows,
            "rule": [None] * rows + ["negation"] * rows,
            "weight": np.ones(2 * rows),
            "contradiction": wrong,
            "right_contradiction": np.concatenate([right, right / 2]),
        }
    )


@pytest.mark.parametrize("rows", [150, 2_000, 20_000])
@pytest.mark.parametrize("share", [0.02, 0.2])
def test_maximum_loses_at_most_stated_share(rows: int, share: float) -> None:
    table = sampled(rows)
    parameters = settle(bounded(maximum={"good_pairs": share}), table)
    (bounds,) = parameters.filters
    assert isinstance(bounds, BoundsParameters) and isinstance(bounds.maximum, float)
    maximum = bounds.maximum
    right = table["right_contradiction"].to_numpy()[:rows]
    lost = float((right > np.float32(maximum)).mean())
    assert upper_bound(np.array([lost]), rows)[0] <= share or not lost
    # What is a unit of the last digit below the next score loses too many.
    next_one = right[right <= np.float32(maximum - 0.001)].max()
    more = float((right >= next_one).mean())
    assert upper_bound(np.array([more]), rows)[0] > share


def test_verdict_reports_found_and_lost_shares() -> None:
    table = sampled(20_000)
    parameters = settle(bounded(maximum={"good_pairs": 0.02}), table)
    figures = verdict(parameters, table, {}, [])
    changed = figures["changed_meanings"]
    assert changed["chosen"] == changed["maximum"] and changed["chosen_found"] == changed["found"]
    assert 0.015 < changed["chosen_lost"] <= 0.02
    (sentence,) = (line for line in verdict_words(figures, 0) if "altered" in line)
    assert f"rejecting scores above {changed['maximum']:g} catches" in sentence
    assert f"loses {100 * changed['chosen_lost']:.2g}% of the good pairs" in sentence


def all_scored(score: float) -> pa.Table:
    """Pairs that all have the same scores, right or wrong."""
    same = pa.array(np.full(400, score, np.float32))
    table = sampled(200).select(["source", "rule", "weight"])
    for name in ("contradiction", "paraphrase_score"):
        table = table.append_column(name, same).append_column(f"right_{name}", same)
    return table


def test_score_equal_to_maximum_passes() -> None:
    for maximum, above in ((0.3, 0), (0.29, 1)):
        changed = judge_changed(all_scored(0.3), maximum)
        assert (changed["chosen_found"], changed["chosen_lost"]) == (above, above)
    for number in (0.0, 0.3, 0.7, 1.0):
        asked = bounded(maximum={"good_pairs": 0.02})
        assert thresholds.maxima(settle(asked, all_scored(number))) == {"contradiction": number}


def test_unrelated_selections_keep_figures() -> None:
    table = sampled(500)
    figures = verdict(bounded(score="overlap_3", maximum=0.9), table, {}, [])
    assert figures["changed_meanings"] == judge_changed(table)
    assert judge_changed(sampled(FEWEST_CHANGED))["pairs"] == FEWEST_CHANGED
    assert judge_changed(sampled(FEWEST_CHANGED - 1)) == {}


def test_bounds_without_data_are_error() -> None:
    asked = bounded(maximum={"good_pairs": 0.02})
    with pytest.raises(ConfigurationError, match="there are no mismatched pairs with the scores"):
        settle(asked, None)
    with pytest.raises(ConfigurationError, match="none of the corpus' own pairs has contradiction"):
        settle(asked, sampled(500).drop_columns(["right_contradiction"]))
    for number, maximum, found in ((1.0, None, "1.001 is outside the scale"), (0.8, 0.5, "0.801 is above")):
        asked = bounded(**SHARE, maximum=maximum)
        with pytest.raises(ConfigurationError, match=f"paraphrase_score: .*: minimum {found}.* Set a number"):
            settle(asked, all_scored(number))
