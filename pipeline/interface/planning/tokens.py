"""Tokens that a translation by a server takes, and what they cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from paraforge.translation.decoding.remote.prompt import estimated_tokens
from paraforge.translation.decoding.remote.settings import Server
from paraforge.translation.decoding.translator import Usage
from paraforge.translation.stage.population import Population

_MILLION = 1e6


@dataclass(frozen=True)
class Tokens:
    """Tokens of a sentence on average, prompt and answers, and prices of a million of either.

    counted: whether the server counted them, on a sample; else they are estimated from the texts.
    """

    input: float
    output: float
    counted: bool
    input_price: float | None = None
    output_price: float | None = None

    def cost(self, sentences: int) -> float | None:
        """Price of this many sentences; None where no price is known."""
        if self.input_price is None and self.output_price is None:
            return None
        each = self.input * (self.input_price or 0) + self.output * (self.output_price or 0)
        return sentences * each / _MILLION

    def described(self, sentences: int) -> dict[str, Any]:
        """As JSON values, for this many sentences."""
        return {
            "input_tokens": round(self.input * sentences),
            "output_tokens": round(self.output * sentences),
            "counted": self.counted,
            "cost": self.cost(sentences),
        }


def tokens_of(
    server: Server,
    population: Population,
    nbest: int,
    sample: tuple[Usage, int] | None,
    prices: tuple[float | None, float | None],
) -> Tokens:
    """Tokens of a sentence: of the sample's, if the server counted them, else an estimate from the texts.

    server: settings of the engine. population: what is to be translated.
    nbest: hypotheses kept of a sentence.
    sample: what the server counted, and for how many sentences; None without a sample.
    prices: of a million input and output tokens, where they are known.
    """
    if sample is not None and sample[0].input_tokens:
        usage, sentences = sample
        return Tokens(usage.input_tokens / sentences, usage.output_tokens / sentences, True, *prices)
    given = made = 0.0
    for stratum in population.strata.values():
        sizes = [estimated_tokens(text) for text in stratum.kept]
        mean = sum(sizes) / max(1, len(sizes)) * stratum.sentences
        given, made = given + mean, made + mean
    count = max(1, population.sentences)
    around = sum(estimated_tokens(one["content"]) + 4 for one in server.messages(""))
    return Tokens(around + given / count, server.samples_for(nbest) * (1 + made / count), False, *prices)
