"""Converts fairseq models to CTranslate2, and writes the layout of ``models/nmt``."""

import argparse
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from paraforge.base.errors import InputError, describing
from paraforge.base.files import sha256_file, write_json
from paraforge.translation.models.checkpoint import load_checkpoint, weights_only_state, write_checkpoint
from paraforge.translation.models.fairseq_compat import data_path, import_fairseq
from paraforge.translation.models.importers.ctranslate2 import check_sizes, convert
from paraforge.translation.models.model import MODEL_FILE, MODEL_FORMAT
from paraforge.translation.models.sentencepiece import SPECIAL_TYPES
from paraforge.translation.models.subwords import BPE, KINDS, copy_subwords

CHECKPOINT_FILE = "checkpoint.pt"


def convert_fairseq(
    checkpoint: Path, dictionaries: Path, output: Path, source_language: str, target_language: str
) -> None:
    """Convert a fairseq transformer to CTranslate2, float32; ``output`` is replaced.

    checkpoint: file as :func:`~paraforge.translation.models.checkpoint.weights_only_state` makes it.
    dictionaries: directory of ``dict.LANGUAGE.txt`` of both languages.
    output: CTranslate2 directory to write.
    source_language, target_language: codes in the dictionaries' names.

    Raises InputError if the checkpoint is damaged, or of an architecture that CTranslate2 does not support.
    """
    import_fairseq()
    from ctranslate2.converters import FairseqConverter

    with data_path(dictionaries) as data:
        converter = FairseqConverter(
            str(checkpoint), data, source_lang=source_language, target_lang=target_language
        )
        convert(converter, checkpoint, output)


def normalize_checkpoint(
    path: Path, source_types: Sequence[str], target_types: Sequence[str], languages: tuple[str, str]
) -> dict[str, Any]:
    """Return a fairseq checkpoint in the project's form, after checking it against its dictionaries. Raises
    InputError: not a translation transformer, its weights are damaged, or its embeddings do not have the
    dictionaries' sizes."""
    loaded = load_checkpoint(path)
    with describing(path, "not a checkpoint, or damaged"):
        state = weights_only_state(loaded)
    arguments = model_arguments(state, path)
    size = sum(tensor.nbytes for tensor in state["model"].values())
    check_sizes(vars(arguments), len(state["model"]), size, path)
    for name, tensor in state["model"].items():
        if not tensor.isfinite().all():
            raise InputError(f"its weights are damaged: {name} has values that are not numbers", path)
    arguments.source_lang, arguments.target_lang = languages
    arguments.task = getattr(arguments, "task", None) or "translation"
    for side, types in (("encoder", source_types), ("decoder", target_types)):
        embedding = state["model"].get(f"{side}.embed_tokens.weight")
        if embedding is None:
            raise InputError(
                f"it has no {side}.embed_tokens.weight",
                path,
                remedy="Use a fairseq transformer for translation.",
            )
        expected = len(types) + len(SPECIAL_TYPES)
        if embedding.shape[0] != expected:
            raise InputError(
                f"the {side}'s embedding has {embedding.shape[0]} rows, but its dictionary has {expected} "
                f"types ({len(SPECIAL_TYPES)} of them fairseq's own)",
                path,
                remedy="Use the dictionaries that the model was trained with.",
            )
    if isinstance(state["cfg"], dict):
        state["cfg"]["model"] = arguments
        if isinstance(state["cfg"].get("task"), dict):
            state["cfg"]["task"].update(source_lang=languages[0], target_lang=languages[1])
    else:
        state["args"] = arguments
    return state


def model_arguments(state: Mapping[str, Any], path: Path) -> argparse.Namespace:
    """Return the model's arguments from a checkpoint of any fairseq version. Raises InputError if there are
    none."""
    arguments = state.get("args") or (state.get("cfg") or {}).get("model")
    if isinstance(arguments, dict):
        arguments = argparse.Namespace(
            **{**arguments, "arch": arguments.get("arch") or arguments.get("_name")}
        )
    if not isinstance(arguments, argparse.Namespace) or not getattr(arguments, "arch", None):
        raise InputError("it does not name its architecture", path)
    return arguments


