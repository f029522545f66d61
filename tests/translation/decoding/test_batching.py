"""Batches: order, bounds, and failing sentences."""

import random
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paraforge.translation.decoding import batching
from paraforge.translation.decoding.batching import (
    WINDOW,
    Decoded,
    SourceTokens,
    translate_in_batches,
    usual_window,
)
from paraforge.translation.decoding.device import (
    DeviceLostError,
    EngineError,
    is_device_lost,
    is_out_of_memory,
)
from paraforge.translation.decoding.translator import Hypotheses, Hypothesis


class Upper:
    """An engine that returns the sentence in capitals, and raises for chosen sentences."""

    def __init__(
        self, batch_tokens: int = 20, queued: int = 1, bad: str = "\0", unreadable: str = "\0"
    ) -> None:
        self.batch_tokens = batch_tokens
        self.queued = queued
        self.whole_windows = False
        self.bad = bad
        self.unreadable = unreadable
        self.batches: list[list[str]] = []
        self.most_queued = 0
        self._queued = 0

    def encode(self, sentences: list[str]) -> list[SourceTokens]:
        if any(self.unreadable in sentence for sentence in sentences):
            raise UnicodeError("cannot be read")
        return [SourceTokens(sentence, sentence.split()) for sentence in sentences]

    def submit(self, batch: list[SourceTokens]) -> Callable[[], Decoded]:
        self._queued += 1
        self.most_queued = max(self.most_queued, self._queued)

        def wait() -> Decoded:
            self._queued -= 1
            self.batches.append([source.sentence for source in batch])
            if any(self.bad in source.sentence for source in batch):
                raise RuntimeError(f"'{self.bad}' is not for me\nand more")
            return [(Hypothesis(source.sentence.upper(), -1.0, len(source.tokens)),) for source in batch]

        return wait


def texts(results: list[Hypotheses]) -> list[str | None]:
    return [result.hypotheses[0].text if result.hypotheses else None for result in results]


WORDS = st.sampled_from(["a", "bb", "ccc", "d!"])
SENTENCES = st.lists(st.lists(WORDS, max_size=12).map(" ".join), max_size=60)


@given(SENTENCES, st.integers(1, 60), st.integers(2, 5), st.integers(1, 20))
def test_batches_do_not_depend_on_queue(
    sentences: list[str], batch_tokens: int, queued: int, window: int
) -> None:
    """Sentences come in order, and each batch is within its limits, including padding."""
    one, several = Upper(batch_tokens, 1), Upper(batch_tokens, queued)
    for engine in (one, several):
        results = list(translate_in_batches(engine, iter(sentences), window))
        assert texts(results) == [sentence.upper() for sentence in sentences]
        assert engine.most_queued <= engine.queued
    assert one.batches == several.batches
    for batch in one.batches:
        longest = max(len(sentence.split()) for sentence in batch) + 1
        assert len(batch) == 1 or longest * len(batch) <= batch_tokens


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ({"bad": "!"}, "RuntimeError: '!' is not for me"),
        ({"unreadable": "!"}, "UnicodeError: cannot be read"),
    ],
)
@given(SENTENCES, st.integers(1, 60), st.integers(1, 5))
def test_raising_sentence_fails_alone(
    fault: dict[str, str], reason: str, sentences: list[str], batch_tokens: int, queued: int
) -> None:
    results = list(translate_in_batches(Upper(batch_tokens, queued, **fault), sentences))
    bad = ["!" in sentence for sentence in sentences]
    assert [result.failed for result in results] == [reason if fails else None for fails in bad]
    expected = [None if fails else text.upper() for text, fails in zip(sentences, bad, strict=True)]
    assert texts(results) == expected


def test_empty_sentence_gives_unscored_empty_hypothesis() -> None:
    assert list(translate_in_batches(Upper(), [])) == []
    (result,) = translate_in_batches(Upper(), ["   "])
    (hypothesis,) = result.hypotheses
    assert (hypothesis.empty, hypothesis.non_finite) == (True, False)
    assert hypothesis.score != hypothesis.score


def test_stream_is_read_by_windows() -> None:
    read = 0

    def stream() -> Iterator[str]:
        nonlocal read
        while True:
            read += 1
            yield f"sentence {read}"

    results = translate_in_batches(Upper(queued=3), stream(), window=10)
    for number in range(1, 101):
        assert texts([next(results)]) == [f"SENTENCE {number}"]
        # Beside the window that is given away: those whose batches are in the queue, and one to tokenize.
        assert read <= number + 40


