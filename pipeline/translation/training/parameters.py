"""Section ``nmt`` of params.yaml: the translation model, trained here, or a ready one, or none."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from paraforge.base.logs import counted
from paraforge.base.section import Section
from paraforge.base.text.paths import UserFile
from paraforge.intake.bitext.languages import Languages
from paraforge.intake.bitext.parameters import IngestParameters

LANGUAGE = r"^[A-Za-z]{2,3}([_-][A-Za-z0-9]+)*$"

# What an import reads beside the checkpoint that is named: dictionaries and subwords.
BESIDE_CHECKPOINTS = ("dict.*.txt", "*.model", "*.spm", "*.bpe", "*codes*", "code*", "tokenizer.json")
READY_MODEL = "paraforge configure translation=ready nmt.model=NAME"
"""What makes a project use a ready model, for messages."""
_MODEL = UserFile(words=("train", "none"), hub=True, neighbours=BESIDE_CHECKPOINTS)


class NmtVocabularyParameters(Section):
    """SentencePiece."""

    size: int = Field(8000, ge=32, le=250_000, description="pieces; of each side where they are separate")
    shared: bool = Field(True, description="one vocabulary, and one embedding matrix, for both languages")
    kind: Literal["unigram", "bpe"] = Field("unigram", description="how SentencePiece chooses pieces")
    character_coverage: float = Field(1.0, gt=0, le=1, description="share of characters that get a piece")
    byte_fallback: bool = Field(False, description="spell unknown characters in bytes")
    sample: int = Field(1_000_000, ge=1, description="train it on about this number of pairs, chosen by hash")


class ArchitectureParameters(Section):
    """fairseq's transformer, or its LSTMs with attention (a bidirectional encoder)."""

    kind: Literal["transformer", "lstm"] = Field(
        "transformer",
        description="lstm: what the papers' models are; only the engine fairseq translates with it",
    )
    encoder_layers: int = Field(6, ge=1, description="layers of the encoder")
    decoder_layers: int = Field(6, ge=1, description="layers of the decoder")
    width: int = Field(512, ge=8, description="of embeddings and layers; a multiple of heads")
    feed_forward: int = Field(2048, ge=8, description="of a transformer: width inside its blocks")
    heads: int = Field(8, ge=1, description="of a transformer: attention heads")
    pre_norm: bool = Field(
        False, description="of a transformer: normalise before each block instead of after it"
    )
    dropout: float = Field(0.1, ge=0, lt=1, description="of embeddings and block outputs")
    attention_dropout: float = Field(0.0, ge=0, lt=1, description="of attention weights")
    activation_dropout: float = Field(0.0, ge=0, lt=1, description="inside the feed-forward blocks")

    @model_validator(mode="after")
    def _sizes_fit(self) -> ArchitectureParameters:
        if self.kind == "lstm":
            if self.width % 2 or self.encoder_layers != self.decoder_layers:
                raise ValueError("kind lstm: width must be even, and encoder_layers and decoder_layers equal")
        elif self.width % self.heads or self.width % 2:
            raise ValueError(
                f"width must be even and a multiple of heads, but is {self.width} with {self.heads} heads"
            )
        return self


class NmtTrainingParameters(Section):
    """How the model is trained. Training ends at whichever limit is reached first."""

    batch_tokens: int = Field(
        2048, ge=64, description="tokens of a batch, padding included (of the longer side)"
    )
    accumulate: int = Field(
        2, ge=1, le=1024, description="batches of an update; at most as many processes share them"
    )
    learning_rate: float = Field(0.001, gt=0, description="the highest, reached after warm-up")
    warmup_updates: int = Field(800, ge=0, description="updates until then")
    schedule: Literal["inverse_sqrt", "linear"] = Field(
        "inverse_sqrt", description="afterwards: by the inverse square root, or to 0 at maximum_updates"
    )
    label_smoothing: float = Field(0.1, ge=0, lt=1, description="of the cross-entropy")
    weight_decay: float = Field(0.0, ge=0, description="of Adam")
    clip: float = Field(1.0, ge=0, description="largest norm of the gradient; 0: no clipping")
    precision: Literal["auto", "float32", "bfloat16"] = Field(
        "auto",
        description="of matrix products (weights and sums stay float32); auto: bfloat16 where the "
        "processor has it",
    )
    maximum_updates: int = Field(100_000, ge=1, description="end after this number of updates")
    maximum_epochs: int | None = Field(
        None, ge=1, description="end after this number of passes over the pairs"
    )
    maximum_minutes: float | None = Field(
        None,
        gt=0,
        description="end after so much time; no two runs are equally fast, so the result cannot be had again",
    )
    seed: int = Field(1, ge=0, lt=1 << 32, description="of initial weights, dropout and the order of batches")


