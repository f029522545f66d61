"""Subwords of a model (SentencePiece, BPE after Moses, or a tokenizer.json), and the language tokens of
multilingual models: ``__cs__``, ``ces_Latn``, ``cs_CZ``, ``>>ces<<``, ``<2cs>``."""

import os
import re
import shutil
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

from paraforge.base.errors import InputError, require
from paraforge.base.text.language_codes import MEMBERS, THREE_LETTERS
from paraforge.base.text.units import load_processor
from paraforge.translation.models.sentencepiece import SHARED_FILES, SOURCE_FILES, TARGET_FILES

SENTENCEPIECE, BPE, TOKENIZERS = ".spm", ".bpe", ".tokenizer.json"
# Names in our model directories: source.spm, target.bpe, ...
KINDS = (SENTENCEPIECE, BPE, TOKENIZERS)
_SOURCE_BPE = ("source.bpe", "bpe.source.codes")
_TARGET_BPE = ("target.bpe", "bpe.target.codes")
_SHARED_BPE = ("bpecodes", "bpe.codes", "codes", "code", "bpe.code")
_TOKENIZER = "tokenizer.json"
# SentencePiece's mark of the start of a word.
WORD_START = "\u2581"
_JOINER = "@@"
# __cs__, >>ces<<, <2cs>, ces_Latn, cs_CZ
_TAG = re.compile(r"__.+__|>>.+<<|<2.+>|[a-z]{2,3}_[A-Z]([A-Za-z]|[A-Za-z]{3})", re.DOTALL)


class Subwords(Protocol):
    """The part of SentencePiece's processor that translation needs."""

    def encode(self, sentences: list[str], out_type: type, num_threads: int = 1) -> list[list[str]]:
        """Return the tokens of each sentence, without special tokens around them."""

    def decode(self, tokens: list[str]) -> str:
        """Return the text of tokens."""


def open_subwords(path: Path, language: str) -> Subwords:
    """Load the subwords of one side.

    path: SentencePiece model, BPE codes (``.bpe``) or ``tokenizer.json``, recognized by name.
    language: code for Moses' rules, used with BPE codes.

    Raises:
        InputError: the file is missing or damaged.
        MissingPackageError: the package for this kind is not installed.
    """
    if path.name.endswith(BPE):
        return MosesBpe(path, language)
    if path.name.endswith(TOKENIZERS) or path.name == _TOKENIZER:
        return Tokenizers(path)
    processor: Subwords = load_processor(path)
    return processor


def known_pieces(subwords: Any) -> Callable[[str], bool]:
    """Return a function that checks whether a piece is known and more than a word-start mark."""
    if hasattr(subwords, "known_pieces"):
        known = set(subwords.known_pieces()) - {"<unk>", WORD_START}
        return known.__contains__
    unknown = subwords.unk_id()
    return lambda piece: piece != WORD_START and subwords.piece_to_id(piece) != unknown


def libraries(path: Path) -> tuple[str, ...]:
    """Return the distributions that are needed for a subword file."""
    if path.name.endswith(BPE):
        return ("sacremoses", "subword-nmt")
    return ("tokenizers",) if path.name.endswith(_TOKENIZER) else ("sentencepiece",)


def find_subwords(folder: Path, languages: tuple[str, str] = ("", "")) -> tuple[Path, Path]:
    """Find the subword files of source and target in a model of another layout; the same file twice if
    shared.

    folder: a model's directory.
    languages: codes, for files named after their language.

    Raises InputError if there are none, or only one side's.
    """

    def first(names: Sequence[str]) -> Path | None:
        return next((folder / name for name in names if (folder / name).is_file()), None)

    kinds = (
        (SOURCE_FILES, TARGET_FILES, SHARED_FILES),
        (("source.tokenizer.json",), ("target.tokenizer.json",), ()),
        (
            (*_SOURCE_BPE, f"bpecodes.{languages[0]}", f"code.{languages[0]}"),
            (*_TARGET_BPE, f"bpecodes.{languages[1]}", f"code.{languages[1]}"),
            _SHARED_BPE,
        ),
        ((), (), (_TOKENIZER,)),
    )
    for of_source, of_target, of_both in kinds:
        shared = first(of_both)
        source, target = first(of_source) or shared, first(of_target) or shared
        if source is not None and target is not None:
            return source, target
    raise InputError(
        "no SentencePiece model next to the weights",
        folder,
        remedy="Put sentencepiece.model there, or source.spm and target.spm (BPE: source.bpe and target.bpe; "
        "Transformers: tokenizer.json).",
    )


def is_bpe(name: str) -> bool:
    """Return whether a file of this name has BPE codes."""
    return name in (*_SOURCE_BPE, *_TARGET_BPE, *_SHARED_BPE) or name.startswith(("bpecodes.", "code."))


def copy_subwords(file: Path, output: Path, side: str) -> Path:
    """Copy the subwords of one side to ``output`` under the project's name, with BPE codes in one form. An
    existing file stays. Raises InputError if they are damaged."""
    if file.parent == output and any(file.name == f"{side}{kind}" for kind in KINDS):
        return file
    if file.name == _TOKENIZER or file.name.endswith(TOKENIZERS):
        target = output / f"{side}{TOKENIZERS}"
    elif is_bpe(file.name):
        target = output / f"{side}{BPE}"
        target.write_text(_plain_codes(file), encoding="utf-8")
        return target
    else:
        target = output / f"{side}{SENTENCEPIECE}"
    shutil.copyfile(file, target)
    return target


