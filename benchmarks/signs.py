"""What the cheap signs of a bad translation are worth, alone and added to the paraphrase score.

python -m benchmarks.signs
python -m benchmarks.signs --failed translations.txt --model models/embeddings/trigram
"""

import random
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import typer
import yaml

from benchmarks.distinct_pairs import rows_of
from benchmarks.hardware import data_directory, hardware
from benchmarks.results import ROOT, append
from benchmarks.spoiling import SPOILINGS
from paraforge.base.text.lines import numbered_lines
from paraforge.corpus.scoring.corpus_counts import CorpusCounts, count_shard, put_together
from paraforge.corpus.scoring.general import DIRECTORY
from paraforge.corpus.scoring.score import build_scorers, score_table
from paraforge.corpus.scoring.verdict import area
from paraforge.corpus.selection.filters import numbers
from paraforge.corpus.selection.filters.bounds import Bounds, BoundsParameters, GoodPairs, WrongPairs
from paraforge.corpus.selection.parameters import SelectParameters
from paraforge.products.loading import load_fixed

SIGNS = ("unknown_words", "repetition", "length_surprise", "character_score", "copied_words")
_OTHER_TEXT_PAIRS = 2000
_MOST_PEOPLE = 10_000
_FOREIGN = 0.25

Floats = npt.NDArray[np.float64]
Columns = dict[str, Floats]


def news() -> pa.Table:
    """Both human references of each row of newstest2021, each with another one of its eight systems."""
    rows = list(rows_of(data_directory() / "mt_outputs" / "newstest2021.cs-en.tsv.gz"))
    return pairs(
        "newstest2021",
        [
            (row[1 + side], row[3 + (number + 3 * side) % 8], row[0])
            for number, row in enumerate(rows)
            for side in (0, 1)
        ],
    )


def people() -> dict[str, pa.Table]:
    """Pairs of people's own sentences: news, verses of two versions, captions of the same picture."""
    data = data_directory()
    rng = random.Random(1)
    reporters = list(rows_of(data / "mt_outputs" / "newstest2021.cs-en.tsv.gz"))
    verses = [row for row in rows_of(data / "bitext" / "bkr_cs_x_en7.tsv.gz") if row[2].strip()]
    captions = list(rows_of(data / "captions" / "train.en5.tsv.gz"))
    rng.shuffle(verses)
    rng.shuffle(captions)
    return {
        "newstest2021 people": pairs("people", [(row[1], row[2], row[0]) for row in reporters]),
        "bible": pairs(
            "bible",
            [(row[2], row[3 + k % 3], row[1]) for k, row in enumerate(verses) if row[3 + k % 3].strip()],
        ),
        "captions": pairs("captions", [(row[0], row[1], None) for row in captions]),
    }


def pairs(source: str, rows: Sequence[tuple[str, str, str | None]]) -> pa.Table:
    """A table of references, translations and foreign sides."""
    references, translations, foreign = zip(*rows, strict=True)
    return pa.table(
        {
            "source": pa.array([source] * len(rows)),
            "source_text": pa.array(foreign, pa.string()),
            "reference": pa.array(references),
            "translation": pa.array(translations),
        }
    )


def foreign_words(sources: Sequence[str], translations: Sequence[str], seed: int = 1) -> list[str]:
    """A quarter of the words, at least one, replaced by words of the foreign side."""
    rng = random.Random(seed)
    spoilt = []
    for source, text in zip(sources, translations, strict=True):
        words, pool = text.split(), source.split()
        pool = [word for word in pool if len(word) > 3 and word.isalpha()] or pool
        for place in rng.sample(range(len(words)), max(1, round(_FOREIGN * len(words)))):
            words[place] = rng.choice(pool)
        spoilt.append(" ".join(words))
    return spoilt


def spoilt(right: pa.Table, seed: int) -> dict[str, pa.Table]:
    """The pairs with each kind of wrong translation."""
    references, translations, foreign = (
        right[name].to_pylist() for name in ("reference", "translation", "source_text")
    )
    kinds: dict[str, Callable[[Sequence[str], int], list[str]]] = {
        name: partial(spoil, references) for name, spoil in SPOILINGS.items()
    }
    if None not in foreign:
        kinds["foreign_words"] = partial(foreign_words, foreign)
    place = right.column_names.index("translation")
    return {
        name: right.set_column(place, "translation", pa.array(spoil(translations, seed)))
        for name, spoil in kinds.items()
    }


def scored(table: pa.Table, model: Path, counts: CorpusCounts) -> pa.Table:
    """The scores of each pair."""
    return score_table(table, build_scorers(model, load_fixed, counts))


def columns(scored: pa.Table) -> Columns:
    """Paraphrase score and signs of each pair, 0 where it has none; higher is better."""
    found = {
        name: np.nan_to_num(scored[name].to_numpy().astype(np.float64))
        for name in ("paraphrase_score", *SIGNS)
    }
    return {
        name: values if name in ("paraphrase_score", "character_score") else -np.abs(values)
        for name, values in found.items()
    }


def refused(scored: pa.Table) -> dict[str, float]:
    """Share of the pairs that each filter of signs in select=quality refuses, and that any of them does."""
    choice = ROOT / "configs" / "select" / "quality.yaml"
    section = yaml.safe_load(choice.read_text(encoding="utf-8"))["select"]
    found = {}
    for one in SelectParameters.model_validate(section).filters:
        if (
            isinstance(one, BoundsParameters)
            and one.score in SIGNS
            and not isinstance(one.minimum, WrongPairs)
            and not isinstance(one.maximum, GoodPairs)
        ):
            values, missing = numbers(scored[one.score])
            found[one.score] = ~Bounds(one.minimum, one.maximum).accept(values) & ~missing
    shares = {name: float(mask.mean()) for name, mask in found.items()}
    return {**shares, "any": float(np.any(list(found.values()), axis=0).mean())}


