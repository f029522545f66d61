"""Turn a published corpus into what a paraphraser is trained on: its pairs in both directions, with tags."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from paraforge import versions
from paraforge.base.errors import InputError
from paraforge.base.files import hash_json, read_json, sha256_file, write_json
from paraforge.base.interrupts import check_interrupt
from paraforge.base.parsing.brackets import template_of
from paraforge.base.parsing.parse import Parses, parse_sentences
from paraforge.base.parsing.parser import open_parser, parser_names
from paraforge.base.progress import progress
from paraforge.base.shards.lineage import mixed, text_keys
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.store import ShardDirectory, ShardWriter
from paraforge.base.shards.work import replaced_directory
from paraforge.base.text.normalisation import normalise
from paraforge.corpus.publication.datasets import Dataset, open_published, published_tables
from paraforge.corpus.selection.held_out import read_test_sentences
from paraforge.products.paraphrasing.controls import (
    BUCKETED,
    Controls,
    bucket_edges,
    labels_of,
    learnt_templates,
    plain,
    tagged,
    tree_tags,
    untagged,
)
from paraforge.products.paraphrasing.parameters import ParaphraserParameters, TemplateParameters

if TYPE_CHECKING:
    import duckdb

BUCKETS = 3
"""Buckets of each control, with equally many pairs: low, medium, high."""
DROPPED = 0.4
"""Share of the sources that lack a tag, drawn for each tag, so that any subset of tags can be asked for."""
_SIDES = ("reference", "translation")
_COLUMNS = (*_SIDES, "paraphrase_score", "overlap_1", "reference_tokens", "translation_tokens")
_SCHEMA = pa.schema([("source_text", pa.string()), ("reference", pa.string()), ("held_out", pa.bool_())])
_RECORD = "prepared.json"
_PARSES = "parses"
_MEMORY = "1GB"
# Pairs that the edges of buckets are computed from.
_SAMPLED = 1_000_000
FATES = ("unusable", "leaked", "held_out", "set_aside", "used")
"""What becomes of a pair: a side is blank, or both are the same; a side is a test sentence; it is for
validation; a side is a held-out sentence, in another pair; it is trained on, in both directions."""


_CREATE = "CREATE TABLE pairs AS SELECT * FROM rows"
_INSERT = "INSERT INTO pairs SELECT * FROM rows"
_LEAKED = """
    WITH held AS (SELECT text FROM tests WHERE text <> '')
    UPDATE pairs SET fate = 'leaked'
    WHERE fate = 'used' AND (plain_reference IN (FROM held) OR plain_translation IN (FROM held))
"""
_HELD_OUT = """
    UPDATE pairs SET fate = 'held_out'
    WHERE fate = 'used' AND key <= (
        SELECT max(key) FROM (SELECT key FROM pairs WHERE fate = 'used' ORDER BY key LIMIT ?)
    )
"""
_SET_ASIDE = """
    WITH sides AS (
        SELECT plain_reference AS text FROM pairs WHERE fate = 'held_out'
        UNION SELECT plain_translation FROM pairs WHERE fate = 'held_out'
    ), held AS (SELECT text FROM sides WHERE text <> '')
    UPDATE pairs SET fate = 'set_aside'
    WHERE fate = 'used' AND (plain_reference IN (FROM held) OR plain_translation IN (FROM held))