def subwords_file(folder: Path, side: str) -> Path:
    """Return the subwords of one side in a directory of the project's layout."""
    return next(
        (folder / f"{side}{kind}" for kind in KINDS if (folder / f"{side}{kind}").is_file()),
        folder / f"{side}{SENTENCEPIECE}",
    )


def _plain_codes(path: Path) -> str:
    """Read merges as subword-nmt does; fastBPE has counts in a third column and no header."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise InputError("not BPE codes: not UTF-8 text", path) from error
    header = "#version: 0.2"
    if lines[0].startswith("#version:"):
        header, lines = lines[0].strip(), lines[1:]
    merges = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        parts = line.strip("\r\n ").split(" ")
        if len(parts) not in (2, 3):
            raise InputError("not a line of BPE codes ('left right', perhaps with a count)", path, number)
        merges.append(f"{parts[0]} {parts[1]}")
    if not merges:
        raise InputError("no BPE codes in it", path)
    return "\n".join([header, *merges, ""])


class MosesBpe:
    """Moses' tokenizer as in OPUS-MT and fairseq (split hyphens, escaped), then byte-pair encoding."""

    name = "the file of BPE codes"
    any_character = True  # every character is a piece, even without a merge

    def __init__(self, path: Path, language: str) -> None:
        apply_bpe = require("subword_nmt.apply_bpe", "bpe")
        from sacremoses import MosesDetokenizer, MosesTokenizer

        if not path.is_file():
            raise InputError("no such file of BPE codes", path)
        with path.open(encoding="utf-8") as codes:
            self._bpe: Any = apply_bpe.BPE(codes, separator=_JOINER)
        short = language.replace("_", "-").partition("-")[0] or "en"
        self._tokenizer = MosesTokenizer(lang=short)
        self._detokenizer = MosesDetokenizer(lang=short)
        self._path = path
        # Most words of a text are frequent, so their pieces are cached.
        self._split = lru_cache(maxsize=1 << 18)(lambda word: tuple(self._bpe.segment_tokens([word])))

    def encode(self, sentences: list[str], out_type: type = str, num_threads: int = 1) -> list[list[str]]:
        """Return tokens of each sentence."""
        return [
            [
                piece
                for word in self._tokenizer.tokenize(sentence, aggressive_dash_splits=True, escape=True)
                for piece in self._split(word)
            ]
            for sentence in sentences
        ]

    def known_pieces(self) -> set[str]:
        """Return the pieces from the merges, inside a word and at its end, and the characters that they start
        from."""
        pieces: set[str] = set()
        for line in self._path.read_text(encoding="utf-8").split("\n"):
            if line and not line.startswith("#version:"):
                left, right = line.split(" ")
                for piece in (left, right, left + right):
                    bare = piece.removesuffix("</w>")
                    pieces.update((bare, bare + _JOINER))
        return pieces

    def decode(self, tokens: list[str]) -> str:
        """Return the text of tokens: words joined, escapes and hyphens undone, spaces by the language's
        rules."""
        words = f"{' '.join(tokens)} ".replace(f"{_JOINER} ", "").split()
        return str(self._detokenizer.detokenize(words, unescape=True))


class Tokenizers:
    """The ``tokenizers`` library's file, which Transformers writes for newer models."""

    name = "the tokenizer.json"

    def __init__(self, path: Path) -> None:
        # Its own threads would compete with the engine's for cores.
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        library = require("tokenizers", "transformers")
        if not path.is_file():
            raise InputError("no such file", path)
        try:
            self._tokenizer: Any = library.Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises plain Exception
            raise InputError(f"not a tokenizer.json, or damaged: {error}", path) from error
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    def encode(self, sentences: list[str], out_type: type = str, num_threads: int = 1) -> list[list[str]]:
        """Return tokens of each sentence."""
        encodings = self._tokenizer.encode_batch(sentences, add_special_tokens=False)
        return [sentence.tokens for sentence in encodings]

    def known_pieces(self) -> set[str]:
        """Return the whole vocabulary."""
        return set(self._tokenizer.get_vocab())

    def decode(self, tokens: list[str]) -> str:
        """Return the text of tokens; unknown tokens are left out."""
        numbers = [self._tokenizer.token_to_id(token) for token in tokens]
        return str(self._tokenizer.decode([number for number in numbers if number is not None]))


def language_token(language: str, vocabulary: Iterable[str]) -> str | None:
    """Return a vocabulary's token for a language, or None if it has none.

    language: a code (``cs``, ``ces``), or the token itself. vocabulary: all tokens of the model.

    Raises InputError if several tokens fit (``zho_Hans``, ``zho_Hant``), so the user must choose.
    """
    words = vocabulary if isinstance(vocabulary, (set, frozenset, dict)) else set(vocabulary)
    if _TAG.fullmatch(language) and language in words:
        return language
    three = THREE_LETTERS.get(language, language)
    codes = dict.fromkeys((language, three, MEMBERS.get(three, three)))
    for form in ("__{}__", ">>{}<<", "<2{}>"):
        for code in codes:
            if form.format(code) in words:
                return form.format(code)
    tokens = sorted(word for word in words if _TAG.fullmatch(word) and word.partition("_")[0] in codes)
    if len(tokens) > 1:
        raise InputError(
            f"the model has several tokens for the language {language!r}: {', '.join(tokens)}",
            remedy="Use one of them as the language.",
        )
    return tokens[0] if tokens else None


def language_tokens(vocabulary: Iterable[str]) -> list[str]:
    """Return all tokens of a vocabulary that look like languages, sorted."""
    return sorted(word for word in vocabulary if _TAG.fullmatch(word))
