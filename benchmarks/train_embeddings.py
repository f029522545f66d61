"""Speed and memory of training sentence embeddings on the paraphrases of PARAFORGE_DATA.

python -m benchmarks.train_embeddings speed --encoder word --set mega_batch=40
python -m benchmarks.train_embeddings memory --pairs 5000000 --whole 1
python -m benchmarks.train_embeddings windows --window 16384 --block 64

What they are worth is in experiments/tables.
"""

import contextlib
import itertools
import json
import resource
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import typer
from pydantic import TypeAdapter

from benchmarks.hardware import hardware, peak_memory
from benchmarks.results import append, sts_figures
from experiments.pairs import FILES, SOURCES, paraphrases, sts_sets
from paraforge.base.text.pair_blocks import PairBlock
from paraforge.base.text.units import make_units
from paraforge.embeddings.encoders.build import build_encoder
from paraforge.embeddings.encoders.parameters import (
    EncoderParameters,
    VectorParameters,
    named_encoder,
    units_of,
)
from paraforge.embeddings.encoders.protocol import Encoder
from paraforge.embeddings.evaluation.similarity.sts import evaluate_sts
from paraforge.embeddings.learning.loop import Record
from paraforge.embeddings.trainer.initial import random_table
from paraforge.embeddings.trainer.model import SentenceModel
from paraforge.embeddings.trainer.objective import encoder_trainer
from paraforge.embeddings.trainer.pair_store import PairStore, build_pair_store
from paraforge.embeddings.trainer.parameters import TrainingParameters, VocabularyParameters
from paraforge.embeddings.trainer.schedule import Shuffle

app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None)

Store = Annotated[Path | None, typer.Option(help="keep the pairs here, and take them from here")]
Sources = Annotated[str, typer.Option(help=f"comma-separated, of {', '.join(SOURCES)}")]
Encoding = Annotated[
    str,
    typer.Option(
        help="word, trigram, lstm, blstm, word+trigram (concatenated), or an encoder's parameters as JSON"
    ),
]
Training = Annotated[list[str] | None, typer.Option("--set", help="KEY=VALUE of the training parameters")]
SPEED_MEGA_BATCHES = 12
_ENCODER: TypeAdapter[EncoderParameters] = TypeAdapter(EncoderParameters)


def parse_encoder(text: str, dimension: int) -> EncoderParameters:
    """An encoder by its short name or by its parameters; of a named one the last dimension is given."""
    if text.startswith("{"):
        return _ENCODER.validate_python(json.loads(text))
    content = named_encoder(text)
    for part in content.get("parts", [content]):
        output = part["kind"] not in ("average", "identity_rnn")
        part["output_dimension" if output else "dimension"] = dimension
    return _ENCODER.validate_python(content)


def open_store(directory: Path, sources: str) -> PairStore:
    """The pairs of the sources, in words and trigrams; built where they are not there yet."""
    if not (directory / "pairs.json").is_file():
        begin = time.perf_counter()
        blocks = itertools.chain.from_iterable(paraphrases(source) for source in sources.split(","))
        units = [make_units("word"), make_units("trigram")]
        build_pair_store(directory, blocks, units, VocabularyParameters())
        print(f"built in {time.perf_counter() - begin:.1f} s")
    return PairStore(directory)


def make_encoder(parameters: EncoderParameters, store: PairStore, seed: int) -> Encoder:
    """With random initial vectors."""

    def table(part: VectorParameters, number: int) -> Any:
        return random_table(
            len(store.vocabularies[part.unit]), part.dimension, part.initial_scale, 100 * seed + number
        )

    return build_encoder(parameters, table, seed)


def training(settings: list[str] | None, **defaults: Any) -> TrainingParameters:
    """Parameters with the given settings."""
    given = dict(setting.split("=", 1) for setting in settings or [])
    return TrainingParameters.model_validate({**defaults, **given})


