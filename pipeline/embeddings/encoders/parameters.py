"""Architectures of sentence encoders: one class per kind, nested for sums and concatenations.

The common ones are here, so that parameters can be checked without importing torch. Others are next to their
networks, in any module of this package. Another package registers its module in the entry point group
`paraforge.encoders`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, get_args

from pydantic import (
    Field,
    SerializeAsAny,
    WrapValidator,
    model_validator,
)

from paraforge.base.plugins import found_classes
from paraforge.base.section import Section
from paraforge.base.text.vocabulary import Unit

if TYPE_CHECKING:
    from torch import Tensor

    from paraforge.embeddings.encoders.encoder import Encoder


class VectorParameters(Section):
    """The vectors that an encoder reads."""

    unit: Unit = Field(
        "word",
        description="units that have vectors: words, character trigrams, either without punctuation (bare), "
        "or SentencePiece pieces",
    )
    dimension: int = Field(300, ge=1, le=8192, description="dimension of the vectors")
    initial_scale: float = Field(0.05, gt=0, description="standard deviation of the random initial vectors")
    initial_frequency: float | None = Field(
        None,
        gt=0,
        description="a: a unit's random start is scaled by a / (a + its probability), so that training starts"
        " from a frequency-weighted average; null: no scaling",
    )
    fixed: bool = Field(False, description="keep the vectors as they start and train only what composes them")

    if TYPE_CHECKING:
        kind: str  # declared by subclasses, which have their own names

    @abstractmethod
    def network(self, table: Tensor) -> Encoder:
        """Return the encoder over initial vectors, (vocabulary, dimension); `Encoder.start` fills its other
        parameters."""


class AverageParameters(VectorParameters):
    """Mean of the vectors: Word, Trigram (W16 Eq. 1, PN 4)."""

    kind: Literal["average"] = "average"
    initial_frequency: float | None = Field(
        0.001,
        gt=0,
        description="a: a unit's random start is scaled by a / (a + its probability), so that training starts"
        " from a frequency-weighted average; null: no scaling",
    )
    initial: Literal["random", "cooccurrence"] = Field(
        "random",
        description="start of units without given vectors: random, or from the units that occur near them in "
        "the training pairs (PPMI and SVD), scaled and weighted in the same way",
    )

    def network(self, table: Tensor) -> Encoder:
        """Return the encoder, which has no compositional parameters."""
        from paraforge.embeddings.encoders.averages import Average

        return Average(table, self.unit)


class LstmParameters(VectorParameters):
    """Mean or maximum of the states of an LSTM or a BLSTM (PN 4; PN A.2: maximum, concatenation)."""

    kind: Literal["lstm", "blstm"]
    output_dimension: int = Field(300, ge=1, description="dimension of the state")
    scramble: float = Field(
        0.3, ge=0, le=1, description="probability that training shuffles the words of a sentence"
    )
    pooling: Literal["mean", "max"] = Field(
        "mean",
        description="how the states of the tokens become a sentence's vector: their mean, or the maximum of "
        "each element",
    )
    directions: Literal["mean", "concatenation"] = Field(
        "mean",
        description="how a BLSTM combines the two states of a token: their mean, or both side by side, which "
        "doubles the length of the vector",
    )

    @model_validator(mode="after")
    def _two_directions(self) -> LstmParameters:
        if self.kind == "lstm" and self.directions != "mean":
            raise ValueError("directions: only a blstm has two")
        return self

    def network(self, table: Tensor) -> Encoder:
        """Return the encoder with one direction or two."""
        from paraforge.embeddings.encoders.recurrent import PooledLstm

        return PooledLstm(table, self)


class CombinationParameters(Section):
    """Sum of encoders, or encoders side by side, trained jointly (PN 4)."""

    kind: Literal["addition", "concatenation"]
    parts: list[EncoderParameters] = Field(
        min_length=2, description="the encoders to combine; to be added, they need equal dimensions"
    )


def output_dimension(encoder: EncoderParameters) -> int | None:
    """Return the dimension of an encoder's vectors; None for a kind in its own file.

    Raises ValueError if parts to add differ in dimension.
    """
    if isinstance(encoder, CombinationParameters):
        parts = [output_dimension(part) for part in encoder.parts]
        known = [part for part in parts if part is not None]
        if encoder.kind == "addition" and len(set(known)) > 1:
            raise ValueError(f"encoder: encoders of dimensions {sorted(set(known))} cannot be added")
        if len(known) < len(parts):
            return None
        return known[0] if encoder.kind == "addition" else sum(known)
    if isinstance(encoder, LstmParameters):
        return encoder.output_dimension * (2 if encoder.directions == "concatenation" else 1)
    return encoder.dimension if isinstance(encoder, AverageParameters) else None


def _from_its_file(value: Any, handler: Callable[[Any], Any]) -> Any:
    """Return the parameters of a kind in its own file."""
    kind = value.get("kind") if isinstance(value, dict) else getattr(value, "kind", None)
    if (parameters := _parameters_of(kind)) is not None:
        return parameters.model_validate(value)
    if isinstance(kind, str) and kind not in _USUAL:
        raise ValueError(f"unknown kind {kind}: use {', '.join([*_USUAL, *encoders_with_files()])}")
    if isinstance(value, str):
        raise ValueError("write its parameters, such as {kind: average, unit: trigram} (docs/embeddings.md)")
    return handler(value)


def _parameters_of(kind: object) -> type[VectorParameters] | None:
    return None if kind in _USUAL or not isinstance(kind, str) else encoders_with_files().get(kind)


def encoders_with_files() -> dict[str, type[VectorParameters]]:
    """Return the kinds in their own files, in alphabetical order. Imports torch."""
    kinds = {
        kind: one
        for one in found_classes(__name__.rpartition(".")[0], VectorParameters)
        if one.__module__ != __name__ and "kind" in one.model_fields
        for kind in get_args(one.model_fields["kind"].annotation)
    }
    return dict(sorted(kinds.items()))


_USUAL: Final = ("average", "lstm", "blstm", "addition", "concatenation")
if TYPE_CHECKING:
    EncoderParameters = VectorParameters | CombinationParameters
else:
    EncoderParameters = SerializeAsAny[
        Annotated[
            Annotated[
                AverageParameters | LstmParameters | CombinationParameters, Field(discriminator="kind")
            ],
            WrapValidator(_from_its_file),
        ]
    ]

CombinationParameters.model_rebuild()

_NAMED = {
    "word": {"kind": "average", "unit": "word"},
    "trigram": {"kind": "average", "unit": "trigram"},
    "bare_word": {"kind": "average", "unit": "bare_word"},
    "bare_trigram": {"kind": "average", "unit": "bare_trigram"},
    "sentencepiece": {"kind": "average", "unit": "sentencepiece"},
    "lstm": {"kind": "lstm"},
    "blstm": {"kind": "blstm"},
}


def named_encoder(text: str) -> dict[str, Any]:
    """Return the parameters of an encoder by its short name, or of a concatenation by names joined with `+`;
    ValueError for an unknown name."""
    parts = []
    for name in text.split("+"):
        if name not in _NAMED and _parameters_of(name) is None:
            known = ", ".join([*_NAMED, *encoders_with_files()])
            raise ValueError(f"unknown encoder '{name}'; use {known}, or several joined by +")
        parts.append(dict(_NAMED.get(name, {"kind": name})))
    return parts[0] if len(parts) == 1 else {"kind": "concatenation", "parts": parts}


def units_of(encoder: EncoderParameters) -> set[str]:
    """Return the units that the encoder reads."""
    if isinstance(encoder, CombinationParameters):
        return set().union(*(units_of(part) for part in encoder.parts))
    return {encoder.unit}
