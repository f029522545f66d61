"""Speed, memory and quality of the translation engines, and how far they agree.

python -m benchmarks.translate speed --model DIR --bitext FILE.tsv.gz
python -m benchmarks.translate agreement --model DIR --bitext FILE.tsv.gz --bitext OTHER.tsv.gz
"""

from __future__ import annotations

import multiprocessing
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import typer

from benchmarks.bitext import read_bitext
from benchmarks.hardware import hardware, peak_memory

app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None)


@dataclass(frozen=True)
class Job:
    """One way of translating the sentences."""

    name: str
    model: Path
    sentences: tuple[str, ...]
    compute_type: str
    beam: int
    threads: int
    batch_tokens: int


@dataclass(frozen=True)
class Measured:
    """Seconds on the clock, seconds of all cores, peak memory in MiB, target tokens, and the translations."""

    seconds: float
    cpu_seconds: float
    memory: float
    tokens: int
    texts: list[str]
    scores: list[float]
    capped: list[bool]


# Texts, scores, target tokens and whether they hit the cap, of the best hypotheses.
Outcome = tuple[list[str], list[float], list[int], list[bool]]
Run = Callable[[], Outcome]


def bare_ctranslate2(job: Job, batch_sentences: int = 0) -> Run:
    """CTranslate2 as its documentation has it: one translate_batch over everything, SentencePiece around."""
    import ctranslate2
    import sentencepiece

    from pipeline.translation.model import open_model

    model = open_model(job.model, "ctranslate2", verify=False)
    source = sentencepiece.SentencePieceProcessor(model_file=str(model.source_sentencepiece))
    target = sentencepiece.SentencePieceProcessor(model_file=str(model.target_sentencepiece))
    translator = ctranslate2.Translator(
        str(model.folder("ctranslate2")),
        device="cpu",
        compute_type=job.compute_type,
        inter_threads=job.threads,
        intra_threads=1,
    )

    def run() -> Outcome:
        results = translator.translate_batch(
            source.encode(list(job.sentences), out_type=str),
            beam_size=job.beam,
            max_batch_size=batch_sentences or job.batch_tokens,
            batch_type="examples" if batch_sentences else "tokens",
            return_scores=True,
        )
        best = [result.hypotheses[0] for result in results]
        return (
            [target.decode(tokens) for tokens in best],
            [result.scores[0] for result in results],
            [len(tokens) + 1 for tokens in best],
            [len(tokens) >= 256 for tokens in best],
        )

    return run


def through_engine(engine: str, job: Job) -> Run:
    """The engine as the pipeline uses it."""
    from pipeline.translation.engines import open_translator
    from pipeline.translation.model import open_model
    from pipeline.translation.translator import DecodingOptions, Placement

    model = open_model(job.model, engine, verify=False)
    options = DecodingOptions(beam=job.beam, compute_type=job.compute_type)
    translator = open_translator(engine, model, options, Placement("cpu", job.threads, job.batch_tokens))

    def run() -> Outcome:
        best = [result.hypotheses[0] for result in translator.translate(iter(job.sentences))]
        return (
            [one.text for one in best],
            [one.score for one in best],
            [one.tokens for one in best],
            [one.output_truncated for one in best],
        )

    return run


def through_stage(job: Job) -> Run:
    """The whole stage: shards in, distinct sentences, work directory, shards out; loads the model."""
    import pyarrow as pa

    from pipeline.configuration.resources import Resources
    from pipeline.configuration.translate import TranslateParameters
    from pipeline.shards.schema import schema_of
    from pipeline.shards.store import ShardDirectory, ShardWriter
    from pipeline.translation.model import open_model
    from pipeline.translation.translate import translate

    root = Path(tempfile.mkdtemp(prefix="paraforge-benchmark-"))
    model = open_model(job.model, "ctranslate2", verify=False)
    first: dict[str, int] = {}
    columns = {
        "source": ["benchmark"] * len(job.sentences),
        "line": range(1, len(job.sentences) + 1),
        "cs": job.sentences,
        "reference": [""] * len(job.sentences),
        "rejected": [None] * len(job.sentences),
        "first_row": [first.setdefault(text, row) for row, text in enumerate(job.sentences)],
    }
    schema = schema_of(columns)
    writer = ShardWriter(root / "ingested", schema)
    writer.write(pa.table([pa.array(columns[field.name], field.type) for field in schema], schema=schema))
    writer.close({"step": "ingest"})
    parameters = TranslateParameters(beam=job.beam, compute_type=job.compute_type)  # type: ignore[arg-type]
    resources = Resources(
        threads=job.threads, batch_tokens=job.batch_tokens, devices=["cpu"], work=root / "work"
    )

    def run() -> Outcome:
        translate(parameters, root / "ingested", model.path, root / "translated", resources)
        names = ["translation", "translation_score", "output_truncated"]
        tables = pa.concat_tables(list(ShardDirectory(root / "translated").tables(names)))
        shutil.rmtree(root)
        texts, scores, capped = (tables.column(name).to_pylist() for name in names)
        return texts, scores, [0] * len(texts), capped

    return run


