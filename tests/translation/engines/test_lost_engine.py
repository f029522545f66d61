"""Whatever happens to an engine is never held against a sentence: a healthy resume gives the same bytes."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from paraforge.translation.decoding.batching import BatchEngine, Decoded, SourceTokens
from paraforge.translation.decoding.faults import DeviceLostError, EngineError
from paraforge.translation.decoding.finished_batches import kept_batches
from paraforge.translation.decoding.translator import Hypotheses, Placement, Translator
from paraforge.translation.engines import open_translator
from paraforge.translation.engines.fake import FakeTranslator
from tests.translation.engines.tiny_models import OPTIONS, SENTENCES

ENGINES = ("ctranslate2", "fairseq", "fake", "torch")
# What the engine raises, or gives, and for how long.
FOR_EVER = {
    "lost": RuntimeError("CUDA failed with error unspecified launch failure\nmore"),
    "broken": ValueError("nothing works any more"),
    "full": RuntimeError("CUDA failed with error out of memory"),
}
ONCE = {
    "memory": RuntimeError("CUDA failed with error out of memory"),
    "timeout": TimeoutError("no answer within 60 s"),
    "other": ValueError("for a moment"),
    "wrong answer": None,
}


class Faulty:
    """An engine's `submit` that goes wrong at its nth batch, and at so many in all."""

    def __init__(self, engine: BatchEngine, fault: Exception | None, at: int, lasts: int) -> None:
        self.submitted: list[list[str]] = []
        self._submit = engine.submit
        self._fault = fault
        self._bad = range(at, at + lasts)

    def __call__(self, batch: list[SourceTokens]) -> Callable[[], Decoded]:
        bad = len(self.submitted) in self._bad
        self.submitted.append([source.sentence for source in batch])
        wait = self._submit(batch)

        def result() -> Decoded:
            decoded = wait()
            if bad and self._fault is not None:
                raise self._fault
            return decoded[1:] if bad else decoded

        return result


@pytest.fixture(scope="module", params=ENGINES)
def open_engine(request: pytest.FixtureRequest) -> Callable[[], Translator]:
    model = None if request.param == "fake" else request.getfixturevalue("tiny_ctranslate2")
    if request.param == "fairseq":
        model = request.getfixturevalue("tiny_fairseq")
    return lambda: open_translator(request.param, model, OPTIONS, Placement("cpu", 1, 100))


@pytest.fixture(scope="module")
def expected(open_engine: Callable[[], Translator]) -> list[Hypotheses]:
    return list(open_engine().translate(SENTENCES))


def translate(translator: Translator, path: Path) -> list[Hypotheses]:
    with kept_batches(path):
        return list(translator.translate(SENTENCES))


@pytest.fixture(scope="module")
def batches(open_engine: Callable[[], Translator]) -> int:
    translator = open_engine()
    whole = Faulty(translator, None, 0, 0)  # type: ignore[arg-type]
    translator.submit = whole  # type: ignore[attr-defined]
    list(translator.translate(SENTENCES))
    assert len(whole.submitted) > 4
    return len(whole.submitted)


@pytest.mark.parametrize("fault", [*FOR_EVER, *ONCE])
def test_no_sentence_fails_for_what_happened_to_the_engine(
    open_engine: Callable[[], Translator],
    expected: list[Hypotheses],
    batches: int,
    tmp_path: Path,
    fault: str,
) -> None:
    """At every batch of the engine that costs nothing, and in the middle for the others: what handles the
    fault knows no engine."""
    fake = isinstance(open_engine(), FakeTranslator)
    for at in range(batches) if fake else (batches // 2,):
        path = tmp_path / f"{at}.unfinished"
        translator = open_engine()
        lasts = 1_000_000 if fault in FOR_EVER else 1
        faulty = Faulty(translator, FOR_EVER.get(fault, ONCE.get(fault)), at, lasts)  # type: ignore[arg-type]
        translator.submit = faulty  # type: ignore[attr-defined]
        if fault in FOR_EVER or fault == "wrong answer":
            with pytest.raises(DeviceLostError if fault == "lost" else EngineError):
                translate(translator, path)
        else:
            # The batch is tried again as a whole: halves of it might be rounded in another way.
            assert translate(translator, path) == expected
        healthy = open_engine()
        resumed = Faulty(healthy, None, 0, 0)  # type: ignore[arg-type]
        healthy.submit = resumed  # type: ignore[attr-defined]
        assert translate(healthy, path) == expected
        with suppress(FileNotFoundError):
            assert b"CUDA" not in path.read_bytes()
        if fault == "lost":
            assert len(resumed.submitted) == batches - at  # what was finished is not done again


@pytest.mark.parametrize("lasts", [1, 2, 3, 4, 5, 9])
def test_a_fault_that_lasts_for_some_batches_fails_no_sentence(
    open_engine: Callable[[], Translator], expected: list[Hypotheses], tmp_path: Path, lasts: int
) -> None:
    """Each sentence is a batch, and so every try of it may be the last."""
    path = tmp_path / "sentences.unfinished"
    translator = open_engine()
    translator.batch_tokens = 1  # type: ignore[attr-defined]
    translator.submit = Faulty(translator, ONCE["other"], 5, lasts)  # type: ignore[attr-defined, arg-type]
    try:
        found = translate(translator, path)
    except EngineError:
        healthy = open_engine()
        healthy.batch_tokens = 1  # type: ignore[attr-defined]
        found = translate(healthy, path)
    assert [one.failed for one in found] == [one.failed for one in expected]


def test_how_much_fits_is_learnt_by_every_engine(
    open_engine: Callable[[], Translator], expected: list[Hypotheses]
) -> None:
    """A batch that is too large fails at first, and not for the whole stream again and again."""
    translator = open_engine()
    submit, tried, full = translator.submit, [0], [0]  # type: ignore[attr-defined]

    def submit_small(batch: list[SourceTokens]) -> Callable[[], Decoded]:
        tried[0] += 1
        wait: Callable[[], Decoded] = submit(batch)
        if len(batch) <= 2:
            return wait

        def no_room() -> Decoded:
            full[0] += 1
            raise FOR_EVER["full"]

        return no_room

    translator.submit = submit_small  # type: ignore[attr-defined]
    rounds = 20 if isinstance(translator, FakeTranslator) else 4
    found = list(translator.translate(SENTENCES * rounds))
    texts = [result.hypotheses[0].text for result in expected]
    assert [result.hypotheses[0].text for result in found] == texts * rounds
    assert tried[0] >= len(SENTENCES) * rounds / 2
    assert 0 < full[0] < tried[0] * (2 / rounds)
