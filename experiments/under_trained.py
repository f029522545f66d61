"""Whether words that training has hardly seen cost similarity (W16 section 5.1).

python -m experiments.under_trained work/experiments/cells/KEY/model 100000 figures.json
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import typer
from scipy.stats import spearmanr

from experiments.pairs import SOURCES, sts_sets
from experiments.pool import Pool
from experiments.tables import Pairs
from paraforge.base.files import write_json
from paraforge.base.text.tokens import tokenize_column
from paraforge.base.text.vocabulary import WORD
from paraforge.embeddings.evaluation.similarity.sts import evaluate_sts
from paraforge.embeddings.trainer.model import SentenceModel

OFTEN = 100
"""Occurrences in the training pairs from which on a word counts as trained, as in the paper."""
UPPER_QUARTILE = {
    "2012.MSRpar": 57.6, "2012.MSRvid": 80.3, "2012.SMTeuroparl": 48.1, "2012.OnWN": 65.9,
    "2012.SMTnews": 45.4, "2013.headlines": 68.3, "2013.OnWN": 64.8, "2013.FNWN": 38.1,
    "2014.deft-forum": 46.8, "2014.deft-news": 74.0, "2014.headlines": 75.4, "2014.images": 79.0,
    "2014.OnWN": 81.1, "2014.tweet-news": 72.2,
}  # fmt: skip
"""75th percentile of the systems that took part, Pearson x 100 (W16 Table 2)."""


def main(model: Path, pairs: int, output: Path) -> None:
    """Write {"figures": {...}} of a model that was trained on `pairs` pairs of the pool next to its cell.

    under_trained: Spearman x 100, over the sets, of the share of words that training has seen less than 100
        times with Pearson minus the 75th percentile of the shared task. unseen: of those it has not seen.
    under_trained_percent, unseen_percent: the shares' means over the sets.
    """
    opened = SentenceModel.open(model)
    store, _ = Pool(model.parents[2] / "pool", []).choose((WORD,), Pairs(sources=[*SOURCES], limit=pairs))
    ids = store.select(np.arange(len(store)))[WORD].ids
    counted = np.bincount(ids, minlength=len(store.vocabularies[WORD]))
    counts = dict(zip(store.vocabularies[WORD].units, counted.tolist(), strict=True))
    sets = [one for one in sts_sets() if one.name in UPPER_QUARTILE]
    scores = {one.name: one.pearson or 0.0 for one in evaluate_sts(opened, sets).sets}
    behind = [scores[one.name] - UPPER_QUARTILE[one.name] for one in sets]
    figures: dict[str, float] = {"sets": len(sets)}
    for name, least in (("under_trained", OFTEN), ("unseen", 1)):
        shares = [rarer_percent([*one.first, *one.second], counts, least) for one in sets]
        figures[name] = round(100 * float(spearmanr(shares, behind)[0]), 1)
        figures[f"{name}_percent"] = round(float(np.mean(shares)), 1)
    write_json(output, {"figures": figures})


def rarer_percent(texts: Sequence[str], counts: Mapping[str, int], least: int) -> float:
    """Of the tokens of these texts, the share of those that `counts` has less than `least` times, in %."""
    tokens = tokenize_column(pa.array(texts, pa.string()))
    rare = np.array([counts.get(word, 0) < least for word in tokens.vocabulary])
    return 100 * float(rare[tokens.ids].mean())


if __name__ == "__main__":
    typer.run(main)
