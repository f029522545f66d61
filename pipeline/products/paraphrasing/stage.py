"""The stage paraphraser: ``models/paraphraser`` by training on the corpus, or a ready model, or none.

Its metrics show the results for different requests: similarity against overlap, for the user to choose from.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from paraforge import versions
from paraforge.base.files import hash_json, read_json, sha256_file, write_digests, write_json
from paraforge.base.interrupts import check_interrupt
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.work import WorkDirectory, replaced_directory
from paraforge.base.text.paths import expand
from paraforge.corpus.scoring.general import DIRECTORY, is_english
from paraforge.corpus.scoring.pairs import Pairs
from paraforge.corpus.scoring.scorers.models import ParaphraseScore
from paraforge.corpus.scoring.scorers.words import Overlap
from paraforge.corpus.scoring.word_scorer import WordScorer
from paraforge.products.paraphrasing.controls import CONTROLS_FILE, RANGES, Controls
from paraforge.products.paraphrasing.pairs import prepare_pairs
from paraforge.products.paraphrasing.parameters import NO_MODEL, TRAIN, ParaphraserParameters
from paraforge.products.paraphrasing.paraphraser import Paraphraser
from paraforge.translation.models.conversion import write_description
from paraforge.translation.models.importing import import_model
from paraforge.translation.models.model import MODEL_FILE
from paraforge.translation.training.stage import publish, trained_model, training_key
from paraforge.translation.training.training import with_precision, write_history

BEAM = 4


def measured(sources: Sequence[str], outputs: Sequence[str]) -> dict[str, NDArray[np.float64]]:
    """Return similarity (of the built-in scorer, 0 to 1), unigram overlap (0 to 1) and length (tokens of the
    output / tokens of the source) of each pair; NaN if a side is blank."""
    pairs = Pairs.of(*(pa.array(texts, pa.string()) for texts in (sources, outputs)))
    score = ParaphraseScore(WordScorer.open(DIRECTORY))(pairs)["paraphrase_score"]
    tokens = [side.lengths.astype(np.float64) for side in (pairs.reference_tokens, pairs.translation_tokens)]
    blank = (tokens[0] == 0) | (tokens[1] == 0)
    found = (
        score.to_numpy(zero_copy_only=False),
        Overlap()(pairs)["overlap_1"].to_numpy(),
        tokens[1] / np.maximum(tokens[0], 1),
    )
    return {
        name: np.where(blank, np.nan, values.astype(np.float64))
        for name, values in zip(RANGES, found, strict=True)
    }


def control_curve(model: Paraphraser, sources: Sequence[str]) -> list[dict[str, Any]]:
    """Return means over English sentences: without control, by bucket of overlap, and the same at high
    similarity.

    Each row has the request in ``asked`` (``overlap`` and ``similarity``: a bucket from 1, or None), the
    means of :func:`measured`, and ``missed``: the share of outputs outside the requested bucket of overlap.
    """
    edges = model.controls.edges
    buckets = range(1, len(edges["overlap"]) + 2) if "overlap" in edges else ()
    highest = len(edges["similarity"]) + 1 if "similarity" in edges else None
    ways: list[tuple[int | None, int | None]] = [(None, None), *((bucket, None) for bucket in buckets)]
    if highest is not None:
        ways += [(bucket, highest) for bucket in buckets]
    rows = []
    for overlap, similarity in ways:
        check_interrupt()
        asked = {"overlap": overlap, "similarity": similarity}
        given = {name: model.controls.names(name)[bucket - 1] for name, bucket in asked.items() if bucket}
        found = model.paraphrase(sources, beam=BEAM, **given)
        values = measured(sources, [texts[0] if texts else "" for texts in found])
        missed = (
            None if overlap is None else model.controls.buckets("overlap", values["overlap"]) != overlap - 1
        )
        rows.append(
            {
                "asked": asked,
                **{name: _mean(column) for name, column in values.items()},
                "missed": None if missed is None else _mean(missed.astype(np.float64)),
            }
        )
    return rows


def _mean(values: NDArray[np.float64]) -> float | None:
    """Return the mean of the values that are not NaN; None if there are none."""
    finite = values[np.isfinite(values)]
    return round(float(finite.mean()), 4) if len(finite) else None


STEP = "paraphraser"
CURVE_SENTENCES = 200


@dataclass(frozen=True)
class ParaphraserReport:
    """Metrics of the stage.

    origin: trained, none, or the name of a ready model. fingerprint: hash of weights and vocabulary.
    bleu, chrf: on the held-out pairs, with their tags; None if none were held out.
    controls: the model's controls: buckets by name, and the number of templates.
    pairs: fates of the corpus' pairs; None for a ready model.
    curve: results of a trained model for different requests, on held-out pairs; see
        :func:`~paraforge.products.paraphrasing.stage.control_curve`; empty if they are not English.
    architecture: sizes.
    trained_on: pairs, updates and so on; None for a ready model. seconds: wall time of this run of the stage.
    """

    origin: str
    fingerprint: str
    bleu: float | None
    chrf: float | None
    controls: dict[str, int] = field(default_factory=dict)
    pairs: Mapping[str, int] | None = None
    curve: list[dict[str, Any]] = field(default_factory=list)
    architecture: dict[str, Any] = field(default_factory=dict)
    trained_on: dict[str, Any] | None = None
    seconds: float = 0.0


def build_paraphraser(
    parameters: ParaphraserParameters, corpus: Path, output: Path, plot: Path, resources: Resources
) -> ParaphraserReport:
    """Make ``output`` (``models/paraphraser``) according to the parameters; the training curve goes to
    ``plot``.

    Raises InputError: the corpus or the ready model is not usable, or a parser or test file is missing;
    WorkLockedError: another process is training in the same work directory; Interrupted: SIGTERM or Ctrl-C;
    the same command resumes.
    """
    started = time.monotonic()
    history: list[dict[str, float]] = []
    pairs: Mapping[str, int] | None = None
    curve: list[dict[str, Any]] = []
    if parameters.model == NO_MODEL:
        with replaced_directory(output) as temporary:
            write_description(temporary, origin=NO_MODEL, languages=parameters.languages, entries={})
    elif parameters.model == TRAIN:
        history, pairs, curve = _train(parameters, corpus, output, resources)
    else:
        source, target = parameters.languages
        import_model(expand(parameters.model), output, source_language=source, target_language=target)
        mark_paraphraser(output)
        write_digests(output)
    write_history(history, plot)
    description = read_json(output / MODEL_FILE)
    metrics = description["metrics"] or {}
    controls = Controls() if parameters.model == NO_MODEL else Controls.read(output)
    return ParaphraserReport(
        origin=description["origin"],
        fingerprint=description["fingerprint"],
        bleu=metrics.get("bleu"),
        chrf=metrics.get("chrf"),
        controls={name: len(edges) + 1 for name, edges in controls.edges.items()}
        | ({"templates": len(controls.templates)} if controls.templates else {}),
        pairs=pairs,
        curve=curve,
        architecture=description["architecture"],
        trained_on=description["trained_on"],
        seconds=round(time.monotonic() - started, 1),
    )


def _train(
    parameters: ParaphraserParameters, corpus: Path, output: Path, resources: Resources
) -> tuple[list[dict[str, float]], Mapping[str, int], list[dict[str, Any]]]:
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
        file = directory / "curve.json"
        if not file.is_file():  # of the finished model, measured once
            english = is_english(parameters.language)
            model = Paraphraser(output, "cpu", resources.thread_count())
            curve = control_curve(model, pairs.held_out_sources(CURVE_SENTENCES)) if english else []
            write_json(file, curve)
    return history, pairs.report, read_json(file)


def mark_paraphraser(model: Path) -> None:
    """Mark a ready model as a paraphraser; without controls it gets empty ones."""
    file = model / CONTROLS_FILE
    if file.is_file():
        return
    write_json(file, Controls().as_json())
    description = read_json(model / MODEL_FILE)
    description["files"][CONTROLS_FILE] = {"bytes": file.stat().st_size, "sha256": sha256_file(file)}
    write_json(model / MODEL_FILE, description)
