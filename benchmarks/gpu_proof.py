"""Measures how well translation and training work on a GPU, for the first GPU that is available.

python -m benchmarks.gpu_proof --model models/nmt --text newstest.en-cs.tsv.gz
python -m benchmarks.gpu_proof --model models/nmt --text newstest.en-cs.tsv.gz --device cpu --small

A call takes nine minutes at most (``--minutes``), and the next one does the parts that have no line in
results/gpu_proof.jsonl yet: 46 minutes in all at most. A part that fails or takes too long has a line too.
"""

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import count, islice, product
from pathlib import Path
from typing import Any

import pyarrow as pa
import typer

from benchmarks.bitext import read_bitext, write_ingested
from benchmarks.command_line import start
from benchmarks.device import Watch, name_of
from benchmarks.hardware import answer_of, hardware
from benchmarks.results import append, directory, latest, read
from benchmarks.transformer_base import Size, speed, write_random_model
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.store import ShardDirectory
from paraforge.embeddings.trainer.data import TrainingData
from paraforge.embeddings.trainer.parameters import ModelParameters, PairFileParameters
from paraforge.embeddings.trainer.train_model import train_model
from paraforge.intake.bitext.ingest import ingest
from paraforge.intake.bitext.parameters import IngestParameters
from paraforge.translation.decoding.device import device_of
from paraforge.translation.decoding.translator import DecodingOptions, Hypotheses, Hypothesis, Placement
from paraforge.translation.engines import open_translator
from paraforge.translation.models.model import open_model
from paraforge.translation.stage.parameters import TranslateParameters
from paraforge.translation.stage.sentences import EngineChoice, Workplace, build_translation
from paraforge.translation.stage.translate import translate
from paraforge.translation.training.parameters import NmtParameters
from paraforge.translation.training.training import train_model as train_translation

TASK = "gpu_proof"
BEAM = 12
_JUDGED = 1000  # sentences that a CPU translates too, and those that BLEU and chrF are of
_LONG = 300  # characters of a text for a model with random weights
_FAILED = Hypothesis("", 0.0, 0)
Figures = dict[str, float | None]


@dataclass(frozen=True)
class Setting:
    """What all parts receive.

    model: directory of a pretrained model. text: TSV.gz, English and foreign side last.
    device: cpu or cuda:N.
    small: few sentences, to see that everything runs.
    """

    model: str
    text: str
    device: str
    small: bool

    @property
    def on_cpu(self) -> bool:
        """Whether there is no GPU."""
        return self.device == "cpu"

    def size(self, full: int, small: int) -> int:
        """One of two sizes."""
        return small if self.small else full

    def bitext(self, full: int, small: int) -> tuple[list[str], list[str]]:
        """Return references and one of two numbers of sources; a shorter text is repeated with numbers."""
        number = self.size(full, small)
        references, sources = read_bitext([Path(self.text)], number)
        longer = (f"{source} {turn}" for turn in count(1) for source in sources)
        return references, [*sources, *islice(longer, number - len(sources))]

    def options(self, engine: str, compute_type: str, **changes: Any) -> DecodingOptions:
        """Return options for a search; a CPU uses bfloat16 or float32 instead of float16."""
        if self.on_cpu and compute_type != "float32":
            compute_type = "bfloat16" if engine == "torch" else "float32"
        return DecodingOptions(**{"beam": BEAM, "compute_type": compute_type, **changes})

    def open(
        self, engine: str, compute_type: str, graphs: bool = False, batch_tokens: int = 0, **changes: Any
    ) -> Any:
        """Open an engine and load the model."""
        model = open_model(Path(self.model), verify=False)
        threads = (os.cpu_count() or 1) if self.on_cpu else 1
        placement = Placement(self.device, threads, batch_tokens, graphs)
        return open_translator(engine, model, self.options(engine, compute_type, **changes), placement)

    def named(self) -> dict[str, Any]:
        """What identifies the lines of a machine and model."""
        return {"device": name_of(self.device), "small": self.small, "model": Path(self.model).name}


def _best(results: Sequence[Hypotheses]) -> list[Hypothesis]:
    return [result.hypotheses[0] if result.hypotheses else _FAILED for result in results]


