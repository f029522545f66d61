"""Prepares bitext shards for fairseq: training pairs, held-out rows, vocabularies and binarized parts in
fairseq's memory-mapped format."""

import logging
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import reduce
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from paraforge.base.errors import InputError
from paraforge.base.files import read_json, remove_directory, sync_tree, write_json
from paraforge.base.shards.lineage import text_keys
from paraforge.base.shards.pool import in_order, threads_for
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.schema import FLAG_COLUMNS
from paraforge.base.shards.store import ShardDirectory, read_parquet
from paraforge.base.text.ragged import offsets_of
from paraforge.base.text.units import load_processor
from paraforge.translation.models.fairseq_compat import import_fairseq
from paraforge.translation.models.sentencepiece import SPECIAL_TYPES, train_vocabulary, write_dictionary
from paraforge.translation.training.parameters import NmtParameters

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
        chosen = held | self._is_trained_on(pairs, drawn)
        if self.sample < 1:
            chosen &= held | (drawn_of(pairs["source_text"], pairs["target"], half=1) < self.sample)
        texts = pairs.select(["source_text", "target", "reference"])
        return texts.append_column("drawn", pa.array(drawn, mask=~held)).filter(pa.array(chosen))

    def _is_trained_on(self, pairs: pa.Table, drawn: NDArray[np.float64]) -> NDArray[np.bool_]:
        chosen: NDArray[np.bool_] = drawn >= self.held_out
        # The high half of the key decides which pairs are held out.
        return chosen if self.share >= 1 else chosen & (drawn_of(pairs["source_text"], half=1) < self.share)


def held_out_threshold(rows: int, held_out: int) -> float:
    """Return the threshold below which rows are held out: about ``held_out`` of them, at most a tenth."""
    return 0.0 if rows == 0 else min(0.1, held_out / rows)


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
    accepted = sum(_map_shards(pa.Table.__len__, bitext, parameters, resources))
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
    sample = pa.concat_tables(_map_shards(draw.sampled, bitext, parameters, resources))
    _train_vocabularies(sample.filter(pc.is_null(sample["drawn"])), directory, parameters, symbols)
    processors = [load_processor(directory / f"{side}.spm") for side in ("source", "target")]
    held_out = _write_held_out(sample.filter(pc.is_valid(sample["drawn"])), directory, processors, parameters)
    del sample
    remove_directory(directory / "parts")
    writer = PartWriter(directory, (parameters.source_language, parameters.target_language))
    drawn = 0
    for pairs in _map_shards(draw.trained, bitext, parameters, resources):
        sides = _encode(pairs.select(["source_text", "target"]), processors, resources.worker_count())
        writer.write(sides.filter(pa.array(_fits(sides, parameters.maximum_tokens))))
        drawn += len(pairs)
    writer.close()
    if not writer.pairs:
        raise InputError("no pair is left to train on", bitext.path, remedy="Raise maximum_tokens.")
    writer.write_held_out(_encode(read_parquet(directory / "held_out.parquet"), processors))
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


