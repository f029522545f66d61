"""The weights that a training ends with, and what becomes of damaged ones."""

import re
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch

from paraforge.base.errors import Interrupted
from paraforge.base.shards.resources import Resources
from paraforge.translation.models.checkpoint import average_checkpoints, weights_only_state
from paraforge.translation.models.fairseq_compat import load_checkpoint
from paraforge.translation.training import finishing, processes
from paraforge.translation.training.binarisation import prepare_bitext
from paraforge.translation.training.finishing import finish_model
from paraforge.translation.training.stage import build_nmt
from paraforge.translation.training.training import TrainingResult
from paraforge.translation.training.validation import Scores
from tests.damage import apply, flip, remove
from tests.project import digests
from tests.translation.models.tiny import bitext
from tests.translation.training.test_binarisation import write_shards
from tests.translation.training.test_training import parameters, start


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, TrainingResult]:
    directory = tmp_path_factory.mktemp("trained")
    shards = write_shards(directory / "shards", [(cs, en, None) for cs, en in bitext(200)])
    prepared = prepare_bitext(shards, directory / "work", parameters())
    run = start(directory / "run", (directory / "work", prepared))
    reason = run.train()
    history = [{**row, "bleu": bleu} for row, bleu in zip(run.history, (1.0, 3.0, 2.0), strict=True)]
    return directory / "run", TrainingResult(reason, history, prepared)


@pytest.mark.parametrize(
    ("scores", "weights"),
    [
        ((5.0, 4.0), "update 8"),
        ((4.0, 5.0), "average of updates 8, 12"),
        ((4.0, 4.0), "update 8"),
        ((0.5, 2.9), "average of updates 8, 12"),
    ],
)
def test_the_better_of_best_and_average(
    tmp_path: Path,
    trained: tuple[Path, TrainingResult],
    monkeypatch: pytest.MonkeyPatch,
    scores: tuple[float, float],
    weights: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    directory, result = trained
    given = iter(scores)

    def evaluate(*arguments: Any, **options: Any) -> Scores:
        assert options["beam"] == 3
        return Scores(bleu=next(given), chrf=7.0, bleu_signature="b", chrf_signature="c")

    monkeypatch.setattr(finishing, "evaluate", evaluate)
    (tmp_path / "nmt").mkdir()
    description = finish_model(directory, tmp_path / "nmt", parameters(), result, threads=1)
    assert ("has hardly learnt anything" in caplog.text) == (max(scores) < 3)
    assert description["trained_on"]["weights"] == weights
    assert description["trained_on"]["updates"] == 12
    assert description["metrics"] == {
        "rows": result.prepared.held_out, "beam": 3, "bleu": max(scores), "chrf": 7.0,
        "bleu_signature": "b", "chrf_signature": "c",
    }  # fmt: skip
    snapshots = [directory / "snapshots" / f"update-{update:08d}.pt" for update in (8, 12)]
    expected = (
        average_checkpoints(snapshots)
        if "average" in weights
        else weights_only_state(load_checkpoint(snapshots[0]))
    )
    written = load_checkpoint(tmp_path / "nmt" / "fairseq" / "checkpoint.pt")["model"]
    assert written.keys() == expected["model"].keys()
    assert all(torch.equal(written[name], expected["model"][name]) for name in written)


# Written for people, or anew by each run.
_NOT_READ = {"lock", "trainer.lock", "holder.json", "trainer.log", "settings.json", "validation"}


def build(place: Path) -> tuple[dict[str, str], list[str]]:
    """The model's digests, and the curve without times."""
    resources = Resources(threads=1, devices=["cpu"], work=place / "work")
    build_nmt(parameters(), place.parent / "ingested", place / "model", place / "curve.csv", resources)
    lines = (place / "curve.csv").read_text(encoding="utf-8").splitlines()
    dropped = lines[0].split(",").index("seconds")
    curve = [",".join(v for n, v in enumerate(line.split(",")) if n != dropped) for line in lines]
    return digests(place / "model"), curve


def stopped_in_training(monkeypatch: pytest.MonkeyPatch) -> None:
    show = processes._show

    def stopping(messages: Any, *others: Any) -> Any:
        def until_the_second() -> Any:
            validations = 0
            for message in messages:
                validations += message["event"] == "validation"
                yield message
                if validations == 2:
                    raise Interrupted()

        return show(until_the_second(), *others)

    monkeypatch.setattr(processes, "_show", stopping)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_any_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a training that was stopped, and what one that was finished has besides."""
    write_shards(tmp_path / "ingested", [(cs, en, None) for cs, en in bitext(300)])
    begun, whole, place = tmp_path / "begun", tmp_path / "whole", tmp_path / "damaged"
    wanted = build(whole)
    with monkeypatch.context() as patched, suppress(Interrupted):
        stopped_in_training(patched)
        build(begun)
    known: set[str] = set()
    for moment in (begun, whole):
        found = digests(moment / "work")
        # One of each kind and place.
        names = {
            re.sub(r"\d|[^/]+(?=\.(bin|idx|txt|spm|pt|pt\.sha256)$)", "", name): name
            for name, digest in found.items()
            if digest not in known and not _NOT_READ.intersection(Path(name).parts)
        }
        known |= {*found.values()}
        assert any("history" in name or "checkpoint_last" in name for name in names.values()), names
        for name in names.values():
            for damage in (flip, remove) if name.endswith((".pt", "history.json")) else (flip,):
                shutil.copytree(moment, place)
                apply(damage, place / "work" / name)
                assert build(place) == wanted, (name, damage.__name__)
                shutil.rmtree(place)
