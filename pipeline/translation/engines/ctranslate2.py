"""The engine CTranslate2, for production: several single-threaded replicas on the CPU, or one CUDA device."""

import math
from collections.abc import Callable
from typing import Any

from paraforge.base.errors import InputError
from paraforge.translation.decoding.batching import (
    BatchEngine,
    Decoded,
    SourceTokens,
    usual_window,
)
from paraforge.translation.decoding.pieces import SentencePieces
from paraforge.translation.decoding.translator import (
    DecodingOptions,
    EngineSettings,
    Hypothesis,
    Placement,
    make_hypothesis,
)
from paraforge.translation.models.ctranslate2_library import load_ctranslate2, preload_cublas
from paraforge.translation.models.model import TranslationModel, end_token

NAME = "ctranslate2"
# Measured (docs/results.md): on a CPU, small batches stay in the cache, and with int8 and a beam even smaller
# ones are fastest. A GPU needs large batches.
_CPU_BATCH_TOKENS = 512
_CPU_INT8_BATCH_TOKENS = 128
_CUDA_BATCH_TOKENS = 16_384
# Source tokens of a batch that is scored, not searched.
_SCORED_BATCH_TOKENS = 64
# Best first; "auto" is the first that the device supports.
_AUTOMATIC = {"cpu": ("int8", "float32"), "cuda": ("float16", "bfloat16", "float32")}


def _usual_batch_tokens(device: str, options: DecodingOptions) -> int:
    if device != "cpu":
        return _CUDA_BATCH_TOKENS
    small = options.beam > 1 and options.compute_type.startswith("int8")
    return _CPU_INT8_BATCH_TOKENS if small else _CPU_BATCH_TOKENS


