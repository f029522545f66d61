"""From a stream of sentences to batches of similar length and back; sentences that fail are separated."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

from paraforge.base.errors import Interrupted, ParaforgeError
from paraforge.base.interrupts import check_interrupt, stop_requested
from paraforge.base.shards.pool import threads_of
from paraforge.translation.decoding.faults import (
    EngineError,
    device_lost,
    is_device_lost,
    is_out_of_memory,
    limit_of,
)
from paraforge.translation.decoding.finished_batches import finished_batches
from paraforge.translation.decoding.translator import Hypotheses, Hypothesis

logger = logging.getLogger(__name__)

# Sentences that are sorted by length together: enough for batches without padding.
WINDOW = 4096
# Batches of a GPU are large, so more sentences are sorted together.
_GPU_WINDOW = 32_768
# Sentences that are tokenised at a time: between two the thread that feeds the engine has its turn.
_TOKENISED_SENTENCES = 1024
# After this many failures in a row it is the engine that is broken, not the sentences.
_FAILURES_IN_A_ROW = 1000
_LONGEST_REASON = 200
# A healthy engine translates one of these, whatever its language.
_SIMPLE = ("1", "a", ".")


class Untranslatable(Exception):
    """The engine has no translation of a sentence: why in few words, which the column ``failed`` has and
    people count, and details for the log."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail


@dataclass(frozen=True)
class SourceTokens:
    """A tokenised source sentence: the sentence itself, its tokens, and whether they were cut."""

    sentence: str
    tokens: list[str]
    truncated: bool = False


Decoded = list[tuple[Hypothesis, ...]]


class BatchEngine(Protocol):
    """What an engine has to give: tokens of a sentence, and hypotheses of a batch.

    batch_tokens: source tokens of a batch, padding included.
    queued_batches: batches in work or waiting at any time; 1 for an engine that does one at a time.
    """

    batch_tokens: int
    queued_batches: int

    def encode(self, sentences: list[str]) -> list[SourceTokens]:
        """Tokenise, and cut what is too long."""

    def submit(self, batch: list[SourceTokens]) -> Callable[[], Decoded]:
        """Begin to translate a batch; the function that comes back waits for it."""


def usual_window(device: str) -> int:
    """How many sentences an engine on this device (``cpu``, ``cuda``) sorts together."""
    return WINDOW if device == "cpu" else _GPU_WINDOW


def translate_in_batches(
    engine: BatchEngine, sentences: Iterable[str], window: int = WINDOW
) -> Iterator[Hypotheses]:
    """Translate a stream, one result a sentence and in their order, in batches of similar length.

    Which sentences share a batch depends on the stream, ``window`` and ``engine.batch_tokens`` alone, never
    on time or on the number of threads, so the same stream gives the same bytes.

    A sentence fails if the engine raises on it alone, twice, and translates a simple one between and after.
    What an engine does that is lost, or that fails for a while, is never held against a sentence: a batch is
    tried again, whole, so that its results have the same bytes.

    Raises:
        Interrupted: SIGTERM or Ctrl-C, seen between batches; those that were begun are finished.
        EngineError: the engine translates nothing any more, or a thousand sentences failed one after the
            other.
    """
    stream = iter(sentences)
    waiting: deque[_Window] = deque()
    running: deque[tuple[_Window, list[int], _Begun]] = deque()
    failures = 0  # in a row
    finished = finished_batches()

    def collect() -> None:
        nonlocal failures
        owner, places, begun = running.popleft()
        batch = [owner.sources[place] for place in places]
        results = [result for part, wait in begun for result in _outcome(engine, part, wait)]
        finished.add([source.sentence for source in batch], results)
        for place, result in zip(places, results, strict=True):
            owner.results[place] = result
            failures = failures + 1 if result.failed else 0
            if failures >= _FAILURES_IN_A_ROW:
                raise EngineError(
                    f"the engine failed on {_FAILURES_IN_A_ROW} sentences one after the other, "
                    f"the last time with: {result.failed}"
                )
        owner.open_batches -= 1

    def finish_begun() -> None:
        # They are paid for, and a later run finds them.
        while running:
            with suppress(ParaforgeError):
                collect()

    def stop_if_asked() -> None:
        if stop_requested():
            raise Interrupted()

    try:
        for sources in _tokenised(engine, stream, window):
            current = _Window(sources)
            waiting.append(current)
            for places in current.batches(engine.batch_tokens):
                stop_if_asked()
                batch = [current.sources[place] for place in places]
                known = finished.find([source.sentence for source in batch])
                if known is not None:
                    for place, result in zip(places, known, strict=True):
                        current.results[place] = result
                    continue
                # A full queue: take the oldest batch before the next is given away.
                while len(running) >= engine.queued_batches:
                    collect()
                running.append((current, places, _begin(engine, batch)))
                current.open_batches += 1
            while waiting and not waiting[0].open_batches:
                yield from waiting.popleft().finished()
        while running:
            stop_if_asked()
            collect()
            while waiting and not waiting[0].open_batches:
                yield from waiting.popleft().finished()
    except ParaforgeError as error:
        if not error.ends_process:
            finish_begun()
        raise


