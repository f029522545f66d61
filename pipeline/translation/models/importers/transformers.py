"""Encoder-decoders of Hugging Face Transformers: Marian, M2M-100, NLLB and others like them."""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from paraforge.base.errors import InputError, require
from paraforge.base.files import read_json
from paraforge.translation.models.conversion import (
    TOLERANCE,
    Reference,
    check_fidelity,
    comparing,
    some_tokens,
)
from paraforge.translation.models.importers.ctranslate2 import (
    CONVERSION_ERRORS,
    FOLDER,
    Languages,
    check_whole,
    convert,
    last_line,
)
from paraforge.translation.models.transformers_files import (
    WeightFiles,
    load_tokenizer,
    take_subwords,
    vocabulary_of,
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


ORIGIN = "transformers"
WANTED = "config.json and weights (Transformers)"


def recognises(path: Path) -> bool:
    """Whether a path is a directory with a configuration and weights of Transformers."""
    return (path / "config.json").is_file() and any((path / name).is_file() for name in WEIGHTS)


def convert_model(path: Path, output: Path, languages: Languages) -> dict[str, Any]:
    """Convert a model as ``save_pretrained`` or the hub has it; no code of it is run.

    Returns entries of ``model.json``, with what the tokeniser puts around a source and before a translation.

    Raises:
        InputError: a part is missing or damaged, its pickle wants to run code, weights are missing, or
            embeddings, vocabulary and subwords do not belong together.
        MissingPackageError: Transformers is not installed.
    """
    require("transformers", "transformers")
    with _quiet():
        tokenizer = load_tokenizer(path)
        tensors = WeightFiles(path)
        _check_rows(path, tokenizer, tensors)
        _check_marian(path, tensors)
        affixes = take_subwords(path, output, tokenizer, languages)
        converter = _converter(path, tensors)
        convert(converter, path, output / FOLDER)
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


def _check_rows(path: Path, tokenizer: Any, tensors: WeightFiles) -> None:
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
        highest = max(vocabulary_of(tokenizer).values(), default=-1)
        if not name.startswith("model.decoder") and highest >= rows:
            raise InputError(
                f"the embedding {name} has {rows} rows, but the tokeniser's tokens go up to number {highest}",
                path,
                remedy="Give the tokeniser that the model was trained with.",
            )


def _check_marian(path: Path, tensors: WeightFiles) -> None:
    """Refuse a Marian configuration that another start of the decoder was put into.

    Marian's decoder starts from zeros, for which Transformers has padding's embedding, the last one. The
    converter counts on that, so a model of fairseq saved in Marian's format would come out spoilt.
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


def _converter(path: Path, tensors: WeightFiles) -> Any:
    from ctranslate2.converters import TransformersConverter

    class Converter(TransformersConverter):  # type: ignore[misc]  # it has no types
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
                self.reference = _reference(model, load_tokenizer(path))
            return model

        def load_tokenizer(self, tokenizer_class: Any, model_name_or_path: str, **options: Any) -> Any:
            tokenizer = load_tokenizer(Path(model_name_or_path))
            whole = vocabulary_of(tokenizer)
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
    vocabulary = sorted(vocabulary_of(tokenizer).items(), key=lambda item: item[1])
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


def _restore_positions(model: Any, tensors: WeightFiles) -> None:
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
