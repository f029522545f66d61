"""The engine torch: our own beam search in plain PyTorch, for GPUs and CPUs, for every model that CTranslate2
can convert."""

from __future__ import annotations

import logging
import math
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from paraforge.base.errors import InputError
from paraforge.translation.decoding.batching import (
    BatchEngine,
    Decoded,
    SourceTokens,
    usual_window,
)
from paraforge.translation.decoding.device import (
    device_lost,
    device_of,
    fast_type,
    is_device_lost,
    is_out_of_memory,
    make_current,
    prepare_thread,
)
from paraforge.translation.decoding.pieces import SentencePieces
from paraforge.translation.decoding.translator import (
    DecodingOptions,
    EngineSettings,
    Hypothesis,
    Placement,
    make_hypothesis,
)
from paraforge.translation.models.model import TranslationModel
from paraforge.translation.models.sentencepiece import check_pieces
from paraforge.translation.models.subwords import open_subwords

if TYPE_CHECKING:
    from paraforge.translation.torch_search.search import Pace, Request, Search
    from paraforge.translation.torch_search.state import Findings, Found

logger = logging.getLogger(__name__)

# Measured (docs/results.md): on a CPU, small batches stay in the cache. With half as many tokens, an H200 is
# 10% slower; with eight times as many, it is 12% faster but needs six times the memory.
_CPU_BATCH_TOKENS = 512
_CUDA_BATCH_TOKENS = 16_384
_CUDA_BATCH_SIZES = (16, 32, 64, 128, 192, 256, 384, 512, 640, 768, 896, 1024)
_SWITCH_SECONDS = 5e-4
_COMPUTE_TYPES = ("float32", "bfloat16", "float16")


