"""Makes a transformer-base with random weights, and measures how fast engines search with it.

Speed depends on shapes, not on what was learned. So a machine without a large model, and without a network,
makes one from a seed: six layers, width 512, feed-forward 2048, 8 heads, 32,000 shared pieces. The end of the
sentence is never among the best tokens, so each target is as long as its source.
"""

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.device import Watch
from paraforge.translation.models.model import MODEL_FILE, TranslationModel
from paraforge.translation.models.model_file import read_vocabulary

_POSITIONS = 1024


@dataclass(frozen=True)
class Size:
    """The size of a transformer whose encoder and decoder share one vocabulary."""

    layers: int = 6
    width: int = 512
    feed_forward: int = 2048
    heads: int = 8
    pieces: int = 32_000


def write_random_model(pattern: TranslationModel, output: Path, size: Size, seed: int = 1) -> Path:
    """Write a model with random weights and another model's subwords.

    pattern: a model with post-norm, whose SentencePiece models and special tokens are copied.
    output: directory to make. Returns ``output``.
    """
    source = pattern.folders["ctranslate2"]
    folder = output / "ctranslate2"
    folder.mkdir(parents=True)
    sides = {"source": pattern.source_sentencepiece, "target": pattern.target_sentencepiece}
    for side, file in sides.items():
        shutil.copyfile(file, output / f"{side}{file.suffix}")
    index = {
        "schema_version": 1,
        "origin": "imported",
        "engines": {"ctranslate2": "ctranslate2"},
        "sentencepiece": {side: f"{side}{file.suffix}" for side, file in sides.items()},
        "source_language": pattern.source_language,
        "target_language": pattern.target_language,
        "fingerprint": f"random:{size}:{seed}",
        "files": {},
    }
    (output / MODEL_FILE).write_text(json.dumps(index), encoding="utf-8")
    both = (read_vocabulary(source, side) for side in sides)
    pieces = list(dict.fromkeys(piece for side in both for piece in side))[: size.pieces]
    pieces += [f"▁random{number}" for number in range(size.pieces - len(pieces))]
    end = pieces.index(json.loads((source / "config.json").read_text(encoding="utf-8"))["eos_token"])
    specification = _specification(size, end, np.random.default_rng(seed))
    specification.register_source_vocabulary(pieces)
    specification.register_target_vocabulary(pieces)
    specification.validate()
    specification.optimize()  # stores the embeddings, which all parts share, once
    specification.save(str(folder))
    shutil.copyfile(source / "config.json", folder / "config.json")
    return output


def _specification(size: Size, end: int, dice: np.random.Generator) -> Any:
    """Return weights in CTranslate2's form; linear layers preserve the variance of their inputs."""
    from ctranslate2.specs import TransformerSpec, model_spec

    width = size.width
    outputs = {
        "self_attention/linear_0": 3 * width,
        "attention/linear_1": 2 * width,
        "ffn/linear_0": size.feed_forward,
    }

    def random(rows: int, columns: int) -> np.ndarray:
        return dice.standard_normal((rows, columns), np.float32) / np.float32(columns) ** 0.5

    embeddings, positions = random(size.pieces, width), random(_POSITIONS, width)
    embeddings[end] = 0

    def fill(layer: Any, path: str, _: Any) -> None:
        place, _, name = path.rpartition("/")
        rows = next((rows for part, rows in outputs.items() if f"/{place}".endswith(f"/{part}")), width)
        if name == "encodings":
            layer.encodings = positions
        elif name == "gamma":
            layer.gamma, layer.beta = np.ones(width, np.float32), np.zeros(width, np.float32)
        elif name == "weight" and ("embeddings" in place or place == "decoder/projection"):
            layer.weight = embeddings
        elif name == "weight":
            layer.weight = random(rows, size.feed_forward if place.endswith("ffn/linear_1") else width)
            layer.bias = np.zeros(rows, np.float32)

    specification = TransformerSpec.from_config(size.layers, size.heads, pre_norm=False)
    model_spec.visit_spec(specification, fill)
    return specification


def speed(
    open_engine: Callable[..., Any], texts: Sequence[str], device: str, lengths: Sequence[int] = (16, 32, 48)
) -> dict[str, float | None]:
    """Measure an engine with such a model: the same number of texts is cut to each length, and so are
    targets.

    open_engine: is given ``maximum_source_tokens`` and ``maximum_target_tokens``.
    texts: longer than all lengths.
    """
    watches, tokens = [], 0
    for place, length in enumerate(lengths):
        given = texts[place :: len(lengths)]
        engine = open_engine(maximum_source_tokens=length, maximum_target_tokens=length)
        list(engine.translate(given[: len(given) // 4 + 1]))  # kernels are chosen, graphs are recorded
        with Watch(device) as watch:
            results = list(engine.translate(given))
        tokens += sum(hypothesis.tokens for result in results for hypothesis in result.hypotheses[:1])
        watches.append(watch)
    seconds = sum(watch.seconds for watch in watches)
    idle = [watch.idle * watch.seconds for watch in watches if watch.idle is not None]
    return {
        "sentences_per_second": len(texts) / seconds,
        "target_tokens_per_second": tokens / seconds,
        "tokens_per_target": tokens / len(texts),
        "idle_percent": 100 * sum(idle) / seconds if idle else None,
        "device_gib": max((watch.gib for watch in watches if watch.gib is not None), default=None),
    }
