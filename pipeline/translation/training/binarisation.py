"""Bitext shards to what fairseq trains on: held-out rows, vocabularies and binarised parts, all streaming."""

import logging
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from paraforge.base.errors import InputError
from paraforge.base.files import check_digests, read_json, remove_directory, write_digests, write_json
from paraforge.base.interrupts import check_interrupt
from paraforge.base.progress import progress
from paraforge.base.shards.lineage import text_keys
from paraforge.base.shards.store import ShardDirectory, read_parquet
from paraforge.base.text.units import load_processor
from paraforge.translation.models.fairseq_compat import import_fairseq
from paraforge.translation.models.sentencepiece import SPECIAL_TYPES, train_vocabulary, write_dictionary
from paraforge.translation.training.parameters import NmtParameters
from paraforge.translation.training.training_pairs import accepted_pairs, teacher_of

logger = logging.getLogger(__name__)

# fairseq keeps the sizes and the batches of one part in memory (about 100 bytes per pair).
PAIRS_PER_PART = 4_000_000
PAIRS_PER_BLOCK = 10_000


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


Pairs = Callable[[], Iterator[pa.Table]]
"""Goes over the pairs once more."""


def held_out_threshold(rows: int, wanted: int) -> float:
    """Below which values rows are held out: about ``wanted`` of them, at most a tenth."""
    return 0.0 if rows == 0 else min(0.1, wanted / rows)


def prepare_bitext(
    bitext: ShardDirectory,
    directory: Path,
    parameters: NmtParameters,
    symbols: Sequence[str] = (),
    threads: int = 1,
) -> PreparedBitext:
    """Write vocabularies, dictionaries, held-out rows and binarised parts to ``directory``, once.

    Memory is bounded by ``vocabulary.sample`` pairs and one shard. A preparation that was killed begins anew;
    a finished one is taken as it is.

    bitext: see :func:`~paraforge.translation.training.training.train_model`. directory: of this training.
    parameters: of the training. symbols: each becomes a piece of its own, wherever it occurs.
    threads: that read the bitext: each of four passes or more goes over all rows, however few are drawn.

    Raises InputError: no pairs, or no vocabulary can be trained on them.
    """
    record = directory / "prepared.json"
    if record.is_file() and not check_digests(directory):
        return PreparedBitext(**read_json(record))
    pairs = partial(accepted_pairs, bitext, parameters, threads)
    accepted = sum(table.num_rows for table in pairs())
    if accepted == 0:
        raise InputError(
            "no pairs to train on",
            bitext.path,
            remedy="See metrics/ingest.json for why rows were rejected; a corpus of paraphrases needs no "
            "model (nmt.model: none).",
        )
    threshold = held_out_threshold(accepted, parameters.validation.held_out)
    directory.mkdir(parents=True, exist_ok=True)
    _train_vocabularies(pairs, directory, parameters, threshold, accepted, symbols)
    held_out = _write_held_out(pairs, directory, parameters, threshold)
    remove_directory(directory / "parts")
    prepared = _binarise(bitext, pairs, directory, parameters, threshold, accepted, held_out)
    write_json(record, asdict(prepared))
    files = [*directory.glob("*.spm"), *directory.glob("dict.*.txt"), *directory.glob("parts/*/*")]
    names = [path.relative_to(directory).as_posix() for path in files]
    write_digests(directory, sorted([*names, record.name, "held_out.parquet"]))
    return prepared


def _training_rows(table: pa.Table, threshold: float, share: float) -> pa.Table:
    """The rows that are not held out, or a share of them: all pairs of a source or none, wherever it is."""
    rows = table.filter(pa.array(table["drawn"].to_numpy() >= threshold))
    # The low half of the key: the high half decides what is held out.
    return rows if share >= 1 else rows.filter(pa.array(_low_half(rows["source_text"]) < share))


def _low_half(*columns: pa.ChunkedArray) -> NDArray[np.float64]:
    """A number in [0, 1) for each row of texts."""
    return text_keys(*columns)[:, 1].astype(np.float64) / 2.0**64


