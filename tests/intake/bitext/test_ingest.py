"""Ingest: counts that add up, duplicates across sources, every format, and reuse of finished parts."""

import json
from collections import Counter
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from paraforge.base.errors import IncompleteError, InputError
from paraforge.base.files import sha256_file
from paraforge.base.shards.store import ShardDirectory
from paraforge.intake.bitext import ingest
from paraforge.intake.bitext import sources as files_of_sources
from paraforge.intake.bitext.cleaning import Findings
from paraforge.intake.bitext.report import RowCounts, add_up
from paraforge.intake.bitext.sources import SourceFile, read_file
from tests.intake.bitext.helpers import Row, run, tsv, write
from tests.project import digests


def row_of(line: int, cs: str, reference: str, rejected: str | None, first_row: int | None) -> Row:
    texts = {"source": "a", "line": line, "source_text": cs, "reference": reference}
    return texts | {"rejected": rejected, "first_row": first_row}


def test_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reported: list[int] = []
    monkeypatch.setattr(files_of_sources, "report_rows", reported.append)
    path = write(tmp_path / "a.tsv.gz", "Hello\tAhoj\nHi\tAhoj\n\tNic\nHello\tAhoj\nBye\tSbohem \nYo\tahoj\n")
    report, rows = run(tmp_path, tsv(path))
    assert rows == [
        row_of(1, "Ahoj", "Hello", None, 0),
        row_of(2, "Ahoj", "Hi", None, 0),
        row_of(3, "Nic", "", "blank_reference", None),
        row_of(4, "Ahoj", "Hello", "duplicate", None),
        row_of(5, "Sbohem", "Bye", None, 4),
        row_of(6, "ahoj", "Yo", None, 5),  # translated by itself
    ]
    assert reported == [6]
    assert report.rejected == {"blank_reference": 1, "duplicate": 1}
    assert report.changes == {"trimmed": 1}
    assert report.metrics()["sources"]["a"]["rejected"] == report.rejected
    assert "files" not in report.metrics()["sources"]["a"]
    index = json.loads((tmp_path / "ingested" / "_shards.json").read_text())
    assert index["counts"] == {"rows": 6, "kept": 4, "rejected": report.rejected}
    assert index["sources"]["a"]["files"][0]["rows"] == 6


word = st.sampled_from(["", "a", "b", "c", "aa", "á", " a", "x" * 30])


@given(
    files=st.lists(st.lists(st.tuples(word, word), min_size=1, max_size=40), min_size=1, max_size=3),
    dropped=st.sets(st.integers(0, 39), max_size=5),
    duplicates=st.booleans(),
    rows_per_shard=st.sampled_from([100, 101, 1000]),
)
@example(files=[[("a", "b"), ("a", "b"), ("a", "c")]], dropped={0}, duplicates=True, rows_per_shard=100)
def test_against_a_slow_oracle(
    tmp_path_factory: pytest.TempPathFactory,
    files: list[list[tuple[str, str]]],
    dropped: set[int],
    duplicates: bool,
    rows_per_shard: int,
) -> None:
    base = tmp_path_factory.mktemp("ingest")
    sources = []
    for number, pairs in enumerate(files):
        path = write(base / f"{number}.tsv", "".join(f"{en}\t{cs}\n" for cs, en in pairs))
        here = sorted(row for row in dropped if row < len(pairs))
        options = {"drop_rows": str(write(base / f"{number}.rows", "row\n" + "\n".join(map(str, here))))}
        sources.append(tsv(path, f"s{number}", **options))
    reasons: list[str | None] = []
    first_rows: list[int | None] = []
    seen: set[tuple[str, str]] = set()
    first: dict[str, int] = {}
    for pairs in files:
        for number, (cs, en) in enumerate((cs.strip(), en.strip()) for cs, en in pairs):
            reason = None
            if number in dropped:
                reason = "contaminated"
            elif not cs:
                reason = "blank_source"
            elif not en:
                reason = "blank_reference"
            elif cs == en:
                reason = "identical"
            elif max(len(cs), len(en)) > 20 and max(len(cs), len(en)) > 4 * min(len(cs), len(en)):
                reason = "length_ratio"
            elif duplicates and (cs, en) in seen:
                reason = "duplicate"
            if reason is None:
                seen.add((cs, en))
                first_rows.append(first.setdefault(cs, len(reasons)))
            else:
                first_rows.append(None)
            reasons.append(reason)
    options = {"cleaning": {"duplicates": duplicates}, "rows_per_shard": rows_per_shard}
    if all(reasons):
        with pytest.raises(IncompleteError, match=r"all .* rows were rejected"):
            run(base, *sources, **options)
        return
    _, rows = run(base, *sources, **options)
    assert [row["rejected"] for row in rows] == reasons
    assert [row["first_row"] for row in rows] == first_rows


