"""A translation that was interrupted: its batches are kept, and it reports the whole."""

import itertools
from dataclasses import asdict
from pathlib import Path

import pytest

from paraforge.base import interrupts
from paraforge.base.errors import Interrupted
from paraforge.translation.stage.translate import TranslationReport
from tests.here import Countdown
from tests.translation.stage.test_translate import ROWS_OF_MANY, Row, parameters, run, write_corpus


def test_an_interrupted_task_keeps_its_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[Row] = [(f"věta {row} " + "slovo " * (row % 90), None, None) for row in range(2000)]
    corpus = write_corpus(tmp_path / "ingested", rows, 500)
    _, expected = run(tmp_path / "whole", corpus, parameters(sentences_per_task=2000))
    kept: list[int] = []
    # How often a busy machine looks for signals before the first batch is not known.
    for looks in itertools.count(4, 2):
        monkeypatch.setattr(interrupts, "_stop", Countdown(looks))
        with pytest.raises(Interrupted):
            run(tmp_path, corpus, parameters(sentences_per_task=2000))
        kept += [path.stat().st_size for path in (tmp_path / "work").rglob("*.unfinished")]
        if len(kept) == 3:
            break
    assert kept[0] < kept[1] < kept[2]
    monkeypatch.undo()
    _, published = run(tmp_path, corpus, parameters(sentences_per_task=2000))
    assert published.records == expected.records
    assert not list((tmp_path / "work").rglob("*.unfinished"))


@pytest.mark.parametrize("moment", ["translate.assemble", "translate.rows_step", "remembering.recall"])
def test_a_resumed_run_reports_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """Whenever it was killed: only times, and what the last process had to do, are its own."""

    def killed(*arguments: object) -> None:
        raise Interrupted()

    own = {"seconds", "sentences_per_second", "reused_tasks", "run"}

    def figures(report: TranslationReport) -> dict[str, object]:
        return {name: value for name, value in asdict(report).items() if name not in own}

    corpus = write_corpus(tmp_path / "ingested", ROWS_OF_MANY, 50)
    whole, _ = run(tmp_path / "whole", corpus, parameters(sentences_per_task=10))
    with monkeypatch.context() as patched, pytest.raises(Interrupted):
        patched.setattr(f"paraforge.translation.stage.{moment}", killed)
        run(tmp_path, corpus, parameters(sentences_per_task=10))
    resumed, _ = run(tmp_path, corpus, parameters(sentences_per_task=10))
    assert whole.tasks > 3
    assert figures(resumed) == figures(whole)
