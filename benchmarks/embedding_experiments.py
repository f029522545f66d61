"""Experiments on sentence embeddings: mega-batches, negatives, deciles, sources, data size, optimisers, best,
several seeds.

W=/tmp/experiments
python -m benchmarks.embedding_experiments run --work $W --only mega_batch --only size
python -m benchmarks.embedding_experiments run --work $W --corpus data/translated --corpus data/selected
python -m benchmarks.embedding_experiments run --work $W --only seeds    # each configuration five times
python -m benchmarks.embedding_experiments table --work $W               # of several seeds mean and deviation

Each result is a line of WORK/results.jsonl; what is there is not done again, so a killed run goes on. Pairs
with a sentence of any STS set are left out. Figures are Pearson x 100 after the last epoch: no test set
chooses.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from pydantic import TypeAdapter

from benchmarks.embedding_pairs import UNITS, Pool
from benchmarks.hardware import hardware, peak_memory
from benchmarks.paraphrases import SOURCES, data_directory
from benchmarks.results import append, sts_figures
from paraforge.embeddings.encoders.build import build_encoder
from paraforge.embeddings.encoders.parameters import EncoderParameters, VectorParameters, units_of
from paraforge.embeddings.initial import frequency_weights, random_table
from paraforge.embeddings.model import SentenceModel
from paraforge.embeddings.objective import encoder_trainer
from paraforge.embeddings.pair_store import PairStore
from paraforge.embeddings.parameters import TrainingParameters
from paraforge.evaluation.sets.finding import read_sets
from paraforge.evaluation.similarity.sts import evaluate_sts
from paraforge.files import hash_json
from paraforge.learning.loop import Record

app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None)

_ENCODER: TypeAdapter[EncoderParameters] = TypeAdapter(EncoderParameters)
SETS = [
    *(f"2012.{name}" for name in ("MSRpar", "MSRvid", "OnWN", "SMTeuroparl", "SMTnews")),
    *(f"2013.{name}" for name in ("FNWN", "OnWN", "headlines")),
    *(f"2014.{name}" for name in ("OnWN", "deft-forum", "deft-news", "headlines", "images", "tweet-news")),
    "2017.track5.en-en",
    "stsb-dev",
]
YEARS = ["2012", "2013", "2014", "2017", "stsb-dev", "SICK_trial"]


@dataclass(frozen=True)
class Experiment:
    """One training and its scores.

    encoder: parameters of the encoder. training: what differs from the defaults.
    sources, limit, decile: which pairs, see `Pool.choose`.
    start: name of an experiment whose trained tables this one starts from.
    """

    group: str
    name: str
    encoder: dict[str, Any]
    training: dict[str, Any] = field(default_factory=dict)
    sources: list[str] | None = None
    limit: int | None = None
    decile: int | None = None
    start: str | None = None

    @property
    def key(self) -> str:
        """Hash of all that the result depends on but the pool."""
        return hash_json(asdict(self))[:16]


def average(unit: str, dimension: int = 300, weighted: bool = True) -> dict[str, Any]:
    """Word or Trigram from a random start, weighted by frequency or not."""
    start: dict[str, Any] = {"initial_scale": 0.05, "initial_frequency": 0.001} if weighted else {}
    return {"kind": "average", "unit": unit, "dimension": dimension, **start}


def concatenation(*parts: dict[str, Any]) -> dict[str, Any]:
    """Encoders side by side."""
    return {"kind": "concatenation", "parts": list(parts)}


PAIRS = 100_000
"""Of the experiments on mega-batches."""
FEWER_PAIRS = 50_000
"""Of the other experiments that compare ways to train."""
MIXED = ["captions", "bible", "news", "corpus"]
PARAPHRASES = list(SOURCES)
"""Everything but back-translations."""
REPEATED = ("bare_trigram 512, softmax", "bare_trigram 512", "bare_trigram 512, M=1", "bare_word 300")
"""Of the best models those that are trained with several seeds."""
SEEDS = {"seeds": (1, 2, 3, 4, 5)}
"""Of a group in which each experiment is repeated."""
ENCODERS = {"word": average("word"), "trigram": average("trigram")}


def experiments(pool: Pool) -> Iterator[Experiment]:
    """All of them, the most telling first."""
    yield from _mega_batches()
    yield from _sides()
    yield from _updates()
    yield from _starts()
    yield from _units()
    yield from _averaging()
    yield from _softmax()
    yield from _sources(pool)
    yield from _deciles(pool)
    yield from _sizes(sum(pool.counts()[name] for name in PARAPHRASES))
    yield from _best()
    yield from _seeds()


def _mega_batches() -> Iterator[Experiment]:
    """M = 1, 20, 40: from a random start, growing to M, and from trained vectors as in the paper."""
    common: dict[str, Any] = {"sources": MIXED, "limit": PAIRS}
    for unit, encoder in ENCODERS.items():
        first = f"{unit} M=1"
        for size in (1, 20, 40):
            fixed = {"epochs": 1, "mega_batch": size, "anneal": 0}
            yield Experiment("mega_batch", f"{unit} M={size}", encoder, fixed, **common)
        grown = {"epochs": 1, "mega_batch": 40, "anneal": 25}
        yield Experiment("mega_batch", f"{unit} M grows to 40", encoder, grown, **common)
        for size in (1, 20, 40):
            fixed = {"epochs": 1, "mega_batch": size, "anneal": 0}
            yield Experiment(
                "mega_batch", f"{unit} trained with M=1, then M={size}", encoder, fixed, **common, start=first
            )


def _sides() -> Iterator[Experiment]:
    for unit, encoder in ENCODERS.items():
        for two_sided, negatives in ((True, "max"), (False, "max"), (True, "mix")):
            name = f"{unit} {'two' if two_sided else 'one'}-sided {negatives}"
            training = {"epochs": 1, "mega_batch": 5, "two_sided": two_sided, "negatives": negatives}
            yield Experiment("sides", name, encoder, {**training, "anneal": 0}, MIXED, FEWER_PAIRS)


def _sizes(pairs: int) -> Iterator[Experiment]:
    """Wieting 2016, Figure 1; each size is passed over until 100,000 pairs have been seen, at least once and
    at most ten times."""
    for unit, encoder in ENCODERS.items():
        for size in (1_000, 5_000, 20_000, 100_000, 400_000, 1_600_000):
            if size < 4 * pairs:
                epochs = min(10, max(1, 100_000 // size))
                training = {"epochs": epochs, "mega_batch": 5, "anneal": 0}
                name = f"{unit} {min(size, pairs):,} pairs"
                yield Experiment("size", name, encoder, training, PARAPHRASES, size)


def _sources(pool: Pool) -> Iterator[Experiment]:
    """Without mega-batches: in one of captions alone the hardest negatives are paraphrases."""
    for unit, encoder in ENCODERS.items():
        for source, count in pool.counts().items():
            if count >= 2_000:
                epochs = min(5, max(1, PAIRS // count))
                training = {"epochs": epochs, "mega_batch": 1, "anneal": 0}
                yield Experiment("sources", f"{unit} {source}", encoder, training, [source], PAIRS)


def _deciles(pool: Pool) -> Iterator[Experiment]:
    size = min((int((pool.deciles == decile).sum()) for decile in range(1, 11)), default=0)
    if size:
        for unit, encoder in ENCODERS.items():
            for decile in range(1, 11):
                training = {"epochs": 3, "mega_batch": 5, "anneal": 0}
                yield Experiment("deciles", f"{unit} decile {decile}", encoder, training, None, size, decile)


def _updates() -> Iterator[Experiment]:
    """How Adam treats rows that a mini-batch does not touch, and AdaGrad."""
    for updates in ("lazy", "deferred", "dense"):
        training = {"epochs": 1, "mega_batch": 5, "anneal": 0, "table_updates": updates}
        yield Experiment("updates", f"word Adam {updates}", average("word"), training, MIXED, FEWER_PAIRS)
    adagrad: dict[str, Any] = {"optimiser": "adagrad", "learning_rate": 0.05, "mega_batch": 5}
    adagrad |= {"epochs": 1, "anneal": 0}
    yield Experiment("updates", "word AdaGrad", average("word"), adagrad, MIXED, FEWER_PAIRS)


def _starts() -> Iterator[Experiment]:
    """Random start, all units alike or weighted by frequency."""
    for unit in ENCODERS:
        for weighted in (False, True):
            name = f"{unit} {'weighted by frequency' if weighted else 'all alike'}"
            training = {"epochs": 1, "mega_batch": 5, "anneal": 0}
            yield Experiment("start", name, average(unit, 300, weighted), training, MIXED, FEWER_PAIRS)


def _units() -> Iterator[Experiment]:
    """Words and trigrams with punctuation and without."""
    training = {"epochs": 1, "mega_batch": 5, "anneal": 0}
    for unit in UNITS:
        yield Experiment("units", unit, average(unit), training, PARAPHRASES, PAIRS)


def _averaging() -> Iterator[Experiment]:
    """The last parameters and the mean of the later ones, of the same run."""
    for after in (None, 0.3):
        training = {"epochs": 1, "mega_batch": 5, "anneal": 0, "average_after": after}
        name = "trigram, last parameters" if after is None else "trigram, averaged"
        yield Experiment("averaging", name, average("trigram"), training, PARAPHRASES, PAIRS)


SOFTMAX: dict[str, Any] = {"loss": "softmax", "batch_size": 1024, "one_source": True, "average_after": 0.3}
"""Of the experiments on the softmax loss, but for what each is about."""


def _softmax() -> Iterator[Experiment]:
    """The softmax over a mini-batch: its scale and size, and whether a mini-batch holds one source alone."""
    changes: dict[str, dict[str, Any]] = {
        "1,024 pairs of one source, scale 20": {},
        "any 1,024 pairs": {"one_source": False},
        "512 pairs": {"batch_size": 512},
        "2,048 pairs": {"batch_size": 2048},
        "scale 12": {"scale": 12.0},
        "scale 30": {"scale": 30.0},
        "deferred": {"table_updates": "deferred"},
    }
    for name, change in changes.items():
        training = {**SOFTMAX, "epochs": 2, **change}
        yield Experiment("softmax", f"softmax, {name}", average("bare_trigram", 512), training, PARAPHRASES)


def _best() -> Iterator[Experiment]:
    training: dict[str, Any] = {"mega_batch": 5, "anneal": 500, "table_updates": "deferred"}
    training |= {"epochs": 3, "average_after": 0.3}
    softmax = {**SOFTMAX, "epochs": 3}
    trigrams = average("bare_trigram", 512)
    both = concatenation({**average("bare_word", 300), "initial_scale": 0.02}, trigrams)
    everything = [*PARAPHRASES, "corpus"]
    yield Experiment("best", "bare_trigram 512, softmax", trigrams, softmax, everything)
    yield Experiment("best", "bare_word 300, softmax", average("bare_word"), softmax, everything)
    yield Experiment("best", "bare_word 300 + bare_trigram 512, softmax", both, softmax, everything)
    yield Experiment("best", "bare_trigram 512", trigrams, training, everything)
    yield Experiment("best", "bare_trigram 512, no back-translations", trigrams, training, PARAPHRASES)
    marks = average("trigram", 512)
    yield Experiment("best", "trigram 512, with punctuation", marks, training, everything)
    last = {**training, "average_after": None}
    yield Experiment("best", "bare_trigram 512, last parameters", trigrams, last, everything)
    single = {**training, "mega_batch": 1, "anneal": 0}
    yield Experiment("best", "bare_trigram 512, M=1", trigrams, single, everything)
    yield Experiment("best", "bare_word 300", average("bare_word"), training, everything)
    yield Experiment("best", "bare_word 300 + bare_trigram 512", both, training, everything)


def _seeds() -> Iterator[Experiment]:
    """The best models and what they are compared with: the differences between seeds are the yardstick."""
    for experiment in _best():
        if experiment.name in REPEATED:
            yield replace(experiment, group="seeds")


class _EnoughError(Exception):
    """The experiment's time is up."""


