"""Training a translation model: prepare, train in a process of its own, pick weights, convert."""

from __future__ import annotations

import csv
import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.configuration.nmt import NmtParameters
from pipeline.configuration.resources import Resources
from pipeline.errors import IncompleteError, InputError, Interrupted
from pipeline.files import atomic_path, write_json
from pipeline.interrupts import stop_requested
from pipeline.progress import Progress, progress
from pipeline.shards.store import ShardDirectory
from pipeline.translation.binarisation import PreparedBitext, prepare_bitext
from pipeline.translation.checkpoint import average_checkpoints, weights_only_state
from pipeline.translation.conversion import convert_fairseq, write_description, write_fairseq_model
from pipeline.translation.fairseq_compat import load_checkpoint
from pipeline.translation.validation import HeldOut, Scores, evaluate

logger = logging.getLogger(__name__)

HISTORY_COLUMNS = (
    *("update", "epoch", "seconds", "target_tokens"),
    *("train_loss", "valid_loss", "valid_perplexity", "bleu", "chrf"),
)


@dataclass(frozen=True)
class TrainingResult:
    """How a training ended.

    Attributes:
        reason: the limit that ended it: maximum_updates, maximum_epochs, maximum_minutes or patience.
        history: one row a validation; losses in bits per token.
        prepared: what was trained on.
    """

    reason: str
    history: list[dict[str, float]]
    prepared: PreparedBitext


def train_model(
    bitext: ShardDirectory, directory: Path, parameters: NmtParameters, resources: Resources
) -> TrainingResult:
    """Train until a limit is reached, going on from the last checkpoint in ``directory`` if there is one.

    Args:
        bitext: shards with ``cs``, ``reference`` and, if any, ``rejected``.
        directory: work directory of this training alone.
        parameters: what decides the result.
        resources: devices and threads.

    Raises:
        Interrupted: SIGTERM or Ctrl-C; the next call goes on from there.
        InputError: nothing to train on.
        IncompleteError: the training process died.
    """
    threads = resources.thread_count()
    prepared = prepare_bitext(bitext, directory, parameters)
    logger.info(
        "%d pairs to train on, %d held out, %d set aside, %d too long",
        *(prepared.trained, prepared.held_out, prepared.set_aside, prepared.too_long),
    )
    settings = trainer_settings(directory, parameters, prepared, resources)
    write_json(directory / "settings.json", settings)
    # The reason of an end stands in the last checkpoint too, so a finished training ends at once.
    with _process(directory, threads) as process:
        reason, history = _follow(process, parameters.training.maximum_updates)
    return TrainingResult(reason, history, prepared)


def trainer_settings(
    directory: Path, parameters: NmtParameters, prepared: PreparedBitext, resources: Resources
) -> dict[str, Any]:
    """What the training process reads: fairseq's arguments, and what is ours."""
    training, validation = parameters.training, parameters.validation
    device = training_device(resources)
    return {
        "arguments": [
            *fairseq_arguments(directory, parameters, prepared),
            *(["--cpu"] if device == "cpu" else []),
        ],
        "device": device,
        "precision": precision(training.precision, device),
        "threads": resources.thread_count(),
        "parts": len(prepared.parts),
        "accumulate": training.accumulate,
        "validate_every": validation.every_updates,
        "patience": validation.patience,
        "average": validation.average,
        "beam": validation.beam,
        "maximum_tokens": parameters.maximum_tokens,
        "maximum_updates": training.maximum_updates,
        "maximum_epochs": training.maximum_epochs,
        "maximum_seconds": None if training.maximum_minutes is None else training.maximum_minutes * 60,
        "source_language": parameters.source_language,
        "target_language": parameters.target_language,
    }


