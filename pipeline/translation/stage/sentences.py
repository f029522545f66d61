"""Translates shards of distinct sentences, the step that takes nearly all the time."""

import gc
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from paraforge.base.errors import IncompleteError, InputError
from paraforge.base.files import hash_json
from paraforge.base.shards.cluster import has_gpu_workers, worker_number, worker_threads
from paraforge.base.shards.resources import Resources, available_cores
from paraforge.base.shards.step import Step
from paraforge.translation.decoding.batching import usual_window
from paraforge.translation.decoding.translator import DecodingOptions, Engine, Placement, Translator
from paraforge.translation.engines import (
    engine_class,
    is_model_free,
    is_remote,
    open_translator,
    recorded_settings,
    result_settings,
    with_model,
)
from paraforge.translation.memory.memory import HypothesisRows
from paraforge.translation.models.ctranslate2_library import load_ctranslate2
from paraforge.translation.models.model import TranslationModel, open_model
from paraforge.translation.models.subwords import libraries as subword_libraries
from paraforge.versions import TRANSLATE

# Key in the footer of a finished task; its value names the set of the memory to which the task belongs.
SET_METADATA = b"paraforge.translations"
# Engines that accept two tasks at a time; fairseq does not.
_TWO_ON_GPU = ("ctranslate2", "torch")
_CLUSTER_WORKERS = 4


@dataclass(frozen=True)
class EngineChoice:
    """An engine with everything that its result depends on.

    engine: name of the engine. options: how it searches; no option is ``auto``.
    settings: the engine's own settings.
    weights: SHA-256 of weights and vocabulary. model: directory of the model; None if the engine needs none.
    """

    engine: str
    options: DecodingOptions
    settings: dict[str, Any]
    weights: str
    model: Path | None

    def parameters(self) -> dict[str, Any]:
        """Return what the result depends on besides the weights."""
        settings = recorded_settings(self.engine, self.settings) if self.settings else {}
        return {
            "engine": self.engine,
            **self.options.recorded(),
            **({"settings": settings} if settings else {}),
        }

    def description(self) -> dict[str, Any]:
        """Return everything besides the sentence that a translation depends on; this names a memory's set."""
        named = engine_class(self.engine).remembered_as(self.settings)
        return named or {"version": TRANSLATE, "model": self.weights, **self.parameters()}

    def open(self, placement: Placement) -> Translator:
        """Load the engine with its model."""
        model = None if self.model is None else open_model(self.model, verify=False)
        return open_translator(self.engine, model, self.options, placement, self.settings)

    def libraries(self) -> tuple[str, ...]:
        """Return the distributions whose versions affect the result."""
        libraries = {*engine_class(self.engine).LIBRARIES}
        if self.model is not None:
            model = open_model(self.model, verify=False)
            for file in (model.source_sentencepiece, model.target_sentencepiece):
                libraries.update(subword_libraries(file))
        return tuple(sorted(libraries))


def choose_engine(
    engine: str, model: Path, options: DecodingOptions, settings: dict[str, Any], resources: Resources
) -> EngineChoice:
    """Check before any work that engine, model and device are compatible.

    Raises:
        InputError: they are incompatible.
        MissingPackageError: the engine's package is not installed.
    """
    kind = engine_class(engine)
    opened: TranslationModel | None = None if kind.MODEL_FREE else open_model(model)
    # Not in each worker, because the options are part of the key.
    options = with_model(engine, _resolve(kind, options, resources, engine), opened)
    if opened is None:
        return EngineChoice(engine, options, settings, hash_json(result_settings(engine, settings)), None)
    kind.check(opened)
    return EngineChoice(engine, options, settings, opened.fingerprint, opened.path.resolve())


def _resolve(
    kind: type[Engine], options: DecodingOptions, resources: Resources, engine: str
) -> DecodingOptions:
    """Return the options with every ``auto`` resolved, after checking every device."""
    devices = devices_of(resources, engine)
    if len({device.startswith("cuda") for device in devices}) > 1:
        raise InputError(
            f"devices are {', '.join(devices)}",
            remedy="Set resources.devices to GPUs or to the CPU, not to both.",
        )
    if resources.scheduler is None:
        resolved = {device: kind.resolve(options, Placement(device)) for device in devices}
        if len(set(resolved.values())) > 1:
            kinds = ", ".join(f"{settings.compute_type} of {device}" for device, settings in resolved.items())
            raise InputError(
                f"the fastest compute type differs between devices: {kinds}",
                remedy="Set translate.compute_type to one of them.",
            )
        return resolved[devices[0]]
    # Workers of a cluster can have devices that this machine lacks; they check their own.
    if options.compute_type != "auto":
        return options.on_device(devices[0])
    try:
        return kind.resolve(options, Placement(devices[0]))
    except InputError as error:
        raise InputError(
            f"compute type auto is resolved on this machine, but {error.message}",
            remedy="Set translate.compute_type to the type that the workers should use.",
        ) from error