def perform(
    experiment: Experiment, pool: Pool, models: Path, seconds: float, threads: int, seed: int
) -> dict[str, Any]:
    """Train and evaluate; the model is kept in `models`."""
    units = units_of(_ENCODER.validate_python(experiment.encoder))
    store = pool.choose(units, experiment.sources, experiment.limit, experiment.decile)
    parameters = TrainingParameters.model_validate({"seed": seed, **experiment.training})
    model = _model(experiment, store, parameters.seed)
    if experiment.start is not None:
        start = SentenceModel.open(models / experiment.start.replace(" ", "_"))
        model.encoder.load_state_dict(start.encoder.state_dict())
    begin = time.perf_counter()

    def observe(record: Record) -> None:
        if time.perf_counter() - begin > seconds:
            raise _EnoughError

    trainer = encoder_trainer(
        model.encoder, store, parameters, threads=threads, observe=observe, description=experiment.name
    )
    stopped = True
    with contextlib.suppress(_EnoughError):
        trainer.run()
        stopped = False
    elapsed = time.perf_counter() - begin
    scores = evaluate_sts(model, read_sets([*(data_directory() / "sts" / f"{name}.tsv" for name in SETS),
                                            data_directory() / "sts" / "SICK_trial.txt"]))  # fmt: skip
    name = experiment.name if experiment.group not in SEEDS else f"{experiment.name} seed {seed}"
    model.save(models / name.replace(" ", "_"), {"experiment": asdict(experiment)})
    return {
        "pairs": len(store),
        "seen": trainer.record.seen,
        "stopped": stopped,
        "seconds": round(elapsed, 1),
        "pairs_per_second": round(trainer.record.seen / elapsed),
        "loss": [round(entry["loss"], 4) for entry in trainer.record.history],
        "years": {score.name: score.pearson for score in scores.groups},
        "sets": {score.name: score.pearson for score in scores.sets},
    }


