"""What the search of the engine ``torch`` offers beyond what every engine does."""

from __future__ import annotations

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
