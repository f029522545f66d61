"""Parameters of models that predict neighboring sentences, and names of their representations."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from paraforge.base.errors import InputError
from paraforge.base.section import Section
from paraforge.embeddings.encoders.parameters import VectorParameters
from paraforge.embeddings.trainer.parameters import VocabularyParameters

if TYPE_CHECKING:
    from torch import Tensor

    from paraforge.embeddings.encoders.encoder import Encoder

LARGEST_STEPS = 30
"""The largest number of hidden states to read from a decoder."""


class NetworkParameters(Section):
    """The architecture: an encoder, and one decoder each for the previous and the next sentence (DD 4)."""

    encoder: Literal["bow", "gru"] = Field(
        "bow", description="bow: sum of the word vectors; gru: last state of a layer-normalized GRU"
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
        """Return the representation as written in a model's name: `unrolled:3`, `context:cosine`."""
        steps = "" if self.kind == "context" else f":{self.steps}"
        return f"{self.kind}{steps}{'' if self.similarity == 'dot' else ':cosine'}"


class PredictionParameters(Section):
    """Optimizer and length of a training; Adam without weight decay or dropout (DD 4)."""

    epochs: int = Field(1, ge=1, description="passes over the triples")
    updates: int | None = Field(
        None, ge=1, description="largest number of updates; null: all updates of the epochs"
    )
    batch_size: int = Field(128, ge=1, description="triples in an update")
    learning_rate: float = Field(0.0008, gt=0, description="learning rate of Adam")
    precision: Literal["float32", "bfloat16"] = Field(
        "float32",
        description="number format of the products with the output vectors, which are most of the work; "
        "bfloat16 is twice as fast on CPUs that support it",
    )
    seed: int = Field(1, ge=0, lt=1 << 63, description="random seed for initial values and order")


class DecodersParameters(Section):
    """One model: its network, vocabulary and training."""

    network: NetworkParameters = Field(default_factory=NetworkParameters, description="the architecture")
    vocabulary: VocabularyParameters = Field(
        default_factory=lambda: VocabularyParameters(minimum_count=1, maximum_size=20_000),
        description="the vocabulary; the unknown word and the end of a sentence are added",
    )
    training: PredictionParameters = Field(
        default_factory=PredictionParameters, description="optimizer and length"
    )


class ReaderParameters(VectorParameters):
    """Trained decoders as an encoder of sentences: `predicted` words have an output vector."""

    kind: Literal["decoders"] = "decoders"
    layers: NetworkParameters
    predicted: int = Field(ge=1)
    representation: RepresentationParameters

    def network(self, table: Tensor) -> Encoder:
        """Return a network of this architecture with these word vectors."""
        from paraforge.papers.unrolling.network import Reader, SentencePredictor

        network = SentencePredictor(self.layers, len(table), 0, self.predicted)
        network.words.data.copy_(table)
        return Reader(network, self)


DESCRIPTION = "decoders.json"
"""A directory with this file has trained decoders."""


def is_decoder_model(name: str | Path) -> bool:
    """Return whether a name, with or without a representation, is a directory with trained decoders."""
    directory, _, _ = str(name).rpartition("@")
    return any((Path(path) / DESCRIPTION).is_file() for path in (str(name), directory) if path)


def split_name(name: str | Path) -> tuple[Path, RepresentationParameters | None]:
    """Split a model's name into its directory and the representation after the last `@`, if there is one.

    A representation is `context`, `unrolled:N` or `mean:N`, with N states per decoder (default 3); `:cosine`
    is appended if vectors are compared by cosine instead of dot product. Raises InputError for others.
    """
    path = Path(name)
    before, at, text = str(name).rpartition("@")
    if not at or path.exists():
        return path, None
    kind = r"(?P<kind>context|(?:unrolled|mean)(?::(?P<steps>[1-9][0-9]?))?)"
    match = re.fullmatch(f"{kind}(?::(?P<similarity>dot|cosine))?", text)
    if match is None or int(match["steps"] or 1) > LARGEST_STEPS:
        raise InputError(
            f"no representation '{text}'",
            before,
            remedy=f"Use context, unrolled:N or mean:N with N from 1 to {LARGEST_STEPS}; append :cosine to "
            "compare by cosine.",
        )
    values = {name: value for name, value in match.groupdict().items() if value is not None}
    values["kind"] = values["kind"].partition(":")[0]
    return Path(before), RepresentationParameters.model_validate(values)
