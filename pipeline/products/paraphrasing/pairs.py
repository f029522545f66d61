"""A published corpus to what a paraphraser is trained on: its pairs in both directions, with tags."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from paraforge import versions
from paraforge.base.errors import IncompleteError, InputError
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
from paraforge.base.text.pair_blocks import PairBlock
from paraforge.corpus.publication.datasets import Dataset, open_published, published_tables
from paraforge.corpus.selection.held_out import read_test_sentences
from paraforge.embeddings.evaluation.leakage import LeakageFilter
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
from paraforge.products.paraphrasing.parameters import ControlParameters, ParaphraserParameters

_SIDES = ("reference", "translation")
_COLUMNS = (*_SIDES, "paraphrase_score", "overlap_1", "reference_tokens", "translation_tokens")
_SCHEMA = pa.schema([("source_text", pa.string()), ("reference", pa.string()), ("held_out", pa.bool_())])
_RECORD = "prepared.json"
_PARSES = "parses"
# Pairs that the edges of buckets are computed from.
_SAMPLED = 1_000_000


@dataclass
class PairCounts:
    """What became of the corpus' pairs; the others add up to ``pairs``.

    unusable: a side is blank, or both are the same. leaked: a side is a test sentence.
    held_out: for validation. set_aside: a side is a held-out sentence, in another pair.
    used: trained on, in both directions.
    """

    pairs: int = 0
    unusable: int = 0
    leaked: int = 0
    held_out: int = 0
    set_aside: int = 0
    used: int = 0

    def check(self) -> None:
        """Raise IncompleteError unless the counts add up."""
        parts = self.unusable + self.leaked + self.held_out + self.set_aside + self.used
        if parts != self.pairs:
            raise IncompleteError(f"{self.pairs} pairs in, {parts} accounted for: {asdict(self)}")


@dataclass(frozen=True)
class PreparedPairs:
    """Shards to train on, what can be asked of the model, counts, and what a parse generator is trained on:
    texts with templates, and parses; None where sources have no full parses."""

    shards: ShardDirectory
    controls: Controls
    report: dict[str, Any] = field(default_factory=dict)
    parses: ShardDirectory | None = None

    def held_out_sources(self, count: int) -> list[str]:
        """The first ``count`` held-out sources, without tags."""
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

    Raises InputError: no published corpus, no usable pair in it, or a test file or parser is missing.
    """
    dataset = open_published(corpus).training
    tests = {
        file.path: list(read_test_sentences(file.location(), file.format, file.columns, file.header))
        for file in parameters.test_files
    }
    parser = parameters.templates.parser
    key = hash_json(
        {
            "version": versions.PARAPHRASER,
            "corpus": [sha256_file(path) for path in dataset.files],
            "controls": parameters.controls.model_dump(),
            "templates": parameters.templates.model_dump(exclude={"parser"}),
            "parser": None if parser is None else [versions.PARSES, open_parser(parser).fingerprint],
            "tests": list(tests.values()),
            "held_out": parameters.validation.held_out,
        }
    )[:32]
    directory = root / f"pairs-{key}"
    if not directory.is_dir():
        first = _FirstPass(dataset, parameters, LeakageFilter(tests))
        parses = None if parser is None else parse_sentences(first.to_parse(), parser, resources)
        controls = first.controls(parses)
        with replaced_directory(directory) as temporary:
            folders = [temporary, *([temporary / _PARSES] if controls.labels else [])]
            writers = [ShardWriter(folder, _SCHEMA) for folder in folders]
            counts = first.write(controls, parses, writers)
            for writer in writers:
                writer.close({"step": "paraphraser"})
            report = asdict(counts)
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


@dataclass(frozen=True)
class _Rows:
    """Usable pairs of a block, with their keys (n x 2, uint64)."""

    table: pa.Table
    keys: NDArray[np.uint64]

    def __len__(self) -> int:
        return self.table.num_rows

    def filter(self, kept: NDArray[np.bool_]) -> _Rows:
        return _Rows(self.table.filter(pa.array(kept)), self.keys[kept])

    def sides(self) -> PairBlock:
        first, second = (self.table[name].combine_chunks() for name in _SIDES)
        return PairBlock(first, second)

    def values(self) -> dict[str, NDArray[np.float64]]:
        """What decides the buckets of reference -> translation; NaN where there is none."""
        numbers = {
            name: pc.cast(self.table[name], pa.float64()).to_numpy() for name in _COLUMNS[len(_SIDES) :]
        }
        with np.errstate(divide="ignore", invalid="ignore"):
            length = numbers["translation_tokens"] / numbers["reference_tokens"]
        return {
            "similarity": numbers["paraphrase_score"],
            "overlap": numbers["overlap_1"],
            "length": np.where(length > 0, length, np.nan),
        }


