"""Calibrates the column `adequacy`: how likely people accept a pair with a given score and contradiction.

Judgments: STS 2012 to 2014 (4 and above of 5 is accepted), MSRP (the label), WMT 2015 (a z-score of 0.3 and
above). All domains weigh the same. Each domain is left out once: how far the others' prediction is from its
share, in logits, is the uncertainty of any new domain.

python -m experiments.adequacy
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.command_line import start
from benchmarks.hardware import data_directory
from benchmarks.results import append
from paraforge.base.errors import require
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


def domains() -> dict[str, Domain]:
    """Return the inputs of the pairs (one, score, contradiction), and which of them people accept."""
    scorers = build_scorers(DIRECTORY)
    found = {}
    for name, files in DOMAINS.items():
        first, second, accepted = zip(*(row for file in files for row in judged(file)), strict=True)
        table = score_table(pa.table({"reference": first, "translation": second}), scorers)
        columns = (
            np.nan_to_num(table[column].to_numpy()) for column in ("paraphrase_score", "contradiction")
        )
        inputs = np.stack([np.ones(len(accepted)), *columns], axis=1).astype(np.float64)
        found[name] = inputs, np.array(accepted)
    return found


def fitted(chosen: Mapping[str, Domain]) -> Numbers:
    """Fit a logistic regression in which each domain has the same weight. Returns its coefficients."""
    linear_model = require("sklearn.linear_model", "evaluation")
    inputs, truth = (np.concatenate(parts) for parts in zip(*chosen.values(), strict=True))
    weight = np.concatenate([np.full(len(values), 1 / len(values)) for values, _ in chosen.values()])
    model = linear_model.LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-8, max_iter=1000)
    return np.asarray(model.fit(inputs, truth, weight).coef_[0])


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
        others = fitted({other: data for other, data in found.items() if other != name})
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
        append("adequacy", name, figures)
    spread = float(np.sqrt(np.mean(np.square(offsets))))
    named = dict(zip(("one", "score", "contradiction"), coefficients.tolist(), strict=True))
    append("adequacy", "all", {**named, "spread": spread})


if __name__ == "__main__":
    start(main)
