"""Loads the weights of a model file as layers, and the identifiers of its tokens, after checking them."""

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional

from paraforge.base.errors import InputError
from paraforge.translation.models.model_file import ModelFile, read_vocabulary
from paraforge.translation.torch_search.transformer import Block, Embedding, Layer, Linear, Norm, Weights

# The vocabulary is padded to a multiple of this: matrix units need multiples of 8, and the search for the
# best candidates needs chunks of equal size.
VOCABULARY_MULTIPLE = 64
_EPSILON = 1e-5
# Indexed by CTranslate2's numbers.
_ACTIVATIONS: dict[int, Callable[[Tensor], Tensor]] = {
    0: functional.relu,
    1: lambda x: functional.gelu(x, approximate="tanh"),
    2: functional.silu,
    3: functional.gelu,
    4: lambda x: x * torch.sigmoid(1.702 * x),
    5: torch.tanh,
    6: torch.sigmoid,
}
# Unsupported variables, which are zero in translation models, and unsupported parts.
_MUST_BE_ZERO = {"alibi", "alibi_use_positive_positions", "scale_alibi", "multi_query_attention"}
_UNSUPPORTED = {"linear_0_noact", "project_in", "project_out", "q_norm", "k_norm", "embeddings_1"}
# Variables that are read, or irrelevant for the search.
_KNOWN = {
    *("activation", "num_heads", "pre_norm", "scale_embeddings", "start_from_zero_embedding"),
    *("alignment_heads", "alignment_layer", "embeddings_merge", "multiply_by_sqrt_depth"),
    *("gamma", "beta", "encodings", "bias", "weight", "weight_scale", *_MUST_BE_ZERO),
}


class _Loader:
    def __init__(self, file: ModelFile, device: torch.device, dtype: torch.dtype) -> None:
        self.file = file
        self._device, self._dtype = device, dtype
        self._made: dict[tuple[int, int], Tensor] = {}
        epsilon = file.configuration.get("layer_norm_epsilon")
        self.epsilon = _EPSILON if epsilon is None else float(epsilon)

    def tensor(self, name: str, factors: Tensor | None = None, rows: int = 1) -> Tensor:
        """Return a variable, with rows multiplied by ``factors``, padded with zeros to a multiple of ``rows``
        rows."""
        values = torch.from_numpy(self.file.array(name).copy())
        if factors is not None:
            values *= factors[:, None] if factors.ndim and values.ndim == 2 else factors
            return values.to(self._device, self._dtype)
        # Tied variables (stored once in the file) are also one tensor on the device.
        key = (self.file.variables[name].offset, rows)
        if key not in self._made:
            values = functional.pad(values, (0, 0) * (values.ndim - 1) + (0, -len(values) % rows))
            self._made[key] = values.to(self._device, self._dtype)
        return self._made[key]

    def linear(self, name: str, factors: Tensor | None = None) -> Linear:
        bias = self.tensor(f"{name}/bias", factors) if f"{name}/bias" in self.file else None
        return Linear(self.tensor(f"{name}/weight", factors), bias)

    def norm(self, name: str) -> Norm:
        return Norm(self.tensor(f"{name}/gamma"), self.tensor(f"{name}/beta"), self.epsilon)

    def optional_norm(self, name: str) -> Norm | None:
        return self.norm(name) if f"{name}/gamma" in self.file else None

    def block(self, name: str, factors: Tensor | None = None, outer: str = "linear_1") -> Block:
        norm, inner = self.norm(f"{name}/layer_norm"), self.linear(f"{name}/linear_0", factors)
        return Block(norm, inner, self.linear(f"{name}/{outer}"))

    def layers(self, side: str, head_width: int) -> list[Layer]:
        # Queries are scaled here once, by 1 / sqrt(width of a head).
        scale = torch.tensor(head_width**-0.5)
        layers = []
        for number in range(layers_of(self.file, side)):
            name = f"{side}/layer_{number}"
            width = self.file.shape(f"{name}/self_attention/linear_0/weight")[0] // 3
            factors = torch.ones(3 * width)
            factors[:width] = scale
            attention = self.block(f"{name}/self_attention", factors)
            cross = self.block(f"{name}/attention", scale, "linear_2") if side == "decoder" else None
            layers.append(Layer(attention, self.block(f"{name}/ffn"), cross))
        return layers

    def embedding(self, side: str, tokens: str) -> Embedding:
        weight = self.tensor(f"{tokens}/weight", rows=VOCABULARY_MULTIPLE)
        return Embedding(
            tokens=weight,
            positions=self.tensor(f"{side}/position_encodings/encodings"),
            scale=self._scale(side, tokens, weight.shape[1]),
            norm=self.optional_norm(f"{side}/layernorm_embedding"),
        )

    def _scale(self, side: str, tokens: str, width: int) -> float:
        for name in (f"{side}/scale_embeddings", f"{tokens}/multiply_by_sqrt_depth"):
            if name in self.file:
                # A boolean, or the scale itself.
                value = self.file.scalar(name)
                return (math.sqrt(width) if value else 1.0) if self.file.is_flag(name) else value
        return math.sqrt(width)


