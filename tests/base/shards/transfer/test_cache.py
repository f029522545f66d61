"""The cache of a worker's host has a bound; what a job uses, and what others put there, stays."""

import hashlib
import json
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from paraforge.base.shards.job_files import JobFiles
from paraforge.base.shards.transfer.cache import Cache
from paraforge.base.shards.transfer.copies import Copies, copied, receive
from paraforge.base.shards.transfer.disk import Disk

BYTES = 10_000
# Of three models of 10,000 bytes, with what is noted of each, two fit.
MOST = 25_000


class Head:
    """Models on the host that asks, and what has been asked for."""

    def __init__(self, root: Path, most: int = MOST) -> None:
        self.root = root
        self.asked: list[str] = []
        self._most = most

    def model(self, name: str) -> Path:
        """A directory of two files, the second one empty."""
        model = self.root / "models" / name
        model.mkdir(parents=True, exist_ok=True)
        (model / "weights").write_bytes(name.encode() * (BYTES // len(name)))
        (model / "empty").touch()
        return model

    @contextmanager
    def job(self, *names: str, run: str = "run") -> Iterator[Copies]:
        disk = Disk("", None, self.root / "cache", run, self._most)
        with copied(disk, JobFiles(tuple(map(self.model, names))), 0, "worker", self._ask) as copies:
            yield copies

    def _ask(self, _: str, asked: tuple[Any, ...]) -> None:
        _, _, request, _, name, is_list, _ = asked
        path = Path(name)
        if is_list:
            names = ("empty", "weights")
            digests = [hashlib.sha256((path / one).read_bytes()).hexdigest() for one in names]
            content = json.dumps(list(zip(names, digests, strict=True))).encode()
        else:
            self.asked.append(f"{path.parent.name}/{path.name}")
            content = path.read_bytes()
        receive(request, 0, content, hashlib.sha256(content).hexdigest(), "")

    def kept(self) -> set[str]:
        """Names of the models of which there are copies, which have to be whole."""
        copies = list((self.root / "cache").glob("[!.]*/content/*"))
        for copy in copies:
            assert (copy / "weights").read_bytes() == (self.model(copy.name) / "weights").read_bytes()
        return {copy.name for copy in copies}

    def hidden(self) -> list[Path]:
        return list((self.root / "cache").glob(".*"))


@pytest.fixture
def head(tmp_path: Path) -> Head:
    return Head(tmp_path)


def uses(head: Head, *names: str, run: str = "run") -> None:
    """One job after the other, each with a model."""
    for name in names:
        with head.job(name, run=run) as copies:
            assert (copies.place(head.model(name)) / "weights").stat().st_size == BYTES


def test_those_unused_for_longest_go_first(head: Head) -> None:
    uses(head, "a", "b", "a", "c")
    assert head.kept() == {"a", "c"}
    uses(head, "d")
    assert head.kept() == {"c", "d"} and not head.hidden()


@pytest.mark.parametrize("run", ["run", "another run"])
def test_a_process_asks_again_for_what_was_removed(head: Head, run: str) -> None:
    """Also in the run in which it had the copy before; what was not removed is asked for once."""
    uses(head, "a", "b", "c", "b")
    assert head.asked == [f"{name}/{file}" for name in "abc" for file in ("empty", "weights")]
    uses(head, "a", run=run)
    assert head.asked[6:] == ["a/empty", "a/weights"] and head.kept() == {"a", "b"}


def test_the_end_of_a_job_is_a_use(head: Head) -> None:
    with head.job("a"):
        uses(head, "b")
    uses(head, "c")
    assert head.kept() == {"a", "c"}


def test_no_model_goes_while_a_job_of_any_process_uses_it(
    head: Head, caplog: pytest.LogCaptureFixture
) -> None:
    program = "import tests.base.shards.transfer.test_cache as t; t.in_another_process()"
    environment = {**os.environ, "HEAD": str(head.root)}
    with subprocess.Popen(
        [sys.executable, "-c", program],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdin is not None and other.stdout is not None
        assert other.stdout.readline() == "uses a\n"
        with head.job("b"), head.job("c"), caplog.at_level(logging.WARNING):
            uses(head, "d")
            assert head.kept() == {"a", "b", "c", "d"} and "are in use" in caplog.text
        uses(head, "e")
        assert head.kept() == {"a", "e"}
        other.stdin.close()
        assert other.wait() == 0
    uses(head, "d", "c")
    assert head.kept() == {"c", "d"}


def in_another_process() -> None:
    """A job that uses the model ``a`` until its input ends."""
    with Head(Path(os.environ["HEAD"])).job("a"):
        print("uses a", flush=True)
        sys.stdin.read()


def test_a_job_that_was_killed_uses_nothing(head: Head) -> None:
    program = (
        "import os; import tests.base.shards.transfer.test_cache as t\n"
        "with t.Head(t.Path(os.environ['HEAD'])).job('a'): os._exit(9)"
    )
    killed = subprocess.run([sys.executable, "-c", program], env={**os.environ, "HEAD": str(head.root)})
    assert killed.returncode == 9 and head.kept() == {"a"}
    uses(head, "b", "c")
    assert head.kept() == {"b", "c"}


@pytest.mark.parametrize("fatal", ["Path.rename", "shutil.rmtree", "t.Cache.leave"])
def test_a_kill_while_copies_are_removed_loses_none_of_the_others(head: Head, fatal: str) -> None:
    """Before a copy has its hidden name, while it is removed, and when the job ends."""
    uses(head, "a", "b")
    program = (
        "import os, shutil; from pathlib import Path; import tests.base.shards.transfer.test_cache as t\n"
        "with t.Head(Path(os.environ['HEAD'])).job('c'): pass\n"
    ).replace("\n", f"\n{fatal} = lambda *_, **__: os._exit(9)\n", 1)
    killed = subprocess.run([sys.executable, "-c", program], env={**os.environ, "HEAD": str(head.root)})
    assert killed.returncode == 9
    assert head.kept() == ({"a", "b", "c"} if fatal == "Path.rename" else {"b", "c"})
    uses(head, "b", "d")
    assert head.kept() == {"b", "d"} and not head.hidden()


def test_what_others_put_there_stays(head: Head) -> None:
    """Files, directories, and directories and links with names as copies have them."""
    uses(head, "a", "b")
    cache = head.root / "cache"
    places = [cache / "notes", cache / "own" / "last-use", cache / ("0" * 64) / "content" / "own"]
    for place in places:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("mine")
    (cache / ("1" * 64)).symlink_to(cache / "own")
    Cache(cache, 0).prune()
    assert [place.read_text() for place in places] == ["mine"] * 3 and (cache / ("1" * 64)).is_symlink()
    assert not list(cache.glob("*/content/[ab]"))


def test_a_copy_that_another_run_has_begun_to_fill_again_is_not_used(head: Head) -> None:
    """The copy was removed since, and only a part of it has come."""
    uses(head, "a")
    (copy,) = (head.root / "cache").glob("*/content/a")
    shutil.rmtree(copy.parents[1])
    copy.mkdir(parents=True)
    (copy.parents[1] / "last-use").touch()
    (copy / "empty").touch()
    uses(head, "a")
    assert head.kept() == {"a"}


def test_without_a_bound_all_are_kept(head: Head) -> None:
    uses(head, "a", "b")
    Cache(head.root / "cache").prune()
    assert head.kept() == {"a", "b"}
