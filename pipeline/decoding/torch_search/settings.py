"""What the search of the engine ``torch`` offers beyond what every engine does."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from paraforge.decoding.translator import DecodingOptions, EngineSettings


class SearchSettings(EngineSettings):
    """How hypotheses are looked for; a translation depends on each of these."""

    method: Literal["beam", "sampling"] = Field("beam", description="sampling: beam samples a sentence")
    target_factor: float = Field(
        0.0,
        ge=0,
        description="at most target_factor * source tokens + target_extra target tokens; 0: as many as any",
    )
    target_extra: int = Field(0, ge=0)
    no_repeat_ngram: int = Field(0, ge=0, description="no n-gram of so many tokens twice; 0: it may be")
    forced_prefix: str = Field(
        "", description="text that every hypothesis begins with; part of it, in text, score and length"
    )
    groups: int = Field(
        1, ge=1, description="diverse beam search (Vijayakumar et al. 2016): groups that share the beam"
    )
    diversity: float = Field(
        0.5,
        ge=0,
        description="what a token costs that an earlier group took at this step, in nats; not in the score",
    )
    temperature: float = Field(1.0, gt=0, description="sampling: logits are divided by it")
    top_k: int = Field(0, ge=0, description="sampling: among so many most probable tokens; 0: all")
    top_p: float = Field(
        1.0, gt=0, le=1, description="sampling: among the fewest tokens that have this probability together"
    )
    seed: int = Field(1, description="sampling: another seed draws other translations")

    def check(self, options: DecodingOptions) -> None:
        """Compare groups with the beam. Raises ValueError: they do not go together."""
        if options.beam % self.groups:
            raise ValueError(f"a beam of {options.beam} cannot be shared by {self.groups} groups")
        if self.groups > 1 and self.method == "sampling":
            raise ValueError("torch.groups is for method beam: samples have no groups")

    def cap(self, source_tokens: int, maximum: int) -> int:
        """Most tokens of a hypothesis, end-of-sentence included.

        source_tokens: of the sentence, end-of-sentence included. maximum: for any sentence.
        """
        if not self.target_factor:
            return maximum
        return max(2, min(maximum, int(self.target_factor * source_tokens) + self.target_extra))
