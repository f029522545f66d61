"""Whether and how well translation and training run on a GPU: all that has to be seen on the first one.

python -m benchmarks.gpu_proof --model models/nmt --text newstest.en-cs.tsv.gz
python -m benchmarks.gpu_proof --model models/nmt --text newstest.en-cs.tsv.gz --device cpu --small
python -m benchmarks.gpu_proof --model ... --text ... --write-expected    (what a CPU gives, to compare with)

A call takes nine minutes at most (``--minutes``), and the next one does the parts that have no line in
results/gpu_proof.jsonl yet: 37 minutes in all. A part that fails or takes too long has a line too.
"""

import dataclasses
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import Any
from unittest import mock

import typer

from benchmarks.bitext import read_bitext
from benchmarks.device import Watch, ceilings, demands, name_of
from benchmarks.hardware import hardware
from benchmarks.results import ROOT, append, directory, latest, read
from benchmarks.training import parameters_of, sample, trained
from benchmarks.ways import write_ingested
from paraforge.base.errors import InputError
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.store import ShardDirectory
from paraforge.translation.decoding.batching import SourceTokens
from paraforge.translation.decoding.faults import limit_of
from paraforge.translation.decoding.torch_device import device_of
from paraforge.translation.decoding.translator import DecodingOptions, Hypotheses, Placement
from paraforge.translation.engines import open_translator
from paraforge.translation.models.importing import usable_model
from paraforge.translation.models.model import files_fingerprint, open_model

TASK = "gpu_proof"
EXPECTED = ROOT / "benchmarks" / "gpu_expected.json"
BEAM = 12
_JUDGED = 1000  # sentences of EXPECTED, and those that BLEU and chrF are of
Figures = dict[str, float | None]


@dataclasses.dataclass(frozen=True)
class Setting:
    """What all parts are given.

    model: directory of a ready model. text: TSV.gz, English and foreign side last. device: cpu or cuda:N.
    small: few sentences, to see that everything runs. expected: file of a CPU's best hypotheses.
    """

    model: str
    text: str
    device: str
    small: bool
    expected: str

    def size(self, full: int, small: int) -> int:
        """One of two sizes."""
        return small if self.small else full

    def sentences(self, number: int) -> tuple[list[str], list[str]]:
        """References and sources. Where the text has fewer, they come again, and are numbered."""
        references, sources = read_bitext([Path(self.text)], number)
        if not sources:
            raise InputError("no sentences", Path(self.text))
        longer = (f"{source} {turn}" for turn in count(1) for source in sources)
        return references, [*sources, *islice(longer, number - len(sources))]

    def compute_type(self, wanted: str, engine: str) -> str:
        """A type of a GPU, or what the CPU has in its place."""
        if self.device != "cpu" or (wanted == "bfloat16" and engine == "torch"):
            return wanted
        return "bfloat16" if engine == "torch" else "float32"

    def open(
        self, engine: str, wanted: str, graphs: bool = False, batch_tokens: int = 0, **options: Any
    ) -> Any:
        """An engine with the model, loaded."""
        kind = wanted if wanted == "float32" else self.compute_type(wanted, engine)
        asked = DecodingOptions(**{"beam": BEAM, "compute_type": kind, **options})
        model = open_model(usable_model(self.model, engine), engine, verify=False)
        return open_translator(engine, model, asked, Placement(self.device, 1, batch_tokens, graphs))

    def fingerprint(self) -> str:
        """SHA-256 of the model's files."""
        return files_fingerprint(Path(self.model).iterdir())

    def named(self) -> dict[str, Any]:
        """What tells the lines of one machine and model from others."""
        return {"device": name_of(self.device), "small": self.small, "model": Path(self.model).name}


def _failed(results: Sequence[Hypotheses]) -> int:
    return sum(one.failed is not None for one in results)


def _differing(results: Sequence[Hypotheses], others: Sequence[Hypotheses]) -> int:
    """Sentences whose best hypothesis has another text, or another score in its last bit."""
    best = [[(h.text, repr(h.score)) for h in one.hypotheses[:1]] for one in results]
    other = [[(h.text, repr(h.score)) for h in one.hypotheses[:1]] for one in others]
    return sum(one != two for one, two in zip(best, other, strict=True))


def peaks(setting: Setting) -> Figures:
    """What the device reaches: operations a second of a large product, bytes a second of a large copy."""
    arithmetic, bandwidth = ceilings(setting.device, setting.size(8192, 256))
    return {"tera_operations_per_second": arithmetic / 1e12, "terabytes_per_second": bandwidth / 1e12}


