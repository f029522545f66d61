"""Cleaning: repairs, rejection reasons and their order, and section ``ingest``."""

import itertools
import sys
import unicodedata
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import ValidationError

from paraforge.base.errors import InputError
from paraforge.base.text.ragged import text_bytes
from paraforge.intake.bitext.cleaning import Findings, clean, compose
from paraforge.intake.bitext.parameters import Cleaning, IngestParameters
from paraforge.intake.bitext.source import CODES, NAMES, Block
from tests.intake.bitext.helpers import tsv

FILES = {name: Path(f"{name}.txt") for name in ("source_text", "reference", "translation")}


def block_of(
    pairs: list[tuple[str, str]],
    codes: list[int] | None = None,
    names: tuple[str, str] = ("source_text", "reference"),
) -> Block:
    texts = {name: pa.array([pair[side] for pair in pairs], pa.string()) for side, name in enumerate(names)}
    return Block(np.arange(1, len(pairs) + 1), texts, np.array(codes or [0] * len(pairs), dtype=np.uint8))


@pytest.mark.parametrize("texts", [["a"], ["a", None]])
def test_block_has_one_text_per_line(texts: list[str | None]) -> None:
    with pytest.raises(ValueError, match="reference: not one value for each of 2 lines"):
        Block(np.arange(2), {"reference": pa.array(texts)}, np.zeros(2, np.uint8))


def cleaned(
    *pairs: tuple[str, str], **options: Any
) -> tuple[list[tuple[str, str]], list[str | None], Counter[str]]:
    findings = Findings()
    result = clean(block_of(list(pairs)), Cleaning(**options), FILES, findings)
    texts = list(
        zip(result.texts["source_text"].to_pylist(), result.texts["reference"].to_pylist(), strict=True)
    )
    reasons = [NAMES[code - 1] if code else None for code in result.codes.tolist()]
    return texts, reasons, +findings.changes


def reason(cs: str, reference: str, **options: Any) -> str | None:
    return cleaned((cs, reference), **options)[1][0]


@pytest.mark.parametrize(
    ("pairs", "texts", "counted"),
    [
        # Unicode's form C
        ([(unicodedata.normalize("NFD", "Příliš žluťoučký kůň"), "horse"), ("kůň", "horse")],
         [("Příliš žluťoučký kůň", "horse"), ("kůň", "horse")], {"normalized": 1}),
        # white space is trimmed at the ends alone
        ([("\u2003 a  b\u00a0\u0085", " c\u2028d\u2028"), ("x", "y")], [("a  b", "c\u2028d"), ("x", "y")],
         {"trimmed": 2}),
        # U+0085 and U+2028 inside a text are text
        ([("a\u0085b", "c\u2028d\u2029e")], [("a\u0085b", "c\u2028d\u2029e")], {}),
        # line breaks and tabs inside a text become one space
        ([("a\r\n\tb", "c\nd\n"), ("e", "f\rg")], [("a b", "c d"), ("e", "f g")],
         {"line_breaks": 3, "trimmed": 1}),
        ([("a &amp; &lt;b", "c\u00add"), ("x", "y &gt; z")], [("a & <b", "cd"), ("x", "y > z")],
         {"entities": 2, "invisible_characters": 1}),
    ],
)  # fmt: skip
def test_repaired_rows_are_counted_and_kept(
    pairs: list[tuple[str, str]], texts: list[tuple[str, str]], counted: dict[str, int]
) -> None:
    assert cleaned(*pairs) == (texts, [None] * len(pairs), counted)


@given(st.lists(st.text(st.characters(max_codepoint=0x3FF, blacklist_categories=["Cs"])), max_size=5))
def test_normalization_matches_standard_library(texts: list[str]) -> None:
    pairs = [(text, "reference") for text in texts]
    result = clean(block_of(pairs), Cleaning(malformed="reject"), FILES, Findings())
    for text, got in zip(texts, result.texts["source_text"].to_pylist(), strict=True):
        assert unicodedata.is_normalized("NFC", got)
        text = text.replace("\u034f", "")  # invisible, and yet "printable"
        if text.isprintable() and text.strip() == text and "&" not in text:
            assert got == unicodedata.normalize("NFC", text)


def test_characters_below_u0300_are_normalized_already() -> None:
    # The short cut skips texts without bytes from 0xCC on: this is why it may.
    below = "".join(chr(code) for code in range(0x300))
    assert unicodedata.normalize("NFC", below + below[::-1]) == below + below[::-1]
    assert max(below.encode()) < 0xCC <= min("\u0300".encode()[0], chr(sys.maxunicode).encode()[0])


