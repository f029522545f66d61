"""Trains a translation model: prepares data, trains in separate processes, picks weights, and converts
them."""

import logging
import os
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paraforge.base.errors import InputError
from paraforge.base.files import write_csv, write_json
from paraforge.base.interrupts import graceful_interrupts
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.store import ShardDirectory
from paraforge.translation.decoding.device import fast_type
from paraforge.translation.models.fairseq_compat import misread
from paraforge.translation.training.binarization import PreparedBitext, prepare_bitext
from paraforge.translation.training.parameters import NmtParameters
from paraforge.translation.training.processes import LOG, follow, rank_count, training_processes

logger = logging.getLogger(__name__)

HISTORY_COLUMNS = (
    # Without times, because another stage reads a pivot's file.
    *("update", "epoch", "target_tokens"),
    *("train_loss", "valid_loss", "valid_perplexity", "bleu", "chrf"),
)


@dataclass(frozen=True)
class TrainingResult:
    """The result of a training.

    reason: the limit that ended it: maximum_updates, maximum_epochs, maximum_minutes or patience.
    history: one row per validation; losses in bits per token. prepared: the training data.
    """

    reason: str
    history: list[dict[str, float]]
    prepared: PreparedBitext


def train_model(
    bitext: ShardDirectory,
    directory: Path,
    parameters: NmtParameters,
    resources: Resources,
    symbols: Sequence[str] = (),
) -> TrainingResult:
    """Train until a limit is reached, resuming from the last checkpoint in ``directory``, if any.

    bitext: shards with ``source_text``, ``reference`` and, if any, ``rejected`` and ``held_out``.
    directory: work directory of this training. parameters: everything that decides the result.
    resources: devices and threads. symbols: strings in sources that are always single pieces.

    Raises:
        Interrupted: SIGTERM or Ctrl-C; the next call resumes.
        InputError: no training or validation pairs, or fairseq would misread the directory's path.
        IncompleteError: the training process died.
    """
    if (part := misread(directory.resolve())) is not None:
        raise InputError(
            f"fairseq cannot train in a directory with {part!r} in its path",
            directory.resolve(),
            remedy="Rename it, or set resources.work to another one.",
        )
    prepared = prepare_bitext(bitext, directory, parameters, resources, symbols)
    logger.info(
        "%d pairs for training, %d held out, %d skipped, %d too long",
        *(prepared.trained, prepared.held_out, prepared.set_aside, prepared.too_long),
    )
    if not prepared.held_out:  # by chance with few pairs; fairseq cannot open an empty set
        raise InputError(
            f"none of {prepared.pairs:,} pairs is held out for validation",
            bitext.path,
            remedy="Use more pairs (at most a tenth of them is held out), or raise nmt.validation.held_out.",
        )
    settings = trainer_settings(directory, parameters, prepared, resources)
    write_json(directory / "settings.json", settings)
    # The last checkpoint also has the reason for the end, so a finished training ends at once.
    with graceful_interrupts(), training_processes(directory, settings) as processes:
        reason, history = follow(processes, parameters.training.maximum_updates, directory / LOG)
    return TrainingResult(reason, history, prepared)


def trainer_settings(
    directory: Path, parameters: NmtParameters, prepared: PreparedBitext, resources: Resources
) -> dict[str, Any]:
    """Return the settings of the training process: fairseq's arguments and ours."""
    training = parameters.training
    device = training_device(resources)
    if device != "cpu":
        import torch

        if (count := torch.cuda.device_count()) > 1:
            logger.warning("training uses one GPU, %s, of %d; translation uses all of them", device, count)
    threads = resources.thread_count()
    ranks = rank_count(training.accumulate, threads) if device == "cpu" else 1
    return {
        "arguments": [
            *fairseq_arguments(directory, parameters, prepared),
            *(["--cpu"] if device == "cpu" else []),
        ],
        "device": device,
        "precision": with_precision(parameters, resources).training.precision,
        "ranks": ranks,
        "rendezvous": f"rendezvous-{uuid.uuid4().hex}",
        "threads": threads // ranks,
        "parts": len(prepared.parts),
        "parameters": parameters.model_dump(mode="json"),
    }


