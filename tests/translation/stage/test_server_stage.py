"""The stage with the engine ``server``: failures, resuming, and secrets."""

import logging
import os
import signal
import sys
from functools import partial
from pathlib import Path

import pytest

from paraforge.base.logs import configure_logging
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.store import ShardDirectory
from paraforge.translation.decoding.device import EngineError
from paraforge.translation.stage.parameters import TranslateParameters
from paraforge.translation.stage.translate import translate
from tests.interface.planning.test_plan import write_corpus
from tests.translation.engines.fake_server import (
    KEY,
    FakeServer,
    Json,
    Reply,
    choice,
    completion,
    translated,
    translation_of,
)

pytest.importorskip("openai")
SENTENCES = [f"věta číslo {number} je tady" for number in range(90)]


def run(root: Path) -> ShardDirectory:
    server = {"model": "m", "body": {"logprobs": None}, "max_retries": 0, "concurrency": 4}
    content = {"engine": "server", "sentences_per_task": 30, "server": server}
    chosen = TranslateParameters.model_validate(content)
    resources = Resources(work=root / "work")
    translate(chosen, root / "ingested", root / "no-model", root / "translated", resources)
    return ShardDirectory(root / "translated")


def usual(sentence: str, body: Json, nth: int) -> Reply:
    if sentence == SENTENCES[3]:
        return Reply(completion([choice("I'm sorry, but I can't assist with that.")]))
    return translated(sentence, body)


def test_server_stage_survives_dead_server_and_interrupt(
    server: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Finished tasks are not paid for again, and the bytes equal those of an undisturbed run."""
    write_corpus(tmp_path / "ingested", SENTENCES + SENTENCES[:5], rows=40)
    configure_logging("translate", tmp_path / "logs")
    server.behave = usual
    server.at = {80: server.die, 100: partial(os.kill, os.getpid(), signal.SIGTERM)}
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(130))
    try:
        with pytest.raises(EngineError) as error:
            run(tmp_path)
        assert error.value.exit_code == 1 and not (tmp_path / "translated").exists()
        server.start()
        with pytest.raises(SystemExit):
            run(tmp_path)
        resumed = run(tmp_path)
        # After 80 requests, one task of 30 is finished, and at most two others are under way.
        assert sum(server.asked.values()) <= 100 + 2 * 30
    finally:
        signal.signal(signal.SIGTERM, before)
        configure_logging("translate", None)
        logging.getLogger().setLevel(logging.WARNING)
    fresh = tmp_path / "fresh"
    write_corpus(fresh / "ingested", SENTENCES + SENTENCES[:5], rows=40)
    assert [record.sha256 for record in run(fresh).records] == [record.sha256 for record in resumed.records]
    rows = [row for table in resumed.tables() for row in table.to_pylist()]
    assert [row["translation"] for row in rows[:3]] == [
        translation_of(sentence) for sentence in SENTENCES[:3]
    ]
    assert (rows[3]["failed"], rows[93]["failed"]) == ("refusal", "refusal")
    settings = resumed.description["parameters"]["settings"]
    assert settings["model"] == "m" and settings["prompt"][-1]["content"] == "{sentence}"
    assert {row["translation_score"] for row in rows} == {None}
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert KEY.encode() not in path.read_bytes(), path
            assert f":{server.port}".encode() not in path.read_bytes(), path
    assert any((tmp_path / "logs").rglob("*.log"))
