"""Parameters of models that predict neighboring sentences, and names of their representations."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field, ValidationError, model_validator

from paraforge.base.errors import InputError
from paraforge.base.section import Section
from paraforge.embeddings.encoders.parameters import VectorParameters
from paraforge.embeddings.trainer.parameters import VocabularyParameters

if TYPE_CHECKING:
    from torch import Tensor

    from paraforge.embeddings.encoders.protocol import Encoder

LARGEST_STEPS = 30
"""The largest number of hidden states to read from a decoder."""


class NetworkParameters(Section):
    """An encoder, and a decoder each for the previous and the next sentence (DD 4)."""

    encoder: Literal["bow", "gru"] = Field(
        "bow", description="bow: sum of the word vectors; gru: last state of a layer-normalised GRU"
    )
    decoder: Literal["bow", "gru"] = Field(
        "gru",
        description="bow: each word depends only on the context; gru: also on the words before it",
    )
    word_dimension: int = Field(620, ge=1, le=8192, description="dimension of the word vectors")
    state_dimension: int = Field(
        2400,
        ge=1,
        le=16384,
        description="dimension of a GRU encoder's state. A decoder's state begins as the context and has its "
        "dimension, which is word_dimension with encoder bow",
    )
    initial_bound: float = Field(
        0.1,
        gt=0,
        description="weights start uniform between minus this and plus this; gains of layer norm start at 1",
    )

    @property
    def context_dimension(self) -> int:
        """The dimension of the context and of a decoder's state."""
        return self.word_dimension if self.encoder == "bow" else self.state_dimension


class RepresentationParameters(Section):
    """The representation of a sentence, and how two of them are compared."""

    kind: Literal["context", "unrolled", "mean"] = Field(
        "unrolled",
        description="context: the encoder's output; unrolled: the first states of both decoders side by "
        "side; mean: their mean",
    )
    steps: int = Field(
        3,
        ge=1,
        le=LARGEST_STEPS,
        description="number of states to read from each decoder; not for the context",
    )
    similarity: Literal["dot", "cosine"] = Field("dot", description="dot product, or cosine")

    def __str__(self) -> str:
        """Return the representation as in the name of a model: `unrolled:3`, `context:cosine`."""
        steps = "" if self.kind == "context" else f":{self.steps}"
        return f"{self.kind}{steps}{'' if self.similarity == 'dot' else ':cosine'}"


class PredictionParameters(Section):
    """Optimiser and length of a training; Adam without weight decay or dropout (DD 4)."""

    epochs: int = Field(1, ge=1, description="passes over the triples")
    updates: int | None = Field(
        None, ge=1, description="largest number of updates, if that is fewer than epochs gives"
    )
    batch_size: int = Field(128, ge=1, description="triples in an update")
    learning_rate: float = Field(0.0008, gt=0, description="of Adam")
    clip: float | None = Field(
        5.0,
        gt=0,
        description="clip the whole gradient of the mean per word at this norm; null: no clipping. The "
        "paper's code clips the gradient of a sum at this number",
    )
    precision: Literal["float32", "bfloat16"] = Field(
        "float32",
        description="number format of the products with the output vectors, which are most of the work; "
        "bfloat16 is twice as fast on CPUs that support it",
    )
    evaluate_every: int = Field(
        0, ge=0, description="updates between two evaluations; 0: at the end of each epoch"
    )
    patience: int | None = Field(
        None, ge=1, description="stop after this many evaluations without a gain; null: never stop early"
    )
    seed: int = Field(1, ge=0, lt=1 << 63, description="random seed for initial values and order")


class DecodersParameters(Section):
    """One model: its network, vocabulary, training and representation."""

    network: NetworkParameters = Field(default_factory=NetworkParameters, description="the architecture")
    vocabulary: VocabularyParameters = Field(
        default_factory=lambda: VocabularyParameters(minimum_count=1, maximum_size=20_000),
        description="the vocabulary; the unknown word and the end of a sentence are added",
    )
    maximum_length: int = Field(
        30, ge=2, description="most words of a sentence, its end included; the rest is cut off"
    )
    training: PredictionParameters = Field(
        default_factory=PredictionParameters, description="optimizer and length"
    )
    representation: RepresentationParameters | None = Field(
        None,
        description="representation that development sets judge and that the model gives by default; null: "
        "the space of the decoder's objective, unrolled for gru and context for bow",
    )

    @property
    def reading(self) -> RepresentationParameters:
        """The chosen or default representation."""
        if self.representation is not None:
            return self.representation
        return RepresentationParameters(kind="unrolled" if self.network.decoder == "gru" else "context")

    @model_validator(mode="after")
    def _something_to_unroll(self) -> DecodersParameters:
        check_representation(self.network, self.reading)
        return self


def check_representation(network: NetworkParameters, representation: RepresentationParameters) -> None:
    """Raise ValueError if the network's decoders have no states to unroll."""
    if representation.kind != "context" and network.decoder == "bow":
        raise ValueError(
            f"representation {representation.kind}: a bow decoder has no states to unroll; use context"
        )


class ReaderParameters(VectorParameters):
    """Trained decoders as an encoder of sentences: `predicted` words have an output vector."""

    kind: Literal["decoders"] = "decoders"
    layers: NetworkParameters
    predicted: int = Field(ge=1)
    maximum_length: int
    representation: RepresentationParameters

    def network(self, table: Tensor) -> Encoder:
        """Return a network of this architecture with these word vectors."""
        from paraforge.papers.unrolling.network import Reader, SentencePredictor

        network = SentencePredictor(self.layers, len(table), 0, self.predicted)
        network.words.data.copy_(table)
        return Reader(network, self)


DESCRIPTION = "decoders.json"
"""The file that identifies a directory as such a model."""


def is_decoder_model(name: str | Path) -> bool:
    """Return whether a name, with or without a representation, is a model of this kind."""
    directory, _, _ = str(name).rpartition("@")
    return any((Path(path) / DESCRIPTION).is_file() for path in (str(name), directory) if path)


def split_name(name: str | Path) -> tuple[Path, RepresentationParameters | None]:
    """Return the directory, and the representation after the last `@`, if any. Raises InputError if that is
    not a representation."""
    path = Path(name)
    before, at, text = str(name).rpartition("@")
    if not at or path.exists():
        return path, None
    return Path(before), parse_representation(text, before)


def parse_representation(text: str, model: str | None = None) -> RepresentationParameters:
    """Parse `context`, `unrolled:N` or `mean:N`, N states per decoder (default 3), with `:cosine` appended if
    vectors are compared by cosine instead of dot product. Raises InputError about `model` otherwise."""
    kind, *rest = text.split(":")
    values: dict[str, object] = {"kind": kind}
    if rest and rest[-1] in ("cosine", "dot"):
        values["similarity"] = rest.pop()
    if rest and rest[0].isascii() and rest[0].isdecimal() and kind != "context":
        values["steps"] = int(rest.pop(0))
    try:
        if rest:
            raise ValueError(f"'{':'.join(rest)}' is not a known suffix")
        return RepresentationParameters.model_validate(values)
    except (ValidationError, ValueError) as error:
        raise InputError(
            f"no representation '{text}'",
            model,
            remedy=f"Use context, unrolled:N or mean:N with N from 1 to {LARGEST_STEPS}; append :cosine to "
            "compare by cosine.",
        ) from error