def _failed(results: Sequence[Hypotheses]) -> int:
    return sum(result.failed is not None for result in results)


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def translation(setting: Setting, **given: Any) -> Figures:
    """Measure speed, idle share and quality of a way to translate."""
    import sacrebleu

    references, sources = setting.bitext(20_000, 24)
    references = references[:_JUDGED]
    translator = setting.open(**given)
    with Watch(setting.device) as first:  # kernels are chosen, graphs are recorded
        list(translator.translate(sources))
    with Watch(setting.device) as watch:
        results = list(translator.translate(sources))
    best = _best(results)
    judged = [hypothesis.text for hypothesis in best[: len(references)]]
    return {
        "sentences_per_second": len(sources) / watch.seconds,
        "target_tokens_per_second": sum(hypothesis.tokens for hypothesis in best) / watch.seconds,
        "first_seconds": first.seconds,
        "failed_sentences": _failed(results),
        "idle_percent": _percent(watch.idle),
        "device_gib": watch.gib,
        "bleu": sacrebleu.corpus_bleu(judged, [references]).score,
        "chrf": sacrebleu.corpus_chrf(judged, [references]).score,
    }


def transformer_base(setting: Setting, beam: int = BEAM, **given: Any) -> Figures:
    """Measure speed with the random weights of a transformer-base."""
    _, sources = setting.bitext(12_000, 12)
    # Longer than all lengths, and not by much: what is cut is tokenized too.
    texts = [" ".join(sources[at : at + 12])[:_LONG] for at in range(len(sources))]
    size = Size(layers=2, width=32, feed_forward=64, heads=4) if setting.small else Size()
    pattern = open_model(Path(setting.model), verify=False)
    with tempfile.TemporaryDirectory() as temporary:
        model = write_random_model(pattern, Path(temporary) / "model", size)
        open_engine = partial(replace(setting, model=str(model)).open, beam=beam, **given)
        return speed(open_engine, texts, setting.device)


def float32(setting: Setting) -> Figures:
    """Compare the first sentences in float32 with the same on this CPU: best hypotheses, and their scores."""
    _, sources = setting.bitext(_JUDGED, 24)
    found, expected = (
        _best(list(variant.open("torch", "float32").translate(sources)))
        for variant in (setting, replace(setting, device="cpu"))
    )
    return agreement(found, expected)


def agreement(found: Sequence[Hypothesis], expected: Sequence[Hypothesis]) -> Figures:
    """Return how many hypotheses have the expected text, and how far the scores of these differ."""
    pairs = zip(found, expected, strict=True)
    same = [
        abs(hypothesis.score - other.score) for hypothesis, other in pairs if hypothesis.text == other.text
    ]
    return {
        "compared_sentences": len(found),
        "as_cpu_percent": 100 * len(same) / len(found),
        "largest_score_difference": max(same, default=None),
    }


def two_workers(setting: Setting) -> Figures:
    """Translate with one process and with two on one device: the bytes are the same."""
    _, sources = setting.bitext(16_000, 48)
    options = setting.options("ctranslate2", "float16").model_dump()
    parameters = TranslateParameters(**options, sentences_per_task=setting.size(1_000, 6))
    figures: Figures = {}
    digests = []
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        write_ingested(root / "ingested", sources)
        for workers in (1, 2):
            resources = Resources(
                devices=["cpu"] if setting.on_cpu else [setting.device] * workers,
                workers=workers,
                threads=1,
                in_process_rows=0,
                work=root / f"work{workers}",
            )
            output = root / f"translated{workers}"
            report = translate(parameters, root / "ingested", Path(setting.model), output, resources)
            figures[f"failed_sentences_{workers}"] = sum(report.failed.values())
            figures[f"seconds_{workers}"] = report.seconds
            digests.append([record.sha256 for record in ShardDirectory(output).records])
    return {**figures, "same_bytes": int(digests[0] == digests[1])}


