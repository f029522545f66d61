"""What is no column of sentences is said, by every command that reads pairs; ordinary text is not."""

import logging
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paraforge.base.errors import IncompleteError, InputError
from paraforge.base.shards.resources import Resources
from paraforge.intake.bitext.examination import problems
from paraforge.intake.bitext.ingest import ingest
from paraforge.intake.bitext.languages import is_header, oddities
from paraforge.intake.bitext.parameters import IngestParameters
from paraforge.intake.sample_bitext import write_sample
from tests.here import run_command
from tests.intake.bitext.grammar import SENTENCES as LANGUAGES

PLACES = {"reference": "column 0", "translation": "column 1"}
SENTENCES = [f"The dog number {place} runs in the park." for place in range(40)]
OTHERS = [f"A dog, the {place}th, is running outside." for place in range(40)]
# What is wrong with two columns, and what is said of them.
ODD: dict[str, tuple[list[str], list[str], str]] = {
    "constant": (["general"] * 40, OTHERS, "column 0 is 'general' in every row"),
    "empty": (SENTENCES, [""] * 40, "column 1 is empty in every row"),
    "numbers": ([f"{place / 7:.3f}" for place in range(40)], OTHERS, "column 0 has a number in 100%"),
    "labels": (SENTENCES, ["news", "web"] * 20, "column 1 has 2 texts in 40 rows, 'news' for one"),
    "identical": (SENTENCES, SENTENCES, "column 0 and column 1 are the same in 100%"),
    "keys": ([f"doc-{place:05}.xml" for place in range(40)], OTHERS, "column 0 has a key or an address in"),
    "addresses": (SENTENCES, [f"jan.{place}@example.org" for place in range(40)], "column 1 has a key or an"),
    "half empty": ([*SENTENCES[:20], *[""] * 20], OTHERS, "column 0 is empty in 50% of the rows"),
    "mostly one": ([*SENTENCES[:15], *["Read more"] * 25], OTHERS, "column 0 is 'Read more' in 62%"),
    "header": (["sentence1", *SENTENCES], ["sentence2", *OTHERS], "looks like a header"),
}


@pytest.mark.parametrize("name", ODD)
def test_what_is_odd_is_named(name: str) -> None:
    first, second, said = ODD[name]
    (found,) = oddities({"reference": first, "translation": second}, PLACES)
    assert said in str(found) and found.is_header == (name == "header")


def test_real_text_and_few_rows_are_not_odd(tmp_path: Path) -> None:
    for path in write_sample(tmp_path, 2000):
        rows = [line.split("\t")[:2] for line in path.read_text(encoding="utf-8").splitlines()[:200]]
        source, reference = map(list, zip(*rows, strict=True))
        assert oddities({"source_text": source, "reference": reference}, PLACES) == [], path.name
    assert oddities({"reference": ["x"] * 19, "translation": ["x"] * 19}, PLACES) == []


@given(st.lists(st.tuples(st.text(min_size=25), st.text(min_size=25)), max_size=60, unique_by=(min, max)))
def test_distinct_texts_longer_than_any_heading_are_not_odd(rows: list[tuple[str, str]]) -> None:
    rows = [(f"a{first}", f"b{second}") for first, second in rows]
    sides = {"reference": [row[0] for row in rows], "translation": [row[1] for row in rows]}
    assert not rows or oddities(sides, PLACES) == []


def test_a_header_has_different_known_names() -> None:
    for known in (
        ["source", "target"],
        ["text_en", "Text cs"],
        ["en", "cs"],
        ["ces", "eng"],
        ["Czech", "English"],
    ):
        assert is_header(known)
    for text in (
        ["text", "text"],
        ["Oh", "Ah"],
        ["A dog.", "text"],
        ["text"],
        ["pes", "dog"],
        ["Ces", "Eng"],
    ):
        assert not is_header(text)