def matrix(scores: Columns, names: Sequence[str]) -> Floats:
    """Those columns, (pairs, columns)."""
    return np.stack([scores[name] for name in names], axis=1)


def fitted(right: Floats, wrong: Floats) -> Callable[[Floats], Floats]:
    """Logistic regression of right against wrong pairs, both of the same weight in all."""
    from scipy.optimize import minimize

    both = np.concatenate([right, wrong])
    truth = np.arange(len(both)) < len(right)
    weight = np.where(truth, 0.5 / len(right), 0.5 / len(wrong))
    mean, deviation = both.mean(axis=0), both.std(axis=0) + 1e-9

    def design(values: Floats) -> Floats:
        return np.concatenate([(values - mean) / deviation, np.ones((len(values), 1))], axis=1)

    inputs = design(both)

    def loss(parameters: Floats) -> tuple[float, Floats]:
        margin = inputs @ parameters
        gradient = inputs.T @ (weight * (1 / (1 + np.exp(-margin)) - truth))
        value = weight @ (np.logaddexp(0, margin) - truth * margin)
        return float(value + 1e-4 * parameters @ parameters), gradient + 2e-4 * parameters

    found = minimize(loss, np.zeros(inputs.shape[1]), jac=True, method="L-BFGS-B").x
    return lambda values: np.asarray(design(values) @ found)


def judged_correlation(scores: Columns, judgements: Floats, names: Sequence[str]) -> float | None:
    """Pearson's r of least squares fitted on half of the judged pairs with the other half, both ways.

    None where all pairs have the same value.
    """
    if not matrix(scores, names).std(axis=0).any():
        return None
    values = np.concatenate([matrix(scores, names), np.ones((len(judgements), 1))], axis=1)
    half = np.arange(len(judgements)) % 2 == 0
    found = []
    for fit, test in ((half, ~half), (~half, half)):
        weights = np.linalg.lstsq(values[fit], judgements[fit], rcond=None)[0]
        found.append(float(np.corrcoef(values[test] @ weights, judgements[test])[0, 1]))
    return sum(found) / 2


def main(
    model: Annotated[Path, typer.Option(help="what gives the paraphrase score")] = DIRECTORY,
    failed: Annotated[Path | None, typer.Option(help="newstest2021 as a failing model translates it")] = None,
    known: Annotated[bool, typer.Option(help="count other years' references too")] = True,
    seed: int = 1,
) -> None:
    """Print and record the areas of each sign, of the score, and of both together."""
    print(hardware())
    right = news()
    wrong = spoilt(right, seed)
    if failed is not None:
        texts = [text for _, text in numbered_lines(failed, blank=True) for _ in (0, 1)]
        place = right.column_names.index("translation")
        wrong["failed"] = right.set_column(place, "translation", pa.array(texts))
    human = [
        line.split("\t")
        for _, line in numbered_lines(data_directory() / "adequacy" / "newstest2015.cs-en.tsv")
    ]
    judged = pairs("newstest2015", [(row[1], row[2], None) for row in human])
    judgements = np.array([float(row[0]) for row in human])
    counted = [right, judged]
    if known:
        other = rows_of(data_directory() / "bitext" / "newstest2008-2023.en-cs.tsv.gz")
        counted.append(pairs("news", [(row[1], row[1], row[2]) for row in other if "2021" not in row[0]]))
    counts = put_together(map(count_shard, counted))
    tables = {name: scored(table, model, counts) for name, table in {"right": right, **wrong}.items()}
    bad = {name: columns(table) for name, table in tables.items()}
    good = bad.pop("right")
    judged_scores = columns(scored(judged, model, counts))
    elsewhere = {}
    for name, table in people().items():
        own = put_together([count_shard(table)])
        tables[name] = scored(table.slice(0, _MOST_PEOPLE), model, own)
        some = table.slice(0, _OTHER_TEXT_PAIRS)
        elsewhere[name] = (
            columns(scored(some, model, own)),
            {kind: columns(scored(one, model, own)) for kind, one in spoilt(some, seed).items()},
        )
    for name, table in tables.items():
        append("signs_refused", name, {**refused(table), "pairs": table.num_rows}, seeds=[seed], known=known)
    # Both references of a row are on the same side.
    half = np.arange(right.num_rows) // 2 % 2 == 0
    sets = {name: [name] for name in ("paraphrase_score", *SIGNS)}
    sets |= {f"paraphrase_score + {name}": ["paraphrase_score", name] for name in SIGNS}
    sets["all"] = ["paraphrase_score", *SIGNS]
    sets |= {f"all but {name}": [one for one in sets["all"] if one != name] for name in SIGNS}
    for label, names in sets.items():
        fit = fitted(
            matrix(good, names)[half], np.concatenate([matrix(one, names)[half] for one in bad.values()])
        )
        areas = {
            kind: area(fit(matrix(good, names)[~half]), fit(matrix(one, names)[~half]))
            for kind, one in bad.items()
        }
        others = {
            name: float(
                np.mean([area(fit(matrix(yes, names)), fit(matrix(no, names))) for no in kinds.values()])
            )
            for name, (yes, kinds) in elsewhere.items()
        }
        append(
            "signs",
            label,
            {
                **areas,
                "mean": float(np.mean(list(areas.values()))),
                **others,
                "adequacy_newstest2015": judged_correlation(judged_scores, judgements, names),
            },
            seeds=[seed],
            known=known,
        )


if __name__ == "__main__":
    typer.run(main)
