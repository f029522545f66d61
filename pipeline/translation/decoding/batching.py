"""Translates a stream of sentences in windows of fixed size, and isolates sentences that fail."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice

from paraforge.base.errors import ParaforgeError
from paraforge.base.shards.pool import threads_of
from paraforge.base.shards.scheduler import report_rows
from paraforge.translation.decoding.device import EngineError, device_lost, is_device_lost, is_out_of_memory
from paraforge.translation.decoding.translator import Engine, Hypotheses, Hypothesis

logger = logging.getLogger(__name__)

# Sentences per window, which are sorted by length together. A task has a whole number of windows, so its size
# never decides which sentences share a batch. A GPU has large batches, so its windows are larger.
WINDOW = 512
_GPU_WINDOW = 32_768
# Sentences tokenized at a time; the thread that feeds the engine runs in between.
_TOKENIZED_SENTENCES = 512
_LONGEST_REASON = 200
_OUT_OF_MEMORY = "out of memory"
# A working engine translates at least one of these, whatever its languages.
_SIMPLE = ("1", "a", ".")


class Untranslatable(Exception):
    """The engine cannot translate a sentence. It has a short reason for the column ``failed``, and details
    for the log."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail


@dataclass(frozen=True)
class SourceTokens:
    """A tokenized source sentence.

    truncated: whether tokens were cut. failed: why it is not translated, or None.
    """

    sentence: str
    tokens: list[str]
    truncated: bool = False
    failed: str | None = None


Decoded = list[tuple[Hypothesis, ...]]


class BatchEngine(Engine):
    """The base of engines that translate batches of similar length.

    batch_tokens: source tokens per batch, including padding; halved when memory runs out.
    whole_windows: whether ``submit`` takes a whole window and makes its own batches.
    queued: number of concurrent ``submit`` calls. window: sentences that are sorted together.
    """

    batch_tokens: int
    whole_windows = False
    queued = 1
    window = WINDOW

    def encode(self, sentences: list[str]) -> list[SourceTokens]:
        """Tokenize sentences, and truncate long ones."""
        raise NotImplementedError

    def submit(self, batch: list[SourceTokens]) -> Callable[[], Decoded]:
        """Start to translate sentences; the returned function waits for the hypotheses."""
        raise NotImplementedError

    def translate(self, sentences: Iterable[str]) -> Iterator[Hypotheses]:
        """Translate a stream; see :func:`translate_in_batches`."""
        return translate_in_batches(self, sentences, self.window)


def usual_window(device: str) -> int:
    """Return the sentences per window on this device (``cpu``, ``cuda``)."""
    return WINDOW if device.startswith("cpu") else _GPU_WINDOW


def translate_in_batches(
    engine: BatchEngine, sentences: Iterable[str], window: int = WINDOW
) -> Iterator[Hypotheses]:
    """Translate a stream in batches of similar length; yields one result per sentence, in order.

    Which sentences share a batch depends only on the stream, ``window`` and ``engine.batch_tokens``, never on
    time or threads, so the same stream gives the same bytes. Sentences that raise are found by bisection, and
    marked as failed only if the engine can still translate a simple sentence.

    Raises:
        EngineError: the engine no longer translates anything.
    """
    running: deque[tuple[_Window, list[int], Callable[[], Decoded]]] = deque()
    waiting: deque[_Window] = deque()

    def collect() -> None:
        owner, places, wait = running.popleft()
        before = engine.batch_tokens
        batch = [owner.sources[place] for place in places]
        results = _outcome(engine, batch, wait)
        for place, result in zip(places, results, strict=True):
            owner.results[place] = result
        if any(result.failed == _OUT_OF_MEMORY for result in results):
            # A sentence that does not fit alone says nothing about the size of batches.
            engine.batch_tokens = before
        elif engine.batch_tokens < before:
            logger.warning("out of memory: batches now have at most %d source tokens", engine.batch_tokens)
        report_rows(len(places))
        owner.open -= 1

    def finished() -> Iterator[Hypotheses]:
        while waiting and not waiting[0].open:
            yield from waiting.popleft().finished()

    for sources in _tokenize_ahead(engine, iter(sentences), window):
        current = _Window(sources)
        waiting.append(current)
        batches = current.batches(0 if engine.whole_windows else engine.batch_tokens)
        for places in batches:
            while len(running) >= engine.queued:
                collect()
            wait = _submit(engine, [current.sources[place] for place in places])
            running.append((current, places, wait))
            current.open += 1
        yield from finished()
    while running:
        collect()
        yield from finished()


