"""Section ``paragram`` of params.yaml: what the paraphrase score is computed with, given or trained."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from paraforge.embeddings.parameters import PairFileParameters, TrainingParameters, VocabularyParameters
from paraforge.text.paths import FilePath


class ParagramTrainingParameters(TrainingParameters):
    """Negatives of the mini-batch (M = 1) and Adam or AdaGrad, as in Wieting 2016.

    The defaults are not that paper's: 5 epochs, Adam, no penalty and a random start, where it has 10 epochs,
    tuned rates and penalties, and starts from PSL vectors.
    """

    mega_batch: int = Field(1, ge=1, description="mini-batches of a mega-batch (M), the set of negatives")
    table_updates: Literal["lazy", "deferred", "dense"] = Field(
        "deferred", description="how Adam treats the rows that a mini-batch does not touch"
    )


class ParagramParameters(BaseModel):
    """A model or a vector file that is given is used as it is; otherwise vectors are trained on pairs."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: FilePath | None = Field(
        None,
        min_length=1,
        description="directory of a trained sentence model (models/embeddings/NAME) to score with, in place "
        "of word vectors",
    )
    vectors: FilePath | None = Field(
        None,
        min_length=1,
        description="vectors to use as they are: word2vec, GloVe or paragram format, plain or compressed; "
        "$NAME is replaced by the environment variable",
    )
    initial_vectors: FilePath | None = Field(
        None,
        min_length=1,
        description="vectors that training starts from; training.lambda_words pulls to them",
    )
    corpus_pairs: bool = Field(True, description="train on the corpus' own references and translations")
    pair_files: list[PairFileParameters] = Field(default_factory=list, description="train on these pairs too")
    dimension: int = Field(
        300, ge=1, le=4096, description="of trained vectors; initial vectors have their own"
    )
    initial_scale: float = Field(
        0.01, gt=0, description="standard deviation of the random start of a vector's elements"
    )
    vocabulary: VocabularyParameters = Field(default_factory=VocabularyParameters)
    training: ParagramTrainingParameters = Field(
        default_factory=ParagramTrainingParameters, description="loss, negatives and optimiser"
    )

    @model_validator(mode="after")
    def _something_to_do(self) -> ParagramParameters:
        given = self.model is not None or self.vectors is not None
        if not given and not self.corpus_pairs and not self.pair_files:
            raise ValueError("give a model, vectors, or pairs to train on: corpus_pairs or pair_files")
        if self.model is not None and (self.vectors is not None or self.initial_vectors is not None):
            raise ValueError("the model is used as it is: vectors and initial_vectors cannot be given too")
        if self.vectors is not None and self.initial_vectors is not None:
            raise ValueError("vectors are used as they are: initial_vectors cannot be given too")
        if self.training.lambda_words and self.initial_vectors is None:
            raise ValueError("training.lambda_words needs initial_vectors")
        return self
