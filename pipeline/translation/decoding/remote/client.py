"""Requests to an OpenAI-compatible server: none is lost, and what will never work is not tried for ever."""

import email.utils
import logging
import os
import random
import re
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

from paraforge.base.errors import InputError, one_line, require
from paraforge.translation.decoding.batching import Untranslatable
from paraforge.translation.decoding.faults import EngineError
from paraforge.translation.decoding.remote.settings import Message, Server
from paraforge.translation.decoding.remote.throttle import Throttle
from paraforge.translation.decoding.translator import Usage

logger = logging.getLogger(__name__)

# Attempts at a sentence on which the server fails while it answers others.
_ATTEMPTS = 5
_LONGEST_BACKOFF = 20.0
# A server to which no connection was ever made is not running; one that was may be starting anew.
_CONNECT_SECONDS = 10.0
_PROBE = "123"
_LONGEST_MESSAGE = 300
_BUSY = (408, 409, 425, 429)
_HOPELESS = (401, 402, 404)
_WAITING = 15.0
_SHORTENED_KEY = 12

# fatal: nothing will work. sentence: refused, perhaps because of the sentence. busy: later. odd: try again.
Kind = Literal["fatal", "sentence", "busy", "unreachable", "slow", "odd"]


@dataclass(frozen=True)
class Trouble:
    """What went wrong with a request: kind, words for people, seconds that the server asks to wait."""

    kind: Kind
    text: str
    wait: float | None = None
    remedy: str | None = None


