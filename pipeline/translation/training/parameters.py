"""Section ``nmt`` of params.yaml: the translation model, trained here or ready, or none."""

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

# Files that an import reads besides the named checkpoint: dictionaries and subwords.
BESIDE_CHECKPOINTS = ("dict.*.txt", "*.model", "*.spm", "*.bpe", "*codes*", "code*", "tokenizer.json")
READY_MODEL = "paraforge configure translation=ready nmt.model=NAME"
"""The command that makes a project use a pretrained model, for messages."""
FEWEST_PAIRS = 10_000
"""With fewer pairs, a model that is trained from nothing is of little use."""
_MODEL = UserFile(words=("train", "none"), hub=True, neighbors=BESIDE_CHECKPOINTS)


class NmtVocabularyParameters(Section):
    """SentencePiece."""

    size: int = Field(
        8000, ge=32, le=250_000, description="number of pieces; for each side if they are separate"
    )
    shared: bool = Field(True, description="use one vocabulary and one embedding matrix for both languages")
    kind: Literal["unigram", "bpe"] = Field("unigram", description="SentencePiece's algorithm")
    character_coverage: float = Field(1.0, gt=0, le=1, description="share of characters that get a piece")
    byte_fallback: bool = Field(False, description="spell unknown characters as bytes")
    sample: int = Field(
        1_000_000, ge=1, description="train the vocabulary on about this many pairs, chosen by hash"
    )


class ArchitectureParameters(Section):
    """fairseq's transformer, or its LSTMs with attention (a bidirectional encoder)."""

    kind: Literal["transformer", "lstm"] = Field(
        "transformer",
        description="architecture; lstm, as in the papers, works only with the engine fairseq",
    )
    encoder_layers: int = Field(6, ge=1, description="number of encoder layers")
    decoder_layers: int = Field(6, ge=1, description="number of decoder layers")
    width: int = Field(512, ge=8, description="width of embeddings and layers; a multiple of heads")
    feed_forward: int = Field(2048, ge=8, description="width inside the blocks of a transformer")
    heads: int = Field(8, ge=1, description="attention heads of a transformer")
    pre_norm: bool = Field(
        False, description="normalize before each block of a transformer instead of after it"
    )
    dropout: float = Field(0.1, ge=0, lt=1, description="dropout of embeddings and block outputs")
    attention_dropout: float = Field(0.0, ge=0, lt=1, description="dropout of attention weights")
    activation_dropout: float = Field(0.0, ge=0, lt=1, description="dropout inside the feed-forward blocks")

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

    batch_tokens: int = Field(2048, ge=64, description="tokens in a batch (longer side, padding included)")
    accumulate: int = Field(
        2, ge=1, le=1024, description="batches in an update; at most this many processes share them"
    )
    learning_rate: float = Field(0.001, gt=0, description="highest learning rate, reached after the warm-up")
    warmup_updates: int = Field(800, ge=0, description="number of warm-up updates")
    schedule: Literal["inverse_sqrt", "linear"] = Field(
        "inverse_sqrt",
        description="decay after the warm-up: by the inverse square root, or down to 0 at maximum_updates",
    )
    label_smoothing: float = Field(0.1, ge=0, lt=1, description="label smoothing of the cross-entropy")
    weight_decay: float = Field(0.0, ge=0, description="weight decay of Adam")
    clip: float = Field(1.0, ge=0, description="clip the gradient at this norm; 0: no clipping")
    precision: Literal["auto", "float32", "bfloat16"] = Field(
        "auto",
        description="number format of matrix products (weights and sums stay float32); auto: bfloat16 if the "
        "processor supports it",
    )
    maximum_updates: int = Field(100_000, ge=1, description="stop after this many updates")
    maximum_epochs: int | None = Field(None, ge=1, description="stop after this many passes over the pairs")
    maximum_minutes: float | None = Field(
        None,
        gt=0,
        description="stop after this many minutes; the result is then not reproducible",
    )
    seed: int = Field(
        1, ge=0, lt=1 << 32, description="random seed for initial weights, dropout and the order of batches"
    )


class NmtValidationParameters(Section):
    """Held-out pairs, chosen by a hash of the source sentence and never used for training."""

    held_out: int = Field(
        1000, ge=1, le=10_000, description="about how many pairs to hold out, at most a tenth of all"
    )
    every_updates: int = Field(0, ge=0, description="updates between validations; 0: after each epoch")
    beam: int = Field(
        4,
        ge=1,
        le=64,
        description="beam size for validation during training; the final figures use final_beam",
    )
    final_beam: int = Field(12, ge=1, le=64, description="beam size for the final BLEU and chrF")
    patience: int = Field(
        0, ge=0, description="stop if BLEU has not improved for this many validations; 0: never"
    )
    average: int = Field(
        5,
        ge=1,
        description="average the weights of this many last validations if that raises BLEU; 1: no averaging",
    )