def _blocks(dataset: Dataset, counts: PairCounts) -> Iterator[_Rows]:
    for table in published_tables(dataset, _COLUMNS):
        check_interrupt()
        counts.pairs += table.num_rows
        blank = [
            pc.equal(pc.utf8_length(pc.utf8_trim_whitespace(pc.fill_null(table[n], ""))), 0) for n in _SIDES
        ]
        unusable = pc.or_(pc.or_(*blank), pc.fill_null(pc.equal(*(table[n] for n in _SIDES)), False))
        rows = table.filter(pc.invert(unusable))
        counts.unusable += table.num_rows - rows.num_rows
        yield _Rows(rows, text_keys(*(rows[name] for name in _SIDES)))


class _FirstPass:
    """What has to be known of all pairs before the first is written: what is held out, edges, sentences."""

    def __init__(self, dataset: Dataset, parameters: ParaphraserParameters, leakage: LeakageFilter) -> None:
        self._dataset = dataset
        self._parameters = parameters
        self._leakage = leakage
        wanted = max(1, parameters.validation.held_out // 2)  # a pair is two rows
        held = pa.table({name: pa.array([], pa.string()) for name in _SIDES})
        draws = np.zeros(0, np.uint64)
        sampled: dict[str, list[NDArray[np.float64]]] = {name: [] for name in BUCKETED}
        self.usable = 0
        for rows in self.rows(PairCounts()):
            self.usable += len(rows)
            chosen = rows.filter(self._drawn(rows, "edges", _SAMPLED)).values()
            for name, values in chosen.items():
                sampled[name].append(values)
            draws = np.concatenate([draws, rows.keys[:, 0]])
            held = pa.concat_tables([held, rows.table.select(_SIDES).cast(held.schema)])
            least = np.sort(np.argsort(draws, kind="stable")[:wanted])
            draws, held = draws[least], held.take(pa.array(least)).combine_chunks()
        if self.usable < 2:
            raise InputError(
                "no pairs to train a paraphraser on", dataset.directory, remedy="See metrics/publish.json."
            )
        # At most a tenth, as for translation models.
        least = np.argsort(draws, kind="stable")[: max(1, min(wanted, self.usable // 10))]
        self.last_held_out = draws[least].max()
        texts = held.take(pa.array(least))
        self.held_out = LeakageFilter({"held out": [t for name in _SIDES for t in texts[name].to_pylist()]})
        self._values = {name: np.concatenate(parts) for name, parts in sampled.items()}

    def rows(self, counts: PairCounts) -> Iterator[_Rows]:
        """Usable pairs that are in no test file, block by block; the others are counted."""
        for rows in _blocks(self._dataset, counts):
            leaked = self._leakage.look_at(rows.sides())
            counts.leaked += int(leaked.sum())
            yield rows.filter(~leaked)

    def _drawn(self, rows: _Rows, purpose: str, wanted: int) -> NDArray[np.bool_]:
        share = min(1.0, wanted / max(1, self._dataset.rows))
        return mixed(rows.keys[:, 1], purpose).astype(np.float64) / 2.0**64 < share

    def to_parse(self) -> Iterator[pa.ChunkedArray]:
        """Both sides of the pairs that are parsed, all held-out ones among them."""
        for rows in self.rows(PairCounts()):
            held = rows.keys[:, 0] <= self.last_held_out
            chosen = rows.filter(held | self._drawn(rows, "parses", self._parameters.templates.pairs))
            yield from (chosen.table[name] for name in _SIDES)

    def controls(self, parses: Parses | None) -> Controls:
        """Edges by the quantiles of the corpus, and the templates that occur often enough."""
        buckets = self._parameters.controls.buckets
        length = self._values["length"]
        values = {**self._values, "length": np.concatenate([length, 1.0 / length])}  # of both directions
        edges = {name: bucket_edges(values[name], buckets) for name in BUCKETED}
        counts: Counter[str] = Counter()
        if parses is not None:
            for tree in parses.trees.to_pylist():
                if tree is not None:
                    counts[template_of(tree)] += 1
        settings = self._parameters.templates
        learnt = learnt_templates(counts, settings.minimum, settings.most)
        labels: set[str] = set()
        if parses is not None and settings.parses == "full":
            trees = (tree for tree in parses.trees.to_pylist() if tree and template_of(tree) in learnt)
            labels = labels.union(*map(labels_of, trees))
        return Controls(
            {name: found for name, found in edges.items() if found},
            learnt,
            settings.parser if settings.parser is None or settings.parser in parser_names() else "file",
            sorted(labels),
        )

    def write(self, controls: Controls, parses: Parses | None, writers: Sequence[ShardWriter]) -> PairCounts:
        """Write tagged pairs to the first writer, and to the second, if there is one, parses."""
        counts = PairCounts()
        with progress(total=self._dataset.rows, unit="pairs", description="tag") as bar:
            for rows in self.rows(counts):
                before = len(rows)
                held = rows.keys[:, 0] <= self.last_held_out
                touched = self.held_out.look_at(rows.sides()) & ~held
                counts.held_out += int(held.sum())
                counts.set_aside += int(touched.sum())
                rows, held = rows.filter(~touched), held[~touched]
                counts.used += int((~held).sum())
                for backwards in (False, True):
                    tables = _tagged(rows, backwards, held, controls, parses, self._parameters.controls)
                    for writer, table in zip(writers, tables, strict=False):
                        writer.write(table)
                bar.update(before)
        counts.check()
        if counts.used == 0:
            raise InputError("no pair is left to train a paraphraser on", self._dataset.directory)
        return counts


def _tagged(
    rows: _Rows,
    backwards: bool,
    held_out: NDArray[np.bool_],
    controls: Controls,
    parses: Parses | None,
    settings: ControlParameters,
) -> tuple[pa.Table, pa.Table]:
    """Rows of one direction, each with the tags that it is not without; and those that have a template, each
    with its tags alone, and with the parse as target."""
    source, target = _SIDES[::-1] if backwards else _SIDES
    values = rows.values()
    if backwards:
        values["length"] = 1.0 / values["length"]

    def without(tag: str) -> NDArray[np.bool_]:
        drawn = mixed(rows.keys[:, 1], f"{settings.seed} {source} {tag}")
        return drawn.astype(np.float64) / 2.0**64 < settings.drop

    buckets = {
        name: np.where(without(name), -1, controls.buckets(name, values[name])).tolist()
        for name in controls.edges
    }
    texts = rows.table[source].to_pylist()
    # By row; those without a template that is learnt are missing.
    templates: dict[int, str] = {}
    trees: list[str | None] = [None] * len(rows)
    if parses is not None:
        trees = parses.of(rows.table[target]).to_pylist()
        found = {row: template_of(tree) for row, tree in enumerate(trees) if tree is not None}
        templates = {row: template for row, template in found.items() if template in controls.templates}
    shown = dict(enumerate(trees)) if controls.labels else templates
    dropped = without("template")
    sources = []
    for row, text in enumerate(texts):
        wanted = {name: column[row] for name, column in buckets.items() if column[row] >= 0}
        tree = shown[row] if row in templates and not dropped[row] else None
        sources.append(tagged(controls.prefix(wanted, tree), text))
    targets = [plain(text) for text in rows.table[target].to_pylist()]
    parsed = [
        (tagged(tree_tags(template), texts[row]), tree_tags(trees[row] or ""))
        for row, template in templates.items()
    ]
    return _table(sources, targets, held_out), _table(
        [text for text, _ in parsed], [tree for _, tree in parsed], held_out[list(templates)]
    )


def _table(sources: list[str], targets: list[str], held_out: NDArray[np.bool_]) -> pa.Table:
    return pa.table(
        [pa.array(sources, pa.string()), pa.array(targets, pa.string()), held_out], schema=_SCHEMA
    )