"""


@dataclass(frozen=True)
class PreparedPairs:
    """Shards to train on, what can be asked of the model, counts (`pairs` and each of `FATES`), and what a
    parse generator is trained on: texts with templates, and parses; None where sources have no full
    parses."""

    shards: ShardDirectory
    controls: Controls
    report: dict[str, Any] = field(default_factory=dict)
    parses: ShardDirectory | None = None

    def held_out_sources(self, count: int) -> list[str]:
        """Return the first ``count`` held-out sources, without tags."""
        tables = self.shards.tables(["source_text", "held_out"])
        sources = (
            text for table in tables for text in table.filter(table["held_out"])["source_text"].to_pylist()
        )
        return [untagged(source) for source in itertools.islice(sources, count)]


def prepare_pairs(
    corpus: Path, root: Path, parameters: ParaphraserParameters, resources: Resources
) -> PreparedPairs:
    """Write tagged pairs to a directory below ``root``, once; a finished one is taken as it is.

    Memory is bounded but for the parses, of ``templates.pairs`` pairs at most.

    corpus: a published corpus (``data/corpus``). root: where the directory is made.
    parameters: what the tags are, what is held out and kept out. resources: where sentences are parsed.

    Raises InputError if it is not a published corpus, has no usable pair, or a test file or parser is
    missing.
    """
    dataset = open_published(corpus).training
    tests = [
        list(read_test_sentences(file.location(), file.format, file.columns, file.header))
        for file in parameters.test_files
    ]
    parser = parameters.templates.parser
    key = hash_json(
        {
            "version": versions.PARAPHRASER,
            "corpus": [sha256_file(path) for path in dataset.files],
            "templates": parameters.templates.model_dump(exclude={"parser"}),
            "parser": None if parser is None else [versions.PARSES, open_parser(parser).fingerprint],
            "tests": tests,
            "held_out": parameters.validation.held_out,
        }
    )[:32]
    directory = root / f"pairs-{key}"
    if not directory.is_dir():
        import duckdb

        with replaced_directory(directory) as temporary, TemporaryDirectory(dir=root) as scratch:
            settings: dict[str, Any] = {"memory_limit": _MEMORY, "temp_directory": scratch}
            with duckdb.connect(f"{scratch}/pairs.duckdb", config=settings) as connection:
                table = _PairTable(connection, dataset, parameters, itertools.chain.from_iterable(tests))
                parses = None if parser is None else parse_sentences(table.to_parse(), parser, resources)
                controls = _controls(table.sampled_values(), parses, parameters.templates)
                folders = [temporary, *([temporary / _PARSES] if controls.labels else [])]
                writers = [ShardWriter(folder, _SCHEMA) for folder in folders]
                table.write(controls, parses, writers)
                for writer in writers:
                    writer.close({"step": "paraphraser"})
            report = table.counts
            if parses is not None:
                report |= {"sentences_to_parse": len(parses.keys), "sentences_parsed": parses.parsed}
            write_json(temporary / _RECORD, {"controls": controls.as_json(), "report": report})
            write_json(temporary / "controls.json", controls.as_json())
    controls = Controls.read(directory)
    return PreparedPairs(
        ShardDirectory(directory),
        controls,
        read_json(directory / _RECORD)["report"],
        ShardDirectory(directory / _PARSES) if controls.labels else None,
    )


class _PairTable:
    """All pairs in a DuckDB table, with the fate of each.

    counts: pairs, and how many have each of `FATES`.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        dataset: Dataset,
        parameters: ParaphraserParameters,
        tests: Iterator[str],
    ) -> None:
        """Read the pairs and settle their fates. tests: sentences of pairs that are not trained on."""
        self._connection = connection
        self._dataset = dataset
        self._fill(parameters)
        execute = connection.execute
        connection.register("tests", pa.table({"text": normalise(pa.array(tests, pa.string()))}))
        execute(_LEAKED)
        (usable,) = execute("SELECT count(*) FROM pairs WHERE fate = 'used'").fetchall()[0]
        if usable < 2:
            raise InputError(
                "no pairs to train a paraphraser on", dataset.directory, remedy="See metrics/publish.json."
            )
        # A pair is two rows, and at most a tenth of the pairs is held out, as for translation models.
        wanted = max(1, min(parameters.validation.held_out // 2, usable // 10))
        execute(_HELD_OUT, [wanted])
        execute(_SET_ASIDE)
        found = dict(execute("SELECT fate, count(*) FROM pairs GROUP BY fate").fetchall())
        self.counts: dict[str, int] = {"pairs": sum(found.values())}
        self.counts |= {fate: found.get(fate, 0) for fate in FATES}
        if not self.counts["used"]:
            raise InputError("no pair is left to train a paraphraser on", dataset.directory)

    def _fill(self, parameters: ParaphraserParameters) -> None:
        self.blocks = 0
        kinds = {name: pa.string() if name in _SIDES else pa.float64() for name in _COLUMNS}
        nothing = pa.schema(kinds).empty_table()
        for table in itertools.chain([nothing], published_tables(self._dataset, _COLUMNS)):
            check_interrupt()
            texts = [pc.fill_null(table[name], "").cast(pa.string()) for name in _SIDES]
            blank = [pc.equal(pc.utf8_length(pc.utf8_trim_whitespace(side)), 0) for side in texts]
            unusable = pc.or_(pc.or_(*blank), pc.equal(*texts))
            keys = text_keys(*texts)
            rows = {
                **dict(zip(_SIDES, texts, strict=True)),
                **{name: pc.cast(table[name], pa.float64()) for name in _COLUMNS[len(_SIDES) :]},
                **{f"plain_{name}": normalise(side) for name, side in zip(_SIDES, texts, strict=True)},
                "key": keys[:, 0],
                "draw": keys[:, 1],
                "for_edges": self._drawn(keys, "edges", _SAMPLED),
                "for_parses": self._drawn(keys, "parses", parameters.templates.pairs),
                "fate": pc.if_else(unusable, FATES[0], FATES[-1]),
                "block": np.full(table.num_rows, self.blocks, np.int32),
            }
            self._connection.register("rows", pa.table(rows))
            self._connection.execute(_INSERT if self.blocks else _CREATE)
            self.blocks += 1

    def _drawn(self, keys: NDArray[np.uint64], purpose: str, wanted: int) -> NDArray[np.bool_]:
        share = min(1.0, wanted / max(1, self._dataset.rows))
        return mixed(keys[:, 1], purpose).astype(np.float64) / 2.0**64 < share

    def _blocks(self, columns: str, where: str) -> Iterator[pa.Table]:
        """Yield chosen rows in the order of the corpus, a block of it at a time."""
        for block in range(self.blocks):
            check_interrupt()
            chosen = self._connection.table("pairs").filter(f"block = {block} AND {where}")
            yield chosen.project(columns).to_arrow_table()

    def to_parse(self) -> Iterator[pa.ChunkedArray]:
        """Yield both sides of the pairs that are parsed, all held-out ones among them."""
        chosen = "fate <> 'unusable' AND fate <> 'leaked' AND (fate = 'held_out' OR for_parses)"
        for table in self._blocks(", ".join(_SIDES), chosen):
            yield from (table[name] for name in _SIDES)

    def sampled_values(self) -> dict[str, NDArray[np.float64]]:
        """Return the values of a sample that decide the edges of buckets."""
        chosen = "for_edges AND fate <> 'unusable' AND fate <> 'leaked'"
        values = [_values(table) for table in self._blocks("*", chosen)]
        return {name: np.concatenate([one[name] for one in values]) for name in BUCKETED}

    def write(self, controls: Controls, parses: Parses | None, writers: Sequence[ShardWriter]) -> None:
        """Write tagged pairs to the first writer, and to the second, if there is one, parses."""
        with progress(total=self.counts["pairs"], unit="pairs", description="tag") as bar:
            for rows in self._blocks("*", "fate IN ('used', 'held_out')"):
                for backwards in (False, True):
                    tables = _tagged(rows, backwards, controls, parses)
                    for writer, table in zip(writers, tables, strict=False):
                        writer.write(table)
                bar.update(rows.num_rows)


def _values(rows: pa.Table) -> dict[str, NDArray[np.float64]]:
    """Return what decides the buckets of reference -> translation; NaN where there is none."""
    numbers = {name: rows[name].to_numpy() for name in _COLUMNS[len(_SIDES) :]}
    with np.errstate(divide="ignore", invalid="ignore"):
        length = numbers["translation_tokens"] / numbers["reference_tokens"]
    return {
        "similarity": numbers["paraphrase_score"],
        "overlap": numbers["overlap_1"],
        "length": np.where(length > 0, length, np.nan),
    }


def _controls(
    values: dict[str, NDArray[np.float64]], parses: Parses | None, settings: TemplateParameters
) -> Controls:
    """Find edges by the quantiles of the corpus, and the templates that occur often enough."""
    length = values["length"]
    values = {**values, "length": np.concatenate([length, 1.0 / length])}  # of both directions
    edges = {name: bucket_edges(values[name], BUCKETS) for name in BUCKETED}
    trees = [] if parses is None else [tree for tree in parses.trees.to_pylist() if tree is not None]
    learnt = learnt_templates(Counter(map(template_of, trees)), settings.minimum, settings.most)
    labels: set[str] = set()
    if settings.parses == "full":
        labels = labels.union(*(labels_of(tree) for tree in trees if template_of(tree) in learnt))
    return Controls(
        {name: found for name, found in edges.items() if found},
        learnt,
        settings.parser if settings.parser is None or settings.parser in parser_names() else "file",
        sorted(labels),
    )


def _tagged(
    rows: pa.Table, backwards: bool, controls: Controls, parses: Parses | None
) -> tuple[pa.Table, pa.Table]:
    """Return the rows of one direction, each with the tags that are not dropped; and those that have a
    template, each with its tags alone, and with the parse as target."""
    source, target = _SIDES[::-1] if backwards else _SIDES
    held_out = pc.equal(rows["fate"], "held_out").to_numpy()
    draws = rows["draw"].to_numpy()
    values = _values(rows)
    if backwards:
        values["length"] = 1.0 / values["length"]

    def without(tag: str) -> NDArray[np.bool_]:
        return mixed(draws, f"1 {source} {tag}").astype(np.float64) / 2.0**64 < DROPPED

    buckets = {
        name: np.where(without(name), -1, controls.buckets(name, values[name])).tolist()
        for name in controls.edges
    }
    texts = rows[source].to_pylist()
    # By row; those without a template that is learnt are missing.
    templates: dict[int, str] = {}
    trees: list[str | None] = [None] * rows.num_rows
    if parses is not None:
        trees = parses.of(rows[target]).to_pylist()
        found = {row: template_of(tree) for row, tree in enumerate(trees) if tree is not None}
        templates = {row: template for row, template in found.items() if template in controls.templates}
    shown = dict(enumerate(trees)) if controls.labels else templates
    dropped = without("template")
    sources = []
    for row, text in enumerate(texts):
        wanted = {name: column[row] for name, column in buckets.items() if column[row] >= 0}
        tree = shown[row] if row in templates and not dropped[row] else None
        sources.append(tagged(controls.prefix(wanted, tree), text))
    targets = [plain(text) for text in rows[target].to_pylist()]
    parsed = [
        (tagged(tree_tags(template), texts[row]), tree_tags(trees[row] or ""))
        for row, template in templates.items()
    ]
    columns = (sources, targets, held_out)
    of_parses = ([text for text, _ in parsed], [tree for _, tree in parsed], held_out[list(templates)])
    return pa.table(columns, schema=_SCHEMA), pa.table(of_parses, schema=_SCHEMA)