def translation(setting: Setting, engine: str, wanted: str, graphs: bool = False) -> Figures:
    """Speed, idle share and quality of a way of translating, and how often a CPU agrees."""
    import sacrebleu

    references, sources = setting.sentences(setting.size(20_000, 24))
    translator = setting.open(engine, wanted, graphs)
    with Watch(setting.device) as first:  # kernels are chosen, graphs are recorded
        list(translator.translate(sources))
    with Watch(setting.device) as watch:
        results = list(translator.translate(sources))
    best = [one.hypotheses[0] for one in results if one.hypotheses]
    tokens = sum(one.tokens for one in best)
    references = references[:_JUDGED]
    judged = [one.hypotheses[0].text if one.hypotheses else "" for one in results[: len(references)]]
    figures: Figures = {
        "sentences_per_second": len(sources) / watch.seconds,
        "target_tokens_per_second": tokens / watch.seconds,
        "first_seconds": first.seconds,
        "failed_sentences": _failed(results),
        "idle_percent": None if watch.idle is None else 100 * watch.idle,
        "joules_per_sentence": None if watch.watts is None else watch.watts * watch.seconds / len(sources),
        "device_gib": watch.gib,
        "bleu": sacrebleu.corpus_bleu(judged, [references]).score,
        "chrf": sacrebleu.corpus_chrf(judged, [references]).score,
        **agreement(setting, sources, results),
    }
    if not setting.small and (peak := _done(setting).get("peaks")):
        work = demands(Path(usable_model(setting.model, "torch")), BEAM, len(sources), tokens)
        names = ("tera_operations_per_second", "terabytes_per_second")
        for name, demand in zip(names, work, strict=True):
            if name in peak:
                figures[f"{name}_percent"] = 100 * demand / 1e12 / watch.seconds / peak[name]
    return figures


def agreement(setting: Setting, sources: Sequence[str], results: Sequence[Hypotheses]) -> Figures:
    """How many of the sentences that a CPU translated too have its best hypothesis, and by how much scores of
    the same hypothesis differ; nothing where the file has none of them, or is of another model."""
    expected = Path(setting.expected)
    content = json.loads(expected.read_text()) if expected.is_file() else {}
    known: dict[str, tuple[str, float]] = (
        content["best"] if content.get("model") == setting.fingerprint() else {}
    )
    pairs = [
        (known[_digest(source)], one.hypotheses[0])
        for source, one in zip(sources, results, strict=True)
        if _digest(source) in known and one.hypotheses
    ]
    same = [abs(score - one.score) for (text, score), one in pairs if text == _digest(one.text)]
    if not pairs:
        return {}
    return {
        "compared_sentences": len(pairs),
        "as_cpu_percent": 100 * len(same) / len(pairs),
        "largest_score_difference": max(same, default=None),
    }


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def write_expected(setting: Setting) -> None:
    """Write best hypotheses of the first sentences in float32 on this CPU, as hashes with scores."""
    _, sources = setting.sentences(setting.size(_JUDGED, 24))
    found = dataclasses.replace(setting, device="cpu").open("ctranslate2", "float32").translate(sources)
    pairs = [(source, one.hypotheses[0]) for source, one in zip(sources, found, strict=True)]
    content = {
        "model": setting.fingerprint(),
        "best": {_digest(source): [_digest(best.text), round(best.score, 6)] for source, best in pairs},
    }
    text = json.dumps(content).replace("], ", "],\n").replace("{", "{\n")
    Path(setting.expected).write_text(text + "\n", encoding="utf-8")


def graphs_equal(setting: Setting) -> Figures:
    """Recorded steps against the same steps as they are, with the same shapes, bit for bit."""
    from paraforge.translation.torch_search import graphs

    _, sources = setting.sentences(setting.size(4_000, 24))
    replaying = setting.open("torch", "bfloat16", graphs=True)
    for _ in range(2):
        found = list(replaying.translate(sources))
    with mock.patch.object(graphs, "_MOST_GRAPHS", 0):
        eager = list(setting.open("torch", "bfloat16", graphs=True).translate(sources))
    return {
        "sentences": len(sources),
        "differing_sentences": _differing(found, eager),
        "failed_sentences": _failed(found),
        "replayed_steps": sum(one.replayed for one in replaying._recorded),
        "failed_recordings": replaying.counts["unrecorded"],
    }


