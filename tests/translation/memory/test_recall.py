"""Lookups of sentences by key, against a dictionary."""

import multiprocessing
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from paraforge.translation.decoding.translator import Hypotheses, Hypothesis
from paraforge.translation.memory import recall as looking_up
from paraforge.translation.memory.memory import HypothesisRows, open_set
from paraforge.translation.memory.recall import recall


def _killed_look_up(*arguments: Any) -> None:
    query = looking_up.run_query

    def killed(*content: Any) -> Path:
        query(*content)
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError

    looking_up.run_query = killed
    recall(*arguments)


def test_sentences_are_found_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dice = np.random.default_rng(7)
    pool = dice.integers(0, 2**64, (90, 2), np.uint64)
    pool[:30, 0] = pool[0, 0]  # other keys with the same first half
    given = open_set(tmp_path / "memory", {})
    first: dict[int, int] = {}
    late: dict[int, int] = {}
    base = 0
    for table in range(5):
        rows = HypothesisRows()
        numbers = dice.permutation(90)[:20].tolist()
        for place, number in enumerate(numbers):
            failed = number % 7 == 0
            rows.add(Hypotheses((), failed="no") if failed else Hypotheses((Hypothesis("a", -1.0, 2),)))
            (late if failed else first).setdefault(number, base + place)
        made = rows.table(pa.array([f"{table} {number}" for number in numbers]))
        keys = pa.array([pool[number].astype(">u8").tobytes() for number in numbers], pa.binary(16))
        given.add([(made.set_column(0, "key", keys), {})], str(table))
        base += len(numbers)
    wanted = dice.integers(0, 90, 150).tolist()
    pool[wanted].astype("<u8").tofile(tmp_path / "keys.bin")
    known = {**{number: 100 + row for number, row in late.items()}, **first}
    places = [known.get(number, -1) for number in wanted]
    segments = given.segments()
    monkeypatch.setattr(looking_up, "_BLOCK", 16)
    arguments = (
        tmp_path / "keys.bin",
        segments,
        [segment.digest for segment in segments],
        tmp_path / "recall",
    )
    killed = multiprocessing.get_context("forkserver").Process(target=_killed_look_up, args=arguments)
    killed.start()
    killed.join()
    assert killed.exitcode == -signal.SIGKILL
    for _ in range(2):  # over what the killed one has left, and over what is finished
        here = recall(*arguments)
        assert here.places.tolist() == places
        unknown = [place for place, number in enumerate(wanted) if number not in known]
        assert here.unknown.tolist() == [row for row in unknown if wanted.index(wanted[row]) == row]
        assert here.failed == sum(place >= 100 for place in places)
        assert [here.made_by(str(table)) for table in range(5)] == [
            sum(place >= 0 and place % 100 // 20 == table for place in places) for table in range(5)
        ]
        assert here.needed() == segments
        assert sorted(path.name for path in (tmp_path / "recall").iterdir()) == ["places.bin", "unknown.bin"]
    # A failure that does not count is no knowledge.
    again = recall(*arguments[:2], [], *arguments[3:])
    assert again.places.tolist() == [first.get(number, -1) for number in wanted]
