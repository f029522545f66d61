"""The engine ``server`` against a server that is slow, wrong, overloaded, refuses, or dies."""

import dataclasses
import email.utils
import math
import random
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from paraforge.base import interrupts
from paraforge.base.errors import InputError, Interrupted
from paraforge.translation.decoding.faults import EngineError
from paraforge.translation.decoding.finished_batches import kept_batches
from paraforge.translation.decoding.remote import client
from paraforge.translation.decoding.remote.settings import Server
from tests.translation.decoding.remote.fake_server import (
    EXPECTED,
    KEY,
    SENTENCES,
    FakeServer,
    Json,
    Reply,
    texts,
    translate,
    translated,
    translation_of,
)

pytest.importorskip("openai")
NEVER = Reply(seconds=math.inf)
FAILURES = [
    Reply("boom", 500),
    Reply({"error": {"message": "slow down"}}, 429),
    Reply("", 429, {"Retry-After": "0.05"}),
    Reply("", 429, {"Retry-After": "soon"}),
    Reply("", 503, {"retry-after-ms": "20"}),
    Reply("", 503, {"Retry-After": email.utils.formatdate(usegmt=True)}),
    Reply("", 502),
    Reply("{bad"),
    Reply("<html>", headers={"Content-Type": "text/html"}),
    Reply("null"),
    Reply("[]"),
    Reply({"choices": []}),
    Reply({"choices": None}),
    Reply({"choices": [{"index": 0}]}),
    Reply({"choices": ["text"]}),
    Reply({"error": "all wrong"}),
    Reply(status=0),
    NEVER,
]


@pytest.fixture
def tries(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each sentence was sent.

    What is never answered is waited for briefly, all else for as long as the settings say: whatever the speed
    of the machine, nothing else is late.
    """
    found: Counter[str] = Counter()
    send = client.Client._send
    brief = client.Client(Server(model="m", timeout_seconds=0.2))

    def sent(self: client.Client, body: Json) -> Any:
        sentence = body["messages"][-1]["content"]
        with server.lock:
            found[sentence] += 1
            attempt = found[sentence]
        never = server.behave(sentence, body, attempt) is NEVER
        return send(brief if never else self, {**body, "attempt": attempt})

    monkeypatch.setattr(client.Client, "_send", sent)
    return found


@given(st.lists(st.lists(st.sampled_from(FAILURES), max_size=3), min_size=40, max_size=40))
@settings(max_examples=4, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_sentence_gets_its_own_translation_whatever_happens(
    server: FakeServer, tries: Counter[str], monkeypatch: pytest.MonkeyPatch, failures: list[list[Reply]]
) -> None:
    """One sentence in three has failures before it is answered; none is lost, none is another's."""
    monkeypatch.setattr("paraforge.translation.decoding.remote.throttle._FIRST_PAUSE", 0.01)
    monkeypatch.setattr(client, "_LONGEST_BACKOFF", 0.02)
    fate = dict(list(zip(SENTENCES, failures, strict=True))[::3])
    tries.clear()

    def behave(sentence: str, body: Json, nth: int) -> Reply:
        waiting = fate.get(sentence, [])
        if nth <= len(waiting):
            return waiting[nth - 1]
        return dataclasses.replace(translated(sentence, body), seconds=random.uniform(0, 0.02))

    server.behave = behave
    assert texts(translate()) == EXPECTED
    assert {one: tries[one] for one in SENTENCES} == {one: 1 + len(fate.get(one, [])) for one in SENTENCES}


def test_an_overloaded_server_is_asked_less(server: FakeServer) -> None:
    """It answers 3 requests at a time and refuses others: nothing fails, and most are answered at once."""
    server.behave = lambda sentence, body, nth: (
        Reply("", 429, {"Retry-After": "0.05"})
        if server.under_way > 3
        else dataclasses.replace(translated(sentence, body), seconds=0.01)
    )
    sentences = [f"věta {number} tady" for number in range(200)]
    assert texts(translate(sentences)) == [translation_of(one) for one in sentences]
    assert len(server.bodies) < 300


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (Reply({"error": {"message": "this is too long"}}, 400), "HTTP 400"),
        (Reply("", 413), "HTTP 413"),
        (Reply({"error": {"message": "flagged"}}, 403), "HTTP 403"),
        (Reply("boom", 500), "HTTP 500"),
        (Reply("{bad"), "its answer is not JSON"),
        (Reply({"choices": []}), "its answer has no choices"),
        (NEVER, "no answer within 0.2 s"),
    ],
)
@pytest.mark.usefixtures("tries")
def test_a_sentence_on_which_the_server_fails_fails_alone(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch, reply: Reply, said: str
) -> None:
    monkeypatch.setattr("paraforge.translation.decoding.remote.throttle._FIRST_PAUSE", 0.01)
    monkeypatch.setattr(client, "_LONGEST_BACKOFF", 0.02)
    server.behave = lambda sentence, body, nth: reply if sentence == SENTENCES[7] else None
    # The longest is asked first, so the server has answered others before the bad one only in the second run.
    for sentences in (SENTENCES, [*SENTENCES, SENTENCES[7]]):
        found = texts(translate(sentences, concurrency=3))
        assert found[:7] + found[8:40] == EXPECTED[:7] + EXPECTED[8:]
        assert all(found[place] == said for place in (7, *range(40, len(sentences))))