class TorchTranslator(BatchEngine):
    """Translates with our own beam search.

    On a CPU, each of ``threads`` threads works on its own batch. A GPU has one thread that feeds it, while
    the caller's thread tokenizes input and detokenizes output.
    """

    LIBRARIES = ("torch",)
    FORM = "ctranslate2"

    @classmethod
    def resolve(cls, options: DecodingOptions, placement: Placement) -> DecodingOptions:
        """Replace compute type ``auto`` by a fast and sufficiently exact one. Raises InputError if the device
        does not support the compute type, or does not exist."""
        device = device_of(placement)
        kind: str = options.compute_type
        if kind == "auto":
            kind = fast_type(device)
        if kind not in _COMPUTE_TYPES:
            raise InputError(
                f"the engine 'torch' has no compute type {kind}",
                remedy=f"Use auto, {', '.join(_COMPUTE_TYPES)}; the engine 'ctranslate2' has int8.",
            )
        if kind == "float16" and device.type == "cpu":
            raise InputError("float16 is for GPUs", remedy="Use bfloat16 or float32.")
        return options.with_changes(compute_type=kind)

    @classmethod
    def check(cls, model: TranslationModel) -> None:
        """Check a model's files. Raises InputError if vocabulary, embeddings and subwords do not match, or if
        the search does not support a part."""
        from paraforge.translation.models.model_file import ModelFile
        from paraforge.translation.torch_search.weights import check_architecture, open_vocabulary

        folder = model.folders["ctranslate2"]
        file = ModelFile(folder)
        check_architecture(file)
        vocabulary = open_vocabulary(folder, file)
        for types, path, language in (
            (list(vocabulary.source), model.source_sentencepiece, model.source_language),
            (vocabulary.target, model.target_sentencepiece, model.target_language),
        ):
            check_pieces(open_subwords(path, language), types, path)

    def __init__(
        self,
        model: TranslationModel,
        options: DecodingOptions,
        placement: Placement,
        settings: EngineSettings,
    ) -> None:
        """Load a model; there are no settings. Raises InputError if it is damaged, or has unsupported
        parts."""
        from paraforge.translation.models.model_file import ModelFile
        from paraforge.translation.torch_search.state import Rules
        from paraforge.translation.torch_search.weights import open_vocabulary

        self._options = options
        self._device = device_of(placement)
        make_current(self._device)
        self._file = ModelFile(model.folders["ctranslate2"])
        self._vocabulary = open_vocabulary(model.folders["ctranslate2"], self._file)
        self._pieces = SentencePieces(model, options)
        self._tags = len(model.target_prefix)
        self._prefix = self._forced(model)
        self._rules = Rules(
            beam=options.beam,
            length_penalty=options.length_penalty,
            start=self._vocabulary.start,
            end=self._vocabulary.end,
            banned=self._vocabulary.banned,
            free=self._tags,
        )
        self._graphs = placement.graphs and self._device.type == "cuda"
        self._searches: dict[str, Search] = {}
        self._recorded: list[Any] = []
        self._lock = threading.Lock()
        self._search(options.compute_type)
        on_cpu = self._device.type == "cpu"
        self.window = usual_window(self._device.type)
        if not on_cpu:
            # Limits how long the thread that feeds the GPU waits for the interpreter lock.
            sys.setswitchinterval(_SWITCH_SECONDS)
        self.batch_tokens = placement.batch_tokens or (_CPU_BATCH_TOKENS if on_cpu else _CUDA_BATCH_TOKENS)
        threads = max(1, placement.threads) if on_cpu else 1
        # One running and one waiting per thread, and one whose results are being read.
        self.queued = 2 * threads + 1
        # Torch uses one core per thread, so that batches on different cores never wait for each other.
        self._pool = ThreadPoolExecutor(threads, "torch-search", prepare_thread, (self._device,))

    def _forced(self, model: TranslationModel) -> tuple[int, ...]:
        known = self._vocabulary.target
        missing = [piece for piece in model.target_prefix if piece not in known]
        if missing:
            raise InputError(
                f"hypotheses cannot begin with {' '.join(missing)}: not in the model's vocabulary",
                model.path,
            )
        return tuple(map(known.index, model.target_prefix))

    def _search(self, compute_type: str) -> Search:
        """Return the search in a compute type; its weights are loaded on first use."""
        import torch

        from paraforge.translation.torch_search.graphs import RecordedSteps
        from paraforge.translation.torch_search.search import Search
        from paraforge.translation.torch_search.weights import load_weights

        with self._lock:
            if compute_type not in self._searches:
                loaded = load_weights(self._file, self._device, getattr(torch, compute_type))
                search = Search(loaded, self._rules, self._pace())
                if self._graphs:
                    recorded = RecordedSteps(search)
                    self._recorded.append(recorded)
                    search = Search(loaded, self._rules, self._pace(), recorded.state, recorded.step)
                self._searches[compute_type] = search
            return self._searches[compute_type]

    def _pace(self) -> Pace:
        from paraforge.translation.torch_search.search import Pace

        if self._device.type == "cpu":
            return Pace()
        return Pace(
            look_every=4,
            keep=0.75,
            room=16,
            doubling=True,
            batch_sizes=_CUDA_BATCH_SIZES if self._graphs else (),
            source_multiple=8,
        )

    def encode(self, sentences: list[str]) -> list[SourceTokens]:
        """Tokenize sentences, and truncate long ones."""
        return self._pieces.encode(sentences)

    def submit(self, batch: list[SourceTokens]) -> Callable[[], Decoded]:
        """Queue a batch for the threads; work before and after the search is done here."""
        future = self._pool.submit(self._found, [self._request(source) for source in batch])

        def wait() -> Decoded:
            most = self._options.nbest
            return [self._hypotheses(result) for result in future.result().results(most)]

        return wait

    def _found(self, requests: list[Request]) -> Findings:
        """Search a batch. Raises MemoryError if it does not fit."""
        try:
            return self._search_batch(requests)
        except Exception as error:
            if is_device_lost(error):
                raise device_lost(error, str(self._device)) from error
            if not is_out_of_memory(error):
                raise
        # Outside of the handler, because the library's exception keeps the tensors alive.
        self._free()
        raise MemoryError("out of memory")

    def _free(self) -> None:
        import torch

        for recorded in self._recorded:
            recorded.forget()
        if self._device.type == "cuda":
            torch.cuda.empty_cache()

    def _search_batch(self, requests: list[Request]) -> Findings:
        """Search a batch; sentences with a NaN in half precision are searched again in float32."""
        results = self._search(self._options.compute_type).find(requests)
        bad = [] if self._options.compute_type == "float32" else results.non_finite()
        if not bad:
            return results
        # Half precision ends at 65,504 (float16) or has three digits (bfloat16); float32 can succeed.
        kind = self._options.compute_type
        logger.warning("%d sentences overflowed in %s: translating them again in float32", len(bad), kind)
        self._free()
        again = self._search("float32").find([requests[place] for place in bad])
        return results.replaced(bad, again)

    def _request(self, source: SourceTokens) -> Request:
        from paraforge.translation.torch_search.search import Request

        return Request(
            tokens=tuple(self._vocabulary.encode(source.tokens)),
            # Language tags count, as in CTranslate2.
            cap=max(2, self._options.maximum_target_tokens - self._tags),
            prefix=self._prefix,
        )

    def _hypotheses(self, result: list[Found]) -> tuple[Hypothesis, ...]:
        if not result:
            return (make_hypothesis("", math.nan, [], ended=True),)
        hypotheses = []
        for hypothesis in result:
            tokens = [self._vocabulary.target[number] for number in hypothesis.tokens]
            text = self._pieces.decode(tokens)
            hypotheses.append(make_hypothesis(text, hypothesis.score, tokens[self._tags :], hypothesis.ended))
        return tuple(hypotheses)
