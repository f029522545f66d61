"""The stage paraphraser: ``models/paraphraser`` by training on the corpus, or a pretrained model, or none.

The published corpus becomes training pairs in both directions, with tags.
"""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from paraforge import versions
from paraforge.base.errors import InputError
from paraforge.base.files import (
    hash_json,
    read_json,
    remove_directory,
    sha256_file,
    write_digests,
    write_json,
)
from paraforge.base.parsing.brackets import template_of
from paraforge.base.parsing.parse import Parses, parse_sentences
from paraforge.base.parsing.parser import PARSERS, open_parser
from paraforge.base.progress import progress
from paraforge.base.shards.groups import scratch_database
from paraforge.base.shards.lineage import mixed, text_keys
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.schema import TEXT_COLUMNS
from paraforge.base.shards.store import ShardDirectory, ShardWriter
from paraforge.base.shards.work import WorkDirectory, replaced_directory
from paraforge.base.text.normalization import normalize
from paraforge.base.text.paths import expand
from paraforge.corpus.publication.datasets import Dataset, open_published, published_tables
from paraforge.corpus.selection.filters.decontamination import read_test_sentences
from paraforge.products.paraphrasing.parameters import (
    NO_MODEL,
    TRAIN,
    ParaphraserParameters,
    TemplateParameters,
)
from paraforge.products.paraphrasing.paraphraser import CONTROLS_FILE, RANGES, Controls, add_tags, plain
from paraforge.translation.models.conversion import write_description
from paraforge.translation.models.importing import import_model
from paraforge.translation.models.model import MODEL_FILE
from paraforge.translation.training.stage import NmtReport, publish, report_of, trained_model, training_key
from paraforge.translation.training.training import with_precision, write_history

if TYPE_CHECKING:
    import duckdb

STEP = "paraphraser"
DROPPED = 0.4
"""The share of the sources that lack a tag, drawn for each tag, so that any subset of tags can be
requested."""
_NUMBERS = ("paraphrase_score", "overlap_1", "reference_tokens", "translation_tokens")
_SCHEMA = pa.schema([("source_text", pa.string()), ("reference", pa.string()), ("held_out", pa.bool_())])
# The number of pairs for computing bucket edges.
_SAMPLED = 1_000_000
FATES = ("unusable", "leaked", "held_out", "set_aside", "used")
"""Fates of a pair: a side is blank, or both are the same; a side is a test sentence; used for validation; a
side is a held-out sentence of another pair; used for training, in both directions."""

_INSERT = """
    CREATE TABLE IF NOT EXISTS pairs AS FROM rows LIMIT 0;
    INSERT INTO pairs FROM rows
"""
_EXCLUDE = """
    UPDATE pairs SET fate = '{fate}' WHERE fate = 'used'
    AND (plain_reference IN (FROM {texts}) OR plain_translation IN (FROM {texts}))
"""
_HOLD_OUT = """
    UPDATE pairs SET fate = 'held_out' WHERE fate = 'used'
    AND key <= (SELECT max(key) FROM (SELECT key FROM pairs WHERE fate = 'used' ORDER BY key LIMIT ?))
"""
_HELD_OUT_TEXTS = """
    CREATE VIEW held_out_texts AS SELECT text FROM (
        SELECT unnest([plain_reference, plain_translation]) AS text FROM pairs WHERE fate = 'held_out'
    ) WHERE text <> ''
"""


@dataclass(frozen=True)
class ParaphraserReport(NmtReport):
    """Metrics of the stage: those of a translation model, and more.

    controls: the model's controls: buckets by name, and the number of templates.
    pairs: fates of the corpus' pairs; None for a pretrained model.
    """

    controls: dict[str, int] = field(default_factory=dict)
    pairs: Mapping[str, int] | None = None


def build_paraphraser(
    parameters: ParaphraserParameters, corpus: Path, output: Path, plot: Path, resources: Resources
) -> ParaphraserReport:
    """Make ``output`` (``models/paraphraser``) by the parameters; write the training curve to ``plot``.

    Raises:
        InputError: the corpus or the pretrained model is not usable, or a parser or test file is missing.
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
    """Mark a pretrained model as a paraphraser; without controls it gets empty ones."""
    file = model / CONTROLS_FILE
    if file.is_file():
        return
    write_json(file, Controls().as_json())
    description = read_json(model / MODEL_FILE)
    description["files"][CONTROLS_FILE] = {"bytes": file.stat().st_size, "sha256": sha256_file(file)}
    write_json(model / MODEL_FILE, description)


@dataclass(frozen=True)
class PreparedPairs:
    """Shards to train on, the model's controls, and counts (`pairs` and each of `FATES`)."""

    shards: ShardDirectory
    controls: Controls
    report: dict[str, Any]


