"""Makes and scores mismatched pairs of a corpus: its references with translations of other rows.

Pairs that are known to be wrong show how good a score is on a corpus. A sample of the references is paired
with translations of other rows of the same source and of similar length, and scored like the corpus.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import feather

from paraforge.base.errors import InputError
from paraforge.base.files import atomic_path, remove_directory
from paraforge.base.shards.lineage import LINEAGE, Smallest, sampling_keys
from paraforge.base.shards.pool import in_order, threads_for
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.schema import TEXT_COLUMNS, column
from paraforge.base.shards.step import Step, run_step
from paraforge.base.shards.store import ShardDirectory, ShardView, ShardWriter, file_beside
from paraforge.base.shards.work import WorkDirectory, replaced_directory
from paraforge.corpus.columns import COLUMNS
from paraforge.corpus.scorer import scorer_types
from paraforge.corpus.scoring.pairs import by_source

WRONG_PAIRS_NAME: Final = "_wrong_pairs.arrow"
"""An Arrow file, so that readers of a Parquet directory ignore it even if they skip no names."""
STEP: Final = "wrong-pairs"
MOST: Final = 20_000
"""The total number of pairs, divided by the sources' sizes; a small source gets more than its share."""
OF_A_SOURCE: Final = 500
FEW: Final = 30
"""Sources with fewer drawn rows exchange translations with each other."""
RIGHT: Final = "right_"
"""Prefix of a column with the score of the reference's own translation."""
MOST_CHANGED: Final = 4_000
"""Most right pairs whose meaning is changed."""
RULE: Final = "rule"
"""The column with the rule that made a mismatched pair; null for another row's translation."""
CONTRADICTION: Final = "contradiction"
_TRAINED: Final = b"paraforge.trained_on_corpus"
_SEED: Final = 1
_ROWS_PER_SHARD: Final = 2_500
# Columns that go with the translation, so that scores can compare it with its own source. They are not
# stored.
_FOREIGN: Final = {"source_text"}

_ADDED: Final = (
    column("translation_source", pa.string(), "source of the row that the translation is of"),
    column("translation_line", pa.int64(), "line of that row"),
    column("weight", pa.float64(), "scored pairs in its source that the mismatched pair stands for"),
    column(RULE, pa.string(), "what changed the meaning of the row's own translation; null for another's"),
)


def rows_of_similar_length(
    references: Sequence[str], translations: Sequence[str], seed: int = 1
) -> npt.NDArray[np.int64]:
    """Return for each row another one whose translation has a similar number of words, int64 (rows,).

    That row has another reference and another translation. Rows are ordered by the number of words, and at
    random among equals. A row gets the nearest one in this order that differs; -1 if no row differs.
    """
    order = np.array([len(text.split()) for text in translations], dtype=np.int64)
    shuffled = np.random.default_rng(seed).permutation(len(order))
    order = shuffled[np.argsort(order[shuffled], kind="stable")]
    sides = [np.unique(np.array(texts, dtype=object), return_inverse=True)[1][order]
             for texts in (references, translations)]  # fmt: skip
    places = np.arange(len(order))
    chosen = np.full(len(order), -1, dtype=np.int64)
    for distance in range(1, len(order)):
        for step in (distance, -distance):
            open_places = places[chosen < 0]
            open_places = open_places[(open_places + step >= 0) & (open_places + step < len(order))]
            differs = np.logical_and(*(side[open_places] != side[open_places + step] for side in sides))
            chosen[open_places[differs]] = open_places[differs] + step
        if (chosen >= 0).all():
            break
    rows = np.empty(len(order), dtype=np.int64)
    rows[order] = np.where(chosen < 0, -1, order[chosen])
    return rows


def judged_scores() -> list[str]:
    """Return the scores that can separate right from wrong pairs: real numbers that are not signs of
    failures."""
    columns = [column for scorer in scorer_types() if not scorer.is_sign for column in scorer.columns]
    return [column.name for column in columns if pa.types.is_floating(column.kind)]


