"""What a search of the engine ``torch`` is given: settings beyond those of every engine, and rules."""

from __future__ import annotations

from dataclasses import dataclass, field

from pydantic import Field

from paraforge.translation.decoding.translator import VarietySettings


class SearchSettings(VarietySettings):
    """What this engine offers beyond the settings that fairseq has, too."""

    target_factor: float = Field(
        0.0,
        ge=0,
        description="at most target_factor * source tokens + target_extra target tokens; 0: as many as any",
    )
    target_extra: int = Field(0, ge=0)
    no_repeat_ngram: int = Field(0, ge=0, description="no n-gram of this many tokens twice; 0: no limit")
    forced_prefix: str = Field(
        "", description="text that every hypothesis begins with; part of it, in text, score and length"
    )

    def cap(self, source_tokens: int, maximum: int) -> int:
        """Most tokens of a hypothesis, end-of-sentence included.

        source_tokens: of the sentence, end-of-sentence included. maximum: for any sentence.
        """
        if not self.target_factor:
            return maximum
        return max(2, min(maximum, int(self.target_factor * source_tokens) + self.target_extra))


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
