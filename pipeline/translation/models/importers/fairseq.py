"""fairseq checkpoints, with both dictionaries and SentencePiece models or BPE codes."""

import argparse
import contextlib
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from paraforge.base.errors import InputError
from paraforge.translation.models.checkpoint import fairseq_languages
from paraforge.translation.models.conversion import (
    TOLERANCE,
    Reference,
    check_fidelity,
    comparing,
    model_arguments,
    normalise_checkpoint,
    some_tokens,
    write_fairseq_model,
)
from paraforge.translation.models.importers.ctranslate2 import FOLDER, Languages
from paraforge.translation.models.sentencepiece import SPECIAL_TYPES, check_pieces, read_dictionary
from paraforge.translation.models.subwords import copy_subwords, find_subwords, open_subwords

_CHECKPOINTS = ("checkpoint.pt", "checkpoint_best.pt", "model.pt", "checkpoint_last.pt")


ORIGIN = "fairseq"
WANTED = "a checkpoint (.pt, fairseq)"


def recognises(path: Path) -> bool:
    """Whether a path is a checkpoint, or a directory with one."""
    return (path.is_file() and path.suffix == ".pt") or (path.is_dir() and any(path.glob("*.pt")))


def languages_of(path: Path, source_language: str | None, target_language: str | None) -> Languages:
    """Languages as the checkpoint says, which have to be those that are given, if any are."""
    return fairseq_languages(checkpoint_of(path), source_language, target_language)


def convert_model(path: Path, output: Path, languages: Languages) -> dict[str, Any]:
    """Give a checkpoint, or a directory's, the project's layout, in fairseq's and CTranslate2's form.

    Raises InputError: a part is missing, or checkpoint, dictionaries and subwords do not belong together.
    """
    checkpoint = checkpoint_of(path)
    folder = checkpoint.parent
    dictionaries = {language: folder / f"dict.{language}.txt" for language in languages}
    types = {language: read_dictionary(file) for language, file in dictionaries.items()}
    subwords: dict[str, Path] = {}
    for side, file, language in zip(
        ("source", "target"), find_subwords(folder, languages), languages, strict=True
    ):
        subwords[side] = copy_subwords(file, output, side)
        check_pieces(open_subwords(subwords[side], language), types[language], file)
    state = normalise_checkpoint(checkpoint, types[languages[0]], types[languages[1]], languages)
    try:
        entries = write_fairseq_model(state, dictionaries, subwords, output, languages)
    except InputError as error:  # names a copy that nobody will find
        raise InputError(error.message, checkpoint, remedy=error.remedy) from error
    if FOLDER not in entries["engines"]:
        return entries  # fairseq itself is the reference
    with comparing(checkpoint):
        reference = _reference(state, output / "fairseq", types, languages)
        check_fidelity(output / FOLDER, reference, checkpoint)
    return entries


def _reference(
    state: Mapping[str, Any], folder: Path, types: Mapping[str, Sequence[str]], languages: Languages
) -> Reference:
    """Log-probabilities of some types after some others, as fairseq computes them."""
    import torch
    from fairseq.models import build_model
    from fairseq.tasks.translation import TranslationTask

    arguments = argparse.Namespace(**vars(model_arguments(state, folder)))
    dictionaries = [TranslationTask.load_dictionary(str(folder / f"dict.{name}.txt")) for name in languages]
    with contextlib.redirect_stdout(io.StringIO()):
        model = build_model(arguments, TranslationTask(arguments, *dictionaries)).float().eval()
    model.load_state_dict(state["model"])
    source, target = (
        [len(SPECIAL_TYPES) + number for number in some_tokens(types[language])] for language in languages
    )
    end = dictionaries[1].eos()
    with torch.inference_mode():
        given = torch.tensor([[*source, dictionaries[0].eos()]])
        logits, *_ = model(given, torch.tensor([given.shape[1]]), torch.tensor([[end, *target]]))
        scores = logits[0].float().log_softmax(1).gather(1, torch.tensor([*target, end])[:, None])
    kind = str(state["model"]["encoder.embed_tokens.weight"].dtype).removeprefix("torch.")
    return Reference(
        source=[dictionaries[0][number] for number in source],
        target=[dictionaries[1][number] for number in target],
        log_probabilities=scores[:, 0].tolist(),
        tolerance=TOLERANCE.get(kind, 0.5),
    )


def checkpoint_of(path: Path) -> Path:
    """The checkpoint that is meant: the file, or a directory's best. Raises InputError: the directory has
    several, and no name says which."""
    if path.is_file():
        return path
    folder = path
    named = [folder / name for name in _CHECKPOINTS if (folder / name).is_file()]
    found = named or sorted(folder.glob("*.pt"))
    if not named and len(found) > 1:
        raise InputError(
            f"which of {len(found)} checkpoints?", folder, remedy="Give the checkpoint's own path."
        )
    return found[0]
