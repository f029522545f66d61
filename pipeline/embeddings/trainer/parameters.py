"""Sections `embeddings` and `paragram` of params.yaml: encoder, vocabulary, loss, negatives, optimizer."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import Field, field_validator, model_validator

from paraforge.base.section import Section
from paraforge.base.text.paths import FilePath
from paraforge.base.text.vocabulary import WORD_UNITS
from paraforge.embeddings.encoders.parameters import (
    AverageParameters,
    CombinationParameters,
    EncoderParameters,
    output_dimension,
    units_of,
)
from paraforge.embeddings.losses import has_mega_batches, loss_names, needs_teacher

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


class VocabularyParameters(Section):
    """Which units have their own vector; the others share the unknown unit's."""

    minimum_count: int = Field(2, ge=1, description="fewest occurrences; a rarer unit is unknown")
    maximum_size: int = Field(
        50_000,
        ge=1,
        description="largest number of units; the most frequent ones are kept, and the unknown unit is added",
    )


class TrainingParameters(Section):
    """Loss, negatives and optimizer (W16 3.1, PN 4 and 5.2); the defaults are ParaNMT-50M's setting, except
    that M grows to its 40."""

    epochs: int = Field(5, ge=1, description="passes over the pairs")
    batch_size: int = Field(100, ge=1, description="pairs in a mini-batch")
    mega_batch: int = Field(
        40, ge=1, description="mini-batches in a mega-batch (M), in which negatives are chosen"
    )
    anneal: int = Field(
        200,
        ge=0,
        description="updates after which M grows by one, from 1 to mega_batch; 0: M is fixed, and training "
        "from random vectors fails if M is large",
    )
    loss: str = Field(
        "margin",
        description="margin: the papers' hinge loss with one negative per side, chosen from a mega-batch; "
        "softmax: cross-entropy against the other sides of all pairs in the mini-batch, without "
        "mega-batches; distil: learn from the model teacher which sentences are near each other",
    )
    margin: float = Field(0.4, ge=0, le=2, description="margin d of the loss margin")
    scale: float = Field(20.0, gt=0, description="factor for the cosines in the losses softmax and distil")
    two_sided: bool = Field(
        True, description="use negatives of both sides (W16 Eq. 11), or only of the left one"
    )
    one_source: bool = Field(
        False,
        description="take all pairs of a mini-batch from one source (a file, or a value of a corpus' column "
        "source), which makes its negatives harder; not with mega-batches",
    )
    negatives: Literal["max", "mix"] = Field(
        "max", description="MAX; or MIX, which takes MAX with probability 0.5 and otherwise any"
    )
    optimizer: Literal["adam", "adagrad"] = Field("adam", description="Adam or AdaGrad")
    learning_rate: float = Field(0.001, gt=0, description="learning rate")
    average_after: float | None = Field(
        None,
        ge=0,
        lt=1,
        description="share of the training after which parameters are averaged; their mean over the later "
        "updates is evaluated and kept. null: the last parameters are kept",
    )
    clip: float | None = Field(
        None, gt=0, description="clip the whole gradient at this norm; null: no clipping"
    )
    lambda_words: float = Field(0.0, ge=0, description="penalty for vectors that leave their initial values")
    lambda_composition: float = Field(0.0, ge=0, description="penalty for compositional parameters")
    evaluate_every: int = Field(
        0, ge=0, description="pairs between two evaluations; 0: at the end of each epoch"
    )
    patience: int | None = Field(
        None,
        ge=1,
        description="stop after this many evaluations on development sets without a gain; null: never"
        " stop early",
    )
    seed: int = Field(
        1, ge=0, lt=1 << 63, description="random seed for initial values, order, MIX and shuffling"
    )

    @field_validator("loss")
    @classmethod
    def _known_loss(cls, name: str) -> str:
        if name not in loss_names():
            raise ValueError(f"unknown loss; use {', '.join(loss_names())}")
        return name

    @model_validator(mode="after")
    def _enough_candidates(self) -> TrainingParameters:
        if self.batch_size * (1 if self.anneal else self.largest_mega_batch) < 2:
            raise ValueError("a mega-batch with one pair has no negatives: raise batch_size")
        if self.one_source and self.largest_mega_batch > 1:
            raise ValueError("one_source works on mini-batches: set loss softmax, or mega_batch 1")
        return self

    @property
    def largest_mega_batch(self) -> int:
        """Return the largest M: 1 if the loss has its negatives in the mini-batch."""
        return self.mega_batch if has_mega_batches(self.loss) else 1


