"""Parses many sentences, each only once: a step over shards of the sentences that no run has parsed yet.

The finished shards in ``work/parses`` are the memory: later runs read them first.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from paraforge import versions
from paraforge.base.files import hash_json, remove_directory
from paraforge.base.parsing.brackets import skeleton
from paraforge.base.parsing.parser import open_parser
from paraforge.base.shards.lineage import text_keys
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.scheduler import report_rows
from paraforge.base.shards.step import Step, run_step
from paraforge.base.shards.store import ShardWriter, read_parquet
from paraforge.base.shards.work import WorkDirectory

logger = logging.getLogger(__name__)

SENTENCES_PER_SHARD = 1000
_WAITING = "waiting"
_KEY = np.dtype("S16")
_TEXT = pa.schema([("text", pa.string())])
_SCHEMA = pa.schema([("high", pa.uint64()), ("low", pa.uint64()), ("tree", pa.string())])


@dataclass(frozen=True)
class Parses:
    """Trees without words (see :func:`~paraforge.base.parsing.brackets.skeleton`) by sentence.

    keys: n, sorted; of the sentences. trees: n strings; null for a sentence that has no tree.
    parser: fingerprint of the parser.
    """

    keys: NDArray[np.bytes_]
    trees: pa.Array
    parser: str

    @property
    def parsed(self) -> int:
        """Sentences with a tree."""
        return len(self.trees) - self.trees.null_count

    def of(self, sentences: pa.Array | pa.ChunkedArray) -> pa.Array:
        """Return the tree of each sentence as a string; null for one that has no tree or was not parsed."""
        if not len(self.keys) or not len(sentences):
            return pa.nulls(len(sentences), pa.string())
        wanted = _keys(sentences)
        places = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
        return self.trees.take(pa.array(places, mask=self.keys[places] != wanted))


def parse_sentences(
    batches: Iterable[pa.Array | pa.ChunkedArray], parser: str, resources: Resources
) -> Parses:
    """Parse sentences, except blank ones and those that an earlier run parsed with the same parser.

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
        name=f"parse-{fingerprint[:8]}",
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
    known = _known(work)
    wanted: dict[bytes, None] = {}
    new: list[str] = []
    for batch in batches:
        keys = _keys(batch)
        for key, sentence in zip(keys.tolist(), batch.to_pylist(), strict=True):
            if key not in wanted:
                wanted[key] = None
                new.append(sentence)
    order = np.array(list(wanted), _KEY) if wanted else np.zeros(0, _KEY)
    texts = [text for text, old in zip(new, _among(order, known.keys).tolist(), strict=True) if not old]
    if texts:
        logger.info("parsing %d of %d sentences", len(texts), len(order))
        _parse_new(step, texts, work, resources)
        known = _known(work)
    mine = _among(known.keys, np.sort(order))
    return Parses(known.keys[mine], known.trees.filter(pa.array(mine)), fingerprint)


def _parse_new(step: Step, texts: list[str], work: WorkDirectory, resources: Resources) -> None:
    waiting = work.path.parent / f"{_WAITING}-{hash_json(texts)[:16]}"
    remove_directory(waiting)
    try:
        writer = ShardWriter(waiting, _TEXT, SENTENCES_PER_SHARD)
        writer.write(pa.table({"text": pa.array(texts, pa.string())}))
        writer.close({"step": _WAITING})
        run_step(step, [waiting], None, resources, None if resources.scheduler else 1)
    finally:
        remove_directory(waiting)


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


def _keys(sentences: pa.Array | pa.ChunkedArray) -> NDArray[np.bytes_]:
    """Return keys that sort and compare as bytes: numpy searches in strings, not in raw bytes."""
    pairs = text_keys(sentences).astype(">u8")
    return np.ascontiguousarray(pairs).view(_KEY).reshape(-1)


def _known(work: WorkDirectory) -> Parses:
    """Read what earlier runs parsed."""
    finished = sorted(path.stem for path in work.path.glob("*.parquet") if work.find(path.stem) is not None)
    tables = [read_parquet(work.file(key)) for key in finished]
    table = pa.concat_tables([_SCHEMA.empty_table(), *(one.cast(_SCHEMA) for one in tables)])
    pairs = np.stack([table["high"].to_numpy(), table["low"].to_numpy()], axis=1).astype(">u8")
    keys = np.ascontiguousarray(pairs).view(_KEY).reshape(-1)
    order = np.argsort(keys, kind="stable")
    return Parses(keys[order], table["tree"].combine_chunks().take(pa.array(order)), "")


def _among(some: NDArray[np.bytes_], others: NDArray[np.bytes_]) -> NDArray[np.bool_]:
    """Return which of ``some`` are in ``others``; both are keys, and ``others`` is sorted."""
    if not len(others) or not len(some):
        return np.zeros(len(some), np.bool_)
    places = np.minimum(np.searchsorted(others, some), len(others) - 1)
    found: NDArray[np.bool_] = others[places] == some
    return found
