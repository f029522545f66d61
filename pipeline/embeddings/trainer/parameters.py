"""Sections `embeddings` and `paragram` of params.yaml: encoder, vocabulary, loss, negatives, optimiser."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from paraforge.base.section import Section
from paraforge.base.text.paths import FilePath
from paraforge.base.text.vocabulary import WORD_UNITS
from paraforge.embeddings.encoders.parameters import AverageParameters, EncoderParameters, units_of
from paraforge.embeddings.losses import has_mega_batches, loss_names, needs_teacher

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


class VocabularyParameters(Section):
    """Which units have a vector of their own; the others share the unknown unit's."""

    minimum_count: int = Field(2, ge=1, description="a rarer unit is unknown")
    maximum_size: int = Field(
        50_000, ge=1, description="largest number of units, the most frequent ones; the unknown unit is added"
    )


class TrainingParameters(Section):
    """Loss, negatives and optimiser (W16 3.1, PN 4 and 5.2); the defaults are ParaNMT-50M's setting, but that
    M grows to its 40."""

    removed: ClassVar[Mapping[str, str]] = {
        "precision": "an encoder is trained in float32",
        "table_updates": "Adam makes up for the steps that a row missed",
        "prefixes": "sentence-transformers' Matryoshka loss trains such vectors",
        "negative_precision": "it is bfloat16",
        "exclude_identical": "identical texts are never negatives",
    }

    epochs: int = Field(5, ge=1, description="passes over the pairs")
    batch_size: int = Field(100, ge=1, description="pairs of a mini-batch")
    mega_batch: int = Field(40, ge=1, description="mini-batches of a mega-batch (M), the set of negatives")
    anneal: int = Field(
        200,
        ge=0,
        description="updates after which M grows by one, from 1 to mega_batch; 0: M is fixed, which a random "
        "start does not survive if M is large",
    )
    loss: str = Field(
        "margin",
        description="margin: the papers' hinge with one negative a side, chosen from a mega-batch; softmax: "
        "the other sides of all other pairs of the mini-batch are negatives, by cross-entropy, without "
        "mega-batches; cosent: the order of the pairs' scores; antonyms: softmax, and pairs of score 0 are "
        "pushed apart; distil: of each sentence which others the model teacher finds near",
    )
    margin: float = Field(0.4, ge=0, le=2, description="d of the loss margin")
    scale: float = Field(
        20.0, gt=0, description="factor of the cosines in the losses softmax, antonyms, cosent and distil"
    )
    two_sided: bool = Field(True, description="negatives of both sides (W16 Eq. 11), or of the left one only")
    one_source: bool = Field(
        False,
        description="a mini-batch holds pairs of one source (file, or column source of a corpus), so that "
        "its negatives are harder; without mega-batches",
    )
    negatives: Literal["max", "mix"] = Field(
        "max", description="MAX, or MAX with probability 0.5 else uniform"
    )
    optimiser: Literal["adam", "adagrad"] = Field("adam", description="Adam or AdaGrad")
    learning_rate: float = Field(0.001, gt=0, description="Adam 0.001, AdaGrad 0.05")
    average_after: float | None = Field(
        None,
        ge=0,
        lt=1,
        description="share of the training after which parameters are averaged: evaluated and kept is "
        "their mean over the updates since then; null: the last ones",
    )
    clip: float | None = Field(
        None, gt=0, description="largest norm of the whole gradient; null: no clipping"
    )
    lambda_words: float = Field(0.0, ge=0, description="penalty of vectors for leaving their initial values")
    lambda_composition: float = Field(0.0, ge=0, description="penalty of compositional parameters")
    evaluate_every: int = Field(
        0, ge=0, description="pairs between two evaluations; 0: at the end of each epoch"
    )
    patience: int | None = Field(
        None, ge=1, description="evaluations without gain after which training ends; null: never early"
    )
    seed: int = Field(1, ge=0, lt=1 << 63, description="of initial values, order, MIX and scrambling")

    @field_validator("loss")
    @classmethod
    def _known_loss(cls, name: str) -> str:
        if name not in loss_names():
            raise ValueError(f"there are {', '.join(loss_names())}")
        return name

    @model_validator(mode="after")
    def _enough_candidates(self) -> TrainingParameters:
        if self.batch_size * (1 if self.anneal else self.largest_mega_batch) < 2:
            raise ValueError("a mega-batch of one pair has no negatives: raise batch_size or mega_batch")
        if self.one_source and self.largest_mega_batch > 1:
            raise ValueError("one_source is of mini-batches: set loss softmax, or mega_batch 1")
        return self

    @property
    def largest_mega_batch(self) -> int:
        """M at most: 1 where the loss has its negatives in the mini-batch."""
        return self.mega_batch if has_mega_batches(self.loss) else 1


