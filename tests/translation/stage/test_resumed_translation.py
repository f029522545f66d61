"""An interrupted translation reports the whole when it is resumed."""

from dataclasses import asdict
from pathlib import Path

import pytest

from paraforge.base.errors import Interrupted
from paraforge.translation.stage.translate import TranslationReport
from tests.translation.stage.test_translate import ROWS_OF_MANY, parameters, run, write_corpus


@pytest.mark.parametrize("moment", ["translate.rows_step", "remembering.recall"])
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