def fairseq_arguments(directory: Path, parameters: NmtParameters, prepared: PreparedBitext) -> list[str]:
    """Return fairseq-train's command line, without criterion and paths, which the training process adds."""
    shape, training = parameters.architecture, parameters.training
    if training.schedule == "linear":
        schedule = ["--lr-scheduler", "polynomial_decay", "--total-num-update", str(training.maximum_updates)]
    else:
        schedule = ["--lr-scheduler", "inverse_sqrt"]
    sides = ("encoder", "decoder")
    if shape.kind == "lstm":
        own = [
            "--encoder-bidirectional",
            *("--encoder-hidden-size", str(shape.width // 2), "--decoder-hidden-size", str(shape.width)),
            *("--decoder-out-embed-dim", str(shape.width), "--decoder-attention", "1"),
        ]
    else:
        own = [
            *(f for side in sides for f in (f"--{side}-ffn-embed-dim", str(shape.feed_forward))),
            *(f for side in sides for f in (f"--{side}-attention-heads", str(shape.heads))),
            *(f"--{side}-normalize-before" for side in sides if shape.pre_norm),
            *("--attention-dropout", str(shape.attention_dropout)),
            *("--activation-dropout", str(shape.activation_dropout)),
        ]
    return [
        os.pathsep.join(str((directory / part).resolve()) for part in prepared.parts),
        *("--source-lang", parameters.source_language, "--target-lang", parameters.target_language),
        *("--task", "translation", "--arch", shape.kind),
        *("--encoder-layers", str(shape.encoder_layers), "--decoder-layers", str(shape.decoder_layers)),
        *(f for side in sides for f in (f"--{side}-embed-dim", str(shape.width))),
        *own,
        "--share-all-embeddings" if parameters.vocabulary.shared else "--share-decoder-input-output-embed",
        *("--dropout", str(shape.dropout)),
        *("--optimizer", "adam", "--adam-betas", "(0.9,0.98)", "--adam-eps", "1e-9"),
        *("--weight-decay", str(training.weight_decay), "--clip-norm", str(training.clip)),
        *("--lr", str(training.learning_rate), "--warmup-updates", str(training.warmup_updates)),
        *schedule,
        *("--label-smoothing", str(training.label_smoothing)),
        *("--max-tokens", str(training.batch_tokens), "--num-workers", "0"),
        *("--update-freq", str(training.accumulate), "--max-update", str(training.maximum_updates)),
        *("--skip-invalid-size-inputs-valid-test", "--seed", str(training.seed)),
    ]


def training_device(resources: Resources) -> str:
    """Return ``cuda:N`` for the first configured GPU that exists, otherwise ``cpu``."""
    import torch

    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    for device in resources.devices:
        number = device.partition(":")[2] or "0"
        if device != "cpu" and number.isdecimal() and int(number) < count:
            return f"cuda:{number}"
    return "cpu"


def with_precision(parameters: NmtParameters, resources: Resources) -> NmtParameters:
    """Return the parameters with ``auto`` precision resolved: bfloat16 if the device supports it."""
    training = parameters.training
    if training.precision != "auto":
        return parameters
    import torch

    # An LSTM's matrix products are small and sequential, so lower precision gains nothing.
    narrow = parameters.architecture.kind != "lstm"
    narrow = narrow and fast_type(torch.device(training_device(resources))) == "bfloat16"
    chosen = training.model_copy(update={"precision": "bfloat16" if narrow else "float32"})
    return parameters.model_copy(update={"training": chosen})


def write_history(history: Sequence[Mapping[str, float]], path: Path) -> None:
    """Write the training curve for ``dvc plots``: one row per validation, losses in bits per token."""
    shown = ({name: entry[name] for name in HISTORY_COLUMNS if name in entry} for entry in history)
    write_csv(path, HISTORY_COLUMNS, shown)
