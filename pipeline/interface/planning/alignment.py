"""A warning of sources whose references fit other rows as well as their own."""

import logging
import math
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from paraforge.base.shards.resources import Resources
from paraforge.base.shards.store import ShardView
from paraforge.base.text.tokens import tokenize_column
from paraforge.corpus.scoring.lexical_learning import corpus_tables, drawn_rows, learn
from paraforge.corpus.scoring.lexical_table import LexicalTable, foreign_units, units_of
from paraforge.corpus.scoring.out_of_step import LINES, Blocks, warn_of
from paraforge.corpus.scoring.pairs import by_source
from paraforge.corpus.scoring.verdict import area, interval

logger = logging.getLogger(__name__)

_MOST_ROWS: Final = 100_000
"""Rows that the lexical table is learned from: some ten seconds."""
_JUDGED: Final = 20_000
_FEWEST: Final = 100
"""Rows that a source needs to be judged."""
_LEAST_AREA: Final = 0.9
"""Aligned bitext reaches 0.95 from 1,000 rows on; what was shifted by a row is below 0.86."""


def warn_of_misaligned_sources(ingested: Path, resources: Resources) -> dict[str, float]:
    """Warn of each source whose rows are hardly more similar to their own references than to other rows'.

    ingested: shard directory; only rows that are to be translated count. resources: threads.

    Returns by source the area under the ROC curve of its rows against rows with other references, 0 to 1,
    where that is below 0.9 with 95% confidence.
    """
    view = ShardView(ingested)
    rows = drawn_rows(corpus_tables(view, resources), _MOST_ROWS)
    lexical = learn(rows)
    _warn_of_stretches(rows, lexical, view.total_rows)
    rows = rows.slice(0, _JUDGED)
    foreign = rows["source_text"]
    found = {}
    for source, places in by_source(rows["source"]):
        # Drawn at random, so a row's neighbour is any other one of the source.
        own, other = (rows["reference"].take(pa.array(one)) for one in (places, np.roll(places, -1)))
        differs = np.array(own.to_pylist(), object) != np.array(other.to_pylist(), object)
        if differs.sum() < _FEWEST:
            continue
        units = foreign_units(foreign.take(pa.array(places)))
        right, wrong = (
            lexical.similarities(units, units_of(tokenize_column(texts)))[differs] for texts in (own, other)
        )
        known = ~(np.isnan(right) | np.isnan(wrong))
        if known.sum() >= _FEWEST:
            share = interval(area(right[known], wrong[known]), float(known.sum()))
            if share.high < _LEAST_AREA:
                found[source] = share.value
    for source, value in sorted(found.items()):
        logger.warning(
            "source %s looks misaligned: its references hardly fit their own rows better than other rows "
            "(area under the ROC curve %.2f; of aligned bitext it is above 0.95). Compare both sides: one "
            "may lack a line. If its words are not separated by spaces, this means nothing.",
            source,
            value,
        )
    return found


def _warn_of_stretches(rows: pa.Table, lexical: LexicalTable, of_rows: int) -> None:
    """Warn of the lines of each source that are out of step, in blocks that have enough of the drawn rows."""
    rows = rows.filter(rows["line"].is_valid())
    if not rows.num_rows:
        return
    blocks = Blocks(LINES * math.ceil(2 * _FEWEST * of_rows / (LINES * rows.num_rows)))
    foreign, reference = foreign_units(rows["source_text"]), units_of(tokenize_column(rows["reference"]))
    similarities = lexical.similarities(foreign, reference)
    blocks.add(rows.append_column("source_similarity", pa.array(similarities)))
    warn_of(blocks.out_of_step())