class PairFileParameters(Section):
    """A file of pairs: PPDB (`LHS ||| phrase ||| paraphrase ||| ...`) or TSV, plain or gz."""

    path: FilePath = Field(description="the file; $NAME is replaced by the environment variable")
    format: Literal["auto", "ppdb", "tsv"] = Field(
        "auto", description="file format: ppdb or tsv; auto looks for ||| in the first line"
    )
    columns: tuple[int, int] | None = Field(
        None, description="the two columns, counted from 0; by default 0 and 1 for a TSV, 1 and 2 for PPDB"
    )
    limit: int | None = Field(
        None, ge=1, description="read only this many pairs from the beginning; null: all"
    )

    @model_validator(mode="after")
    def _two_columns(self) -> PairFileParameters:
        if self.columns is not None and (self.columns[0] == self.columns[1] or min(self.columns) < 0):
            raise ValueError("columns must be two different numbers, starting at 0")
        return self


class ModelParameters(Section):
    """One model: its architecture, initial vectors and training."""

    encoder: EncoderParameters = Field(default_factory=AverageParameters, description="the architecture")
    vocabulary: VocabularyParameters = Field(
        default_factory=VocabularyParameters,
        description="which words and character trigrams the vocabulary has",
    )
    unknown_words: Literal["own", "shared"] = Field(
        "own",
        description="vector of a word outside the vocabulary when text is embedded: its own, from its "
        "trigrams and the known words between its hyphens; or the unknown word's, as in the "
        "papers",
    )
    start: FilePath | None = Field(
        None,
        description="directory of a trained model to train further, with its encoder, vocabulary and unknown "
        "words; null: a new model",
    )
    vectors: FilePath | None = Field(
        None,
        description="word vectors to start from, in word2vec, GloVe or paragram format; null: random",
    )
    sentencepiece_model: FilePath | None = Field(
        None, description="SentencePiece model, for encoders that read its pieces"
    )
    teacher: FilePath | None = Field(
        None,
        description="directory of the sentence-transformers model that the loss distil learns from",
    )
    training: TrainingParameters = Field(
        default_factory=TrainingParameters, description="loss, negatives and optimizer"
    )

    @model_validator(mode="after")
    def _a_teacher_where_the_loss_has_one(self) -> ModelParameters:
        if needs_teacher(self.training.loss) != (self.teacher is not None):
            has = "has no" if self.teacher is not None else "needs a"
            raise ValueError(f"the loss {self.training.loss} {has} teacher")
        return self

    @model_validator(mode="after")
    def _what_units_need(self) -> ModelParameters:
        units = units_of(self.encoder)
        if self.start is not None:
            default = ModelParameters()
            for name in ("vocabulary", "unknown_words", "vectors", "sentencepiece_model"):
                if getattr(self, name) != getattr(default, name):
                    raise ValueError(f"start: leave out {name}, because the trained model has its own")
            return self
        if "sentencepiece" in units and self.sentencepiece_model is None:
            raise ValueError("the encoder reads sentencepiece units: set sentencepiece_model")
        if self.vectors is not None and units.isdisjoint(WORD_UNITS):
            raise ValueError("vectors needs an encoder that reads words")
        if self.vectors is None:  # whose dimension is in their file
            output_dimension(self.encoder)
        if _nothing_to_train(self.encoder):
            raise ValueError("encoder.fixed: an average has nothing to train but its vectors")
        return self


def _nothing_to_train(encoder: EncoderParameters) -> bool:
    if isinstance(encoder, CombinationParameters):
        return all(map(_nothing_to_train, encoder.parts))
    return isinstance(encoder, AverageParameters) and encoder.fixed


