"""Workers without a shared disk: files travel to them and back unchanged."""

import asyncio
import errno
import hashlib
import json
import logging
import shutil
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from distributed import Client, LocalCluster
from filelock import FileLock, Timeout

from paraforge.base.errors import InputError, RetryError
from paraforge.base.shards import scheduler, transfer
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.scheduler import Jobs
from paraforge.base.shards.step import Step, run_step
from paraforge.base.shards.transfer import Copies, Disk, JobFiles, copied, receive
from tests.base.shards.steps import multiply_step, write_input
from tests.project import digests

MODEL = {"weights.bin": bytes(range(256)) * 160, "folder/words.txt": b"slovo\n" * 9, "empty": b""}


def build_hash(models: list[Path]) -> Callable[[pa.Table], pa.Table]:
    """Return for each row the hash of the models' content and of its line."""
    found = hashlib.sha256()
    for model in models:
        for path in sorted(model.rglob("*")) if model.is_dir() else [model]:
            found.update(path.read_bytes() if path.is_file() else b"")

    def hashes(table: pa.Table) -> pa.Table:
        return pa.table({"hash": [f"{line} {found.hexdigest()}" for line in table["line"].to_pylist()]})

    return hashes


def hash_step(models: list[Path]) -> Step:
    arguments = {"models": models}
    return replace(multiply_step(1), build=build_hash, arguments=arguments, files=tuple(models))


