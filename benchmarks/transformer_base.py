"""Makes a transformer-base with random weights, and measures how fast engines search with it.

Speed depends on shapes, not on what was learned. So a machine without a large model, and without a network,
makes one from a seed: six layers, width 512, feed-forward 2048, 8 heads, 32,000 shared pieces. The end of the
sentence is never among the best tokens, so each target is as long as its source.
"""

import json
import shutil
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from benchmarks.device import Watch
from paraforge.translation.models.model import MODEL_FILE, TranslationModel
from paraforge.translation.models.model_file import ModelFile, read_vocabulary

_KINDS = {"float32": 0, "int8": 1, "int16": 2}
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
    source = pattern.folder("ctranslate2")
    folder = output / "ctranslate2"
    folder.mkdir(parents=True)
    configuration = json.loads((source / "config.json").read_text(encoding="utf-8"))
    shutil.copyfile(source / "config.json", folder / "config.json")
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
    (folder / "shared_vocabulary.json").write_text(json.dumps(pieces), encoding="utf-8")
    end = pieces.index(configuration["eos_token"])
    known = ModelFile(source)
    variables = dict(_variables(size, end, np.random.default_rng(seed)))
    for name, variable in known.variables.items():  # activations, norms and other switches
        if not variable.shape and name not in variables:
            variables[name] = known._raw(variable)
    aliases = {
        "decoder/projection/weight": "decoder/embeddings/weight",
        "encoder/embeddings_0/weight": "decoder/embeddings/weight",
        "encoder/position_encodings/encodings": "decoder/position_encodings/encodings",
    }
    with (folder / "model.bin").open("wb") as binary:
        binary.write(struct.pack("<I", 6))
        _write_text(binary, "TransformerSpec")
        binary.write(struct.pack("<II", 7, len(variables)))
        for name, values in variables.items():
            _write_text(binary, name)
            binary.write(struct.pack(f"<B{values.ndim}I", values.ndim, *values.shape))
            binary.write(struct.pack("<BI", _KINDS[str(values.dtype)], values.nbytes))
            binary.write(values.tobytes())
        binary.write(struct.pack("<I", len(aliases)))
        for alias, name in aliases.items():
            _write_text(binary, alias)
            _write_text(binary, name)
    return output


def _write_text(file: BinaryIO, text: str) -> None:
    content = text.encode() + b"\0"
    file.write(struct.pack("<H", len(content)) + content)


def _variables(size: Size, end: int, dice: np.random.Generator) -> Iterator[tuple[str, Any]]:
    """Return weights by CTranslate2's names; linear layers preserve the variance of their inputs."""
    width, inner = size.width, size.feed_forward

    def linear(name: str, outputs: int, inputs: int) -> Iterator[tuple[str, Any]]:
        yield (
            f"{name}/weight",
            dice.standard_normal((outputs, inputs), np.float32) / np.float32(inputs) ** 0.5,
        )
        yield f"{name}/bias", np.zeros(outputs, np.float32)

    def block(name: str, *shapes: tuple[int, int]) -> Iterator[tuple[str, Any]]:
        yield f"{name}/layer_norm/gamma", np.ones(width, np.float32)
        yield f"{name}/layer_norm/beta", np.zeros(width, np.float32)
        for number, shape in enumerate(shapes):
            yield from linear(f"{name}/linear_{number}", *shape)

    embeddings = dice.standard_normal((size.pieces, width), np.float32) / np.float32(width) ** 0.5
    embeddings[end] = 0
    yield "decoder/embeddings/weight", embeddings
    yield (
        "decoder/position_encodings/encodings",
        dice.standard_normal((_POSITIONS, width), np.float32) / np.float32(width) ** 0.5,
    )
    for side in ("encoder", "decoder"):
        yield f"{side}/num_heads", np.array(size.heads, np.int16)
        for layer in range(size.layers):
            place = f"{side}/layer_{layer}"
            yield from block(f"{place}/self_attention", (3 * width, width), (width, width))
            if side == "decoder":
                shapes = ((width, width), (2 * width, width), (width, width))
                yield from block(f"{place}/attention", *shapes)
            yield from block(f"{place}/ffn", (inner, width), (width, inner))


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
        tokens += sum(hypothesis.tokens for one in results for hypothesis in one.hypotheses[:1])
        watches.append(watch)
    seconds = sum(watch.seconds for watch in watches)
    idle = [watch.idle * watch.seconds for watch in watches if watch.idle is not None]
    energy = [watch.watts * watch.seconds for watch in watches if watch.watts is not None]
    return {
        "sentences_per_second": len(texts) / seconds,
        "target_tokens_per_second": tokens / seconds,
        "tokens_per_target": tokens / len(texts),
        "idle_percent": 100 * sum(idle) / seconds if idle else None,
        "joules_per_sentence": sum(energy) / len(texts) if energy else None,
        "device_gib": max((watch.gib for watch in watches if watch.gib is not None), default=None),
    }
