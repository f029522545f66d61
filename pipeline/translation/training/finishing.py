"""Finishes a training: chooses the best or the averaged weights, converts and describes them."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from paraforge import versions
from paraforge.base.errors import page
from paraforge.base.files import write_json
from paraforge.translation.models.checkpoint import (
    average_checkpoints,
    load_checkpoint,
    weights_only_state,
    write_checkpoint,
)
from paraforge.translation.models.conversion import write_description, write_fairseq_model
from paraforge.translation.training.binarization import PreparedBitext
from paraforge.translation.training.parameters import NmtParameters
from paraforge.translation.training.shortlist import write_shortlist
from paraforge.translation.training.training import TrainingResult
from paraforge.translation.training.training_run import needed_snapshots
from paraforge.translation.training.validation import Scores, evaluate

logger = logging.getLogger(__name__)

# Below this BLEU, a model's output has little to do with its input.
_HARDLY = 3.0


def finish_model(
    directory: Path,
    output: Path,
    parameters: NmtParameters,
    result: TrainingResult,
    threads: int,
    documents: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Pick the best or the averaged weights by BLEU on the held-out rows, and write the model to ``output``.

    directory: directory of the training. output: empty directory. parameters: parameters of the training.
    result: result of the training. threads: CPU threads for validation.
    documents: JSON files of the model, by name.

    Returns ``model.json``.
    """
    languages = (parameters.source_language, parameters.target_language)
    state, chosen, scores = _choose_weights(directory, parameters, result.history, threads)
    if scores.bleu < _HARDLY:
        logger.warning(
            "BLEU %.1f on %d held-out rows: the model has learned almost nothing. Train it longer or on more "
            "pairs, or use a pretrained model (see %s)",
            scores.bleu,
            result.prepared.held_out,
            page("models"),
        )
    entries = write_fairseq_model(
        state,
        {language: directory / f"dict.{language}.txt" for language in languages},
        {side: directory / f"{side}.spm" for side in ("source", "target")},
        output,
        languages,
    )
    if "ctranslate2" in entries["engines"]:
        write_shortlist(directory, result.prepared.parts, languages, output / "ctranslate2")
    for name, document in (documents or {}).items():
        write_json(output / name, document)
    last = result.history[-1]
    prepared = result.prepared
    return write_description(
        output,
        origin="trained",
        languages=languages,
        entries=entries,
        trained_on={
            "signature": training_signature(parameters, prepared, int(last["update"]), directory.name),
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
            **({} if prepared.teacher is None else {"teacher": prepared.teacher}),
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


def training_signature(parameters: NmtParameters, prepared: PreparedBitext, updates: int, key: str) -> str:
    """Return a line on a model's training data and method, in the style of sacreBLEU."""
    shape, vocabulary = parameters.architecture, parameters.vocabulary
    kind = "lstm-" if shape.kind == "lstm" else ""
    return "|".join(
        [
            f"key:{key[:8]}",
            f"pairs:{prepared.trained}",
            f"spm:{vocabulary.kind}-{vocabulary.size}-{'shared' if vocabulary.shared else 'separate'}",
            f"arch:{kind}{shape.encoder_layers}+{shape.decoder_layers}x{shape.width}",
            f"updates:{updates}",
            f"seed:{parameters.training.seed}",
            *([] if prepared.teacher is None else [f"teacher:{prepared.teacher[:8]}"]),
            f"v:{versions.NMT}",
        ]
    )


def _choose_weights(
    directory: Path, parameters: NmtParameters, history: Sequence[Mapping[str, float]], threads: int
) -> tuple[dict[str, Any], str, Scores]:
    """Return the best snapshot or the average of the last ones, whichever has the higher BLEU at the final
    beam."""
    best = max(history, key=lambda row: row["bleu"])["update"]
    last = [row["update"] for row in history[-parameters.validation.average :]]
    best_path, *paths = needed_snapshots(directory, history, parameters)
    candidates: list[tuple[str, dict[str, Any]]] = [
        (f"update {int(best)}", weights_only_state(load_checkpoint(best_path)))
    ]
    if len(last) > 1:
        candidates.append(
            (f"average of updates {', '.join(str(int(u)) for u in last)}", average_checkpoints(paths))
        )
    scored = []
    for name, state in candidates:
        checkpoint = best_path.with_name("candidate.pt")
        write_checkpoint(state, checkpoint)
        scores = evaluate(
            checkpoint,
            directory,
            parameters,
            beam=parameters.validation.final_beam,
            threads=threads,
        )
        logger.info("%s: BLEU %.2f, chrF %.2f", name, scores.bleu, scores.chrf)
        scored.append((state, name, scores))
    return max(scored, key=lambda item: item[2].bleu)
