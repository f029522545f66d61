"""Architectures of sentence encoders: one class a kind, nested for sums and concatenations."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Unit = Literal["word", "trigram", "sentencepiece"]


class _Vectors(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    unit: Unit = Field(
        "word", description="what has a vector: words, character trigrams, SentencePiece pieces"
    )
    dimension: int = Field(300, ge=1, le=8192, description="of the vectors")
    initial_scale: float = Field(0.01, gt=0, description="standard deviation of a random start")


class AverageParameters(_Vectors):
    """Mean of the vectors: Word, Trigram (W16 Eq. 1, PN 4)."""

    kind: Literal["average"] = "average"


class ProjectionParameters(_Vectors):
    """The mean through a linear layer (W16 Eq. 2)."""

    kind: Literal["projection"]
    output_dimension: int = Field(300, ge=1, description="of a sentence's vector")


class DanParameters(_Vectors):
    """Deep averaging network: the mean through one or two non-linear layers (W16 3)."""

    kind: Literal["dan"]
    output_dimension: int = Field(300, ge=1, description="of a sentence's vector, and of each layer")
    layers: Literal[1, 2] = Field(1, description="number of layers")
    activation: Literal["tanh", "relu"] = Field("tanh", description="of each layer")


class RnnParameters(_Vectors):
    """Recurrent network, last state (W16 Eq. 3-4)."""

    kind: Literal["rnn"]
    output_dimension: int = Field(300, ge=1, description="of the state")
    activation: Literal["tanh", "relu"] = Field("tanh", description="of the state")


class IdentityRnnParameters(_Vectors):
    """Recurrent network that starts as the mean, and is regularised towards that (W16 3)."""

    kind: Literal["identity_rnn"]


class LstmLastParameters(_Vectors):
    """LSTM with peepholes, last state, with or without output gate (W16 Eq. 5-10)."""

    kind: Literal["lstm_last"]
    output_dimension: int = Field(300, ge=1, description="of the state")
    output_gate: bool = Field(True, description="without one the state is tanh of the cell")


class LstmParameters(_Vectors):
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