def architecture_of(state: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """Return the sizes of a fairseq model for ``model.json``."""
    import_fairseq()
    from fairseq.models import ARCH_CONFIG_REGISTRY

    arguments = argparse.Namespace(**vars(model_arguments(state, path)))
    if arguments.arch in ARCH_CONFIG_REGISTRY:
        ARCH_CONFIG_REGISTRY[arguments.arch](arguments)  # the architecture's defaults
    weights = state["model"]
    source, target = weights["encoder.embed_tokens.weight"], weights["decoder.embed_tokens.weight"]
    distinct = {tensor.data_ptr(): tensor.numel() for tensor in weights.values()}
    own = (
        {}
        if is_lstm(state, path)
        else {
            "feed_forward": int(arguments.encoder_ffn_embed_dim),
            "heads": int(arguments.encoder_attention_heads),
            "pre_norm": bool(arguments.encoder_normalize_before),
        }
    )
    return {
        "name": str(arguments.arch),
        "encoder_layers": int(arguments.encoder_layers),
        "decoder_layers": int(arguments.decoder_layers),
        "width": int(arguments.encoder_embed_dim),
        **own,
        "source_vocabulary": int(source.shape[0]),
        "target_vocabulary": int(target.shape[0]),
        "shared_embeddings": source.shape == target.shape and bool(source.equal(target)),
        "parameters": int(sum(distinct.values())),
    }


def is_lstm(state: Mapping[str, Any], path: Path) -> bool:
    """Return whether a checkpoint is one of fairseq's LSTMs, which CTranslate2 does not support."""
    return str(model_arguments(state, path).arch).startswith("lstm")


def write_fairseq_model(
    state: Mapping[str, Any],
    dictionaries: Mapping[str, Path],
    sentencepiece: Mapping[str, Path],
    output: Path,
    languages: tuple[str, str],
) -> dict[str, Any]:
    """Write a fairseq model in fairseq's form and, except for LSTMs, in CTranslate2's.

    state: result of :func:`normalize_checkpoint` or ``weights_only_state``.
    dictionaries: dictionary file of each language.
    sentencepiece: SentencePiece file or BPE codes for ``source`` and ``target``.
    output: empty directory that becomes ``models/nmt``. languages: codes of source and target.

    Returns the entries of ``model.json`` that follow from the model itself; see :func:`write_description`.
    """
    folder = output / "fairseq"
    folder.mkdir(parents=True)
    for language in languages:
        (folder / f"dict.{language}.txt").write_bytes(dictionaries[language].read_bytes())
    for side in ("source", "target"):
        copy_subwords(sentencepiece[side], output, side)
    write_checkpoint(state, folder / CHECKPOINT_FILE)
    engines = {"fairseq": "fairseq"}
    if not is_lstm(state, folder / CHECKPOINT_FILE):
        convert_fairseq(folder / CHECKPOINT_FILE, folder, output / "ctranslate2", *languages)
        engines = {"ctranslate2": "ctranslate2", **engines}
    arguments = model_arguments(state, folder / CHECKPOINT_FILE)
    return {
        "engines": engines,
        "maximum_source_tokens": int(getattr(arguments, "max_source_positions", None) or 1024),
        "architecture": architecture_of(state, folder / CHECKPOINT_FILE),
    }


def write_description(
    output: Path,
    *,
    origin: str,
    languages: tuple[str, str],
    entries: Mapping[str, Any],
    trained_on: Mapping[str, Any] | None = None,
    metrics: Mapping[str, Any] | None = None,
    imported_from: str | None = None,
) -> dict[str, Any]:
    """Write ``model.json`` for the files in ``output``, and return it.

    output: directory with all other files.
    origin: trained, fairseq, ctranslate2, transformers or none.
    languages: codes of source and target.
    entries: ``engines``, ``architecture``, ``maximum_source_tokens``, and affixes, if any.
    trained_on: data of a model trained here. metrics: BLEU and chrF with signatures.
    imported_from: name of a pretrained model, with the commit if from the Hub.
    """
    files = {
        path.relative_to(output).as_posix(): {"bytes": path.stat().st_size, "sha256": sha256_file(path)}
        for path in sorted(output.rglob("*"))
        if path.is_file() and path.name != MODEL_FILE
    }
    affixes = {
        name: list(entries.get(name, [])) for name in ("source_prefix", "source_suffix", "target_prefix")
    }
    subwords = {
        side: f"{side}{kind}" for side in ("source", "target") for kind in KINDS if f"{side}{kind}" in files
    }
    decisive = dict(affixes)
    if any(name.endswith(BPE) for name in subwords.values()):
        decisive["languages"] = list(languages)  # Moses has rules per language
    description = {
        "schema_version": MODEL_FORMAT,
        "origin": origin,
        "imported_from": imported_from,
        "engines": dict(entries.get("engines", {})),
        "source_language": languages[0],
        "target_language": languages[1],
        "sentencepiece": subwords,
        **affixes,
        "maximum_source_tokens": int(entries.get("maximum_source_tokens", 1024)),
        "architecture": dict(entries.get("architecture", {})),
        "fingerprint": fingerprint({name: str(entry["sha256"]) for name, entry in files.items()}, decisive),
        "files": files,
        "trained_on": None if trained_on is None else dict(trained_on),
        "metrics": None if metrics is None else dict(metrics),
    }
    write_json(output / MODEL_FILE, description)
    return description


def fingerprint(digests: Mapping[str, str], affixes: Mapping[str, Sequence[str]]) -> str:
    """Return the SHA-256 of everything that decides a model's output: CTranslate2's or else fairseq's files,
    subwords, affixes.

    digests: SHA-256 of each file by its path in the model's directory; other kinds of files are ignored.
    affixes: tokens put around sources and before targets; with BPE codes also the languages.
    """
    digest = hashlib.sha256()
    # A model that CTranslate2 does not support only has fairseq's files.
    folder = "ctranslate2/" if any(name.startswith("ctranslate2/") for name in digests) else "fairseq/"
    for name in sorted(digests):
        if name.startswith(folder) or name.endswith(KINDS):
            digest.update(f"{digests[name]}  {name}\n".encode())
    for name in sorted(affixes):
        digest.update(f"{name}  {' '.join(affixes[name])}\n".encode())
    return digest.hexdigest()