def compared_scores() -> list[str]:
    """Return the scores that are also stored for the right pair: those that are judged, `contradiction` and
    `adequacy`."""
    return [*judged_scores(), CONTRADICTION, "adequacy"]


def write_wrong_pairs(
    steps: Sequence[Step],
    translated: Path,
    scored: Path,
    sources: Mapping[str, int],
    resources: Resources,
    trained: bool = False,
) -> pa.Table:
    """Draw mismatched pairs, score them as ``steps`` scored the corpus, and write them next to the scores.

    steps: the steps that made ``scored``; in their names, :data:`STEP` replaces ``score``.
    translated, scored: row-aligned shard directories; the file :data:`WRONG_PAIRS_NAME` is written to the
        second.
    sources: number of scored pairs of each source. resources: where to run; the file does not depend on it.
    trained: whether the scorer was trained on this corpus, which the file records.

    Returns the mismatched pairs by source, line and rank: lineage, ``reference``, ``translation``, its
        origin, ``weight``, ``rule``, the scores, and for each of :func:`compared_scores` its value for the
        right pair, ``right_SCORE``. Empty if no two rows differ.
    """
    view = ShardView(translated, scored)
    pairs = draw_wrong_pairs(view, sources, threads_for(resources, view.total_rows))
    if pairs.num_rows:
        scores = [_score_pairs(step, pairs, resources) for step in steps]
    else:
        scores = [directory.schema.empty_table() for directory in view.directories[1:]]
    table = join_scores(pairs, *scores)
    table = table.replace_schema_metadata({_TRAINED: b"true"} if trained else None)
    store_wrong_pairs(table, scored)
    return table


def store_wrong_pairs(wrong_pairs: pa.Table, directory: Path) -> Path:
    """Write mismatched pairs to a directory atomically. Returns the file."""
    path = directory / WRONG_PAIRS_NAME
    with atomic_path(path) as temporary:
        feather.write_feather(wrong_pairs, str(temporary), compression="zstd")
    return path


def with_texts_of(wrong_pairs: pa.Table, rows: Iterable[pa.Table]) -> pa.Table:
    """Remove the texts of mismatched pairs unless both sides come from the given rows; keep all scores.

    A corpus must not publish sentences that selection rejected or a split holds out, but the verdict uses the
    scores of all pairs.

    rows: lineage and ``translation`` of the rows, in pieces.
    """
    if not wrong_pairs.num_rows:
        return wrong_pairs
    lineage = [name for name in LINEAGE if name in wrong_pairs.column_names]
    own = pa.table({**{name: wrong_pairs[name] for name in lineage}, "place": np.arange(len(wrong_pairs))})
    reference_there, translation_there = np.zeros((2, len(wrong_pairs)), np.bool_)
    for some in rows:
        matching = own.join(some.select(lineage), lineage, join_type="left semi", use_threads=False)
        reference_there[matching["place"].to_numpy()] = True
        texts = some["translation"].combine_chunks()
        translation_there |= pc.is_in(wrong_pairs["translation"], value_set=texts).to_numpy()
    translation_there |= pc.is_valid(wrong_pairs[RULE]).to_numpy()  # a rule changed the row's own translation
    shown = pa.array(reference_there & translation_there)
    for name in TEXT_COLUMNS:
        texts = pc.if_else(shown, wrong_pairs[name], None)
        wrong_pairs = wrong_pairs.set_column(
            wrong_pairs.column_names.index(name), wrong_pairs.schema.field(name), texts
        )
    return wrong_pairs


def find_wrong_pairs(directories: Sequence[Path]) -> pa.Table | None:
    """Read the mismatched pairs stored in one of the directories; None if there are none.
    Raises InputError if the file is damaged or was removed."""
    for directory in directories:
        if path := file_beside(directory, WRONG_PAIRS_NAME):
            try:
                return feather.read_table(path, memory_map=False)
            except (pa.ArrowInvalid, OSError) as error:
                raise InputError(f"cannot be read as an Arrow file: {error}", path) from error
    return None


