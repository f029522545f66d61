"""The stage paraphraser: ``models/paraphraser`` by training on the corpus, or a ready model, or none."""

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from paraforge import versions
from paraforge.base.files import hash_json, read_json, sha256_file, write_digests, write_json
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.work import WorkDirectory, replaced_directory
from paraforge.base.text.paths import expand
from paraforge.products.paraphrasing.controls import CONTROLS_FILE, Controls
from paraforge.products.paraphrasing.pairs import prepare_pairs
from paraforge.products.paraphrasing.parameters import NO_MODEL, TRAIN, ParaphraserParameters
from paraforge.translation.models.conversion import write_description
from paraforge.translation.models.importing import import_model
from paraforge.translation.models.model import MODEL_FILE
from paraforge.translation.training.stage import NmtReport, publish, report_of, trained_model, training_key
from paraforge.translation.training.training import with_precision, write_history

STEP = "paraphraser"


@dataclass(frozen=True)
class ParaphraserReport(NmtReport):
    """Metrics of the stage: those of a translation model, and more.

    controls: the model's controls: buckets by name, and the number of templates.
    pairs: fates of the corpus' pairs; None for a ready model.
    """

    controls: dict[str, int] = field(default_factory=dict)
    pairs: Mapping[str, int] | None = None


def build_paraphraser(
    parameters: ParaphraserParameters, corpus: Path, output: Path, plot: Path, resources: Resources
) -> ParaphraserReport:
    """Make ``output`` (``models/paraphraser``) by the parameters; write the training curve to ``plot``.

    Raises:
        InputError: the corpus or the ready model is not usable, or a parser or test file is missing.
        WorkLockedError: another process is training in the same work directory.
        Interrupted: SIGTERM or Ctrl-C; the same command resumes.
    """
    started = time.monotonic()
    history: list[dict[str, float]] = []
    pairs: Mapping[str, int] | None = None
    if parameters.model == NO_MODEL:
        with replaced_directory(output) as temporary:
            write_description(temporary, origin=NO_MODEL, languages=parameters.languages, entries={})
    elif parameters.model == TRAIN:
        history, pairs = _train(parameters, corpus, output, resources)
    else:
        source, target = parameters.languages
        import_model(expand(parameters.model), output, source_language=source, target_language=target)
        mark_paraphraser(output)
        write_digests(output)
    write_history(history, plot)
    controls = Controls() if parameters.model == NO_MODEL else Controls.read(output)
    buckets = {name: len(edges) + 1 for name, edges in controls.edges.items()}
    if controls.templates:
        buckets["templates"] = len(controls.templates)
    report = report_of(read_json(output / MODEL_FILE), started)
    return ParaphraserReport(**asdict(report), controls=buckets, pairs=pairs)


def _train(
    parameters: ParaphraserParameters, corpus: Path, output: Path, resources: Resources
) -> tuple[list[dict[str, float]], Mapping[str, int]]:
    work = WorkDirectory(STEP, resources.work)
    with work.lock():
        pairs = prepare_pairs(corpus, work.path, parameters, resources)
        training = with_precision(parameters.of_training(), resources)
        controls = pairs.controls.as_json()
        key = training_key(training, pairs.shards, STEP, versions.PARAPHRASER)
        directory = work.path / hash_json([key, controls])[:32]
        history = trained_model(
            pairs.shards,
            directory,
            training,
            resources,
            symbols=pairs.controls.symbols(),
            documents={CONTROLS_FILE: controls},
        )
        publish(directory / "model", output)
    return history, pairs.report


def mark_paraphraser(model: Path) -> None:
    """Mark a ready model as a paraphraser; without controls it gets empty ones."""
    file = model / CONTROLS_FILE
    if file.is_file():
        return
    write_json(file, Controls().as_json())
    description = read_json(model / MODEL_FILE)
    description["files"][CONTROLS_FILE] = {"bytes": file.stat().st_size, "sha256": sha256_file(file)}
    write_json(model / MODEL_FILE, description)