def _train_vocabularies(
    pairs: Pairs,
    directory: Path,
    parameters: NmtParameters,
    threshold: float,
    accepted: int,
    symbols: Sequence[str],
) -> None:
    settings = parameters.vocabulary
    share = min(1.0, settings.sample / min(accepted, parameters.maximum_pairs))

    def sample(columns: tuple[str, ...]) -> Iterator[str]:
        for table in pairs():
            rows = _training_rows(table, threshold, parameters.maximum_pairs / accepted)
            if share < 1.0:
                rows = rows.filter(pa.array(_low_half(rows["source_text"], rows["target"]) < share))
            for column in columns:
                yield from rows[column].to_pylist()

    options: dict[str, Any] = {
        "size": settings.size,
        "kind": settings.kind,
        "character_coverage": settings.character_coverage,
        "byte_fallback": settings.byte_fallback,
        "symbols": symbols,
    }
    if settings.shared:
        train_vocabulary(sample(("source_text", "target")), directory / "source.spm", **options)
        shutil.copyfile(directory / "source.spm", directory / "target.spm")
    else:
        train_vocabulary(sample(("source_text",)), directory / "source.spm", **options)
        train_vocabulary(sample(("target",)), directory / "target.spm", **options)
    source, target = parameters.source_language, parameters.target_language
    for side, language in (("source", source), ("target", target)):
        processor = load_processor(directory / f"{side}.spm")
        types = write_dictionary(processor, directory / f"dict.{language}.txt")
        logger.info("%s vocabulary: %d types", side, types)


def _write_held_out(pairs: Pairs, directory: Path, parameters: NmtParameters, threshold: float) -> int:
    """Write the held-out rows; of more than wanted, those with the smallest values. Returns their number.

    Pairs that would be too long to train on are not among them: nothing has to be cut, and loss and BLEU
    are of the same text.
    """
    processors = [load_processor(directory / f"{side}.spm") for side in ("source", "target")]
    kept = pa.table({"source_text": pa.array([], pa.string()), "reference": pa.array([], pa.string())})
    values = np.empty(0)
    for table in pairs():
        table_values = table["drawn"].to_numpy()
        below = table_values < threshold
        rows = table.filter(pa.array(below)).select(kept.schema.names)
        fits = _fitting(rows, processors, parameters.maximum_tokens)
        kept = pa.concat_tables([kept, rows.filter(pa.array(fits)).cast(kept.schema)])
        values = np.concatenate([values, table_values[below][fits]])
        if len(values) > 2 * parameters.validation.held_out:
            chosen = np.sort(np.argsort(values, kind="stable")[: parameters.validation.held_out])
            kept, values = kept.take(pa.array(chosen)).combine_chunks(), values[chosen]
    chosen = np.sort(np.argsort(values, kind="stable")[: parameters.validation.held_out])
    pq.write_table(kept.take(pa.array(chosen)), directory / "held_out.parquet")
    return len(chosen)


def _fitting(rows: pa.Table, processors: list[Any], maximum: int) -> NDArray[np.bool_]:
    """Which rows of ``source_text, reference`` have 2 to ``maximum`` tokens a side, the end included."""
    lengths = np.array(
        [
            [len(identifiers) for identifiers in encode_sentences(processor, rows[column].to_pylist())]
            for processor, column in zip(processors, rows.column_names, strict=True)
        ],
        dtype=np.int64,
    ).reshape(2, -1)
    fitting: NDArray[np.bool_] = (lengths.max(0, initial=0) <= maximum) & (
        lengths.min(0, initial=maximum) >= 2
    )
    return fitting


