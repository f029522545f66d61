"""Encoder-decoders of Hugging Face Transformers: Marian, M2M-100, NLLB and others like them."""

from __future__ import annotations

import logging
import pickle  # only for the name of the error that torch raises
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pipeline.errors import InputError, require
from pipeline.files import read_json
from pipeline.translation.formats.ctranslate2 import (
    CONVERSION_ERRORS,
    FOLDER,
    Languages,
    check_whole,
    convert,
    language_affixes,
    last_line,
)
from pipeline.translation.formats.fidelity import (
    TOLERANCE,
    Reference,
    check_fidelity,
    comparing,
    some_tokens,
)
from pipeline.translation.languages import language_token, language_tokens
from pipeline.translation.subwords import (
    Subwords,
    copy_subwords,
    find_subwords,
    open_subwords,
    subwords_file,
)

WEIGHTS = (
    "model.safetensors",
    "pytorch_model.bin",
    "model.safetensors.index.json",
    "pytorch_model.bin.index.json",
)
_POSITIONS = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")
_EMBEDDINGS = (
    "model.shared.weight",
    "shared.weight",
    "model.encoder.embed_tokens.weight",
    "model.decoder.embed_tokens.weight",
)

# Kinds whose decoder begins with one token, so that a converted model can be compared with the original.
_COMPARED = ("marian", "m2m_100", "bart", "pegasus")
# Whether a kind normalises before each block, where its configuration does not say.
_PRE_NORM = {"bart": False, "mbart": True, "pegasus": True}

logger = logging.getLogger(__name__)


def is_transformers(folder: Path) -> bool:
    """Whether a directory has a configuration and weights of Transformers."""
    return (folder / "config.json").is_file() and any((folder / name).is_file() for name in WEIGHTS)


def import_transformers(path: Path, output: Path, languages: Languages) -> dict[str, Any]:
    """Convert a model as ``save_pretrained`` or the hub has it; no code of it is run.

    Returns:
        Entries of ``model.json``, with what the tokeniser puts around a source and before a translation.

    Raises:
        InputError: a part is missing or damaged, its pickle wants to run code, weights are missing, or
            embeddings, vocabulary and subwords do not belong together.
        MissingPackageError: Transformers is not installed.
    """
    require("transformers", "transformers")
    with _quiet():
        tokenizer = _load_tokenizer(path)
        tensors = _Tensors(path)
        _check_rows(path, tokenizer, tensors)
        _check_marian(path, tensors)
        affixes = _take_subwords(path, output, tokenizer, languages)
        converter = _converter(path, tensors)
        convert(converter, path, output)
    check_whole(output, path, languages)
    if converter.reference is not None:
        with comparing(path):
            check_fidelity(output / FOLDER, converter.reference, path)
    config = read_json(path / "config.json")
    return {
        "engines": {FOLDER: FOLDER},
        "maximum_source_tokens": int(config.get("max_position_embeddings") or 1024),
        **affixes,
    }


@contextmanager
def _quiet() -> Iterator[None]:
    """Without progress bars of weights and remarks about tokenisers that are not ours to change."""
    import transformers

    library = transformers.utils.logging
    before = library.get_verbosity()
    library.set_verbosity_error()
    library.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        library.set_verbosity(before)
        library.enable_progress_bar()


def _load_tokenizer(path: Path) -> Any:
    import transformers

    try:
        return transformers.AutoTokenizer.from_pretrained(
            str(path), local_files_only=True, trust_remote_code=False
        )
    except Exception as error:  # every tokeniser has its own way to fail on a damaged file
        raise InputError(f"its tokeniser cannot be loaded: {last_line(error)}", path) from error


def _vocabulary(tokenizer: Any) -> dict[str, int]:
    """All tokens by their numbers, with the languages', which M2M-100's tokeniser keeps apart."""
    return {**tokenizer.get_vocab(), **getattr(tokenizer, "lang_token_to_id", {})}


