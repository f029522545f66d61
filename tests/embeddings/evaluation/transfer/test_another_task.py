"""A transfer task is added by adding one file."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from paraforge.base.errors import ConfigurationError
from paraforge.embeddings.evaluation.evaluate import evaluate
from paraforge.embeddings.evaluation.transfer import tasks
from paraforge.embeddings.evaluation.transfer.tasks import find_tasks, transfer_tasks
from paraforge.products.loading import open_model
from tests.products.test_loading import save_word_model

MODULE = '''
from paraforge.embeddings.evaluation.transfer.files import read_labelled
from paraforge.embeddings.evaluation.transfer.tasks import ClassificationTask, one_file


class Weather(ClassificationTask):
    """Whether a sentence is about the weather."""

    name = "Weather"
    layouts = (one_file(read_labelled, "weather.tsv"),)
'''


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A directory; its folder ``modules`` is beside the package, and its modules are found as its own."""
    yield tmp_path
    transfer_tasks.cache_clear()
    sys.modules.pop(f"{tasks.__name__}.weather", None)


def test_a_file_is_all_that_a_task_needs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = list(transfer_tasks())
    assert usual == [
        *("MR", "CR", "SUBJ", "MPQA", "SST binary", "SST fine", "TREC", "MRPC", "SICK-E", "SICK-R"),
    ]
    rows = [f"{number % 2}\t{'the dog runs' if number % 2 else 'a cat sits'}\n" for number in range(40)]
    (folder / "weather.tsv").write_text("".join(rows))
    save_word_model(folder / "model")
    arguments = {"transfer": [folder], "task_names": ["Weather"]}
    with pytest.raises(ConfigurationError, match=r"--task Weather: there are MR, CR, .*SICK-R"):
        evaluate(str(folder / "model"), open_model, **arguments)
    (folder / "modules").mkdir()
    (folder / "modules" / "weather.py").write_text(MODULE)
    monkeypatch.setattr(tasks, "__path__", [*tasks.__path__, str(folder / "modules")])
    transfer_tasks.cache_clear()
    assert list(transfer_tasks()) == [*usual, "Weather"]
    (task,), missing = find_tasks([folder])
    assert (task.name, len(task.train), missing) == ("Weather", 40, usual)
    (score,) = evaluate(str(folder / "model"), open_model, **arguments).transfer
    assert (score.name, score.accuracy) == ("Weather", 100)