def test_paraphrases_in_two_languages_are_odd() -> None:
    pairs = {"reference": LANGUAGES["cs"], "translation": LANGUAGES["en"]}
    assert list(map(str, oddities(pairs, PLACES))) == ["column 0 is in 'cs' and column 1 in 'en'"]
    assert (
        oddities(
            {"source_text": LANGUAGES["cs"], "reference": LANGUAGES["en"]}, PLACES | {"source_text": "a"}
        )
        == []
    )
    assert oddities({"reference": LANGUAGES["de"], "translation": LANGUAGES["de"][::-1]}, PLACES) == []


@pytest.mark.parametrize("name", ODD)
def test_configure_and_ingest_say_it_with_a_remedy(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first, second, said = ODD[name]
    path = tmp_path / "a.tsv"
    rows = zip(first, second, [*SENTENCES, "one"], strict=False)
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    source = {"name": "a", "format": "tsv", "path": str(path), "columns": {"reference": 0, "source_text": 1}}
    cleaning = {"identical": False, "duplicates": False, "max_length_ratio": None}
    parameters = IngestParameters.model_validate({"sources": [source], "cleaning": cleaning})
    remedy = "'header: true'" if name == "header" else "'columns'"
    for look in (
        lambda: problems(parameters),
        lambda: ingest(parameters, tmp_path / "out", Resources(work=tmp_path / "work", workers=1)),
    ):
        caplog.clear()
        with suppress(IncompleteError):  # of an empty column no row is kept
            look()
        (record,) = [one for one in caplog.records if one.levelno == logging.WARNING and said in one.message]
        assert remedy in record.message and "a.tsv" in record.message


@pytest.mark.parametrize("name", ODD)
def test_score_says_it_and_names_the_columns_of_text(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first, second, said = ODD[name]
    path = tmp_path / "a.tsv"
    third = [f"Outside, {place} dogs are about to run." for place in range(41)]
    path.write_text("".join("\t".join(row) + "\n" for row in zip(first, second, third, strict=False)))
    run_command("score", path, tmp_path / "scored.parquet", "--workers", "1")
    (record,) = [one for one in caplog.records if said in one.message]
    remedies: dict[str, Any] = {
        "constant": "Try --reference 1 --translation 2",
        **dict.fromkeys(("empty", "addresses"), "Try --reference 0 --translation 2"),
        "keys": "Try --reference 1 --translation 2",
        **dict.fromkeys(("half empty", "mostly one"), "--reference and --translation"),
        "numbers": "Try --reference 1 --translation 2",
        "labels": "Try --reference 0 --translation 2",
        "identical": "--reference and --translation",
        "header": "Give --header",
    }
    assert remedies[name] in record.message


def test_score_says_that_texts_are_not_english(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "a.tsv"
    for first, second, said in (
        ("cs", "cs", "the texts are in 'cs', and the built-in scorer is for English. Give --vectors"),
        ("cs", "en", "column 0 is in 'cs' and column 1 in 'en'"),
        ("en", "en", None),
    ):
        rows = zip(LANGUAGES[first], LANGUAGES[second][::-1], strict=True)
        path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
        caplog.clear()
        run_command("score", path, tmp_path / "scored.parquet", "--workers", "1", "--force")
        found = [one.message for one in caplog.records if one.levelno == logging.WARNING]
        assert [said in one for one in found] == [True] if said else found == []


def test_score_keeps_the_readers_remedies(tmp_path: Path) -> None:
    for content, remedy in (
        ("a\tb\n".encode("utf-16"), "Give UTF-8 text"),
        (b"a,b\n" * 30, "another separator"),
        ("žluť\tb\n".encode("iso8859-2"), "iconv"),
        (b"a\tb\na\n", "2 columns, the first|Correct the file"),
    ):
        (tmp_path / "a.tsv").write_bytes(content)
        with pytest.raises(InputError, match=remedy):
            run_command("score", tmp_path / "a.tsv", tmp_path / "scored.parquet")
