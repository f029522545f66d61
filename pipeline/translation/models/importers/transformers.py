"""Imports encoder-decoders of Hugging Face Transformers: Marian, M2M-100, NLLB and similar models."""

import warnings
from pathlib import Path
from typing import Any

from paraforge.base.errors import InputError, require
from paraforge.base.files import read_json_object
from paraforge.base.text.language_codes import two_letters
from paraforge.translation.models.checkpoint import load_pickle
from paraforge.translation.models.importers.ctranslate2 import (
    FOLDER,
    Languages,
    check_sizes,
    check_whole,
    convert,
    language_affixes,
    last_line,
)
from paraforge.translation.models.subwords import (
    Subwords,
    copy_subwords,
    find_subwords,
    language_token,
    language_tokens,
    open_subwords,
    subwords_file,
)

ORIGIN = "transformers"
WANTED = "config.json and weights (Transformers)"
WEIGHTS = (
    "model.safetensors",
    "pytorch_model.bin",
    "model.safetensors.index.json",
    "pytorch_model.bin.index.json",
)
_BIAS = "final_logits_bias"
# Whether a kind of model normalizes before each block, if its configuration does not say.
_PRE_NORM = {"bart": False, "mbart": True, "pegasus": True}
# Files of a tokenizer that may be missing.
_OPTIONAL = ("tokenizer.json", "tokenizer_config.json", "target_vocab.json", "added_tokens.json")


def recognizes(path: Path) -> bool:
    """Return whether a path is a directory with a configuration and weights of Transformers."""
    return (path / "config.json").is_file() and any((path / name).is_file() for name in WEIGHTS)


def languages_of(path: Path, source_language: str | None, target_language: str | None) -> Languages:
    """Return the languages to import a model for: the user's, the model's own, or cs and en.

    Raises InputError if the model's own configuration names another pair.
    """
    config = path / "tokenizer_config.json"
    values = read_json_object(config) if config.is_file() else {}
    languages = (source_language, target_language)
    own = (str(values.get("source_lang") or ""), str(values.get("target_lang") or ""))
    codes = [two_letters(name) for name in own]  # families such as ROMANCE have none
    vocabulary = path / "vocab.json"
    if vocabulary.is_file() and language_tokens(read_json_object(vocabulary)):
        codes[1] = None  # a model of several targets
    if any(
        asked and code and two_letters(asked) != code for asked, code in zip(languages, codes, strict=True)
    ):
        source, target = (asked or name for asked, name in zip(languages, own, strict=True))
        raise InputError(
            f"it translates from {own[0]} to {own[1]}, not from {source} to {target}",
            path,
            remedy="Use a model for this pair of languages.",
        )
    return languages[0] or codes[0] or "cs", languages[1] or codes[1] or "en"


def convert_model(path: Path, output: Path, languages: Languages) -> dict[str, Any]:
    """Convert a model from ``save_pretrained`` or the Hub, without running its code.

    Returns entries of ``model.json``, with the tokens that the tokenizer puts around a source and before a
    translation.

    Raises:
        InputError: a part is missing or damaged, its pickle would run code, weights are missing, or
            embeddings, vocabulary and subwords do not belong together.
        MissingPackageError: Transformers is not installed.
    """
    transformers = require("transformers", "transformers")
    from transformers.models.auto import modeling_auto

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        weights = _stored_weights(path)
        config = read_json_object(path / "config.json")
        if config.get("model_type") not in modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES:
            # Anything else would first be filled with random numbers, in its usual size.
            raise InputError(
                f"its model_type is {config.get('model_type')!r}, which is not a kind of encoder-decoder",
                path / "config.json",
                remedy="Use a translation model; for a language model, use the engine 'server'.",
            )
        if config["model_type"] == "marian":
            if _BIAS not in weights:
                raise InputError(f"weights are missing: {_BIAS}", path)
            if not config.get("share_encoder_decoder_embeddings", True):
                raise InputError(
                    "its two languages have separate vocabularies, which CTranslate2 cannot convert",
                    path,
                    remedy="Convert the original model with CTranslate2's converter for Marian.",
                )
        size = sum(file.stat().st_size for file in _weight_files(path))
        check_sizes(config, len(weights), size, path / "config.json")
        affixes = take_subwords(path, output, load_tokenizer(path), languages)
        convert(_converter(path), path, output / FOLDER)
    check_whole(output, path, languages)
    return {
        "engines": {FOLDER: FOLDER},
        "maximum_source_tokens": int(config.get("max_position_embeddings") or 1024),
        **affixes,
    }


def load_tokenizer(path: Path) -> Any:
    """Load the tokenizer of a directory without running its code. Raises InputError if it is missing or
    damaged; a missing file is named."""
    import transformers

    try:
        return transformers.AutoTokenizer.from_pretrained(
            str(path), local_files_only=True, trust_remote_code=False
        )
    except Exception as error:  # tokenizers raise different errors on damaged files
        try:
            kind = str(read_json_object(path / "tokenizer_config.json").get("tokenizer_class", ""))
        except InputError:
            kind = ""
        files = getattr(getattr(transformers, kind, None), "vocab_files_names", {}).values()
        missing = [name for name in files if name not in _OPTIONAL and not (path / name).is_file()]
        if missing and not (path / "tokenizer.json").is_file():
            raise InputError(
                f"its tokenizer cannot be loaded: there is no {', '.join(missing)}", path
            ) from error
        if "protobuf" in str(error):  # with it, a SentencePiece model is converted
            require("google.protobuf", "transformers")
        raise InputError(f"its tokenizer cannot be loaded: {last_line(error)}", path) from error