def raising(message: str) -> Callable[[Decoded], Decoded]:
    def raises(found: Decoded) -> Decoded:
        raise RuntimeError(message)

    return raises


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        (raising("not for me"), EngineError, r"no longer translates even '1'.*not for me"),
        (raising("CUDA failed with error unspecified launch failure"), DeviceLostError, "unspecified launch"),
        (lambda found: found[1:], EngineError, "results for"),
        (lambda found: [*found[1:], ()], EngineError, "no hypothesis"),
    ],
    ids=["fails on everything", "lost its device", "loses a sentence", "without a hypothesis or a reason"],
)
def test_engine_error_fails_no_sentence(
    change: Callable[[Decoded], Decoded], kind: type[EngineError], message: str
) -> None:
    class Faulty(Upper):
        def submit(self, batch: list[SourceTokens]) -> Callable[[], Decoded]:
            wait = super().submit(batch)
            return lambda: change(wait())

    with pytest.raises(kind, match=message):
        list(translate_in_batches(Faulty(), ["a b", "c"] * 5))


@pytest.mark.parametrize("whole", [False, True])
def test_batches_are_halved_when_memory_runs_out(whole: bool, caplog: pytest.LogCaptureFixture) -> None:
    dice = random.Random(1)

    class Small(Upper):
        def submit(self, batch: list[SourceTokens]) -> Callable[[], Decoded]:
            size = self.batch_tokens if whole else 2 * len(batch)
            if size > 5 or any(self.bad in source.sentence for source in batch):
                raise RuntimeError(f"CUDA out of memory. {dice.random()} GiB is free.")
            return super().submit(batch)

    engine = Small(batch_tokens=20)
    engine.whole_windows = whole
    sentences = [f"w{number}" for number in range(30)]
    assert texts(list(translate_in_batches(engine, sentences))) == [
        sentence.upper() for sentence in sentences
    ]
    assert engine.batch_tokens == (5 if whole else 3)  # half of 20, of 10, and of three sentences with 2 each
    assert not whole or [*map(len, engine.batches)] == [30]  # the engine makes its own batches
    fitting = engine.batch_tokens
    assert caplog.messages[-1] == f"out of memory: batches now have at most {fitting} source tokens"
    caplog.clear()
    engine.bad = "w7"  # does not fit alone
    failed = [result.failed for result in translate_in_batches(engine, sentences)]
    assert failed == [None] * 7 + ["out of memory"] + [None] * 22
    assert engine.batch_tokens == fitting and not any("at most" in text for text in caplog.messages)


@pytest.mark.parametrize(
    ("message", "memory", "lost"),
    [
        ("CUDA error: out of memory", True, False),
        ("cuBLAS failed with status CUBLAS_STATUS_ALLOC_FAILED", True, False),
        ("cuDNN error: CUDNN_STATUS_ALLOC_FAILED", True, False),
        ("cuBLAS failed with status CUBLAS_STATUS_EXECUTION_FAILED", False, True),
        ("CUDA error: device-side assert triggered", False, True),
        ("the shapes do not match", False, False),
    ],
)
def test_out_of_memory_differs_from_lost_device(message: str, memory: bool, lost: bool) -> None:
    error = RuntimeError(message)
    assert (is_out_of_memory(error), is_device_lost(error)) == (memory, lost)


def test_engine_may_make_its_own_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    reported: list[int] = []
    monkeypatch.setattr(batching, "report_rows", reported.append)
    engine = Upper()
    engine.whole_windows = True
    list(translate_in_batches(engine, ["a b", "c", "", "d e f"] * 3, window=8))
    assert [len(batch) for batch in engine.batches] == reported == [6, 3]


@pytest.mark.parametrize("cut", [True, False])
def test_unknown_source_fails_and_truncated_is_marked(cut: bool) -> None:
    class Cuts(Upper):
        def encode(self, sentences: list[str]) -> list[SourceTokens]:
            reasons = {"x": "unknown source"}
            return [
                SourceTokens(sentence, sentence.split(), cut, reasons.get(sentence)) for sentence in sentences
            ]

    # An engine that cannot translate "1" can still be in order.
    found = list(translate_in_batches(Cuts(bad="1"), ["a", "x", "1", ""]))
    assert [result.failed for result in found] == [
        None,
        "unknown source",
        "RuntimeError: '1' is not for me",
        None,
    ]
    assert {result.source_truncated for result in found} == {cut}


def test_only_gpus_have_large_windows() -> None:
    assert {usual_window(device) for device in ("cpu", "cpu:0")} == {WINDOW}
    assert min(usual_window(device) for device in ("cuda", "cuda:1")) > WINDOW