class Client:
    """One server with its model. Any number of threads may ask; see :class:`Throttle`."""

    def __init__(self, settings: Server) -> None:
        """Read address and key from the environment; nothing is sent.

        Raises:
            InputError: there is no address, or it is none.
            MissingPackageError: ``openai`` is not installed.
        """
        self._library = require("openai", "server")
        for name in ("openai", "httpx", "httpx2", "httpcore", "httpcore2"):
            # They log every request with the address of the server.
            logging.getLogger(name).setLevel(logging.WARNING)
        self._settings = settings
        url = os.environ.get(settings.url_variable, "").strip()
        remedy = (
            f"Set {settings.url_variable} to the server's address, for instance http://localhost:8000/v1."
        )
        if not url:
            raise InputError(f"the environment variable {settings.url_variable} is not set", remedy=remedy)
        if not _is_address(url):
            raise InputError(f"{settings.url_variable} is no address", remedy=remedy)
        key = os.environ.get(settings.key_variable, "").strip()
        if not (key.isascii() and key.isprintable()):
            raise InputError(f"{settings.key_variable} is no key: it has characters that no key has")
        self._secrets = _secrets(url, settings.url_variable, key, settings.key_variable)
        self._has_key = bool(key)
        try:
            self._client = self._library.OpenAI(
                base_url=url,
                api_key=key or "none",
                max_retries=0,  # retrying is ours: it has to know of all requests, and of Ctrl-C
                timeout=settings.timeout_seconds,
            )
        except Exception as error:
            raise InputError(
                f"{settings.url_variable} is no address: {self._without_secrets(error)}", remedy=remedy
            ) from None
        self._throttle = Throttle(settings.concurrency)
        self._lock = threading.Lock()
        self._said = time.monotonic()
        self.usage = Usage()

    def ask(self, messages: list[Message], samples: int, maximum_tokens: int) -> list[dict[str, Any]]:
        """As many choices as ``samples``, each as the server gave it, in the order of its answers.

        A server that gives fewer answers than it is asked for is asked again, with another seed.

        Raises:
            Untranslatable: the server fails on these messages alone.
            InputError: the key, the model or the options are refused; nothing will be translated.
            EngineError: the server has answered nothing for ``patience_seconds``.
            Interrupted: SIGTERM or Ctrl-C.
        """
        choices: list[dict[str, Any]] = []
        while len(choices) < samples:
            body = self._body(messages, samples - len(choices), len(choices), maximum_tokens)
            choices += self._answered(body)[: samples - len(choices)]
        return choices

    def _body(
        self, messages: list[Message], samples: int, before: int, maximum_tokens: int
    ) -> dict[str, Any]:
        settings = self._settings
        body: dict[str, Any] = {
            "model": settings.model,
            "messages": messages,
            "temperature": settings.temperature,
            "max_tokens": maximum_tokens,
        }
        if settings.top_p != 1:
            body["top_p"] = settings.top_p
        if settings.seed is not None:
            body["seed"] = settings.seed + before
        if samples > 1:
            body["n"] = samples
        if settings.logprobs:
            body["logprobs"] = True
        return {name: value for name, value in {**body, **settings.body}.items() if value is not None}

    def _answered(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        """Choices that a request brings, at least one; sent again as often as it takes."""
        attempts = 0
        while True:
            begun = self._throttle.enter()
            found = self._send(body)
            if not isinstance(found, Trouble):
                self._throttle.succeeded()
                return found
            if found.kind in ("busy", "unreachable", "slow"):
                self._throttle.overloaded(begun, found.wait)
            else:
                self._throttle.failed()
            self._stop_where_hopeless(found)
            if found.kind in ("busy", "unreachable"):
                continue
            attempts += 1
            if found.kind == "sentence" or attempts >= _ATTEMPTS:
                # Is it the sentence, or the server? What was answered to others came before, or may have.
                if self._answers_others(body, found):
                    reason, _, detail = found.text.partition(": ")
                    raise Untranslatable(reason, detail)
                attempts = 0
            self._throttle.sleep(min(_LONGEST_BACKOFF, 0.25 * 2**attempts) * random.uniform(0.5, 1))

    def _answers_others(self, body: dict[str, Any], trouble: Trouble) -> bool:
        """Whether the server answers a request for a harmless sentence. Raises InputError: it refuses that
        one, too."""
        begun = self._throttle.enter()
        message = {**body["messages"][-1], "content": _PROBE}
        found = self._send({**body, "messages": [*body["messages"][:-1], message]})
        if not isinstance(found, Trouble):
            self._throttle.succeeded()
            return True
        self._throttle.overloaded(begun, found.wait)
        if trouble.kind == "sentence" and found.kind == "sentence":
            raise self._throttle.stop(
                InputError(
                    f"the server refuses what it is asked: {found.text}",
                    remedy=found.remedy
                    or "Change translate.server; what a server does not know is left out by"
                    " logprobs: false, seed: null or body: {FIELD: null}.",
                )
            )
        self._stop_where_hopeless(found)
        return False

    def _stop_where_hopeless(self, trouble: Trouble) -> None:
        if trouble.kind == "fatal":
            refused = f"the server refuses: {trouble.text}"
            raise self._throttle.stop(InputError(refused, remedy=trouble.remedy))
        patience = self._settings.patience_seconds
        if trouble.kind == "unreachable" and not self._throttle.successes:
            patience = min(patience, _CONNECT_SECONDS)
        seconds = self._throttle.trouble_seconds()
        if seconds > patience or (trouble.wait or 0) > self._settings.patience_seconds:
            asked = "" if not trouble.wait else f"; it asks to wait {trouble.wait:.0f} s"
            raise self._throttle.stop(
                EngineError(
                    f"the server at ${self._settings.url_variable} has answered nothing for {seconds:.0f} s: "
                    f"{trouble.text}{asked}. Nothing is lost: repair it and run the same command again"
                )
            )
        with self._lock:
            if seconds > _WAITING and time.monotonic() - self._said > _WAITING:
                self._said = time.monotonic()
                logger.warning("waiting for the server for %.0f s: %s", seconds, trouble.text)

    def _send(self, body: dict[str, Any]) -> list[dict[str, Any]] | Trouble:
        """One request: its choices, or what was wrong."""
        library = self._library
        try:
            response = self._client.chat.completions.with_raw_response.create(
                model=body["model"], messages=body["messages"], extra_body=body
            )
            answer = response.http_response.json()
        except library.APITimeoutError:
            return Trouble("slow", f"no answer within {self._settings.timeout_seconds:g} s")
        except library.APIStatusError as error:
            return self._refusal(error)
        except library.APIConnectionError as error:
            return Trouble("unreachable", self._without_secrets(error.__cause__ or error))
        except (library.OpenAIError, ValueError) as error:
            return Trouble("odd", f"its answer is not JSON: {self._without_secrets(error)}")
        return self._choices(answer)

    def _choices(self, answer: Any) -> list[dict[str, Any]] | Trouble:
        choices = answer.get("choices") if isinstance(answer, dict) else None
        if not isinstance(choices, list) or not choices:
            return Trouble("odd", f"its answer has no choices: {self._without_secrets(answer)}")
        if not all(isinstance(one, dict) and isinstance(one.get("message"), dict) for one in choices):
            return Trouble(
                "odd", f"its answer has a choice without a message: {self._without_secrets(answer)}"
            )
        usage = answer.get("usage")
        counts = usage if isinstance(usage, dict) else {}
        with self._lock:
            self.usage.requests += 1
            self.usage.input_tokens += _count(counts.get("prompt_tokens"))
            self.usage.output_tokens += _count(counts.get("completion_tokens"))
        return choices

    def _refusal(self, error: Any) -> Trouble:
        """What an answer with an error's status means."""
        settings, status = self._settings, int(error.status_code)
        text = f"HTTP {status}: {self._without_secrets(_message_of(error))}"
        code = error.body.get("code") if isinstance(error.body, dict) else None
        if status in (401, 403) and not self._has_key:
            remedy = f"Set {settings.key_variable} to a key of the server."
        elif status in (401, 403):
            remedy = f"Check the key in {settings.key_variable}."
        elif status == 404:
            remedy = f"Check translate.server.model, '{settings.model}', and the path of"
            remedy += f" {settings.url_variable}, which usually ends in /v1.{self._models()}"
        else:
            remedy = "The account has to be paid for before the same command continues."
        if status in _HOPELESS or code == "insufficient_quota":
            return Trouble("fatal", text, remedy=remedy)
        if status == 403:  # may be the moderation of one sentence, if others were translated
            kind: Kind = "sentence" if self._throttle.successes else "fatal"
            return Trouble(kind, text, remedy=remedy)
        if status in _BUSY or status > 501:
            return Trouble("busy", text, _wait(error.response.headers))
        return Trouble("sentence" if 400 <= status < 500 else "odd", text)

    def _models(self) -> str:
        """The models that the server has, for an error message."""
        with suppress(Exception):
            listed = self._client.with_options(timeout=5.0).models.list()
            names = sorted(str(model.id) for model in listed.data)
            if names:
                return f" It serves {self._without_secrets(', '.join(names[:20]))}."
        return ""

    def _without_secrets(self, text: object) -> str:
        """One line of a message, the values of the variables replaced by their names."""
        line = one_line(text)
        for pattern, name in self._secrets:
            line = pattern.sub(f"${name}", line)
        return line if len(line) <= _LONGEST_MESSAGE else f"{line[: _LONGEST_MESSAGE - 1]}…"


def _is_address(url: str) -> bool:
    with suppress(ValueError):
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 0) >= 0
    return False


