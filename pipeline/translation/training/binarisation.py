"""Prepares bitext shards for fairseq: held-out rows, vocabularies and binarized parts."""

import logging
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from paraforge.base.errors import InputError
from paraforge.base.files import read_json, remove_directory, sync_tree, write_json
from paraforge.base.shards.pool import in_order, threads_for
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.store import ShardDirectory, read_parquet
from paraforge.base.text.units import load_processor
from paraforge.translation.models.sentencepiece import train_vocabulary, write_dictionary
from paraforge.translation.training.parameters import NmtParameters
from paraforge.translation.training.parts import PartWriter, encode_sentences
from paraforge.translation.training.training_pairs import (
    accepted_pairs,
    drawn_of,
    drawn_values,
    pair_columns,
    teacher_of,
)

logger = logging.getLogger(__name__)
ResultT = TypeVar("ResultT")
# Rows of the vocabulary's sample that are read at once.
_ROWS = 100_000
PREPARED = "prepared.json"
"""The record of a finished preparation."""


@dataclass(frozen=True)
class PreparedBitext:
    """The result of :func:`prepare_bitext`; all files are in one directory.

    pairs: accepted rows of the bitext. trained: training pairs. held_out: validation pairs.
    set_aside: pairs that are not used: beyond ``maximum_pairs``, or in the range of keys for validation
        without being held out.
    too_long: pairs with too many pieces on a side, or none.
    target_tokens: target tokens of the training pairs, including end-of-sentence.
    parts: relative paths of binarized directories; each is one fairseq epoch, in turn.
    teacher: fingerprint of the model that made the targets; None for references.
    """

    pairs: int
    trained: int
    held_out: int
    set_aside: int
    too_long: int
    target_tokens: int
    parts: list[str]
    teacher: str | None = None


@dataclass(frozen=True)
class Draw:
    """Decides the use of pairs by the two halves of their source sentence's key.

    held_out: pairs with a lower high half are for validation.
    share: other pairs with a lower low half are for training, so that all pairs of a source are treated
        alike.
    sample: share of these for training the vocabulary.
    """

    held_out: float
    share: float
    sample: float

    def trained(self, pairs: pa.Table) -> pa.Table:
        """Return the training pairs."""
        return pairs.filter(pa.array(self._is_trained_on(pairs, drawn_values(pairs))))

    def sampled(self, pairs: pa.Table) -> pa.Table:
        """Return the pairs for validation (chosen among by ``drawn``) and for the vocabulary (``drawn`` is
        null)."""
        drawn = drawn_values(pairs)
        held = drawn < self.held_out
        wanted = held | self._is_trained_on(pairs, drawn)
        if self.sample < 1:
            wanted &= held | (drawn_of(pairs["source_text"], pairs["target"], half=1) < self.sample)
        texts = pairs.select(["source_text", "target", "reference"])
        return texts.append_column("drawn", pa.array(drawn, mask=~held)).filter(pa.array(wanted))

    def _is_trained_on(self, pairs: pa.Table, drawn: NDArray[np.float64]) -> NDArray[np.bool_]:
        chosen: NDArray[np.bool_] = drawn >= self.held_out
        # The high half of the key decides which pairs are held out.
        return chosen if self.share >= 1 else chosen & (drawn_of(pairs["source_text"], half=1) < self.share)


def held_out_threshold(rows: int, wanted: int) -> float:
    """Return the threshold below which rows are held out: about ``wanted`` of them, at most a tenth."""
    return 0.0 if rows == 0 else min(0.1, wanted / rows)