class _PartWriter:
    """Writes pairs of identifiers in fairseq's memory-mapped format, in directories of bounded size."""

    def __init__(self, directory: Path, parameters: NmtParameters) -> None:
        self._directory = directory
        self._languages = (parameters.source_language, parameters.target_language)
        self._dictionaries = [directory.parent / f"dict.{language}.txt" for language in self._languages]
        self._types = max(len(path.read_bytes().split(b"\n")) + 3 for path in self._dictionaries)
        self._builders: list[Any] = []
        self._written = 0
        self.parts: list[str] = []

    def prefix(self, split: str, language: str, part: int = -1) -> Path:
        source, target = self._languages
        return self._directory / self.parts[part] / f"{split}.{source}-{target}.{language}"

    def _open(self, split: str) -> None:
        self.parts.append(f"part-{len(self.parts):04d}")
        part = self._directory / self.parts[-1]
        part.mkdir(parents=True)
        for path in self._dictionaries:
            shutil.copyfile(path, part / path.name)
        self._builders = [self.builder(split, language) for language in self._languages]
        self._written = 0

    def builder(self, split: str, language: str, part: int = -1) -> Any:
        from fairseq.data.indexed_dataset import make_builder

        return make_builder(f"{self.prefix(split, language, part)}.bin", "mmap", vocab_size=self._types)

    def write(self, source: NDArray[np.int32], target: NDArray[np.int32]) -> None:
        import torch

        if self._written == PAIRS_PER_PART:
            self.close()
        if not self._builders:
            self._open("train")
        for builder, identifiers in zip(self._builders, (source, target), strict=True):
            builder.add_item(torch.from_numpy(identifiers))
        self._written += 1

    def close(self, split: str = "train") -> None:
        for builder, language in zip(self._builders, self._languages, strict=True):
            builder.finalize(f"{self.prefix(split, language)}.idx")
        self._builders = []


def _binarise(
    bitext: ShardDirectory,
    pairs: Pairs,
    directory: Path,
    parameters: NmtParameters,
    threshold: float,
    accepted: int,
    held_out: int,
) -> PreparedBitext:
    import_fairseq()
    processors = [load_processor(directory / f"{side}.spm") for side in ("source", "target")]
    writer = _PartWriter(directory / "parts", parameters)
    trained = too_long = below = 0
    tokens = [0, 0]
    with progress(total=accepted, unit="pairs", description="binarise") as bar:
        for table in pairs():
            rows = _training_rows(table, threshold, parameters.maximum_pairs / accepted)
            below += table.num_rows - rows.num_rows
            for start in range(0, rows.num_rows, PAIRS_PER_BLOCK):
                check_interrupt()
                block = rows.slice(start, PAIRS_PER_BLOCK)
                sides = [
                    encode_sentences(processor, block[column].to_pylist())
                    for processor, column in zip(processors, ("source_text", "target"), strict=True)
                ]
                for source, target in zip(*sides, strict=True):
                    longest, shortest = max(len(source), len(target)), min(len(source), len(target))
                    # One token is the end of the sentence alone.
                    if longest > parameters.maximum_tokens or shortest < 2:
                        too_long += 1
                        continue
                    writer.write(source, target)
                    trained += 1
                    tokens[0] += len(source)
                    tokens[1] += len(target)
            bar.update(table.num_rows)
    writer.close()
    if trained == 0:
        raise InputError("no pair is left to train on", bitext.path, remedy="Raise maximum_tokens.")
    _binarise_held_out(directory, parameters, writer, processors)
    return PreparedBitext(
        pairs=accepted,
        trained=trained,
        held_out=held_out,
        set_aside=below - held_out,
        too_long=too_long,
        source_tokens=tokens[0],
        target_tokens=tokens[1],
        parts=[f"parts/{part}" for part in writer.parts],
        teacher=teacher_of(bitext, parameters),
    )


def _binarise_held_out(
    directory: Path, parameters: NmtParameters, writer: _PartWriter, processors: list[Any]
) -> None:
    """Write the validation split into the first part, where fairseq looks for it."""
    import torch

    table = read_parquet(directory / "held_out.parquet")
    languages = (parameters.source_language, parameters.target_language)
    for language, column, processor in zip(languages, ("source_text", "reference"), processors, strict=True):
        builder = writer.builder("valid", language, part=0)
        for identifiers in encode_sentences(processor, table[column].to_pylist()):
            builder.add_item(torch.from_numpy(identifiers))
        builder.finalize(f"{writer.prefix('valid', language, part=0)}.idx")


def encode_sentences(processor: Any, sentences: list[str]) -> list[NDArray[np.int32]]:
    """fairseq's identifiers of each sentence, end of sentence included; see :func:`write_dictionary`."""
    shift = len(SPECIAL_TYPES) - 1
    end = SPECIAL_TYPES.index("</s>")
    encoded = []
    for identifiers in processor.encode(sentences):
        row = np.empty(len(identifiers) + 1, dtype=np.int32)
        row[:-1] = identifiers
        row[:-1] += shift
        row[-1] = end
        encoded.append(row)
    return encoded
