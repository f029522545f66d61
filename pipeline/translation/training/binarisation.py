"""Bitext shards to what fairseq trains on: held-out rows, vocabularies and binarised parts, all streaming."""

import logging
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from paraforge.base.errors import InputError
from paraforge.base.files import (
    DIGESTS,
    check_digests,
    read_json,
    remove_directory,
    sha256_file,
    write_digests,
    write_json,
)
from paraforge.base.interrupts import check_interrupt
from paraforge.base.shards.lineage import text_keys
from paraforge.base.shards.pool import in_order, threads_for
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.step import ShardFunction, Step, run_step
from paraforge.base.shards.store import ShardDirectory, read_parquet
from paraforge.base.text.units import load_processor
from paraforge.translation.models.sentencepiece import train_vocabulary, write_dictionary
from paraforge.translation.training.parameters import NmtParameters
from paraforge.translation.training.parts import PartWriter, encode_sentences
from paraforge.translation.training.training_pairs import (
    accepted_pairs,
    drawn_values,
    pair_columns,
    teacher_of,
)
from paraforge.versions import NMT

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class PreparedBitext:
    """What :func:`prepare_bitext` made of a bitext; everything is in one directory.

    pairs: accepted rows of the bitext. trained: pairs that are trained on. held_out: pairs for validation.
    set_aside: pairs in neither, because their source is held out, could be, is too long to be, or was not
    drawn where there are more pairs than ``maximum_pairs``.
    too_long: pairs with more pieces on a side than allowed, or none.
    source_tokens, target_tokens: of the trained pairs, end of sentence included.
    parts: binarised directories, relative; fairseq goes through them in turn, one a (fairseq) epoch.
    teacher: fingerprint of the model whose translations are trained on; None for references.
    """

    pairs: int
    trained: int
    held_out: int
    set_aside: int
    too_long: int
    source_tokens: int
    target_tokens: int
    parts: list[str]
    teacher: str | None = None


@dataclass(frozen=True)
class Draw:
    """Which pairs are for what, by two halves of the key of their source sentence.

    held_out: below which high half a pair is for validation, if anything is. share: of the other pairs, those
    of sources whose low half is below it are trained on: all pairs of a source or none, wherever it is.
    sample: and of those the share that the vocabulary is trained on.
    """

    held_out: float
    share: float
    sample: float


def held_out_threshold(rows: int, wanted: int) -> float:
    """Below which values rows are held out: about ``wanted`` of them, at most a tenth."""
    return 0.0 if rows == 0 else min(0.1, wanted / rows)


def prepare_bitext(
    bitext: ShardDirectory,
    directory: Path,
    parameters: NmtParameters,
    resources: Resources,
    symbols: Sequence[str] = (),
) -> PreparedBitext:
    """Write vocabularies, dictionaries, held-out rows and binarised parts to ``directory``, once.

    The bitext is read three times: its pairs are counted, those of vocabulary and validation are fetched, the
    others are binarised. The last two are steps over its shards, so that a preparation that was killed
    resumes; a finished one is taken as it is. Memory is that of the vocabulary's sample, and of a shard.

    bitext: see :func:`~paraforge.translation.training.training.train_model`. directory: of this training.
    parameters: of the training. resources: where to run. symbols: each becomes a piece of its own, wherever
    it occurs.

    Raises InputError: no pairs, or no vocabulary can be trained on them.
    """
    record, begun = directory / "prepared.json", directory / "begun.json"
    whole = not check_digests(directory)
    if whole and record.is_file():
        return PreparedBitext(**read_json(record))
    own = resources.model_copy(update={"work": directory / "work"})
    if not (whole and begun.is_file()):
        record.unlink(missing_ok=True)
        write_json(begun, _begin(bitext, directory, parameters, own, symbols))
        vocabularies = [*directory.glob("*.spm"), *directory.glob("dict.*.txt")]
        names = [path.name for path in (*vocabularies, begun, directory / "held_out.parquet")]
        write_digests(directory, names)
    counts = read_json(begun)
    prepared = _binarise(bitext, directory, parameters, own, **counts)
    write_json(record, asdict(prepared))
    parts = [path.relative_to(directory).as_posix() for path in (record, *directory.glob("parts/*/*"))]
    write_digests(directory, [*read_json(directory / DIGESTS), *parts])
    remove_directory(own.work)
    return prepared


