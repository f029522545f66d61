"""The engine ``server`` against a server that is slow, wrong, overloaded, refuses, or dies."""

from __future__ import annotations

import email.utils
import logging
import os
import random
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from paraforge import interrupts
from paraforge.decoding.batching import EngineError
from paraforge.decoding.finished_batches import kept_batches
from paraforge.decoding.remote import client
from paraforge.decoding.translator import DecodingOptions, Hypotheses
from paraforge.engines import open_translator
from paraforge.errors import InputError, Interrupted, MissingPackageError
from tests.decoding.remote.fake_server import (
    KEY,
    FakeServer,
    Json,
    Reply,
    choice,
    completion,
    serving,
    translated,
    translation_of,
)

pytest.importorskip("openai")
SENTENCES = [f"věta {number} je tady" for number in range(40)]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeServer]:
    with serving(monkeypatch) as found:
        yield found


def translate(
    sentences: list[str] = SENTENCES, nbest: int = 1, maximum_target_tokens: int = 256, **changes: Any
) -> list[Hypotheses]:
    options = DecodingOptions(nbest=nbest, maximum_target_tokens=maximum_target_tokens)
    return list(
        open_translator("server", None, options, settings={"model": "m", **changes}).translate(sentences)
    )


def texts(results: list[Hypotheses]) -> list[str | None]:
    return [one.hypotheses[0].text if one.hypotheses else one.failed for one in results]


EXPECTED = [translation_of(sentence) for sentence in SENTENCES]


def test_an_answer_that_repeats_itself_is_marked(server: FakeServer) -> None:
    server.behave = lambda sentence, body, nth: Reply(completion([choice("he said " + "and so " * 30)]))
    (found,) = translate(["Pes spí."])
    assert [hypothesis.runaway for hypothesis in found.hypotheses] == [True]


def test_what_is_sent_and_what_comes_back(server: FakeServer) -> None:
    found = translate(["Pes spí.", "", "  "], source_language="Czech", body={"top_k": 5, "max_tokens": None})
    assert [one.hypotheses[0].text for one in found] == ["Pess spí.s", "", ""]
    best = found[0].hypotheses[0]
    assert (best.score, best.tokens, best.non_finite, best.output_truncated) == (-0.375, 2, False, False)
    (body,) = server.bodies  # nothing is asked about blanks
    assert [one["role"] for one in body.pop("messages")] == ["system", "user"]
    assert body == {"model": "m", "temperature": 0.0, "seed": 1, "logprobs": True, "top_k": 5}
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"


MISFORTUNES = [
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
    Reply(seconds=0.6),
]


@given(st.lists(st.lists(st.sampled_from(MISFORTUNES), max_size=3), min_size=40, max_size=40))
@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_sentence_gets_its_own_translation_whatever_happens(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch, misfortunes: list[list[Reply]]
) -> None:
    """One sentence in three has misfortunes before it is answered; none is lost, none is another's."""
    monkeypatch.setattr("paraforge.decoding.remote.throttle._FIRST_PAUSE", 0.01)
    monkeypatch.setattr(client, "_LONGEST_BACKOFF", 0.02)
    fate = dict(list(zip(SENTENCES, misfortunes, strict=True))[::3])
    server.asked.clear()

    def behave(sentence: str, body: Json, nth: int) -> Reply | None:
        time.sleep(random.uniform(0, 0.02))
        waiting = fate.get(sentence, [])
        return waiting[nth - 1] if nth <= len(waiting) else None

    server.behave = behave
    assert texts(translate(timeout_seconds=0.5)) == EXPECTED
    assert {one: server.asked[one] for one in SENTENCES} == {
        one: 1 + len(fate.get(one, [])) for one in SENTENCES
    }


def test_requests_at_a_time(server: FakeServer) -> None:
    server.behave = lambda sentence, body, nth: Reply(**{**vars(translated(sentence, body)), "seconds": 0.02})
    assert texts(translate(SENTENCES * 3, concurrency=7)) == EXPECTED * 3
    assert 5 <= server.most_under_way <= 7