def trained_on_corpus(wrong_pairs: pa.Table) -> bool:
    """Return whether the scorer of these pairs was trained on the same corpus."""
    return (wrong_pairs.schema.metadata or {}).get(_TRAINED) == b"true"


def sample_sizes(sources: Mapping[str, int]) -> dict[str, int]:
    """Return the number of rows to draw from each source: its share of `MOST`, but at least `OF_A_SOURCE` or
    all rows.

    With so many sources that this would exceed twice `MOST`, small sources get less. With more sources than
    `MOST`, the largest get one row each.
    """
    total = sum(sources.values())
    least = max(1, min(OF_A_SOURCE, MOST // max(1, len(sources))))
    largest = sorted(filter(sources.get, sources), key=lambda name: (-sources[name], name))[:MOST]
    return {name: min(sources[name], max(least, MOST * sources[name] // total)) for name in largest}


def draw_wrong_pairs(view: ShardView, sources: Mapping[str, int], threads: int = 1) -> pa.Table:
    """Draw the mismatched pairs, without scores. They depend only on the rows, not on how shards are cut."""
    drawn = {name: Smallest(size) for name, size in sample_sizes(sources).items()}
    lineage = [name for name in LINEAGE if name in view.column_names]
    for scored in in_order(partial(_scored_rows, view), len(view), threads):
        keys = scored["key"].to_numpy()
        for name, places in by_source(scored["source"]):
            if name in drawn:  # in a large source, few rows are below the limit
                drawn[name].add(scored.take(places[keys[places] <= np.uint64(drawn[name].limit)]))
    rows = pa.concat_tables([scored.slice(0, 0), *(sample.rows() for sample in drawn.values())])
    rows = rows.sort_by([(name, "ascending") for name in lineage])
    others = _draw_partners(rows)
    has_partner = others >= 0
    altered = changed_rows(rows)
    mismatched = _wrong(rows.filter(pa.array(has_partner)), rows.take(others[has_partner]), sources)
    return pa.concat_tables([mismatched, _wrong(altered, altered, sources)])


def _scored_rows(view: ShardView, index: int) -> pa.Table:
    """Return the shard's scored rows: lineage, both texts, scores and key."""
    lineage = [name for name in LINEAGE if name in view.column_names]
    scores = [name for name in compared_scores() if name in view.column_names]
    foreign = _FOREIGN & {*view.column_names}
    rows = view.read(index, [*lineage, *foreign, *TEXT_COLUMNS, "reference_tokens", *scores])
    rows = rows.filter(pc.is_valid(rows["reference_tokens"])).drop_columns("reference_tokens")
    return rows.append_column("key", pa.array(sampling_keys(rows.select(lineage), _SEED)))


def _draw_partners(rows: pa.Table) -> npt.NDArray[np.int64]:
    """Return for each row the row that its new translation is taken from, -1 for none."""
    groups: dict[str | None, list[npt.NDArray[np.int64]]] = {}
    for name, places in by_source(rows["source"]):
        groups.setdefault(name if len(places) >= FEW else None, []).append(places)
    others = np.full(rows.num_rows, -1, np.int64)
    for parts in groups.values():
        places = np.concatenate(parts)
        references, translations = (rows[name].take(places).to_pylist() for name in TEXT_COLUMNS)
        partners = rows_of_similar_length(references, translations, _SEED)
        others[places] = np.where(partners < 0, -1, places[partners])
    return others


def _wrong(rows: pa.Table, partners: pa.Table, sources: Mapping[str, int]) -> pa.Table:
    """Return rows with the translations of the ``taken`` rows, and the rules that changed these, if any."""
    counts = Counter(rows["source"].to_pylist())
    weights = [sources[name] / counts[name] for name in rows["source"].to_pylist()]
    lineage = [name for name in LINEAGE if name in rows.column_names]
    scores = [name for name in compared_scores() if name in rows.column_names]
    foreign = [name for name in partners.column_names if name in _FOREIGN]
    by_rule = partners[RULE] if RULE in partners.column_names else pa.nulls(rows.num_rows, pa.string())
    added = (partners["source"], partners["line"], pa.array(weights, pa.float64()), by_rule)
    return _table(
        [
            *((COLUMNS[name], rows[name]) for name in (*lineage, "reference")),
            *((COLUMNS[name], partners[name]) for name in ("translation", *foreign)),
            *zip(_ADDED, added, strict=True),
            *((column(f"{RIGHT}{name}", COLUMNS[name].type, f"{name} of the right pair"), rows[name])
              for name in scores),
        ]
    )  # fmt: skip


def _table(columns: Iterable[tuple[pa.Field, Any]]) -> pa.Table:
    fields, arrays = zip(*columns, strict=True)
    return pa.table(list(arrays), schema=pa.schema(fields))


def _score_pairs(step: Step, pairs: pa.Table, resources: Resources) -> pa.Table:
    """Score the pairs with the same step on separate shards that have only the columns the step reads, so
    that other scores cause no rerun."""
    work = WorkDirectory(step.name.replace("score", STEP, 1), resources.work)
    drawn, scored = work.path / "drawn", work.path / "scored"
    table = pairs
    for name in step.columns or ():
        if name not in pairs.column_names:
            table = table.append_column(COLUMNS[name], pa.nulls(pairs.num_rows, COLUMNS[name].type))
    table = table.select(step.columns or table.column_names)
    with replaced_directory(drawn) as directory:
        writer = ShardWriter(directory, table.schema, _ROWS_PER_SHARD)
        writer.write(table)
        writer.close({"step": STEP})
    run_step(replace(step, name=work.step, notes={}), [drawn], scored, resources)
    scores = pa.concat_tables(ShardDirectory(scored).tables())
    for directory in (drawn, scored):
        remove_directory(directory)
    return scores


def join_scores(pairs: pa.Table, *scores: pa.Table) -> pa.Table:
    """Return mismatched pairs with their scores, without the steps' footers, which name library versions."""
    columns = {field.name: (field, table[field.name]) for table in scores for field in table.schema}
    own = [(field, pairs[field.name]) for field in pairs.schema if field.name not in _FOREIGN]
    return _table([*own, *(columns[name] for name in COLUMNS if name in columns)])


def changed_rows(rows: pa.Table) -> pa.Table:
    """Return the drawn rows to which a rule applies, with the changed ``translation`` and the rule."""
    from paraforge.corpus.scoring.meaning.made_pairs import changed  # imported here because it loads numba

    keys = rows["key"].to_numpy()
    drawn = rows.take(np.sort(np.argsort(keys, kind="stable")[:MOST_CHANGED]))
    texts, keys = drawn["translation"].to_pylist(), drawn["key"].to_pylist()
    changes = [changed(text, key) for text, key in zip(texts, keys, strict=True)]
    altered = [change for change in changes if change is not None]
    kept = drawn.filter(pa.array([change is not None for change in changes], pa.bool_()))
    translations, rules = (pa.array([change[side] for change in altered], pa.string()) for side in (0, 1))
    place = kept.column_names.index("translation")
    return kept.set_column(place, COLUMNS["translation"], translations).append_column(RULE, rules)


def other_rows(wrong_pairs: pa.Table) -> pa.Table:
    """Return the mismatched pairs with another row's translation."""
    return wrong_pairs.filter(pc.is_null(wrong_pairs[RULE]))


def changed_meanings(wrong_pairs: pa.Table) -> pa.Table:
    """Return the mismatched pairs that were made by rule."""
    return wrong_pairs.filter(pc.is_valid(wrong_pairs[RULE]))
