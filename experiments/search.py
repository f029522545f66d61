"""A search of hyper-parameters: trials of a row, and the row with what was best (W16 4.1 tunes by hand)."""

import statistics
from collections.abc import Callable, Mapping
from typing import Any

from experiments.tables import Row, Search
from paraforge.base.errors import require

CHOOSING = ("stsb_dev", "sts2017")
"""The figures that may choose; their mean is what is searched for."""


def best_of(row: Row, search: Search, seed: int, figures_of: Callable[[Row], Mapping[str, Any]]) -> Row:
    """The row with the settings of its best trial, by optuna's tree-structured Parzen estimator.

    Nothing is kept between calls: the same seed and figures suggest the same trials, and figures of a trial
    that was run are there already.

    seed: of the sampler. figures_of: trains a row and gives its figures.

    Raises MissingPackageError without optuna.
    """
    optuna = require("optuna", "experiments")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
    tried: dict[int, Row] = {}
    for number in range(search.trials):
        trial = study.ask()
        values = {}
        for name, span in search.space.items():
            if isinstance(span, list):
                values[name] = trial.suggest_categorical(name, span)
            elif span.whole:
                values[name] = trial.suggest_int(name, int(span.low), int(span.high), log=span.log)
            else:
                values[name] = float(f"{trial.suggest_float(name, span.low, span.high, log=span.log):.3g}")
        tried[number] = with_values(row, values)
        found = figures_of(tried[number])
        study.tell(trial, statistics.fmean(found[figure] for figure in CHOOSING if figure in found))
    best = tried[study.best_trial.number]
    return best.model_copy(update={"note": f"the best of {search.trials} trials: {best.note}"})


def with_values(row: Row, values: Mapping[str, Any]) -> Row:
    """The row with `training.KEY` and `encoder.KEY` as given, and nothing to search for."""
    content = row.model_dump(exclude={"search"}, exclude_unset=True)
    for name, value in values.items():
        section, _, key = name.partition(".")
        content[section] = {**(content.get(section) or {}), key: value}
    content["note"] = ", ".join(f"{name.partition('.')[2]} {value}" for name, value in values.items())
    return Row.model_validate(content)