def test_an_overloaded_server_is_asked_less(server: FakeServer) -> None:
    """It answers 3 requests at a time and refuses others: nothing fails, and most are answered at once."""
    server.behave = lambda sentence, body, nth: (
        Reply("", 429, {"Retry-After": "0.05"})
        if server.under_way > 3
        else Reply(**{**vars(translated(sentence, body)), "seconds": 0.01})
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
        (Reply(seconds=0.3), "no answer within 0.2 s"),
    ],
)
def test_a_sentence_on_which_the_server_fails_fails_alone(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch, reply: Reply, said: str
) -> None:
    monkeypatch.setattr("paraforge.decoding.remote.throttle._FIRST_PAUSE", 0.01)
    monkeypatch.setattr(client, "_LONGEST_BACKOFF", 0.02)
    server.behave = lambda sentence, body, nth: reply if sentence == SENTENCES[7] else None
    # The longest is asked first, so the server has answered others before the bad one only in the second run.
    for sentences in (SENTENCES, [*SENTENCES, SENTENCES[7]]):
        found = texts(translate(sentences, timeout_seconds=0.2, concurrency=3))
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


@pytest.mark.parametrize("reply", [Reply("boom", 500), Reply("", 503), Reply(seconds=0.2), Reply("{bad")])
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
    monkeypatch.setattr("paraforge.decoding.remote.throttle._FIRST_PAUSE", 0.01)

    def behave(sentence: str, body: Json, nth: int) -> None:
        if len(server.bodies) == 20:
            threading.Thread(target=server.die).start()
            time.sleep(0.1)

    server.behave = behave
    path = tmp_path / "unfinished"
    with pytest.raises(EngineError), kept_batches(path):
        translate(patience_seconds=0.5, concurrency=4)
    assert path.exists()
    before = sum(server.asked.values())
    assert 15 <= before <= 28
    server.behave = lambda sentence, body, nth: None
    server.start()
    with kept_batches(path):
        assert texts(translate(concurrency=4)) == EXPECTED
    # Only what was under way when it died is asked for twice.
    assert sum(server.asked.values()) <= len(SENTENCES) + 8


