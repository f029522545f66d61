"""What triplets are worth to sentence-transformers: STS before and after, random against mined negatives.

python -m benchmarks.triplets corpus work/captions --images 6000
python -m benchmarks.triplets speed work/million
python -m benchmarks.triplets mine work/captions/corpus work/triplets
python -m benchmarks.triplets read work/triplets/hardest
python -m benchmarks.triplets tune all-MiniLM-L6-v2 work/triplets --rows 4000
python -m benchmarks.triplets tune static work/triplets --tokenizer all-MiniLM-L6-v2
python -m benchmarks.triplets compare models/embeddings/word models/embeddings/trigram
"""

import itertools
import os
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import typer

from benchmarks.distinct_pairs import BLOCK, DistinctPairs, paraphrase_pairs
from benchmarks.hardware import hardware, peak_memory
from benchmarks.results import append, over_seeds, sts_figures
from examples.fine_tune import fine_tune
from experiments.pairs import FILES, data_directory, paraphrases
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.store import ShardWriter
from paraforge.base.text.lines import numbered_lines
from paraforge.corpus.columns import schema_of
from paraforge.corpus.publication.parameters import PublishParameters
from paraforge.corpus.publication.publication import publish
from paraforge.corpus.scoring import general
from paraforge.corpus.selection.parameters import SelectParameters
from paraforge.corpus.selection.select import select
from paraforge.embeddings.evaluation.sets.finding import read_sets
from paraforge.embeddings.evaluation.similarity.sts import evaluate_sts
from paraforge.products.loading import open_model
from paraforge.products.triplets.mining import mine_triplets
from paraforge.products.triplets.parameters import TripletsParameters

app = typer.Typer()
COLUMNS = ("source", "line", "reference", "translation")
# A million pairs in ten minutes on two cores.
GOAL = 1667
SAME_LINES = ["captions.*"]
STS = ("stsb-dev.tsv", "2017.track5.en-en.tsv")
# The faster ones take no time for the sentences once.
CPU_SECONDS = 3.0
KINDS = {"pairs": "pairs alone", "random": "random negatives", "hardest": "mined negatives"}


def published(directory: Path, blocks: Iterable[pa.Table]) -> Path:
    """Publish blocks of rows with ``source``, ``line``, ``reference`` and ``translation``, every one kept."""
    step = {"version": 1, "parameters": {}, "fingerprints": {}}
    steps: dict[str, list[str]] = {
        "translate": [*COLUMNS, "rank", "rejected", "failed"],
        "score": ["paraphrase_score"],
    }
    inputs = [directory / name for name in steps]
    writers = [ShardWriter(directory / name, schema_of(columns)) for name, columns in steps.items()]
    for block in blocks:
        fixed = {"rank": pa.repeat(0, len(block)), "paraphrase_score": pa.repeat(1.0, len(block))}
        for writer, columns in zip(writers, steps.values(), strict=True):
            schema = schema_of(columns)
            values = [
                block[field.name]
                if field.name in COLUMNS
                else fixed.get(field.name, pa.nulls(len(block))).cast(field.type)
                for field in schema
            ]
            writer.write(pa.table(values, schema=schema))
    for writer, name in zip(writers, steps, strict=True):
        writer.close({"step": name, **step})
    resources = Resources(work=directory / "work")
    select(SelectParameters.model_validate({"filters": []}), inputs, directory / "selected", resources)
    parameters = PublishParameters(languages=["en"])
    selected, kept, rejected = (directory / name for name in ("selected", "corpus", "rejected"))
    publish(parameters, inputs, selected, kept, rejected, resources)
    return kept