def layers_of(file: ModelFile, side: str) -> int:
    """Return the number of layers of ``encoder`` or ``decoder``."""
    matches = (re.match(rf"{side}/layer_(\d+)/", name) for name in file.variables)
    return 1 + max((int(match[1]) for match in matches if match), default=-1)


def check_architecture(file: ModelFile) -> None:
    """Check from the list of a model's variables that the search supports it. Raises InputError if it has
    unsupported parts."""
    for problem in _find_unsupported(file):
        raise InputError(f"the engine 'torch' {problem}", file.path, remedy="Use the engine 'ctranslate2'.")


def _find_unsupported(file: ModelFile) -> Iterator[str]:
    for name in file.variables:
        last = name.rpartition("/")[2]
        strange = last in _MUST_BE_ZERO and file.scalar(name) != 0
        if strange or last not in _KNOWN or not _UNSUPPORTED.isdisjoint(name.split("/")):
            yield f"has no {name}"
    for side in ("encoder", "decoder"):
        if f"{side}/position_encodings/encodings" not in file:
            yield f"needs the {side}'s positions in the file"
        if int(file.scalar(f"{side}/activation")) not in _ACTIVATIONS:
            yield f"does not know the {side}'s activation function"
    widths = [file.shape(f"{name}/weight")[1] for name in ("encoder/embeddings_0", "decoder/embeddings")]
    if widths[0] != widths[1]:
        yield f"needs one width, but the encoder has {widths[0]} and the decoder {widths[1]}"
    for name in ("num_heads", "pre_norm", "activation"):
        if file.scalar(f"encoder/{name}") != file.scalar(f"decoder/{name}"):
            yield f"needs the same {name} in encoder and decoder"


def load_weights(file: ModelFile, device: torch.device, dtype: torch.dtype) -> Weights:
    """Load a model's weights.

    file: an opened :class:`~paraforge.translation.models.model_file.ModelFile`. device: where to put them.
    dtype: type in which products are computed: float32, bfloat16 or float16.

    Raises InputError if a weight is missing, or the model has unsupported parts.
    """
    check_architecture(file)
    loader = _Loader(file, device, dtype)
    heads = int(file.scalar("encoder/num_heads"))
    head_width = file.shape("encoder/embeddings_0/weight")[1] // heads
    with torch.no_grad():
        memories = [
            loader.linear(f"decoder/layer_{number}/attention/linear_1")
            for number in range(layers_of(file, "decoder"))
        ]
        return Weights(
            heads=heads,
            pre_norm=bool(file.scalar("encoder/pre_norm")),
            activation=_ACTIVATIONS[int(file.scalar("encoder/activation"))],
            source=loader.embedding("encoder", "encoder/embeddings_0"),
            encoder=loader.layers("encoder", head_width),
            encoder_norm=loader.optional_norm("encoder/layer_norm"),
            target=loader.embedding("decoder", "decoder/embeddings"),
            decoder=loader.layers("decoder", head_width),
            decoder_norm=loader.optional_norm("decoder/layer_norm"),
            memory=_join(memories),
            projection=_projection(loader),
            start_from_zero=bool(file.scalar("decoder/start_from_zero_embedding")),
            unbiased=_unbiased(file),
        )


