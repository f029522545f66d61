"""What triplets are worth to sentence-transformers: STS before and after, random against mined negatives.

python -m benchmarks.triplets corpus work/captions --images 6000
python -m benchmarks.triplets mine work/captions/corpus work/triplets
python -m benchmarks.triplets tune all-MiniLM-L6-v2 work/triplets --rows 4000
python -m benchmarks.triplets tune static work/triplets --tokenizer all-MiniLM-L6-v2
python -m benchmarks.triplets compare models/embeddings/word models/embeddings/trigram
"""

from __future__ import annotations

import itertools
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import pyarrow.parquet as pq
import typer

from benchmarks.hardware import hardware
from benchmarks.results import append, sts_figures
from examples.fine_tune import fine_tune
from experiments.pairs import FILES, data_directory, paraphrases
from paraforge.evaluation.sets.finding import read_sets
from paraforge.evaluation.similarity.sts import evaluate_sts
from paraforge.loading import open_model
from paraforge.publication.parameters import PublishParameters
from paraforge.publication.publication import publish
from paraforge.selection.parameters import SelectParameters
from paraforge.selection.select import select
from paraforge.shards.resources import Resources
from paraforge.shards.schema import schema_of
from paraforge.shards.store import ShardWriter
from paraforge.text.lines import numbered_lines
from paraforge.triplets.mining import mine_triplets
from paraforge.triplets.parameters import TripletsParameters

app = typer.Typer()
SAME_LINES = ["captions.*"]
STS = ("stsb-dev.tsv", "2017.track5.en-en.tsv")
KINDS = {"pairs": "pairs alone", "random": "random negatives", "hardest": "mined negatives"}


@app.command()
def corpus(
    directory: Annotated[Path, typer.Argument(help="new; the corpus is in its folder corpus")],
    images: Annotated[int, typer.Option(help="two pairs of captions each")] = 6000,
    paranmt: Annotated[int, typer.Option(help="pairs of ParaNMT-5M")] = 8000,
) -> None:
    """Publish caption pairs of PARAFORGE_DATA, two pairs of each image, and pairs of ParaNMT."""
    rows: dict[str, list[Any]] = {name: [] for name in ("source", "line", "reference", "translation")}

    def add(source: str, line: int, reference: str, translation: str) -> None:
        for name, value in zip(rows, (source, line, reference, translation), strict=True):
            rows[name].append(value)

    # All ten pairs of an image, one after the other: the first is of captions 1 and 2, the eighth of 3 and 4.
    pairs = (pair for block in paraphrases("captions") for pair in zip(block.left, block.right, strict=True))
    for number, (left, right) in enumerate(itertools.islice(pairs, 10 * images)):
        if number % 10 in (0, 7):
            add(f"captions.{1 + number % 10 // 7}", 1 + number // 10, left.as_py(), right.as_py())
    for line, text in itertools.islice(numbered_lines(data_directory() / FILES["paranmt"]), paranmt):
        origin, reference, translation = text.split("\t")
        if origin == "general":
            add("paranmt", line, reference, translation)
    count = len(rows["source"])
    columns: dict[str, list[Any]] = {**rows, "rank": [0] * count, "paraphrase_score": [1.0] * count}
    columns |= {name: [None] * count for name in ("rejected", "failed")}
    inputs = []
    for step, names in (
        ("translate", [*rows, "rank", "rejected", "failed"]),
        ("score", ["paraphrase_score"]),
    ):
        schema = schema_of(names)
        writer = ShardWriter(directory / step, schema)
        writer.write(
            pa.table([pa.array(columns[n], schema.field(n).type) for n in schema.names], schema=schema)
        )
        writer.close({"step": step, "version": 1, "parameters": {}, "fingerprints": {}})
        inputs.append(directory / step)
    resources = Resources(work=directory / "work")
    select(SelectParameters.model_validate({"filters": []}), inputs, directory / "selected", resources)
    parameters = PublishParameters(languages=["en"])
    selected, kept, rejected = (directory / name for name in ("selected", "corpus", "rejected"))
    publish(parameters, inputs, selected, kept, rejected, resources)


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


def judged(model: Path | str, name: str, **configuration: Any) -> None:
    """Record STS and sentences a second of a model."""
    opened: Any = open_model(str(model)).model
    sets = read_sets([data_directory() / "sts" / one for one in STS])
    sentences = list(sets[0].sentences)
    opened.encode(sentences[:64])
    begin = time.perf_counter()
    opened.encode(sentences)
    seconds = time.perf_counter() - begin
    groups = {group.name: group.pearson for group in evaluate_sts(opened, sets).groups}
    figures = {**sts_figures(groups), "sentences_per_second": len(sentences) / seconds}
    append("triplets", name, figures, **configuration)


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
    seed: int = 1,
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
            judged(start, f"{name}, before", rows=0)
        for kind in kinds.split(","):
            data = triplets / kind
            if kind == "pairs":
                data = Path(place) / kind
                data.mkdir()
                table = pq.read_table(next((triplets / "hardest").glob("triplets-*.parquet")))
                pq.write_table(table.select(["anchor", "positive"]), data / "triplets-00000.parquet")
            output = Path(place) / f"tuned-{kind}"
            begin = time.perf_counter()
            fine_tune(start, data, output, 1, batch_size, learning_rate, rows, seed)
            print(f"{kind}: {time.perf_counter() - begin:.0f} s of training")
            judged(output, f"{name}, {KINDS[kind]}", rows=rows, seed=seed)


def static_model(transformer: Path, output: Path) -> Path:
    """A StaticEmbedding of the vectors that a transformer begins with."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import StaticEmbedding

    whole: Any = SentenceTransformer(str(transformer), device="cpu")
    weights = whole[0].auto_model.get_input_embeddings().weight.detach().numpy()
    from tokenizers import Tokenizer

    module = StaticEmbedding(
        Tokenizer.from_file(str(transformer / "tokenizer.json")), embedding_weights=weights
    )
    SentenceTransformer(modules=[module], device="cpu").save(str(output))
    return output


@app.command()
def compare(models: list[str]) -> None:
    """Judge models as they are, e.g. Word and Trigram."""
    for model in models:
        judged(model, Path(model).name, rows=0)


if __name__ == "__main__":
    app()
