"""Trains SentencePiece vocabularies, reads their pieces, and writes fairseq dictionaries for them."""

import io
import logging
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

from paraforge.base.errors import InputError
from paraforge.base.files import text_output, write_whole

logger = logging.getLogger(__name__)

# fairseq's own types come first; pieces with these names would clash with them.
SPECIAL_TYPES = ("<s>", "<pad>", "</s>", "<unk>")
FILLER = "madeupword"
# fairseq-preprocess pads dictionaries to a multiple of this, which suits matrix units.
PADDING_FACTOR = 8
MAXIMUM_SENTENCE_BYTES = 16_384
# SentencePiece sums per thread and writes their number into the model, so it is fixed for equal bytes.
TRAINER_THREADS = 4
# File names of SentencePiece models that are distributed with translation models.
SOURCE_FILES = ("source.spm", "source.model", "spm.source.model")
TARGET_FILES = ("target.spm", "target.model", "spm.target.model")
SHARED_FILES = ("sentencepiece.model", "sentencepiece.bpe.model", "spm.model", "spiece.model")


def train_vocabulary(
    sentences: Iterable[str],
    path: Path,
    *,
    size: int,
    kind: Literal["unigram", "bpe"] = "unigram",
    character_coverage: float = 1.0,
    byte_fallback: bool = False,
    symbols: Sequence[str] = (),
) -> None:
    """Train a SentencePiece model and write it to ``path``.

    sentences: training text, one sentence per item; SentencePiece keeps all of it in memory.
    size: number of pieces, including the unknown piece; fewer if the text has fewer.
    kind: unigram language model or byte-pair encoding.
    character_coverage: share of the text's characters that get a piece, in (0, 1].
    byte_fallback: spell unknown characters as bytes. symbols: additional pieces that are never split.

    Raises InputError if there is no text, or it has more different characters than ``size`` allows.
    """
    import sentencepiece

    model = io.BytesIO()
    count = 0

    def counted() -> Iterable[str]:
        nonlocal count
        for sentence in sentences:
            count += 1
            yield sentence

    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(counted()),
            model_writer=model,
            vocab_size=size + len(symbols),
            user_defined_symbols=list(symbols),
            model_type=kind,
            character_coverage=character_coverage,
            byte_fallback=byte_fallback,
            num_threads=TRAINER_THREADS,
            max_sentence_length=MAXIMUM_SENTENCE_BYTES,
            hard_vocab_limit=False,
            unk_id=0,
            bos_id=-1,
            eos_id=-1,
            pad_id=-1,
            minloglevel=2,
        )
    except (RuntimeError, OSError) as error:
        if count == 0:
            raise InputError(
                "no sentences to train a vocabulary on",
                remedy="Check the bitext and why its rows were rejected.",
            ) from error
        detail = str(error).replace("\n", " ")
        raise InputError(
            f"no vocabulary of {size} pieces can be trained on {count} sentences: {detail}",
            remedy="Change vocabulary.size or vocabulary.character_coverage of its section.",
        ) from error
    write_whole(path, model.getvalue())


def pieces_of(processor: Any) -> list[str]:
    """Return all pieces of a SentencePiece model by identifier; for other subwords, the known ones."""
    if hasattr(processor, "known_pieces"):
        return list(processor.known_pieces())
    pieces: list[str] = processor.id_to_piece(list(range(processor.get_piece_size())))
    return pieces


def write_dictionary(processor: Any, path: Path) -> int:
    """Write the fairseq dictionary of a SentencePiece model: its pieces in order, padded with fillers.

    Identifier i of SentencePiece (0 is unknown) becomes ``i + 3`` of fairseq.

    Returns the number of types in the dictionary, including fairseq's four. Raises InputError if a piece has
    the name of one of fairseq's types.
    """
    pieces = pieces_of(processor)[1:]
    clashes = sorted(set(pieces) & set(SPECIAL_TYPES))
    if clashes:
        raise InputError(
            f"pieces named {', '.join(clashes)} clash with fairseq's",
            path,
            remedy="Train the vocabulary without them.",
        )
    types = len(pieces) + len(SPECIAL_TYPES)
    fillers = -types % PADDING_FACTOR
    with text_output(path) as file:
        # Counts are only for subsampling, which translation does not use.
        file.writelines(f"{piece} 1\n" for piece in pieces)
        file.writelines(f"{FILLER}{index:04d} 0\n" for index in range(fillers))
    return types + fillers


def read_dictionary(path: Path) -> list[str]:
    """Return the types of a fairseq dictionary file, without fairseq's own four. Raises InputError if the
    file is missing, not UTF-8, or a line is not "type count"."""
    try:
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError as error:
        raise InputError(
            "no such dictionary", path, remedy="fairseq-preprocess writes it next to the data."
        ) from error
    except UnicodeDecodeError as error:
        raise InputError("not UTF-8 text", path, error.object.count(b"\n", 0, error.start) + 1) from error
    types = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line:
            continue
        word, space, rest = line.rpartition(" ")
        if rest == "#fairseq:overwrite":
            word, space, rest = word.rpartition(" ")
        if not space or not word or not rest.isdigit():
            raise InputError("not a line of a fairseq dictionary ('type count')", path, number)
        types.append(word)
    if not types:
        raise InputError("empty dictionary", path)
    return types


def check_pieces(processor: Any, types: Sequence[str], path: Path) -> None:
    """Check that subwords match a model's vocabulary.

    At least 90% of the smaller set must be in the other one: one side may contain additional types.

    Raises InputError if they do not match.
    """
    words = {word for word in types if word and not word.startswith(FILLER)}
    specials = ("<s>", "</s>", "<pad>", "<blank>", "<unk>")
    words.difference_update(specials)
    if getattr(processor, "any_character", False):
        words = {word for word in words if len(word.removesuffix("@@")) > 1} or words
    pieces = set(pieces_of(processor)).difference(specials)
    known = len(words & pieces)
    if known < 0.9 * min(len(words), len(pieces)):
        name = str(getattr(processor, "name", "the SentencePiece model"))
        raise InputError(
            f"{name} is not of this vocabulary: {known} of {len(words)} types are among "
            f"its {len(pieces)} pieces",
            path,
            remedy=f"Use the {name} that the translation model was trained with.",
        )
