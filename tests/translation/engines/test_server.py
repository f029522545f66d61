"""The engine ``server``: requests, answers, options, and secrets."""

import dataclasses
import logging
import math
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from paraforge.base.errors import InputError, MissingPackageError
from paraforge.base.files import hash_json
from paraforge.base.shards.resources import Resources
from paraforge.translation.decoding.device import EngineError
from paraforge.translation.decoding.server import best_answers, read_answer
from paraforge.translation.decoding.translator import DecodingOptions, Hypotheses, Hypothesis, Usage
from paraforge.translation.engines import open_translator
from paraforge.translation.engines.server import _Requests
from paraforge.translation.stage.sentences import choose_engine
from tests.translation.engines.fake_server import (
    EXPECTED,
    KEY,
    SENTENCES,
    FakeServer,
    Json,
    Reply,
    choice,
    completion,
    texts,
    translate,
    translated,
)

pytest.importorskip("openai")
OPTIONS = DecodingOptions.model_fields


def answered(server: FakeServer, answer: Json, **options: Any) -> Hypotheses:
    """Return the result of a sentence with one answer."""
    server.behave = lambda sentence, body, nth: Reply(completion([answer]))
    (found,) = translate(["Pes spí."], **options)
    return found


_PARTS = [{"type": "text", "text": "The dog "}, {"type": "thinking"}, {"type": "text", "text": "sleeps."}]


@pytest.mark.parametrize(
    ("answer", "text", "marks"),
    [
        (choice("he said" + " and so" * 30), "he said" + " and so" * 30, {"runaway"}),
        (choice(None, content=_PARTS), "The dog sleeps.", set()),
        (choice(""), "", {"empty"}),
        (choice("one two three four", reason="length"), "one two three four", {"output_truncated"}),
        *((choice("The dog.", reason=reason), "The dog.", set()) for reason in ("eos", "")),
        (choice('"The dog."'), "The dog.", set()),
        (choice("„The dog.“"), "The dog.", set()),
        (choice('"\nThe dog.\n"'), "The dog.", set()),
        *((choice(text), text, set()) for text in ('"A" or "the"', "«A» dog»", "„A „dog“", '""')),
        *(
            (choice(f"{before}The dog.", [-1.0]), "The dog.", set())
            for before in ("<think>Hm.</think> ", "Hm.\nSo.</think>\n\n")
        ),
        (choice("<think>Hm.", reason="length"), "", {"empty", "output_truncated"}),
    ],
)
def test_translations_from_answers(server: FakeServer, answer: Json, text: str, marks: set[str]) -> None:
    (found,) = answered(server, answer).hypotheses
    assert found.text == text and math.isnan(found.score)  # without the reasoning, the score is not known
    names = ("runaway", "empty", "output_truncated", "non_finite")
    assert {name for name in names if getattr(found, name)} == marks


