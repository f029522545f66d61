"""Compares a paraphrase lexicon with PPDB and SimLex-999, by score and by word frequency.

python -m experiments.lexicon pairs captions,bible pairs.parquet
python -m experiments.lexicon judge lexicon figures.json
"""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import typer

from benchmarks.hardware import data_directory
from experiments.pairs import FILES, paraphrases
from experiments.pool import corpus_pairs
from paraforge.base.files import atomic_path, write_json
from paraforge.base.shards.store import open_parquet, parquet_writer
from paraforge.base.text.pair_blocks import PairBlock
from paraforge.corpus.publication.lexicon_layout import WORDS
from paraforge.embeddings.evaluation.comparing import spearman
from paraforge.embeddings.evaluation.word_lists import Pair, correlate, read_similarity_list
from paraforge.papers.lexicon_evaluation import SCORES, agreement, lexicon_scores, read_reference_lexicon
from paraforge.products.lexicon.lookup import Lexicon

app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None)
BANDS = (1, 10, 100, 1_000, 10_000, 1 << 62)
"""A word is in a band if at least so many sentences have it, and fewer than the next number."""
BEST = 5
SIMLEX = Path("wordsim") / "SimLex-999.txt"


@app.command()
def pairs(
    sources: Annotated[str, typer.Argument(help="of experiments.pairs, separated by commas, or corpus")],
    output: Path,
    corpus: Annotated[list[Path] | None, typer.Option(help="row-aligned shard directories")] = None,
) -> None:
    """Write pairs of sentences as Parquet for `paraforge lexicon extract`."""

    def blocks() -> Iterator[PairBlock]:
        for source in sources.split(","):
            if source == "corpus":
                yield from (block for block, _ in corpus_pairs(corpus or []))
            else:
                yield from paraphrases(source)

    schema = pa.schema([(name, pa.string()) for name in ("reference", "translation")])
    with atomic_path(output) as path, parquet_writer(path, schema) as writer:
        for block in blocks():
            writer.write_table(pa.table([block.left, block.right], names=schema.names).cast(schema))


@app.command()
def judge(lexicon: Path, output: Path) -> None:
    """Write {"labels": {name: figures}} for all words, and by how many sentences contain a word.

    words: in PPDB's list, with an entry. SCORE_best: of a word's best five entries by the score, among those
        whose words are both in PPDB's list, the share that are pairs of PPDB, %.
    ppdb, simlex: pairs of PPDB, of SimLex-999, whose words the lexicon has, the rarer one in the band.
    ppdb_entries, simlex_entries: those that are entries, %.
    SCORE_simlex: Spearman x 100 with the judgements of those that are entries; of all words, over the whole
        list, unseen pairs 0 (PN Table 13). ppdb_simlex: the same of PPDB, where its file has no scores of
        being a pair of it.
    SCORE_ppdb: Spearman x 100 of the shared pairs with PPDB's scores, where its file has them.
    """
    opened = Lexicon(lexicon)
    reference = read_reference_lexicon(data_directory() / FILES["ppdb"])
    simlex = read_similarity_list(data_directory() / SIMLEX)
    table = pq.read_table(opened.path / WORDS)
    totals = pc.add(table["reference_count"], table["translation_count"])
    counts: dict[str, int] = dict(zip(table["word"].to_pylist(), totals.to_pylist(), strict=True))

    listed = {(min(pair), max(pair)) for pair in reference.scores}
    known = sorted(pair for pair in listed if pair[0] in counts and pair[1] in counts)
    entries = _Entries(opened, known)
    scores = lexicon_scores(opened, simlex.pairs)
    judged = [
        (gold, pair, [scores[name].get(pair, np.nan) for name in SCORES])
        for pair, gold in zip(simlex.pairs, simlex.scores, strict=True)
        if pair[0] in counts and pair[1] in counts
    ]
    rarer = {pair: min(counts[pair[0]], counts[pair[1]]) for pair in [*known, *(one[1] for one in judged)]}
    labels: dict[str, dict[str, Any]] = {}
    for low, high in [(BANDS[0], BANDS[-1]), *itertools.pairwise(BANDS)]:
        figures = entries.best(low, high)
        if not figures["words"]:
            continue
        inside = np.array([low <= rarer[pair] < high for pair in known])
        some = [one for one in judged if low <= rarer[one[1]] < high]
        values = np.array([[gold, *found] for gold, _, found in some]).reshape(-1, 1 + len(SCORES))
        seen = np.isfinite(values).all(axis=1)
        figures |= {
            "ppdb": int(inside.sum()),
            "ppdb_entries": _percent(entries.has[inside]),
            "simlex": len(some),
            "simlex_entries": _percent(seen),
        }
        for column, name in enumerate(SCORES, start=1):
            figures[f"{name}_simlex"] = _rounded(spearman(values[seen, 0], values[seen, column]))
        labels[_label(low, high)] = figures
    whole = labels[_label(BANDS[0], BANDS[-1])]
    by_ppdb = agreement(opened, reference).spearman
    for name in SCORES:
        whole[f"{name}_simlex"] = _rounded(correlate(simlex, scores[name]).spearman)
        if (rho := by_ppdb[name]) is not None:
            whole[f"{name}_ppdb"] = _rounded(rho)
    whole["ppdb_simlex"] = _rounded(correlate(simlex, reference.scores).spearman)
    whole["entries"] = opened.manifest["entries"]
    write_json(output, {"labels": labels})