def test_models_are_sent_once_and_shards_both_ways(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces are counted, and a copy is verified before use. Hosts with a shared disk send nothing. Errors
    name the file of the host that asked.
    """
    write_input(tmp_path / "in", rows=30)
    for name, content in MODEL.items():
        (tmp_path / "model" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "model" / name).write_bytes(content)
    (tmp_path / "table").write_bytes(b"one file")
    step = hash_step([tmp_path / "model", tmp_path / "table"])
    run_step(step, [tmp_path / "in"], tmp_path / "wanted", Resources(workers=1, work=tmp_path / "here"))
    pieces: list[Any] = []
    piece = transfer.Sender._piece
    monkeypatch.setattr(transfer, "_PIECE", 4096)
    monkeypatch.setattr(transfer, "_SECONDS_AWAY", 0.0)
    monkeypatch.setattr(transfer, "_ASK_AGAIN_SECONDS", 600)  # one request is enough for all pieces
    monkeypatch.setattr(transfer.Sender, "_piece", lambda *given: pieces.append(given) or piece(*given))

    def asked(number: int, shared: bool | None = False) -> int:
        pieces.clear()
        work, cache = tmp_path / str(number), tmp_path / "cache"
        values = {"scheduler": "tcp://there:8786", "work": work, "worker_cache": cache, "shared_disk": shared}
        run_step(step, [tmp_path / "in"], tmp_path / "out", Resources.model_validate(values))
        assert digests(tmp_path / "out") == digests(tmp_path / "wanted")
        assert not [*work.rglob(".*"), *cache.glob(".*")]
        return sum(not is_list for _, _, _, is_list, _ in pieces)

    with (
        LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as made,
        Client(made, set_as_default=False) as client,
    ):
        monkeypatch.setattr(scheduler, "connect", lambda *_: nullcontext(client))
        # 10 pieces of the weights, and one of each other file and of each of 3 shards.
        assert [asked(1), asked(2)] == [10 + 3 + 3, 3]
        # Only the file of a copy that is not what was sent comes again.
        kept = next((tmp_path / "cache").glob("*/content/model/weights.bin"))
        kept.write_bytes(MODEL["weights.bin"][:-1] + b"x")
        assert [asked(3), asked(4, shared=None)] == [10 + 3, 0]
        ((_, failed),) = Jobs(client, disk=Disk("the project", None, None, "run")).attempt(
            digests, [(tmp_path,)], description="no list of files"
        )
        assert "does not see the project" in str(failed)
        shard = tmp_path / "in" / "shard-00002.parquet"  # the last one, so that no other job waits for files
        for damage in (lambda: shard.write_bytes(b"half"), shard.unlink):
            damage()
            with pytest.raises(InputError, match=f"^{shard}: cannot be read"):
                asked(5)


@pytest.mark.parametrize(
    ("answers", "seen"), [([True, True], True), ([True, False], False), ([OSError("lost"), True], False)]
)
def test_shared_disk_is_checked_once_per_worker(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    answers: list[Any],
    seen: bool,
) -> None:
    asked: list[Any] = []
    client = SimpleNamespace(run=lambda what, **_: asked.append(what) or dict(enumerate(answers)))
    monkeypatch.setattr(transfer, "connect", lambda *_: nullcontext(client))
    monkeypatch.setattr(transfer, "watched_connection", nullcontext)
    monkeypatch.setattr(transfer, "wait_for_worker", asked.append)
    resources = Resources(scheduler="tcp://there:8786", work=tmp_path)
    with caplog.at_level(logging.INFO):
        assert [transfer.on_shared_disk(resources) for _ in range(2)] == [seen] * 2
    assert caplog.text.count("steps that need all of it run here") == 2 * (not seen)
    for known in (True, False):  # what is said need not be asked
        assert transfer.on_shared_disk(resources.model_copy(update={"shared_disk": known})) is known
    assert len(asked) == 2 and asked[0] is client


def test_disk_is_shared_if_probe_file_matches(tmp_path: Path) -> None:
    token = tmp_path / "run"
    here = Disk("", (token, "run"), None, "run")
    assert not here.is_seen()
    for content, seen in ((b"run", True), (b"another", False), (b"", False), (b"\xff", False)):
        token.write_bytes(content)
        assert here.is_seen() is seen
    token.write_bytes(b"run")
    assert not replace(here, token=None).is_seen()
    there = Resources(scheduler="tcp://there:8786", work=tmp_path)
    for shared, seen in ((None, True), (False, False), (True, None)):
        with transfer.announced(there.model_copy(update={"shared_disk": shared})) as announced:
            assert (announced and announced.is_seen()) is seen
    with transfer.announced(Resources(work=tmp_path)) as announced:
        assert announced is None


def test_worker_waits_for_slow_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The host hashes a large model once for many workers, and reports progress meanwhile."""
    monkeypatch.setattr(transfer, "_KEEP_ALIVE_SECONDS", 0.05)
    hashed: list[Path] = []

    def slow(path: Path) -> str:
        hashed.append(path)
        while messages.count((0, b"", "")) < 4:
            time.sleep(0.01)
        return hashlib.sha256(path.read_bytes()).hexdigest()

    monkeypatch.setattr(transfer, "sha256_file", slow)
    model = tmp_path / "model"
    model.write_bytes(b"weights")
    messages: list[tuple[int, bytes, str]] = []

    class Workers:
        async def run(
            self, _: object, request: str, offset: int, piece: bytes, digest: str, problem: str, **__: object
        ) -> dict[str, bool]:
            messages.append((offset, piece, digest))
            return {"worker": True}

    sender = transfer.Sender(Workers(), Disk("", None, None, "run"), [JobFiles((model,))])  # type: ignore[arg-type]  # stand-ins for what is not used

    async def two() -> None:
        sender._sending = {"a": None, "b": None}  # type: ignore[dict-item]  # stand-ins for what is not used
        await asyncio.gather(*(sender._send(0, name, "worker", model, False, 0) for name in "ab"))

    asyncio.run(two())
    assert hashed == [model]
    assert [piece for _, piece, digest in messages if digest] == [b"weights"] * 2


def test_host_requests_model_again_only_if_changed(tmp_path: Path) -> None:
    """A removed copy or a new process does not count as a change."""
    model = tmp_path / "model"
    model.mkdir()
    (model / "weights").write_bytes(b"weights")
    cache = tmp_path / "cache"
    weights, asked, done = b"weights", list[bool](), set[Path]()

    def ask(_: str, request: tuple[Any, ...]) -> None:
        content = json.dumps([("weights", hashlib.sha256(weights).hexdigest())]).encode()
        if not request[5]:
            content = weights
            with pytest.raises(Timeout):  # other workers of the host wait
                [FileLock(path).acquire(timeout=0) for path in {*cache.glob("*/lock")} - done]
        asked.append(request[5])
        receive(request[2], 0, content, hashlib.sha256(content).hexdigest(), "")

    def use(run: str) -> Path:
        with copied(Disk("", None, cache, run), JobFiles((model,)), 0, "worker", ask) as here:
            place = here.place(model)
            assert (place / "weights").read_bytes() == weights
            assert here.place(model / "weights") == place / "weights" and place.is_relative_to(cache)
        assert not list(cache.glob(".*"))
        return place.parents[1]

    entry = use("one")
    assert use("one") == use("another") == entry and asked == [True, False, True]
    shutil.rmtree(entry)
    use("one")
    (entry / "content" / "model" / "weights").write_bytes(b"half")
    use("a third")
    assert asked[3:] == [True, False, True, False]
    weights, done = b"others", {entry / "lock"}
    assert use("a fourth") != entry


@dataclass(frozen=True)
class Choice:
    """As what a step is built with."""

    model: Path | None
    rate: float
    made: Path = field(default=Path("/project/in/a"), init=False)


def test_paths_are_replaced_at_any_depth(tmp_path: Path) -> None:
    """Objects without such paths stay the same objects."""
    files = JobFiles((), (Path("/project/in/a"),), (Path("/project/work/step/key"),))
    here = Copies(Disk("", None, None, "run"), files, 0, "", lambda *_: None, tmp_path, tmp_path)
    other = Choice(Path("/elsewhere"), 0.5)
    given = {
        "root": Path("/project/work"),
        "choice": Choice(Path("/project/in/a"), 1.0),
        "rest": [1, (other,)],
    }
    placed = here.placed(given)
    assert placed["root"] == tmp_path / "project/work"
    assert placed["choice"] == Choice(tmp_path / "project/in/a", 1.0)
    assert placed["rest"] == [1, (other,)] and placed["rest"][1][0] is other


def test_missing_or_damaged_transfer_is_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "PATIENCE_SECONDS", 0.1)
    monkeypatch.setattr(transfer, "_ASK_AGAIN_SECONDS", 0.05)
    path = tmp_path / "file"
    own = Disk("", None, tmp_path / "cache", "run")

    def spoil(_: str, asked: tuple[Any, ...]) -> None:
        shutil.rmtree(tmp_path / "cache")
        receive(asked[2], 0, b"bytes", "", "")

    def other_bytes(_: str, asked: tuple[Any, ...]) -> None:
        receive(asked[2], 0, b"other", hashlib.sha256(b"one").hexdigest(), "")

    cases: list[tuple[Callable[..., None], type[Exception], str]] = [
        (lambda *_: None, RetryError, "has not reached"),
        (other_bytes, RetryError, "reached worker with other bytes"),
        (lambda _, asked: receive(asked[2], 0, b"", "", "is gone"), InputError, f"{path}: is gone"),
        (spoil, FileNotFoundError, r"\.part"),
    ]
    for ask, kind, message in cases:
        with pytest.raises(kind, match=message), copied(own, JobFiles(read=(path,)), 0, "worker", ask):
            pass
        assert not transfer._incoming