WAYS: dict[str, Callable[[Job], Run]] = {
    "bare CTranslate2": bare_ctranslate2,
    "bare, 64 sentences a batch": lambda job: bare_ctranslate2(job, 64),
    "engine ctranslate2": lambda job: through_engine("ctranslate2", job),
    "stage translate": through_stage,
    "engine fairseq": lambda job: through_engine("fairseq", job),
}


def measure(job: Job) -> Measured:
    """Load the model, then translate against the clock; memory is that of the whole process."""
    run = WAYS[job.name](job)
    started, cpu = time.perf_counter(), time.process_time()
    texts, scores, tokens, capped = run()
    seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - cpu
    return Measured(seconds, cpu_seconds, peak_memory(), sum(tokens), texts, scores, capped)


def in_own_process(job: Job) -> Measured:
    """:func:`measure` in a fresh process, so that memory is its own."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(measure, job).result()


def _jobs(
    chosen: list[str],
    model: Path,
    sentences: list[str],
    compute_types: list[str],
    beam: int,
    threads: int,
    batch_tokens: int,
) -> Iterator[Job]:
    for compute_type in compute_types:
        for name in chosen:
            if name != "engine fairseq" or compute_type == "float32":
                size = batch_tokens or (1024 if name == "engine fairseq" else 512)
                yield Job(name, model, tuple(sentences), compute_type, beam, threads, size)


@app.command()
def speed(
    model: Path = typer.Option(..., help="directory of the model"),
    bitext: list[Path] = typer.Option(..., help="TSV.gz: English, Czech"),
    sentences: int = typer.Option(1000, help="sentences to translate; 0 is all"),
    beam: int = typer.Option(12),
    threads: int = typer.Option(2),
    batch_tokens: int = typer.Option(0, help="source tokens of a batch; 0 is the engine's default"),
    compute_type: list[str] = typer.Option(["float32", "int8"]),
    way: list[str] = typer.Option(list(WAYS), help="what to measure"),
    repeat: int = typer.Option(1, help="rounds; every way is measured once a round, the fastest counts"),
) -> None:
    """Sentences and target tokens a second, peak memory, BLEU and chrF of every way."""
    import sacrebleu

    references, sources = read_bitext(bitext, sentences)
    print(
        f"{hardware()}; {threads} threads, beam {beam}; {len(sources)} sentences of "
        f"{', '.join(path.name for path in bitext)}; best of {repeat}\n"
    )
    jobs = list(_jobs(way, model, sources, compute_type, beam, threads, batch_tokens))
    best: dict[int, Measured] = {}
    for _ in range(repeat):
        for number, job in enumerate(jobs):
            found = in_own_process(job)
            if number not in best or found.seconds < best[number].seconds:
                best[number] = found
    print(
        "| way | type | sentences/s | target tokens/s | sentences per CPU second | peak MiB "
        "| BLEU | chrF | same as first |"
    )
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|")
    for number, job in enumerate(jobs):
        found, count = best[number], len(sources)
        bleu = sacrebleu.corpus_bleu(found.texts, [references]).score
        chrf = sacrebleu.corpus_chrf(found.texts, [references]).score
        same = sum(one == other for one, other in zip(found.texts, best[0].texts, strict=True))
        rate = f"{found.tokens / found.seconds:.0f}" if found.tokens else ""
        print(
            f"| {job.name} | {job.compute_type} | {count / found.seconds:.1f} | {rate} | "
            f"{count / found.cpu_seconds:.1f} | {found.memory:.0f} | {bleu:.2f} | {chrf:.2f} | "
            f"{same / count:.1%} |"
        )


@app.command()
def agreement(
    model: Path = typer.Option(..., help="directory of a fairseq model, or models/nmt"),
    bitext: list[Path] = typer.Option(..., help="TSV.gz: English, Czech"),
    sentences: int = typer.Option(2000, help="sentences to translate; 0 is all"),
    beam: int = typer.Option(12),
    threads: int = typer.Option(2),
) -> None:
    """How often CTranslate2 in float32 and fairseq have the same best hypothesis and score."""
    _, sources = read_bitext(bitext, sentences)
    print(
        f"{hardware()}; {threads} threads, beam {beam}; {len(sources)} sentences of "
        f"{', '.join(path.name for path in bitext)}"
    )
    found = [
        in_own_process(Job(name, model, tuple(sources), "float32", beam, threads, 0))
        for name in ("engine ctranslate2", "engine fairseq")
    ]
    one, other = found
    free = [n for n in range(len(sources)) if not one.capped[n] and not other.capped[n]]
    same = [n for n in free if one.texts[n] == other.texts[n]]
    differences = [abs(one.scores[n] - other.scores[n]) for n in same]
    print(
        f"hit no cap: {len(free)}; same best hypothesis: {len(same)} ({len(same) / len(free):.2%}); "
        f"largest difference of their scores: {max(differences):.1e}"
    )
    for n in free:
        if one.texts[n] != other.texts[n]:
            print(
                f"  {sources[n]}\n    CTranslate2 {one.scores[n]:.6f} {one.texts[n]}"
                f"\n    fairseq     {other.scores[n]:.6f} {other.texts[n]}"
            )


if __name__ == "__main__":
    app()