@pytest.mark.parametrize("character", [*"\x01\x1b\x7f\u0080\u009f", *"\u00a0«é\ue000"])
def test_control_characters(character: str) -> None:
    is_control = character in "\x01\x1b\x7f\u0080\u009f"
    texts, reasons, _ = cleaned((f"a{character}b", "c"))
    assert reasons == ["control_characters" if is_control else None]
    assert texts == [("ab" if is_control else f"a{character}b", "c")]


def test_null_byte_is_error_or_counted() -> None:
    with pytest.raises(InputError, match=r"reference\.txt:2: a NUL character in reference"):
        cleaned(("a", "b"), ("c", "d\0e"))
    texts, reasons, _ = cleaned(("a", "b"), ("c", "d\0e"), malformed="reject")
    assert reasons == [None, "null_byte"]
    assert "\0" not in texts[1][1]


def test_damaged_letters_are_rejected_and_losses_noticed() -> None:
    assert reason("Mal\ufffd chlapec", "A small boy") == "damaged_characters"
    findings = Findings()
    rows = [("<i>", "\ufffd"), ("Mal? p?ed", "<b>Small"), ("What?", "1 < 2"), ('"A ""b"""', "c")]
    clean(block_of([*rows, ("<b>c", "<b>d")]), Cleaning(), FILES, findings)
    assert findings.noticed == {"markup": 2, "question_marks": 1, "doubled_quotes": 1}  # of kept rows
    findings.update(Findings(examples={"markup": "<p>", "line_breaks": "later"}))
    assert findings.examples == {
        "markup": "<b>c",
        "question_marks": "Mal? p?ed",
        "doubled_quotes": '"A ""b"""',
        "line_breaks": "later",
    }


@pytest.mark.parametrize("blank", ["", " ", "\t", "\u00a0\u3000", "\u200b", "\ufeff \u2060", "\u2028"])
def test_blank(blank: str) -> None:
    assert reason(blank, "a") == "blank_source"
    assert reason("a", blank) == "blank_reference"
    assert reason(blank, blank) == "blank_source"


def test_blank_translation() -> None:
    block = block_of([("a", " ")], names=("reference", "translation"))
    assert clean(block, Cleaning(), FILES, Findings()).codes.tolist() == [CODES["blank_translation"]]


@given(st.lists(st.text(alphabet=" aéž\u00a0", max_size=12), max_size=6), st.integers(1, 4))
@example(["a b", "a b c"], 2)
def test_words_are_separated_by_spaces(texts: list[str], limit: int) -> None:
    _, reasons, _ = cleaned(*[("x", text) for text in texts], max_words=limit, max_length_ratio=None)
    for text, found in zip(texts, reasons, strict=True):
        words = [word for word in text.strip().split(" ") if word]
        assert (found == "too_long") == (bool(text.strip()) and len(words) > limit)


@pytest.mark.parametrize(
    ("cs", "reference", "found"),
    [
        ("Praha ", " Praha", "identical"),
        ("Praha", "praha", None),
        ("á" * 40, "b" * 40, None),
        ("á" * 41, "b" * 40, "too_long"),
        ("á" * 40, "b" * 41, "too_long"),
        ("a" * 10, "b" * 40, None),
        ("a" * 9, "b" * 37, "length_ratio"),
        ("b" * 37, "a" * 9, "length_ratio"),
        ("a", "b" * 20, None),  # too short for a ratio to mean much
        ("a", "b" * 21, "length_ratio"),
    ],
)
def test_equal_overlong_and_unbalanced_texts(cs: str, reference: str, found: str | None) -> None:
    assert reason(cs, reference, max_characters=40) == found


def test_no_ratio_allows_any_lengths() -> None:
    assert reason("a", "b" * 500, max_length_ratio=None) is None


def test_first_reason_wins_and_input_is_unchanged() -> None:
    pairs, codes = [("", "a\x01"), (" ", "b")], [0, CODES["contaminated"]]
    block = block_of(pairs, codes)
    result = clean(block, Cleaning(), FILES, Findings())
    assert result.codes.tolist() == [CODES["control_characters"], CODES["contaminated"]]
    assert block.codes.tolist() == codes and block.texts == block_of(pairs).texts