class NmtValidationParameters(Section):
    """Held-out pairs: chosen by a hash of the Czech sentence, never trained on."""

    held_out: int = Field(1000, ge=1, le=10_000, description="about so many, at most a tenth of all pairs")
    every_updates: int = Field(0, ge=0, description="updates between validations; 0: after each epoch")
    beam: int = Field(
        4, ge=1, le=64, description="beam size during training; the final figures are at final_beam"
    )
    final_beam: int = Field(12, ge=1, le=64, description="beam size of the final BLEU and chrF")
    patience: int = Field(
        0, ge=0, description="end when BLEU has not improved for this number of validations; 0: never"
    )
    average: int = Field(
        5,
        ge=1,
        description="number of last validations whose weights are averaged, if that raises BLEU; 1: none",
    )


class NmtAffixParameters(Section):
    """Tokens around the sentences of a ready model, such as language tags; what is null is as its own
    tokeniser has it."""

    source_prefix: list[str] | None = Field(None, description="before every source sentence")
    source_suffix: list[str] | None = Field(None, description="after it")
    target_prefix: list[str] | None = Field(None, description="what every translation begins with")


class NmtParameters(Section):
    """``model: train`` trains on the bitext; a path takes a ready model; ``none`` where nothing is
    translated."""

    model: Annotated[str, _MODEL] = Field(
        "train",
        min_length=1,
        description="train, none, or a ready model: the path of a fairseq checkpoint with dictionaries and "
        "subwords, of a CTranslate2 or Transformers directory, or "
        "ORGANISATION/NAME@REVISION of the Hugging Face hub",
    )
    bitext: Annotated[Path, UserFile()] | IngestParameters | None = Field(
        None,
        description="train on this instead of the ingested pairs: a directory of shards, or what section "
        "ingest has",
    )
    target: Literal["reference", "translation"] = Field(
        "reference",
        description="column of bitext that is trained on; translation: what another model, the teacher, made "
        "of the sources (distillation), in shards that the stage translate wrote",
    )
    source_language: str = Field(
        "cs",
        pattern=LANGUAGE,
        description="language code, or what a multilingual model calls the language",
    )
    target_language: str = Field(
        "en", pattern=LANGUAGE, description="the same for the side that is translated into"
    )
    affixes: NmtAffixParameters = Field(
        default_factory=NmtAffixParameters,
        description="language tags of a ready model, where they are not found",
    )
    vocabulary: NmtVocabularyParameters = Field(default_factory=NmtVocabularyParameters)
    architecture: ArchitectureParameters = Field(default_factory=ArchitectureParameters)
    training: NmtTrainingParameters = Field(default_factory=NmtTrainingParameters)
    validation: NmtValidationParameters = Field(default_factory=NmtValidationParameters)
    maximum_pairs: int = Field(
        20_000_000,
        ge=1000,
        description="of more pairs about so many are trained on, drawn by their source sentence",
    )
    maximum_tokens: int = Field(
        250,
        ge=2,
        le=1024,
        description="pairs with more pieces on a side, end of sentence included, are not trained on",
    )

    @model_validator(mode="after")
    def _consistent(self) -> NmtParameters:
        if self.source_language == self.target_language:
            raise ValueError("source_language and target_language must differ")
        if self.target == "translation" and not isinstance(self.bitext, Path):
            raise ValueError("target: translation needs bitext: a directory of translated shards")
        if (
            self.training.schedule == "linear"
            and self.training.warmup_updates >= self.training.maximum_updates
        ):
            raise ValueError("training.warmup_updates must be fewer than training.maximum_updates")
        if self.training.batch_tokens < self.maximum_tokens:
            raise ValueError(
                "training.batch_tokens must be at least maximum_tokens, or a long pair fits no batch"
            )
        return self

    @property
    def training_time(self) -> str:
        """Say about how long a whole training takes on two CPU cores, such as ``60 minutes``.

        A token costs 63 microseconds, and 11 more for every million weights: what two cores of an AMD EPYC
        needed for the models of ``translation=sample`` (196 s) and ``translation=small`` (an hour).
        """
        training, size = self.training, self.architecture
        block = 4 * size.width**2 + 2 * size.width * size.feed_forward
        layers = size.encoder_layers * block + size.decoder_layers * (block + 4 * size.width**2)
        millions = (layers + size.width * self.vocabulary.size) / 1e6
        tokens = training.maximum_updates * training.batch_tokens * training.accumulate
        minutes = tokens * (63 + 11 * millions) / 1e6 / 60
        minutes = min(minutes, training.maximum_minutes or minutes)
        return counted(max(1, round(minutes)), "minute") if minutes < 120 else f"{minutes / 60:,.0f} hours"


def languages_of(parameters: NmtParameters, section: str = "ingest") -> Languages:
    """What the bitext of a section should be in: where no model is used, only the target is meant."""
    source = None if parameters.model == "none" else parameters.source_language
    return Languages(source, parameters.target_language, section)
