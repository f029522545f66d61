"""Makes paraphrases of references without a bitext: translates them to the foreign language and back."""

import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from paraforge.base.files import remove_directory
from paraforge.base.shards.groups import GroupRanks, Keys, Rows, rank_groups
from paraforge.base.shards.lineage import text_keys
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.schema import FLAG_COLUMNS, schema_of
from paraforge.base.shards.store import ShardDirectory, shard_name, write_index, write_shard
from paraforge.base.shards.work import WorkDirectory, replaced_directory
from paraforge.translation.memory.distinct import waiting_rows
from paraforge.translation.stage.parameters import TranslateParameters
from paraforge.translation.stage.remembering import finish_tasks
from paraforge.translation.stage.translate import TranslationReport, translate

logger = logging.getLogger(__name__)

FORWARD: Final = "forward"
"""Name of the forward translation's model directory, work directory and metrics."""
_COLUMNS = ("source", "line", "source_text", "reference", "rejected", "failed", "first_row")


def forward_resources(resources: Resources) -> Resources:
    """Return the same resources with a work directory of its own; the translation memory is shared."""
    changed = {"work": resources.work / FORWARD, "translation_memory": resources.memory_directory()}
    return resources.model_copy(update=changed)


def round_trip(
    parameters: TranslateParameters,
    ingested: Path,
    model: Path,
    output: Path,
    resources: Resources,
    lineage: Mapping[str, str | None] | None = None,
    finish: bool = True,
) -> tuple[TranslationReport, TranslationReport]:
    """Translate references to ``source_text``, translate that back, and publish complete rows.

    Each direction has its own memory and resumes on its own. A row whose forward translation is faulty has
    failed; its reason begins with ``forward: ``.

    parameters, ingested, output, resources, lineage, finish: see
    :func:`~paraforge.translation.stage.translate.translate`.
    model: directory of the model that translates back, with the forward model inside.

    Returns the reports of both translations, forward first. Raises the errors of ``translate``.
    """
    work = WorkDirectory(FORWARD, resources.work.resolve())
    translated, turned = work.path / "translated", work.path / "turned"
    with work.lock():
        logger.info("forward translation: from references to source_text")
        section, own = parameters.forward_parameters(), forward_resources(resources)
        forward = translate(section, ingested, model / FORWARD, translated, own, finish=False)
        write_back_corpus(translated, turned)
        logger.info("back-translation: from source_text")
        section = parameters.model_copy(
            update={"maximum_sentences": None}
        )  # only limits the forward direction
        back = translate(section, turned, model, output, resources, lineage, finish=False)
        remove_directory(translated)
        remove_directory(turned)
        if finish:  # last, so that a run killed before this is resumed
            finish_translations(resources)
    return forward, back


def finish_translations(resources: Resources) -> None:
    """End a run of either direction that has not ended itself: the next one tries failed sentences again.

    resources: those of :func:`round_trip`, or of
    :func:`~paraforge.translation.stage.translate.translate`.
    """
    for resources_of_model in (resources, forward_resources(resources)):
        work = WorkDirectory("translation", resources_of_model.work.resolve())
        if work.path.is_dir():
            with work.lock():
                finish_tasks(work.path)


def write_back_corpus(translated: Path, output: Path) -> None:
    """Write the corpus to translate back, whose ``source_text`` is the forward translation.

    A faulty forward translation is not translated back; ``failed`` has the reason. ``first_row`` is the first
    row with the same text. Memory does not grow with the corpus.

    translated: output of :func:`~paraforge.translation.stage.translate.translate`, one row per reference.
    output: directory to publish, replaced as a whole.

    Raises InputError if a shard is damaged or the disk is full.
    """
    forward = ShardDirectory(translated)
    groups = output.with_name("groups")
    rank_groups(_keys(forward), groups)
    ranks = GroupRanks(groups)
    records = []
    start = 0
    with replaced_directory(output) as temporary:
        for index, table in enumerate(map(_swap_sides, forward.tables())):
            stop = start + table.num_rows
            first = pa.array(ranks.of(start, stop)[1], mask=~_waits(table))
            table = table.append_column("first_row", first).select(_COLUMNS).cast(schema_of(_COLUMNS))
            records.append(write_shard(table, temporary / shard_name(index)))
            start = stop
        write_index(temporary, records, {"step": "back-corpus", FORWARD: forward.description})
    remove_directory(groups)


def _swap_sides(table: pa.Table) -> pa.Table:
    reason = table["failed"]
    for name in FLAG_COLUMNS:
        reason = pc.coalesce(reason, pc.if_else(table[name], name, pa.scalar(None, pa.string())))
    columns = {name: table[name] for name in ("source", "line", "reference", "rejected")}
    failed = pc.binary_join_element_wise(FORWARD, reason, ": ")  # null where there is no reason
    return pa.table({**columns, "source_text": table["translation"], "failed": failed})


def _waits(table: pa.Table) -> NDArray[np.bool_]:
    return waiting_rows(table).to_numpy()


def _keys(forward: ShardDirectory) -> Iterator[tuple[Keys, Rows]]:
    start = 0
    for table in map(_swap_sides, forward.tables()):
        rows = np.flatnonzero(_waits(table))
        yield text_keys(table["source_text"].take(pa.array(rows))), rows + start
        start += table.num_rows
