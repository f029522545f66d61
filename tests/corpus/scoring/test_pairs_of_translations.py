"""Pairs of two translations of one reference: nothing is learned from them, signs come from both."""

import numpy as np
import pyarrow as pa
import pytest

from paraforge.corpus.columns import schema_of
from paraforge.corpus.scoring.corpus_counts import count_shard, put_together, source_rows
from paraforge.corpus.scoring.general import DIRECTORY
from paraforge.corpus.scoring.lexical_learning import drawn_rows, learn
from paraforge.corpus.scoring.score import build_scorers, score_table

NAMES = ["source", "line", "translation_line", "original", "translation_source_text"]
SCHEMA = schema_of([*NAMES, "source_text", "reference", "translation", "rejected", "failed"])
REFERENCES = ["The old man reads a book.", "She sings in the garden.", "They went to school by bus."] * 4
FIRST = ["An old man is reading.", "She xqzzy in the garden.", "They went."] * 4
SECOND = ["The elderly man reads books.", "She sings in gardens.", "By bus they went to school."] * 4


def corpus() -> tuple[pa.Table, pa.Table]:
    """Rows of two pivots, and the pairs of their translations."""
    rows, pairs = [], []
    for line, (reference, first, second) in enumerate(zip(REFERENCES, FIRST, SECOND, strict=True), 1):
        foreign = {name: f"{name} {reference[::-1]}" for name in ("cs", "de")}
        for source, text in (("cs", first), ("de", second)):
            rows.append({"source": source, "line": line, "source_text": foreign[source],
                         "reference": reference, "translation": text})  # fmt: skip
        pairs.append({"source": "cs/de", "line": line, "translation_line": line, "original": reference,
                      "source_text": foreign["cs"], "translation_source_text": foreign["de"],
                      "reference": first, "translation": second})  # fmt: skip
    return pa.Table.from_pylist(rows, SCHEMA), pa.Table.from_pylist(pairs, SCHEMA)


def test_nothing_is_counted_or_learned_from_them() -> None:
    rows, pairs = corpus()
    everything = pa.concat_tables([rows, pairs])
    counts, alone = (put_together([count_shard(table)]) for table in (everything, rows))
    assert counts.table().equals(alone.table(), check_metadata=True)
    assert source_rows(everything) == {"cs": len(REFERENCES), "de": len(REFERENCES)}
    drawn, drawn_alone = drawn_rows([everything]), drawn_rows([rows])
    assert drawn.equals(drawn_alone)
    assert learn(drawn).table().equals(learn(drawn_alone).table())


def test_their_signs_are_the_worse_ones_of_both_translations() -> None:
    rows, pairs = corpus()
    counts, lexical = put_together([count_shard(rows)]), learn(drawn_rows([rows]))
    scorers = build_scorers(DIRECTORY, counts=counts, lexical=lexical)
    scores = score_table(pa.concat_tables([rows, pairs]), scorers)
    legs, found = scores.slice(0, len(rows)), scores.slice(len(rows))
    for name, worse in {
        "unknown_words": np.fmax,
        "copied_words": np.fmax,
        "source_similarity": np.fmin,
        "length_surprise": lambda one, other: np.where(np.abs(one) >= np.abs(other), one, other),
    }.items():
        values = legs[name].to_numpy()
        assert np.array_equal(found[name].to_numpy(), worse(values[::2], values[1::2]), equal_nan=True), name
    assert found["unknown_words"].to_pylist()[1] == pytest.approx(1 / 5)
    # What compares the two sides is that of the two sides.
    plain = score_table(pairs.select(["reference", "translation"]), build_scorers(DIRECTORY))
    for name in ("paraphrase_score", "overlap_1", "contradiction", "reference_tokens"):
        assert found[name].equals(plain[name]), name
