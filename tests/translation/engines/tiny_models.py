"""Translations by the tiny model, and random models of other architectures."""

import argparse
import contextlib
import io
import math
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from paraforge.translation.decoding.pieces import SentencePieces, limited_options
from paraforge.translation.decoding.translator import DecodingOptions, Hypotheses, Placement
from paraforge.translation.engines import open_translator
from paraforge.translation.models.ctranslate2_library import load_ctranslate2
from paraforge.translation.models.model import SHORTLIST_FILE, open_model
from paraforge.translation.models.model_file import read_vocabulary
from tests.translation.models.tiny import bitext, save_checkpoint

SENTENCES = [source for source, _ in bitext(60, seed=5, longest=9)]
OPTIONS = DecodingOptions(beam=4, maximum_target_tokens=30)


def run(
    engine: str,
    model: Path,
    sentences: list[str] | None = None,
    options: DecodingOptions = OPTIONS,
    **settings: Any,
) -> list[Hypotheses]:
    translator = open_translator(engine, model, options, Placement("cpu"), settings)
    return list(translator.translate(SENTENCES if sentences is None else sentences))


def listed(model: Path, directory: Path, half: bool = False) -> Path:
    """Copy a model for CTranslate2, with a shortlist of all pieces, or of half of them, for each sentence."""
    shutil.copytree(model, directory)
    folder = directory / "ctranslate2"
    pieces = read_vocabulary(folder, "target")
    allowed = pieces[: len(pieces) // 2] if half else pieces
    (folder / SHORTLIST_FILE).write_text(f"\t{' '.join(allowed)}\n", encoding="utf-8")
    return directory


def gains(
    engine: str, model: Path, sentences: list[str], prefix: tuple[str, ...] | None = None
) -> list[float]:
    """Return what an engine adds to the sum of each sentence's hypotheses.

    CTranslate2 leaves end-of-sentence out of the first softmax, so its hypotheses are more probable by
    1 / (1 - p(end)). That is little in a trained model. Other engines add nothing.

    prefix: tokens that a hypothesis is made to begin with; None for the model's own.
    """
    if engine != "ctranslate2":
        return [0.0] * len(sentences)
    opened = open_model(model)
    scorer = load_ctranslate2().Translator(str(opened.folders["ctranslate2"]), intra_threads=1)
    encoded = SentencePieces(opened, limited_options(DecodingOptions(), opened)).encode(sentences)
    forced = list(opened.target_prefix if prefix is None else prefix)
    ends = scorer.score_batch([source.tokens for source in encoded], [forced] * len(encoded))
    return [-math.log1p(-math.exp(end.log_probs[-1])) for end in ends]


def agree(
    expected: list[Hypotheses],
    found: list[Hypotheses],
    tolerance: float = 1e-4,
    more: list[float] | None = None,
) -> None:
    """Compare hypotheses. more: what the engine that is expected adds to each sentence's sums."""
    for first, second, gain in zip(expected, found, more or [0.0] * len(found), strict=True):
        assert [h.text for h in first.hypotheses] == [h.text for h in second.hypotheses]
        for a, b in zip(first.hypotheses, second.hypotheses, strict=True):
            assert a.score == pytest.approx(b.score + gain / b.tokens, abs=tolerance)
            assert (a.tokens, a.output_truncated) == (b.tokens, b.output_truncated)


def write_variant(tiny: Path, folder: Path, **changes: Any) -> Path:
    """A random model of another architecture over the tiny model's vocabulary."""
    from paraforge.translation.models.checkpoint import load_checkpoint
    from paraforge.translation.models.fairseq_compat import import_fairseq

    import_fairseq()
    from fairseq.data import Dictionary
    from fairseq.models import build_model
    from fairseq.tasks.translation import TranslationTask

    folder.mkdir()
    for name in ("dict.cs.txt", "dict.en.txt", "sentencepiece.model"):
        shutil.copy(tiny / name, folder)
    arguments = argparse.Namespace(**{**vars(load_checkpoint(tiny / "checkpoint.pt")["args"]), **changes})
    dictionary = Dictionary.load(str(tiny / "dict.cs.txt"))
    torch.manual_seed(3)
    with contextlib.redirect_stdout(io.StringIO()):
        model = build_model(arguments, TranslationTask(arguments, dictionary, dictionary))
    for name, parameter in model.named_parameters():
        if "norm" not in name:
            # Strong layers and weak embeddings: otherwise every token is followed by itself.
            torch.nn.init.normal_(parameter, std=0.4 if "embed" in name or parameter.dim() == 1 else 1.0)
    save_checkpoint(folder / "checkpoint.pt", arguments, model.state_dict())
    return folder
