"""The files of a Transformers directory: weights, tokeniser, and the subwords that its tokens are."""

import pickle  # only for the name of the error that torch raises
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from paraforge.base.errors import InputError
from paraforge.translation.models.importers.ctranslate2 import Languages, language_affixes, last_line
from paraforge.translation.models.subwords import (
    Subwords,
    copy_subwords,
    find_subwords,
    language_token,
    language_tokens,
    open_subwords,
    subwords_file,
)


def load_tokenizer(path: Path) -> Any:
    """The tokeniser of a directory; no code of it is run. Raises InputError: it is missing or damaged."""
    import transformers

    try:
        return transformers.AutoTokenizer.from_pretrained(
            str(path), local_files_only=True, trust_remote_code=False
        )
    except Exception as error:  # every tokeniser has its own way to fail on a damaged file
        raise InputError(f"its tokeniser cannot be loaded: {last_line(error)}", path) from error


def vocabulary_of(tokenizer: Any) -> dict[str, int]:
    """All tokens by their numbers, with the languages', which M2M-100's tokeniser keeps apart."""
    return {**tokenizer.get_vocab(), **getattr(tokenizer, "lang_token_to_id", {})}


def take_subwords(path: Path, output: Path, tokenizer: Any, languages: Languages) -> dict[str, list[str]]:
    """Copy the subwords whose pieces are the tokeniser's, SentencePiece's before ``tokenizer.json``.

    Returns what the tokeniser puts around a source and before a translation, as ``model.json`` has it. Raises
    InputError: there are none whose pieces are the tokeniser's, or it does not know a language.
    """
    candidates: list[tuple[Path, Path]] = []
    try:
        candidates.append(find_subwords(path, languages))
    except InputError:
        pass
    own = path / "tokenizer.json"
    if own.is_file() and (own, own) not in candidates:
        candidates.append((own, own))
    if not candidates:
        find_subwords(path, languages)  # says what is missing
    problem: InputError | None = None
    for source, target in candidates:
        copied = copy_subwords(source, output, "source")
        copy_subwords(target, output, "target")
        try:
            return _affixes(path, tokenizer, open_subwords(copied, languages[0]), languages)
        except InputError as error:
            problem = error
            copied.unlink()
            subwords_file(output, "target").unlink()
    assert problem is not None
    raise problem


def _affixes(path: Path, tokenizer: Any, subwords: Subwords, languages: Languages) -> dict[str, list[str]]:
    """What the tokeniser puts around a sentence's pieces, and the target's language token if there is one."""
    prefix: list[str] = []
    target_prefix: list[str] = []
    if hasattr(tokenizer, "src_lang"):
        source, target = (_tag(tokenizer, language, path) for language in languages)
        tokenizer.src_lang = source.strip("_") if source.startswith("__") else source
        target_prefix = [target]
    else:
        tags = language_affixes(languages, list(vocabulary_of(tokenizer)))
        prefix = [tag for tag in tags.get("source_prefix", []) if tag.startswith((">>", "<2"))]
    text = "ano"
    tokens = list(map(str, tokenizer.convert_ids_to_tokens(tokenizer(text)["input_ids"])))
    pieces = subwords.encode([text], out_type=str)[0]
    for start in range(len(tokens) - len(pieces) + 1):
        found = tokens[start : start + len(pieces)]
        if all(token in (piece, "<unk>") for token, piece in zip(found, pieces, strict=True)):
            return {
                "source_prefix": [*prefix, *tokens[:start]],
                "source_suffix": tokens[start + len(pieces) :],
                "target_prefix": target_prefix,
            }
    raise InputError(
        f"its tokeniser gives {' '.join(tokens)}, its subwords {' '.join(pieces)}",
        path,
        remedy="Only models whose tokens are those of SentencePiece or of a tokenizer.json can be imported.",
    )


def _tag(tokenizer: Any, language: str, path: Path) -> str:
    vocabulary = vocabulary_of(tokenizer)
    token = language_token(language, vocabulary)
    if token is not None:
        return token
    known = language_tokens(vocabulary)
    shown = ", ".join(known[:12]) + (", ..." if len(known) > 12 else "")
    raise InputError(
        f"it has no token for the language {language!r}",
        path,
        remedy=f"Set nmt.source_language and nmt.target_language (or --from and --to) to two of {shown}.",
    )


class WeightFiles:
    """Weights of a directory, file by file: their shapes, and single ones by name."""

    def __init__(self, path: Path) -> None:
        """Read names and shapes. Raises InputError: a file is damaged, or a pickle wants to run code."""
        self._files: dict[str, Path] = {}
        self._shapes: dict[str, Sequence[int]] = {}
        self._loaded: dict[Path, Any] = {}
        for file in sorted(path.glob("model*.safetensors")) or sorted(path.glob("pytorch_model*.bin")):
            shapes = self._open(file)
            self._files |= dict.fromkeys(shapes, file)
            self._shapes |= shapes

    def _open(self, file: Path) -> dict[str, Sequence[int]]:
        import torch
        from safetensors import SafetensorError, safe_open

        try:
            if file.suffix == ".safetensors":
                with safe_open(str(file), "pt") as tensors:
                    names = tensors.keys()
                    return {name: tensors.get_slice(name).get_shape() for name in names}
            self._loaded[file] = torch.load(str(file), map_location="cpu", weights_only=True)
            return {name: getattr(value, "shape", ()) for name, value in self._loaded[file].items()}
        except pickle.UnpicklingError as error:
            raise InputError(
                "refused: it holds more than weights and plain values",
                file,
                remedy="Only its authors know what its code does; ask them for safetensors.",
            ) from error
        except (SafetensorError, RuntimeError, OSError, EOFError, ValueError, AttributeError) as error:
            raise InputError(f"not weights, or damaged: {last_line(error)}", file) from error

    def get(self, name: str) -> Any:
        """A tensor, or None if there is none of this name."""
        from safetensors import safe_open

        file = self._files.get(name)
        if file is None:
            return None
        if file.suffix == ".safetensors":
            with safe_open(str(file), "pt") as tensors:
                return tensors.get_tensor(name)
        return self._loaded[file][name]

    def rows(self, name: str) -> int | None:
        """Rows of a tensor, or None if there is none of this name, or it is a single number."""
        shape = self._shapes.get(name)
        return shape[0] if shape else None
