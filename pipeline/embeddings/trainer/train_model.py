"""Trains a model from start to end: pairs, vocabulary, initial vectors, training, scores, the model's
directory."""

import logging
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import normalize

from paraforge.base.devices import check_device, chosen_device
from paraforge.base.errors import ConfigurationError, InputError
from paraforge.base.files import (
    atomic_path,
    hash_json,
    read_json,
    sha256_directory,
    sha256_file,
    write_csv,
    write_json,
)
from paraforge.base.progress import progress
from paraforge.base.shards.resources import Resources
from paraforge.base.text.paths import expand
from paraforge.base.text.units import make_units
from paraforge.base.text.vocabulary import WORD_UNITS
from paraforge.base.word_vectors.files import read_vector_file
from paraforge.base.word_vectors.vectors import WordVectors
from paraforge.corpus.scoring.scorers.models import check_directory, dimension_of, load_model
from paraforge.embeddings.encoders.encoder import Encoder, MakeTable, build_encoder
from paraforge.embeddings.encoders.parameters import VectorParameters, units_of
from paraforge.embeddings.evaluation.comparing import Model
from paraforge.embeddings.evaluation.sts import GroupScore, SetScore, evaluate_sts
from paraforge.embeddings.learning.id_sequences import map_array
from paraforge.embeddings.learning.runs import MODEL, open_or_build, run_once
from paraforge.embeddings.losses import loss_named
from paraforge.embeddings.trainer.data import TrainingData
from paraforge.embeddings.trainer.initial import starting_table, table_from_vectors
from paraforge.embeddings.trainer.mega_batches import encode
from paraforge.embeddings.trainer.model import SentenceModel
from paraforge.embeddings.trainer.objective import encoder_trainer
from paraforge.embeddings.trainer.pair_store import PairStore, build_pair_store
from paraforge.embeddings.trainer.parameters import EmbeddingsParameters, ModelParameters
from paraforge.versions import EMBEDDINGS, __version__

logger = logging.getLogger(__name__)

_DIGITS = 8
_CURVE = ("pairs_seen", "epoch", "loss", "development_pearson")
# Trained models have 0 to 0.4.
_TOO_ALIKE = 0.95
# With fewer pairs, it is probably a trial, and the sentences can be similar.
_FEW = 100
# Pairs that a teacher embeds at once.
_TEACHER_BLOCK = 1 << 12


@dataclass(frozen=True)
class EmbeddingsReport:
    """The result of a training, and the metrics of stage `embeddings`.

    signature: one line on the data and the version.
    pairs: training pairs per epoch. skipped: pairs left out because a side has no unit.
    passed_over: how often, in all epochs, a pair had no negative.
    leakage: see `LeakageReport`; None if there are neither sets nor held-out splits.
    pairs_per_second: rate of the last process that trained.
    best_score: development score of the chosen model. history: one entry per evaluation or epoch.
    sets, years: Pearson and Spearman x 100 on the test sets, by name.
    alike: mean cosine of different training sentences; near 1, every sentence gets nearly the same vector.
        None if there are too few pairs.
    """

    signature: str
    dimension: int
    parameters: int
    vocabularies: dict[str, int]
    pairs: int
    skipped: int
    leakage: dict[str, Any] | None
    updates: int
    pairs_per_second: float
    seconds: float
    best_score: float | None
    history: list[dict[str, Any]]
    sets: dict[str, dict[str, Any]]
    years: dict[str, dict[str, Any]]
    passed_over: int = 0
    alike: float | None = None