class PairFileParameters(Section):
    """A file of pairs: PPDB (`LHS ||| phrase ||| paraphrase ||| ...`) or TSV, plain or gz."""

    path: FilePath = Field(
        min_length=1, description="the file; $NAME is replaced by the environment variable"
    )
    format: Literal["auto", "ppdb", "tsv"] = Field(
        "auto", description="ppdb or tsv; auto looks at the first line for |||"
    )
    columns: tuple[int, int] | None = Field(
        None, description="the two columns, counted from 0; by default 0, 1 of a TSV and 1, 2 of PPDB"
    )
    limit: int | None = Field(None, ge=1, description="read only the first pairs; null: all")
    score_column: int | None = Field(
        None, ge=0, description="column of scores, for losses that look at them; null: none"
    )
    score: float | None = Field(
        None, allow_inf_nan=False, description="score of every pair in place of a column, e.g. 0 of antonyms"
    )

    @model_validator(mode="after")
    def _two_columns(self) -> PairFileParameters:
        if self.score is not None and self.score_column is not None:
            raise ValueError("score and score_column: give one of them")
        if self.columns is not None and (self.columns[0] == self.columns[1] or min(self.columns) < 0):
            raise ValueError("columns: two different columns, counted from 0")
        return self


class ModelParameters(Section):
    """One model: its architecture, what it starts from, and how it is trained."""

    encoder: EncoderParameters = Field(default_factory=AverageParameters, description="the architecture")
    vocabulary: VocabularyParameters = Field(
        default_factory=VocabularyParameters, description="of words and of character trigrams"
    )
    unknown_words: Literal["own", "shared"] = Field(
        "own",
        description="when text is embedded, each word outside of the vocabulary has a fixed vector from its "
        "trigrams and the known words between its hyphens, or all share the unknown word's, as in the papers",
    )
    start: FilePath | None = Field(
        None,
        min_length=1,
        description="directory of a trained model to train further: its encoder, vocabulary and unknown "
        "words are taken as they are; null: a new model",
    )
    vectors: FilePath | None = Field(
        None,
        min_length=1,
        description="word vectors that words start from: word2vec, GloVe or paragram format; null: random",
    )
    sentencepiece_model: FilePath | None = Field(
        None, min_length=1, description="SentencePiece model, where the encoder reads its pieces"
    )
    teacher: FilePath | None = Field(
        None,
        min_length=1,
        description="directory of a sentence-transformers model whose vectors the loss distil looks at",
    )
    training: TrainingParameters = Field(
        default_factory=TrainingParameters, description="loss, negatives and optimiser"
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
                    raise ValueError(f"start: the trained model brings its own: leave out {name}")
            return self
        if "sentencepiece" in units and self.sentencepiece_model is None:
            raise ValueError("the encoder reads sentencepiece units: give sentencepiece_model")
        if self.vectors is not None and units.isdisjoint(WORD_UNITS):
            raise ValueError("vectors are of words, and the encoder reads none")
        return self


class EmbeddingsParameters(Section):
    """Which models are trained on the corpus, and what they are judged by."""

    names: list[str] = Field(
        default_factory=lambda: ["word"], min_length=1, description="the models to train, of those in models"
    )
    models: dict[str, ModelParameters] = Field(
        default_factory=lambda: {"word": ModelParameters()}, description="name -> model"
    )
    corpus_pairs: bool = Field(True, description="train on the published corpus")
    pair_files: list[PairFileParameters] = Field(default_factory=list, description="train on these pairs too")
    development: list[FilePath] = Field(
        default_factory=list,
        description="STS files or directories that choose the epoch; none: the last one is taken",
    )
    test_sets: list[FilePath] = Field(
        default_factory=list, description="STS files or directories that the trained model is evaluated on"
    )
    drop_leaked: bool = Field(
        True,
        description="leave out pairs with a sentence of development, test_sets or a held-out split; no: only "
        "report them",
    )

    @model_validator(mode="after")
    def _known_names(self) -> EmbeddingsParameters:
        if not self.corpus_pairs and not self.pair_files:
            raise ValueError("there is nothing to train on: give corpus_pairs or pair_files")
        if len(set(self.names)) != len(self.names):
            raise ValueError("names: a name is given twice")
        for name in self.names:
            if name not in self.models:
                raise ValueError(f"names: there is no model '{name}'; models has {', '.join(self.models)}")
            if not NAME.fullmatch(name):
                raise ValueError(f"names: '{name}' names a directory: letters, digits, '-' and '_' alone")
        return self


class ParagramTrainingParameters(TrainingParameters):
    """Negatives of the mini-batch (M = 1) and Adam or AdaGrad, as in Wieting 2016.

    The defaults are not that paper's: 5 epochs, Adam, no penalty and a random start, where it has 10 epochs,
    tuned rates and penalties, and starts from PSL vectors.
    """

    mega_batch: int = Field(1, ge=1, description="mini-batches of a mega-batch (M), the set of negatives")


class ParagramParameters(Section):
    """A model or a vector file that is given is used as it is; otherwise the built-in scorer, or where there
    is none vectors are trained on pairs."""

    removed: ClassVar[Mapping[str, str]] = {
        "initial_vectors": "use 'vectors' of a model of embeddings.models"
    }

    built_in: Literal["general"] | None = Field(
        None,
        description="general: the built-in English scorer, unless a model or vectors are given; "
        "null: train vectors on pairs",
    )
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
    corpus_pairs: bool = Field(True, description="train on the corpus' own references and translations")
    pair_files: list[PairFileParameters] = Field(default_factory=list, description="train on these pairs too")
    dimension: int = Field(300, ge=1, le=4096, description="of trained vectors")
    initial_scale: float = Field(
        0.01, gt=0, description="standard deviation of the random start of a vector's elements"
    )
    vocabulary: VocabularyParameters = Field(default_factory=VocabularyParameters)
    training: ParagramTrainingParameters = Field(
        default_factory=ParagramTrainingParameters, description="loss, negatives and optimiser"
    )

    @model_validator(mode="after")
    def _something_to_do(self) -> ParagramParameters:
        given = any(value is not None for value in (self.built_in, self.model, self.vectors))
        if not given and not self.corpus_pairs and not self.pair_files:
            raise ValueError(
                "give built_in, a model, vectors, or pairs to train on: corpus_pairs or pair_files"
            )
        if self.model is not None and self.vectors is not None:
            raise ValueError("model and vectors: give one of them, both are used as they are")
        if needs_teacher(self.training.loss):
            raise ValueError("training.loss: only models of the section embeddings have a teacher")
        if self.training.lambda_words:
            raise ValueError("training.lambda_words needs given vectors: train a model of embeddings.models")
        return self

    @property
    def uses_built_in(self) -> bool:
        """Whether the built-in scorer is what the paraphrase score is computed with."""
        return self.built_in is not None and self.model is None and self.vectors is None
