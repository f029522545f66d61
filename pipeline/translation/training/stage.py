"""The stage nmt: makes ``models/nmt`` by training or by importing a pretrained model, or without a model."""

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paraforge import versions
from paraforge.base.errors import InputError, describing, page
from paraforge.base.files import (
    files_below,
    hash_json,
    read_json,
    remove_directory,
    write_digests,
    write_json,
)
from paraforge.base.logs import say_result
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.store import ShardDirectory
from paraforge.base.shards.work import WorkDirectory, link_or_copy, replaced_directory
from paraforge.base.text.paths import expand
from paraforge.intake.bitext.ingest import ingest
from paraforge.translation.models.conversion import write_description
from paraforge.translation.models.importing import import_model
from paraforge.translation.models.model import MODEL_FILE, check_files
from paraforge.translation.training.binarization import PREPARED
from paraforge.translation.training.finishing import finish_model
from paraforge.translation.training.parameters import READY_MODEL, NmtParameters, doubt_about, languages_of
from paraforge.translation.training.training import train_model, with_precision, write_history

logger = logging.getLogger(__name__)

# Large files that are only needed to resume. They are removed in this order, so that the remaining ones are
# consistent at any moment.
_SCAFFOLDING = ("checkpoints", PREPARED, "parts", "snapshots", "validation")


@dataclass(frozen=True)
class NmtReport:
    """Metrics of the stage.

    origin: trained, none, or the format of a pretrained model. fingerprint: hash of weights and vocabulary.
    bleu, chrf: on the held-out rows; None if there are none. architecture: sizes.
    trained_on: pairs, updates and so on; None for a pretrained model.
    seconds: wall time of this run of the stage.
    """

    origin: str
    fingerprint: str
    bleu: float | None
    chrf: float | None
    architecture: dict[str, Any] = field(default_factory=dict)
    trained_on: dict[str, Any] | None = None
    seconds: float = 0.0


def build_nmt(
    parameters: NmtParameters, ingested: Path, output: Path, plot: Path, resources: Resources
) -> NmtReport:
    """Make ``output`` (``models/nmt``) according to the parameters, and write the training curve to ``plot``.

    Raises InputError if the bitext or the pretrained model is not usable, WorkLockedError if another process
    is training in the same work directory, and Interrupted on SIGTERM or Ctrl-C; the same command resumes.
    """
    started = time.monotonic()
    languages = (parameters.source_language, parameters.target_language)
    history: list[dict[str, float]] = []
    if parameters.model == "none":
        with replaced_directory(output) as temporary:
            description = write_description(temporary, origin="none", languages=languages, entries={})
    elif parameters.model == "train":
        description, history = _train(parameters, ingested, output, resources)
    else:
        description = import_model(
            expand(parameters.model),
            output,
            source_language=languages[0],
            target_language=languages[1],
        )
    write_history(history, plot)
    return report_of(description, started)


def report_of(description: Mapping[str, Any], started: float) -> NmtReport:
    """Return the metrics of a model by its description. started: of the stage, on the monotonic clock."""
    metrics = description["metrics"] or {}
    return NmtReport(
        origin=description["origin"],
        fingerprint=description["fingerprint"],
        bleu=metrics.get("bleu"),
        chrf=metrics.get("chrf"),
        architecture=description["architecture"],
        trained_on=description["trained_on"],
        seconds=round(time.monotonic() - started, 1),
    )


def training_key(
    parameters: NmtParameters, bitext: ShardDirectory, step: str = "nmt", version: int = versions.NMT
) -> str:
    """Return the hash of everything that a training's result depends on.

    parameters: with the resolved precision; see
    :func:`~paraforge.translation.training.training.with_precision`.
    """
    # These defaults are left out, so that trainings from before the other choices existed are still found.
    values = parameters.model_dump(mode="json", exclude={"model", "forward", "bitext"})
    if parameters.target == "reference":
        del values["target"]
    if parameters.architecture.kind == "transformer":
        del values["architecture"]["kind"]
    if parameters.maximum_pairs == NmtParameters.model_fields["maximum_pairs"].default:
        del values["maximum_pairs"]
    return hash_json(
        {
            "step": step,
            "version": version,
            "parameters": values,
            "shards": [record.sha256 for record in bitext.records],
        }
    )[:32]


