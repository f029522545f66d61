"""What a paraphraser gives for what is asked of it: similarity against overlap, from which a user chooses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from paraforge.base.interrupts import check_interrupt
from paraforge.corpus.scoring.general import DIRECTORY
from paraforge.corpus.scoring.pairs import Pairs
from paraforge.corpus.scoring.scorers.overlap import Overlap
from paraforge.corpus.scoring.scorers.paraphrase_score import ParaphraseScore
from paraforge.corpus.scoring.word_scorer import WordScorer
from paraforge.products.paraphrasing.controls import BUCKETED
from paraforge.products.paraphrasing.paraphraser import Paraphraser

BEAM = 4


def measured(sources: Sequence[str], outputs: Sequence[str]) -> dict[str, NDArray[np.float64]]:
    """Similarity (the built-in scorer's, 0 to 1), unigram overlap (0 to 1) and length (tokens of the output /
    tokens of the source) of each pair; NaN where a side is blank."""
    pairs = Pairs.of(*(pa.array(texts, pa.string()) for texts in (sources, outputs)))
    score = ParaphraseScore(WordScorer.open(DIRECTORY))(pairs)["paraphrase_score"]
    tokens = [side.lengths.astype(np.float64) for side in (pairs.reference_tokens, pairs.translation_tokens)]
    blank = (tokens[0] == 0) | (tokens[1] == 0)
    found = (
        score.to_numpy(zero_copy_only=False),
        Overlap()(pairs)["overlap_1"].to_numpy(),
        tokens[1] / np.maximum(tokens[0], 1),
    )
    return {
        name: np.where(blank, np.nan, values.astype(np.float64))
        for name, values in zip(BUCKETED, found, strict=True)
    }


def control_curve(model: Paraphraser, sources: Sequence[str]) -> list[dict[str, Any]]:
    """Means over English sentences, without control, by bucket of overlap, and the same at high similarity.

    Each row has what was asked (``overlap`` and ``similarity``: a bucket from 1, or None) in ``asked``, the
    means of :func:`measured`, and ``missed``: the share of outputs outside the bucket of overlap.
    """
    edges = model.controls.edges
    buckets = range(1, len(edges["overlap"]) + 2) if "overlap" in edges else ()
    highest = len(edges["similarity"]) + 1 if "similarity" in edges else None
    ways: list[tuple[int | None, int | None]] = [(None, None), *((bucket, None) for bucket in buckets)]
    if highest is not None:
        ways += [(bucket, highest) for bucket in buckets]
    rows = []
    for overlap, similarity in ways:
        check_interrupt()
        asked = {"overlap": overlap, "similarity": similarity}
        given: dict[str, Any] = {name: str(bucket) for name, bucket in asked.items() if bucket is not None}
        found = model.paraphrase(sources, beam=BEAM, **given)
        values = measured(sources, [texts[0] if texts else "" for texts in found])
        missed = (
            None if overlap is None else model.controls.buckets("overlap", values["overlap"]) != overlap - 1
        )
        rows.append(
            {
                "asked": asked,
                **{name: _mean(column) for name, column in values.items()},
                "missed": None if missed is None else _mean(missed.astype(np.float64)),
            }
        )
    return rows


def _mean(values: NDArray[np.float64]) -> float | None:
    """Of those that are numbers; None where none is."""
    finite = values[np.isfinite(values)]
    return round(float(finite.mean()), 4) if len(finite) else None