class _Window:
    """A window of sentences that are sorted together, and their results.

    open: number of batches that are not finished.
    """

    def __init__(self, sources: list[SourceTokens]) -> None:
        self.sources: dict[int, SourceTokens] = {}
        self.results: list[Hypotheses | None] = [None] * len(sources)
        self.open = 0
        for place, source in enumerate(sources):
            if source.failed is not None:
                self.results[place] = Hypotheses((), source.truncated, source.failed)
            elif source.tokens:
                self.sources[place] = source
            else:
                # No tokens: engines would give different results, so none is asked.
                self.results[place] = Hypotheses((Hypothesis("", float("nan"), 0),), source.truncated)

    def batches(self, batch_tokens: int) -> Iterator[list[int]]:
        """Yield batches of sentence indices, the longest first; with 0 tokens, one batch in order."""
        places = list(self.sources)
        if not batch_tokens:
            yield from [places] if places else []
            return
        places.sort(key=lambda place: -len(self.sources[place].tokens))
        while places:
            # The first of a batch is its longest; +1 for end-of-sentence.
            size = max(1, batch_tokens // (len(self.sources[places[0]].tokens) + 1))
            yield places[:size]
            places = places[size:]

    def finished(self) -> Iterator[Hypotheses]:
        for result in self.results:
            assert result is not None
            yield result


def _tokenize_ahead(engine: BatchEngine, stream: Iterator[str], window: int) -> Iterator[list[SourceTokens]]:
    """Yield the windows of a stream; a thread tokenizes each while the previous one is translated."""

    def encode(block: list[str]) -> list[SourceTokens]:
        starts = range(0, len(block), _TOKENIZED_SENTENCES)
        return [tokens for at in starts for tokens in engine.encode(block[at : at + _TOKENIZED_SENTENCES])]

    def begin() -> tuple[list[str], Future[list[SourceTokens]]]:
        block = list(islice(stream, window))
        return block, pool.submit(encode, block)

    with threads_of(ThreadPoolExecutor(1, "tokenize")) as pool:
        block, future = begin()
        while block:
            following = begin()
            try:
                sources = future.result()
            except Exception:
                sources = _encode(engine, block)  # isolates the failing sentence
            yield sources
            block, future = following


def _encode(engine: BatchEngine, sentences: list[str]) -> list[SourceTokens]:
    try:
        return engine.encode(sentences)
    except ParaforgeError:
        raise
    except Exception as error:
        if len(sentences) == 1:
            _check_health(engine, error)
            return [SourceTokens(sentences[0], [], failed=_reason(error))]
        middle = len(sentences) // 2
        return _encode(engine, sentences[:middle]) + _encode(engine, sentences[middle:])


def _submit(engine: BatchEngine, batch: list[SourceTokens]) -> Callable[[], Decoded]:
    try:
        return engine.submit(batch)
    except ParaforgeError:
        raise
    except Exception as error:
        failed: Future[Decoded] = Future()
        failed.set_exception(error)
        return failed.result


def _outcome(
    engine: BatchEngine, batch: Sequence[SourceTokens], wait: Callable[[], Decoded]
) -> list[Hypotheses]:
    """Return the results of a batch; if it raises, split it in halves down to the failing sentence."""
    try:
        decoded = wait()
        if len(decoded) != len(batch):
            raise EngineError(f"the engine gave {len(decoded)} results for {len(batch)} sentences")
        if not all(decoded):
            raise EngineError("the engine gave no hypothesis for a sentence, and no reason")
        return [
            Hypotheses(hypotheses, source.truncated)
            for source, hypotheses in zip(batch, decoded, strict=True)
        ]
    except ParaforgeError:
        raise
    except Exception as error:
        raised = error
    if is_device_lost(raised):
        raise device_lost(raised) from raised
    if is_out_of_memory(raised) and engine.batch_tokens > 1:
        longest = max(len(source.tokens) for source in batch) + 1
        used = engine.batch_tokens if engine.whole_windows else len(batch) * longest
        engine.batch_tokens = max(1, min(engine.batch_tokens, used // 2))
        if engine.whole_windows:
            return _outcome(engine, batch, _submit(engine, list(batch)))
    if len(batch) == 1:
        if not isinstance(raised, Untranslatable):  # the engine itself blames the sentence
            _check_health(engine, raised)
        detail = getattr(raised, "detail", "")
        logger.info("a sentence could not be translated: %s", f"{_reason(raised)}: {detail}".rstrip(": "))
        return [Hypotheses((), batch[0].truncated, _reason(raised))]
    middle = len(batch) // 2
    parts = (list(batch[:middle]), list(batch[middle:]))
    return [result for part in parts for result in _outcome(engine, part, _submit(engine, part))]


def _check_health(engine: BatchEngine, raised: Exception) -> None:
    """Raise EngineError if the engine no longer translates even a simple sentence."""
    for sentence in _SIMPLE:
        try:
            encoded = engine.encode([sentence])
            if encoded[0].failed is None and engine.submit(encoded)():
                return
        except ParaforgeError:
            raise
        except Exception as error:
            if is_device_lost(error):
                raise device_lost(error) from error
    raise EngineError(
        f"the engine no longer translates even '{_SIMPLE[0]}': {_reason(raised)}. Finished tasks "
        "are kept, and no sentence counts as failed; run the same command to resume"
    ) from raised


def _reason(error: Exception) -> str:
    """Return an error as one line that is the same in every run."""
    if isinstance(error, Untranslatable):
        return error.reason
    if is_out_of_memory(error):  # its message has numbers of bytes and of processes
        return _OUT_OF_MEMORY
    first = next(iter(str(error).splitlines()), "")
    return f"{type(error).__name__}: {first}"[:_LONGEST_REASON].rstrip(": ")
