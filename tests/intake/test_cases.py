"""Small inputs as people have them, next to the real data: what must come of each."""

import os
from pathlib import Path
from typing import Any

import pytest

from paraforge.base.errors import InputError
from paraforge.intake.bitext.parameters import IngestParameters
from paraforge.intake.bitext.sources import SourceFile, read_file, resolve
from paraforge.interface.project.bitext import look_at, look_at_table
from tests.intake.bitext.helpers import run

CASES = Path(os.environ.get("PARAFORGE_DATA", "/nowhere")).parent / "cases"

pytestmark = pytest.mark.skipif(not CASES.is_dir(), reason="the cases are not here")

MOSES = {"name": "x", "format": "moses"}


def moses(source: str, reference: str) -> dict[str, Any]:
    return MOSES | {"paths": {"source_text": str(CASES / source), "reference": str(CASES / reference)}}


@pytest.mark.parametrize(
    ("source", "reference", "kept", "rejected"),
    [
        ("chinese_length_ratio/a.zh", "chinese_length_ratio/a.en", 20, {}),
        ("gzip_padded/a.cs.gz", "gzip_padded/a.en.gz", 60, {}),
        ("mojibake/question.cs", "mojibake/plain.en", 60, {}),
    ],
)
def test_what_is_kept(
    source: str, reference: str, kept: int, rejected: dict[str, int], tmp_path: Path
) -> None:
    report, _ = run(tmp_path, moses(source, reference))
    assert (report.kept, report.rejected) == (kept, rejected)


def test_damaged_letters_are_rejected_with_examples(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    good = moses("mojibake/question.cs", "mojibake/plain.en")
    bad = [moses(f"mojibake/{name}", "mojibake/plain.en") for name in ("cp1252.cs", "fffd.cs")]
    sources = [one | {"name": f"s{n}"} for n, one in enumerate([good, *bad])]
    report, _ = run(tmp_path, *sources)
    assert report.rejected == {"damaged_characters": 120}
    assert "100% of the rows are rejected as damaged_characters" in caplog.text
    assert "have question marks inside words" in caplog.text


def test_entities_are_decoded(tmp_path: Path) -> None:
    report, rows = run(tmp_path, moses("entities/moses.cs", "entities/moses.en"))
    assert report.changes["entities"] > 0
    assert not any("&apos;" in row["reference"] or "&quot;" in row["reference"] for row in rows)


def test_soft_hyphens_make_no_other_pair(tmp_path: Path) -> None:
    columns = {"reference": 0, "translation": 1}
    source = {
        "name": "x",
        "format": "tsv",
        "path": str(CASES / "soft_hyphen_leak/pairs.tsv"),
        "columns": columns,
    }
    report, rows = run(tmp_path, source, kind="paraphrases")
    assert report.rows == 800 and all(row["rejected"] for row in rows[500:])
    assert not any("\u00ad" in row["reference"] + row["translation"] for row in rows)


def test_tmx(tmp_path: Path) -> None:
    named = {"name": "x", "format": "tmx", "columns": {"source_text": "cs", "reference": "en"}}
    words = named | {"path": str(CASES / "tmx_words_joined/my.tmx")}
    _, rows = run(tmp_path / "words", words)
    assert [row["reference"] for row in rows[-2:]] == [
        "Save the file Close the window.",
        "Cloud insights Shows the page.",
    ]
    for path in sorted((CASES / "tmx_one_bad_character").glob("*.tmx")):
        source = named | {"path": str(path)}
        report, _ = run(tmp_path / path.stem, source, cleaning={"malformed": "reject", "duplicates": False})
        assert (report.kept, report.rejected) == (60, {"malformed": 1})
        with pytest.raises(InputError, match=r":33: .*malformed to 'reject'"):
            run(tmp_path / "strict", source)


def test_tables() -> None:
    pytest.importorskip("py3langid")
    for name in ("train.json", "array.json"):
        found = look_at_table(CASES / "json_lines_named_json" / name)
        assert (found.lines, found.languages) == (60, {"source_text": "cs", "reference": "en"})
    found = look_at_table(CASES / "language_named_by_header/en-twi.tsv")
    named = {"source_text": "twi", "reference": "en"}
    assert (found.lines, found.columns, found.languages) == (60, named, named)


def test_what_is_named_in_an_error() -> None:
    with pytest.raises(InputError, match=r"Line 21 of .*a\.cs is blank"):
        look_at(CASES / "unequal_by_a_blank_line/a.cs", CASES / "unequal_by_a_blank_line/a.en")
    for path in (CASES / "lfs_pointer").glob("a.*"):
        source = {"name": "x", "path": str(path), "columns": {"source_text": "cs", "reference": "en"}}
        source |= {"format": "parquet"} if path.suffix == ".parquet" else {"format": "jsonl"}
        (files,) = resolve(IngestParameters.model_validate({"sources": [source]}), Path())
        file: SourceFile = files.files[0]
        with pytest.raises(InputError, match="a Git LFS pointer"):
            list(read_file(file, IngestParameters.model_validate({"sources": [source]}).cleaning))