class NmtParameters(Section):
    """Section ``nmt``: train a model on the bitext, use a pretrained one, or none."""

    model: Annotated[str, _MODEL] = Field(
        "train",
        min_length=1,
        description="train, none, or a pretrained model: a fairseq checkpoint with its dictionaries and "
        "subwords, a CTranslate2 or Transformers directory, or ORGANIZATION/NAME@REVISION on the Hugging "
        "Face Hub",
    )
    forward: Annotated[str, _MODEL] | None = Field(
        None,
        min_length=1,
        description="for ingest.kind references: the model from target_language to source_language. train "
        "(on bitext, with the sides swapped), or a pretrained model as in model; null: the engine needs none",
    )
    bitext: Annotated[Path, UserFile()] | IngestParameters | None = Field(
        None,
        description="train on this instead of the ingested pairs: a directory of shards, or sources as in "
        "section ingest",
    )
    target: Literal["reference", "translation", "source_text"] = Field(
        "reference",
        description="target column for training; translation: the translations of another model (the "
        "teacher), in shards of the stage translate (distillation); source_text: trains a model from "
        "references",
    )
    source_language: str = Field(
        "cs",
        pattern=LANGUAGE,
        description="language code of the foreign side, or a multilingual model's name for the language",
    )
    target_language: str = Field(
        "en", pattern=LANGUAGE, description="the same for the language to translate into"
    )
    vocabulary: NmtVocabularyParameters = Field(default_factory=NmtVocabularyParameters)
    architecture: ArchitectureParameters = Field(default_factory=ArchitectureParameters)
    training: NmtTrainingParameters = Field(default_factory=NmtTrainingParameters)
    validation: NmtValidationParameters = Field(default_factory=NmtValidationParameters)
    maximum_pairs: int = Field(
        20_000_000,
        ge=1000,
        description="train on about this many pairs, drawn by a hash of the source sentence",
    )
    maximum_tokens: int = Field(
        250,
        ge=2,
        le=1024,
        description="leave out pairs with more pieces than this on a side, end of sentence included",
    )

    @model_validator(mode="after")
    def _consistent(self) -> NmtParameters:
        if self.source_language == self.target_language:
            raise ValueError("source_language and target_language must differ")
        if isinstance(self.bitext, IngestParameters) and self.bitext.kind != "bitext":
            raise ValueError(f"bitext.kind must be bitext, but is {self.bitext.kind}")
        if self.target == "translation" and not isinstance(self.bitext, Path):
            raise ValueError("target: translation needs bitext: a directory of translated shards")
        schedule, warmup = self.training.schedule, self.training.warmup_updates
        if schedule == "linear" and warmup >= self.training.maximum_updates:
            raise ValueError("training.warmup_updates must be fewer than training.maximum_updates")
        if schedule == "inverse_sqrt" and not warmup:
            raise ValueError("training.warmup_updates must be at least 1, or training.schedule linear")
        if self.training.batch_tokens < self.maximum_tokens:
            raise ValueError(
                "training.batch_tokens must be at least maximum_tokens, or a long pair fits no batch"
            )
        return self

    def reversed(self) -> NmtParameters:
        """Return the section of the forward model, with languages and sides exchanged."""
        changed = {
            "model": self.forward,
            "forward": None,
            "target": "source_text",
            "source_language": self.target_language,
            "target_language": self.source_language,
        }
        return self.model_copy(update=changed)

    @property
    def training_time(self) -> str:
        """Estimate the time of a whole training on two CPU cores, such as ``60 minutes``.

        A token costs 63 microseconds, plus 11 for every million weights, as measured on two cores of an AMD
        EPYC for ``translation=sample`` (196 s) and ``translation=small`` (an hour).
        """
        training, size = self.training, self.architecture
        block = 4 * size.width**2 + 2 * size.width * size.feed_forward
        layers = size.encoder_layers * block + size.decoder_layers * (block + 4 * size.width**2)
        millions = (layers + size.width * self.vocabulary.size) / 1e6
        tokens = training.maximum_updates * training.batch_tokens * training.accumulate
        minutes = tokens * (63 + 11 * millions) / 1e6 / 60
        minutes = min(minutes, training.maximum_minutes or minutes)
        return counted(max(1, round(minutes)), "minute") if minutes < 120 else f"{minutes / 60:,.0f} hours"


def doubt_about(pairs: int) -> str | None:
    """Return a warning if this many pairs are too few to train a model on; None if not."""
    if pairs >= FEWEST_PAIRS:
        return None
    trained = counted(pairs, "pair")
    return f"a model trained on {trained} gets most translations wrong; it needs at least {FEWEST_PAIRS:,}"


def languages_of(parameters: NmtParameters, section: str = "ingest") -> Languages:
    """Return the expected languages of a section's bitext; without a model, only the target's."""
    source, target = parameters.source_language, parameters.target_language
    if parameters.target == "source_text":
        source, target = target, source
    return Languages(None if parameters.model == "none" else source, target, section)
