"""``embed``, ``similarity``, ``neighbours``, ``negatives`` and ``export``: a trained model in use."""

import json
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path

import typer

from paraforge.base.devices import chosen_device
from paraforge.base.errors import ConfigurationError
from paraforge.base.files import text_output
from paraforge.base.interrupts import graceful_interrupts
from paraforge.base.logs import counted
from paraforge.interface.cli.outputs import (
    SENTENCE_TRANSFORMER,
    TRAINED_MODEL,
    check_output_directory,
    check_output_file,
    numpy_array,
    table,
    text_lines,
)
from paraforge.interface.cli.settings import DEVICE_HELP, SENTENCES, column_pair

_MODEL = typer.Argument(
    help="directory of a trained model, e.g. models/embeddings/word; of trained decoders also with "
    "@context, @unrolled:3 or @mean:3 behind it"
)


def embed(
    model: Path = _MODEL,
    input_path: Path = SENTENCES,
    output: Path = typer.Argument(metavar="OUTPUT", help=".npy or .parquet"),
    workers: int = typer.Option(0, min=0, help="processes on the CPU; 0 is one per core"),
    device: str = typer.Option("auto", help=DEVICE_HELP),
    force: bool = typer.Option(False, "--force", help="overwrite OUTPUT"),
) -> None:
    """Embed sentences, streaming: memory does not grow with the file.

    A line without a token, also an empty one, has the zero vector, so that row k is line k + 1.

    \b
    Examples:
      paraforge embed models/embeddings/word sentences.txt.gz vectors.npy
      cut -f2 pairs.tsv | paraforge embed models/embeddings/word - vectors.parquet
      paraforge embed decoders/bow-gru@unrolled:2 sentences.txt vectors.npy
    """
    from paraforge.base.shards.resources import available_cores
    from paraforge.embeddings.inference.embed import embed_file
    from paraforge.products.loading import load_fixed

    kind = numpy_array() if output.suffix == ".npy" else table("a table", "parquet", ["text", "embedding"])
    check_output_file(output, force, kind)
    with graceful_interrupts():
        cores = workers or available_cores()
        rows = embed_file(model, input_path, output, load_fixed, cores, chosen_device(device))
    typer.echo(f"{output}: {counted(rows, 'sentence')}", err=True)


def similarity(
    model: Path = _MODEL,
    first: Path = typer.Argument(help="TSV of pairs, or the first sentences, one per line"),
    second: Path | None = typer.Argument(None, help="the second sentences, one per line"),
    columns: str = typer.Option("0,1", help="the two columns of the TSV, counted from 0"),
    output: Path | None = typer.Option(None, "--output", "-o", help="write here; standard output if not"),
    device: str = typer.Option("auto", help=DEVICE_HELP),
    force: bool = typer.Option(False, "--force", help="replace OUTPUT"),
) -> None:
    """Cosine of both sentences of every pair, a number per line, in order; 0 where one has no token.

    Of trained decoders it is the dot product, or with :cosine behind the representation's name the cosine.

    \b
    Examples:
      paraforge similarity models/embeddings/word pairs.tsv.gz
      paraforge similarity models/embeddings/word references.txt hypotheses.txt -o cosines.txt
      paraforge similarity decoders/bow-gru@unrolled:2 pairs.tsv
    """
    from paraforge.embeddings.inference.neighbours import cosines_of_files, cosines_of_table
    from paraforge.products.loading import load_fixed

    check_output_file(output, force, text_lines("numbers, one per line", r"-?\d+\.\d{6}", repeated=True))
    pair = column_pair(columns)
    opened = load_fixed(model, device)
    cosines = (
        cosines_of_table(opened, first, pair) if second is None else cosines_of_files(opened, first, second)
    )
    with graceful_interrupts(), text_output(output) as target:
        for block in cosines:
            target.write("".join(f"{cosine:.6f}\n" for cosine in block.tolist()))


def neighbours(
    model: str = typer.Argument(help="a trained model, word vectors, SIF, ..., as of 'paraforge embed'"),
    queries: list[str] = typer.Argument(metavar="WORD|SENTENCE", help="what to find neighbours of"),
    among: Path | None = typer.Option(
        None, metavar="FILE", help="candidates, one per line; by default the model's words"
    ),
    count: int = typer.Option(10, "--count", "-n", min=1, help="neighbours of each"),
    device: str = typer.Option("auto", help=DEVICE_HELP),
    as_json: bool = typer.Option(False, "--json", help="print JSON"),
) -> None:
    """Nearest neighbours by cosine.

    \b
    Examples:
      paraforge neighbours models/embeddings/word laughed respectful
      paraforge neighbours models/embeddings/word "A man is playing a guitar." --among captions.txt.gz
    """

    from paraforge.embeddings.inference.neighbours import neighbours as find
    from paraforge.products.loading import load_fixed

    with graceful_interrupts():
        found = find(load_fixed(model, device), queries, among, count)
    if as_json:
        content = {query: [asdict(one) for one in best] for query, best in zip(queries, found, strict=True)}
        typer.echo(json.dumps(content, ensure_ascii=False, indent=2))
        return
    for query, best in zip(queries, found, strict=True):
        typer.echo(query)
        for one in best:
            typer.echo(f"  {one.cosine:.4f}  {one.text}")


