"""Sends requests to an OpenAI-compatible server. The ``openai`` client repeats them if the server is busy or
unreachable, and waits as long as the server asks; see docs/models.md."""

import logging
import os
import threading
from typing import Any
from urllib.parse import urlsplit

from paraforge.base.errors import InputError, one_line, require
from paraforge.translation.decoding.batching import Untranslatable
from paraforge.translation.decoding.faults import EngineError
from paraforge.translation.decoding.server_settings import Server
from paraforge.translation.decoding.translator import Usage

# Environment variables with the server's address and, if it needs one, the key.
_ADDRESS, _KEY = "PARAFORGE_SERVER_URL", "OPENAI_API_KEY"
_LONGEST_MESSAGE = 300
# HTTP statuses that a single sentence can cause: a content filter, a context that is too short, a crash.
_OF_SENTENCE = (400, 413, 422, 500)
_KEPT = "Finished tasks are kept: run the same command again"


class ServerClient:
    """A connection to a server, for several threads.

    usage: requests and tokens so far, counted by the server.
    """

    def __init__(self, settings: Server) -> None:
        """Read address and key from the environment, without sending anything.

        Raises:
            InputError: there is no address, or the key is malformed.
            MissingPackageError: the extra ``server`` is not installed.
        """
        self._library = require("openai", "server")
        for name in ("openai", "httpx", "httpx2", "httpcore", "httpcore2"):
            # These libraries log every request with the server's address.
            logging.getLogger(name).setLevel(logging.WARNING)
        url, key = (os.environ.get(name, "").strip() for name in (_ADDRESS, _KEY))
        try:
            parts = urlsplit(url)
        except ValueError:
            parts = urlsplit("")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError(
                f"the environment variable {_ADDRESS} is {'not an address' if url else 'not set'}",
                remedy=f"Set {_ADDRESS} to the server's address, for example http://localhost:8000/v1.",
            )
        if not (key.isascii() and key.isprintable()):
            raise InputError(f"{_KEY} is not a valid key: it contains characters that are not allowed")
        # Values that messages must not show, with the variable names that replace them.
        self._secrets = dict.fromkeys((url, url.rstrip("/"), parts.netloc, parts.hostname), _ADDRESS)
        if key:
            self._secrets[key] = _KEY
        try:
            self._client = self._library.OpenAI(
                base_url=url,
                api_key=key or "none",
                max_retries=settings.max_retries,
                timeout=settings.timeout_seconds,
            )
        except Exception as error:  # the HTTP client has its own errors for addresses and proxies
            raise InputError(
                f"the address in {_ADDRESS} or the proxy cannot be used: {self._hidden(error)}",
                remedy=f"Check {_ADDRESS}, HTTP_PROXY, HTTPS_PROXY and ALL_PROXY.",
            ) from None
        self._model = settings.model
        self._lock = threading.Lock()
        self.usage = Usage()

    def ask(
        self,
        messages: list[dict[str, str]],
        fields: dict[str, Any],
        simple: list[dict[str, str]] | None = None,
        again: bool = True,
    ) -> list[dict[str, Any]]:
        """Send a request, and return the answers as the server's JSON has them.

        fields: other fields; None leaves one out.
        simple: messages that any working server answers. They are sent after a failure, to find out whether
            only this request fails.
        again: whether to repeat the request if the answer has no message, as a gateway's can, or if it does
            not come while another request is answered.

        Raises:
            Untranslatable: the server refuses or does not answer this request, but answers others.
            InputError: the server refuses the key, the model or a field.
            EngineError: after all retries, the server cannot be reached, does not answer, or sends answers
                without a translation.
        """
        body = {name: value for name, value in fields.items() if value is not None}
        try:
            response = self._client.chat.completions.with_raw_response.create(
                model=self._model, messages=messages, extra_body=body
            )
            answer = response.http_response.json()
            choices = answer.get("choices") if isinstance(answer, dict) else None
            if not (isinstance(choices, list) and choices and all(map(_has_message, choices))):
                raise ValueError(f"no choices in {answer}")
        except self._library.APIStatusError as error:
            alone = simple is not None and error.status_code in _OF_SENTENCE
            if simple and alone and (error.status_code == 500 or not self.usage.requests):
                self.ask(simple, fields)  # raises if other requests fail as well
            raise self._refusal(error, alone) from None
        except self._library.APIConnectionError as error:  # a timeout is one, too
            reason = self._hidden(error.__cause__ or error).rstrip(".")
            if simple:
                self.ask(simple, fields)  # raises if other requests fail as well
                if again:  # the server may have been away for a while
                    return self.ask(messages, fields, simple, again=False)
                raise Untranslatable("no answer", reason) from None
            raise EngineError(f"the server at ${_ADDRESS} does not answer: {reason}. {_KEPT}") from None
        except ValueError as error:  # not JSON, or without messages
            if again:
                return self.ask(messages, fields, simple, again=False)
            if simple:
                self.ask(simple, fields)
                raise Untranslatable("no answer", self._hidden(error)) from None
            raise EngineError(
                f"the server at ${_ADDRESS} answers without a translation: {self._hidden(error)}. Check its "
                f"address, which usually ends in /v1. {_KEPT}"
            ) from None
        counts = answer.get("usage") if isinstance(answer.get("usage"), dict) else {}
        with self._lock:
            self.usage.requests += 1
            self.usage.input_tokens += int(counts.get("prompt_tokens") or 0)
            self.usage.output_tokens += int(counts.get("completion_tokens") or 0)
        return choices

    def _refusal(self, error: Any, alone: bool) -> Exception:
        """Return the exception for an error status, after all retries. alone: whether the server answers
        other requests."""
        status = int(error.status_code)
        said = self._hidden(error.message).removeprefix(f"Error code: {status}").lstrip(" -")
        if alone:
            return Untranslatable(f"HTTP {status}", said)
        text = f"HTTP {status}: {said}".rstrip(": .")
        unpaid = status == 402 or "insufficient_quota" in (error.code, error.type)
        if not unpaid and (status >= 500 or status in (408, 409, 429)):
            return EngineError(f"the server at ${_ADDRESS} fails: {text}. {_KEPT}")
        remedy = (
            "Change translate.server; leave out what the server does not know with body: {FIELD: null}, "
            "e.g. logprobs or seed."
        )
        if status in (401, 403):
            remedy = f"Check the key in {_KEY}."
        elif unpaid:
            remedy = "Pay into the account, and run the same command again."
        elif status == 404:
            remedy = (
                f"Check translate.server.model, '{self._model}', and the path of {_ADDRESS}, which usually "
                "ends in /v1."
            )
        return InputError(f"the server refused the request: {text}", remedy=remedy)

    def _hidden(self, text: object) -> str:
        """Return a message on one line, with secret values replaced by their variables' names."""
        line = one_line(text)
        for secret, name in self._secrets.items():
            line = line.replace(secret, f"${name}")
        return line[:_LONGEST_MESSAGE]


def _has_message(choice: object) -> bool:
    return isinstance(choice, dict) and isinstance(choice.get("message"), dict)
