"""Where two models differ on STS: which of them is right, and what these pairs are like (ParaNMT-50M, 5.6).

python -m experiments.differing WORD/model TRIGRAM/model figures.json --examples 10
"""

from pathlib import Path
from typing import Annotated

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import typer

from experiments.pairs import sts_sets
from paraforge.base.files import write_json
from paraforge.base.text.tokens import tokenize_column
from paraforge.base.text.vocabulary import WORD
from paraforge.embeddings.evaluation.similarity.sts import compare
from paraforge.embeddings.trainer.model import SentenceModel


def main(
    first: Annotated[Path, typer.Argument(help="a model of words; unknown words are those that it lacks")],
    second: Path,
    output: Path,
    margin: Annotated[float, typer.Option(help="least difference that counts, in points of 5")] = 1.0,
    examples: Annotated[int, typer.Option(help="pairs to print, those with the largest differences")] = 0,
) -> None:
    """Write {"figures": {...}} over the sets of the years.

    A model's estimate of a judgement is what a least-squares line through its similarities of the set gives,
    which leaves Pearson's r as it is. differing_percent: of the pairs, those whose estimates differ by at
    least `margin`; first_nearer_percent: of these, those where the first model's is nearer to the judgement.
    unknown and tokens: of all pairs, mean share of unknown words, x 100, and words of both sentences;
    GROUP_unknown, GROUP_tokens: of the differing pairs where either model is nearer.
    """
    models = [SentenceModel.open(path) for path in (first, second)]
    sets = [pairs for pairs in sts_sets() if pairs.group.isdigit()]
    estimates = []
    for model in models:
        compared = compare(model, sets)
        estimates.append(np.concatenate([_estimates(one.values, one.pairs.gold) for one in compared]))
    gold = np.concatenate([one.pairs.gold for one in compared])
    texts = [text for one in compared for text in zip(one.pairs.first, one.pairs.second, strict=True)]
    lengths, unknown, names = _words(models[0], texts)
    gap = np.abs(estimates[0] - estimates[1])
    errors = [np.abs(estimate - gold) for estimate in estimates]
    nearer = errors[0] < errors[1]
    differing = gap >= margin

    figures = {
        "pairs": len(gold),
        "differing_percent": 100 * differing.mean(),
        "first_nearer_percent": 100 * nearer[differing].mean() if differing.any() else None,
    }
    groups = {"": np.ones_like(differing), "first_": differing & nearer, "second_": differing & ~nearer}
    for name, group in groups.items():
        if group.any():
            figures[f"{name}unknown"] = 100 * (unknown[group] / np.maximum(lengths[group], 1)).mean()
            figures[f"{name}tokens"] = lengths[group].mean()
    rounded = {
        name: value if isinstance(value, int) else round(float(value), 2)
        for name, value in figures.items()
        if value is not None
    }
    write_json(output, {"figures": rounded})
    for number in np.argsort(-gap, kind="stable")[:examples].tolist():
        both = ", ".join(f"{estimate[number]:.1f}" for estimate in estimates)
        print(f"judged {gold[number]:.1f}, estimated {both}; unknown: {', '.join(names[number]) or '-'}")
        print("\n".join(f"  {text}" for text in texts[number]))


def _estimates(values: npt.NDArray[np.float64], gold: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    slope, start = np.polyfit(values, gold, 1)
    return start + slope * values


def _words(
    model: SentenceModel, pairs: list[tuple[str, str]]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], list[list[str]]]:
    """Words of each pair, and how many and which of them the model does not know."""
    # Each sentence by itself: before a small letter a full stop would stay with its word.
    tokens = tokenize_column(pa.array([text for pair in pairs for text in pair], pa.string()))
    pair_of = tokens.row_numbers // 2
    known = np.array([word in model.vocabularies[WORD] for word in tokens.vocabulary])
    lacking = ~known[tokens.ids]
    unknown = np.bincount(pair_of, weights=lacking, minlength=len(pairs)).astype(np.int64)
    names: list[list[str]] = [[] for _ in pairs]
    for place in np.flatnonzero(lacking).tolist():
        names[pair_of[place]].append(tokens.vocabulary[tokens.ids[place]])
    return tokens.lengths.reshape(-1, 2).sum(axis=1), unknown, names


if __name__ == "__main__":
    typer.run(main)