class _Tensors:
    """Weights of a directory, file by file: their shapes, and single ones by name."""

    def __init__(self, path: Path) -> None:
        self._files = sorted(path.glob("model*.safetensors")) or sorted(path.glob("pytorch_model*.bin"))
        self._names: dict[str, Path] = {}
        self._loaded: dict[Path, Any] = {}
        for file in self._files:
            for name in self._open(file):
                self._names[name] = file

    def _open(self, file: Path) -> Any:
        import torch
        from safetensors import SafetensorError, safe_open

        try:
            if file.suffix == ".safetensors":
                with safe_open(str(file), "pt") as tensors:
                    return list(tensors.keys())
            if file not in self._loaded:
                self._loaded[file] = torch.load(str(file), map_location="cpu", weights_only=True)
            return self._loaded[file]
        except pickle.UnpicklingError as error:
            raise InputError(
                "refused: it holds more than weights and plain values",
                file,
                remedy="Only its authors know what its code does; ask them for safetensors.",
            ) from error
        except (SafetensorError, RuntimeError, OSError, EOFError, ValueError) as error:
            raise InputError(f"not weights, or damaged: {last_line(error)}", file) from error

    def get(self, name: str) -> Any:
        """A tensor, or None if there is none of this name."""
        from safetensors import safe_open

        file = self._names.get(name)
        if file is None:
            return None
        if file.suffix == ".safetensors":
            with safe_open(str(file), "pt") as tensors:
                return tensors.get_tensor(name)
        return self._loaded[file][name]

    def rows(self, name: str) -> int | None:
        """Rows of a tensor, or None if there is none of this name."""
        from safetensors import safe_open

        file = self._names.get(name)
        if file is None:
            return None
        if file.suffix == ".safetensors":
            with safe_open(str(file), "pt") as tensors:
                return int(tensors.get_slice(name).get_shape()[0])
        return int(self._loaded[file][name].shape[0])


def _check_rows(path: Path, tokenizer: Any, tensors: _Tensors) -> None:
    """Compare embeddings, configuration and tokeniser before anything is converted."""
    config = read_json(path / "config.json")
    size = config.get("vocab_size")
    for name in _EMBEDDINGS:
        rows = tensors.rows(name)
        if rows is None:
            continue
        expected = config.get("decoder_vocab_size") or size if name.startswith("model.decoder") else size
        if expected is not None and rows != expected:
            raise InputError(
                f"the embedding {name} has {rows} rows, but config.json says vocab_size {expected}", path
            )
        highest = max(_vocabulary(tokenizer).values(), default=-1)
        if not name.startswith("model.decoder") and highest >= rows:
            raise InputError(
                f"the embedding {name} has {rows} rows, but the tokeniser's tokens go up to number {highest}",
                path,
                remedy="Give the tokeniser that the model was trained with.",
            )


def _check_marian(path: Path, tensors: _Tensors) -> None:
    """Refuse a Marian configuration that another start of the decoder was put into.

    Marian's decoder starts from zeros, for which Transformers has padding's embedding, the last one. The
    converter counts on that, so a model of fairseq in Marian's clothes would come out spoilt.
    """
    config = read_json(path / "config.json")
    if config.get("model_type") != "marian":
        return
    embedding = tensors.get("model.decoder.embed_tokens.weight")  # where it is not shared
    if embedding is None:
        embedding = tensors.get("model.shared.weight")
    starts_from_zeros = embedding is None or not bool(embedding[-1].any())
    last = int(config.get("decoder_vocab_size") or config["vocab_size"]) - 1
    if config.get("decoder_start_token_id", last) != last or not starts_from_zeros:
        raise InputError(
            "its decoder does not start from zeros, as those of Marian do: it was converted from elsewhere",
            path,
            remedy="Import the model that it was converted from.",
        )


def _take_subwords(path: Path, output: Path, tokenizer: Any, languages: Languages) -> dict[str, list[str]]:
    """Copy the subwords whose pieces are the tokeniser's, SentencePiece's before ``tokenizer.json``."""
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
        tags = language_affixes(languages, list(_vocabulary(tokenizer)))
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
    vocabulary = _vocabulary(tokenizer)
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