def fairseq_arguments(directory: Path, parameters: NmtParameters, prepared: PreparedBitext) -> list[str]:
    """fairseq-train's command line, without criterion and places, which the training process adds."""
    shape, training = parameters.architecture, parameters.training
    if training.schedule == "linear":
        schedule = ["--lr-scheduler", "polynomial_decay", "--total-num-update", str(training.maximum_updates)]
    else:
        schedule = ["--lr-scheduler", "inverse_sqrt"]
    sides = ("encoder", "decoder")
    return [
        os.pathsep.join(str((directory / part).resolve()) for part in prepared.parts),
        *("--source-lang", parameters.source_language, "--target-lang", parameters.target_language),
        *("--task", "translation", "--arch", "transformer"),
        *("--encoder-layers", str(shape.encoder_layers), "--decoder-layers", str(shape.decoder_layers)),
        *(f for side in sides for f in (f"--{side}-embed-dim", str(shape.width))),
        *(f for side in sides for f in (f"--{side}-ffn-embed-dim", str(shape.feed_forward))),
        *(f for side in sides for f in (f"--{side}-attention-heads", str(shape.heads))),
        *(f"--{side}-normalize-before" for side in sides if shape.pre_norm),
        "--share-all-embeddings" if parameters.vocabulary.shared else "--share-decoder-input-output-embed",
        *("--dropout", str(shape.dropout), "--attention-dropout", str(shape.attention_dropout)),
        *("--activation-dropout", str(shape.activation_dropout)),
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
    """``cuda`` or ``cpu``: a GPU where one is allowed and there."""
    import torch

    if all(device == "cpu" for device in resources.devices) or not torch.cuda.is_available():
        return "cpu"
    return "cuda"


def precision(wanted: str, device: str) -> str:
    """Of matrix products: what was asked for, or bfloat16 where the processor multiplies it."""
    import torch

    if wanted != "auto":
        return wanted
    if device == "cuda":
        return "bfloat16" if torch.cuda.is_bf16_supported() else "float32"
    capable = torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    return "bfloat16" if capable else "float32"


@contextmanager
def _process(directory: Path, threads: int) -> Iterator[subprocess.Popen[str]]:
    """The training process; it is told to end, and waited for, if the block is left before it ends."""
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": str(threads),
        # Threads that spin while they wait take the processor from the others wherever a core is shared: five
        # times slower, measured. Where none is shared, sleeping costs little.
        "OMP_WAIT_POLICY": "passive",
        # Batches have many shapes; kernels kept for each of them fill gigabytes and save no time.
        "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "0",
        # Fewer, larger pages: zeroing them is a tenth of the time otherwise.
        "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
    }
    command = [sys.executable, "-m", "pipeline.translation.trainer", str(directory.resolve())]
    with (directory / "trainer.log").open("a", encoding="utf-8") as log:
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=log,
            stdin=subprocess.DEVNULL,
            env=environment,
            cwd=Path(__file__).parents[2],
            text=True,
            encoding="utf-8",
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                process.terminate()
            process.wait()


def _follow(process: subprocess.Popen[str], maximum_updates: int) -> tuple[str, list[dict[str, float]]]:
    """Show what the training process reports until it ends; the reason of its end, and the validations."""
    messages = _messages(process)
    history: list[dict[str, float]] = []
    ended: dict[str, Any] = {}
    first: dict[str, Any] = next(messages, {"event": "died"})
    if first["event"] == "start":
        history.extend(first["history"])
        done = first["update"]
        with progress(total=maximum_updates, unit="updates", description="train", done=done) as bar:
            ended = _show(messages, bar, history, done)
    elif first["event"] == "error":
        ended = first
    code = process.wait()
    if ended.get("event") == "error":
        raise InputError(ended["message"])
    if stop_requested() or code == Interrupted.exit_code:
        raise Interrupted("interrupted: the last checkpoint is kept; run the same command to go on")
    if code != 0 or ended.get("event") != "end":
        raise IncompleteError(
            f"the training process died ({code}); see the end of trainer.log in its work directory; "
            "the same command goes on from the last checkpoint"
        )
    return str(ended["reason"]), history


def _messages(process: subprocess.Popen[str]) -> Iterator[dict[str, Any]]:
    """The process' reports; it is told to end as soon as this process is."""
    assert process.stdout is not None
    for line in process.stdout:
        yield json.loads(line)
        if stop_requested() and process.poll() is None:
            process.terminate()