def _begin(
    bitext: ShardDirectory,
    directory: Path,
    parameters: NmtParameters,
    resources: Resources,
    symbols: Sequence[str],
) -> dict[str, int]:
    """Write vocabularies and held-out rows; gives the numbers of accepted and of held-out pairs."""
    columns = pair_columns(bitext, parameters)

    def count(shard: int) -> int:
        return accepted_pairs(bitext.read(shard, columns), parameters).num_rows

    threads = threads_for(resources, bitext.total_rows)
    accepted = sum(in_order(count, len(bitext), threads))
    if accepted == 0:
        raise InputError(
            "no pairs to train on",
            bitext.path,
            remedy="See metrics/ingest.json for why rows were rejected; a corpus of paraphrases needs no "
            "model (nmt.model: none).",
        )
    sample = _made("sample", build_sample, bitext, parameters, _draw(parameters, accepted), resources)
    _train_vocabularies(sample, directory, parameters, symbols)
    return {"accepted": accepted, "held_out": _write_held_out(sample, directory, parameters)}


def _draw(parameters: NmtParameters, accepted: int) -> Draw:
    return Draw(
        held_out_threshold(accepted, parameters.validation.held_out),
        parameters.maximum_pairs / accepted,
        parameters.vocabulary.sample / min(accepted, parameters.maximum_pairs),
    )


def _made(
    name: str,
    build: Callable[..., ShardFunction],
    bitext: ShardDirectory,
    parameters: NmtParameters,
    draw: Draw,
    resources: Resources,
    **models: Path,
) -> ShardDirectory:
    """What a function of a bitext's shards gives; the work directory of ``resources`` is of this training."""
    step = Step(
        name=name,
        version=NMT,
        parameters=asdict(draw),
        fingerprints={side: sha256_file(path) for side, path in models.items()},
        build=build,
        arguments={"parameters": parameters, "draw": draw, **models},
        files=tuple(models.values()),
        columns=pair_columns(bitext, parameters),
        aligned=False,
        libraries=("sentencepiece",) if models else (),
    )
    output = resources.work / f"{name}-pieces"
    run_step(step, [bitext.path], output, resources)
    return ShardDirectory(output)


def build_sample(parameters: NmtParameters, draw: Draw) -> ShardFunction:
    """Gives the function from rows of a bitext to its pairs for validation (``drawn`` is what decides which
    of them) and for the vocabulary (``drawn`` is null)."""

    def sampled(table: pa.Table) -> pa.Table:
        pairs = accepted_pairs(table, parameters)
        drawn = drawn_values(pairs)
        held = drawn < draw.held_out
        wanted = held | _is_trained_on(pairs, drawn, draw)
        pairs, drawn, held = pairs.filter(pa.array(wanted)), drawn[wanted], held[wanted]
        if draw.sample < 1:
            wanted = held | (_low_half(pairs["source_text"], pairs["target"]) < draw.sample)
            pairs, drawn, held = pairs.filter(pa.array(wanted)), drawn[wanted], held[wanted]
        texts = pairs.select(["source_text", "target", "reference"])
        return texts.append_column("drawn", pa.array(drawn, mask=~held))

    return sampled


def _is_trained_on(pairs: pa.Table, drawn: NDArray[np.float64], draw: Draw) -> NDArray[np.bool_]:
    chosen: NDArray[np.bool_] = drawn >= draw.held_out
    # The high half of the key decides what is held out.
    return chosen if draw.share >= 1 else chosen & (_low_half(pairs["source_text"]) < draw.share)


def _low_half(*columns: pa.ChunkedArray) -> NDArray[np.float64]:
    """A number in [0, 1) for each row of texts."""
    return text_keys(*columns)[:, 1].astype(np.float64) / 2.0**64


def _train_vocabularies(
    pairs: ShardDirectory,
    directory: Path,
    parameters: NmtParameters,
    symbols: Sequence[str],
) -> None:
    settings = parameters.vocabulary

    def sample(*columns: str) -> Iterator[str]:
        for table in pairs.tables():
            rows = table.filter(pc.is_null(table["drawn"]))
            for column in columns:
                yield from rows[column].to_pylist()

    options: dict[str, Any] = {
        "size": settings.size,
        "kind": settings.kind,
        "character_coverage": settings.character_coverage,
        "byte_fallback": settings.byte_fallback,
        "symbols": symbols,
    }
    directory.mkdir(parents=True, exist_ok=True)
    if settings.shared:
        train_vocabulary(sample("source_text", "target"), directory / "source.spm", **options)
        shutil.copyfile(directory / "source.spm", directory / "target.spm")
    else:
        train_vocabulary(sample("source_text"), directory / "source.spm", **options)
        train_vocabulary(sample("target"), directory / "target.spm", **options)
    source, target = parameters.source_language, parameters.target_language
    for side, language in (("source", source), ("target", target)):
        processor = load_processor(directory / f"{side}.spm")
        types = write_dictionary(processor, directory / f"dict.{language}.txt")
        logger.info("%s vocabulary: %d types", side, types)