def test_shards_separate_sources_and_lines_continue_across_files(tmp_path: Path) -> None:
    for name, count in (("a1", 130), ("a2", 1), ("a3", 95), ("b", 20)):
        text = "".join(f"{name} {n}\tčeské {name} {n}\n" for n in range(count))
        write(tmp_path / f"{name}.tsv", text)
    _, rows = run(tmp_path, tsv(tmp_path / "a?.tsv", "a"), tsv(tmp_path / "b.tsv", "b"))
    assert ShardDirectory(tmp_path / "ingested").rows == [100, 100, 26, 20]
    assert [(row["source"], row["line"]) for row in rows] == [("a", n) for n in range(1, 227)] + [
        ("b", n) for n in range(1, 21)
    ]
    assert rows[130]["reference"] == "a2 0"
    assert [row["first_row"] for row in rows] == list(range(246))


def test_header_lines_are_counted(tmp_path: Path) -> None:
    for name in "xy":
        write(tmp_path / f"{name}.tsv", f"en\tcs\n{name}\t{name}č\n")
    columns = {"source_text": "cs", "reference": "en"}
    _, rows = run(tmp_path, tsv(tmp_path / "?.tsv", header=True, columns=columns))
    assert [row["line"] for row in rows] == [2, 4]


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (("a.cs", "a.en"), ["a.cs", "a.en"]),
        (("cs/a.txt", "en/a.txt"), ["a.txt (source_text)", "a.txt (reference)"]),
    ],
)
def test_the_index_names_every_file(names: tuple[str, str], told: list[str], tmp_path: Path) -> None:
    paths = dict(zip(("source_text", "reference"), (tmp_path / name for name in names), strict=True))
    for side, path in paths.items():
        path.parent.mkdir(exist_ok=True)
        write(path, f"{side}\n")
    run(
        tmp_path, {"name": "a", "format": "moses", "paths": {side: str(path) for side, path in paths.items()}}
    )
    index = json.loads((tmp_path / "ingested" / "_shards.json").read_text())
    digests = map(sha256_file, paths.values())
    assert index["sources"]["a"]["files"] == [{"files": dict(zip(told, digests, strict=True)), "rows": 1}]


def test_paraphrase_corpus_keeps_score_without_foreign_side(tmp_path: Path) -> None:
    lines = "so, what?\tand so?\t0.75\nso, what?\tand so?\t0.5\na\ta\t1\nyes .\tyeah .\t\nno\t \t0.1\n"
    columns = {"reference": 0, "translation": 1, "score": 2}
    _, rows = run(tmp_path, tsv(write(tmp_path / "p.tsv", lines), "p", columns=columns), kind="paraphrases")
    assert rows[0] == {
        "source": "p", "line": 1, "source_text": None, "reference": "so, what?", "translation": "and so?",
        "translation_score": None, "given_score": 0.75, "rejected": None, "first_row": 0,
    }  # fmt: skip
    assert [row["rejected"] for row in rows] == [None, "duplicate", "identical", None, "blank_translation"]
    assert [row["first_row"] for row in rows] == [0, None, None, 3, None]
    assert rows[3]["given_score"] is None