class EmbeddingsParameters(Section):
    """Which models to train on the corpus, and how to evaluate them."""

    names: list[str] = Field(
        default_factory=lambda: ["word"],
        min_length=1,
        description="names of the models to train, from those in models",
    )
    models: dict[str, ModelParameters] = Field(
        default_factory=lambda: {"word": ModelParameters()}, description="models by name"
    )
    corpus_pairs: bool = Field(True, description="train on the published corpus")
    pair_files: list[PairFileParameters] = Field(default_factory=list, description="train on these pairs too")
    development: list[FilePath] = Field(
        default_factory=list,
        description="STS files or directories that choose the epoch; empty: the last epoch is kept",
    )
    test_sets: list[FilePath] = Field(
        default_factory=list, description="STS files or directories on which the trained model is evaluated"
    )
    drop_leaked: bool = Field(
        True,
        description="drop pairs with a sentence from development, test_sets or a held-out split; false: only "
        "report them",
    )

    @model_validator(mode="after")
    def _known_names(self) -> EmbeddingsParameters:
        if not self.corpus_pairs and not self.pair_files:
            raise ValueError("there is nothing to train on: set corpus_pairs or pair_files")
        if len(set(self.names)) != len(self.names):
            raise ValueError("names: a name is given twice")
        for name in self.names:
            if name not in self.models:
                raise ValueError(f"names: there is no model '{name}'; models has {', '.join(self.models)}")
            if not NAME.fullmatch(name):
                raise ValueError(f"names: '{name}' names a directory: use only letters, digits, '-' and '_'")
        return self


class ParagramTrainingParameters(TrainingParameters):
    """Negatives of the mini-batch (M = 1) and Adam or AdaGrad, as in Wieting 2016.

    The defaults are not that paper's: 5 epochs, Adam, no penalty and a random start, where it has 10 epochs,
    tuned rates and penalties, and starts from PSL vectors.
    """

    mega_batch: int = Field(
        1, ge=1, description="mini-batches in a mega-batch (M), in which negatives are chosen"
    )


class ParagramParameters(Section):
    """A given model or vector file is used as it is; otherwise the built-in scorer or, without that, vectors
    trained on pairs."""

    built_in: Literal["general"] | None = Field(
        None,
        description="general: the built-in English scorer, unless model or vectors is set; null: train "
        "vectors on pairs",
    )
    model: FilePath | None = Field(
        None,
        description="directory of a trained sentence model (models/embeddings/NAME) to score with, instead of"
        " word vectors",
    )
    vectors: FilePath | None = Field(
        None,
        description="word vectors to use unchanged, in word2vec, GloVe or paragram format, plain or "
        "compressed; environment variables ($NAME) are expanded",
    )
    corpus_pairs: bool = Field(True, description="train on the corpus' own references and translations")
    pair_files: list[PairFileParameters] = Field(default_factory=list, description="train on these pairs too")
    dimension: int = Field(300, ge=1, le=4096, description="dimension of trained vectors")
    initial_scale: float = Field(0.01, gt=0, description="standard deviation of the random initial vectors")
    vocabulary: VocabularyParameters = Field(default_factory=VocabularyParameters)
    training: ParagramTrainingParameters = Field(
        default_factory=ParagramTrainingParameters, description="loss, negatives and optimizer"
    )

    @model_validator(mode="after")
    def _something_to_do(self) -> ParagramParameters:
        is_set = any(value is not None for value in (self.built_in, self.model, self.vectors))
        if not is_set and not self.corpus_pairs and not self.pair_files:
            raise ValueError(
                "set built_in, model or vectors, or name pairs to train on: corpus_pairs or pair_files"
            )
        if self.model is not None and self.vectors is not None:
            raise ValueError("set model or vectors, not both")
        if needs_teacher(self.training.loss):
            raise ValueError("training.loss: only models of the section embeddings have a teacher")
        if self.training.lambda_words:
            raise ValueError("training.lambda_words needs given vectors: train a model of embeddings.models")
        if self.training.patience is not None:
            raise ValueError("training.patience needs development sets: train a model of embeddings.models")
        return self

    @property
    def uses_built_in(self) -> bool:
        """Return whether the built-in scorer computes the paraphrase score."""
        return self.built_in is not None and self.model is None and self.vectors is None
