"""What a search is given beside weights and sentences."""

from __future__ import annotations

from dataclasses import dataclass, field

from paraforge.translation.torch_search.settings import SearchSettings


@dataclass(frozen=True)
class Rules:
    """Rules of a search.

    beam: hypotheses of a sentence that are followed at a time.
    length_penalty: a hypothesis' score is its log-probability / length ** length_penalty.
    start: the decoder's first input. end: end-of-sentence. banned: types that no hypothesis has.
    free: this many first tokens of a forced prefix (language tags) are no part of score and length.
    settings: what else the user chose.
    """

    beam: int
    length_penalty: float
    start: int
    end: int
    banned: tuple[int, ...]
    free: int = 0
    settings: SearchSettings = field(default_factory=SearchSettings)

    @property
    def shortest(self) -> int:
        """Tokens before end-of-sentence, at least: as in fairseq a hypothesis is more than its end."""
        return self.free + 1

    @property
    def sampling(self) -> bool:
        """Whether hypotheses are drawn."""
        return self.settings.method == "sampling"
