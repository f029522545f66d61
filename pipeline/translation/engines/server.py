"""The engine for a language model behind an OpenAI-compatible server (vLLM, llama.cpp and others)."""

import logging
import re
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from paraforge.translation.decoding.batching import (
    BatchEngine,
    Decoded,
    SourceTokens,
    Untranslatable,
)
from paraforge.translation.decoding.server import Server, ServerClient, best_answers, read_answer
from paraforge.translation.decoding.translator import (
    DecodingOptions,
    Engine,
    Hypotheses,
    Hypothesis,
    Placement,
)
from paraforge.translation.models.model import TranslationModel

logger = logging.getLogger(__name__)

# A token of a language model is, roughly, up to four letters or a punctuation mark.
_TOKEN = re.compile(r"\w{1,4}|[^\w\s]")


class ServerTranslator(Engine):
    """Translates by one request per sentence.

    usage: requests and tokens so far, counted by the server.
    """

    SETTINGS = Server
    MODEL_FREE = True
    REMOTE = True

    def __init__(
        self,
        model: TranslationModel | None,
        options: DecodingOptions,
        placement: Placement,
        settings: Server,
    ) -> None:
        """Prepare requests, without sending anything.

        Raises InputError if the environment has no valid address or key; MissingPackageError if the extra
        ``server`` is not installed."""
        self._options = options
        self._settings = settings
        self._client = ServerClient(settings)
        self._threads = ThreadPoolExecutor(settings.concurrency, "requests")
        self.usage = self._client.usage

    @classmethod
    def resolve(cls, options: DecodingOptions, placement: Placement) -> DecodingOptions:
        """Reset the beam options, which a server does not have, so that they change no key."""
        return options.with_changes(compute_type="float32", beam=options.nbest, length_penalty=1.0)

    def translate(self, sentences: Iterable[str]) -> Iterator[Hypotheses]:
        """Translate a stream; see :class:`~paraforge.translation.decoding.translator.Translator`. Raises what
        :meth:`~paraforge.translation.decoding.server.ServerClient.ask` does."""
        requests = _Requests(self._threads, self._request, self._options, self._settings.concurrency)
        try:
            yield from requests.translate(sentences)
        finally:
            for future in requests.open:  # nobody waits for them anymore
                future.cancel()
            usage = self.usage
            logger.info(
                "%d requests to the server so far, %d input and %d output tokens",
                *(usage.requests, usage.input_tokens, usage.output_tokens),
            )

    def _request(self, sentence: str) -> tuple[Hypothesis, ...]:
        """Request a sentence. Raises Untranslatable if the server refuses it or gives no translation."""
        settings, nbest = self._settings, self._options.nbest
        choices: list[dict[str, Any]] = []
        while (missing := nbest - len(choices)) > 0:  # a server can give fewer answers than requested
            fields = {
                "temperature": settings.temperature,
                "max_tokens": self._options.maximum_target_tokens,
                "seed": None if settings.seed is None else settings.seed + len(choices),
                "n": missing if missing > 1 else None,
                "logprobs": True,
                **settings.body,
            }
            try:
                choices += self._client.ask(settings.messages(sentence), fields, settings.messages("1"))
            except Untranslatable:
                if not choices:
                    raise
                break  # use the answers that arrived before
        return best_answers([read_answer(choice, sentence) for choice in choices[:nbest]])


class _Requests(BatchEngine):
    """The requests of one stream, one per sentence, made by the engine's threads in order."""

    batch_tokens = 1

    def __init__(
        self,
        threads: ThreadPoolExecutor,
        translated: Callable[[str], tuple[Hypothesis, ...]],
        options: DecodingOptions,
        concurrency: int,
    ) -> None:
        self._threads = threads
        self._request = translated
        self._room = options.maximum_source_tokens
        self.open: set[Future[tuple[Hypothesis, ...]]] = set()
        self.queued = 4 * concurrency

    def encode(self, sentences: list[str]) -> list[SourceTokens]:
        """Truncate long sentences, by an estimate of their tokens."""
        requests = []
        for sentence in sentences:
            tokens = list(_TOKEN.finditer(sentence))
            cut = len(tokens) > self._room
            if cut:
                tokens = tokens[: self._room]
                sentence = sentence[: tokens[-1].end()]
            requests.append(SourceTokens(sentence, [token[0] for token in tokens], cut))
        return requests

    def submit(self, batch: list[SourceTokens]) -> Callable[[], Decoded]:
        """Start requests for the sentences in threads."""
        futures = [self._threads.submit(self._request, source.sentence) for source in batch]
        self.open.update(futures)

        def wait() -> Decoded:
            self.open.difference_update(futures)
            return [future.result() for future in futures]

        return wait