def negatives(
    model: Path = typer.Argument(help="directory of a trained model, e.g. models/embeddings/word"),
    pairs: list[Path] = typer.Argument(metavar="PAIRS...", help="TSV or PPDB files, published corpora"),
    mega_batch: str = typer.Option("1,20,40", help="mini-batches of a mega-batch (M), separated by commas"),
    batch_size: int = typer.Option(100, min=2, help="pairs of a mini-batch"),
    count: int = typer.Option(3, "--count", "-n", min=1, help="pairs to show, at most a mini-batch"),
    columns: str = typer.Option("", help="the two columns of the files, e.g. 2,3; counted from 0"),
    seed: int = typer.Option(1, min=0, help="of the pairs that are drawn"),
    device: str = typer.Option("auto", help=DEVICE_HELP),
    as_json: bool = typer.Option(False, "--json", help="print JSON"),
) -> None:
    """Show the negatives that training would choose for pairs drawn at random (ParaNMT-50M, Table 7).

    The larger the mega-batch, the more similar the negative. One that is a paraphrase itself shows that M is
    too large for these pairs.

    \b
    Examples:
      paraforge negatives models/embeddings/word data/corpus
      paraforge negatives models/embeddings/word pairs.tsv.gz --mega-batch 1,5,20 -n 10
    """

    from paraforge.embeddings.inference.neighbours import chosen_negatives
    from paraforge.embeddings.trainer.data import TrainingData
    from paraforge.interface.cli.train import files_and_corpora
    from paraforge.products.loading import load_fixed

    if not all(part.isdecimal() and int(part) for part in mega_batch.split(",")):
        raise ConfigurationError([f"--mega-batch {mega_batch}: whole numbers from 1, e.g. 1,20,40"])
    sizes = sorted({int(part) for part in mega_batch.split(",")})
    data = TrainingData(*files_and_corpora(pairs, columns))
    with graceful_interrupts():
        opened = load_fixed(model, device)
        found = chosen_negatives(opened, data.blocks(), sizes, batch_size=batch_size, count=count, seed=seed)
    if as_json:
        typer.echo(json.dumps([asdict(one) for one in found], ensure_ascii=False, indent=2))
        return
    for one in found:
        typer.echo(f"{one.left}\n  {one.cosine:.4f}  its other side  {one.right}")
        for size, (text, cosine) in one.negatives.items():
            typer.echo(f"  {cosine:.4f}  M = {size:<10}  {text}")


class _Format(StrEnum):
    sentence_transformers = "sentence-transformers"
    word2vec = "word2vec"
    safetensors = "safetensors"


class _Precision(StrEnum):
    float32 = "float32"
    int8 = "int8"
    binary = "binary"


def export(
    model: Path = typer.Argument(help="directory of a trained model, e.g. models/embeddings/word"),
    output: Path = typer.Argument(metavar="OUTPUT", help="directory, or the word2vec text file"),
    format: _Format = typer.Option(..., help="what to write"),
    precision: _Precision = typer.Option(
        _Precision.float32, help="of vectors of units, with --format safetensors"
    ),
    force: bool = typer.Option(False, "--force", help="replace OUTPUT"),
) -> None:
    """Export a trained model.

    sentence-transformers: a directory that SentenceTransformer(OUTPUT) loads, with the same vectors. A Word
    model, or several side by side or added (word+word), needs nothing else; other models need Paraforge
    installed and trust_remote_code=True.
    word2vec: the words' vectors as text. safetensors: tensors, vocabularies, architecture and model card;
    with --precision int8 a quarter as large, binary 1/28.

    \b
    Examples:
      paraforge export models/embeddings/word exported --format sentence-transformers
      paraforge export models/embeddings/word vectors.txt --format word2vec
    """
    from paraforge.embeddings.inference.export import export_model

    if format is not _Format.word2vec:
        check_output_directory(output, force, TRAINED_MODEL, SENTENCE_TRANSFORMER)
    else:
        check_output_file(output, force, text_lines("a word2vec text file", r"\d+ \d+"))
    export_model(model, output, format.value, precision.value)
    typer.echo(f"{output}: {format.value}", err=True)