def _secrets(url: str, url_name: str, key: str, key_name: str) -> list[tuple[re.Pattern[str], str]]:
    """What must not be shown, and the variable's name that is shown in its place."""
    parts = urlsplit(url)
    texts = {text for text in (url, url.rstrip("/"), parts.netloc, parts.hostname) if text}
    found = [(re.escape(text), url_name) for text in sorted(texts, key=len, reverse=True)]
    if key:
        found.append((re.escape(key), key_name))
    if len(key) >= _SHORTENED_KEY:  # also as servers quote it: the first letters, then dots or asterisks
        found.append((rf"{re.escape(key[:6])}\S*", key_name))
    return [(re.compile(rf"(?<!\w){text}(?!\w)"), name) for text, name in found]


def _count(given: Any) -> int:
    return given if isinstance(given, int) and given > 0 else 0


def _message_of(error: Any) -> object:
    body = error.body
    if isinstance(body, dict):
        body = body.get("message") or body.get("detail") or body.get("error") or body
    return body or error.response.reason_phrase


def _wait(headers: Any) -> float | None:
    """Seconds of a ``Retry-After`` header, which is a number or a date."""
    with suppress(TypeError, ValueError):
        return max(0.0, float(headers.get("retry-after-ms")) / 1000)
    given = str(headers.get("retry-after") or "").strip()
    with suppress(ValueError):
        return max(0.0, float(given))
    with suppress(TypeError, ValueError):
        return max(0.0, email.utils.parsedate_to_datetime(given).timestamp() - time.time())
    return None