def train_named_model(
    name: str,
    parameters: EmbeddingsParameters,
    corpus: Path,
    output: Path,
    resources: Resources,
    curve: Path,
) -> EmbeddingsReport:
    """Train one of the models in section `embeddings` on the published corpus and the given files. Raises
    InputError if there is no model of that name, and as `train_model`."""
    if name not in parameters.models:
        raise InputError(f"there is no model '{name}'; params.yaml has {', '.join(parameters.models)}")
    data = TrainingData(
        parameters.pair_files,
        [corpus] if parameters.corpus_pairs else [],
        parameters.development,
        parameters.test_sets,
        drop_leaked=parameters.drop_leaked,
        reserved=[] if parameters.corpus_pairs else [corpus],
    )
    device = chosen_device(resources.devices[0])
    report = train_model(parameters.models[name], data, output, resources, device=device, description=name)
    rows = [
        {
            "pairs_seen": entry["pairs"],
            "epoch": entry["epoch"],
            "loss": None if entry["loss"] is None else f"{entry['loss']:.6f}",
            "development_pearson": None if entry["score"] is None else f"{entry['score']:.4f}",
        }
        for entry in report.history
    ]
    write_csv(curve, list(_CURVE), rows)
    return report


def train_model(
    parameters: ModelParameters,
    data: TrainingData,
    output: Path,
    resources: Resources,
    *,
    device: str = "cpu",
    checkpoint_seconds: float = 300.0,
    description: str = "train",
) -> EmbeddingsReport:
    """Train a model into a directory, which is replaced as a whole when the model is finished.

    Pairs, checkpoints and finished models are in `resources.work`/embeddings/KEY, the hash of everything that
    the result depends on, so the same call resumes a killed one.

    Raises:
        InputError: a file is missing or wrong, there is no pair to train on, or the initial vectors do not
            fit.
        ConfigurationError: the parts of the encoder do not fit each other, there is no such device, or there
            is patience without development sets.
        Interrupted: SIGTERM or Ctrl-C; a checkpoint has been written.
        WorkLockedError: another process is running the same training.
    """
    check_device(device)
    if parameters.training.patience is not None and not data.development:
        raise ConfigurationError(
            ["training.patience: needs development sets (--development, or embeddings.development)"]
        )
    begun = None if parameters.start is None else _begun(parameters)
    if begun is None:
        _check_dimensions(parameters)
    _ = data.development_pairs  # warns before work is spent

    def train(directory: Path) -> dict[str, Any]:
        begin = time.perf_counter()
        store, leakage = _pairs(directory / "pairs", parameters, data, begun)
        if parameters.teacher is not None:
            teacher = Path(expand(parameters.teacher))
            store.teacher = teacher_vectors(store, teacher, directory / "teacher.vectors", device)
        model = begun or _new_model(parameters, store)
        trainer = encoder_trainer(
            model.encoder,
            store,
            parameters.training,
            evaluate=data.development_score_of(model),
            checkpoints=directory / "checkpoints",
            checkpoint_seconds=checkpoint_seconds,
            threads=resources.thread_count(),
            device=device,
            description=description,
        )
        record = trainer.run()
        report = EmbeddingsReport(
            signature=_signature(store, data, leakage),
            vocabularies={unit: len(vocabulary) for unit, vocabulary in model.vocabularies.items()},
            pairs=len(store),
            skipped=store.skipped,
            leakage=leakage,
            pairs_per_second=trainer.rate,
            passed_over=record.counts["passed_over"],
            alike=_alike(model.encoder, store),
            dimension=model.dimension,
            parameters=sum(value.numel() for value in model.encoder.parameters()),
            updates=record.updates,
            seconds=time.perf_counter() - begin,
            best_score=record.best_score,
            history=record.history,
            **_scores(model, data),
        )
        about = asdict(report) | {"training": parameters.training.model_dump(mode="json")}
        # Without times, so that the same training gives the same bytes.
        untimed = {name: about[name] for name in about if name not in ("seconds", "pairs_per_second")}
        model.save(directory / MODEL, untimed)
        return asdict(report)

    report = run_once(
        "embeddings",
        _key(parameters, data),
        resources.work,
        output,
        train=train,
        open_model=SentenceModel.open,
        scratch=("pairs", "teacher.vectors", "checkpoints"),
    )
    finished = EmbeddingsReport(**report)
    if finished.alike is not None and finished.alike > _TOO_ALIKE:
        logger.warning(
            "%s: different sentences have a mean cosine of %.3f: every sentence gets nearly the same vector."
            " Set training.negatives to mix, or use a lower training.learning_rate or a higher "
            "encoder.initial_scale",
            description,
            finished.alike,
        )
    return finished


