"""Combines the scorers into steps over shards, from a shard of translated rows to a shard of score columns.

Each model's column is a separate step with its own directory next to the other scores. So adding a cheap
column reruns no model, and adding a model recomputes nothing else.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from paraforge.base.errors import InputError, install_command
from paraforge.base.files import sha256_directory
from paraforge.base.shards.cluster import worker_number
from paraforge.base.shards.libraries import merge_versions
from paraforge.base.shards.lineage import LINEAGE
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.schema import FATE_COLUMNS, TEXT_COLUMNS, usable_rows
from paraforge.base.shards.step import Step, run_step
from paraforge.base.shards.store import ShardDirectory, ShardView, accompanied_by, aligned_with
from paraforge.base.shards.work import libraries_of, replaced_directory
from paraforge.base.text.paths import expand
from paraforge.base.text.tokens import LIBRARIES, TOKENIZER_NAME
from paraforge.base.word_vectors.vectors import TABLE_NAME, WordVectors, shards_trained_on
from paraforge.corpus.columns import COLUMNS, schema_of
from paraforge.corpus.scorer import Scorer, ScorerChoice, SentenceEncoder, scorer_types
from paraforge.corpus.scoring.corpus_counts import CorpusCounts, count_corpus
from paraforge.corpus.scoring.lexical_learning import learn_corpus
from paraforge.corpus.scoring.lexical_table import LexicalTable
from paraforge.corpus.scoring.out_of_step import Blocks, Stretch, warn_of
from paraforge.corpus.scoring.pairs import Pairs, pairs_of_translations
from paraforge.corpus.scoring.parameters import ScoreParameters
from paraforge.corpus.scoring.scorers import language
from paraforge.corpus.scoring.scorers.models import Kind, check_directory
from paraforge.corpus.scoring.verdict import judge
from paraforge.corpus.scoring.word_scorer import DESCRIPTION, WordScorer
from paraforge.corpus.scoring.wrong_pairs import (
    WRONG_PAIRS_NAME,
    judged_scores,
    other_rows,
    write_wrong_pairs,
)
from paraforge.versions import SCORE

logger = logging.getLogger(__name__)

PAIR_COLUMNS = (*TEXT_COLUMNS, "source", "source_text")
_OF_TRANSLATIONS = ("original", "translation_source_text")
# Parameters of `score` for model directories, with the kind of model and the column that each gives.
_MODELS: dict[str, tuple[Kind, str]] = {
    "sentence_transformer": ("SentenceTransformer", "cosine"),
    "cross_encoder": ("CrossEncoder", "cross_encoder"),
}
_MODEL_VERSION = 1  # of the models' columns. If you raise it, also raise SCORE, which DVC watches.
_AVERAGED = ("paraphrase_score", "overlap_3")
_BLOCK_ROWS = 25_000  # Smaller blocks take longer, because each looks up its words.


@dataclass(frozen=True)
class ScoreReport:
    """The result of the score stage.

    Rows that are not scored were rejected, failed, or have no translation. Means are over the rows that have
    the score. verdicts: how well each score separates mismatched pairs.
    out_of_step: lines of each source where reference and foreign side do not translate each other.
    """

    rows: int
    scored: int
    mean_paraphrase_score: float | None
    mean_overlap_3: float | None
    shards: int
    reused: int
    seconds: float
    wrong_pairs: int = 0
    verdicts: dict[str, dict[str, Any]] = field(default_factory=dict)
    out_of_step: dict[str, list[Stretch]] = field(default_factory=dict)


OpenModel = Callable[[Path], SentenceEncoder]
"""Opens a trained model from its directory. It must be importable, because it is sent to workers."""


def open_vectors(
    directory: Path, open_model: OpenModel | None = None, verify: bool = False
) -> tuple[str, WordVectors | WordScorer | SentenceEncoder]:
    """Open a word scorer, a table of word vectors or a trained model. Returns the name of its fingerprint,
    and the opened object.

    verify: read all of a table of word vectors and compare it with its fingerprint.

    Raises InputError if it is missing or damaged.
    """
    if (directory / DESCRIPTION).is_file():
        return "scorer", WordScorer.open(directory)
    if open_model is None or (directory / TABLE_NAME).is_file():
        return "vectors", WordVectors.open(directory, verify=verify)
    return "model", open_model(directory)


def build_scorers(
    vectors: Path | WordVectors | WordScorer | SentenceEncoder | None,
    open_model: OpenModel | None = None,
    counts: Path | CorpusCounts | None = None,
    lexical: Path | LexicalTable | None = None,
    column: str | None = None,
    **choice: Any,
) -> list[Scorer]:
    """Load the chosen scorers with what they need.

    vectors: directory of a word-vector table, a word scorer or a trained model, or an opened one; None for no
        paraphrase score.
    open_model: opens the model's directory. counts: the corpus' counts, or their file.
    lexical: the corpus' lexical table, or its file. column: load only the scorer of this column.
    choice: the other fields of :class:`~paraforge.corpus.scorer.ScorerChoice`.
    """
    if isinstance(vectors, Path):
        _, vectors = open_vectors(vectors, open_model)
    if isinstance(counts, Path):
        counts = CorpusCounts.open(counts)
    if isinstance(lexical, Path):
        lexical = LexicalTable.open(lexical)
    chosen = ScorerChoice(vectors, counts, lexical, **choice)
    types = [
        scorer_type
        for scorer_type in scorer_types()
        if column is None or column in (c.name for c in scorer_type.columns)
    ]
    built = [scorer.build(chosen) for scorer in types]
    return [scorer for scorer in built if scorer is not None]


def score_table(table: Any, scorers: Sequence[Scorer]) -> Any:
    """Return the score columns of a table with `reference` and `translation` and perhaps `rejected` and
    `failed`.

    Returns a pyarrow table of only the scorers' columns, row-aligned with `table`. All scores of a row are
    null if a side is null or the row was rejected or failed.
    """
    usable = usable_rows(table)
    present = [name for name in (*PAIR_COLUMNS, *_OF_TRANSLATIONS) if name in table.column_names]
    rows = table.select(present).filter(usable)
    pairs = Pairs.of(**{name: rows[name] for name in present if name in PAIR_COLUMNS})
    of_two = pairs_of_translations(rows)
    # The index of each row among the usable pairs, null for other rows.
    place = pc.if_else(usable, pc.subtract(pc.cumulative_sum(pc.cast(usable, pa.int64())), 1), None)
    schema = schema_of(name for scorer in scorers for name in scorer.names)
    columns: dict[str, Any] = {}
    for scorer in scorers:
        scores = scorer(pairs)
        sizes = {name: len(values) for name, values in scores.items()}
        if sizes != (expected := dict.fromkeys(scorer.names, len(pairs))):
            raise InputError(f"{type(scorer).__name__} gave scores {sizes}, but should give {expected}")
        pairs.scores.update(scores)
        columns.update(scores if of_two is None else scorer.with_worse_of(scores, *of_two))
    return pa.table(
        [columns[name].cast(COLUMNS[name].type).take(place) for name in schema.names], schema=schema
    )


def build_shard_function(devices: Sequence[str], **arguments: Any) -> Callable[[Any], Any]:
    """Return the function from a shard to its scores.

    devices: worker n uses device n modulo their number.
    arguments: the other arguments of :func:`build_scorers`.
    """
    scorers = build_scorers(**arguments, device=devices[(worker_number() or 0) % len(devices)])
    if (
        "column" in arguments
    ):  # a model's last digits depend on its batches, which are made from a whole shard
        return lambda table: score_table(table, scorers)
    return lambda table: score_in_blocks(table, scorers)


def score_in_blocks(table: Any, scorers: Sequence[Scorer], rows: int = _BLOCK_ROWS) -> Any:
    """Return the same as :func:`score_table`, but with the temporary arrays of only `rows` rows in memory."""
    blocks = [score_table(table.slice(first, rows), scorers) for first in range(0, len(table) or 1, rows)]
    return pa.concat_tables(blocks).combine_chunks()


def score_steps(
    parameters: ScoreParameters,
    vectors: Path,
    resources: Resources,
    open_model: OpenModel | None = None,
    counted: tuple[Path, str] | None = None,
    lexical: tuple[Path, str] | None = None,
) -> list[Step]:
    """Return the steps that score translated rows, see :func:`score`: one for all cheap scores, and one for
    each model's column, ``score-COLUMN``.

    counted: file of the corpus' counts and its SHA-256; see
        :func:`~paraforge.corpus.scoring.corpus_counts.count_corpus`.
    lexical: file of its lexical table and its SHA-256; see
        :func:`~paraforge.corpus.scoring.lexical_learning.learn_corpus`.

    Raises:
        InputError: the vectors or the sentence-transformers model are missing or damaged.
        MissingPackageError: a chosen package is not installed.
        ConfigurationError: a language is unknown.
    """
    identify = parameters.identify_language
    if identify is None:
        identify = language.is_available()
        if not identify:
            logger.info(
                "languages are not identified: %s is not installed (%s)",
                language.PACKAGE,
                install_command(language.EXTRA),
            )
    kind, opened = open_vectors(vectors, open_model, verify=True)  # raises errors here, not in a worker
    words, fingerprints = None, {}
    if isinstance(opened, WordVectors | WordScorer):
        words, fingerprints = vectors.resolve(), {kind: opened.fingerprint}
    learned = {name: item for name, item in (("counts", counted), ("lexical", lexical)) if item is not None}
    fingerprints |= {name: fingerprint for name, (_, fingerprint) in learned.items()}
    if identify:
        fingerprints["language"] = language.fingerprint()
        language.LanguageIdentification(parameters.languages)  # raises errors here, not in a worker
    step = Step(
        name="score",
        version=SCORE,
        parameters={
            "tokenizer": TOKENIZER_NAME,
            "identify_language": identify,
            "languages": parameters.languages if identify else None,
            **_added_scorers(),
        },
        fingerprints=fingerprints,
        build=build_shard_function,
        arguments={
            "vectors": words,
            **{name: path for name, (path, _) in learned.items()},
            "identify_language": identify,
            "languages": parameters.languages,
            "devices": ("cpu",),
        },
        files=(*([] if words is None else [words]), *(path for path, _ in learned.values())),
        columns=[*TEXT_COLUMNS, *FATE_COLUMNS],
        at_once=2,  # two processes would both load the vectors and look up every word
        libraries=(*LIBRARIES, *([language.PACKAGE] if identify else [])),
        inherited=merge_versions(libraries_of(path) for path, _ in learned.values()),
    )
    steps = [step]
    if words is None:
        path = vectors.resolve()
        arguments: dict[str, Any] = {"vectors": path, "open_model": open_model, "devices": ("cpu",)}
        steps.append(_model_step("paraphrase_score", kind, path, arguments))
    for name, (kind_of_model, column) in _MODELS.items():
        if (chosen := getattr(parameters, name)) is not None:
            directory = Path(expand(chosen))
            check_directory(directory, kind_of_model)
            path = directory.resolve()
            arguments = {"vectors": None, f"{name}_directory": path, "devices": _devices(resources)}
            steps.append(_model_step(column, name, path, arguments, ("sentence-transformers",)))
    return steps


def _model_step(
    column: str, kind: str, directory: Path, arguments: dict[str, Any], libraries: tuple[str, ...] = ()
) -> Step:
    """Return the step of a model's column, which depends only on the model and the texts."""
    return Step(
        name=f"score-{column}",
        version=_MODEL_VERSION,
        parameters={"tokenizer": TOKENIZER_NAME},
        fingerprints={kind: sha256_directory(directory)},
        build=build_shard_function,
        arguments={**arguments, "column": column},
        files=(directory,),
        columns=[*TEXT_COLUMNS, *FATE_COLUMNS],
        device=arguments["devices"][0],
        libraries=(*LIBRARIES, *libraries, "torch"),
    )