def _converter(path: Path, tensors: _Tensors) -> Any:
    from ctranslate2.converters import TransformersConverter

    class Converter(TransformersConverter):  # type: ignore[misc]
        """Loads weights as the files have them, or not at all."""

        reference: Reference | None = None

        def load_model(self, model_class: Any, model_name_or_path: str, **options: Any) -> Any:
            try:
                model, report = model_class.from_pretrained(
                    model_name_or_path, local_files_only=True, output_loading_info=True, **options
                )
            except CONVERSION_ERRORS:
                raise
            except Exception as error:
                raise ValueError(last_line(error)) from error
            missing = sorted(
                name for name in report["missing_keys"] if not name.endswith("embed_positions.weight")
            )
            if missing:  # Transformers would fill them with random numbers
                raise ValueError(f"{len(missing)} weights are missing, {missing[0]} the first of them")
            _restore_positions(model, tensors)
            _complete_configuration(model.config)
            with comparing(path):
                self.reference = _reference(model, _load_tokenizer(path))
            return model

        def load_tokenizer(self, tokenizer_class: Any, model_name_or_path: str, **options: Any) -> Any:
            tokenizer = _load_tokenizer(Path(model_name_or_path))
            whole = _vocabulary(tokenizer)
            # The converter asks for what a tokeniser of older versions had: languages would become fillers.
            tokenizer.get_vocab = lambda: whole
            return tokenizer

    return Converter(str(path))


def _complete_configuration(config: Any) -> None:
    """Say what configurations of older versions said, and newer ones leave to the kind of model."""
    if config.model_type in _PRE_NORM and not hasattr(config, "normalize_before"):
        config.normalize_before = _PRE_NORM[config.model_type]


def _reference(model: Any, tokenizer: Any) -> Reference | None:
    """Log-probabilities of some tokens after some others, as Transformers computes them."""
    import torch

    config = model.config
    start, end = config.decoder_start_token_id, config.eos_token_id
    size = getattr(config, "decoder_vocab_size", None) or config.vocab_size
    if not isinstance(start, int) or not isinstance(end, int) or config.model_type not in _COMPARED:
        return None
    source = tokenizer("ano 12.")["input_ids"]
    vocabulary = sorted(_vocabulary(tokenizer).items(), key=lambda item: item[1])
    names = {number: token for token, number in vocabulary if number < size}
    target = some_tokens([names.get(number, "<>") for number in range(size)])
    with torch.inference_mode():
        given = (
            model.eval()(input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([[start, *target]]))
            .logits[0]
            .float()
        )
        if config.model_type == "marian":
            given[:, config.pad_token_id] = -torch.inf  # Marian itself has no padding to say
        scores = given.log_softmax(1).gather(1, torch.tensor([*target, end])[:, None])
    return Reference(
        source=[str(token) for token in tokenizer.convert_ids_to_tokens(source)],
        target=[names[number] for number in target],
        log_probabilities=scores[:, 0].tolist(),
        tolerance=TOLERANCE.get(str(model.dtype).removeprefix("torch."), 0.5),
    )


def _restore_positions(model: Any, tensors: _Tensors) -> None:
    """Put back the positions that the file has, whichever version of Transformers loads it.

    Marian's sinusoids are computed anew on loading; those of fairseq begin two positions later and have other
    frequencies, so a model converted from fairseq would be spoilt.
    """
    import torch

    for name in _POSITIONS:
        stored = tensors.get(name)
        if stored is None:
            continue
        module = model.get_submodule(name.rpartition(".")[0])
        weight = getattr(module, "weight", None)
        if weight is None or weight.shape != stored.shape:
            raise ValueError(f"{name} has the shape {tuple(stored.shape)}, which is not the configuration's")
        if not torch.allclose(weight.float(), stored.float(), atol=1e-5):
            logger.warning("%s: other positions than Transformers computes; taken as the file has them", name)
            with torch.no_grad():
                weight.copy_(stored)