def _check_dimensions(parameters: ModelParameters) -> None:
    """Check that the encoder can be built, using tables of one row.

    Raises the errors of `build_encoder`, and InputError if the initial vectors cannot be read.
    """
    dimension: int | None = None
    if parameters.vectors is not None:
        dimension = next(read_vector_file(Path(expand(parameters.vectors)))).vectors.shape[1]

    def one_row(part: VectorParameters, _: int) -> Tensor:
        return torch.zeros(
            1, part.dimension if dimension is None or part.unit not in WORD_UNITS else dimension
        )

    build_encoder(parameters.encoder, one_row, 0)


def _key(parameters: ModelParameters, data: TrainingData) -> str:
    """Return the hash of everything that a training's result depends on; for files, their content."""
    files: dict[str, str] = {}
    if parameters.teacher is not None:
        teacher = Path(expand(parameters.teacher))
        check_directory(teacher, "SentenceTransformer")
        files["teacher"] = sha256_directory(teacher)
    if parameters.start is not None:
        files["start"] = sha256_directory(Path(expand(parameters.start)))
    for name in ("vectors", "sentencepiece_model"):
        if (path := getattr(parameters, name)) is not None:
            if not Path(expand(path)).is_file():
                raise InputError("no such file", expand(path))
            files[name] = sha256_file(expand(path))
    return hash_json(
        {
            "version": EMBEDDINGS,
            "parameters": parameters.model_dump(mode="json", exclude={*files}),
            "files": files,
            "data": data.fingerprint(),
        }
    )


def _begun(parameters: ModelParameters) -> SentenceModel:
    """Open the model to train further; raises as `SentenceModel.open`, and InputError if the parameters have
    another encoder."""
    assert parameters.start is not None
    model = SentenceModel.open(expand(parameters.start))
    if "encoder" in parameters.model_fields_set and parameters.encoder != model.parameters:
        raise InputError(
            "the model in start has a different encoder",
            expand(parameters.start),
            remedy="Leave out 'encoder' (--encoder), because the model has its own.",
        )
    return model


def _new_model(parameters: ModelParameters, store: PairStore) -> SentenceModel:
    encoder = build_encoder(parameters.encoder, _tables(parameters, store), parameters.training.seed)
    return SentenceModel(
        encoder,
        parameters.encoder,
        store.vocabularies,
        _pieces(parameters),
        unknown_words=parameters.unknown_words,
    )


def _pieces(parameters: ModelParameters) -> Path | None:
    path = parameters.sentencepiece_model
    return None if path is None else Path(expand(path))


def _alike(encoder: Encoder, store: PairStore) -> float | None:
    """Return the mean cosine of the left sides of up to 1,000 pairs spread over the store, each with the
    next."""
    if len(store) < _FEW:
        return None
    some = np.unique(np.linspace(0, len(store) - 1, 1000).astype(np.int64))
    device = next(encoder.parameters()).device
    vectors = normalize(encode(encoder, store.select(some), device)[: len(some)], dim=1)
    return round(float((vectors[1:] * vectors[:-1]).sum(1).mean()), 4)


def _scores(model: Model, data: TrainingData) -> dict[str, dict[str, Any]]:
    """Return the scores on the test sets, by set and by year."""
    scores = evaluate_sts(model, data.evaluated_sets)
    shared = data.development_pairs
    chosen_by = {group.name: 0 for group in scores.groups}
    for result in scores.sets:
        chosen_by[result.group] += shared.get(result.name, 0)
    return {
        "sets": {score.name: _figures(score, shared.get(score.name, 0)) for score in scores.sets},
        "years": {score.name: _figures(score, chosen_by[score.name]) for score in scores.groups},
    }