def _added_scorers() -> dict[str, list[str]]:
    """Return the scorers of other packages, for the step's key."""
    added = [f"{scorer.__module__}.{scorer.__name__}" for scorer in scorer_types()]
    added = [name for name in added if not name.startswith("paraforge.")]
    return {"added_scorers": added} if added else {}


def score(
    parameters: ScoreParameters,
    translated: Path,
    vectors: Path,
    output: Path,
    resources: Resources,
    open_model: OpenModel | None = None,
) -> ScoreReport:
    """Score the shards of `translated` into `output`, and mismatched pairs made of them next to these.

    parameters: section `score`.
    translated: shard directory with lineage, reference, translation, rejected and failed.
    vectors: directory of a word-vector table, of a scorer of words, or of a trained model.
    output: shard directory to publish, row-aligned with `translated`, with a subdirectory for each model's
        column and the file of :func:`~paraforge.corpus.scoring.wrong_pairs.write_wrong_pairs`.
    resources: where to run.
    open_model: opens a trained model's directory; without it, `vectors` is a table.
    """
    started = time.monotonic()
    counted, lexical = count_corpus(translated, resources), learn_corpus(translated, resources)
    steps = score_steps(parameters, vectors, resources, open_model, counted, lexical)
    present = ShardView(translated).column_names
    columns = [name for name in (*PAIR_COLUMNS, *_OF_TRANSLATIONS, *FATE_COLUMNS) if name in present]
    steps = [
        replace(step, columns=[name for name in step.columns or () if name in present]) for step in steps
    ]
    lineage = [name for name in LINEAGE[:2] if name in present]
    judged_by = [WRONG_PAIRS_NAME] if len(lineage) == 2 else []  # a corpus without shards has no columns
    notes = aligned_with(_column_of(step) for step in steps[1:]) | accompanied_by(judged_by)
    steps[0] = replace(steps[0], columns=columns, notes=notes)
    scored_rows, counts, sums = 0, Counter[str](), dict.fromkeys(_AVERAGED, 0.0)
    sources: Counter[str] = Counter()
    blocks = Blocks()
    wrong = None
    # `output` appears once everything is complete: scores, columns of models, and mismatched pairs.
    with replaced_directory(output) as scored:
        report = run_step(steps[0], [translated], scored, resources)
        for step in steps[1:]:
            run_step(step, [translated], scored / _column_of(step), resources)
        read = [*lineage, "reference_tokens", *_AVERAGED, "source_similarity"]
        for table in ShardView(translated, scored).tables(read):
            scored_rows += pc.count(table["reference_tokens"]).as_py()
            for name in _AVERAGED:
                counts[name] += pc.count(table[name]).as_py()
                sums[name] += pc.sum(table[name]).as_py() or 0
            if judged_by:
                names = pc.value_counts(table["source"].filter(pc.is_valid(table["reference_tokens"])))
                sources.update({item["values"]: item["counts"] for item in names.to_pylist()})
                blocks.add(table)
        if judged_by:
            trained = shards_trained_on(vectors) == ShardDirectory(translated).digest
            wrong = write_wrong_pairs(steps, translated, scored, sources, resources, trained)
    out_of_step = blocks.out_of_step()
    warn_of(out_of_step)
    means = {name: round(sums[name] / counts[name], 6) if counts[name] else None for name in _AVERAGED}
    judged = [name for name in judged_scores() if wrong is not None and name in wrong.column_names]
    return ScoreReport(
        rows=report.rows,
        scored=scored_rows,
        mean_paraphrase_score=means["paraphrase_score"],
        mean_overlap_3=means["overlap_3"],
        shards=report.shards,
        reused=report.reused,
        seconds=round(time.monotonic() - started, 3),
        wrong_pairs=0 if wrong is None else other_rows(wrong).num_rows,
        verdicts={name: asdict(judge(wrong, name)) for name in judged},
        out_of_step=out_of_step,
    )


def _column_of(step: Step) -> str:
    """Return the column of a model's step, which is also the name of its directory."""
    return str(step.arguments["column"])


def _devices(resources: Resources) -> tuple[str, ...]:
    """Return the devices for sentence-transformers models: the configured ones, or all GPUs, or the CPU."""
    if resources.devices[0] != "auto":
        return tuple(resources.devices)
    import torch

    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    return tuple(f"cuda:{number}" for number in range(count)) or ("cpu",)
