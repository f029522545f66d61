"""A shard that was stopped continues behind its last finished batch, with the same results."""

import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from paraforge.base import interrupts
from paraforge.base.errors import Interrupted
from paraforge.base.files import hash_json
from paraforge.translation.decoding.batching import translate_in_batches
from paraforge.translation.decoding.finished_batches import kept_batches
from paraforge.translation.decoding.translator import Hypotheses
from tests.here import Countdown
from tests.translation.decoding.test_batching import Upper

SENTENCES = [" ".join(["word"] * (number % 7)) + f" {number}" for number in range(60)]


@pytest.fixture
def stop_after(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    def stop(looks: int) -> None:
        monkeypatch.setattr(interrupts, "_stop", Countdown(looks))

    return stop


def translate(engine: Upper, path: Path) -> list[Hypotheses]:
    with kept_batches(path):
        return list(translate_in_batches(engine, SENTENCES, 25))


@pytest.mark.parametrize("queued", [1, 4])
def test_no_batch_is_translated_twice(tmp_path: Path, stop_after: Callable[[int], None], queued: int) -> None:
    whole = Upper(12, queued)
    expected = list(translate_in_batches(whole, SENTENCES, 25))
    path = tmp_path / "unfinished"
    engines = []
    for looks in (3, 8, 14, 1_000_000):
        stop_after(looks)
        engine = Upper(12, queued)
        engines.append(engine)
        if looks < 1000:
            with pytest.raises(Interrupted):
                translate(engine, path)
            assert engine.batches and path.exists()
        else:
            assert translate(engine, path) == expected
    done = [batch for engine in engines for batch in engine.batches]
    assert sorted(map(tuple, done)) == sorted(map(tuple, whole.batches))


@pytest.mark.parametrize("damage", ["", "{}", "0" * 64 + "\n{}", "\n\n"])
def test_what_is_damaged_is_translated_again(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "unfinished"
    path.write_text(damage)
    engine = Upper(12)
    assert translate(engine, path) == list(translate_in_batches(Upper(12), SENTENCES, 25))
    assert sum(map(len, engine.batches)) == len(SENTENCES)


def test_other_batches_are_translated_anew(tmp_path: Path, stop_after: Callable[[int], None]) -> None:
    """Beside other sentences one might come out with another rounding."""
    path = tmp_path / "unfinished"
    stop_after(3)
    with pytest.raises(Interrupted):
        translate(Upper(12), path)
    stop_after(1_000_000)
    engine = Upper(30)
    translate(engine, path)
    assert sum(map(len, engine.batches)) == len(SENTENCES)


def test_a_killed_run_finds_what_was_saved_on_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of the process is asked at its end; only the batch after the last one saved is lost."""
    monkeypatch.setattr("paraforge.translation.decoding.finished_batches._SAVE_SECONDS", 0.0)
    path = tmp_path / "unfinished"
    with kept_batches(path):
        stream = translate_in_batches(Upper(12), SENTENCES, 25)
        next(stream)
        left = path.read_bytes()
    path.write_bytes(left)
    engine = Upper(12)
    assert translate(engine, path) == list(translate_in_batches(Upper(12), SENTENCES, 25))
    assert 0 < sum(map(len, engine.batches)) <= len(SENTENCES) - 24


def test_what_other_versions_have_done_is_not_used(tmp_path: Path, stop_after: Callable[[int], None]) -> None:
    whole = Upper(12)
    list(translate_in_batches(whole, SENTENCES, 25))
    path = tmp_path / "unfinished"

    def run(number: str, looks: int) -> int:
        """Batches that were translated."""
        engine = Upper(12)
        stop_after(looks)
        with suppress(Interrupted), kept_batches(path, libraries={"ctranslate2": number}):
            list(translate_in_batches(engine, SENTENCES, 25))
        return len(engine.batches)

    begun = run("4.5", 8)
    assert 0 < begun < len(whole.batches)
    assert run("4.6", 1_000_000) == len(whole.batches)
    path.unlink(missing_ok=True)
    begun = run("4.5", 8)
    assert run("4.5", 1_000_000) == len(whole.batches) - begun


def test_failures_of_an_earlier_format_are_not_believed(tmp_path: Path) -> None:
    """It kept as failures what a lost engine had never looked at."""
    path = tmp_path / "unfinished"
    failures = {hash_json([sentence]): [[[], False, "RuntimeError: CUDA failed"]] for sentence in SENTENCES}
    content = json.dumps(failures).encode()
    path.write_bytes(hashlib.sha256(content).hexdigest().encode() + b"\n" + content)
    assert all(result.failed is None for result in translate(Upper(1), path))
