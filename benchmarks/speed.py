"""Measures rows per second of every stage in about five minutes, next to this machine's last run: ``make
bench``.

It needs the sample's finished corpus and model (``make corpus``), and no other data. The stages run over many
distinct pairs that are made from the corpus' own, the translation over distinct sentences of its bitext, and
over the same ones CTranslate2 alone. The model has seen them, so BLEU only shows that nothing has changed.
"""

import gzip
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import typer

from benchmarks.bitext import write_ingested
from benchmarks.distinct_pairs import DistinctPairs
from benchmarks.hardware import hardware, peak_memory
from benchmarks.pipeline import DVC, read_metrics, watch
from benchmarks.results import append, directory, read
from benchmarks.whole import new_project
from paraforge.base.shards.resources import Resources, available_cores
from paraforge.base.shards.store import ShardDirectory
from paraforge.base.text.units import load_processor
from paraforge.translation.models.model import open_model
from paraforge.translation.stage.parameters import TranslateParameters
from paraforge.translation.stage.translate import translate

TASK = "speed"
STAGES = ("ingest", "score", "select", "publish", "statistics", "lexicon", "embeddings")
"""The stages over pairs whose speed is recorded."""
BEAM = 12
_SLOWER = 0.9


def run_stages(project: Path, place: Path, pairs: int) -> dict[str, dict[str, float | None]]:
    """Run all stages over pairs made from a project's corpus; return the figures of each of STAGES."""
    table = ds.dataset(project / "data" / "corpus", format="parquet").to_table(["reference", "translation"])
    made = DistinctPairs(list(zip(*(column.to_pylist() for column in table.columns), strict=True)))
    (place / "pairs").mkdir(parents=True)
    with gzip.open(place / "pairs" / "pairs.tsv.gz", "wt", 1, encoding="utf-8") as file:
        for texts in made.blocks(pairs):
            rows = zip(*(side.to_pylist() for side in texts), strict=True)
            file.writelines("\t".join(row) + "\n" for row in rows)
    new_project(place / "project", place / "pairs", bitext=False, workers=available_cores())
    seen, _ = watch([sys.executable, "-m", DVC, "repro", "--quiet"], place / "project")
    metrics = read_metrics(place / "project")
    quality = {
        "score": {"auc": metrics["score"]["verdicts"]["paraphrase_score"]["separation"]["value"]},
        "select": {"kept": metrics["select"]["kept"]},
    }
    return {
        name: {
            "rows_per_second": pairs / seen[name].seconds,
            "rows_per_cpu_second": pairs / seen[name].cpu_seconds,
            "peak_mib": seen[name].peak_bytes / 2**20,
            **quality.get(name, {}),
        }
        for name in STAGES
    }


def run_translation(project: Path, place: Path, sentences: int) -> dict[str, dict[str, float | None]]:
    """Translate sentences of a project's bitext by the stage and by CTranslate2 alone, and judge both."""
    model = (project / "models" / "nmt").resolve()
    tables = ShardDirectory(project / "data" / "ingested").tables(["source_text", "reference"])
    distinct = {row["source_text"]: row["reference"] for table in tables for row in table.to_pylist()}
    sources, references = list(distinct)[:sentences], list(distinct.values())[:sentences]
    threads = available_cores()
    translate_bare(model, sources[:8], threads)
    run_stage(model, place / "first", sources[:8], threads)
    bare = translate_bare(model, sources, threads)
    stage = run_stage(model, place / "all", sources, threads)
    return {"translate": judged(*stage, references), "bare CTranslate2": judged(*bare, references)}


def run_stage(model: Path, place: Path, sources: list[str], threads: int) -> tuple[list[str], float]:
    """Translate with the stage, without memory, in this process; return the texts and the seconds."""
    ingested = write_ingested(place / "ingested", sources)
    parameters = TranslateParameters.model_validate(
        {"engine": "ctranslate2", "beam": BEAM, "compute_type": "float32", "memory": False}
    )
    resources = Resources(work=place / "work", threads=threads, devices=["cpu"])
    started = time.perf_counter()
    translate(parameters, ingested, model, place / "translated", resources)
    seconds = time.perf_counter() - started
    tables = ShardDirectory(place / "translated").tables(["translation"])
    return [text or "" for table in tables for text in table["translation"].to_pylist()], seconds


def translate_bare(model: Path, sources: list[str], threads: int) -> tuple[list[str], float]:
    """Translate with CTranslate2 and sentencepiece and nothing else; return the texts and the seconds."""
    import ctranslate2

    opened = open_model(model, "ctranslate2", verify=False)
    started = time.perf_counter()
    coders = load_processor(opened.source_sentencepiece), load_processor(opened.target_sentencepiece)
    translator = ctranslate2.Translator(
        str(opened.folder("ctranslate2")), compute_type="float32", inter_threads=threads, intra_threads=1
    )
    found = translator.translate_batch(
        coders[0].encode(sources, out_type=str), beam_size=BEAM, max_batch_size=1024, batch_type="tokens"
    )
    texts = coders[1].decode([one.hypotheses[0] for one in found])
    return texts, time.perf_counter() - started


def judged(texts: list[str], seconds: float, references: list[str]) -> dict[str, float | None]:
    """Return speed and BLEU of translations that took these seconds, including the start."""
    import sacrebleu

    return {
        "rows_per_second": len(texts) / seconds,
        "bleu": sacrebleu.corpus_bleu(texts, [references]).score,
        "peak_mib": peak_memory(),
    }


def last_rate(name: str, configuration: dict[str, Any]) -> tuple[float, str] | None:
    """Return rows per second and date of this machine's last run of the same work, if recorded."""
    path = directory() / f"{TASK}.jsonl"
    wanted = {"name": name, **configuration}
    for line in reversed(read(path) if path.is_file() else []):
        if line.hardware == hardware() and line.configuration == wanted:
            return line.figures["rows_per_second"], line.date or "earlier"
    return None


def main(
    project: Path = typer.Argument(Path(), help="a checkout after 'make corpus'"),
    pairs: int = typer.Option(200_000, help="pairs for the stages after the translation"),
    sentences: int = typer.Option(2000, help="sentences to translate"),
) -> None:
    """Measure, record and compare every stage. Other work on the machine makes every figure worse."""
    if not all((project / name).is_dir() for name in ("data/ingested", "data/corpus", "models/nmt")):
        sys.exit(f"{project} has no corpus with its model: run 'make corpus' first")
    print(hardware(), flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        figures = run_translation(project, place, sentences)
        figures |= run_stages(project, place, pairs)
    for name, found in figures.items():
        work: dict[str, Any] = {"rows": sentences if "bleu" in found else pairs}
        before = last_rate(name, work)
        line = append(TASK, name, found, command="make bench", **work)
        if before is not None:
            share = line.figures["rows_per_second"] / before[0]
            print(f"  {share:.2f} of the rate of {before[1]}{' (slower)' if share < _SLOWER else ''}")


if __name__ == "__main__":
    typer.run(main)
