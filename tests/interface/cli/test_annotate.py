"""``paraforge annotate``: serving and reports."""

from dataclasses import replace
from pathlib import Path

import pytest

from paraforge.base.errors import InputError
from paraforge.interface.annotation.results import Estimate, Report
from paraforge.interface.annotation.store import AnnotationStore, Answer, create_store
from paraforge.interface.cli.annotate import report_lines
from paraforge.interface.web import serving
from tests.corpus.selection.published import publish_pairs
from tests.here import run_command
from tests.interface.annotation.evaluations import small_draw


@pytest.fixture
def database(tmp_path: Path) -> Path:
    store = create_store(tmp_path / "annotations.sqlite", small_draw())
    for name, grade in (("Anna", 3), ("[red]Boris", 2)):
        number = store.join(name).number
        for pair in range(1, 9):
            store.record(number, pair, Answer(grade if pair > 4 else 1, 3))
    return store.path


def test_annotate_serves_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("flask")
    served: list[tuple[AnnotationStore, str, int]] = []
    monkeypatch.setattr(
        serving, "serve_app", lambda make, host, port, *_: served.append((make.args[0], host, port))
    )
    publish_pairs(tmp_path, rows=200)
    corpus, database = str(tmp_path / "corpus"), str(tmp_path / "a.sqlite")
    first, _, result = (
        run_command("annotate", "serve", *arguments)
        for arguments in (
            [corpus, "-d", database, "-n", "4"],
            [corpus, "-d", database],
            ["-d", database, "--port", "9000", corpus],
        )
    )
    assert [host for _, host, _ in served] == ["127.0.0.1"] * 3
    assert [port for _, _, port in served] == [8377, 8377, 9000]
    assert len({str(store.draw) for store, _, _ in served}) == 1
    with pytest.raises(InputError, match="inside the directory"):  # which 'dvc repro' replaces
        run_command("annotate", "serve", corpus, "-d", f"{corpus}/a.sqlite")
    assert "drew 20 pairs" in first.stderr and "has only" not in first.stderr
    assert "drew" not in result.stderr and "continuing with 20 pairs" in result.stderr
    whole = run_command("annotate", "serve", corpus, "-d", tmp_path / "b.sqlite", "-n", "200")
    assert whole.stderr.count("; all were drawn\n") == 5


def test_report(database: Path) -> None:
    result = run_command("annotate", "report", database)
    lines = result.stdout.splitlines()
    assert "src:tatoeba|v:0.1" in lines
    band = next(line.split() for line in lines if line.startswith("(0.8, 1.0]"))
    assert band == ["(0.8,", "1.0]", "1,000", "0.50", "±", "0.50", "3/3", "0", "1.5", "1.5", "0", "0", "3"]
    agreement = next(line.split() for line in lines if line.startswith("Anna and [red]Boris"))
    # Equal on the four ones; chance (4 * 4) / 64; linear: 4 of (4*4*1 + 4*4*2 + 4*4*1) / 8 = 8.
    assert agreement[3:] == ["paraphrase", "8", "0.50", "0.33", "0.50"]
    # All fluent: kappa is not defined.
    place = lines.index(next(line for line in lines if line.startswith("Anna and")))
    assert lines[place + 1].split()[-3:] == ["1.00", "-", "-"]
    # Two answers a band.
    told = "too few answers; grade at least 10 pairs in every band"
    assert lines[-1].startswith(f"Strong paraphrases (grade 3) in the corpus: {told}")
    assert "±" not in lines[-1]


@pytest.mark.parametrize(
    ("manifests", "estimate", "told"),
    [
        ({"corpus": "0"}, Estimate(1000, 20, 10), "the corpus: 1,000 ± 20 (standard error of sampling)"),
        ({"corpus": "0", "rejected": "1"}, Estimate(1000, 20, 9), "the corpus and its rejected pairs: too "),
        ({"corpus": "0"}, Estimate(1000, 600, 100), "the corpus: too uncertain, 1,000 ± 600 (standard error"),
    ],
)
def test_report_estimates_strong_paraphrases(
    manifests: dict[str, str], estimate: Estimate, told: str
) -> None:
    report = Report(replace(small_draw(), manifests=manifests), [], {}, [], estimate)
    assert report_lines(report)[-1].startswith(f"Strong paraphrases (grade 3) in {told}")


def test_annotate_mistakes(tmp_path: Path) -> None:
    for arguments in (
        ["report", str(tmp_path / "no.sqlite")],
        ["serve", str(tmp_path), "-d", str(tmp_path / "a.sqlite")],
    ):
        with pytest.raises(InputError):
            run_command("annotate", *arguments)
    assert not (tmp_path / "a.sqlite").exists()
