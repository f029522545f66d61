"""CTranslate2, the production decoder: on the CPU several replicas of one thread, or one CUDA device."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from pipeline.errors import InputError, require
from pipeline.translation.batching import Decoded, SourceTokens, translate_in_batches
from pipeline.translation.model import TranslationModel
from pipeline.translation.pieces import SentencePieces
from pipeline.translation.translator import (
    DecodingOptions,
    Hypotheses,
    Placement,
    fingerprint_of,
    make_hypothesis,
)

NAME = "ctranslate2"
_END = "</s>"
# Measured (docs/results.md): on a CPU small batches stay in the cache; a GPU wants to be filled.
_CPU_BATCH_TOKENS = 512
_CUDA_BATCH_TOKENS = 16_384
# Best first; what "auto" takes is the first that the device has.
_AUTOMATIC = {"cpu": ("int8", "float32"), "cuda": ("float16", "bfloat16", "float32")}


def _device(placement: Placement) -> tuple[str, int]:
    library = require("ctranslate2", "translation")
    name, _, number = placement.device.partition(":")
    if name == "auto":
        return ("cuda", 0) if library.get_cuda_device_count() else ("cpu", 0)
    if name not in _AUTOMATIC or (number and not number.isdecimal()):
        raise InputError(f"no device is called '{placement.device}'", remedy="Say auto, cpu, cuda or cuda:0.")
    return name, int(number or 0)


def resolve(options: DecodingOptions, placement: Placement) -> DecodingOptions:
    """Replace compute type ``auto`` by the fastest of the device, and refuse one that it has not.

    Raises:
        InputError: the device has no such compute type, or there is no such device.
    """
    library = require("ctranslate2", "translation")
    device, number = _device(placement)
    try:
        supported = library.get_supported_compute_types(device, number)
    except (RuntimeError, ValueError) as error:
        raise InputError(
            f"CTranslate2 cannot use the device '{placement.device}': {error}", remedy="Run paraforge doctor."
        ) from error
    if options.compute_type == "auto":
        chosen = next(kind for kind in _AUTOMATIC[device] if kind in supported)
        return dataclasses.replace(options, compute_type=chosen)
    if options.compute_type not in supported:
        raise InputError(
            f"compute type {options.compute_type} is not available on {device}",
            remedy=f"There are auto, {', '.join(sorted(supported))}.",
        )
    return options


def weights(model: TranslationModel | None, settings: dict[str, Any]) -> str:
    """SHA-256 of what the engine reads."""
    assert model is not None
    return model.fingerprint


def open_engine(
    model: TranslationModel | None, options: DecodingOptions, placement: Placement, settings: dict[str, Any]
) -> CTranslate2Translator:
    """Load a CTranslate2 model.

    Raises:
        InputError: the model is damaged, or of another kind.
    """
    assert model is not None
    return CTranslate2Translator(model, options, placement)


class CTranslate2Translator:
    """A :class:`~pipeline.translation.translator.Translator` over ``ctranslate2.Translator``."""

    def __init__(self, model: TranslationModel, options: DecodingOptions, placement: Placement) -> None:
        library = require("ctranslate2", "translation")
        folder = model.folder(NAME)
        device, number = _device(placement)
        replicas = placement.threads if device == "cpu" else 1
        self._pieces = SentencePieces(model, options)
        try:
            # Replicas of one thread: twice as fast as one replica of two threads, and the same bytes whatever
            # their number, because no product is ever split between threads.
            self._translator = library.Translator(
                str(folder),
                device=device,
                device_index=number,
                compute_type=options.compute_type,
                inter_threads=replicas,
                intra_threads=1,
                max_queued_batches=-1,
            )
        except (RuntimeError, ValueError, IndexError) as error:
            raise InputError(f"CTranslate2 cannot open it: {error}", folder) from error
        self._forced = list(model.target_prefix)
        self._nbest = options.nbest
        self._arguments: dict[str, Any] = {
            "beam_size": options.beam,
            # One more than wanted, for the one that may be nothing but end-of-sentence. CTranslate2 can
            # forbid that one itself (min_decoding_length), but then it renormalises the first token's
            # probabilities, which shifts every score.
            "num_hypotheses": min(options.nbest + 1, options.beam),
            "min_decoding_length": 0,
            "length_penalty": options.length_penalty,
            "max_decoding_length": options.maximum_target_tokens,
            # The source is cut before it comes here, so that every engine cuts at the same place and says so.
            "max_input_length": 0,
            "return_scores": True,
            "return_end_token": True,
            "asynchronous": True,
        }
        self.fingerprint = fingerprint_of(NAME, weights(model, {}), options)
        self.batch_tokens = placement.batch_tokens or (
            _CPU_BATCH_TOKENS if device == "cpu" else _CUDA_BATCH_TOKENS
        )
        # One in work and one waiting for each replica: none is ever idle while results are taken.
        self.queued_batches = 2 * replicas + 1

    def translate(self, sentences: Iterable[str]) -> Iterator[Hypotheses]:
        """Translate a stream; see :class:`~pipeline.translation.translator.Translator`."""
        return translate_in_batches(self, sentences)

    def encode(self, sentences: list[str]) -> list[SourceTokens]:
        """Tokenise, and cut what is too long."""
        return self._pieces.encode(sentences)

    def submit(self, batch: list[SourceTokens]) -> Callable[[], Decoded]:
        """Put a batch in CTranslate2's queue."""
        prefix = [self._forced] * len(batch) if self._forced else None
        running = self._translator.translate_batch(
            [source.tokens for source in batch], prefix, **self._arguments
        )

        def wait() -> Decoded:
            return [self._hypotheses(handle.result()) for handle in running]

        return wait

    def _hypotheses(self, result: Any) -> tuple[Any, ...]:
        # The score is already the definition's: natural log, end-of-sentence in sum and in length.
        hypotheses = []
        for tokens, score in zip(result.hypotheses, result.scores, strict=True):
            ended = bool(tokens) and tokens[-1] == _END
            body = tokens[:-1] if ended else tokens
            hypotheses.append(make_hypothesis(self._pieces.decode(body), score, body, ended))
        spoken = [hypothesis for hypothesis in hypotheses if hypothesis.tokens > 1 or hypothesis.text]
        return tuple((spoken or hypotheses)[: self._nbest])