@pytest.mark.parametrize("alone", [Reply({"error": {"message": "too long"}}, 400), Reply("boom", 500)])
def test_the_only_sentence_fails_only_if_the_server_answers_another(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch, alone: Reply
) -> None:
    monkeypatch.setattr(client, "_LONGEST_BACKOFF", 0.02)
    server.behave = lambda sentence, body, nth: alone if sentence == "bad" else None
    assert texts(translate(["bad"])) == [f"HTTP {alone.status}"]


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (Reply({"error": {"message": f"Incorrect key {KEY}"}}, 401), "Check the key in OPENAI_API_KEY"),
        (Reply({"error": {"message": "Incorrect key sk-very*****89."}}, 401), "Check the key"),
        (Reply({"error": {"message": "not for you"}}, 403), "Check the key in OPENAI_API_KEY"),
        (Reply({"error": {"message": "no model m"}}, 404), "ends in /v1. It serves the-model."),
        (Reply("", 402), "paid for"),
        (Reply({"error": {"message": "quota", "code": "insufficient_quota"}}, 429), "paid for"),
        (Reply({"error": {"message": "logprobs unknown"}}, 400), "logprobs: false"),
        (Reply({"error": {"message": "n must be 1"}}, 422), "translate.server"),
    ],
)
def test_what_will_never_work_stops_at_once(server: FakeServer, reply: Reply, said: str) -> None:
    server.behave = lambda sentence, body, nth: reply
    with pytest.raises(InputError) as error:
        translate()
    text = str(error.value)
    assert said in text and error.value.exit_code == 2
    assert KEY not in text and "sk-very" not in text and str(server.port) not in text
    assert len(server.bodies) <= 16


def test_a_server_without_a_key_asks_for_one(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    server.behave = lambda sentence, body, nth: Reply({"error": "who are you?"}, 401)
    with pytest.raises(InputError, match="Set OPENAI_API_KEY to a key"):
        translate()


def test_a_server_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_CONNECT_SECONDS", 0.5)
    monkeypatch.setenv("PARAFORGE_SERVER_URL", "http://127.0.0.1:9/v1")
    with pytest.raises(EngineError) as error:
        translate()
    assert "$PARAFORGE_SERVER_URL" in str(error.value) and "refused" in str(error.value)
    assert "127.0.0.1" not in str(error.value)


@pytest.mark.parametrize("reply", [Reply("boom", 500), Reply("", 503), NEVER, Reply("{bad")])
def test_a_server_that_only_fails_stops_the_run(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch, reply: Reply
) -> None:
    monkeypatch.setattr(client, "_LONGEST_BACKOFF", 0.02)
    server.behave = lambda sentence, body, nth: reply
    with pytest.raises(EngineError, match="Nothing is lost"):
        translate(patience_seconds=0.5, timeout_seconds=0.1)


def test_a_wait_beyond_patience_is_not_waited_for(server: FakeServer) -> None:
    server.behave = lambda sentence, body, nth: Reply("", 429, {"Retry-After": "86400"})
    with pytest.raises(EngineError, match="it asks to wait 86400 s"):
        translate()


def test_a_server_that_dies_and_comes_back_loses_nothing(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Killed in the middle, the run stops; the next one asks only for what was not answered."""
    monkeypatch.setattr("paraforge.translation.decoding.remote.throttle._FIRST_PAUSE", 0.01)
    server.at[20] = server.die
    path = tmp_path / "unfinished"
    with pytest.raises(EngineError), kept_batches(path):
        translate(patience_seconds=0.5, concurrency=4)
    assert path.exists()
    assert sum(server.asked.values()) == 20
    server.start()
    with kept_batches(path):
        assert texts(translate(concurrency=4)) == EXPECTED
    # Only what was under way when it died is asked for twice.
    assert len(SENTENCES) < sum(server.asked.values()) <= len(SENTENCES) + 4


@pytest.mark.parametrize("reply", [Reply("boom", 500), Reply("", 413), Reply("{bad"), Reply({"choices": []})])
@pytest.mark.parametrize("answered", [0, 7, 20, 39])
def test_a_server_that_begins_to_fail_on_everything_fails_no_sentence(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, reply: Reply, answered: int
) -> None:
    """What it answered to others while it was asked for a sentence proves nothing of what came after."""
    monkeypatch.setattr(client, "_LONGEST_BACKOFF", 0.02)

    def behave(sentence: str, body: Json, nth: int) -> Reply:
        late = sum(server.asked.values()) > answered
        # The last of those that are well answered come after the first of the others.
        return reply if late else dataclasses.replace(translated(sentence, body), seconds=0.05)

    server.behave = behave
    path = tmp_path / "unfinished"
    with pytest.raises((EngineError, InputError)), kept_batches(path):
        translate(patience_seconds=0.5, concurrency=8)
    server.behave = lambda sentence, body, nth: None
    with kept_batches(path):
        assert texts(translate(concurrency=4)) == EXPECTED


def test_a_short_death_is_waited_for(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paraforge.translation.decoding.remote.throttle._FIRST_PAUSE", 0.05)

    def die_briefly() -> None:
        server.die()
        threading.Timer(0.7, server.start).start()

    server.at[20] = die_briefly
    assert texts(translate()) == EXPECTED


def test_an_interrupt_keeps_what_was_answered(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stop = threading.Event()
    monkeypatch.setattr(interrupts, "_stop", stop)
    server.at[20] = stop.set
    server.behave = lambda sentence, body, nth: dataclasses.replace(translated(sentence, body), seconds=0.02)
    path = tmp_path / "unfinished"
    with pytest.raises(Interrupted), kept_batches(path):
        translate(concurrency=4)
    assert 20 <= sum(server.asked.values()) < 24  # nothing new was begun
    stop.clear()
    with kept_batches(path):
        assert texts(translate(concurrency=4)) == EXPECTED
    assert sum(server.asked.values()) == len(SENTENCES)
