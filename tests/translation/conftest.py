"""Fixtures for the tests of translation."""

from collections import Counter

import pytest

from paraforge.translation.decoding.batching import SourceTokens
from paraforge.translation.decoding.translator import Hypothesis
from paraforge.translation.engines.fake import FakeTranslator


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The sentences that the engine was given."""
    texts: list[str] = []
    encode = FakeTranslator.encode

    def listening(self: FakeTranslator, sentences: list[str]) -> object:
        texts.extend(sentences)
        return encode(self, sentences)

    monkeypatch.setattr(FakeTranslator, "encode", listening)
    return texts


@pytest.fixture
def paid(monkeypatch: pytest.MonkeyPatch) -> Counter[tuple[int, str]]:
    """How often the engine translated each sentence, by its seed; without "1", which it is asked where a
    sentence fails, to see whether it still works."""
    counts: Counter[tuple[int, str]] = Counter()
    translated = FakeTranslator._hypotheses

    def counted(self: FakeTranslator, source: SourceTokens) -> tuple[Hypothesis, ...]:
        if source.sentence != "1":
            counts[self._settings.seed, source.sentence] += 1
        return translated(self, source)

    monkeypatch.setattr(FakeTranslator, "_hypotheses", counted)
    return counts