def prepare_bitext(
    bitext: ShardDirectory,
    directory: Path,
    parameters: NmtParameters,
    resources: Resources,
    symbols: Sequence[str] = (),
) -> PreparedBitext:
    """Write vocabularies, dictionaries, held-out rows and binarized parts to ``directory``.

    The bitext is read three times: to count its pairs, to fetch those for vocabulary and validation, and to
        binarize the others. A killed preparation starts over; a finished one is reused. Memory holds the
        vocabulary's sample and a few shards.

    bitext: see :func:`~paraforge.translation.training.training.train_model`.
    directory: directory of this training. parameters: parameters of the training. resources: threads.
    symbols: strings that are always single pieces.

    Raises InputError if there are no pairs, or no vocabulary can be trained on them.
    """
    record = directory / PREPARED
    if record.is_file():
        return PreparedBitext(**read_json(record))
    directory.mkdir(parents=True, exist_ok=True)
    accepted = sum(_of_shards(pa.Table.__len__, bitext, parameters, resources))
    if accepted == 0:
        raise InputError(
            "no pairs to train on",
            bitext.path,
            remedy="See metrics/ingest.json for why rows were rejected; a corpus of paraphrases needs no "
            "model (nmt.model: none).",
        )
    draw = Draw(
        held_out_threshold(accepted, parameters.validation.held_out),
        parameters.maximum_pairs / accepted,
        parameters.vocabulary.sample / min(accepted, parameters.maximum_pairs),
    )
    sample = pa.concat_tables(_of_shards(draw.sampled, bitext, parameters, resources))
    _train_vocabularies(sample.filter(pc.is_null(sample["drawn"])), directory, parameters, symbols)
    processors = [load_processor(directory / f"{side}.spm") for side in ("source", "target")]
    held_out = _write_held_out(sample.filter(pc.is_valid(sample["drawn"])), directory, processors, parameters)
    del sample
    remove_directory(directory / "parts")
    writer = PartWriter(directory, (parameters.source_language, parameters.target_language))
    drawn = 0
    for pairs in _of_shards(draw.trained, bitext, parameters, resources):
        sides = _encoded(pairs.select(["source_text", "target"]), processors, resources.worker_count())
        writer.write(sides.filter(pa.array(_fits(sides, parameters.maximum_tokens))))
        drawn += len(pairs)
    writer.close()
    if not writer.pairs:
        raise InputError("no pair is left to train on", bitext.path, remedy="Raise maximum_tokens.")
    writer.write_held_out(_encoded(read_parquet(directory / "held_out.parquet"), processors))
    prepared = PreparedBitext(
        pairs=accepted,
        trained=writer.pairs,
        held_out=held_out,
        set_aside=accepted - drawn - held_out,
        too_long=drawn - writer.pairs,
        target_tokens=writer.tokens[1],
        parts=writer.parts,
        teacher=teacher_of(bitext, parameters),
    )
    sync_tree(directory)
    write_json(record, asdict(prepared))
    return prepared


def _of_shards(
    function: Callable[[pa.Table], ResultT],
    bitext: ShardDirectory,
    parameters: NmtParameters,
    resources: Resources,
) -> Iterator[ResultT]:
    """Yield a function's results for the accepted pairs of each shard, in order."""
    columns = pair_columns(bitext, parameters)

    def given(shard: int) -> ResultT:
        return function(accepted_pairs(bitext.read(shard, columns), parameters))

    return in_order(given, len(bitext), threads_for(resources, bitext.total_rows))


def _train_vocabularies(
    pairs: pa.Table, directory: Path, parameters: NmtParameters, symbols: Sequence[str]
) -> None:
    settings = parameters.vocabulary

    def sample(*columns: str) -> Iterator[str]:
        for batch in pairs.to_batches(_ROWS):
            for column in columns:
                yield from batch[column].to_pylist()

    options: dict[str, Any] = {
        "size": settings.size,
        "kind": settings.kind,
        "character_coverage": settings.character_coverage,
        "byte_fallback": settings.byte_fallback,
        "symbols": symbols,
    }
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


def _write_held_out(
    pairs: pa.Table, directory: Path, processors: Sequence[Any], parameters: NmtParameters
) -> int:
    """Write the held-out rows; if there are more than wanted, those with the smallest values. Returns their
    number.

    Pairs that are too long for training are left out, so that nothing is truncated, and loss and BLEU are of
    the same text.
    """
    rows = pairs.select(["source_text", "reference"])
    fits = _fits(_encoded(rows, processors), parameters.maximum_tokens)
    order = np.argsort(pairs["drawn"].to_numpy()[fits], kind="stable")
    chosen = np.sort(np.flatnonzero(fits)[order[: parameters.validation.held_out]])
    pq.write_table(rows.take(pa.array(chosen)), directory / "held_out.parquet")
    return len(chosen)


def _encoded(texts: pa.Table, processors: Sequence[Any], threads: int = 1) -> pa.Table:
    """Return the tokens of two columns of texts."""
    sides = [
        encode_sentences(processor, column.to_pylist(), threads)
        for processor, column in zip(processors, texts.columns, strict=True)
    ]
    return pa.table(sides, ["source", "target"])


def _fits(sides: pa.Table, maximum: int) -> NDArray[np.bool_]:
    """Return which rows have 2 to ``maximum`` tokens per side, including end-of-sentence."""
    lengths = [pc.list_value_length(side).to_numpy() for side in sides.columns]
    # One token would be only end-of-sentence.
    fits: NDArray[np.bool_] = (np.maximum(*lengths) <= maximum) & (np.minimum(*lengths) >= 2)
    return fits
