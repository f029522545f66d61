"""Counts of several pivots in manifest, card, metrics, report and summary."""

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from paraforge.base.files import read_json, write_json
from paraforge.corpus.columns import COLUMNS
from paraforge.corpus.publication.card import CARD_NAME
from paraforge.corpus.publication.manifest import MANIFEST_NAME, Manifest, read_manifest
from paraforge.corpus.publication.verification import verify
from paraforge.corpus.selection.fate import Counts
from paraforge.interface.report.html import write_report
from tests.corpus.publication.test_groups import related_pairs, rows_of
from tests.corpus.selection.published import publish_pairs
from tests.here import run_command

PIVOTS = ("cs", "de", "cs+de")


def of_pivots(table: pa.Table) -> pa.Table:
    names = [PIVOTS[row * row % 7 % 3] for row in range(table.num_rows)]
    return table.append_column(COLUMNS["pivot"], pa.array(names, COLUMNS["pivot"].type))


def counted(*directories: Path) -> dict[str, Counts]:
    """Counts of each pivot in the rows of the kept and the rejected pairs."""
    found: dict[str, Counts] = {}
    for row in (row for directory in directories for row in rows_of(directory)):
        fate = Counter({row[name]: 1 for name in ("rejected",) if row.get(name)})
        failed = Counter({row[name]: 1 for name in ("failed",) if row.get(name)})
        if row["pivot"] is not None:
            one = Counts(1, int(not fate and not failed), fate, failed)
            found.setdefault(row["pivot"], Counts()).add(one)
    return found


def on_card(directory: Path) -> dict[str, list[int]]:
    """The card's table of pivots: rows in, kept, rejected, failed."""
    text = (directory / CARD_NAME).read_text(encoding="utf-8").partition("| pivot | rows in")[2]
    rows = re.findall(r"^\| ([^|]+) \|((?: [\d,]+ \|){4})", text.partition("\n\n")[0], re.MULTILINE)
    return {
        name: [int(number.replace(",", "")) for number in numbers.split(" |")[:-1]] for name, numbers in rows
    }


def of_card(counts: Counts) -> list[int]:
    return [counts.rows_in, counts.kept, counts.rejected.total(), counts.failed.total()]


def check_card(directory: Path, manifest: Manifest) -> None:
    shown = on_card(directory)
    total = shown.pop("all pivots")
    assert shown == {name: of_card(counts) for name, counts in manifest.pivots.items()}
    assert total == [sum(column) for column in zip(*shown.values(), strict=True)]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("project")
    report = publish_pairs(root / "data", table=of_pivots(related_pairs(900)), splits={"test": 40})
    write_json(root / "metrics" / "publish.json", report.metrics())
    return root


def test_pivot_counts_agree_everywhere(project: Path) -> None:
    corpus, rejected = project / "data" / "corpus", project / "data" / "rejected"
    expected = counted(corpus, rejected)
    assert set(expected) == set(PIVOTS) and all(result.kept and result.failed for result in expected.values())
    for directory in (corpus, rejected):
        manifest = read_manifest(directory)
        assert manifest.pivots == expected
        check_card(directory, manifest)
        assert verify(directory).problems == []
    as_json = {name: one.as_dict() for name, one in expected.items()}
    assert read_json(project / "metrics" / "publish.json")["pivots"] == as_json
    card = (corpus / CARD_NAME).read_text(encoding="utf-8")
    assert "- en\n- cs\n- de\n" in card and "Where it is cs+de, both sides are translations" in card
    shown = run_command("summary", project).stdout
    for name, one in expected.items():
        assert re.search(rf"^ *{re.escape(name)} +{one.rows_in:,} +{one.kept:,} ", shown, re.MULTILINE), shown
    write_report(corpus, project / "report.html")
    page = (project / "report.html").read_text(encoding="utf-8")
    assert "Where it is cs+de, both sides are" in page and "Of the pairs, test has 40;" in page
    for name, one in expected.items():
        cells = [f"{number:,}" for number in of_card(one)]
        assert re.search(rf"<td>{re.escape(name)}</td>\D*" + r"\D+".join(cells), page)


def problems_with(directory: Path, pivots: dict[str, Counts]) -> str:
    """What verification says where the manifest has these pivots."""
    replace(read_manifest(directory), pivots=pivots).write(directory)
    return "; ".join(problem.message for problem in verify(directory).problems)


def test_wrong_pivot_counts_are_found(tmp_path: Path) -> None:
    publish_pairs(tmp_path, table=of_pivots(related_pairs(300)))
    for directory in (tmp_path / "corpus", tmp_path / "rejected"):
        pivots = read_manifest(directory).pivots
        one, others = pivots["cs"], {name: pivots[name] for name in ("de", "cs+de")}
        more = Counts(one.rows_in + 1, one.kept + 1, one.rejected, one.failed)
        assert "pivots do not add up" in problems_with(directory, {"cs": more, **others})
        moved = Counts(one.rows_in, one.kept - 1, one.rejected + Counter(length=1), one.failed)
        assert "cs" in problems_with(directory, {"cs": moved, **others})
        said = problems_with(directory, {"fr": one, **others})
        assert "rows of 'cs', which is missing from the counts" in said
        assert problems_with(directory, pivots) == ""


def test_no_pivot_output_without_pivots(tmp_path: Path) -> None:
    report = publish_pairs(tmp_path, table=related_pairs(300))
    written = read_json(tmp_path / "corpus" / MANIFEST_NAME)
    card = (tmp_path / "corpus" / CARD_NAME).read_text(encoding="utf-8")
    assert "pivots" not in written and "pivots" not in report.metrics() and "pivot" not in card