def shapes(setting: Setting) -> Figures:
    """Memory that is reserved for each of 256 shapes of batches when it is new, and when it comes again."""
    import numpy as np
    import psutil
    import torch

    _, sources = setting.sentences(setting.size(1_024, 8))
    translator = setting.open("torch", "bfloat16", graphs=True, maximum_target_tokens=setting.size(32, 4))
    tokens = [token for one in translator.encode(sources) for token in one.tokens]
    rows, columns = setting.size(16, 2), setting.size(16, 2)
    reserved: list[float] = []
    for _ in range(2):
        for row, column in ((row, column) for row in range(rows) for column in range(columns)):
            length = 8 * (column + 1) - 1
            batch = [
                SourceTokens(sources[n], tokens[n : n + length])
                for n in range(setting.size(48, 2) * (row + 1))
            ]
            translator.submit(batch)()
            held = (
                torch.cuda.memory_reserved()
                if setting.device != "cpu"
                else psutil.Process().memory_info().rss
            )
            reserved.append(held / 2**20)
    half = len(reserved) // 2
    slopes = [np.polyfit(range(half), part, 1)[0] for part in (reserved[:half], reserved[half:])]
    return {
        "shapes": half,
        "mib_per_new_shape": float(slopes[0]),
        "mib_per_known_shape": float(slopes[1]),
        "reserved_mib": reserved[-1],
    }