def _map_shards(
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
    fits = _fits(_encode(rows, processors), parameters.maximum_tokens)
    order = np.argsort(pairs["drawn"].to_numpy()[fits], kind="stable")
    chosen = np.sort(np.flatnonzero(fits)[order[: parameters.validation.held_out]])
    pq.write_table(rows.take(pa.array(chosen)), directory / "held_out.parquet")
    return len(chosen)


def _encode(texts: pa.Table, processors: Sequence[Any], threads: int = 1) -> pa.Table:
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


def pair_columns(bitext: ShardDirectory, parameters: NmtParameters) -> list[str]:
    """Return the columns that :func:`accepted_pairs` reads. Raises InputError if the shards do not have the
    target."""
    available = set(bitext.schema.names)
    if parameters.target not in available:
        raise InputError(
            f"these shards have no column '{parameters.target}' to train on",
            bitext.path,
            remedy="Set nmt.bitext to the data/translated that the teacher made.",
        )
    of_translations = () if parameters.target == "reference" else ("failed", "rank", *FLAG_COLUMNS)
    optional = ("rejected", "held_out", *of_translations)
    texts = dict.fromkeys(("source_text", "reference", parameters.target))
    return [*texts, *(name for name in optional if name in available)]


def accepted_pairs(table: pa.Table, parameters: NmtParameters) -> pa.Table:
    """Return ``source_text, target, reference`` of the rows that no step rejected, and ``held_out`` if it
    exists.

    ``target`` is the training target: the reference, or with ``nmt.target: translation`` the best hypothesis
    of another model (sequence-level knowledge distillation, Kim and Rush 2016, section 3.2), except
    truncated, empty or runaway ones. Quality is always measured against ``reference``. With ``nmt.target:
    source_text`` the two sides are exchanged.

    table: the columns that :func:`pair_columns` names.
    """
    # A corpus of paraphrases has no foreign side.
    kept = [_is_filled(table[name]) for name in {"source_text", "reference", parameters.target}]
    for name in table.column_names:
        if name in ("rejected", "failed"):
            kept.append(pc.is_null(table[name]))
        elif name in FLAG_COLUMNS:  # a marked translation would only teach its fault
            kept.append(pc.invert(pc.fill_null(table[name], False)))
        elif name == "rank":
            kept.append(pc.equal(table[name], 0))
    rows = table.filter(reduce(pc.and_, kept))
    columns = {"source_text": rows["source_text"], "reference": rows["reference"]}
    if parameters.target == "source_text":
        columns = dict(zip(columns, [rows["reference"], rows["source_text"]], strict=True))
    if "held_out" in rows.column_names:
        columns["held_out"] = rows["held_out"]
    return pa.table({**columns, "target": rows[parameters.target]})


def drawn_values(rows: pa.Table) -> NDArray[np.float64]:
    """Return values that decide whether a pair is held out, see :func:`drawn_of`; if the shards have a
    column ``held_out``, 0 for the pairs that it marks and 1 for others."""
    if "held_out" in rows.column_names:
        return np.where(rows["held_out"].to_numpy(), 0.0, 1.0)
    return drawn_of(rows["source_text"])


def drawn_of(*texts: pa.ChunkedArray, half: int = 0) -> NDArray[np.float64]:
    """Return a number in [0, 1) for each row of texts, the same wherever and however often they occur. Pairs
    are chosen by thresholds on it, so equal sentences are always on the same side.

    half: of the texts' keys, 0 or 1; the two give independent numbers.
    """
    return text_keys(*texts)[:, half].astype(np.float64) / 2.0**64


def teacher_of(bitext: ShardDirectory, parameters: NmtParameters) -> str | None:
    """Return the fingerprint of the model that made the targets; None for references."""
    if parameters.target != "translation":
        return None
    return str(bitext.description.get("fingerprints", {}).get("model", "unknown"))


def _is_filled(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.fill_null(pc.greater(pc.binary_length(column), 0), False)


# fairseq has the sizes and batches of one part in memory (about 100 bytes per pair).
PAIRS_PER_PART = 4_000_000


def encode_sentences(processor: Any, sentences: list[str], threads: int = 1) -> pa.ListArray:
    """Return fairseq's tokens of each sentence, including end-of-sentence; see :func:`write_dictionary`."""
    encoded = processor.encode(sentences, num_threads=threads)
    lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
    offsets = offsets_of(lengths + 1)
    tokens = np.full(offsets[-1], SPECIAL_TYPES.index("</s>"), np.int32)
    is_end = np.zeros(len(tokens), np.bool_)
    is_end[offsets[1:] - 1] = True
    tokens[~is_end] = np.fromiter(chain.from_iterable(encoded), np.int32, int(lengths.sum()))
    tokens[~is_end] += len(SPECIAL_TYPES) - 1
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(tokens))


def _add(builder: Any, sentences: pa.ChunkedArray) -> int:
    """Add lists of tokens to one side of a split. Returns the number of tokens."""
    import torch

    tokens = torch.from_numpy(pc.list_flatten(sentences).to_numpy().copy())
    for sentence in tokens.split(pc.list_value_length(sentences).to_pylist()):
        builder.add_item(sentence)
    return len(tokens)


class PartWriter:
    """Writes pairs of ``source`` and ``target`` tokens to ``parts/part-0000`` ..., with bounded sizes.

    parts: their names. pairs: number of written pairs. tokens: number of tokens on both sides.
    """

    def __init__(self, directory: Path, languages: Sequence[str]) -> None:
        """directory: directory with fairseq's dictionaries of both languages."""
        self._directory, self._languages = directory, languages
        self._dictionaries = [directory / f"dict.{language}.txt" for language in languages]
        lines = max(path.read_bytes().count(b"\n") for path in self._dictionaries)
        self._types = lines + len(SPECIAL_TYPES)
        self._sides: dict[str, Any] = {}
        self.parts: list[str] = []
        self.pairs = 0
        self.tokens = [0, 0]

    def _open(self, part: str, split: str) -> None:
        """Open fairseq's builders of both sides: ``.bin`` has the tokens, ``.idx`` where sentences begin."""
        import_fairseq()
        from fairseq.data.indexed_dataset import make_builder

        stem = self._directory / part / f"{split}.{'-'.join(self._languages)}"
        for language in self._languages:
            self._sides[f"{stem}.{language}"] = make_builder(f"{stem}.{language}.bin", "mmap", self._types)

    def write(self, pairs: pa.Table) -> None:
        """Add pairs."""
        while pairs.num_rows:
            room = len(self.parts) * PAIRS_PER_PART - self.pairs
            if not room:
                self.close()
                self.parts.append(f"parts/part-{len(self.parts):04d}")
                (self._directory / self.parts[-1]).mkdir(parents=True)
                for path in self._dictionaries:
                    shutil.copyfile(path, self._directory / self.parts[-1] / path.name)
                self._open(self.parts[-1], "train")
                continue
            part, pairs = pairs.slice(0, room), pairs.slice(room)
            self.pairs += part.num_rows
            for number, builder in enumerate(self._sides.values()):
                self.tokens[number] += _add(builder, part.column(number))

    def close(self) -> None:
        """Finish the last part."""
        for stem, builder in self._sides.items():
            builder.finalize(f"{stem}.idx")
        self._sides = {}

    def write_held_out(self, pairs: pa.Table) -> None:
        """Write the validation split to the first part, where fairseq expects it."""
        self._open(self.parts[0], "valid")
        for builder, column in zip(self._sides.values(), pairs.columns, strict=True):
            _add(builder, column)
        self.close()