def _model(experiment: Experiment, store: PairStore, seed: int) -> SentenceModel:
    parameters = _ENCODER.validate_python(experiment.encoder)

    def table(part: VectorParameters, number: int) -> Any:
        rows = random_table(
            len(store.vocabularies[part.unit]), part.dimension, part.initial_scale, 100 * seed + number
        )
        if part.initial_frequency is not None:
            rows.numpy()[:] *= frequency_weights(store.counts(part.unit), part.initial_frequency)[:, None]
        return rows

    return SentenceModel(build_encoder(parameters, table, seed), parameters, store.vocabularies)


def _done(path: Path) -> dict[str, dict[str, Any]]:
    if not path.is_file():
        return {}
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line.endswith("}")]
    return {line["key"]: line for line in lines}


Work = Annotated[Path, typer.Option(help="pairs, models and results are kept here")]
Corpora = Annotated[
    list[Path] | None, typer.Option("--corpus", help="row-aligned shard directories with more pairs")
]


@app.command()
def run(
    work: Work,
    corpus: Corpora = None,
    only: Annotated[list[str] | None, typer.Option(help="groups to run; all by default")] = None,
    name: Annotated[str, typer.Option(help="only experiments whose name has this in it")] = "",
    seconds: Annotated[float, typer.Option(help="of training at most, for each experiment")] = 600,
    threads: int = 2,
    seed: int = 1,
) -> None:
    """Run what is not done yet."""
    work.mkdir(parents=True, exist_ok=True)
    pool = Pool(work, corpus or [])
    print(hardware())
    print("\n".join(pool.leakage))
    print(pool.counts())
    results = work / "results.jsonl"
    for experiment in experiments(pool):
        if (only and experiment.group not in only) or name not in experiment.name:
            continue
        for number in SEEDS.get(experiment.group, (seed,)):
            key = f"{experiment.key}-{number}"
            if key in _done(results):
                continue
            outcome = perform(experiment, pool, work / "models", seconds, threads, number)
            line = {"key": key, **asdict(experiment), "seed": number, **outcome}
            with results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
            append(
                "sts",
                experiment.name,
                sts_figures(outcome["years"]) | {"pairs_per_second": outcome["pairs_per_second"]},
                seeds=[number],
                note="stopped before its end" if outcome["stopped"] else None,
                experiment=experiment.group,
                pairs=outcome["pairs"],
                pairs_seen=outcome["seen"],
                seed=number,
            )
    print(f"peak memory {peak_memory():,.0f} MiB")


