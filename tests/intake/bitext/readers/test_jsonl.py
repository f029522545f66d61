"""JSON lines."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paraforge.base.errors import InputError
from paraforge.base.text.lines import Reading
from paraforge.intake.bitext.readers.jsonl import JsonlSource
from paraforge.intake.bitext.source import CODES
from tests.intake.bitext.helpers import COMPRESSORS, blocks_of, rows_of, write

COLUMNS = {"source_text": "cs", "reference": "en"}


def read(path: Path, columns: dict[str, str] = COLUMNS, *, strict: bool = True) -> list[tuple[object, ...]]:
    return rows_of(blocks_of(JsonlSource, path, columns, Reading(strict=strict)))


text = st.text(st.characters(blacklist_categories=["Cs"]), max_size=15)


@given(
    rows=st.lists(st.tuples(text, text), min_size=1),
    suffix=st.sampled_from(sorted(COMPRESSORS)),
    ascii_only=st.booleans(),
)
def test_round_trip(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]], suffix: str, ascii_only: bool
) -> None:
    lines = [json.dumps({"en": en, "cs": cs}, ensure_ascii=ascii_only) for cs, en in rows]
    path = write(tmp_path_factory.mktemp("jsonl") / f"a.jsonl{suffix}", "\n".join(lines))
    assert read(path) == [(n, cs, en, None) for n, (cs, en) in enumerate(rows, start=1)]


def test_nested_fields(tmp_path: Path) -> None:
    line = '{"id": 1, "translation": {"cs": "Ahoj", "en": "Hello"}, "translation.en": "Hi"}'
    path = write(tmp_path / "a.jsonl", line)
    assert read(path, {"source_text": "translation.cs", "reference": "translation.en"}) == [
        (1, "Ahoj", "Hi", None)
    ]


@pytest.mark.parametrize("text", ['[{"cs": "a", "en": "b"}]', '\n[\n {\n  "cs": "a", "en": "b"\n }\n]\n'])
def test_json_array_error_has_remedy(tmp_path: Path, text: str) -> None:
    for strict in (True, False):
        with pytest.raises(InputError, match=r"a\.json: a JSON array.*jq -c"):
            read(write(tmp_path / "a.json", text), strict=strict)


def test_null_and_blank_line_give_blank_text(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"cs": null, "en": "b"}\n\n')
    assert read(path) == [(1, "", "b", None), (2, "", "", None)]
    nested = write(tmp_path / "b.jsonl", '{"translation": null, "en": "b"}')
    assert read(nested, {"source_text": "translation.cs", "reference": "en"}) == [(1, "", "b", None)]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"cs": "a", "en": "b"', "Expecting"),
        ('["a", "b"]', "not an object"),
        ('{"cs": "a"}', "no field 'en'"),
        ('{"cs": "a", "en": 3}', "reference is int, not a string"),
        ("[" * 100_000, "nested too deeply"),
        ('{"cs": "a", "en": ' + "9" * 5000 + "}", ""),
        ('{"cs": "\\ud800", "en": "b"}', "surrogates not allowed"),
        ('{"cs": "a", "en": "b"} x', "Extra data"),
        ('{"cs": "a", "en": "b", "cs": "a"}', "the field 'cs' occurs twice"),
        ('{"cs": "a", "en": "b", "other": {"x": 1, "x": 2}}', "the field 'x' occurs twice"),
    ],
)
def test_malformed(tmp_path: Path, line: str, problem: str) -> None:
    path = write(tmp_path / "a.jsonl", f'{{"cs": "a", "en": "b"}}\n{line}\n{{"cs": "c", "en": "d"}}\n')
    with pytest.raises(InputError, match=rf"a\.jsonl:2: .*{problem}"):
        read(path)
    assert [row[-1] for row in read(path, strict=False)] == [None, "malformed", None]


def test_scores(tmp_path: Path) -> None:
    lines = '{"r": "a", "t": "A", "s": 0.5}\n{"r": "b", "t": "B", "s": null}\n{"r": "c", "t": "C", "s": 2}\n'
    path = write(tmp_path / "a.jsonl", lines)
    columns = {"reference": "r", "translation": "t", "score": "s"}
    (block,) = blocks_of(JsonlSource, path, columns, Reading())
    assert block.scores is not None
    assert block.scores.to_pylist() == [0.5, None, 2.0]


@pytest.mark.parametrize("score", ['"0.5"', "true", "NaN", "Infinity", "1e999", "1e300", "9" * 400, "[1]"])
def test_non_numeric_score_is_error(tmp_path: Path, score: str) -> None:
    path = write(tmp_path / "a.jsonl", f'{{"r": "a", "t": "A", "s": {score}}}\n')
    columns = {"reference": "r", "translation": "t", "score": "s"}
    with pytest.raises(InputError, match=r"a\.jsonl:1: .*the score is"):
        list(blocks_of(JsonlSource, path, columns, Reading()))
    (block,) = blocks_of(JsonlSource, path, columns, Reading(strict=False))
    assert block.codes.tolist() == [CODES["malformed"]]