def memory_fraction(setting: Setting, engine: str) -> Figures:
    """A tenth of the device's memory and batches that do not fit: they are halved, once, and none fails."""
    import torch

    _, sources = setting.sentences(setting.size(8_000, 24))
    held = None
    if setting.device != "cpu" and engine == "torch":
        torch.cuda.set_per_process_memory_fraction(0.1, setting.device)
    elif setting.device != "cpu":  # which has an allocator of its own
        free, total = torch.cuda.mem_get_info(setting.device)
        held = torch.empty(max(0, free - total // 10), dtype=torch.uint8, device=setting.device)
    translator = setting.open(engine, "bfloat16" if engine == "torch" else "float16", batch_tokens=262_144)
    found = [list(translator.translate(sources))]
    halvings = limit_of(translator).halvings
    found.append(list(translator.translate(sources)))
    del held
    return {
        "failed_sentences": sum(map(_failed, found)),
        "halvings": halvings,
        "halvings_again": limit_of(translator).halvings - halvings,
        "differing_texts": sum(
            one.hypotheses[0].text != two.hypotheses[0].text for one, two in zip(*found, strict=True)
        ),
    }


def overflow(setting: Setting) -> Figures:
    """Weights by which a feed-forward block exceeds half precision, though its function is the same: every
    sentence that gives no number is computed again in float32."""
    from paraforge.translation.torch_search import weights

    _, sources = setting.sentences(setting.size(1_000, 24))
    plain = list(setting.open("torch", "float32").translate(sources))
    load = weights.load_weights

    def scaled(file: Any, device: Any, dtype: Any) -> Any:
        loaded = load(file, device, dtype)
        # A power of two, which rounds nothing; bfloat16 has the range of float32.
        power = {"torch.float16": 16, "torch.bfloat16": 127, "torch.float32": 0}[str(dtype)]
        block = loaded.decoder[0].feed_forward
        block.inner.weight.mul_(2.0**power)
        if block.inner.bias is not None:
            block.inner.bias.mul_(2.0**power)
        block.outer.weight.mul_(2.0**-power)
        return loaded

    with mock.patch.object(weights, "load_weights", scaled):
        translator = setting.open("torch", "float16")
        found = list(translator.translate(sources))
    return {
        "sentences": len(sources),
        "recomputed_sentences": translator.counts["recomputed_sentences"],
        "failed_sentences": _failed(found),
        "non_finite_sentences": sum(one.hypotheses[0].non_finite for one in found if one.hypotheses),
        "texts_unlike_float32": sum(
            one.hypotheses[0].text != two.hypotheses[0].text for one, two in zip(found, plain, strict=True)
        ),
    }


def two_workers(setting: Setting) -> Figures:
    """Two processes translate on one device, one of which is killed: the same bytes as without."""
    import psutil

    from paraforge.translation.stage.parameters import TranslateParameters
    from paraforge.translation.stage.translate import translate

    _, sources = setting.sentences(setting.size(16_000, 48))
    kind = setting.compute_type("float16", "ctranslate2")
    parameters = TranslateParameters.model_validate(
        {"beam": BEAM, "compute_type": kind, "sentences_per_task": setting.size(1_000, 6)}
    )
    model = Path(usable_model(setting.model, "ctranslate2"))
    killed: list[int] = []

    def kill(work: Path, over: threading.Event) -> None:
        """Kill the child that has worked most, when a task is finished."""
        while not over.wait(0.02):
            if next(work.rglob("translate-sentences/*.parquet"), None):
                children = psutil.Process().children(recursive=True)
                chosen = max(children, key=lambda child: child.cpu_times().user)
                chosen.kill()
                killed.append(chosen.pid)
                return

    digests, failed, seconds = [], 0, []
    with tempfile.TemporaryDirectory() as temporary:
        write_ingested(Path(temporary) / "ingested", sources)
        for disturbed in (False, True):
            root = Path(temporary) / str(disturbed)
            resources = Resources(
                devices=[setting.device] * 2 if setting.device != "cpu" else ["cpu"],
                workers=2,
                threads=1,
                in_process_rows=0,
                work=root / "work",
            )
            over = threading.Event()
            killer = threading.Thread(target=kill, args=(root / "work", over))
            if disturbed:
                killer.start()
            started = time.perf_counter()
            report = translate(
                parameters, Path(temporary) / "ingested", model, root / "translated", resources
            )
            seconds.append(time.perf_counter() - started)
            over.set()
            failed += sum(report.failed.values())
            digests.append([record.sha256 for record in ShardDirectory(root / "translated").records])
            if disturbed:
                killer.join()
    return {
        "killed": len(killed),
        "failed_sentences": failed,
        "same_bytes": int(digests[0] == digests[1]),
        "undisturbed_seconds": seconds[0],
        "disturbed_seconds": seconds[1],
    }


def training(setting: Setting) -> Figures:
    """300 updates of a translation model, on the sample bitext."""
    resources = Resources(devices=[setting.device], threads=setting.size(0, 1))
    with tempfile.TemporaryDirectory() as temporary:
        resources = resources.model_copy(update={"work": Path(temporary) / "work"})
        bitext = sample(Path(temporary) / "ingested", resources, setting.size(20_000, 400))
        parameters = parameters_of(
            precision="bfloat16" if setting.device != "cpu" else "float32",
            updates=setting.size(300, 4),
            width=setting.size(512, 16),
            vocabulary=setting.size(8_000, 300),
            batch_tokens=setting.size(16_384, 512),
            processes=1,
        )
        return {**trained(bitext, Path(temporary) / "training", parameters, resources)}


def tasks(setting: Setting, engine: str, size: int, at_once: int) -> Figures:
    """Tasks as a worker has them, one or two at once: speed, and the share of time in which the device waits.

    The beam is narrow: the faster the search, the more a gap shows.
    """
    import pyarrow as pa

    from paraforge.translation.stage.sentences import EngineChoice, Workplace, build_translation

    _, sources = setting.sentences(setting.size(64_000, 48))
    size = min(size, len(sources) // 2)
    kind = setting.compute_type("bfloat16" if engine == "torch" else "float16", engine)
    options = DecodingOptions(beam=4, compute_type=kind, maximum_target_tokens=64)
    model = Path(usable_model(setting.model, engine))
    choice = EngineChoice(engine, options, {}, open_model(model, engine, verify=False).fingerprint, model)
    translate = build_translation(choice, Workplace(1, (setting.device,), 1, 0))
    tables = [pa.table({"source_text": sources[at : at + size]}) for at in range(0, len(sources), size)]
    translate(tables[0].slice(0, setting.size(4_000, 4)))
    with Watch(setting.device) as watch, ThreadPoolExecutor(at_once) as pool:
        found = list(pool.map(translate, tables))
    return {
        "sentences_per_second": len(sources) / watch.seconds,
        "idle_percent": None if watch.idle is None else 100 * watch.idle,
        "failed_sentences": sum(len(one) - one.column("failed").null_count for one in found),
    }


@dataclasses.dataclass(frozen=True)
class Part:
    """One thing to see: what measures it, and the most seconds that it may take."""

    measure: Callable[[Setting], Figures]
    limit: int


PARTS = {
    "peaks": Part(peaks, 40),
    "bfloat16": Part(partial(translation, engine="torch", wanted="bfloat16"), 200),
    "bfloat16, graphs": Part(partial(translation, engine="torch", wanted="bfloat16", graphs=True), 200),
    "float16": Part(partial(translation, engine="torch", wanted="float16"), 160),
    "CTranslate2 float16": Part(partial(translation, engine="ctranslate2", wanted="float16"), 160),
    "graphs equal to eager": Part(graphs_equal, 120),
    "256 shapes": Part(shapes, 150),
    "a tenth of the memory, torch": Part(partial(memory_fraction, engine="torch"), 70),
    "a tenth of the memory, ctranslate2": Part(partial(memory_fraction, engine="ctranslate2"), 70),
    "overflow in float16": Part(overflow, 60),
    "two workers, one killed": Part(two_workers, 180),
    "training": Part(training, 220),
    **{
        f"tasks of {size}, {at_once} at once, {engine}": Part(
            partial(tasks, engine=engine, size=size, at_once=at_once), 70
        )
        for engine in ("torch", "ctranslate2")
        for size in (4_000, 32_000)
        for at_once in (1, 2)
    },
}


def _done(setting: Setting) -> dict[str, dict[str, int | float]]:
    """Figures of the parts that have been measured with this setting, by name."""
    path = directory() / f"{TASK}.jsonl"
    lines = latest(read(path)) if path.is_file() else []
    here = [line for line in lines if setting.named().items() <= line.configuration.items()]
    return {str(line.configuration["name"]): line.figures for line in here}


def in_own_process(setting: Setting, name: str, limit: float) -> Figures:
    """Measure a part in a fresh interpreter: nothing that happens to the device there is left behind. Raises
    RuntimeError: it failed, or took longer than ``limit`` seconds."""
    code = "from benchmarks.gpu_proof import worker; worker()"
    given = json.dumps([dataclasses.asdict(setting), name])
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        start_new_session=True,
    )
    try:
        output, errors = process.communicate(given, timeout=limit)
    except subprocess.TimeoutExpired as error:
        raise RuntimeError(f"not finished after {limit:.0f} s") from error
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # and what it started
    if process.returncode:
        raise RuntimeError((errors.strip().splitlines() or [f"exit code {process.returncode}"])[-1][-300:])
    figures: Figures = json.loads(output.splitlines()[-1])
    return figures


def worker() -> None:
    """Read a setting and a part's name from standard input, write its figures to standard output."""
    values, name = json.loads(sys.stdin.read())
    figures = PARTS[name].measure(Setting(**values))
    sys.stdout.write(f"\n{json.dumps(figures)}\n")


def run(
    setting: Setting,
    seconds: float,
    only: Sequence[str] = (),
    measure: Callable[[Setting, str, float], Figures] = in_own_process,
) -> list[str]:
    """Measure and record the parts that are not recorded yet, or ``only`` these again.

    A part that may take longer than what is left of ``seconds`` is not begun. Returns the names of those.
    """
    ends = time.monotonic() + seconds
    done = () if only else _done(setting)
    left = []
    for name in only or PARTS:
        if name in done:
            continue
        if time.monotonic() + PARTS[name].limit > ends:
            left.append(name)
            continue
        started, note = time.monotonic(), None
        try:
            figures = measure(setting, name, PARTS[name].limit)
        except RuntimeError as error:
            figures, note = {"failed": 1}, str(error)
            typer.echo(f"{name}: {note}", err=True)
        append(
            TASK, name, {**figures, "part_seconds": time.monotonic() - started}, note=note, **setting.named()
        )
    return left


app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command()
def main(
    model: Path = typer.Option(..., help="directory of a ready model"),
    text: Path = typer.Option(..., help="TSV.gz whose last two columns are English and foreign"),
    device: str = typer.Option("cuda:0", help="cuda:N, or cpu to try the script"),
    small: bool = typer.Option(False, help="few sentences: whether everything runs, not how fast"),
    minutes: float = typer.Option(9, help="of this call; the next one does what is left"),
    only: list[str] = typer.Option([], help="measure this part again"),
    expected: Path = typer.Option(EXPECTED, help="best hypotheses of a CPU"),
    write: bool = typer.Option(False, "--write-expected", help="write that file, and do nothing else"),
) -> None:
    """Measure what has not been measured on this device. Exit code 3: parts are left for another call."""
    if unknown := sorted(set(only) - set(PARTS)):
        raise typer.BadParameter(f"there is no part {unknown[0]}; there are {'; '.join(PARTS)}")
    device_of(Placement(device))
    given = Setting(str(model.resolve()), str(text.resolve()), device, small, str(expected.resolve()))
    if write:
        write_expected(given)
        return
    print(f"{hardware()}; {given.named()['device']}")
    if left := run(given, 60 * minutes, only):
        typer.echo(f"left for another call: {'; '.join(left)}", err=True)
        raise typer.Exit(3)


if __name__ == "__main__":
    app()
