"""Killed in the middle of a removal, every step that resumes gives the same bytes; no part of a directory is
ever found under its name."""

import math
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from paraforge.base.errors import IncompleteError
from paraforge.base.files import remove_directory
from tests.corpus.selection.published import publish_pairs
from tests.here import inside, run_stage
from tests.products.paraphrasing.test_stage import build as build_paraphraser
from tests.products.triplets.corpora import mine, publish
from tests.project import ROOT, digests
from tests.removals import Killed, killed_after
from tests.test_damaged_work import OUTPUTS, finished
from tests.translation.models.tiny import bitext
from tests.translation.training.test_binarisation import write_shards
from tests.translation.training.test_finishing import build as build_model

__all__ = ["finished"]


def filled(path: Path, files: int = 4) -> Path:
    (path / "inner").mkdir(parents=True)
    for number in range(files):
        (path / "inner" / f"{number}.bin").write_bytes(bytes(number))
    return path


def test_a_directory_is_there_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    for removals in range(7):
        place = filled(tmp_path / str(removals) / "place")
        if removals < 6:
            with killed_after(removals), pytest.raises(Killed):
                remove_directory(place)
        else:
            remove_directory(place)
        assert not place.exists()
        assert all(path.name.startswith(".") for path in place.parent.iterdir())
        filled(place)  # nobody is in the way of a new one
        remove_directory(place)
        assert not place.exists()


def test_links_and_what_is_missing(tmp_path: Path) -> None:
    target = filled(tmp_path / "target")
    (tmp_path / "link").symlink_to(target)
    before = digests(target)
    remove_directory(tmp_path / "link")
    remove_directory(tmp_path / "nothing")
    assert [path.name for path in tmp_path.iterdir()] == ["target"]
    assert digests(target) == before


def test_nothing_else_removes_trees() -> None:
    """Whoever removes file by file what somebody could resume from does it through one function."""
    users = {
        path.relative_to(ROOT).as_posix()
        for folder in ("pipeline", "stages")
        for path in (ROOT / folder).rglob("*.py")
        if re.search(r"\brmtree\b|\bremovedirs\b", path.read_text(encoding="utf-8"))
    }
    assert users == {"pipeline/base/files.py"}


def check_removals(base: Path, run: Callable[[Path], Path], stride: int = 1) -> int:
    """Run with a kill before the first removal of each kind, or of each n-th kind of a costly run, and before
    the last of all, each time followed by a run that is not disturbed; number of removals.

    run: makes an output in a directory and returns it.
    """
    with killed_after(math.inf) as kinds:
        wanted = digests(run(base / "whole"))
    first = {kind: at for at, kind in reversed([*enumerate(kinds)])}
    for removals in {*sorted(first.values())[::stride], len(kinds) - 1} - {-1}:
        place = base / str(removals)
        with killed_after(removals), pytest.raises((Killed, IncompleteError)):  # the latter of a training
            run(place)
        assert digests(run(place)) == wanted, f"killed after {removals} removals"
    return len(kinds)


@pytest.mark.full
def test_triplets(tmp_path: Path) -> None:
    corpus = publish(tmp_path / "published", rows=60, per_file=30)

    def run(place: Path) -> Path:
        mine(corpus, place / "out", candidates=40, negatives=2)
        return place / "out"

    assert check_removals(tmp_path, run) > 5


@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.parametrize("stage", ["nmt", "paraphraser"])
def test_a_trained_model(tmp_path: Path, stage: str) -> None:
    write_shards(tmp_path / "ingested", [(cs, en, None) for cs, en in bitext(300)])
    publish_pairs(tmp_path / "published", rows=200)

    def run(place: Path) -> Path:
        if stage == "nmt":
            build_model(place)
        else:
            build_paraphraser(tmp_path / "published", place)
        return place / "model"

    assert check_removals(tmp_path, run, stride=8) > 5


@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.parametrize("stage", OUTPUTS)
def test_a_stage(finished: Path, tmp_path: Path, stage: str) -> None:
    def run(place: Path) -> Path:
        if not place.exists():
            shutil.copytree(finished, place, symlinks=True, ignore=shutil.ignore_patterns("work"))
        with inside(place):
            assert run_stage(stage)
        return place / OUTPUTS[stage]

    assert check_removals(tmp_path, run) > 1