@pytest.mark.parametrize("duplicates", [True, False])
def test_references_alone_are_translated_forward_first(tmp_path: Path, duplicates: bool) -> None:
    path = write(
        tmp_path / "a.txt", "Hello there\n\nHELLO there\nHello there\nBye &amp; so on\n" + "x" * 3000
    )
    source = {"name": "a", "format": "moses", "paths": {"reference": str(path)}}
    report, rows = run(tmp_path, source, kind="references", cleaning={"duplicates": duplicates})
    again = "duplicate" if duplicates else None
    expected = [
        ("Hello there", None, 0),
        ("", "blank_reference", None),
        ("HELLO there", again, None if duplicates else 2),
        ("Hello there", again, None if duplicates else 0),
        ("Bye & so on", None, 4),
        ("x" * 3000, "too_long", None),
    ]
    assert rows == [
        row_of(line, text, text, reason, first) for line, (text, reason, first) in enumerate(expected, 1)
    ]
    assert report.sources["a"].frequent["blank_reference"]["examples"] == [[2, ""]]
    assert "line 2: ''" in " ".join(report.sources["a"].warnings())


def test_a_line_of_a_megabyte_is_counted(tmp_path: Path) -> None:
    text = f"a\tb\n{'ž' * 500_000}\tc\n{'y' * 1_200_000}\td\n{'e' * 5000}\t{'f' * 5000}\n"
    _, rows = run(tmp_path, tsv(write(tmp_path / "a.tsv", text)), cleaning={"max_characters": 10_000})
    assert [row["rejected"] for row in rows] == [None, "too_long", "overlong_line", None]
    # Only texts of rejected rows are cut.
    assert [row["reference"] for row in rows] == ["a", "ž" * 4096, "y" * 4096, "e" * 5000]


def test_invalid_file_publishes_nothing(tmp_path: Path) -> None:
    good, bad = write(tmp_path / "a.tsv", "a\tb\n"), write(tmp_path / "b.tsv", b"a\tb\na\tb\xff\n")
    with pytest.raises(InputError, match=r"b\.tsv:2: not UTF-8"):
        run(tmp_path, tsv(good, "a"), tsv(bad, "b"))
    assert not (tmp_path / "ingested").exists()
    report, _ = run(tmp_path, tsv(good, "a"), tsv(bad, "b"), cleaning={"malformed": "reject"})
    assert report.sources["b"].rejected == {"invalid_utf8": 1, "duplicate": 1}


def test_header_without_rows_is_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"a\.tsv: the file has no rows"):
        run(tmp_path, tsv(write(tmp_path / "a.tsv", "a\tb\n"), header=True))


def test_dropped_row_number_beyond_file(tmp_path: Path) -> None:
    rows = write(tmp_path / "rows", "2\n")
    with pytest.raises(InputError, match=r"rows: row 2 should be dropped, but source 'a' has rows 0 to 1"):
        run(tmp_path, tsv(write(tmp_path / "a.tsv", "a\tb\nc\td\n"), drop_rows=str(rows)))


@pytest.mark.parametrize(
    ("before", "after"), [(None, "c\td\n" * 3), ("a\tb\na", None)], ids=["changed", "cut"]
)
def test_file_changed_during_reading_is_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str | None, after: str | None
) -> None:
    """The file changes after its rows were read, with the same size, or before that."""
    path = write(tmp_path / "a.tsv", "a\tb\n" * 3)
    read_file = files_of_sources.read_file

    def changing(*arguments: Any) -> Any:
        if before:
            write(path, before)
        yield from read_file(*arguments)
        if after:
            write(path, after)

    monkeypatch.setattr(files_of_sources, "read_file", changing)
    with pytest.raises(InputError, match=r"a\.tsv: the file changed while it was read"):
        run(tmp_path, tsv(path))


def test_open_quotation_mark_in_first_row_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", 'a,"b\nc,d\ne,f\n')
    source = tsv(path) | {"format": "csv", "header": False}
    with pytest.raises(InputError, match=r"a\.csv:1: a quotation mark is opened and not closed"):
        run(tmp_path, source)