@pytest.mark.parametrize("text", ['"The dog."', "two\nlines", "I can't translate that."])
def test_marks_of_source_are_allowed_in_answer(text: str) -> None:
    found, fault = read_answer(choice(text), f" {text}\n")
    assert (found.text, found.tokens, fault) == (" ".join(text.split()), len(text.split()) + 1, None)
    assert read_answer(choice(f"{text}\nmore"), f" {text}\n")[1] == "several lines"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (choice("I'm sorry, but I can't assist with that."), "refusal"),
        (choice("The dog.", refusal="No."), "refusal"),
        (choice("The dog.", reason="content_filter"), "refusal"),
        (choice("two\nlines"), "several lines"),
    ],
)
def test_unusable_answer_fails_with_reason(
    server: FakeServer, answer: Json, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    assert answered(server, answer).failed == reason
    assert str(answer["message"]["content"])[:3] in caplog.text


def test_request_and_response_of_server(server: FakeServer) -> None:
    found = translate(["Pes spí.", "", "  "], source_language="Czech", body={"top_k": 5, "max_tokens": None})
    assert [result.hypotheses[0].text for result in found] == ["Pess spí.s", "", ""]
    best = found[0].hypotheses[0]
    assert (best.score, best.tokens, best.non_finite, best.output_truncated) == (-0.375, 2, False, False)
    (body,) = server.bodies  # nothing is asked about blanks
    assert [one["role"] for one in body.pop("messages")] == ["system", "user"]
    assert body == {"model": "m", "temperature": 0.0, "seed": 1, "logprobs": True, "top_k": 5}
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    chosen = {"temperature": 0.5, "max_tokens": 7, "seed": 8, "logprobs": None}
    translate(["Pes."], body=chosen)
    assert {name: server.bodies[1].get(name) for name in chosen} == chosen
    translate(["Pes."])
    assert server.bodies[2]["max_tokens"] == OPTIONS["maximum_target_tokens"].default


def test_answered_requests_are_released() -> None:
    with ThreadPoolExecutor(1) as pool:
        requests = _Requests(pool, lambda sentence: (Hypothesis(sentence, 0.0, 1),), DecodingOptions(), 1)
        wait = requests.submit(requests.encode(["a", "b"]))
        assert len(requests.open) == 2
        assert [one.text for (one,) in wait()] == ["a", "b"] and not requests.open


def test_concurrent_requests_are_limited(server: FakeServer) -> None:
    """After some answers, the server waits until seven requests are open before it answers any."""
    seven = threading.Event()

    def behave(sentence: str, body: Json, nth: int) -> Reply:
        if server.under_way >= 7:
            seven.set()
        if len(server.bodies) > 20:
            seven.wait(60)
            seven.set()  # or all the others would wait as long
        return dataclasses.replace(translated(sentence, body), seconds=0.02)

    server.behave = behave
    assert texts(translate(SENTENCES * 3, concurrency=7)) == EXPECTED * 3
    assert server.most_under_way == 7


def test_abandoned_requests_are_not_sent(server: FakeServer) -> None:
    """Each request may cost money."""
    ended = threading.Event()

    def behave(sentence: str, body: Json, nth: int) -> Reply:
        if len(server.bodies) > 1:
            ended.wait(60)
        return Reply("no key", 401)

    server.behave = behave
    translator = open_translator("server", None, DecodingOptions(), settings={"model": "m", "concurrency": 1})
    with pytest.raises(InputError, match="Check the key"):
        list(translator.translate(SENTENCES))
    ended.set()
    translator._threads.shutdown()
    assert len(server.bodies) <= 2  # the second may be under way


def test_samples_are_requested_until_enough_and_ranked(server: FakeServer) -> None:
    """Each request returns two answers, whether three or one are requested."""
    answers = [choice("one", [-1.0]), choice("", [-0.1]), choice("two", [-0.5]), choice("three", [-0.2])]

    def behave(sentence: str, body: Json, nth: int) -> Reply:
        return Reply(completion(answers[2 * (nth - 1) : 2 * nth]))

    server.behave = behave
    (found,) = translate(["věta"], nbest=3, temperature=1.0)
    assert [(hypothesis.text, hypothesis.score) for hypothesis in found.hypotheses] == [
        ("two", -0.5),
        ("one", -1.0),
    ]
    assert [(body.get("n"), body["seed"]) for body in server.bodies] == [(3, 1), (None, 3)]


@pytest.mark.parametrize("last", [Reply("no", 400), Reply({})])
def test_answers_before_refusal_are_kept(server: FakeServer, last: Reply) -> None:
    server.behave = lambda sentence, body, nth: (
        Reply(completion([choice(f"answer {nth}")])) if nth < 3 or sentence == "1" else last
    )
    (found,) = translate(["věta"], nbest=4, temperature=1.0)
    assert [hypothesis.text for hypothesis in found.hypotheses] == ["answer 1", "answer 2"]
    assert server.asked["věta"] == (3 if last.status == 400 else 4) and [
        body["n"] for body in server.bodies[:3]
    ] == [4, 3, 2]


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([("a", -1.0), ("a", -0.5), ("a", -0.9), ("b", -0.7)], [("a", -0.5), ("b", -0.7)]),
        ([("one", None), ("two", -0.5), ("two", -0.1)], [("two", -0.1), ("one", None)]),  # by frequency
    ],
)
def test_equal_answers_are_merged(answers: list[Any], expected: list[Any]) -> None:
    given = [Hypothesis(text, math.nan if score is None else score, 1) for text, score in answers]
    found = best_answers([(one, None) for one in given])
    assert [(one.text, None if math.isnan(one.score) else one.score) for one in found] == expected


def test_server_cuts_and_marks_long_source(server: FakeServer) -> None:
    options = DecodingOptions(maximum_source_tokens=4)
    translator = open_translator("server", None, options, settings={"model": "m"})
    found = list(translator.translate(["dlouhá věta, která", "věta, a."]))
    assert [result.source_truncated for result in found] == [True, False]
    assert set(server.asked) == {"dlouhá věta,", "věta, a."}  # four tokens each


