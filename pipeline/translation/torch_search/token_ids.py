"""Tokens and identifiers of both sides of a model, checked against its embeddings before any work."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from paraforge.base.errors import InputError
from paraforge.translation.models.model_file import ModelFile, read_vocabulary

# Fills batches up; no model means to say it.
_PADDING = ("<pad>", "<blank>")


@dataclass(frozen=True)
class TokenIds:
    """Identifiers of tokens.

    source: identifier of each source token. target: target tokens by identifier.
    source_unknown, end, source_end, start: identifiers.
    add_source_start, add_source_end: whether the encoder reads them around a sentence.
    source_start: identifier of the token before a sentence, where there is one.
    banned: target identifiers that no hypothesis has.
    """

    source: dict[str, int]
    target: list[str]
    source_unknown: int
    source_start: int
    source_end: int
    add_source_start: bool
    add_source_end: bool
    start: int
    end: int
    banned: tuple[int, ...]

    def encode(self, tokens: list[str]) -> list[int]:
        """Identifiers of a source sentence as the encoder reads it."""
        found = [self.source.get(token, self.source_unknown) for token in tokens]
        if self.add_source_start:
            found.insert(0, self.source_start)
        return [*found, self.source_end] if self.add_source_end else found


def open_vocabulary(folder: Path, file: ModelFile) -> TokenIds:
    """Read both vocabularies and check that they are those of the weights. Raises InputError: one is missing,
    or has another size than the embedding of its side."""
    source, target = read_vocabulary(folder, "source"), read_vocabulary(folder, "target")
    for side, tokens, name in (
        ("source", source, "encoder/embeddings_0/weight"),
        ("target", target, "decoder/embeddings/weight"),
        ("target", target, "decoder/projection/weight"),
    ):
        rows = file.shape(name)[0]
        if rows != len(tokens):
            raise InputError(
                f"{name} has {rows} rows, but the {side} vocabulary has {len(tokens)} tokens",
                folder,
                remedy="These are not the files of one model: convert or import it anew.",
            )
    values = file.configuration
    if values.get("decoder_start_token", "") is None and not file.scalar("decoder/start_from_zero_embedding"):
        raise InputError(
            "its decoder begins with a language token, which the engine 'torch' does not support",
            folder,
            remedy="Take the engine 'ctranslate2'.",
        )
    end = str(values.get("eos_token") or "</s>")
    start = str(values.get("decoder_start_token") or end)
    if file.scalar("decoder/start_from_zero_embedding"):
        start = end  # any will do: its embedding is not looked at
    # A token that is there twice means its first number, as in CTranslate2.
    sources = {token: number for number, token in reversed(list(enumerate(source)))}
    targets = {token: number for number, token in reversed(list(enumerate(target)))}
    unknown = str(values.get("unk_token") or "<unk>")
    before = str(values.get("bos_token") or "<s>")
    for name, token, known in (
        ("eos_token", end, targets),
        ("eos_token", end, sources),
        ("decoder_start_token", start, targets),
        ("unk_token", unknown, sources),
    ):
        if token not in known:
            raise InputError(f"{name} of config.json is {token!r}, which is not in the vocabulary", folder)
    return TokenIds(
        source=sources,
        target=target,
        source_unknown=sources[unknown],
        source_start=sources.get(before, sources[end]),
        source_end=sources[end],
        add_source_start=bool(values.get("add_source_bos")),
        add_source_end=bool(values.get("add_source_eos")),
        start=targets[start],
        end=targets[end],
        banned=tuple(targets[token] for token in _PADDING if token in targets and token != end),
    )