def _join(parts: list[Linear]) -> Linear:
    biases = [part.bias for part in parts if part.bias is not None]
    if biases and len(biases) != len(parts):
        raise InputError("some layers have biases and others have none")
    return Linear(torch.cat([part.weight for part in parts]), torch.cat(biases) if biases else None)


def _projection(loader: _Loader) -> Linear:
    weight = loader.tensor("decoder/projection/weight", rows=VOCABULARY_MULTIPLE)
    real = loader.file.shape("decoder/projection/weight")[0]
    bias = torch.zeros(len(weight), device=weight.device)
    if "decoder/projection/bias" in loader.file:
        bias[:real] = torch.from_numpy(loader.file.array("decoder/projection/bias").copy())
    # Padding types have probability 0.
    bias[real:] = -math.inf
    return Linear(weight, bias.to(weight.dtype))


def _unbiased(file: ModelFile) -> int | None:
    name = "decoder/projection/bias"
    if name in file and file.array(name).any():
        return None
    return file.shape("decoder/projection/weight")[0]


# Used for padding batches; never generated intentionally.
_PADDING = ("<pad>", "<blank>")


@dataclass(frozen=True)
class TokenIds:
    """The identifiers of tokens.

    source: identifier of each source token. target: target tokens by identifier.
    source_unknown, end, source_end, start: identifiers.
    add_source_start, add_source_end: whether the encoder reads them around a sentence.
    source_start: identifier of the token before a sentence, if any.
    banned: target identifiers that are never generated.
    """

    source: dict[str, int]
    target: list[str]
    source_unknown: int
    source_start: int
    source_end: int
    add_source_start: bool
    add_source_end: bool
    start: int
    end: int
    banned: tuple[int, ...]

    def encode(self, tokens: list[str]) -> list[int]:
        """Return the identifiers of a source sentence as the encoder reads it."""
        ids = [self.source.get(token, self.source_unknown) for token in tokens]
        if self.add_source_start:
            ids.insert(0, self.source_start)
        return [*ids, self.source_end] if self.add_source_end else ids


def open_vocabulary(folder: Path, file: ModelFile) -> TokenIds:
    """Read both vocabularies and check that they match the weights. Raises InputError if one is missing, or
    its size differs from its side's embedding."""
    source, target = read_vocabulary(folder, "source"), read_vocabulary(folder, "target")
    for side, tokens, name in (
        ("source", source, "encoder/embeddings_0/weight"),
        ("target", target, "decoder/embeddings/weight"),
        ("target", target, "decoder/projection/weight"),
    ):
        rows = file.shape(name)[0]
        if rows != len(tokens):
            raise InputError(
                f"{name} has {rows} rows, but the {side} vocabulary has {len(tokens)} tokens",
                folder,
                remedy="These are not the files of one model: convert or import it again.",
            )
    values = file.configuration
    if values.get("decoder_start_token", "") is None and not file.scalar("decoder/start_from_zero_embedding"):
        raise InputError(
            "its decoder begins with a language token, which the engine 'torch' does not support",
            folder,
            remedy="Use the engine 'ctranslate2'.",
        )
    end = str(values.get("eos_token") or "</s>")
    start = str(values.get("decoder_start_token") or end)
    if file.scalar("decoder/start_from_zero_embedding"):
        start = end  # any identifier, because its embedding is not used
    # A repeated token has its first number, as in CTranslate2.
    sources = {token: number for number, token in reversed(list(enumerate(source)))}
    targets = {token: number for number, token in reversed(list(enumerate(target)))}
    unknown = str(values.get("unk_token") or "<unk>")
    before = str(values.get("bos_token") or "<s>")
    for name, token, known in (
        ("eos_token", end, targets),
        ("eos_token", end, sources),
        ("decoder_start_token", start, targets),
        ("unk_token", unknown, sources),
    ):
        if token not in known:
            raise InputError(f"{name} of config.json is {token!r}, which is not in the vocabulary", folder)
    return TokenIds(
        source=sources,
        target=target,
        source_unknown=sources[unknown],
        source_start=sources.get(before, sources[end]),
        source_end=sources[end],
        add_source_start=bool(values.get("add_source_bos")),
        add_source_end=bool(values.get("add_source_eos")),
        start=targets[start],
        end=targets[end],
        banned=tuple(targets[token] for token in _PADDING if token in targets and token != end),
    )