def test_memory_key_covers_server_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    def described(address: str = "http://two/v1", **changes: Any) -> str:
        monkeypatch.setenv("PARAFORGE_SERVER_URL", address)
        options = DecodingOptions(**{name: changes.pop(name) for name in OPTIONS if name in changes})
        choice = choose_engine("server", Path(), options, {"model": "m", **changes}, Resources())
        return hash_json(choice.description())

    first = described("http://one/v1")
    same: list[Json] = [
        *({"concurrency": 3}, {"timeout_seconds": 1, "max_retries": 1}, {"user": "{sentence}"}),
        {"beam": 4, "length_penalty": 0.5},
    ]
    other: list[Json] = [{"model": "n"}, {"user": "Czech: {sentence}"}, {"maximum_target_tokens": 9}]
    assert {described(**change) for change in same} == {first}
    assert len({first, *(described(**change) for change in other)}) == len(other) + 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"user": "Translate."}, "{sentence} is missing"),
        ({"user": "{sentence} {language}"}, "unknown placeholder {language}; use {source_language}"),
        ({"user": "{sentence.__class__}"}, "unknown placeholder {sentence.__class__}"),
        ({"user": "{sentence:>9999}"}, "unknown placeholder {sentence}"),
        ({"system": "Translate {sentence}."}, "unknown placeholder {sentence}; use {source_language}"),
        ({"system": "One { brace"}, "write a literal brace twice"),
        ({"user": "{source_language}: {sentence}"}, "source_language is missing"),
        ({"system": "From {source_language}."}, "source_language is missing"),
        ({"body": {"n": 2}}, "the engine sets this itself"),
        ({"top_p": 0.5}, "has no setting top_p"),
    ],
)
def test_contradictory_server_settings(server: FakeServer, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        translate(**changes)


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        *(
            ("SERVER_URL", one, "Set PARAFORGE_SERVER_URL")
            for one in ("", "localhost:80", "ftp://localhost", "http:///v1", "http://[::1/v1", "http://:1/v1")
        ),
        *(("API_KEY", one, "OPENAI_API_KEY is not a valid key") for one in ("klíč", "two\nlines")),
    ],
)
def test_missing_address_or_key_of_server(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, message: str
) -> None:
    name = f"{'OPENAI' if 'KEY' in variable else 'PARAFORGE'}_{variable}"
    monkeypatch.setenv(name, value) if value else monkeypatch.delenv(name)
    with pytest.raises(InputError, match=message) as error:
        translate()
    assert not value or value not in str(error.value).replace("http://localhost:8000/v1", "")
    assert not server.bodies


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        ({"prompt_tokens": 50, "completion_tokens": 10}, (150, 30)),
        *((one, (0, 0)) for one in (None, [], {"prompt_tokens": None})),
    ],
)
def test_usage_counts_all_requests(
    server: FakeServer, usage: Any, counted: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only one thread counts at a time."""
    server.behave = lambda sentence, body, nth: Reply({**completion([choice("A dog.")]), "usage": usage})
    translator = open_translator("server", None, DecodingOptions(), settings={"model": "m"})

    def count(self: Usage, name: str, value: int) -> None:
        assert translator._client._lock.locked()
        object.__setattr__(self, name, value)

    monkeypatch.setattr(Usage, "__setattr__", count)
    assert texts(list(translator.translate(SENTENCES[:3]))) == ["A dog."] * 3
    monkeypatch.undo()
    assert translator.usage == Usage(3, *counted)


def test_server_without_openai_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(MissingPackageError, match=r"\[server\]'"):
        translate()


def test_neither_address_nor_key_is_logged(server: FakeServer, caplog: pytest.LogCaptureFixture) -> None:
    server.behave = lambda sentence, body, nth: Reply(f"{KEY} at {server.url}", 500) if nth < 3 else None
    with caplog.at_level(logging.INFO):
        assert texts(translate(SENTENCES[:4])) == EXPECTED[:4]
    assert "input and" in caplog.text
    assert KEY not in caplog.text and str(server.port) not in caplog.text
    assert os.environ["OPENAI_API_KEY"] == KEY


@pytest.mark.parametrize("key", [KEY, ""])
def test_error_names_environment_variable(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    """This includes a missing key."""
    monkeypatch.setenv("OPENAI_API_KEY", f"{key}\n")
    monkeypatch.setenv("PARAFORGE_SERVER_URL", f" {server.url}/\n")
    server.behave = lambda sentence, body, nth: Reply({"error": {"message": f"not at {server.url}"}}, 404)
    with pytest.raises(InputError, match=r"not at \$PARAFORGE_SERVER_URL\b") as error:
        translate(SENTENCES[:1])
    assert str(server.port) not in str(error.value)


def test_busy_server_is_retried(server: FakeServer) -> None:
    def behave(sentence: str, body: Json, nth: int) -> Reply | None:
        return Reply("busy", 429, {"Retry-After": "0.01"}) if nth < 5 else None

    server.behave = behave
    assert texts(translate(SENTENCES[:4])) == EXPECTED[:4]
    assert set(server.asked.values()) == {5}


def test_empty_answer_is_requested_once_more(server: FakeServer) -> None:
    server.behave = lambda sentence, body, nth: Reply({"error": "busy"}) if nth == 1 else None
    assert texts(translate(SENTENCES[:4])) == EXPECTED[:4]
    assert set(server.asked.values()) == {2}


def test_unanswered_sentence_gets_second_attempt(server: FakeServer) -> None:
    lost = SENTENCES[1]
    server.behave = lambda sentence, body, nth: Reply(status=0) if sentence == lost else None
    found = texts(translate(SENTENCES[:3], concurrency=1, max_retries=2))
    assert found == [EXPECTED[0], "no answer", EXPECTED[2]]
    assert server.asked[lost] == (1 + 2) + 1


def test_slow_server_times_out(server: FakeServer) -> None:
    server.behave = lambda sentence, body, nth: Reply(translated(sentence, body).body, seconds=0.5)
    with pytest.raises(EngineError, match="does not answer"):
        translate(SENTENCES[:1], timeout_seconds=0.2, max_retries=0)
    assert texts(translate(SENTENCES[:1], timeout_seconds=30)) == EXPECTED[:1]


@pytest.mark.parametrize(
    ("status", "kind", "message"),
    [
        (401, InputError, "the server refused the request: HTTP 401.*Check the key in OPENAI_API_KEY"),
        (404, InputError, "HTTP 404.*translate.server.model, 'm'"),
        (400, InputError, "HTTP 400.*leave out what the server does not know"),
        (402, InputError, "HTTP 402.*Pay into the account"),
        (429, InputError, "HTTP 429: no .*Pay into the account"),
        (200, EngineError, "answers without a translation: no choices in .*usually ends in /v1"),
        *((one, EngineError, f"fails: HTTP {one}.*run the same command ag") for one in (408, 409, 429, 500)),
    ],
)
def test_permanent_server_errors_fail(
    server: FakeServer, status: int, kind: type[Exception], message: str
) -> None:
    code = "insufficient_quota" if (status, kind) == (429, InputError) else "other"
    refusal = Reply({"error": {"message": f"no {KEY}", "code": code}}, status, {"Retry-After": "0.01"})
    server.behave = lambda sentence, body, nth: refusal
    with pytest.raises(kind, match=message) as error:
        translate(max_retries=1)
    assert "no $OPENAI_API_KEY" in str(error.value) and KEY not in str(error.value)
    del server.asked["1"]  # to see whether it is the sentences' fault
    assert max(server.asked.values()) == (1 if status in (400, 401, 402, 404) else 2)


_WITHOUT_ANSWER: list[Any] = [
    {},
    {"choices": []},
    [],
    '{"choices": [{"me',
    "<p>",
    {"choices": [{"text": "A"}]},
]


@pytest.mark.parametrize(
    ("place", "reply", "looks", "reason"),
    [
        (0, Reply("no", 400), 1, "HTTP 400"),
        (4, Reply("no", 400), 0, "HTTP 400"),
        *((place, Reply("no", 500), 1, "HTTP 500") for place in (0, 4)),
        *((4, Reply(body), 1, "no answer") for body in _WITHOUT_ANSWER),
        *((4, reply, 2, "no answer") for reply in (Reply(status=0), Reply(seconds=math.inf))),
    ],
)
def test_refused_sentence_fails_alone(
    server: FakeServer, place: int, reply: Reply, looks: int, reason: str
) -> None:
    server.behave = lambda sentence, body, nth: reply if sentence == SENTENCES[place] else None
    found = texts(translate(SENTENCES[:6], concurrency=1, max_retries=0, timeout_seconds=2))
    assert found == [*EXPECTED[:place], reason, *EXPECTED[place + 1 : 6]]
    assert server.asked["1"] == looks  # whether it answers others


def test_dead_server_keeps_received_answers(server: FakeServer) -> None:
    server.die()
    with pytest.raises(EngineError, match=r"does not answer: .*Connection refused\. Finished"):
        translate(max_retries=0)


@pytest.mark.parametrize("proxy", ["nonsense://me:secret@host", "http://[::1"])
def test_unusable_proxy_is_error(monkeypatch: pytest.MonkeyPatch, server: FakeServer, proxy: str) -> None:
    monkeypatch.setenv("HTTP_PROXY", proxy)
    with pytest.raises(InputError, match="Check PARAFORGE_SERVER_URL, HTTP_PROXY") as error:
        translate()
    assert "secret" not in str(error.value)