def _write_held_out(pairs: ShardDirectory, directory: Path, parameters: NmtParameters) -> int:
    """Write the held-out rows; of more than wanted, those with the smallest values. Returns their number.

    Pairs that would be too long to train on are not among them: nothing has to be cut, and loss and BLEU
    are of the same text.
    """
    processors = [load_processor(directory / f"{side}.spm") for side in ("source", "target")]
    kept = pa.table({"source_text": pa.array([], pa.string()), "reference": pa.array([], pa.string())})
    values = np.empty(0)
    for table in pairs.tables():
        check_interrupt()
        below = table.filter(pc.is_valid(table["drawn"]))
        rows = below.select(kept.schema.names)
        fits = _fitting(rows, processors, parameters.maximum_tokens)
        kept = pa.concat_tables([kept, rows.filter(pa.array(fits)).cast(kept.schema)])
        values = np.concatenate([values, below["drawn"].to_numpy()[fits]])
        if len(values) > 2 * parameters.validation.held_out:
            chosen = np.sort(np.argsort(values, kind="stable")[: parameters.validation.held_out])
            kept, values = kept.take(pa.array(chosen)).combine_chunks(), values[chosen]
    chosen = np.sort(np.argsort(values, kind="stable")[: parameters.validation.held_out])
    pq.write_table(kept.take(pa.array(chosen)), directory / "held_out.parquet")
    return len(chosen)


def _fitting(rows: pa.Table, processors: Sequence[Any], maximum: int) -> NDArray[np.bool_]:
    """Which rows of two columns have 2 to ``maximum`` tokens a side, the end included."""
    sides = [
        encode_sentences(processor, column.to_pylist())
        for processor, column in zip(processors, rows.columns, strict=True)
    ]
    return _fits(sides, maximum)


def _fits(sides: Sequence[pa.ListArray], maximum: int) -> NDArray[np.bool_]:
    lengths = [pc.list_value_length(side).to_numpy() for side in sides]
    # One token is the end of the sentence alone.
    fits: NDArray[np.bool_] = (np.maximum(*lengths) <= maximum) & (np.minimum(*lengths) >= 2)
    return fits


def build_pieces(parameters: NmtParameters, draw: Draw, source: Path, target: Path) -> ShardFunction:
    """Gives the function from rows of a bitext to the tokens of its pairs that are trained on; null for those
    that are too long. source, target: SentencePiece models."""
    processors = load_processor(source), load_processor(target)

    def binarised(table: pa.Table) -> pa.Table:
        pairs = accepted_pairs(table, parameters)
        pairs = pairs.filter(pa.array(_is_trained_on(pairs, drawn_values(pairs), draw)))
        sides = [
            encode_sentences(processor, pairs[name].to_pylist())
            for processor, name in zip(processors, ("source_text", "target"), strict=True)
        ]
        fits = pa.array(_fits(sides, parameters.maximum_tokens))
        return pa.table([pc.if_else(fits, side, None) for side in sides], ["source", "target"])

    return binarised


def _binarise(
    bitext: ShardDirectory,
    directory: Path,
    parameters: NmtParameters,
    resources: Resources,
    accepted: int,
    held_out: int,
) -> PreparedBitext:
    models = {side: (directory / f"{side}.spm").resolve() for side in ("source", "target")}
    draw = _draw(parameters, accepted)
    pieces = _made("binarise", build_pieces, bitext, parameters, draw, resources, **models)
    remove_directory(directory / "parts")
    writer = PartWriter(directory, (parameters.source_language, parameters.target_language))
    threads = threads_for(resources, pieces.total_rows)
    for table in in_order(lambda shard: pieces.read(shard).drop_null(), len(pieces), threads):
        writer.write(table)
    writer.close()
    if not writer.pairs:
        raise InputError("no pair is left to train on", bitext.path, remedy="Raise maximum_tokens.")
    rows = read_parquet(directory / "held_out.parquet")
    processors = map(load_processor, models.values())
    sides = [
        encode_sentences(one, column.to_pylist())
        for one, column in zip(processors, rows.columns, strict=True)
    ]
    writer.write_held_out(pa.table(sides, ["source", "target"]))
    return PreparedBitext(
        pairs=accepted,
        trained=writer.pairs,
        held_out=held_out,
        set_aside=accepted - pieces.total_rows - held_out,
        too_long=pieces.total_rows - writer.pairs,
        source_tokens=writer.tokens[0],
        target_tokens=writer.tokens[1],
        parts=writer.parts,
        teacher=teacher_of(bitext, parameters),
    )