def devices_of(resources: Resources, engine: str = "ctranslate2") -> list[str]:
    """Return the devices to use: the configured ones, or every GPU that the engine sees, or the CPU. On a
    cluster with GPU workers it is `cuda`, because each worker sees one GPU."""
    if is_remote(engine):
        return ["cpu"]
    if resources.devices != ["auto"]:
        return list(resources.devices)
    if is_model_free(engine):
        return ["cpu"]
    if resources.scheduler is not None:
        return ["cuda" if has_gpu_workers(resources) else "cpu"]
    if "torch" in engine_class(engine).LIBRARIES:
        import torch

        count = torch.cuda.device_count()
    else:
        count = load_ctranslate2().get_cuda_device_count()
    return [f"cuda:{number}" for number in range(count)] or ["cpu"]


@dataclass(frozen=True)
class Workplace:
    """The processes that translate, and what each of them uses. No result depends on it.

    workers: number of processes; None if the cluster decides. devices: worker n uses device n modulo their
        number.
    threads: CPU threads per process; 0 for all threads that a cluster's worker was started with.
    batch_tokens: source tokens per batch; 0 if the engine chooses.
    """

    workers: int | None
    devices: tuple[str, ...]
    threads: int
    batch_tokens: int

    def placement(self, device: str) -> Placement:
        """Return the device, threads and batch size of one process."""
        return Placement(device, self.threads or worker_threads(), self.batch_tokens)

    @property
    def worker_count(self) -> int:
        """The number of processes; a guess if the cluster decides."""
        return self.workers or _CLUSTER_WORKERS

    @property
    def window(self) -> int:
        """The number of sentences that an engine sorts together."""
        return usual_window(self.devices[0])

    @property
    def on_gpu(self) -> bool:
        """Whether workers need a GPU."""
        return self.devices[0].startswith("cuda")


def plan_workplace(engine: str, resources: Resources, sentences: int) -> Workplace:
    """Plan one process per GPU, or on a CPU one process with a thread per core, so that the model is loaded
    once."""
    devices = tuple(devices_of(resources, engine))
    if resources.scheduler is not None:
        return Workplace(None, devices, resources.threads, resources.batch_tokens)
    if devices[0].startswith("cuda"):
        threads = resources.threads or 1
        return Workplace(len(devices), devices, threads, resources.batch_tokens)
    cores = available_cores()
    workers = resources.workers or (cores if is_model_free(engine) else 1)
    if is_remote(engine) or sentences <= resources.in_process_rows:
        workers = 1
    threads = resources.threads or max(1, cores // workers)
    return Workplace(workers, devices, threads, resources.batch_tokens)


def sentences_step(choice: EngineChoice, workplace: Workplace) -> Step:
    """Return the step from shards of ``source_text`` to shards in the form of the translation memory."""
    return Step(
        name="translate-sentences",
        version=TRANSLATE,
        parameters=choice.parameters(),
        fingerprints={"model": choice.weights},
        build=build_translation,
        arguments={"choice": choice, "workplace": workplace},
        files=() if choice.model is None else (choice.model,),
        columns=["source_text"],
        aligned=False,
        device="cuda" if workplace.on_gpu else "cpu",
        libraries=choice.libraries(),
        # Reading, tokenizing and writing a task takes a tenth of its time on a large GPU, and the last
        # sentences of a task do not keep a server busy.
        at_once=2 if is_remote(choice.engine) or (workplace.on_gpu and choice.engine in _TWO_ON_GPU) else 1,
    )


def device_of_worker(workplace: Workplace) -> str:
    """Return the device of this process, by its number among the workers. Raises InputError if there are
    several devices, and this worker has no number."""
    number = worker_number()
    if len(workplace.devices) > 1 and number is None:
        raise InputError(
            f"this worker has no number, and {len(workplace.devices)} devices are named",
            remedy="Give each worker one device in CUDA_VISIBLE_DEVICES, and set resources.devices: [cuda].",
        )
    return workplace.devices[(number or 0) % len(workplace.devices)]


def check_model(choice: EngineChoice) -> None:
    """Raise InputError if the model is not the one that the run began with: it was changed, or this worker's
    host has another copy."""
    if choice.model is None:
        return
    fingerprint = open_model(choice.model).fingerprint
    if fingerprint != choice.weights:
        raise InputError(
            f"its fingerprint is {fingerprint[:8]}, but was {choice.weights[:8]} when the run began",
            choice.model,
            remedy="Run the same command again.",
        )


def build_translation(choice: EngineChoice, workplace: Workplace) -> Callable[[pa.Table], pa.Table]:
    """Load the model on this worker's device. Returns the function from sentences to hypotheses."""
    check_model(choice)
    translator = choice.open(workplace.placement(device_of_worker(workplace)))
    if workplace.on_gpu:
        # None of the present objects ever becomes garbage, and searching them takes a tenth of a second.
        gc.freeze()

    def translate_shard(table: pa.Table) -> pa.Table:
        sentences = table.column("source_text").to_pylist()
        rows = HypothesisRows()
        for result in translator.translate(sentences):
            rows.add(result)
        if rows.sentences != len(sentences):
            raise IncompleteError(f"{len(sentences)} sentences gave {rows.sentences} results")
        remembered = rows.table(table.column("source_text").combine_chunks())
        return remembered.replace_schema_metadata({SET_METADATA: json.dumps(choice.description())})

    return translate_shard
