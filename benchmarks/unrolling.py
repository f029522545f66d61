"""Decoder unrolling: four combinations of encoder and decoder on the novels, judged on STS 2012-2014.

W=/tmp/unrolling
python -m benchmarks.unrolling run --work $W
python -m benchmarks.unrolling run --work $W --only bow-bow --only gru-bow --updates 12000
python -m benchmarks.unrolling table --work $W

PARAFORGE_DATA names the data. All combinations see the same triples in the same order, with the same
parameters. Each trained model is kept; a killed run resumes from its last checkpoint, and what is finished is
not done again. No test set chooses anything: every number of steps is shown.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import typer

from benchmarks.hardware import hardware, peak_memory
from benchmarks.results import append
from experiments.pairs import data_directory
from paraforge.embeddings.parameters import VocabularyParameters
from paraforge.errors import InputError
from paraforge.evaluation.sets.finding import read_sets
from paraforge.evaluation.similarity.sts import Compared, score
from paraforge.files import write_json
from paraforge.interrupts import graceful_interrupts
from paraforge.logs import configure_logging
from paraforge.unrolling.model import DecoderModel
from paraforge.unrolling.network import SentencePredictor
from paraforge.unrolling.objective import decoder_trainer
from paraforge.unrolling.parameters import DecodersParameters, RepresentationParameters
from paraforge.unrolling.representation import compare, of_states
from paraforge.unrolling.sentences import SentenceFile, read_sentences
from paraforge.unrolling.triples import TripleStore, build_triple_store

app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None)

COMBINATIONS = ("bow-gru", "gru-gru", "bow-bow", "gru-bow")
STEPS = 10
YEARS = ("2012", "2013", "2014")
MAXIMUM_LENGTH = 30
_PAPER = {
    "gru-bow context": (36.5, 40.6),
    "gru-gru context": (35.7, 34.8),
    "gru-gru mean": (43.8, 42.8),
    "gru-gru unrolled": (41.3, 40.3),
    "bow-bow context": (44.2, 48.8),
    "bow-gru context": (39.6, 44.0),
    "bow-gru mean": (49.0, 49.8),
    "bow-gru unrolled": (49.8, 50.6),
}
"""STS 2014, dot product, Pearson and Spearman x 100 (DD Table 5)."""

Work = Annotated[Path, typer.Option(help="triples, models and results are kept here")]


@app.command()
def run(
    work: Work,
    only: Annotated[list[str] | None, typer.Option(help="combinations; all by default")] = None,
    updates: Annotated[int, typer.Option(help="of each model")] = 2000,
    batch_size: Annotated[int, typer.Option(help="triples of an update")] = 64,
    words: Annotated[int, typer.Option(help="vocabulary")] = 10_000,
    word_dimension: int = 300,
    state_dimension: int = 300,
    learning_rate: float = 0.001,
    precision: str = "bfloat16",
    threads: int = 1,
    seed: int = 1,
    device: str = "cpu",
) -> None:
    """Train and evaluate."""
    configure_logging("unrolling")
    store = _store(work / f"triples-{words}", words)
    for combination in only or COMBINATIONS:
        encoder, decoder = combination.split("-")
        parameters = DecodersParameters.model_validate(
            {
                "network": {
                    "encoder": encoder,
                    "decoder": decoder,
                    "word_dimension": word_dimension,
                    "state_dimension": state_dimension,
                },
                "vocabulary": {"minimum_count": 1, "maximum_size": words},
                "maximum_length": MAXIMUM_LENGTH,
                "training": {
                    "epochs": 1000,
                    "updates": updates,
                    "batch_size": batch_size,
                    "learning_rate": learning_rate,
                    "precision": precision,
                    "seed": seed,
                },
            }
        )
        name = f"{combination}-{updates}x{batch_size}-{word_dimension}-{state_dimension}-{seed}"
        with graceful_interrupts():
            _train_and_evaluate(name, parameters, store, work, threads, device)


def _store(directory: Path, words: int) -> TripleStore:
    try:
        return TripleStore(directory)
    except InputError:
        file = SentenceFile(data_directory() / "books" / "sentences.tsv.gz")
        limits = VocabularyParameters(minimum_count=1, maximum_size=words)
        return build_triple_store(directory, read_sentences([file]), limits, MAXIMUM_LENGTH)


def _train_and_evaluate(
    name: str, parameters: DecodersParameters, store: TripleStore, work: Path, threads: int, device: str
) -> None:
    result = work / f"{name}.result.json"
    if result.is_file():
        return
    directory = work / name
    network = SentencePredictor(parameters.network, len(store.vocabulary), parameters.training.seed)
    trainer = decoder_trainer(
        network,
        store,
        parameters.training,
        checkpoints=work / f"{name}.checkpoints",
        threads=threads,
        device=device,
        description=name,
    )
    trainer.run()
    model = DecoderModel(network, parameters, store.vocabulary)
    model.save(directory)
    scores = evaluate(model)
    for representation, years in scores.items():
        append(
            "unrolling",
            f"{name} {representation}",
            {f"sts{year}": pearson for year, (pearson, _) in years.items()}
            | {f"sts{year}_spearman": spearman for year, (_, spearman) in years.items()}
            | {"loss": trainer.record.history[-1]["loss"], "sentences_per_second": trainer.rate},
            seeds=[parameters.training.seed],
            model=f"{parameters.network.encoder}-{parameters.network.decoder}",
            representation=representation,
            updates=trainer.record.updates,
        )
    write_json(
        result,
        {
            "name": name,
            "combination": f"{parameters.network.encoder}-{parameters.network.decoder}",
            "updates": trainer.record.updates,
            "triples": trainer.record.seen,
            "loss": trainer.record.history[-1]["loss"],
            "sentences_per_second": round(trainer.rate, 1),
            "peak_mib": round(peak_memory()),
            "scores": scores,
        },
    )


def evaluate(model: DecoderModel) -> dict[str, dict[str, list[float | None]]]:
    """Pearson and Spearman x 100 by year, for every representation and number of steps."""
    sets = read_sets(sorted(path for year in YEARS for path in (data_directory() / "sts").glob(f"{year}.*")))
    compared: dict[str, list[Compared]] = {}
    for pairs in sets:
        scored = pairs.scored
        for representation, vectors in _vectors(model, scored.sentences):
            values = compare(vectors[: len(scored)], vectors[len(scored) :], representation)
            compared.setdefault(str(representation), []).append(Compared(scored, values, pairs.unscored))
    return {
        name: {group.name: [group.pearson, group.spearman] for group in score(items).groups}
        for name, items in compared.items()
    }


def _vectors(
    model: DecoderModel, sentences: Sequence[str]
) -> Iterator[tuple[RepresentationParameters, npt.NDArray[np.float32]]]:
    import torch

    def both(**values: Any) -> list[RepresentationParameters]:
        return [
            RepresentationParameters.model_validate({**values, "similarity": kind})
            for kind in ("dot", "cosine")
        ]

    contexts = model.read_by(RepresentationParameters(kind="context")).encode(sentences)
    for representation in both(kind="context"):
        yield representation, contexts
    if model.parameters.network.decoder == "bow":
        return
    states = torch.from_numpy(model.states(sentences, STEPS))
    for steps in range(1, STEPS + 1):
        for kind in ("unrolled", "mean"):
            for representation in both(kind=kind, steps=steps):
                yield representation, of_states(states, representation).numpy()


@app.command()
def table(work: Work) -> None:
    """Print all results."""
    print(hardware())
    results = [json.loads(path.read_text()) for path in sorted(work.glob("*.result.json"))]

    def order(item: dict[str, Any]) -> tuple[int, int]:
        return COMBINATIONS.index(item["combination"]), item["triples"]

    for result in sorted(results, key=order):
        print(
            f"\n## {result['name']}: {result['triples']:,} triples, {result['loss']:.3f} nats a word, "
            f"{result['sentences_per_second']:.0f} sentences/s, {result['peak_mib']:,} MiB"
        )
        print(
            f"| representation | {' | '.join(f'{year} dot | cosine' for year in YEARS)} | paper, 2014 dot |"
        )
        print(f"|---|{'---:|' * (2 * len(YEARS) + 1)}")
        for name, years in result["scores"].items():
            if name.endswith(":cosine"):
                continue
            cells = [
                _cell(scores[year])
                for year in YEARS
                for scores in (years, result["scores"][f"{name}:cosine"])
            ]
            paper = _PAPER.get(f"{result['combination']} {name.partition(':')[0]}")
            print(f"| {name} | {' | '.join(cells)} | {_cell(paper) if paper else ''} |")


def _cell(scores: Sequence[float | None]) -> str:
    return " / ".join("-" if value is None else f"{value:.1f}" for value in scores)


if __name__ == "__main__":
    app()
