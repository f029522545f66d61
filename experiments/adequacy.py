"""Calibrates the column `adequacy`: how likely people accept a pair with a given score and contradiction.

Judgements: STS 2012 to 2014 (4 and above of 5 is accepted), MSRP (the label), WMT 2015 (a z-score of 0.3 and
above). All domains weigh the same. Each domain is left out once: how far the others' prediction is from its
share, in logits, is the uncertainty of any new domain.

python -m experiments.adequacy
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import typer

from benchmarks.hardware import data_directory
from benchmarks.results import append
from paraforge.base.text.lines import numbered_lines
from paraforge.corpus.scoring.general import DIRECTORY
from paraforge.corpus.scoring.score import build_scorers, score_table

DOMAINS = {
    "news pairs": ["transfer/msr-para-train.tsv", "transfer/msr-para-test.tsv", "transfer/msr-para-val.tsv"],
    "captions": ["sts/2012.MSRvid.tsv", "sts/2012train.MSRvid.tsv", "sts/2014.images.tsv"],
    "glosses": ["sts/2012.OnWN.tsv", "sts/2013.OnWN.tsv", "sts/2013.FNWN.tsv", "sts/2014.OnWN.tsv"],
    "headlines": ["sts/2013.headlines.tsv", "sts/2014.headlines.tsv"],
    "translations": ["sts/2012.SMTnews.tsv", "sts/2012.SMTeuroparl.tsv", "sts/2012train.SMTeuroparl.tsv"],
    "judged translations": ["adequacy/newstest2015.cs-en.tsv"],
    "forums": ["sts/2014.deft-forum.tsv", "sts/2014.deft-news.tsv"],
    "tweets": ["sts/2014.tweet-news.tsv"],
}
_ACCEPTED_STS, _ACCEPTED_Z = 4.0, 0.3
_BOUNDS = (0.6, 0.8)

Numbers = npt.NDArray[np.float64]
Domain = tuple[Numbers, npt.NDArray[np.bool_]]


def judged(name: str) -> list[tuple[str, str, bool]]:
    """Read the pairs of a file, and whether people accept each."""
    rows = [line.split("\t") for _, line in numbered_lines(data_directory() / name)]
    if name.startswith("transfer/"):
        return [(row[3], row[4], row[0] == "1") for row in rows[1:]]
    least = _ACCEPTED_STS if name.startswith("sts/") else _ACCEPTED_Z
    return [(row[1], row[2], float(row[0]) >= least) for row in rows if row[0]]


def features(scores: Numbers, contradictions: Numbers) -> Numbers:
    """Return the inputs of the regression, (pairs, 3): one, the score, the contradiction."""
    return np.stack([np.ones(len(scores)), scores, contradictions], axis=1)


def domains() -> dict[str, Domain]:
    """Return the features of the pairs of each domain, and which of them people accept."""
    scorers = build_scorers(DIRECTORY)
    found = {}
    for name, files in DOMAINS.items():
        first, second, accepted = zip(*(row for file in files for row in judged(file)), strict=True)
        table = score_table(pa.table({"reference": first, "translation": second}), scorers)
        columns = (
            np.nan_to_num(table[column].to_numpy()) for column in ("paraphrase_score", "contradiction")
        )
        found[name] = features(*(column.astype(np.float64) for column in columns)), np.array(accepted)
    return found


def fitted(chosen: Mapping[str, Domain]) -> Numbers:
    """Fit a logistic regression in which each domain has the same weight. Returns its coefficients."""
    from scipy.optimize import minimize

    inputs = np.concatenate([one for one, _ in chosen.values()])
    truth = np.concatenate([accepted for _, accepted in chosen.values()])
    weight = np.concatenate([np.full(len(one), 1 / len(one)) for one, _ in chosen.values()])

    def loss(coefficients: Numbers) -> tuple[float, Numbers]:
        margin = inputs @ coefficients
        gradient = inputs.T @ (weight * (1 / (1 + np.exp(-margin)) - truth))
        return float(weight @ (np.logaddexp(0, margin) - truth * margin)), gradient

    return np.asarray(minimize(loss, np.zeros(inputs.shape[1]), jac=True, method="L-BFGS-B").x)


def share(inputs: Numbers, coefficients: Numbers, shift: float = 0.0) -> float:
    """Return the mean predicted probability."""
    return float(np.mean(1 / (1 + np.exp(-(inputs @ coefficients + shift)))))


def offset(inputs: Numbers, accepted: npt.NDArray[np.bool_], coefficients: Numbers) -> float:
    """Return the logit to add so that the predicted share equals the real one."""
    from scipy.optimize import brentq

    real = np.clip(accepted.mean(), 0.5 / len(accepted), 1 - 0.5 / len(accepted))
    return float(brentq(lambda shift: share(inputs, coefficients, shift) - real, -15, 15))


def main() -> None:
    """Fit, leaving out each domain in turn, and print and record the result."""
    found = domains()
    coefficients = fitted(found)
    offsets = []
    for name, (inputs, accepted) in found.items():
        others = fitted({other: one for other, one in found.items() if other != name})
        offsets.append(offset(inputs, accepted, others))
        figures = {"pairs": len(accepted), "accepted": float(accepted.mean()), "offset": offsets[-1]}
        for bound in _BOUNDS:
            above = inputs[:, 1] >= bound
            if above.any():
                figures |= {
                    f"pairs from {bound}": int(above.sum()),
                    f"accepted from {bound}": float(accepted[above].mean()),
                    f"predicted from {bound}": share(inputs[above], others),
                }
        print(name, {key: round(value, 3) for key, value in figures.items()})
        append("adequacy", name, figures)
    spread = float(np.sqrt(np.mean(np.square(offsets))))
    named = dict(zip(("one", "score", "contradiction"), coefficients.tolist(), strict=True))
    append("adequacy", "all", {**named, "spread": spread})
    print("coefficients", coefficients.round(3).tolist(), "spread", round(spread, 3))


if __name__ == "__main__":
    typer.run(main)
