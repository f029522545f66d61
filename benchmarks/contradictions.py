"""What the column `contradiction` finds of changed meanings, next to the paraphrase score and to overlap.

Contradictions that people wrote (SICK, WikiFactCheck) and those that each rule makes of newstest2021, of a
reference itself and of its translation, against good pairs: references and systems of newstest2021, the other
reference, pairs of ParaNMT.

The weights were fitted on changes by the same rules, of the Bible, of Tatoeba and of novels, so the share
of the Bible's pairs that are flagged is one of training pairs. The other texts are no part of the training,
but what was found on them chose the signs and the weights of the training sets: no set here is unseen.

python -m benchmarks.contradictions
python -m benchmarks.contradictions --rate
"""

import random
import time
from typing import Annotated

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import typer

from benchmarks.distinct_pairs import rows_of
from benchmarks.hardware import data_directory, hardware
from benchmarks.results import append
from experiments.pairs import paraphrases
from paraforge.base.text.lines import numbered_lines
from paraforge.corpus.scorer import Scorer
from paraforge.corpus.scoring.general import DIRECTORY
from paraforge.corpus.scoring.meaning.made_pairs import RULES
from paraforge.corpus.scoring.score import build_scorers, score_table
from paraforge.corpus.scoring.scorers.meaning import Meaning
from paraforge.corpus.scoring.verdict import area

Pair = tuple[str, str]
_MOST = 3_000
_MOST_OF_RATE, _SHARD = 48_000, 5_000
_FLAGGED = 0.95
"""Quantile of the good pairs' contradiction beyond which a pair is flagged."""
COLUMNS = ("contradiction", "paraphrase_score", "overlap_1")


def sick(label: str) -> list[Pair]:
    """SICK's training pairs with a label of entailment."""
    rows = (line.split("\t") for _, line in numbered_lines(data_directory() / "sts" / "SICK_train.txt"))
    return [(row[1], row[2]) for row in rows if row[4].strip() == label]


def good(most: int = _MOST) -> dict[str, list[Pair]]:
    """Pairs that say the same, at most so many of a set; the last two only show how many are flagged."""
    news = list(rows_of(data_directory() / "mt_outputs" / "newstest2021.cs-en.tsv.gz"))
    found = {
        "newstest2021 translations": [(row[1 + k % 2], row[3 + k % 8]) for k, row in enumerate(news)],
        "newstest2021 people": [(row[1], row[2]) for row in news],
    }
    for name in ("paranmt", "captions", "bible"):
        pairs = [
            pair
            for block in paraphrases(name)
            for pair in zip(block.left.to_pylist(), block.right.to_pylist(), strict=True)
        ]
        found[name] = random.Random(1).sample(pairs, min(most, len(pairs)))
    found["SICK entailment"] = sick("ENTAILMENT")
    return found


JUDGED = ("newstest2021 translations", "newstest2021 people", "paranmt")
"""The good pairs that contradictions are compared with."""


def contradictions() -> dict[str, list[Pair]]:
    """Pairs that say something else."""
    data = data_directory()
    facts = (line.split("\t") for _, line in numbered_lines(data / "meaning" / "wikifact-contradictions.tsv"))
    found = {"SICK": sick("CONTRADICTION"), "WikiFactCheck": [(row[0], row[1]) for row in facts]}
    news = list(rows_of(data / "mt_outputs" / "newstest2021.cs-en.tsv.gz"))
    for rule, change in RULES.items():
        rng = random.Random(3)
        own: list[Pair] = []
        others: list[Pair] = []
        for number, row in enumerate(news):
            reference, translation = row[1], row[3 + number % 8]
            for pairs, text in ((own, reference), (others, translation)):
                made = change(text, rng)
                if made and made != text:
                    pairs.append((reference, made))
        found |= {f"{rule}, of the reference": own, f"{rule}, of a translation": others}
    return found


def scores(pairs: list[Pair]) -> dict[str, npt.NDArray[np.float64]]:
    """Of each pair what is judged, 0 where it has none."""
    first, second = zip(*pairs, strict=True)
    table = score_table(pa.table({"reference": first, "translation": second}), build_scorers(DIRECTORY))
    return {name: np.nan_to_num(table[name].to_numpy().astype(np.float64)) for name in COLUMNS}


def share_of_rate(pairs: list[Pair], rounds: int = 15) -> float:
    """How fast pairs are scored with the family, as a share of the rate without: one pass over all shards by
    turns, and of each shard the least of its times, as other work only adds to it."""
    first, second = zip(*random.Random(5).sample(pairs, len(pairs)), strict=True)
    table = pa.table({"reference": first, "translation": second})
    shards = [table.slice(start, _SHARD) for start in range(0, len(table), _SHARD)]
    scorers = build_scorers(DIRECTORY)
    without = [scorer for scorer in scorers if not isinstance(scorer, Meaning)]
    seconds: list[list[list[float]]] = [[], []]
    # The first round compiles, and looks up words.
    for _ in range(rounds + 1):
        for found, chosen in zip(seconds, (without, scorers), strict=True):
            found.append([_process_seconds(shard, chosen) for shard in shards])
    least = [np.min(found[1:], axis=0).sum() for found in seconds]
    return float(least[0] / least[1])


def _process_seconds(table: pa.Table, scorers: list[Scorer]) -> float:
    begun = time.process_time()
    score_table(table, scorers)
    return time.process_time() - begun


def rate() -> None:
    """Record the share of the rate, over all pairs that there are."""
    pairs = [pair for name, pairs in good(_MOST_OF_RATE).items() if name in JUDGED for pair in pairs]
    share = share_of_rate(pairs)
    print(hardware(), f"{share:.3f} of the rate without, {len(pairs):,} pairs")
    append("contradictions_rate", "of the rate without", {"share": share, "pairs": len(pairs)})


def main(only_rate: Annotated[bool, typer.Option("--rate", help="Measure the rate alone.")] = False) -> None:
    """Print and record the areas of each set, how many good pairs are flagged, and what the signs cost."""
    rate()
    if only_rate:
        return
    right = good()
    of_right = {name: scores(pairs) for name, pairs in right.items()}
    compared = {name: np.concatenate([of_right[one][name] for one in JUDGED]) for name in COLUMNS}
    threshold = float(np.quantile(compared["contradiction"], _FLAGGED))
    for name, pairs in contradictions().items():
        wrong = scores(pairs)
        areas = {
            score: area(-compared[score], -wrong[score])
            if score == "contradiction"
            else area(compared[score], wrong[score])
            for score in COLUMNS
        }
        flagged = float((wrong["contradiction"] > threshold).mean())
        append("contradictions", name, {**areas, "flagged": flagged, "pairs": len(pairs)}, seeds=[1, 3])
    shares = {name: float((found["contradiction"] > threshold).mean()) for name, found in of_right.items()}
    append("contradictions_flagged", "good pairs", {**shares, "threshold": threshold}, seeds=[1])


if __name__ == "__main__":
    typer.run(main)