def prepare_pairs(
    corpus: Path, root: Path, parameters: ParaphraserParameters, resources: Resources
) -> PreparedPairs:
    """Write tagged pairs to a directory below ``root``; a finished one is reused, and others are removed.

    Memory is bounded except for the parses of at most ``templates.pairs`` pairs.

    corpus: a published corpus (``data/corpus``). root: where to make the directory.
    parameters: the tags, and what to hold out and leave out. resources: where sentences are parsed.

    Raises InputError if it is not a published corpus, has no usable pair, or a test file or parser is
    missing.
    """
    dataset = open_published(corpus).training
    tests = [list(read_test_sentences(file.location(), file.columns)) for file in parameters.test_files]
    directory = root / f"pairs-{_key([sha256_file(path) for path in dataset.files], parameters, tests)}"
    if not directory.is_dir():
        with (
            replaced_directory(directory) as temporary,
            scratch_database(root) as pairs,
        ):
            _prepare(dataset, itertools.chain.from_iterable(tests), temporary, pairs, parameters, resources)
    for other in root.glob("pairs-*"):
        if other != directory:  # of earlier parameters; quick to make again
            remove_directory(other)
    shards = ShardDirectory(directory)
    return PreparedPairs(shards, Controls.read(directory), shards.description["report"])


def _key(data: Sequence[str], parameters: ParaphraserParameters, tests: Sequence[Sequence[str]]) -> str:
    """Return the hash of all that tagged pairs depend on. data: SHA-256 of the corpus' files."""
    parser = parameters.templates.parser
    return hash_json(
        {
            "version": versions.PARAPHRASER,
            "corpus": data,
            "templates": parameters.templates.model_dump(exclude={"parser"}),
            "parser": None if parser is None else [versions.PARSES, open_parser(parser).fingerprint],
            "tests": tests,
            "held_out": parameters.validation.held_out,
            "fates": FATES,
        }
    )[:32]


def _prepare(
    dataset: Dataset,
    tests: Iterator[str],
    output: Path,
    pairs: duckdb.DuckDBPyConnection,
    parameters: ParaphraserParameters,
    resources: Resources,
) -> None:
    templates = parameters.templates
    _read(dataset, templates.pairs, pairs)
    report = _settle(dataset, tests, parameters.validation.held_out, pairs)
    parses = None
    if templates.parser is not None:
        chosen = "fate NOT IN ('unusable', 'leaked') AND (fate = 'held_out' OR for_parses)"
        sides = (
            rows[name] for rows in _blocks(pairs, ", ".join(TEXT_COLUMNS), chosen) for name in TEXT_COLUMNS
        )
        parses = parse_sentences(sides, templates.parser, resources)
        report |= {"sentences_to_parse": len(parses.keys), "sentences_parsed": parses.parsed}
    controls = _controls(pairs, parses, templates)
    writer = ShardWriter(output, _SCHEMA)
    with progress(total=report["used"] + report["held_out"], unit="pairs", description="tag") as bar:
        for rows in _blocks(pairs, "*", "fate IN ('used', 'held_out')"):
            for source, target in (TEXT_COLUMNS, TEXT_COLUMNS[::-1]):
                writer.write(_tag_pairs(rows, source, target, controls, parses))
            bar.update(rows.num_rows)
    writer.close({"step": "paraphraser", "report": report})
    write_json(output / CONTROLS_FILE, controls.as_json())


def _read(dataset: Dataset, parsed: int, pairs: duckdb.DuckDBPyConnection) -> None:
    """Fill the table ``pairs``: texts and values, ``fate``, the pair's ``block`` of the corpus, and whether
    it is drawn for bucket edges and for parsing."""

    def drawn(draws: NDArray[np.uint64], purpose: str, share: int) -> NDArray[np.bool_]:
        return _uniform(draws, purpose) < min(1.0, share / max(1, dataset.rows))

    columns = (*TEXT_COLUMNS, *_NUMBERS)
    kinds = [(name, pa.string() if name in TEXT_COLUMNS else pa.float64()) for name in columns]
    nothing = pa.schema(kinds).empty_table()
    for block, table in enumerate(itertools.chain([nothing], published_tables(dataset, columns))):
        texts = [pc.fill_null(table[name], "").cast(pa.string()) for name in TEXT_COLUMNS]
        blank = [pc.equal(pc.utf8_length(pc.utf8_trim_whitespace(side)), 0) for side in texts]
        keys = text_keys(*texts)
        similarity, overlap, *tokens = (pc.cast(table[name], pa.float64()) for name in _NUMBERS)
        length = pc.divide(tokens[1], tokens[0])
        rows = {
            **dict(zip(TEXT_COLUMNS, texts, strict=True)),
            **{f"plain_{name}": normalize(side) for name, side in zip(TEXT_COLUMNS, texts, strict=True)},
            "similarity": similarity,
            "overlap": overlap,
            "length": pc.if_else(pc.greater(length, 0), length, None),
            "key": keys[:, 0],
            "draw": keys[:, 1],
            "for_edges": drawn(keys[:, 1], "edges", _SAMPLED),
            "for_parses": drawn(keys[:, 1], "parses", parsed),
            "fate": pc.if_else(pc.or_(pc.or_(*blank), pc.equal(*texts)), FATES[0], FATES[-1]),
            "block": np.full(table.num_rows, block, np.int32),
        }
        pairs.register("rows", pa.table(rows))
        pairs.execute(_INSERT)