class CTranslate2Translator(BatchEngine):
    """Translates with ``ctranslate2.Translator``."""

    LIBRARIES = ("ctranslate2",)
    SHORTLISTS = True
    whole_windows = True
    queued = 2  # windows, so that no replica is idle while results are read

    @classmethod
    def resolve(cls, options: DecodingOptions, placement: Placement) -> DecodingOptions:
        """Replace compute type ``auto`` by the device's fastest, and check that a given one is supported.

        Raises InputError if the device has no such compute type, or there is no such device."""
        library = load_ctranslate2()
        device, number = placement.kind_and_number(library.get_cuda_device_count)
        try:
            if device == "cuda":
                preload_cublas()
            supported = library.get_supported_compute_types(device, number)
        except (RuntimeError, ValueError) as error:
            raise InputError(
                f"CTranslate2 cannot use the device '{placement.device}': {error}",
                remedy="Run paraforge doctor.",
            ) from error
        if options.compute_type == "auto":
            chosen = next(kind for kind in _AUTOMATIC[device] if kind in supported)
            options = options.with_changes(compute_type=chosen)
        if options.compute_type not in supported:
            raise InputError(
                f"compute type {options.compute_type} is not available on {device}",
                remedy=f"Use auto, {', '.join(sorted(supported))}.",
            )
        if device == "cuda" and options.shortlist is True:
            raise InputError("a shortlist is for CPUs", remedy="Set shortlist to auto.")
        return options.on_device(device)

    def __init__(
        self,
        model: TranslationModel,
        options: DecodingOptions,
        placement: Placement,
        settings: EngineSettings,
    ) -> None:
        """Load a model; there are no settings. Raises InputError if it is damaged, or of another kind."""
        library = load_ctranslate2()
        folder = model.folders[NAME]
        device, number = placement.kind_and_number(library.get_cuda_device_count)
        replicas = placement.threads if device == "cpu" else 1
        self._pieces = SentencePieces(model, options)
        self._end = end_token(folder)
        try:
            # Two single-threaded replicas are twice as fast as one with two threads, and the bytes do not
            # depend on their number, because no product is split between threads.
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
        self._longest = options.maximum_target_tokens
        self._length_penalty = options.length_penalty
        self._arguments: dict[str, Any] = {
            "beam_size": options.beam,
            "num_hypotheses": options.nbest,
            # As in fairseq, a hypothesis must not be empty. CTranslate2 excludes end-of-sentence from the
            # first softmax, so scores are higher by -log(1 - p(end)) / length.
            "min_decoding_length": 1 + len(model.target_prefix),
            "length_penalty": options.length_penalty,
            "max_decoding_length": options.maximum_target_tokens,
            # The source has already been truncated, so that every engine truncates at the same place.
            "max_input_length": 0,
            "return_scores": True,
            "return_end_token": True,
            "asynchronous": True,
            # CTranslate2 sorts its input by length, and limits batches by tokens, including padding.
            "batch_type": "tokens",
        }
        self._shortlist = options.shortlist is True
        if self._shortlist:
            # In a larger batch, all sentences would share their target pieces, so a sentence's result
            # would depend on the others.
            self._arguments |= {"use_vmap": True, "batch_type": "examples"}
        self.batch_tokens = placement.batch_tokens or _usual_batch_tokens(device, options)
        self.window = usual_window(device)

    def encode(self, sentences: list[str]) -> list[SourceTokens]:
        """Tokenize sentences, and truncate long ones."""
        return self._pieces.encode(sentences)

    def submit(self, batch: list[SourceTokens]) -> Callable[[], Decoded]:
        """Put sentences in CTranslate2's queue."""
        tokens = [source.tokens for source in batch]
        prefixes = [self._forced] * len(batch)
        pending = self._translator.translate_batch(
            tokens,
            prefixes if self._forced else None,
            max_batch_size=1 if self._shortlist else self.batch_tokens,
            **self._arguments,
        )

        def wait() -> Decoded:
            results = [result.result() for result in pending]
            if self._shortlist:
                return self._rescore(tokens, results)
            return [self._hypotheses(result.hypotheses, result.scores) for result in results]

        return wait

    def score(self, sentences: list[str], translations: list[str]) -> list[float]:
        """Return the mean natural log-probability per token of given translations, with end-of-sentence in
        sum and length.

        A translation is tokenized again, so its pieces can differ from the decoded ones. An empty
        translation has the score NaN.
        """
        sources = [source.tokens for source in self._pieces.encode(sentences)]
        targets = self._pieces.encode_target(translations)
        places = [place for place, (s, t) in enumerate(zip(sources, targets, strict=True)) if s and t]
        scored = self._translator.score_batch(
            [sources[place] for place in places],
            [[*self._forced, *targets[place]][: self._longest - 1] for place in places],
            max_input_length=0,
            max_batch_size=self.batch_tokens,
            batch_type="tokens",
        )
        scores = [math.nan] * len(sentences)
        for place, result in zip(places, scored, strict=True):
            logs = result.log_probs[len(self._forced) :]
            scores[place] = math.fsum(logs) / len(logs)
        return scores

    def _rescore(self, sources: list[list[str]], results: list[Any]) -> Decoded:
        """Return hypotheses that were found with a shortlist, with their probabilities over the whole
        vocabulary, the most probable first."""
        best = [hypothesis for result in results for hypothesis in result.hypotheses]
        logs = iter(
            self._translator.score_batch(
                [source for source, result in zip(sources, results, strict=True) for _ in result.hypotheses],
                [tokens[:-1] if self._is_ended(tokens) else tokens for tokens in best],
                max_input_length=0,
                max_batch_size=_SCORED_BATCH_TOKENS,
                batch_type="tokens",
            )
        )
        decoded = []
        for result in results:
            scores = []
            for tokens in result.hypotheses:
                # One for each token, then end-of-sentence, which a hypothesis at the cap lacks.
                own = next(logs).log_probs[len(self._forced) : len(tokens)]
                scores.append(math.fsum(own) / max(1, len(tokens)) ** self._length_penalty)
            order = sorted(range(len(scores)), key=lambda place: -scores[place])
            hypotheses = self._hypotheses(
                [result.hypotheses[place] for place in order], [scores[place] for place in order]
            )
            decoded.append(hypotheses)
        return decoded

    def _hypotheses(self, pieces: list[list[str]], scores: list[float]) -> tuple[Hypothesis, ...]:
        """Return hypotheses with the defined score: natural log, with end-of-sentence in sum and length."""
        hypotheses = []
        for tokens, score in zip(pieces, scores, strict=True):
            ended = self._is_ended(tokens)
            # CTranslate2 excludes a forced prefix from the sum, but not from the length.
            total = score * len(tokens) ** self._length_penalty
            length = len(tokens) - len(self._forced)
            body = tokens[: len(tokens) - ended]
            hypotheses.append(
                make_hypothesis(
                    self._pieces.decode(body),
                    total / max(1, length) ** self._length_penalty,
                    body[len(self._forced) :],
                    ended,
                )
            )
        return tuple(hypotheses)

    def _is_ended(self, tokens: list[str]) -> bool:
        return tokens[-1:] == [self._end]
