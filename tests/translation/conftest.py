"""What the tests of the translation memory share."""

from collections.abc import Iterator

import pytest

from paraforge.translation.engines.fake import FakeTranslator


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The sentences that the engine was given."""
    texts: list[str] = []
    encode = FakeTranslator.encode

    def listening(self: FakeTranslator, sentences: list[str]) -> object:
        texts.extend(sentences)
        return encode(self, sentences)

    monkeypatch.setattr(FakeTranslator, "encode", listening)
    yield texts