@given(st.lists(st.tuples(st.text(), st.text()), max_size=8), st.integers(0, 8), st.integers(0, 8))
def test_row_is_cleaned_alike_alone_and_in_slice(
    pairs: list[tuple[str, str]], start: int, length: int
) -> None:
    options = Cleaning(malformed="reject", max_characters=20, max_words=3)
    whole = block_of(pairs)
    part = Block(
        whole.lines[start : start + length],
        {name: array.slice(start, length) for name, array in whole.texts.items()},
        whole.codes[start : start + length],
    )
    expected = clean(whole, options, FILES, Findings())
    got = clean(part, options, FILES, Findings())
    assert got.codes.tolist() == expected.codes[start : start + length].tolist()
    for name, array in got.texts.items():
        assert array.to_pylist() == expected.texts[name].to_pylist()[start : start + length]
        assert array.null_count == 0


@given(st.lists(st.text(), max_size=6), st.integers(0, 6))
def test_text_bytes(texts: list[str], start: int) -> None:
    data, offsets = text_bytes(pa.array(texts, pa.string()).slice(start))
    assert [data[a:b].tobytes().decode() for a, b in itertools.pairwise(offsets)] == texts[start:]


TSV = tsv("a.tsv")


def problems(*sources: dict[str, Any], **options: Any) -> str:
    with pytest.raises(ValidationError) as raised:
        IngestParameters.model_validate({"sources": list(sources), **options})
    return str(raised.value)


@pytest.mark.parametrize(
    "source",
    [
        TSV,
        TSV | {"header": True, "columns": {"source_text": "cs_BKR", "reference": 2}},
        TSV | {"drop_rows": "rows.tsv"},
        {"name": "a", "format": "moses", "paths": {"source_text": "a.cs.gz", "reference": "a.en.gz"}},
        TSV | {"format": "tmx", "path": ["a.tmx"], "columns": {"source_text": "cs", "reference": "en"}},
        TSV | {"format": "jsonl", "columns": {"source_text": "t.cs", "reference": "t.en"}},
        TSV | {"format": "parquet", "columns": {"source_text": "cs", "reference": "en"}},
        {"name": "a", "format": "sample"},
    ],
)
def test_allowed(source: dict[str, Any]) -> None:
    IngestParameters.model_validate({"sources": [source]})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"columns": {"source_text": 1}}, "has the columns source_text; kind bitext has reference, source"),
        ({"columns": {"source_text": 1, "reference": "en"}}, "'en' is a name: set 'header: true'"),
        ({"columns": {"source_text": -1, "reference": 0}}, "columns are counted from 0"),
        ({"format": "xls"}, "'moses', 'parquet', 'tmx', 'tsv'"),
        ({"format": "csv", "separator": "|"}, "separator"),
        ({"format": "jsonl"}, "this format has named columns"),
        ({"format": "tmx", "columns": {"source_text": "EN", "reference": "en"}}, "both sides are in 'en'"),
        ({"colums": {}}, "Extra inputs are not permitted"),
        ({"name": "a b"}, "String should match pattern"),
        ({"path": []}, "at least 1 item"),
        ({"license": " "}, "String should match pattern"),
    ],
)
def test_not_allowed(change: dict[str, Any], said: str) -> None:
    assert said in problems(TSV | change)


def test_sources_need_one_kind_and_unique_names() -> None:
    assert "at least 1 item" in problems()
    assert "source name 'a' is used twice" in problems(TSV, TSV)
    source = TSV | {"columns": {"reference": 0, "translation": 1, "score": 2}}
    IngestParameters.model_validate({"kind": "paraphrases", "sources": [source]})
    said = "kind paraphrases has reference, translation and perhaps score"
    assert said in problems(TSV, kind="paraphrases")


@pytest.mark.parametrize(
    ("character", "others"),
    [
        *((one, 1) for one in "aéж\u3001"),
        *((one, 2) for one in "\u3041あヲ\u30ff\uac00한\ud7a3"),  # first and last ones of each script
        *((one, 3) for one in "\u3400漢\u9fff𠀀\U000323af"),
    ],
)
def test_characters_are_weighted_by_script(character: str, others: int) -> None:
    """A side is too long when it is more than four times as long as the other."""
    longest = 4 * others * 10
    for length, found in ((longest, None), (longest + 1, "length_ratio")):
        assert reason("b" * length, character * 10) == found


def test_composed_texts_are_not_counted_as_changed() -> None:
    texts = pa.array(["あ", "cafe\u0301", "caf\u00e9", "a"])
    changes: Counter[str] = Counter()
    assert compose(texts, changes).to_pylist() == ["あ", "caf\u00e9", "caf\u00e9", "a"]
    assert changes == {"normalized": 1}
