"""Speed and memory of selection and publication: ``python -m benchmarks.select_publish --help``."""

import os
import resource
import shutil
import tempfile
import time
from pathlib import Path
from typing import Annotated

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import typer

from benchmarks.results import append
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.store import ShardRecord, shard_name, write_index, write_shard
from paraforge.corpus.columns import schema_of
from paraforge.corpus.publication.datasets import open_published
from paraforge.corpus.publication.parameters import PublishParameters
from paraforge.corpus.publication.publication import publish
from paraforge.corpus.publication.verification import verify
from paraforge.corpus.selection.parameters import SelectParameters
from paraforge.corpus.selection.select import select
from paraforge.interface.query.groups import export_groups

ROWS_PER_SHARD = 50_000
_TEXT_SHARDS = 8
_SCORED = [
    "reference_tokens",
    "translation_tokens",
    "paraphrase_score",
    "overlap_1",
    "overlap_2",
    "overlap_3",
    "copy_rate",
    "digit_mismatch",
]
PARANMT = {
    "filters": [
        {"kind": "decile", "score": "paraphrase_score", "top": 2},
        {"kind": "length", "maximum": 30},
        {"kind": "sample", "size": 5_000_000, "seed": 1},
    ]
}
WIETING2021 = {
    "filters": [
        {"kind": "length", "minimum": 5, "maximum": 40},
        {"kind": "bounds", "score": "paraphrase_score", "minimum": 0.4, "maximum": 1.0},
        {"kind": "bounds", "score": "overlap_3", "maximum": 0.7, "name": "trigram_overlap"},
    ]
}


def sentences(random: np.random.Generator, vocabulary: pa.Array, lengths: npt.NDArray[np.int32]) -> pa.Array:
    """Sentences of the given lengths whose words follow Zipf's law."""
    ranks = np.floor(np.exp(random.random(int(lengths.sum())) * np.log(len(vocabulary)))).astype(np.int32) - 1
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets), vocabulary.take(pa.array(ranks))), " ")