def training(setting: Setting) -> Figures:
    """Measure 300 updates of a translation model of 3+3 layers on the sample bitext."""
    updates, width = setting.size(300, 4), setting.size(512, 16)
    source = {"name": "sample", "format": "sample", "pairs": setting.size(20_000, 400)}
    parameters = NmtParameters.model_validate(
        {
            "vocabulary": {"size": setting.size(8_000, 300)},
            "architecture": {
                "encoder_layers": 3,
                "decoder_layers": 3,
                "width": width,
                "feed_forward": 4 * width,
                "heads": 4,
            },
            "training": {
                "batch_tokens": setting.size(16_384, 512),
                "accumulate": 1,
                "precision": "float32" if setting.on_cpu else "bfloat16",
                "maximum_updates": updates,
                "warmup_updates": updates // 2,
                "learning_rate": 0.002,
            },
            "validation": {"held_out": 50, "every_updates": updates // 2, "beam": 1},
        }
    )
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        resources = Resources(devices=[setting.device], threads=setting.size(0, 1), work=place / "work")
        ingest(IngestParameters.model_validate({"sources": [source]}), place / "ingested", resources)
        result = train_translation(
            ShardDirectory(place / "ingested"), place / "training", parameters, resources
        )
    first, last = result.history[0], result.history[-1]
    tokens, seconds = (last[name] - first[name] for name in ("target_tokens", "seconds"))
    return {
        "target_tokens_per_second": tokens / seconds,
        "validation_loss_bits": last["valid_loss"],
        "bleu": last["bleu"],
    }


def embeddings(setting: Setting) -> Figures:
    """Measure the training of two sentence encoders of 300 dimensions on the bitext's two sides."""
    pairs = list(zip(*setting.bitext(20_000, 400), strict=False))
    figures: Figures = {}
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        file = place / "pairs.tsv"
        file.write_text("".join(f"{left}\t{right}\n" for left, right in pairs), encoding="utf-8")
        data = TrainingData([PairFileParameters(path=str(file))])
        for kind, epochs in (("average", setting.size(10, 1)), ("lstm", setting.size(3, 1))):
            parameters = ModelParameters.model_validate(
                {"encoder": {"kind": kind}, "training": {"epochs": epochs, "mega_batch": 20}}
            )
            resources = Resources(threads=setting.size(0, 1), work=place / "work")
            report = train_model(parameters, data, place / kind, resources, device=setting.device)
            figures[f"{kind}_pairs_per_second"] = report.pairs_per_second
            figures[f"{kind}_last_loss"] = report.history[-1]["loss"]
    return figures


def tasks(setting: Setting, engine: str, size: int, at_once: int) -> Figures:
    """Run tasks like a worker, one or two at a time: speed, and the share of time in which the device waits.

    The beam is narrow: the faster the search, the more a gap shows.
    """
    _, sources = setting.bitext(64_000, 48)
    size = min(size, len(sources) // 2)
    kind = "bfloat16" if engine == "torch" else "float16"
    options = setting.options(engine, kind, beam=4, maximum_target_tokens=64)
    model = Path(setting.model)
    choice = EngineChoice(engine, options, {}, open_model(model).fingerprint, model)
    translate = build_translation(choice, Workplace(1, (setting.device,), 1, 0))
    tables = [pa.table({"source_text": sources[at : at + size]}) for at in range(0, len(sources), size)]
    translate(tables[0].slice(0, setting.size(4_000, 4)))
    with Watch(setting.device) as watch, ThreadPoolExecutor(at_once) as pool:
        found = list(pool.map(translate, tables))
    return {
        "sentences_per_second": len(sources) / watch.seconds,
        "idle_percent": _percent(watch.idle),
        "failed_sentences": sum(len(table) - table.column("failed").null_count for table in found),
    }


_TORCH: dict[str, Any] = {"engine": "torch"}
_BFLOAT16 = {**_TORCH, "compute_type": "bfloat16"}
_GRAPHS = {**_BFLOAT16, "graphs": True}
_FLOAT16: dict[str, Any] = {"engine": "ctranslate2", "compute_type": "float16"}
_INT8 = {**_FLOAT16, "compute_type": "int8_float16"}
# What measures a part, and the most seconds that it may take; what matters most comes first.
PARTS: dict[str, tuple[Callable[[Setting], Figures], int]] = {
    "float32": (float32, 180),
    "transformer-base, bfloat16, graphs": (partial(transformer_base, **_GRAPHS), 60),
    "transformer-base, bfloat16": (partial(transformer_base, **_BFLOAT16), 60),
    "transformer-base, CTranslate2 float16": (partial(transformer_base, **_FLOAT16), 90),
    "transformer-base, CTranslate2 int8_float16": (partial(transformer_base, **_INT8), 90),
    "transformer-base, bfloat16, graphs, beam 4": (partial(transformer_base, **_GRAPHS, beam=4), 60),
    "transformer-base, CTranslate2 float16, beam 4": (partial(transformer_base, **_FLOAT16, beam=4), 60),
    "transformer-base, 8192 tokens": (partial(transformer_base, **_GRAPHS, batch_tokens=8_192), 60),
    "transformer-base, 131072 tokens": (partial(transformer_base, **_GRAPHS, batch_tokens=131_072), 60),
    "bfloat16, graphs": (partial(translation, **_GRAPHS), 200),
    "bfloat16": (partial(translation, **_BFLOAT16), 200),
    "float16": (partial(translation, **_TORCH, compute_type="float16"), 160),
    "CTranslate2 float16": (partial(translation, **_FLOAT16), 160),
    "CTranslate2 int8_float16": (partial(translation, **_INT8), 160),
    "two workers": (two_workers, 180),
    "training": (training, 220),
    "embeddings": (embeddings, 120),
}
for _engine, _size, _at_once in product(("torch", "ctranslate2"), (4_000, 32_000), (1, 2)):
    _measure = partial(tasks, engine=_engine, size=_size, at_once=_at_once)
    PARTS[f"tasks of {_size}, {_at_once} at once, {_engine}"] = (_measure, 70)


def worker() -> None:
    """Read a setting and a part's name from standard input, and write its figures to standard output."""
    values, name = json.loads(sys.stdin.read())
    figures = PARTS[name][0](Setting(**values))
    sys.stdout.write(f"\n{json.dumps(figures)}\n")


def run(
    setting: Setting,
    seconds: float,
    only: Sequence[str] = (),
    measure: Callable[[str, Any, float], dict[str, Any]] = answer_of,
) -> list[str]:
    """Measure and record the parts that are not recorded yet, or ``only`` these again.

    A part that may take longer than what is left of ``seconds`` is not begun. Returns the names of those.
    """
    ends = time.monotonic() + seconds
    path = directory() / f"{TASK}.jsonl"
    named = setting.named()
    lines = latest(read(path)) if path.is_file() and not only else []
    done = {line.configuration["name"] for line in lines if named.items() <= line.configuration.items()}
    left = []
    for name in only or [name for name in PARTS if name not in done]:
        started, limit = time.monotonic(), PARTS[name][1]
        if started + limit > ends:
            left.append(name)
            continue
        # In a process of its own: nothing that happens to the device there is left behind.
        found = measure("benchmarks.gpu_proof", [asdict(setting), name], limit)
        if note := found.pop("failed", None):
            typer.echo(f"{name}: {note}", err=True)
            found["failed"] = 1
        append(TASK, name, {**found, "part_seconds": time.monotonic() - started}, note=note, **named)
    return left


def main(
    model: Path = typer.Option(..., exists=True, help="directory of a pretrained model"),
    text: Path = typer.Option(..., exists=True, help="TSV.gz; its last two columns are English and foreign"),
    device: str = typer.Option("cuda:0", help="cuda:N, or cpu to try the script"),
    small: bool = typer.Option(False, help="few sentences: whether everything runs, not how fast"),
    minutes: float = typer.Option(9, help="of this call; the next one does what is left"),
    only: list[str] = typer.Option([], help="measure this part again"),
) -> None:
    """Measure what has not been measured on this device. Exit code 3: another call has to continue."""
    if unknown := sorted(set(only) - set(PARTS)):
        raise typer.BadParameter(f"there is no part {unknown[0]}; there are {'; '.join(PARTS)}")
    given = Setting(str(model.resolve()), str(text.resolve()), device, small)
    device_of(Placement(device))
    print(f"{hardware()}; {given.named()['device']}")
    if left := run(given, 60 * minutes, only):
        typer.echo(f"left for another call: {'; '.join(left)}", err=True)
        raise typer.Exit(3)


if __name__ == "__main__":
    start(main)