@app.command()
def corpus(
    directory: Annotated[Path, typer.Argument(help="new; the corpus is in its folder corpus")],
    images: Annotated[int, typer.Option(help="two pairs of captions each")] = 6000,
    paranmt: Annotated[int, typer.Option(help="pairs of ParaNMT-5M")] = 8000,
) -> None:
    """Publish caption pairs of PARAFORGE_DATA, two pairs of each image, and pairs of ParaNMT."""
    # All ten pairs of an image, one after the other: the first is of captions 1 and 2, the eighth of 3 and 4.
    pairs = (pair for block in paraphrases("captions") for pair in zip(block.left, block.right, strict=True))
    rows: list[tuple[str, int, str, str]] = []
    for number, (left, right) in enumerate(itertools.islice(pairs, 10 * images)):
        if number % 10 in (0, 7):
            rows.append((f"captions.{1 + number % 10 // 7}", 1 + number // 10, left.as_py(), right.as_py()))
    for line, text in itertools.islice(numbered_lines(data_directory() / FILES["paranmt"]), paranmt):
        origin, reference, translation = text.split("\t")
        if origin == "general":
            rows.append(("paranmt", line, reference, translation))
    published(directory, [pa.table([pa.array(column) for column in zip(*rows, strict=True)], names=COLUMNS)])


@app.command()
def speed(
    directory: Annotated[Path, typer.Argument(help="the corpus is in its folder corpus, made if it is not")],
    pairs: int = 1_000_000,
    encoder: str = "general",
    workers: Annotated[int, typer.Option(help="processes; 0 is one per core")] = 0,
) -> None:
    """Mine hard negatives of distinct pairs made from those of PARAFORGE_DATA; record pairs per second."""
    if not (directory / "corpus").is_dir():
        distinct = DistinctPairs(paraphrase_pairs(data_directory()))
        blocks = zip(itertools.count(1, BLOCK), distinct.blocks(pairs), strict=False)
        tables = (
            pa.table([pa.repeat("distinct", len(left)), first + np.arange(len(left)), left, right], COLUMNS)
            for first, (left, right) in blocks
        )
        published(directory, tables)
    before = sum(os.times()[:4])
    resources = Resources(work=directory / "work", workers=workers, devices=["cpu"])
    parameters = TripletsParameters(encoder=encoder)
    report = mine_triplets(parameters, directory / "corpus", directory / "triplets", resources)
    append(
        "triplets_mining",
        f"{report.rows:,} pairs, {encoder if encoder == general.NAME else Path(encoder).name}",
        {
            "pairs_per_second": report.rows / report.seconds,
            "seconds": report.seconds,
            "cpu_seconds": sum(os.times()[:4]) - before,
            "goal_pairs_per_second": GOAL,
            "triplets": report.triplets,
            "peak_mib": round(max(peak_memory(), peak_memory(children=True))),
        },
        seeds=[parameters.seed],
    )


@app.command()
def mine(
    published: Path,
    output: Path,
    encoder: str = "general",
    name: str = "",
) -> None:
    """Mine hard and random negatives; record the speed, and how many would be of the same image without what
    the corpus knows of images."""
    for strategy in ("hardest", "random"):
        parameters = TripletsParameters.model_validate(
            {"encoder": encoder, "strategy": strategy, "same_lines": SAME_LINES}
        )
        resources = Resources(work=output / "work")
        report = mine_triplets(parameters, published, output / strategy, resources)
        append(
            "triplets_mining",
            f"{name or Path(encoder).name}, {report.rows:,} pairs, {strategy}",
            {
                "pairs_per_second": report.rows / report.seconds,
                "triplets": report.triplets,
                "positive_cosine": report.positive_cosine,
                "negative_cosine": report.negative_cosine,
            },
            seeds=[parameters.seed],
        )


@app.command()
def read(
    triplets: Path,
    name: str = "",
    rows: int = 200,
    paraphrases: Annotated[
        str, typer.Option(help="numbers of those whose negative says what the anchor says; records them")
    ] = "",
) -> None:
    """Print random triplets to read, or record in how many a reader found a paraphrase as the negative."""
    table = pa.concat_tables(pq.read_table(path) for path in sorted(triplets.glob("triplets-*.parquet")))
    drawn = np.sort(np.random.default_rng(1).choice(len(table), rows, replace=False)).tolist()
    if name:
        found = [int(number) for number in paraphrases.split(",") if number]
        assert {*found} <= {*drawn}, "these were not drawn"
        append("triplets_read", name, {"paraphrases": len(found), "of": rows, "triplets": len(table)})
        return
    for number, (anchor, _, negative) in zip(
        drawn, zip(*table.take(drawn).to_pydict().values(), strict=True), strict=True
    ):
        print(f"{number}\t{anchor}\t{negative}")


def judged(models: Sequence[Path | str], name: str, **configuration: Any) -> None:
    """Record STS and sentences a CPU second, mean and deviation of models that differ by the seed, 1 to n."""
    sets = read_sets([data_directory() / "sts" / one for one in STS])
    sentences = list(sets[0].sentences)
    rows = []
    for model in models:
        opened: Any = open_model(str(model)).model
        opened.encode(sentences[:64])
        begin, passes = time.process_time(), 0
        while (seconds := time.process_time() - begin) < CPU_SECONDS:
            opened.encode(sentences)
            passes += 1
        groups = {group.name: group.pearson for group in evaluate_sts(opened, sets).groups}
        rows.append({**sts_figures(groups), "sentences_per_cpu_second": passes * len(sentences) / seconds})
    means, deviations = over_seeds(rows)
    seeds = list(range(1, len(models) + 1)) if configuration["rows"] else None
    append("triplets", name, means, seeds=seeds, deviations=deviations, **configuration)


@app.command()
def tune(
    model: Annotated[
        str, typer.Argument(help="a directory, or static: token vectors of --tokenizer's model")
    ],
    triplets: Path,
    tokenizer: Annotated[Path | None, typer.Option(help="a transformer's directory")] = None,
    name: str = "",
    rows: int = 4000,
    batch_size: int = 32,
    learning_rate: float = 2e-5,
    seeds: Annotated[int, typer.Option(help="of which the mean is recorded")] = 3,
    before: bool = True,
    kinds: Annotated[str, typer.Option(help=f"of {', '.join(KINDS)}")] = ",".join(KINDS),
) -> None:
    """Fine-tune on pairs alone, with random negatives and with mined ones, and judge each."""
    print(hardware())
    with tempfile.TemporaryDirectory() as place:
        start = model
        if model == "static":
            assert tokenizer is not None
            start = str(static_model(tokenizer, Path(place) / "static"))
        name = name or Path(model).name
        if before:
            judged([start], f"{name}, before", rows=0)
        for kind in kinds.split(","):
            data = triplets / kind
            if kind == "pairs":
                data = Path(place) / kind
                data.mkdir()
                table = pq.read_table(next((triplets / "hardest").glob("triplets-*.parquet")))
                pq.write_table(table.select(["anchor", "positive"]), data / "triplets-00000.parquet")
            outputs = [Path(place) / f"tuned-{kind}-{seed}" for seed in range(1, seeds + 1)]
            for seed, output in enumerate(outputs, 1):
                begin = time.perf_counter()
                fine_tune(start, data, output, 1, batch_size, learning_rate, rows, seed)
                print(f"{kind}, seed {seed}: {time.perf_counter() - begin:.0f} s of training", flush=True)
            judged(outputs, f"{name}, {KINDS[kind]}", rows=rows)


def static_model(transformer: Path, output: Path) -> Path:
    """A StaticEmbedding of the vectors that a transformer begins with."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import StaticEmbedding
    from tokenizers import Tokenizer

    whole: Any = SentenceTransformer(str(transformer), device="cpu")
    weights = whole[0].auto_model.get_input_embeddings().weight.detach().numpy()
    module = StaticEmbedding(
        Tokenizer.from_file(str(transformer / "tokenizer.json")), embedding_weights=weights
    )
    SentenceTransformer(modules=[module], device="cpu").save(str(output))
    return output


@app.command()
def compare(models: list[str]) -> None:
    """Judge models as they are, e.g. Word and Trigram."""
    for model in models:
        judged([model], Path(model).name, rows=0)


if __name__ == "__main__":
    app()