def describe(store: PairStore) -> None:
    """Machine and input."""
    print(hardware())
    for unit, vocabulary in store.vocabularies.items():
        tokens = store.tokens(unit) / 2 / len(store)
        print(f"{len(store):,} pairs, {len(vocabulary):,} {unit} units, {tokens:.1f} a side")


class _EnoughError(Exception):
    """As much has been trained as is measured."""


@app.command()
def speed(
    encoder: Encoding = "word",
    dimension: int = 300,
    threads: int = 2,
    device: str = "cpu",
    mega_batches: int = SPEED_MEGA_BATCHES,
    sources: Sources = ",".join(SOURCES),
    store: Store = None,
    settings: Training = None,
) -> None:
    """Pairs a second with the whole M, after the first two mega-batches."""
    with tempfile.TemporaryDirectory() as temporary:
        pairs = open_store(store or Path(temporary), sources)
        describe(pairs)
        parameters = training(settings, epochs=100, anneal=0)
        architecture = parse_encoder(encoder, dimension)
        marks: list[tuple[float, float, int]] = []

        def observe(record: Record) -> None:
            usage = resource.getrusage(resource.RUSAGE_SELF)
            marks.append((time.perf_counter(), usage.ru_utime + usage.ru_stime, record.seen))
            if len(marks) > mega_batches + 1:
                raise _EnoughError

        trainer = encoder_trainer(
            make_encoder(architecture, pairs, parameters.seed),
            pairs,
            parameters,
            threads=threads,
            device=device,
            observe=observe,
        )
        with contextlib.suppress(_EnoughError):
            trainer.run()
        (begin, cpu, first), (end, cpu_end, last) = marks[1], marks[-1]
        append(
            "training_speed",
            f"{encoder} {dimension}",
            {
                "pairs_per_second": (last - first) / (end - begin),
                "pairs_per_core_second": (last - first) / (cpu_end - cpu),
                "peak_mib": peak_memory(),
            },
            seeds=[parameters.seed],
            pairs=len(pairs),
            batch=parameters.batch_size,
            mega_batch=parameters.mega_batch,
            precision=parameters.precision,
            threads=threads,
            device=device,
        )


@app.command()
def memory(
    pairs: int = 5_000_000,
    vocabulary: int = 50_000,
    mega_batches: int = SPEED_MEGA_BATCHES,
    whole: Annotated[int, typer.Option(help="pairs that are still shuffled as a whole")] = Shuffle().whole,
    packed: Annotated[
        int | None, typer.Option(help="pairs of an epoch to go through; all by default")
    ] = None,
    store: Store = None,
) -> None:
    """Peak memory of building a store of generated pairs, of training Word on some of it, and of going
    through an epoch; give `--store` and call it twice to leave building out."""
    print(hardware())
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as temporary:
        place = store or Path(temporary)
        if not (place / "pairs.json").is_file():
            begin = time.perf_counter()
            units = [make_units("word")]
            build_pair_store(place, _generated(pairs, vocabulary), units, VocabularyParameters())
            print(f"built in {time.perf_counter() - begin:.1f} s, peak memory {peak_memory():,.0f} MiB")
        opened = PairStore(place)
        describe(opened)
        parameters = training(None, epochs=1)

        def observe(record: Record) -> None:
            if record.updates >= mega_batches * parameters.mega_batch:
                raise _EnoughError

        encoder = make_encoder(parse_encoder("word", 300), opened, 1)
        shuffle = Shuffle(whole)
        trainer = encoder_trainer(encoder, opened, parameters, threads=2, observe=observe, shuffle=shuffle)
        with contextlib.suppress(_EnoughError):
            trainer.run()
        figures = {"peak_mib_training": peak_memory()}
        begin, cpu = time.perf_counter(), time.process_time()
        seen = 0
        for batch in trainer.task.batches(Record()):
            seen += len(batch.place)
            if packed is not None and seen >= packed:
                break
        figures |= {
            "peak_mib": peak_memory(),
            "not_mapped_mib": _not_mapped(),
            "packed_pairs_per_second": seen / (time.perf_counter() - begin),
            "packed_pairs_per_core_second": seen / (time.process_time() - cpu),
        }
        shuffled = "as a whole" if pairs <= whole else "in windows"
        append(
            "training_speed",
            f"memory, {pairs:,} pairs, shuffled {shuffled}",
            figures,
            pairs=pairs,
            whole=whole,
            packed=seen,
        )