def test_full_disk_returns_the_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other errors pass through unchanged."""
    monkeypatch.setattr(transfer, "_SECONDS_AWAY", 0.0)
    here = Disk("", None, tmp_path / "cache", "run")
    for own, number, expected in (
        (replace(here, cache=Path("/proc")), 0, RetryError),
        (here, errno.ENOSPC, RetryError),
        (here, errno.ENOENT, FileNotFoundError),
    ):
        with (
            pytest.raises(expected, match="cannot write to" if expected is RetryError else "gone"),
            copied(own, JobFiles(), 0, "worker", lambda *_: None),
        ):
            raise OSError(number, "gone")


def test_duplicate_or_early_piece_is_ignored(tmp_path: Path) -> None:
    content, taken = b"weights", []
    digest = hashlib.sha256(content).hexdigest()

    def ask(_: str, asked: tuple[Any, ...]) -> None:
        pieces = ((0, b"wei", ""), (0, b"wei", ""), (5, b"ts", digest), (3, b"ghts", digest))
        taken.extend(receive(asked[2], *piece, "") for piece in pieces)

    path = tmp_path / "file"
    with copied(Disk("", None, tmp_path / "cache", "run"), JobFiles(read=(path,)), 0, "worker", ask) as here:
        assert here.place(path).read_bytes() == content
    assert taken == [True, False, False, True]


def test_host_sends_only_files_of_the_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are sent in pieces until the host stops."""
    monkeypatch.setattr(transfer, "_PIECE", 3)
    (tmp_path / "model").mkdir()
    for name in ("secret", "model/weights"):
        (tmp_path / name).write_bytes(b"bytes")
    client = SimpleNamespace(loop=SimpleNamespace(add_callback=lambda called: called()))
    given = transfer.Sender(client, Disk("", None, None, "run"), [JobFiles((tmp_path / "model",))])  # type: ignore[arg-type]  # stand-ins for what is not used
    for path in (tmp_path / "secret", tmp_path / "model" / ".." / "secret", tmp_path):
        assert given._piece(0, path, False, 0) == (b"", "", "is not a file of this job")
    gone = given._piece(0, tmp_path / "model" / "gone", False, 0)
    assert gone == (b"", "", "cannot be read: No such file or directory")
    given.asked((0.0, ("another run", 0, "request", "worker", str(tmp_path / "model/weights"), False, 0)))
    assert not given._sending
    digest = hashlib.sha256(b"bytes").hexdigest()
    for offset, piece, end in ((0, b"byt", ""), (1, b"yte", ""), (2, b"tes", digest), (3, b"es", digest)):
        assert given._piece(0, tmp_path / "model" / "weights", False, offset) == (piece, end, "")
    stopped: list[str] = []
    given._sending = {name: SimpleNamespace(cancel=partial(stopped.append, name)) for name in "ab"}  # type: ignore[misc]  # stand-ins for what is not used
    given.stop()
    assert stopped == ["a", "b"]


