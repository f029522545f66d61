"""Architectures of sentence encoders: one class a kind, nested for sums and concatenations."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

Unit = Literal["word", "trigram", "bare_word", "bare_trigram", "sentencepiece"]
WORD: Final = "word"
WORD_UNITS: Final = (WORD, "bare_word")
"""Units that are words, so that a table of their vectors is one of word vectors."""


class VectorParameters(BaseModel):
    """The vectors that an encoder reads."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    unit: Unit = Field(
        "word",
        description="what has a vector: words, character trigrams, either without punctuation (bare), "
        "SentencePiece pieces",
    )
    dimension: int = Field(300, ge=1, le=8192, description="of the vectors")
    initial_scale: float = Field(0.01, gt=0, description="standard deviation of a random start")
    initial_frequency: float | None = Field(
        None,
        gt=0,
        description="a: a unit's random start is scaled by a / (a + its probability), so that training "
        "starts from a frequency-weighted bag of units; null: all alike",
    )


class AverageParameters(VectorParameters):
    """Mean of the vectors: Word, Trigram (W16 Eq. 1, PN 4)."""

    kind: Literal["average"] = "average"
    initial_scale: float = Field(0.05, gt=0, description="standard deviation of a random start")
    initial_frequency: float | None = Field(
        0.001,
        gt=0,
        description="a: a unit's random start is scaled by a / (a + its probability), so that training "
        "starts from a frequency-weighted bag of units; null: all alike",
    )


class ProjectionParameters(VectorParameters):
    """The mean through a linear layer (W16 Eq. 2)."""

    kind: Literal["projection"]
    output_dimension: int = Field(300, ge=1, description="of a sentence's vector")


class DanParameters(VectorParameters):
    """Deep averaging network: the mean through one or two non-linear layers (W16 3)."""

    kind: Literal["dan"]
    output_dimension: int = Field(300, ge=1, description="of a sentence's vector, and of each layer")
    layers: Literal[1, 2] = Field(1, description="number of layers")
    activation: Literal["tanh", "relu"] = Field("tanh", description="of each layer")


class RnnParameters(VectorParameters):
    """Recurrent network, last state (W16 Eq. 3-4)."""

    kind: Literal["rnn"]
    output_dimension: int = Field(300, ge=1, description="of the state")
    activation: Literal["tanh", "relu"] = Field("tanh", description="of the state")


class IdentityRnnParameters(VectorParameters):
    """Recurrent network that starts as the mean (W16 3); lambda_composition, 0 by default, pulls to it."""

    kind: Literal["identity_rnn"]


class LstmLastParameters(VectorParameters):
    """LSTM with peepholes, last state, with or without output gate (W16 Eq. 5-10)."""

    kind: Literal["lstm_last"]
    output_dimension: int = Field(300, ge=1, description="of the state")
    output_gate: bool = Field(True, description="without one the state is tanh of the cell")


class LstmParameters(VectorParameters):
    """Mean of the states of an LSTM, or of the averaged two directions of a BLSTM (PN 4)."""

    kind: Literal["lstm", "blstm"]
    output_dimension: int = Field(300, ge=1, description="of the state")
    scramble: float = Field(0.3, ge=0, le=1, description="probability that training shuffles a sentence")


class CombinationParameters(BaseModel):
    """Sum of encoders, or encoders side by side, trained jointly (PN 4)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["addition", "concatenation"]
    parts: list[EncoderParameters] = Field(min_length=2, description="the encoders; equal dimensions to add")


EncoderParameters = Annotated[
    AverageParameters
    | ProjectionParameters
    | DanParameters
    | RnnParameters
    | IdentityRnnParameters
    | LstmLastParameters
    | LstmParameters
    | CombinationParameters,
    Field(discriminator="kind"),
]

CombinationParameters.model_rebuild()

_NAMED = {
    "word": {"kind": "average", "unit": "word"},
    "trigram": {"kind": "average", "unit": "trigram"},
    "bare_word": {"kind": "average", "unit": "bare_word"},
    "bare_trigram": {"kind": "average", "unit": "bare_trigram"},
    "sentencepiece": {"kind": "average", "unit": "sentencepiece"},
    "projection": {"kind": "projection"},
    "dan": {"kind": "dan"},
    "rnn": {"kind": "rnn"},
    "identity_rnn": {"kind": "identity_rnn"},
    "lstm_last": {"kind": "lstm_last"},
    "lstm": {"kind": "lstm"},
    "blstm": {"kind": "blstm"},
}


def named_encoder(text: str) -> dict[str, Any]:
    """Parameters of an encoder by its short name; names joined by `+` stand for a concatenation.

    Raises ValueError where there is no such name.
    """
    parts = []
    for name in text.split("+"):
        if name not in _NAMED:
            raise ValueError(f"there is no encoder '{name}'; there are {', '.join(_NAMED)}, joined by +")
        parts.append(dict(_NAMED[name]))
    return parts[0] if len(parts) == 1 else {"kind": "concatenation", "parts": parts}


def units_of(encoder: EncoderParameters) -> set[str]:
    """The units that an encoder reads."""
    if isinstance(encoder, CombinationParameters):
        return set().union(*(units_of(part) for part in encoder.parts))
    return {encoder.unit}