def vocabulary_of(tokenizer: Any) -> dict[str, int]:
    """Return all tokens by number, including language tokens, which M2M-100's tokenizer stores separately."""
    return {**tokenizer.get_vocab(), **getattr(tokenizer, "lang_token_to_id", {})}


def take_subwords(path: Path, output: Path, tokenizer: Any, languages: Languages) -> dict[str, list[str]]:
    """Copy the subwords whose pieces are the tokenizer's, preferring SentencePiece to ``tokenizer.json``.

    Returns the tokens that the tokenizer puts around a source and before a translation, as in ``model.json``.
    Raises InputError if no subwords have the tokenizer's pieces, or the tokenizer lacks a language.
    """
    own = path / "tokenizer.json"
    try:
        candidates = [find_subwords(path, languages)]
    except InputError:
        if not own.is_file():
            raise
        candidates = []
    if own.is_file() and (own, own) not in candidates:
        candidates.append((own, own))
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
    """Find the tokens that the tokenizer puts around a sentence, and the target's language token if any."""
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
        middle = tokens[start : start + len(pieces)]
        if all(token in (piece, "<unk>") for token, piece in zip(middle, pieces, strict=True)):
            return {
                "source_prefix": [*prefix, *tokens[:start]],
                "source_suffix": tokens[start + len(pieces) :],
                "target_prefix": target_prefix,
            }
    raise InputError(
        f"its tokenizer gives {' '.join(tokens)}, its subwords {' '.join(pieces)}",
        path,
        remedy="Only models with SentencePiece tokens or a tokenizer.json can be imported.",
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


def _weight_files(path: Path) -> list[Path]:
    """Return the files of a model's weights."""
    return sorted(path.glob("model*.safetensors")) or sorted(path.glob("pytorch_model*.bin"))


def _stored_weights(path: Path) -> set[str]:
    """Read the names of all weights. Raises InputError if a file is damaged or a pickle would run code."""
    from safetensors import SafetensorError, safe_open

    names: set[str] = set()
    for file in _weight_files(path):
        try:
            if file.suffix == ".safetensors":
                with safe_open(str(file), "pt") as tensors:
                    names.update(tensors.keys())
            else:
                names.update(load_pickle(file))
        except (SafetensorError, RuntimeError, OSError, ValueError, TypeError) as error:
            raise InputError(f"not weights, or damaged: {last_line(error)}", file) from error
    return names


def _converter(path: Path) -> Any:
    """Return CTranslate2's converter, changed to load weights exactly as stored, or to fail."""
    from ctranslate2.converters import TransformersConverter

    class Converter(TransformersConverter):  # type: ignore[misc]  # it has no types
        """Rejects weights that would silently be random or converted."""

        def load_model(self, model_class: Any, model_name_or_path: str, **options: Any) -> Any:
            try:
                model, report = model_class.from_pretrained(
                    model_name_or_path, local_files_only=True, output_loading_info=True, **options
                )
            except OSError as error:  # a part of the weights is missing
                raise ValueError(last_line(error)) from error
            except RuntimeError as error:
                if "ignore_mismatched_sizes" in str(error):  # its own message is in the log
                    raise ValueError("its weights have other sizes than its config.json says") from error
                raise
            missing = sorted(
                name for name in report["missing_keys"] if not name.endswith("embed_positions.weight")
            )
            if missing:  # Transformers would fill them with random numbers
                raise ValueError(f"{len(missing)} weights are missing, {missing[0]} the first of them")
            if model.config.model_type in _PRE_NORM and not hasattr(model.config, "normalize_before"):
                model.config.normalize_before = _PRE_NORM[model.config.model_type]
            if model.config.model_type == "marian":
                _check_start(model)
            self.rows = model.get_input_embeddings().weight.shape[0]
            self.configuration = model.config
            return model

        def load_tokenizer(self, tokenizer_class: Any, model_name_or_path: str, **options: Any) -> Any:
            tokenizer = load_tokenizer(Path(model_name_or_path))
            vocabulary = vocabulary_of(tokenizer)
            if max(vocabulary.values(), default=-1) >= self.rows:
                raise ValueError(
                    f"the embedding has {self.rows} rows, but the tokenizer's tokens go up to number "
                    f"{max(vocabulary.values())}"
                )
            # The converter reads here whether mBART's decoder starts from the end of a sentence (mBART-50).
            self.configuration.tokenizer_class = type(tokenizer).__name__
            tokenizer.bos_token = tokenizer.bos_token or tokenizer.cls_token
            # The converter only uses this, which lacks the languages in M2M-100.
            tokenizer.get_vocab = lambda: vocabulary
            return tokenizer

    return Converter(str(path))


def _check_start(model: Any) -> None:
    """Raise ValueError unless the decoder of a Marian model starts from zeros, the last embedding, which the
    converter leaves out."""
    start = model.config.decoder_start_token_id
    embedding = model.get_decoder().embed_tokens.weight
    if not isinstance(start, int) or not 0 <= start < len(embedding) or bool(embedding[start].any()):
        raise ValueError(
            "its decoder does not start from zeros, as Marian's do: import the model that it was made from"
        )
    if start != len(embedding) - 1:
        raise ValueError(f"{len(embedding) - 1 - start} tokens were added to it, which cannot be converted")