class _Window:
    """Sentences that are sorted together, and what became of them."""

    def __init__(self, sources: list[SourceTokens | Hypotheses]) -> None:
        self.sources: dict[int, SourceTokens] = {}
        self.results: list[Hypotheses | None] = [None] * len(sources)
        self.open_batches = 0
        for place, source in enumerate(sources):
            if isinstance(source, Hypotheses):
                self.results[place] = source
            elif source.tokens:
                self.sources[place] = source
            else:
                # Nothing but what the tokeniser drops: no engine agrees with another on what that means.
                self.results[place] = Hypotheses((Hypothesis("", float("nan"), 0),), source.truncated)

    def batches(self, batch_tokens: int) -> Iterator[list[int]]:
        """Places of the sentences, the longest batch first so that the last ones to finish are short."""
        order = sorted(self.sources, key=lambda place: -len(self.sources[place].tokens))
        batch: list[int] = []
        longest = 0
        for place in order:
            # The first of a batch is its longest; +1 for end-of-sentence.
            longest = longest if batch else len(self.sources[place].tokens) + 1
            if batch and longest * (len(batch) + 1) > batch_tokens:
                yield batch
                batch, longest = [], len(self.sources[place].tokens) + 1
            batch.append(place)
        if batch:
            yield batch

    def finished(self) -> Iterator[Hypotheses]:
        for result in self.results:
            assert result is not None
            yield result


def _tokenised(
    engine: BatchEngine, stream: Iterator[str], window: int
) -> Iterator[list[SourceTokens | Hypotheses]]:
    """The windows of a stream, each tokenised in a thread of its own while the one before is translated."""

    def encode(block: list[str]) -> list[SourceTokens | Hypotheses]:
        starts = range(0, len(block), _TOKENISED_SENTENCES)
        return [one for at in starts for one in engine.encode(block[at : at + _TOKENISED_SENTENCES])]

    def begin() -> tuple[list[str], Future[list[SourceTokens | Hypotheses]]]:
        block = list(islice(stream, window))
        return block, pool.submit(encode, block)

    with threads_of(ThreadPoolExecutor(1, "tokenise")) as pool:
        block, future = begin()
        while block:
            following = begin()
            try:
                sources = future.result()
            except Exception:
                sources = _encode(engine, block)  # which sentence is at fault is found here
            yield sources
            block, future = following


def _encode(
    engine: BatchEngine, sentences: list[str], again: bool = False
) -> list[SourceTokens | Hypotheses]:
    try:
        return list(engine.encode(sentences))
    except ParaforgeError:
        raise
    except Exception as error:
        if len(sentences) == 1:
            _check_health(engine, error)
            return [_failure(error)] if again else _encode(engine, sentences, again=True)
        middle = len(sentences) // 2
        return _encode(engine, sentences[:middle]) + _encode(engine, sentences[middle:])


# A batch that was begun: as a whole, or in the parts that the engine has room for.
_Begun = list[tuple[list[SourceTokens], Callable[[], Decoded]]]


def _begin(engine: BatchEngine, batch: list[SourceTokens]) -> _Begun:
    return [(part, _submit(engine, part)) for part in limit_of(engine).parts(batch)]


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
    engine: BatchEngine, batch: list[SourceTokens], wait: Callable[[], Decoded], again: bool = False
) -> list[Hypotheses]:
    """Results of a batch; where it raises twice, of its halves, down to the sentence at fault.

    A batch that was begun before another showed that it is too large is not tried as a whole again.

    again: whether the engine raised on this batch before.
    """
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
    check_interrupt()
    declined = isinstance(raised, Untranslatable)  # the engine itself says that it is the sentence
    limit, full = limit_of(engine), is_out_of_memory(raised)
    if not declined and not (full and limit.is_exceeded(batch)):
        if again or len(batch) == 1:
            _check_health(engine, raised)
        if not again:
            return _outcome(engine, batch, _submit(engine, batch), again=True)
    if len(batch) == 1:
        detail = getattr(raised, "detail", "")
        logger.info("a sentence could not be translated: %s", f"{_reason(raised)}: {detail}".rstrip(": "))
        return [_failure(raised, batch[0].truncated)]
    if full:
        limit.too_large(batch)
    middle = len(batch) // 2
    parts = limit.parts(batch) if full else iter((batch[:middle], batch[middle:]))
    return [result for part in parts for result in _outcome(engine, part, _submit(engine, part))]


def _check_health(engine: BatchEngine, raised: Exception) -> None:
    """Raise EngineError where the engine does not even translate a simple sentence."""
    for sentence in _SIMPLE:
        try:
            if engine.submit(list(engine.encode([sentence])))():
                return
        except ParaforgeError:
            raise
        except Exception as error:
            if is_device_lost(error):
                raise device_lost(error) from error
    raise EngineError(
        f"the engine does not even translate '{_SIMPLE[0]}' any more: {_reason(raised)}. What was finished "
        "is kept, and no sentence counts as failed; run the same command to resume"
    ) from raised


def _failure(error: Exception, truncated: bool = False) -> Hypotheses:
    return Hypotheses((), truncated, _reason(error))


def _reason(error: Exception) -> str:
    """One line, the same in every run."""
    if isinstance(error, Untranslatable):
        return error.reason[:_LONGEST_REASON]
    first = next(iter(str(error).splitlines()), "")
    return f"{type(error).__name__}: {first}"[:_LONGEST_REASON].rstrip(": ")