def test_frequent_rejection_reason_is_shown_with_examples(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lines = "".join(f"word {n}\tslovo {n}\n" for n in range(95)) + "same\tsame\n" * 6
    lines += "<b>a?b\tc\na\ufffd\tb\n"
    report, _ = run(tmp_path, tsv(write(tmp_path / "a.tsv", lines)))
    found = report.sources["a"].frequent["identical"]
    assert found["share"] == round(6 / 103, 4) and [row[0] for row in found["examples"]] == [96, 97, 98]
    # Lost characters are always named.
    assert report.sources["a"].frequent.keys() == {"damaged_characters", "identical"}
    assert report.metrics()["sources"]["a"]["frequent"] == report.sources["a"].frequent
    assert report.sources["a"].noticed == {"markup": 1, "question_marks": 1}
    assert "6% of the rows are rejected as identical" in caplog.text and "'<b>a?b'" in caplog.text


def test_reason_above_5_percent_has_three_examples() -> None:
    counts = RowCounts()
    for start, found in (
        (1, {"identical": 2, "blank_source": 2}),
        (101, {"identical": 8, "blank_source": 9, "damaged_characters": 1}),
    ):
        reasons = [reason for reason, count in found.items() for _ in range(count)]
        rejected = pa.array(reasons + [None] * (100 - len(reasons)), pa.string())
        texts = [f"text {start + row}" for row in range(100)]
        counts.add(
            pa.table({"line": range(start, start + 100), "reference": texts, "rejected": rejected}),
            ["reference"],
        )
    report = counts.report(Findings())
    assert {reason: one["examples"] for reason, one in report.frequent.items()} == {
        "blank_source": [[3, "text 3"], [4, "text 4"], [109, "text 109"]],
        "damaged_characters": [[118, "text 118"]],
    }
    assert "1% of the rows are rejected as damaged_characters" in " ".join(report.warnings())


@pytest.mark.parametrize(("rows", "written"), [(4, [3]), (4, [2, 2, 1]), (3, [3])])
def test_wrong_sum_of_counts_is_error(rows: int, written: list[int]) -> None:
    told = f"{rows} rows were read, {sum(written)} are in the shards, and 4 were counted"
    with pytest.raises(IncompleteError, match=told):
        add_up({"a": RowCounts(4).report(Findings())}, rows, written)


@pytest.mark.parametrize(
    ("name", "rows", "count", "warned"),
    [
        ("question_marks", 100, 2, False),
        ("question_marks", 100, 3, True),
        ("question_marks", 1000, 9, False),
        ("question_marks", 1000, 10, True),
        ("markup", 1000, 1, True),
    ],
)
def test_frequent_findings_are_warnings(name: str, rows: int, count: int, warned: bool) -> None:
    findings = Findings(noticed=Counter({name: count}), examples={name: "text"})
    found = RowCounts(rows).report(findings).warnings()
    assert bool(found) == warned
    assert not found or f"{max(1, 100 * count // rows)}% of the rows ({count})" in found[0]


@pytest.mark.parametrize(
    ("text", "remedy"), [("stejn\ufffd", "get the files in UTF-8"), ("The same.", "names the right columns")]
)
def test_no_rows_left_error_says_what_to_do(tmp_path: Path, text: str, remedy: str) -> None:
    path = write(tmp_path / "a.tsv", "".join(f"The same.\t{text}\n" for _ in range(5)))
    with pytest.raises(IncompleteError, match=remedy):
        run(tmp_path, tsv(path))


def corpus(base: Path) -> list[dict[str, Any]]:
    base.mkdir(exist_ok=True)
    for name, step in (("a", 3), ("b", 5), ("c", 7)):
        lines = [f"sentence {n * step % 300} of {n % 2}\tvěta {n * step % 150}\n" for n in range(500)]
        write(base / f"{name}.tsv.gz", "".join(lines))
    return [tsv(base / "a.tsv.gz", "a"), tsv(base / "[bc].tsv.gz", "bc")]


def test_second_ingest_changes_and_reads_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = corpus(tmp_path)
    report, _ = run(tmp_path, *sources)
    before = digests(tmp_path / "ingested")
    monkeypatch.setattr("paraforge.intake.bitext.sources.read_file", None)
    again, _ = run(tmp_path, *sources)
    assert digests(tmp_path / "ingested") == before
    assert (again.rows, again.rejected, again.sources) == (report.rows, report.rejected, report.sources)


def lines_of(number: int) -> str:
    """Content of a file: some of its pairs are other files', too."""
    return "".join(f"sentence {number * n % 37}\tvěta {number * n % 23}\n" for n in range(60 + number))


@given(st.lists(st.lists(st.integers(1, 6), min_size=1, max_size=4), min_size=2, max_size=4))
@settings(max_examples=5)
@pytest.mark.full
def test_edited_files_are_reread_with_bytes_of_a_fresh_run(
    tmp_path_factory: pytest.TempPathFactory, states: list[list[int]]
) -> None:
    """Files are added, removed, moved, renamed, changed, and changed back. A file's number depends on its
    content. A run removes what it does not use, so a file that is changed back is read again.
    """
    base = tmp_path_factory.mktemp("edits")
    known: set[int] = set()
    for step, state in enumerate(states):
        sources = [
            tsv(write(base / f"{step}-{place}.tsv", lines_of(number)), f"source{place}")
            for place, number in enumerate(state)
        ]
        read: list[str] = []

        def counted(file: SourceFile, *arguments: Any, read: list[str] = read) -> Any:
            read.append(file.main_path.name)
            return read_file(file, *arguments)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("paraforge.intake.bitext.sources.read_file", counted)
            run(base, *sources)
        assert len(read) == len(set(state) - known), (state, known, read)
        known = set(state)
        run(fresh := base / f"fresh{step}", *sources)
        assert digests(base / "ingested") == digests(fresh / "ingested")


def test_changed_file_or_parameter_is_not_reused(tmp_path: Path) -> None:
    sources = corpus(tmp_path)
    first, _ = run(tmp_path, *sources)
    limited, _ = run(tmp_path, *sources, cleaning={"max_characters": 15})
    assert limited.rejected.get("too_long", 0) > first.rejected.get("too_long", 0)
    kept, _ = run(tmp_path, *sources, cleaning={"duplicates": False})
    assert "duplicate" not in kept.rejected
    write(tmp_path / "a.tsv.gz", "another\tjiná\n")
    changed, _ = run(tmp_path, *sources)
    assert changed.rows == first.rows - 499
    assert len([*(tmp_path / "work" / "ingest" / "files").iterdir()]) == 3  # older ones are removed


@pytest.mark.parametrize("damage", ["deleted", "truncated", "flipped"])
def test_damaged_parts_are_read_again_or_named(tmp_path: Path, damage: str) -> None:
    sources = corpus(tmp_path)
    run(tmp_path, *sources)
    before = digests(tmp_path / "ingested")
    for part in sorted((tmp_path / "work" / "ingest").rglob("*.parquet")):
        data = bytearray(part.read_bytes())
        data[len(data) // 3] ^= 1
        part.write_bytes({"deleted": b"", "truncated": data[:-20], "flipped": data}[damage])
        if damage == "deleted":
            part.unlink()
        elif damage == "flipped":
            with pytest.raises(InputError, match=r"files/.*parquet.* Delete it if it exists") as caught:
                run(tmp_path, *sources)
            assert str(part) in str(caught.value)
            part.unlink()
        run(tmp_path, *sources)
        assert digests(tmp_path / "ingested") == before


def test_killed_ingest_keeps_older_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = corpus(tmp_path)
    run(tmp_path, *sources[:1])
    older = digests(tmp_path / "ingested")
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(ingest, "add_up", Mock(side_effect=KeyboardInterrupt))
        run(tmp_path, *sources)
    assert digests(tmp_path / "ingested") == older
    run(tmp_path, *sources)
    run(tmp_path / "fresh", *sources)
    assert digests(tmp_path / "ingested") == digests(tmp_path / "fresh" / "ingested")