def _figures(score: SetScore | GroupScore, development_pairs: int) -> dict[str, Any]:
    """Return a score as JSON values. development_pairs: pairs that also chose the epoch; left out if 0."""
    figures = {"pearson": score.pearson, "spearman": score.spearman, "pairs": score.pairs}
    return figures | ({"development_pairs": development_pairs} if development_pairs else {})


def _pairs(
    directory: Path, parameters: ModelParameters, data: TrainingData, begun: SentenceModel | None
) -> tuple[PairStore, dict[str, Any] | None]:
    """Return the pairs as ids, in the vocabularies of a model to train further, and the leakage report."""
    found = directory / "leakage.json"

    def build() -> tuple[PairStore, dict[str, Any] | None]:
        leakage = data.leakage_filter()
        encoder = parameters.encoder if begun is None else begun.parameters
        pieces = _pieces(parameters) if begun is None else begun.sentencepiece_model
        units = [make_units(unit, pieces) for unit in sorted(units_of(encoder))]
        store = build_pair_store(
            directory,
            leakage(data.blocks()),
            units,
            parameters.vocabulary,
            with_sentences=loss_named(parameters.training.loss).teacher,
            vocabularies=None if begun is None else begun.vocabularies,
        )
        # The held-out splits of a corpus can also drop pairs, even without sets.
        if leakage.looks:
            for line in leakage.report.lines():
                logger.info("%s", line)
        report = leakage.report.as_json() if leakage.looks else None
        write_json(found, report)
        return store, report

    return open_or_build(lambda: (PairStore(directory), read_json(found)), build)


def _tables(parameters: ModelParameters, store: PairStore) -> MakeTable:
    seed = parameters.training.seed
    vectors = None if parameters.vectors is None else WordVectors.from_text(expand(parameters.vectors))

    def make(part: VectorParameters, number: int) -> Tensor:
        if vectors is not None and part.unit in WORD_UNITS:
            vocabulary = store.vocabularies[part.unit]
            return table_from_vectors(vocabulary, vectors, seed + number, parameters.vectors)
        return starting_table(part, store, seed + number)

    return make


def _signature(store: PairStore, data: TrainingData, leakage: Mapping[str, Any] | None) -> str:
    leaked = "unknown" if leakage is None else f"{leakage['leaked']}:{leakage['dropped']}dropped"
    digest = data.fingerprint()[:_DIGITS]
    return f"pairs:{len(store)}|data:{digest}|leaked:{leaked}|tok:moses-lc|v:{__version__}"


def teacher_vectors(store: PairStore, model: Path, path: Path, device: str) -> npt.NDArray[np.float32]:
    """Return a sentence-transformers model's vectors of the sides of all pairs, (2 * pairs, dimension),
    memory-mapped: left, right, left, ... They are computed unless the file `path` exists. The store must have
    sentences.

    Raises InputError as `load_model`.
    """
    teacher = load_model(model, device)
    dimension = dimension_of(teacher)
    if not path.is_file():
        with (
            atomic_path(path) as temporary,
            temporary.open("wb") as file,
            progress(total=len(store), unit="pairs", description="teacher") as bar,
        ):
            for first in range(0, len(store), _TEACHER_BLOCK):
                numbers = np.arange(first, min(first + _TEACHER_BLOCK, len(store)))
                file.write(_of_both_sides(teacher, store.sentences(numbers)))
                bar.update(len(numbers))
    vectors = map_array(path, "float32", (2 * len(store) * dimension,))
    return vectors.reshape(2 * len(store), dimension)


def _of_both_sides(teacher: Any, sentences: list[str]) -> bytes:
    # The occurrences of a sentence in several pairs are close together, because versions of one text are
    # paired with each other.
    places = {text: place for place, text in enumerate(dict.fromkeys(sentences))}
    vectors = teacher.encode(list(places), convert_to_numpy=True, show_progress_bar=False)
    each = np.asarray(vectors, dtype=np.float32)[[places[text] for text in sentences]]
    both = each.reshape(2, len(sentences) // 2, -1)
    return np.ascontiguousarray(both.swapaxes(0, 1)).tobytes()