def _train(
    parameters: NmtParameters, ingested: Path, output: Path, resources: Resources
) -> tuple[dict[str, Any], list[dict[str, float]]]:
    work = WorkDirectory("nmt", resources.work)
    with work.lock():
        bitext = _bitext(parameters, ingested, resources)
        chosen = with_precision(parameters, resources)
        directory = work.path / training_key(chosen, bitext)
        if not (directory / "model").is_dir():
            if doubt := doubt_about(bitext.total_rows):
                logger.warning("%s", doubt)
            say_result(
                f"training a translation model takes about {parameters.training_time} on two CPU cores. "
                f"To use a pretrained model instead: {READY_MODEL} (see {page('models')})"
            )
        history = trained_model(bitext, directory, parameters, resources)
        publish(directory / "model", output)
        return read_json(output / MODEL_FILE), history


def trained_model(
    bitext: ShardDirectory,
    directory: Path,
    parameters: NmtParameters,
    resources: Resources,
    symbols: Sequence[str] = (),
    documents: Mapping[str, Any] | None = None,
) -> list[dict[str, float]]:
    """Train ``directory/model`` unless it is already finished and complete. Returns the validations.

    bitext, symbols: see :func:`~paraforge.translation.training.training.train_model`.
    directory: directory of this training. parameters: everything that decides the result.
    resources: devices and threads.
    documents: see :func:`~paraforge.translation.training.finishing.finish_model`.
    """
    finished = directory / "model"
    history_file = directory / "history.json"
    if not _is_whole(finished, history_file):
        result = train_model(bitext, directory, parameters, resources, symbols)
        write_json(history_file, result.history)
        with replaced_directory(finished) as temporary:
            finish_model(directory, temporary, parameters, result, resources.thread_count(), documents)
    for name in _SCAFFOLDING:  # also after an earlier run, which may have been killed here
        remove_directory(directory / name)
    history: list[dict[str, float]] = read_json(history_file)
    return history


def _bitext(parameters: NmtParameters, ingested: Path, resources: Resources) -> ShardDirectory:
    if parameters.bitext is None:
        return ShardDirectory(ingested)
    if isinstance(parameters.bitext, Path):
        if parameters.bitext.resolve() == ingested.resolve().with_name("translated"):
            raise InputError(
                "the stage translate will replace these shards with the new model's translations",
                parameters.bitext,
                remedy="Copy them, e.g. to teacher/translated, and set nmt.bitext to the copy.",
            )
        return ShardDirectory(parameters.bitext)
    output = resources.work / "nmt" / "bitext"
    ingest(parameters.bitext, output, resources, languages_of(parameters, "nmt.bitext"))
    return ShardDirectory(output)


def _is_whole(model: Path, history: Path) -> bool:
    """Return whether a finished model exists with its history, and all its bytes are unchanged; warn if it
    was changed."""
    if not model.is_dir():
        return False
    try:
        with describing(model / MODEL_FILE):
            check_files(model, read_json(model / MODEL_FILE)["files"])
        read_json(history)
    except InputError as error:
        logger.warning("%s: %s. The model is trained again", error.path, error.message)
        return False
    return True


def publish(model: Path, output: Path) -> None:
    """Publish a finished model in ``output``, which is replaced as a whole."""
    with replaced_directory(output) as temporary:
        for path in files_below(model):
            target = temporary / path.relative_to(model)
            target.parent.mkdir(parents=True, exist_ok=True)
            link_or_copy(path, target)
        write_digests(temporary)