def _show(
    messages: Iterator[dict[str, Any]], bar: Progress, history: list[dict[str, float]], done: int
) -> dict[str, Any]:
    """Show reports, collecting validations, until one that ends the training (or none comes any more)."""
    score = ""
    for message in messages:
        event = message.pop("event")
        if event in ("end", "error"):
            return {"event": event, **message}
        if event == "validation":
            history.append(message)
            score = f", BLEU {message['bleu']:.1f}"
            logger.info(
                "update %d, epoch %.2f: valid loss %.3f, BLEU %.2f, chrF %.2f",
                *(
                    message["update"],
                    message["epoch"],
                    message["valid_loss"],
                    message["bleu"],
                    message["chrf"],
                ),
            )
        bar.update(message["update"] - done)
        done = message["update"]
        if "loss" in message:
            bar.status(f"loss {message['loss']:.2f}{score}")
    return {}


def finish_model(
    directory: Path, output: Path, parameters: NmtParameters, result: TrainingResult, threads: int
) -> dict[str, Any]:
    """Pick the best or the averaged weights by BLEU on the held-out rows, and write the model to ``output``.

    Returns:
        ``model.json``.
    """
    languages = (parameters.source_language, parameters.target_language)
    state, chosen, scores = _choose_weights(directory, parameters, result.history, threads)
    entries = write_fairseq_model(
        state,
        {language: directory / f"dict.{language}.txt" for language in languages},
        {side: directory / f"{side}.spm" for side in ("source", "target")},
        output,
        languages,
    )
    last = result.history[-1]
    prepared = result.prepared
    return write_description(
        output,
        origin="trained",
        languages=languages,
        entries={**entries, "maximum_source_tokens": entries["maximum_source_tokens"]},
        trained_on={
            "pairs": prepared.trained,
            "held_out": prepared.held_out,
            "set_aside": prepared.set_aside,
            "too_long": prepared.too_long,
            "updates": int(last["update"]),
            "epochs": last["epoch"],
            "target_tokens": int(last["target_tokens"]),
            "ended_by": result.reason,
            "weights": chosen,
            "seed": parameters.training.seed,
        },
        metrics={
            "rows": prepared.held_out,
            "beam": parameters.validation.final_beam,
            "bleu": round(scores.bleu, 4),
            "chrf": round(scores.chrf, 4),
            "bleu_signature": scores.bleu_signature,
            "chrf_signature": scores.chrf_signature,
        },
    )


def _choose_weights(
    directory: Path, parameters: NmtParameters, history: Sequence[Mapping[str, float]], threads: int
) -> tuple[dict[str, Any], str, Scores]:
    """The best snapshot or the average of the last ones, whichever has the higher BLEU at the final beam."""
    snapshots = directory / "snapshots"
    best = max(history, key=lambda row: row["bleu"])["update"]
    last = [row["update"] for row in history[-parameters.validation.average :]]
    candidates: list[tuple[str, dict[str, Any]]] = [
        (f"update {int(best)}", weights_only_state(load_checkpoint(_snapshot(snapshots, best))))
    ]
    if len(last) > 1:
        paths = [_snapshot(snapshots, update) for update in last]
        candidates.append(
            (f"average of updates {', '.join(str(int(u)) for u in last)}", average_checkpoints(paths))
        )
    from pipeline.translation.checkpoint import write_checkpoint

    held_out = HeldOut.read(directory)
    scored = []
    for name, state in candidates:
        checkpoint = directory / "candidate.pt"
        write_checkpoint(state, checkpoint)
        converted = directory / "validation"
        convert_fairseq(
            checkpoint, directory, converted, parameters.source_language, parameters.target_language
        )
        scores = evaluate(
            converted,
            held_out,
            beam=parameters.validation.final_beam,
            threads=threads,
            maximum_tokens=parameters.maximum_tokens,
        )
        logger.info("%s: BLEU %.2f, chrF %.2f", name, scores.bleu, scores.chrf)
        scored.append((state, name, scores))
    return max(scored, key=lambda item: item[2].bleu)


def _snapshot(snapshots: Path, update: float) -> Path:
    return snapshots / f"update-{int(update):08d}.pt"


def write_history(history: Sequence[Mapping[str, float]], path: Path) -> None:
    """Write the training curve for ``dvc plots``; one row a validation, losses in bits per token."""
    with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, HISTORY_COLUMNS, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(history)
