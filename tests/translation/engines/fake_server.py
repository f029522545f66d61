"""A server like OpenAI-compatible ones, which can be slow, wrong or dead."""

import json
import math
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from paraforge.translation.decoding.translator import DecodingOptions, Hypotheses
from paraforge.translation.engines import open_translator

KEY = "sk-very-secret-0123456789"
Json = dict[str, Any]


@dataclass
class Reply:
    """What the server sends after so many seconds: JSON, or text as it is; status 0 hangs up.

    After infinitely many seconds it sends nothing: it waits until the client has gone."""

    body: Json | list[Any] | str = ""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0


def translation_of(sentence: str) -> str:
    return " ".join(f"{word}s" for word in sentence.split())


def choice(text: str | None, logs: list[float] | None = None, reason: str = "stop", **message: Any) -> Json:
    said = {"role": "assistant", "content": text, **message}
    found: Json = {"index": 0, "finish_reason": reason, "message": said}
    if logs is not None:
        found["logprobs"] = {"content": [{"token": "t", "logprob": log} for log in logs]}
    return found


def completion(choices: list[Json], prompt: int = 50, completed: int = 10) -> Json:
    usage = {"prompt_tokens": prompt, "completion_tokens": completed * len(choices)}
    return {"id": "c", "object": "chat.completion", "model": "m", "choices": choices, "usage": usage}


def translated(sentence: str, body: Json) -> Reply:
    logs = [-0.5, -0.25] if body.get("logprobs") else None
    return Reply(completion([choice(translation_of(sentence), logs) for _ in range(body.get("n", 1))]))


class FakeServer:
    """Counts what it is asked; ``behave(sentence, body, nth time)`` gives the reply, None the usual one.

    ``at[n]()`` is called when the n-th request has come, before another is counted or this one is answered. A
    dead server counts and answers nothing.
    """

    def __init__(self) -> None:
        self.behave: Callable[[str, Json, int], Reply | None] = lambda sentence, body, nth: None
        self.at: dict[int, Callable[[], object]] = {}
        self.asked: Counter[str] = Counter()
        self.bodies: list[Json] = []
        self.headers: list[dict[str, str]] = []
        self.under_way = 0
        self.most_under_way = 0
        self.lock = threading.Lock()
        self.http: ThreadingHTTPServer | None = None
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def start(self) -> None:
        """Serve at a new address. Neither the threads of an earlier run nor its open connections reach it."""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.reply(self, body)

            def do_GET(self) -> None:
                outer.send(self, Reply({"object": "list", "data": [{"id": "the-model", "object": "model"}]}))

            def log_message(self, *arguments: Any) -> None:
                pass

        class Http(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 256

            def handle_error(self, *arguments: Any) -> None:
                pass  # clients that are gone

        self.http = Http(("127.0.0.1", 0), Handler)
        self.port = self.http.server_port
        os.environ["PARAFORGE_SERVER_URL"] = self.url
        threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True).start()

    def die(self) -> None:
        http, self.http = self.http, None
        if http is not None:
            http.shutdown()
            http.server_close()

    def reply(self, handler: BaseHTTPRequestHandler, body: Json) -> None:
        sentence = body["messages"][-1]["content"]
        with self.lock:
            if handler.server is not self.http:
                self.send(handler, Reply(status=0))
                return
            self.bodies.append(body)
            self.headers.append({name.lower(): value for name, value in handler.headers.items()})
            self.asked[sentence] += 1
            number = body.get("attempt", self.asked[sentence])
            self.under_way += 1
            self.most_under_way = max(self.most_under_way, self.under_way)
            if event := self.at.get(len(self.bodies)):
                event()
        found = self.behave(sentence, body, number) or translated(sentence, body)
        if found.seconds < math.inf:
            time.sleep(found.seconds)
        else:
            with suppress(OSError):
                handler.connection.recv(1)
        with self.lock:
            self.under_way -= 1
        alive = handler.server is self.http
        self.send(handler, found if alive and found.seconds < math.inf else Reply(status=0))

    def send(self, handler: BaseHTTPRequestHandler, reply: Reply) -> None:
        if not reply.status:
            handler.close_connection = True
            handler.connection.close()
            return
        data = (reply.body if isinstance(reply.body, str) else json.dumps(reply.body)).encode()
        handler.send_response(reply.status)
        headers = {"Content-Type": "application/json", "Content-Length": str(len(data)), **reply.headers}
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(data)


@contextmanager
def serving(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeServer]:
    """A running server, its address and key in the environment."""
    server = FakeServer()
    monkeypatch.setenv("PARAFORGE_SERVER_URL", server.url)
    server.start()
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    try:
        yield server
    finally:
        server.die()


SENTENCES = [f"věta {number} je tady" for number in range(40)]
EXPECTED = [translation_of(sentence) for sentence in SENTENCES]


def translate(
    sentences: list[str] = SENTENCES, nbest: int = 1, maximum_target_tokens: int = 256, **changes: Any
) -> list[Hypotheses]:
    """Results of a server for sentences."""
    options = DecodingOptions(nbest=nbest, maximum_target_tokens=maximum_target_tokens)
    translator = open_translator("server", None, options, settings={"model": "m", **changes})
    return list(translator.translate(sentences))


def texts(results: list[Hypotheses]) -> list[str | None]:
    """Return the best hypothesis of each result, or why it failed."""
    return [result.hypotheses[0].text if result.hypotheses else result.failed for result in results]
