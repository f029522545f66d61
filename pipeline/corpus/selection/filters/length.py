"""Filter ``length``: keeps pairs whose sides have a number of tokens within bounds."""

from typing import Literal

from pydantic import Field

from paraforge.corpus.selection.filters import AcceptedPairs, Filter
from paraforge.corpus.selection.filters.bounds import IntervalParameters, interval_filter, interval_text

LENGTHS = ("reference_tokens", "translation_tokens")


class LengthParameters(IntervalParameters):
    """Tokens of the reference and of the translation, each within the bounds."""

    kind: Literal["length"]
    minimum: float | None = Field(None, description="lower bound; null for none")
    maximum: float | None = Field(None, description="upper bound; null for none")

    def columns(self) -> tuple[str, ...]:
        """Return the tokens of both sides."""
        return LENGTHS

    def refusal(self) -> str:
        """E.g. ``fewer than 1 or more than 30 tokens on one side``."""
        sides = (("fewer than", self.minimum), ("more than", self.maximum))
        return f"{' or '.join(f'{word} {n:g}' for word, n in sides if n is not None)} tokens on one side"

    def signature(self, fingerprint: str | None = None) -> tuple[str, str]:
        """E.g. ``len:1-30``."""
        return "len", interval_text(self.minimum, self.maximum)

    def prepare(self, pairs: AcceptedPairs) -> Filter:
        """See :class:`~paraforge.corpus.selection.filters.FilterParameters`."""
        return interval_filter(self.reason, LENGTHS, self.minimum, self.maximum)
