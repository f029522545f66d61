"""Translating by the engine ``server``."""

from typing import Any

from paraforge.translation.decoding.translator import DecodingOptions, Hypotheses
from paraforge.translation.engines import open_translator
from tests.translation.decoding.remote.fake_server import translation_of

SENTENCES = [f"věta {number} je tady" for number in range(40)]
EXPECTED = [translation_of(sentence) for sentence in SENTENCES]


def translate(
    sentences: list[str] = SENTENCES, nbest: int = 1, maximum_target_tokens: int = 256, **changes: Any
) -> list[Hypotheses]:
    """Results of a server for sentences."""
    options = DecodingOptions(nbest=nbest, maximum_target_tokens=maximum_target_tokens)
    return list(
        open_translator("server", None, options, settings={"model": "m", **changes}).translate(sentences)
    )


def texts(results: list[Hypotheses]) -> list[str | None]:
    """The best hypothesis of each, or why it failed."""
    return [one.hypotheses[0].text if one.hypotheses else one.failed for one in results]