def test_a_short_death_is_waited_for(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paraforge.decoding.remote.throttle._FIRST_PAUSE", 0.05)

    def behave(sentence: str, body: Json, nth: int) -> None:
        if len(server.bodies) == 20:
            server.die()
            threading.Timer(0.7, server.start).start()

    server.behave = behave
    assert texts(translate()) == EXPECTED


def test_an_interrupt_keeps_what_was_answered(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stop = threading.Event()
    monkeypatch.setattr(interrupts, "_stop", stop)

    def behave(sentence: str, body: Json, nth: int) -> Reply:
        if len(server.bodies) == 20:
            stop.set()
        return Reply(**{**vars(translated(sentence, body)), "seconds": 0.02})

    server.behave = behave
    path = tmp_path / "unfinished"
    with pytest.raises(Interrupted), kept_batches(path):
        translate(concurrency=4)
    answered = sum(server.asked.values())
    assert answered <= 24  # nothing new was begun
    stop.clear()
    with kept_batches(path):
        assert texts(translate(concurrency=4)) == EXPECTED
    assert sum(server.asked.values()) == len(SENTENCES)


def test_samples_are_ranked_and_asked_for_until_there_are_enough(server: FakeServer) -> None:
    """Each request brings two of the four answers that are asked for, or fewer."""
    answers = [choice("one", [-1.0]), choice("two", [-0.5]), choice("one", [-1.0]), choice("", [-0.1])]

    def behave(sentence: str, body: Json, nth: int) -> Reply:
        return Reply(completion(answers[2 * (nth - 1) : 2 * nth]))

    server.behave = behave
    (found,) = translate(["věta"], nbest=3, temperature=1.0, samples=4)
    assert [(one.text, one.score) for one in found.hypotheses] == [("two", -0.5), ("one", -1.0)]
    assert [(body.get("n"), body["seed"]) for body in server.bodies] == [(4, 1), (2, 3)]


def test_answers_that_are_no_translations_fail_with_the_reason(
    server: FakeServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    said = {
        "a": "I'm sorry, but I can't assist with that.",
        "b": "Translation: something",
        "c": "",
        "d": "one two three four five six seven",
    }
    server.behave = lambda sentence, body, nth: Reply(
        completion([choice(said[sentence], None, "length" if sentence == "d" else "stop")])
    )
    a, b, c, d = translate(list(said))
    assert (a.failed, b.failed) == ("refusal", "explanation")
    assert said["a"] in caplog.text and said["b"] in caplog.text
    assert c.hypotheses[0].empty and d.hypotheses[0].output_truncated


def test_a_source_that_is_too_long_is_cut_and_marked(server: FakeServer) -> None:
    options = DecodingOptions(maximum_source_tokens=4)
    translator = open_translator("server", None, options, settings={"model": "m"})
    found = list(translator.translate(["dlouhá věta, která", "věta."]))
    assert [one.source_truncated for one in found] == [True, False]
    assert set(server.asked) == {"dlouhá věta,", "věta."}


def test_the_fingerprint_is_of_what_decides_a_translation(monkeypatch: pytest.MonkeyPatch) -> None:
    def fingerprint(options: DecodingOptions = DecodingOptions(), **changes: Any) -> str:
        return open_translator("server", None, options, settings={"model": "m", **changes}).fingerprint

    monkeypatch.setenv("PARAFORGE_SERVER_URL", "http://one/v1")
    first = fingerprint()
    monkeypatch.setenv("PARAFORGE_SERVER_URL", "http://two/v1")
    monkeypatch.setenv("OTHER", "http://three/v1")
    same = [
        fingerprint(url_variable="OTHER", key_variable="OTHER", concurrency=3),
        fingerprint(timeout_seconds=1, patience_seconds=1),
        fingerprint(DecodingOptions(beam=4, length_penalty=0.5)),
        fingerprint(user="{sentence}", examples=[]),
    ]
    assert set(same) == {first}
    other = [
        fingerprint(model="n"),
        fingerprint(source_language="Czech"),
        fingerprint(target_language="German"),
        fingerprint(system="Translate."),
        fingerprint(user="Czech: {sentence}"),
        fingerprint(examples=[{"source": "a", "translation": "b"}]),
        fingerprint(temperature=0.5),
        fingerprint(top_p=0.5),
        fingerprint(seed=2),
        fingerprint(logprobs=False),
        fingerprint(body={"top_k": 1}),
        fingerprint(DecodingOptions(maximum_target_tokens=9)),
    ]
    assert len({first, *other}) == len(other) + 1


@pytest.mark.parametrize(
    "value", [None, "", "localhost:8000", "ftp://localhost", "http://[::1", "http://a:b/v1"]
)
def test_no_address(monkeypatch: pytest.MonkeyPatch, value: str | None) -> None:
    monkeypatch.delenv("PARAFORGE_SERVER_URL", raising=False)
    if value is not None:
        monkeypatch.setenv("PARAFORGE_SERVER_URL", value)
    with pytest.raises(InputError, match="Set PARAFORGE_SERVER_URL") as error:
        translate()
    assert not value or value not in str(error.value).replace("http://localhost:8000/v1", "")


@pytest.mark.parametrize("key", ["klíč", "two\nlines"])
def test_no_key(server: FakeServer, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(InputError, match="OPENAI_API_KEY is no key") as error:
        translate()
    assert key not in str(error.value) and not server.bodies


@pytest.mark.parametrize(
    "usage", [None, [], {"prompt_tokens": "many", "completion_tokens": -3}, {"prompt_tokens": None}]
)
def test_tokens_that_are_not_counted(server: FakeServer, usage: Any) -> None:
    server.behave = lambda sentence, body, nth: Reply({**completion([choice("A dog.")]), "usage": usage})
    assert texts(translate(["Pes."])) == ["A dog."]


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(MissingPackageError, match=r"paraforge\[server\]"):
        translate()


def test_neither_address_nor_key_is_logged(server: FakeServer, caplog: pytest.LogCaptureFixture) -> None:
    server.behave = lambda sentence, body, nth: Reply(f"{KEY} at {server.url}", 500) if nth < 3 else None
    with caplog.at_level(logging.INFO):
        assert texts(translate(SENTENCES[:4])) == EXPECTED[:4]
    assert "input and" in caplog.text
    assert KEY not in caplog.text and str(server.port) not in caplog.text
    assert os.environ["OPENAI_API_KEY"] == KEY
