"""The engine fairseq: its own beam search, the reference for the other engines."""

import contextlib
import io
import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from paraforge.base.errors import InputError, first_line
from paraforge.translation.decoding.batching import BatchEngine, Decoded, SourceTokens
from paraforge.translation.decoding.device import device_of
from paraforge.translation.decoding.pieces import SentencePieces
from paraforge.translation.decoding.translator import (
    DecodingOptions,
    EngineSettings,
    Hypothesis,
    Placement,
    make_hypothesis,
)
from paraforge.translation.models.model import TranslationModel

NAME = "fairseq"
_CPU_BATCH_TOKENS = 1024
_CUDA_BATCH_TOKENS = 8192


def _load(folder: Path, source_language: str, target_language: str) -> tuple[Any, Any]:
    """Load the task (with dictionaries) and the model from a folder with checkpoint and dictionaries."""
    from paraforge.translation.models.fairseq_compat import data_path, import_fairseq

    import_fairseq()
    from fairseq import checkpoint_utils

    checkpoint = folder / "checkpoint.pt"
    for name in (source_language, target_language):
        if not (folder / f"dict.{name}.txt").is_file():
            raise InputError(
                "no such file: a fairseq model needs its dictionaries", folder / f"dict.{name}.txt"
            )
    overrides = {"source_lang": source_language, "target_lang": target_language}
    try:
        # The model's builder prints and warns; standard output is for translations.
        with (
            data_path(folder) as data,
            contextlib.redirect_stdout(io.StringIO()),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")
            overrides["data"] = data
            models, _, task = checkpoint_utils.load_model_ensemble_and_task([str(checkpoint)], overrides)
    except (OSError, RuntimeError, KeyError, AssertionError) as error:
        raise InputError(f"fairseq cannot build the model: {first_line(error)}", checkpoint) from error
    return task, models[0]


class FairseqTranslator(BatchEngine):
    """Translates with fairseq's ``SequenceGenerator``."""

    LIBRARIES = ("fairseq", "torch")

    @classmethod
    def resolve(cls, options: DecodingOptions, placement: Placement) -> DecodingOptions:
        """Set the compute type to float32. Raises InputError if another one is given, or the device does not
        exist."""
        device_of(placement)
        if options.compute_type not in ("auto", "float32"):
            raise InputError(
                f"the engine 'fairseq' has no compute type {options.compute_type}",
                remedy="Use float32, or the engine 'ctranslate2'.",
            )
        return options.with_changes(compute_type="float32")

    def __init__(
        self,
        model: TranslationModel,
        options: DecodingOptions,
        placement: Placement,
        settings: EngineSettings,
    ) -> None:
        """Load a checkpoint; there are no settings. Raises InputError if it or a dictionary is missing or
        damaged; MissingPackageError if fairseq is not installed."""
        task, network = _load(model.folders[NAME], model.source_language, model.target_language)
        import torch
        from fairseq.sequence_generator import SequenceGenerator

        self._device = device_of(placement)
        if self._device.type == "cpu":
            torch.set_num_threads(max(1, placement.threads))
        network.eval()
        network.to(self._device)
        self._source_dictionary = task.source_dictionary
        self._target_dictionary = task.target_dictionary
        self._left_pad = bool(task.cfg.left_pad_source)
        self._pieces = SentencePieces(model, options)
        self._nbest = options.nbest
        self._length_penalty = options.length_penalty
        # fairseq counts tokens without end-of-sentence, which it forces after the cap. A hypothesis with that
        # many tokens did not end by itself.
        self._cap = min(options.maximum_target_tokens, network.max_decoder_positions() - 1)
        self._generator = SequenceGenerator(
            [network],
            self._target_dictionary,
            beam_size=options.beam,
            max_len_a=0,
            max_len_b=self._cap,
            normalize_scores=True,
            len_penalty=options.length_penalty,
        )
        self.batch_tokens = placement.batch_tokens or (
            _CPU_BATCH_TOKENS if self._device.type == "cpu" else _CUDA_BATCH_TOKENS
        )

    def encode(self, sentences: list[str]) -> list[SourceTokens]:
        """Tokenize sentences, and truncate long ones."""
        return self._pieces.encode(sentences)

    def submit(self, batch: list[SourceTokens]) -> Callable[[], Decoded]:
        """Return a function that translates the batch when it is called."""
        return lambda: self._decode(batch)

    def _decode(self, batch: list[SourceTokens]) -> Decoded:
        import torch
        from fairseq.data import data_utils

        index, end = self._source_dictionary.index, self._source_dictionary.eos()
        # Piece by piece, because encode_line would split a piece that contains an unusual space.
        rows = [torch.tensor([*map(index, source.tokens), end]) for source in batch]
        tokens = data_utils.collate_tokens(
            rows, self._source_dictionary.pad(), end, left_pad=self._left_pad
        )  # batch x longest source
        lengths = torch.tensor([len(row) for row in rows])
        sample = {
            "net_input": {"src_tokens": tokens.to(self._device), "src_lengths": lengths.to(self._device)}
        }
        with torch.inference_mode(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch's warnings about fairseq's masks
            try:
                generated = self._generator.generate([], sample)
            except AssertionError:
                # No hypothesis finished because no score was finite.
                if len(batch) > 1:
                    raise
                return [(make_hypothesis("", math.nan, [], ended=True),)]
        return [self._rank(hypotheses) for hypotheses in generated]

    def _rank(self, hypotheses: list[dict[str, Any]]) -> tuple[Hypothesis, ...]:
        # fairseq ranks truncated hypotheses with their forced end-of-sentence, which is not part of the
        # score.
        scored = [(self._score(hypothesis), hypothesis) for hypothesis in hypotheses]
        scored.sort(
            key=lambda hypothesis: hypothesis[0] if math.isfinite(hypothesis[0]) else -math.inf, reverse=True
        )
        return tuple(self._hypothesis(score, hypothesis) for score, hypothesis in scored[: self._nbest])

    def _score(self, hypothesis: dict[str, Any]) -> float:
        # SequenceGenerator's score has the right definition (natural log, with end-of-sentence); only
        # fairseq-generate prints it in base 2.
        length = len(hypothesis["tokens"]) - 1
        if length < self._cap:
            return float(hypothesis["score"])
        # Without the forced end-of-sentence.
        return float(hypothesis["positional_scores"][:-1].sum()) / length**self._length_penalty

    def _hypothesis(self, score: float, hypothesis: dict[str, Any]) -> Hypothesis:
        body = [self._target_dictionary[int(number)] for number in hypothesis["tokens"][:-1]]
        return make_hypothesis(self._pieces.decode(body), score, body, ended=len(body) < self._cap)