def test_host_lists_every_model_file(tmp_path: Path) -> None:
    model = tmp_path / "model"
    for name in ("b", "a/c", "d"):
        (model / name).parent.mkdir(parents=True, exist_ok=True)
        (model / name).write_bytes(name.encode())
    given = transfer.Sender(None, Disk("", None, None, "run"), [JobFiles((model, model / "b"))])  # type: ignore[arg-type]  # stand-ins for what is not used
    for path, names in ((model, ("a/c", "b", "d")), (model / "b", ("",))):
        content, digest, _ = given._piece(0, path, True, 0)
        listed = [[name, hashlib.sha256((name or "b").encode()).hexdigest()] for name in names]
        assert json.loads(content) == listed and digest == hashlib.sha256(content).hexdigest()


def test_job_results_are_written_in_file_order(tmp_path: Path) -> None:
    paths = tuple(tmp_path / name for name in ("shard", "record", "begun", "empty"))
    files, left = JobFiles(written=paths), [b"1", b"2", None, b""]
    with copied(Disk("", None, tmp_path / "cache", "run"), files, 0, "worker", lambda *_: None) as made:
        for path, content in zip(paths, left, strict=True):
            if content is not None:
                made.place(path).write_bytes(content)
        assert made.left() == left and not any(map(Path.exists, paths))
    paths[2].write_bytes(b"old")
    for _ in range(2):  # the second time, what is to be removed is not there
        files.commit(left)
        assert [path.read_bytes() if path.exists() else None for path in paths] == left
    assert paths[0].stat().st_mtime_ns <= paths[1].stat().st_mtime_ns
