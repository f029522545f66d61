"""Parses many sentences, each only once: a step over shards of the sentences that no run has parsed yet.

The finished shards in ``work/parses`` are the memory: later runs read them first.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paraforge import versions
from paraforge.base.files import scratch_directory
from paraforge.base.parsing.brackets import skeleton
from paraforge.base.parsing.parser import open_parser
from paraforge.base.shards.lineage import binary_keys, text_keys
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.scheduler import report_rows
from paraforge.base.shards.step import Step, run_step
from paraforge.base.shards.store import ShardWriter, read_parquet
from paraforge.base.shards.work import WorkDirectory

logger = logging.getLogger(__name__)

SENTENCES_PER_SHARD = 1000
_WAITING = "waiting"
_TEXT = pa.schema([("text", pa.string())])
_SCHEMA = pa.schema([("high", pa.uint64()), ("low", pa.uint64()), ("tree", pa.string())])


@dataclass(frozen=True)
class Parses:
    """Trees without words (see :func:`~paraforge.base.parsing.brackets.skeleton`) by sentence.

    keys: of the sentences, sorted (see :func:`~paraforge.base.shards.lineage.binary_keys`).
    trees: as many strings; null for a sentence that has no tree.
    """

    keys: pa.Array
    trees: pa.Array

    @property
    def parsed(self) -> int:
        """Sentences with a tree."""
        return len(self.trees) - self.trees.null_count

    def of(self, sentences: pa.Array | pa.ChunkedArray) -> pa.Array:
        """Return the tree of each sentence as a string; null for one that has no tree or was not parsed."""
        return self.trees.take(pc.index_in(binary_keys(text_keys(sentences)), value_set=self.keys))


def parse_sentences(
    batches: Iterable[pa.Array | pa.ChunkedArray], parser: str, resources: Resources
) -> Parses:
    """Parse sentences, except those that an earlier run parsed with the same parser.

    Memory grows with the sentences: some 100 bytes for each.

    batches: sentences, without nulls; repeats are allowed.
    parser: its name, or the path of a file of trees. resources: where to run.

    Raises:
        InputError: the parser is not installed, or the file of trees is missing.
        MissingPackageError: its package is not installed.
        WorkLockedError: another process is parsing with it.
    """
    fingerprint = open_parser(parser).fingerprint
    step = Step(
        # Everything in its directory is read, so that no other version's trees may be there.
        name=f"parse-{versions.PARSES}-{fingerprint[:8]}",
        version=versions.PARSES,
        parameters={},
        build=_build,
        arguments={"parser": parser},
        fingerprints={"parser": fingerprint},
        # One parser program per core, each fed by a thread of this process.
        at_once=resources.worker_count(),
    )
    resources = resources.model_copy(update={"work": resources.work / "parses"})
    work = WorkDirectory(step.name, resources.work)
    sentences = pa.concat_arrays([pa.array([], pa.string()), *map(_distinct, batches)]).unique()
    keys = binary_keys(text_keys(sentences))
    known = _known(work)
    new = sentences.filter(pc.invert(pc.is_in(keys, value_set=known["key"].combine_chunks())))
    if len(new):
        logger.info("parsing %d of %d sentences", len(new), len(sentences))
        _parse_new(step, new, work, resources)
        known = _known(work)
    mine = known.filter(pc.is_in(known["key"], value_set=keys)).sort_by("key").combine_chunks()
    return Parses(*(mine[name].combine_chunks() for name in ("key", "tree")))


def _distinct(sentences: pa.Array | pa.ChunkedArray) -> pa.Array:
    return sentences.unique().cast(pa.string())


def _parse_new(step: Step, texts: pa.Array, work: WorkDirectory, resources: Resources) -> None:
    # A temporary name, because another run may be here at the same time, before either has the lock.
    with scratch_directory(work.path.parent / _WAITING) as waiting:
        writer = ShardWriter(waiting, _TEXT, SENTENCES_PER_SHARD)
        writer.write(pa.table({"text": texts}))
        writer.close({"step": _WAITING})
        run_step(step, [waiting], None, resources, None if resources.scheduler else 1)


def _build(parser: str) -> Callable[[pa.Table], pa.Table]:
    opened = open_parser(parser)

    def parse(table: pa.Table) -> pa.Table:
        keys = text_keys(table["text"])
        trees: list[str | None] = []
        for start in range(0, table.num_rows, 100):
            texts = table["text"].slice(start, 100).to_pylist()
            trees += [_skeleton(tree) for tree in opened.parse(texts)]
            report_rows(len(texts))
        return pa.table([keys[:, 0], keys[:, 1], pa.array(trees, pa.string())], schema=_SCHEMA)

    return parse


def _skeleton(tree: str | None) -> str | None:
    """Return a tree without its words; None if the brackets do not match, which a parser should never
    produce."""
    try:
        return None if tree is None else skeleton(tree)
    except ValueError:
        return None


def _known(work: WorkDirectory) -> pa.Table:
    """Return the keys and trees that earlier runs parsed."""
    tables = [read_parquet(path).cast(_SCHEMA) for path, _ in work.finished()]
    table = pa.concat_tables([_SCHEMA.empty_table(), *tables])
    keys = binary_keys(np.column_stack([table["high"], table["low"]]))
    return pa.table({"key": keys, "tree": table["tree"]})
