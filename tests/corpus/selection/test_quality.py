"""The choice select=quality on pairs that show each of its filters."""

from pathlib import Path

import pyarrow as pa
import pytest
import yaml

from paraforge.base.shards.resources import Resources
from paraforge.base.shards.store import ShardDirectory, ShardWriter
from paraforge.corpus.columns import schema_of
from paraforge.corpus.scoring.general import DIRECTORY
from paraforge.corpus.scoring.parameters import ScoreParameters
from paraforge.corpus.scoring.score import score
from paraforge.corpus.selection.parameters import SelectParameters
from paraforge.corpus.selection.reasons import explain_reasons
from paraforge.corpus.selection.select import select
from paraforge.corpus.selection.thresholds import settle

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
FAILED = {
    "repetition": "The woman saw the dog dog dog dog in the park.",
    "copied_words": "The žena viděla dog in the park.",
    "unknown_words": "The corimentmast ablethion saw dog.",
    "source_similarity": "This woman saw that dog there in this park.",
    "paraphrase_score": "It will rain all day tomorrow in Paris.",
    "contradiction": "The woman never saw the dog in the park.",
    "trigram_overlap": "The woman saw the dog in the park.",
    None: "This woman saw that dog there in this park.",
}


@pytest.fixture(scope="module")
def selected(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, object]]:
    place = tmp_path_factory.mktemp("quality")
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
    writer = ShardWriter(place / "translated", SCHEMA)
    writer.write(pa.table(columns, schema=SCHEMA))
    writer.close({"step": "translate"})
    resources = Resources(work=place / "work", workers=1)
    score(
        ScoreParameters(identify_language=False), place / "translated", DIRECTORY, place / "scored", resources
    )
    select(PARAMETERS, [place / "translated", place / "scored"], place / "selected", resources)
    return ShardDirectory(place / "selected").read(0).slice(len(rows) - len(FAILED)).to_pylist()


def test_each_failure_has_its_reason(selected: list[dict[str, object]]) -> None:
    assert [row["rejected"] for row in selected] == list(FAILED)


def test_without_a_foreign_side_no_similarity_is_asked_for() -> None:
    scores = pa.array([k / 1000 for k in range(1000)], pa.float32())
    names = ("paraphrase_score", "contradiction", "source_similarity")
    columns = {f"{side}{name}": scores for name in names for side in ("", "right_")}
    asked = {one.reason for one in PARAMETERS.filters}
    for null, expected in ((False, asked), (True, asked - {"source_similarity"})):
        if null:
            nothing = pa.nulls(1000, pa.float32())
            columns |= {"source_similarity": nothing, "right_source_similarity": nothing}
        settled = settle(PARAMETERS, pa.table({**columns, "weight": [1.0] * 1000}))
        assert {one.reason for one in settled.filters} == expected


def test_the_reasons_in_words() -> None:
    words = explain_reasons({"select": {"parameters": PARAMETERS}})
    assert words["unknown_words"] == "share of unknown words above 0.25"
    assert words["copied_words"] == "share of copied foreign words above 0.15"
    assert words["repetition"] == "share of repeated letters above 0.1"
    assert words["length_surprise"] == "deviations from the usual length below -7 or above 7"
    assert words["contradiction"] == "contradiction above that of all but 2 % of the pairs"
    assert words["character_score"] == "spelling score below -2"
