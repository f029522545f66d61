"""Section ``paragram`` of params.yaml: the paragram-phrase vectors, read from a file or trained."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, model_validator

from pipeline.configuration.embeddings import PairFileParameters, TrainingParameters, VocabularyParameters


class ParagramParameters(BaseModel):
    """Where a vector file is given it is read as it is; otherwise vectors are trained on pairs."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    vectors: Path | None = Field(
        None, description="vectors to use as they are: word2vec, GloVe or paragram text, plain or gz"
    )
    initial_vectors: Path | None = Field(
        None, description="vectors that training starts from and is regularised towards; same formats"
    )
    corpus_pairs: bool = Field(True, description="train on the corpus' own references and translations")
    pair_files: list[PairFileParameters] = Field(default_factory=list, description="train on these pairs too")
    dimension: int = Field(
        300, ge=1, le=4096, description="of trained vectors; initial vectors have their own"
    )
    initial_scale: float = Field(
        0.1, gt=0, description="standard deviation of the random start of a vector's elements"
    )
    vocabulary: VocabularyParameters = Field(default_factory=VocabularyParameters)
    training: TrainingParameters = Field(default_factory=TrainingParameters)

    @model_validator(mode="after")
    def _something_to_do(self) -> ParagramParameters:
        if self.vectors is None and not self.corpus_pairs and not self.pair_files:
            raise ValueError("give vectors, or pairs to train on: corpus_pairs or pair_files")
        if self.vectors is not None and self.initial_vectors is not None:
            raise ValueError("vectors are used as they are: initial_vectors has no meaning beside them")
        if self.training.lambda_words and self.initial_vectors is None:
            raise ValueError("training.lambda_words needs initial_vectors")
        return self