@app.command()
def windows(
    encoder: Encoding = "word",
    dimension: int = 300,
    threads: int = 1,
    sources: Sources = ",".join(FILES),
    store: Store = None,
    window: Annotated[int, typer.Option(help="pairs that are shuffled among themselves")] = 1 << 14,
    block: Annotated[int, typer.Option(help="consecutive pairs that stay in one window")] = 1 << 6,
    seeds: int = 3,
    limit: Annotated[int | None, typer.Option(help="so many pairs, from all over the store")] = None,
    settings: Training = None,
) -> None:
    """STS figures of models whose pairs were shuffled as a whole, and in windows: the same seeds."""
    with tempfile.TemporaryDirectory() as temporary:
        pairs = open_store(store or Path(temporary), sources)
        describe(pairs)
        architecture, sets = parse_encoder(encoder, dimension), sts_sets()
        units = pairs.of_units(units_of(architecture))
        if limit is not None:
            units = units.subset(np.linspace(0, len(units) - 1, limit).astype(np.int64))
        for shuffle in (Shuffle(), Shuffle(1, window, block, 0)):
            name = f"{window:,} pairs" if shuffle.whole == 1 else "all pairs"
            found: list[dict[str, float | None]] = []
            for seed in range(1, seeds + 1):
                parameters = training(settings, epochs=2, seed=seed)
                model = make_encoder(architecture, units, seed)
                encoder_trainer(model, units, parameters, threads=threads, shuffle=shuffle).run()
                scores = evaluate_sts(SentenceModel(model, architecture, units.vocabularies), sets)
                found.append({group.name: group.pearson for group in scores.groups})
                print(name, seed, sts_figures(found[-1]))
            groups = {group: [float(one[group] or 0) for one in found] for group in found[0]}
            append(
                "shuffling",
                f"{encoder}, shuffled among {name}",
                sts_figures({group: statistics.fmean(values) for group, values in groups.items()}),
                deviations=sts_figures(
                    {group: statistics.stdev(values) for group, values in groups.items()} if seeds > 1 else {}
                )
                or None,
                seeds=list(range(1, seeds + 1)),
                pairs=len(units),
                window=window if shuffle.whole == 1 else len(units),
                block=block if shuffle.whole == 1 else 1,
                epochs=parameters.epochs,
                mega_batch=parameters.mega_batch,
            )


def _not_mapped() -> float:
    """MiB that this process holds beside mapped files, which Linux takes back where it needs them."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status["RssAnon"].split()[0]) / 1024


def _generated(pairs: int, vocabulary: int) -> Iterator[PairBlock]:
    """Sentences of 4 to 20 words with Zipf's frequencies."""
    generator = np.random.default_rng(1)
    weights = 1 / (np.arange(vocabulary) + 2.7)
    words = np.array([f"w{number}x" for number in range(vocabulary)])
    for first in range(0, pairs, 50_000):
        rows = min(50_000, pairs - first)
        sides = []
        for _ in range(2):
            lengths = generator.integers(4, 21, size=rows)
            drawn = words[generator.choice(vocabulary, size=lengths.sum(), p=weights / weights.sum())]
            parts = np.split(drawn, np.cumsum(lengths)[:-1])
            sides.append(pa.array([" ".join(part) for part in parts]))
        yield PairBlock(*sides)


if __name__ == "__main__":
    app()