def generate(root: Path, rows: int, seed: int = 0) -> list[Path]:
    """Write ``translated`` and ``scored`` with ``rows`` pairs of 13 tokens a side on average; gives both."""
    random = np.random.default_rng(seed)
    letters = np.array(list("abcdefghijklmnoprstuvyz"))
    words = {"".join(random.choice(letters, size)) for size in random.integers(2, 10, 30_000)}
    vocabulary = pa.array(sorted(words, key=lambda word: (len(word), word)))
    texts = []
    for _ in range(min(_TEXT_SHARDS, -(-rows // ROWS_PER_SHARD))):
        lengths = [
            np.clip(random.lognormal(2.35, 0.65, ROWS_PER_SHARD), 1, 80).astype(np.int32) for _ in range(3)
        ]
        texts.append((lengths, [sentences(random, vocabulary, length) for length in lengths]))
    records: dict[str, list[ShardRecord]] = {"translated": [], "scored": []}
    for name in records:
        (root / name).mkdir(parents=True)
    for index, start in enumerate(range(0, rows, ROWS_PER_SHARD)):
        count = min(ROWS_PER_SHARD, rows - start)
        lengths, (cs, reference, translation) = texts[index % len(texts)]
        line = np.arange(start, start + count)
        refused = random.random(count) < 0.03
        columns = {
            "source": pa.array(np.where(line % 5 < 3, "films", "news")),
            "line": pa.array(line + 1),
            "source_text": cs.slice(0, count),
            "reference": reference.slice(0, count),
            "translation": translation.slice(0, count),
            "translation_score": pa.array(-random.gamma(2.0, 0.3, count).astype(np.float32)),
            "rank": pa.array(np.zeros(count, np.int8)),
            "rejected": pa.array(np.where(refused, "duplicate", ""), mask=~refused),
            "failed": pa.nulls(count, pa.string()),
            "first_row": pa.array(line),
            "reference_tokens": pa.array(lengths[1][:count]),
            "translation_tokens": pa.array(lengths[2][:count]),
            "paraphrase_score": pa.array(
                random.beta(6, 2, count).astype(np.float32), mask=random.random(count) < 0.001
            ),
            **{
                name: pa.array(random.beta(2, 3, count).astype(np.float32))
                for name in ("overlap_1", "overlap_2", "overlap_3", "copy_rate")
            },
            **{
                name: pa.array(random.random(count) < 0.01)
                for name in (
                    "source_truncated",
                    "output_truncated",
                    "non_finite",
                    "runaway",
                    "digit_mismatch",
                )
            },
        }
        unscored = [name for name in columns if name not in _SCORED]
        for name, wanted in (("translated", unscored), ("scored", _SCORED)):
            schema = schema_of(wanted)
            table = pa.table([columns[column] for column in schema.names], schema=schema)
            records[name].append(write_shard(table, root / name / shard_name(index)))
    for name, written in records.items():
        step = {"translated": "translate", "scored": "score"}[name]
        write_index(root / name, written, {"step": step, "version": 1, "parameters": {}, "fingerprints": {}})
    return [root / "translated", root / "scored"]


def peak_megabytes() -> float:
    """Peak resident memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(
    rows: Annotated[int, typer.Option(help="pairs to generate")] = 1_000_000,
    workers: Annotated[int, typer.Option(help="threads; 0 is one per core")] = 0,
    directory: Annotated[
        Path | None, typer.Option(help="where to generate; a temporary directory by default")
    ] = None,
    seed: Annotated[int, typer.Option(help="of the generated pairs")] = 0,
) -> None:
    """Generate pairs (or take those of an earlier run from --directory); select, publish and verify them."""
    root = directory or Path(tempfile.mkdtemp(prefix="select-publish-"))
    try:
        inputs = [root / "translated", root / "scored"]
        if not all(path.is_dir() for path in inputs):
            # In a process of its own, so that its memory is not counted.
            child = os.fork()
            if child == 0:
                generate(root, rows, seed)
                os._exit(0)
            if os.waitpid(child, 0)[1]:
                raise typer.Exit(1)
        measure(root, inputs, Resources(workers=workers, work=root / "work"))
    finally:
        if directory is None:
            shutil.rmtree(root, ignore_errors=True)


def measure(root: Path, inputs: list[Path], resources: Resources) -> None:
    """Print the table."""
    for name, filters in (("wieting2021", WIETING2021), ("paranmt", PARANMT)):
        parameters = SelectParameters.model_validate(filters)
        processor = time.process_time()
        selected = select(parameters, inputs, root / "selected", resources)
        published = publish(
            PublishParameters(),
            inputs,
            root / "selected",
            root / "corpus",
            root / "rejected",
            resources,
        )
        processor = time.process_time() - processor
        rows = selected.counts.rows_in
        started = time.monotonic()
        sound = all(not verify(root / kind).problems for kind in ("corpus", "rejected"))
        checked = time.monotonic() - started
        started = time.monotonic()
        groups, pairs = export_groups(open_published(root / "corpus"), root / "groups")
        grouped = time.monotonic() - started
        both = selected.seconds + published.seconds
        append(
            "select_publish",
            f"{name}, {rows:,} pairs",
            {
                "kept": selected.counts.kept,
                "select_pairs_per_second": rows / selected.seconds,
                "publish_pairs_per_second": rows / published.seconds,
                "pairs_per_second": rows / both,
                "pairs_per_core_second": rows / processor,
                "verify_pairs_per_second": rows / checked,
                "groups": groups,
                "groups_seconds": grouped,
                "groups_pairs_per_second": pairs / grouped,
                "peak_mib": peak_megabytes(),
            },
            note=None if sound else "DAMAGED",
            filters=name,
            pairs=rows,
        )


if __name__ == "__main__":
    typer.run(main)
