"""How well the similarity to the source finds references of other rows, beside the length ratio; its speed.

python -m benchmarks.source_similarity
python -m benchmarks.source_similarity --rows 10000 --held-out 2000
"""

import time
from typing import Annotated

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import typer

from benchmarks.distinct_pairs import rows_of
from benchmarks.hardware import hardware
from benchmarks.results import append
from experiments.pairs import data_directory
from paraforge.base.text.tokens import tokenize_column
from paraforge.corpus.scoring.lexical_learning import drawn_rows, learn
from paraforge.corpus.scoring.lexical_table import LexicalTable, foreign_units, units_of
from paraforge.corpus.scoring.pairs import log_length_ratios
from paraforge.corpus.scoring.verdict import area
from paraforge.corpus.scoring.wrong_pairs import rows_of_similar_length

TEXTS = {
    "news": "newstest2008-2023.en-cs.tsv.gz",
    "Tatoeba": "tatoeba.en-cs.tsv.gz",
    "software": "software.*.en-cs.tsv.gz",
}
_WRONG = 0.2
Floats = npt.NDArray[np.floating]


def bitext() -> pa.Table:
    """Every row of the texts: ``text``, ``source_text``, ``reference``, in the order of the files."""
    found: list[tuple[str, str, str]] = []
    for text, pattern in TEXTS.items():
        for path in sorted((data_directory() / "bitext").glob(pattern)):
            found += [(text, row[2], row[1]) for row in rows_of(path)]
    names = ("text", "source_text", "reference")
    return pa.table([pa.array(column) for column in zip(*found, strict=True)], names)


def of_text(rows: pa.Table, text: str) -> pa.Table:
    """The rows of one text."""
    return rows.filter(pa.array([name == text for name in rows["text"].to_pylist()], pa.bool_()))


def with_references(rows: pa.Table, places: npt.NDArray[np.int64]) -> tuple[pa.Table, npt.NDArray[np.int64]]:
    """The rows with the references of others, and which they are: those whose own one is another text."""
    others = rows["reference"].take(pa.array(places))
    changed = np.flatnonzero(
        np.array(others.to_pylist(), object) != np.array(rows["reference"].to_pylist(), object)
    )
    place = rows.column_names.index("reference")
    return rows.set_column(place, "reference", others).take(pa.array(changed)), changed


def shuffled(size: int, seed: int) -> npt.NDArray[np.int64]:
    """For each row another one."""
    order = np.random.default_rng(seed).permutation(size)
    places = np.empty(size, np.int64)
    places[order] = np.roll(order, 1)
    return places


def similarities(lexical: LexicalTable, rows: pa.Table) -> Floats:
    """The score of each row; one without words gets the least."""
    found = lexical.similarities(
        foreign_units(rows["source_text"]), units_of(tokenize_column(rows["reference"]))
    )
    return np.nan_to_num(found, nan=-1)


def by_length(right: pa.Table, wrong: pa.Table) -> float:
    """Area of the trivial score: how far the log ratio of the lengths is from the right rows' median."""
    ratios = [log_length_ratios(rows["source_text"], rows["reference"]) for rows in (right, wrong)]
    usual = np.median(ratios[0])
    return area(*(-np.abs(one - usual) for one in ratios))


def areas(lexical: LexicalTable, rows: pa.Table, seed: int) -> dict[str, float]:
    """Area under the ROC curve of the rows against each kind of wrong ones, by both scores."""
    foreign, references = (rows[name].to_pylist() for name in ("source_text", "reference"))
    kinds = {
        "shuffled": shuffled(len(rows), seed),
        "shifted": np.roll(np.arange(len(rows)), -1),
        "similar_length": rows_of_similar_length(foreign, references, seed),
    }
    right, found = similarities(lexical, rows), {}
    for kind, places in kinds.items():
        wrong, _ = with_references(rows, places)
        found[kind] = area(right, similarities(lexical, wrong))
        found[f"length_{kind}"] = by_length(rows, wrong)
    return found


def learnt_wrong(rows: pa.Table, seed: int) -> float:
    """Area of right rows against wrong ones where the table was learnt from both, a fifth of them wrong."""
    dice = np.random.default_rng(seed)
    places = np.arange(len(rows))
    chosen = np.sort(dice.choice(len(rows), int(_WRONG * len(rows)), replace=False))
    places[chosen] = dice.permutation(chosen)
    wrong, changed = with_references(rows, places)
    right = rows.take(pa.array(np.setdiff1d(np.arange(len(rows)), changed)))
    lexical = learn(drawn_rows([pa.concat_tables([right, wrong])]))
    return area(similarities(lexical, right), similarities(lexical, wrong))


def main(
    rows: Annotated[list[int] | None, typer.Option(help="rows to learn from")] = None,
    held_out: Annotated[int, typer.Option(help="rows that no table is learnt from")] = 6_000,
    seed: int = 1,
) -> None:
    """Print and record the areas on rows that the table was learnt from, as in a corpus, and on others."""
    everything = bitext()
    order = np.random.default_rng(seed).permutation(len(everything))
    others = everything.take(pa.array(np.sort(order[:held_out])))
    print(f"{hardware()}\n{len(everything):,} rows of {', '.join(TEXTS)}, {len(others):,} of them held out")
    learn(drawn_rows([others.slice(0, 100)]))  # what is compiled is compiled now
    for size in rows or [10_000, 30_000, 100_000]:
        chosen = everything.take(pa.array(np.sort(order[held_out : held_out + size])))
        begin = time.process_time()
        lexical = learn(drawn_rows([chosen]))
        middle = time.process_time()
        similarities(lexical, chosen)
        speed = {
            "learning_cpu_seconds": middle - begin,
            "rows_per_cpu_second": len(chosen) / (time.process_time() - middle),
            "learnt_wrong": learnt_wrong(chosen, seed),
        }
        append("source_similarity", f"{size:,} rows", speed, seeds=[seed], rows=size)
        for kind, judged in (("learnt from", chosen), ("held out", others)):
            for text in TEXTS:
                name = f"{size:,} rows, {kind}: {text}"
                figures = areas(lexical, of_text(judged, text), seed)
                append("source_similarity", name, figures, seeds=[seed], rows=size)


if __name__ == "__main__":
    typer.run(main)