@app.command()
def table(work: Work) -> None:
    """Print the results as Markdown tables; of an experiment with several seeds the mean and, behind ±, the
    standard deviation between seeds."""
    lines = list(_done(work / "results.jsonl").values())
    for group in dict.fromkeys(line["group"] for line in lines):
        print(f"\n### {group}\n\n| | pairs | seen | pairs/s | {' | '.join(YEARS)} |")
        print(f"|---|---:|---:|---:|{'---:|' * len(YEARS)}")
        experiments_of_group: dict[str, list[dict[str, Any]]] = {}
        for line in lines:
            if line["group"] == group:
                experiments_of_group.setdefault(line["key"].rpartition("-")[0], []).append(line)
        for repeated in experiments_of_group.values():
            print(_row(repeated))


def _row(lines: list[dict[str, Any]]) -> str:
    """One experiment with one seed or several."""
    scores = " | ".join(_mean_and_deviation([line["years"].get(year) for line in lines]) for year in YEARS)
    first = lines[0]
    name = first["name"] + (f", {len(lines)} seeds" if len(lines) > 1 else "")
    stopped = sum(line["stopped"] for line in lines)
    name += f" ({stopped} stopped)" if stopped and len(lines) > 1 else " (stopped)" if stopped else ""
    speed = round(float(np.mean([line["pairs_per_second"] for line in lines])))
    return f"| {name} | {first['pairs']:,} | {first['seen']:,} | {speed:,} | {scores} |"


def _mean_and_deviation(values: list[float | None]) -> str:
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return "-"
    mean = f"{np.mean(known):.1f}"
    return mean if len(known) == 1 else f"{mean} ± {np.std(known, ddof=1):.1f}"


if __name__ == "__main__":
    app()