def _uniform(draws: NDArray[np.uint64], purpose: str) -> NDArray[np.float64]:
    """Return numbers from 0 to 1 that differ for each purpose."""
    return mixed(draws, purpose).astype(np.float64) / 2.0**64


def _settle(
    dataset: Dataset, tests: Iterator[str], held_out: int, pairs: duckdb.DuckDBPyConnection
) -> dict[str, int]:
    """Decide the fates of all pairs. Returns the number of pairs, and of each fate."""
    texts = normalize(pa.array(tests, pa.string()))
    pairs.register("tests", pa.table({"text": texts.filter(pc.not_equal(texts, ""))}))
    pairs.execute(_EXCLUDE.format(fate="leaked", texts="tests"))
    usable = pairs.table("pairs").filter("fate = 'used'").shape[0]
    # A pair is two rows, and at most a tenth of the pairs are held out, as for translation models.
    pairs.execute(_HOLD_OUT, [max(1, min(held_out // 2, usable // 10))])
    pairs.execute(_HELD_OUT_TEXTS)
    pairs.execute(_EXCLUDE.format(fate="set_aside", texts="held_out_texts"))
    counts = dict(pairs.execute("SELECT fate, count(*) FROM pairs GROUP BY fate").fetchall())
    if not counts.get("used"):
        problem, remedy = "no pair can be used to train a paraphraser", "See metrics/publish.json."
        raise InputError(problem, dataset.directory, remedy=remedy)
    return {"pairs": sum(counts.values())} | {fate: counts.get(fate, 0) for fate in FATES}


def _blocks(pairs: duckdb.DuckDBPyConnection, columns: str, where: str) -> Iterator[pa.Table]:
    """Yield chosen rows in the order of the corpus, block by block."""
    (blocks,) = pairs.execute("SELECT max(block) + 1 FROM pairs").fetchall()[0]
    for block in range(blocks):
        yield pairs.table("pairs").filter(f"block = {block} AND {where}").project(columns).to_arrow_table()


def _controls(
    pairs: duckdb.DuckDBPyConnection, parses: Parses | None, settings: TemplateParameters
) -> Controls:
    """Find bucket edges from the quantiles of a sample, and the templates that occur often enough."""
    sample = pairs.table("pairs").filter("for_edges AND fate NOT IN ('unusable', 'leaked')")
    values = {name: sample.project(name).to_arrow_table()[name].to_numpy() for name in RANGES}
    values["length"] = np.concatenate([values["length"], 1.0 / values["length"]])  # of both directions
    edges = {name: bucket_edges(values[name]) for name in RANGES}
    trees = [] if parses is None else [tree for tree in parses.trees.to_pylist() if tree is not None]
    learned = learned_templates(Counter(map(template_of, trees)), settings.minimum, settings.most)
    return Controls(
        {name: bounds for name, bounds in edges.items() if bounds},
        learned,
        settings.parser if settings.parser is None or settings.parser in PARSERS else "file",
    )


def _tag_pairs(
    rows: pa.Table, source: str, target: str, controls: Controls, parses: Parses | None
) -> pa.Table:
    """Return the training pairs of one direction, each with the tags that are not dropped."""
    draws, values = rows["draw"].to_numpy(), {name: rows[name].to_numpy() for name in controls.edges}
    if source == "translation" and "length" in values:
        values["length"] = 1 / values["length"]
    kept = {tag: _uniform(draws, f"1 {source} {tag}") >= DROPPED for tag in (*controls.edges, "template")}
    buckets = {
        name: np.where(kept[name], controls.buckets(name, column), -1).tolist()
        for name, column in values.items()
    }
    trees = [None] * rows.num_rows if parses is None else parses.of(rows[target]).to_pylist()
    sources: list[str] = []
    for row, (text, tree) in enumerate(zip(rows[source].to_pylist(), trees, strict=True)):
        wanted = {name: column[row] for name, column in buckets.items() if column[row] >= 0}
        template = template_of(tree) if tree is not None and kept["template"][row] else None
        shown = template if template in controls.templates else None
        sources.append(add_tags(controls.prefix(wanted, shown), text))
    targets = list(map(plain, rows[target].to_pylist()))
    held_out = pc.equal(rows["fate"], "held_out").combine_chunks()
    return pa.table([sources, targets, held_out], schema=_SCHEMA)


def bucket_edges(values: NDArray[np.float64]) -> list[float]:
    """Return the inner edges of three buckets with equally many values; fewer edges if values are equal.

    values: n, NaN for none.
    """
    finite = values[np.isfinite(values)]
    if not len(finite):
        return []
    # Each edge is one of the values, so that no bucket is empty.
    edges = np.unique(np.quantile(finite, np.arange(1, 3) / 3, method="higher"))
    # A value equal to an edge is above it, so an edge at the smallest value would have nothing below it.
    return [float(edge) for edge in edges[edges > finite.min()]]


def learned_templates(counts: Mapping[str, int], minimum: int, most: int) -> dict[str, int]:
    """Return the most frequent templates with at least ``minimum`` outputs, by descending number."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return {template: count for template, count in ordered[:most] if count >= minimum}