class _Entries:
    """Entries whose words are both in a list of pairs; `has` tells which of these pairs are entries."""

    def __init__(self, lexicon: Lexicon, pairs: list[Pair]) -> None:
        words = pa.array(sorted({word for pair in pairs for word in pair}), pa.string())
        parts: list[list[npt.NDArray[Any]]] = []
        for path in lexicon.files:
            with open_parquet(path) as file:
                for batch in file.iter_batches(columns=["word", "paraphrase", "word_count", *SCORES]):
                    keep = pc.and_(*(pc.is_in(batch[name], words) for name in ("word", "paraphrase")))
                    kept = batch.filter(keep)
                    sides = [pc.index_in(kept[name], words) for name in ("word", "paraphrase")]
                    columns = [*sides, kept["word_count"], *(kept[name] for name in SCORES)]
                    parts.append([column.to_numpy(zero_copy_only=False) for column in columns])
        self._word, other, self._count, *scores = (
            np.concatenate(columns) for columns in zip(*parts, strict=True)
        )
        self._scores = dict(zip(SCORES, scores, strict=True))
        first, second = (pc.index_in(pa.array(side), words).to_numpy() for side in zip(*pairs, strict=True))
        wanted = first.astype(np.int64) * len(words) + second
        both = np.minimum(self._word, other).astype(np.int64) * len(words) + np.maximum(self._word, other)
        self._shared = np.isin(both, wanted)
        self.has = np.isin(wanted, both)

    def best(self, low: int, high: int) -> dict[str, Any]:
        """Words of a band, and how many of their best entries by each score are pairs of the list."""
        band = np.flatnonzero((self._count >= low) & (self._count < high))
        figures: dict[str, Any] = {"words": len(np.unique(self._word[band]))}
        for name, score in self._scores.items():
            # An entry without a score comes last: NaN sorts behind all numbers.
            order = band[np.lexsort((-score[band], self._word[band]))]
            starts = np.flatnonzero(np.diff(self._word[order], prepend=-1))
            place = np.arange(len(order)) - np.repeat(starts, np.diff(starts, append=len(order)))
            figures[f"{name}_best"] = _percent(self._shared[order[place < BEST]])
        return figures


def _percent(flags: npt.NDArray[np.bool_]) -> float | None:
    return round(100 * float(flags.mean()), 1) if len(flags) else None


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 1)


def _label(low: int, high: int) -> str:
    if high == BANDS[-1]:
        return "all words" if low == BANDS[0] else f"in {low:,} sentences and more"
    return f"in {low:,} to {high - 1:,} sentences"


if __name__ == "__main__":
    app()
