"""A language model behind an OpenAI-compatible server (vLLM, llama.cpp and others); see docs/engines.md."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final

from paraforge.base.files import hash_json
from paraforge.translation.decoding.batching import Decoded, SourceTokens, translate_in_batches
from paraforge.translation.decoding.remote.answers import best_of, read_answer
from paraforge.translation.decoding.remote.client import Client
from paraforge.translation.decoding.remote.settings import TOKEN, Server
from paraforge.translation.decoding.translator import (
    DecodingOptions,
    Hypotheses,
    Hypothesis,
    Placement,
    fingerprint_of,
    settings_of,
)
from paraforge.translation.models.model import TranslationModel

logger = logging.getLogger(__name__)

NAME = "server"
LIBRARIES: Final = ()
SETTINGS = Server
MODEL_FREE = True
REMOTE = True


def resolve(options: DecodingOptions, placement: Placement) -> DecodingOptions:
    """The options without those of a beam, which a server does not have, so that they change no key."""
    return options.with_changes(compute_type="float32", beam=options.nbest, length_penalty=1.0)


def weights(model: TranslationModel | None, settings: dict[str, Any]) -> str:
    """SHA-256 of the model's name, the prompt and the sampling; the server's address is not in it."""
    return hash_json(settings_of(Server, NAME, settings).result_settings())


def recorded_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """What a translation depends on, for the manifest: the model's name and the prompt, never an address."""
    return settings_of(Server, NAME, settings).result_settings()


def open_engine(
    model: TranslationModel | None, options: DecodingOptions, placement: Placement, settings: dict[str, Any]
) -> ServerTranslator:
    """Read the server's address; the first sentence shows whether it is there.

    Raises:
        InputError: no model is named, the settings do not go together, or there is no address.
        MissingPackageError: the extra ``server`` is not installed.
    """
    return ServerTranslator(options, settings_of(Server, NAME, settings, options))


class ServerTranslator:
    """A :class:`~paraforge.translation.decoding.translator.Translator`; each sentence is a request of its
    own.

    usage: requests and tokens until now, as the server counted them.
    """

    def __init__(self, options: DecodingOptions, settings: Server) -> None:
        self._options = options
        self._settings = settings
        self._client = Client(settings)
        self.usage = self._client.usage
        self._threads = ThreadPoolExecutor(settings.concurrency, "requests")
        self._in_english = settings.target_language.strip().casefold() == "english"
        self.fingerprint = fingerprint_of(NAME, hash_json(settings.result_settings()), options)

    def translate(self, sentences: Iterable[str]) -> Iterator[Hypotheses]:
        """Translate a stream; see :class:`~paraforge.translation.decoding.translator.Translator`.

        Raises:
            InputError: the server refuses the key, the model or the options.
            EngineError: it has answered nothing for ``patience_seconds``.
        """
        requests = _Requests(self._threads, self._translated, self._options, 4 * self._settings.concurrency)
        try:
            yield from translate_in_batches(requests, sentences)
        finally:
            requests.cancel()
            logger.info(
                "%d requests to the server until now, %d input and %d output tokens",
                self.usage.requests,
                self.usage.input_tokens,
                self.usage.output_tokens,
            )

    def _translated(self, source: SourceTokens) -> tuple[Hypothesis, ...]:
        """Hypotheses of a sentence. Raises Untranslatable: the server fails on it, or no answer is a
        translation."""
        settings, options = self._settings, self._options
        choices = self._client.ask(
            settings.messages(source.sentence),
            settings.samples_for(options.nbest),
            options.maximum_target_tokens,
        )
        answers = [read_answer(choice, source.sentence, self._in_english) for choice in choices]
        return best_of(answers, options.nbest)


class _Requests:
    """The batches of one stream: one sentence each, asked for by the threads in their order."""

    batch_tokens = 1

    def __init__(
        self,
        threads: ThreadPoolExecutor,
        translated: Callable[[SourceTokens], tuple[Hypothesis, ...]],
        options: DecodingOptions,
        queued: int,
    ) -> None:
        self._threads = threads
        self._translated = translated
        self._room = options.maximum_source_tokens
        self._open: set[Future[tuple[Hypothesis, ...]]] = set()
        self.queued_batches = queued

    def encode(self, sentences: list[str]) -> list[SourceTokens]:
        """Cut what is too long, by an estimate of its tokens."""
        return list(map(self._encoded, sentences))

    def _encoded(self, sentence: str) -> SourceTokens:
        tokens = list(TOKEN.finditer(sentence))
        cut = len(tokens) > self._room
        if cut:
            tokens = tokens[: self._room]
            sentence = sentence[: tokens[-1].end()]
        return SourceTokens(sentence, [token[0] for token in tokens], cut)

    def submit(self, batch: list[SourceTokens]) -> Callable[[], Decoded]:
        """Have a thread ask for it."""
        futures = [self._threads.submit(self._translated, source) for source in batch]
        self._open.update(futures)

        def wait() -> Decoded:
            self._open.difference_update(futures)
            return [future.result() for future in futures]

        return wait

    def cancel(self) -> None:
        """Send no more requests for what nobody waits for."""
        for future in self._open:
            future.cancel()
