"""Stage paragram: paragram-phrase word vectors, read from a file or trained on paraphrase pairs (W16, Eq. 1
and 11)."""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from paraforge.bitext.pair_blocks import PairBlock, read_corpus_pairs, read_pair_file
from paraforge.embeddings.encoders.average import Average
from paraforge.embeddings.encoders.parameters import WORD
from paraforge.embeddings.initial import random_table, table_from_vectors
from paraforge.embeddings.pair_store import PairStore, build_pair_store
from paraforge.embeddings.paragram_parameters import ParagramParameters
from paraforge.embeddings.trainer import Trainer
from paraforge.errors import InputError
from paraforge.files import hash_json, read_json_or_none, sha256_file, write_json
from paraforge.scoring.vectors import WordVectors
from paraforge.shards.resources import Resources
from paraforge.shards.store import ShardDirectory
from paraforge.shards.work import WorkDirectory, link_or_copy, replaced_directory
from paraforge.text.paths import expand
from paraforge.text.units import Words
from paraforge.text.vocabulary import UNKNOWN, Vocabulary
from paraforge.versions import PARAGRAM

logger = logging.getLogger(__name__)

_RAREST_SHARE = 0.1


@dataclass(frozen=True)
class ParagramReport:
    """What the stage gave.

    trained: whether the vectors were trained here. pairs, skipped, passed_over (how often a pair had no
        other text that could be its negative), loss (of each epoch) and pairs_per_second are of the training.
    """

    words: int
    dimension: int
    unknown: str | None
    fingerprint: str
    trained: bool
    seconds: float
    pairs: int = 0
    skipped: int = 0
    loss: list[float | None] = field(default_factory=list)
    pairs_per_second: float | None = None
    passed_over: int = 0


def build_paragram(
    parameters: ParagramParameters, translated: Path, output: Path, resources: Resources
) -> ParagramReport:
    """Make the table of word vectors that the paraphrase score is computed with.

    translated: the corpus' shards, read where parameters.corpus_pairs is set.
    output: directory of the table (see `WordVectors`); replaced as a whole.
    resources: never change a byte of the result.

    Raises:
        InputError: a vector or pair file is wrong, or there is no pair to train on.
        Interrupted: SIGTERM or Ctrl-C; training goes on from its checkpoint when the stage runs again.
        WorkLockedError: another process is at it.
    """
    begin = time.perf_counter()
    if parameters.vectors is not None:
        vectors = _use_given(Path(expand(parameters.vectors)), output)
        return _report(vectors, False, begin)
    work = WorkDirectory("paragram", resources.work)
    with work.lock():
        directory = work.path / _key(parameters, translated)[:40]
        details = _train_once(parameters, translated, directory, resources)
        with replaced_directory(output) as temporary:
            for file in sorted((directory / "table").iterdir()):
                link_or_copy(file, temporary / file.name)
    return _report(WordVectors.open(output), True, begin, **details)


def _use_given(path: Path, output: Path) -> WordVectors:
    with replaced_directory(output) as temporary:
        if path.is_dir():
            WordVectors.open(path, verify=True)
            for file in sorted(path.iterdir()):
                link_or_copy(file, temporary / file.name)
        else:
            WordVectors.convert(path, temporary)
    vectors = WordVectors.open(output)
    if vectors.unknown is None:
        logger.warning("%s has no vector %s: words without a vector are left out of a score", path, UNKNOWN)
    return vectors


def _key(parameters: ParagramParameters, translated: Path) -> str:
    """Hash of everything that the trained vectors depend on."""
    inputs: dict[str, Any] = {}
    if parameters.corpus_pairs:
        inputs["corpus"] = [record.sha256 for record in ShardDirectory(translated).records]
    paths = [expand(file.path) for file in parameters.pair_files]
    if parameters.initial_vectors is not None:
        paths.append(expand(parameters.initial_vectors))
    for path in paths:
        if not Path(path).is_file():
            raise InputError("no such file", path)
        inputs[path] = sha256_file(path)
    return hash_json(
        {"version": PARAGRAM, "parameters": parameters.model_dump(mode="json"), "inputs": inputs}
    )


def _pair_blocks(parameters: ParagramParameters, translated: Path) -> Iterator[PairBlock]:
    if parameters.corpus_pairs:
        yield from read_corpus_pairs(translated)
    for file in parameters.pair_files:
        yield from read_pair_file(Path(expand(file.path)), file.format, file.columns, file.limit)


def _train_once(
    parameters: ParagramParameters, translated: Path, directory: Path, resources: Resources
) -> dict[str, Any]:
    """Train into `directory / "table"`, unless it is there already; returns what the report says about it."""
    done = directory / "report.json"
    if (details := read_json_or_none(done)) and _is_whole(directory / "table"):
        logger.info("these vectors have been trained before: taken from %s", directory)
        return details
    store = _open_or_build(directory / "pairs", parameters, translated)
    training = parameters.training
    initial = None
    if parameters.initial_vectors is not None:
        initial = WordVectors.from_text(expand(parameters.initial_vectors))
    vocabulary = store.vocabularies[WORD]
    table = (
        random_table(len(vocabulary), parameters.dimension, parameters.initial_scale, training.seed)
        if initial is None
        else table_from_vectors(vocabulary, initial, training.seed)
    )
    encoder = Average(table, WORD)
    trainer = Trainer(
        encoder,
        store,
        training,
        checkpoints=directory / "checkpoints",
        threads=resources.thread_count(),
        description="paragram",
    )
    report = trainer.run()
    trained = encoder.table.detach().numpy()
    settle_unknown(vocabulary, trained, store.counts(WORD))
    _merge(vocabulary, trained, initial).save(directory / "table")
    details = {
        "pairs": store.pairs,
        "skipped": store.skipped,
        "passed_over": report.state.passed_over,
        "loss": [entry["loss"] for entry in report.state.history],
        "pairs_per_second": report.pairs_per_second,
    }
    write_json(done, details)
    for name in ("pairs", "checkpoints"):
        shutil.rmtree(directory / name, ignore_errors=True)
    return details


def _is_whole(table: Path) -> bool:
    try:
        WordVectors.open(table, verify=True)
    except InputError:
        return False
    return True


def _open_or_build(directory: Path, parameters: ParagramParameters, translated: Path) -> PairStore:
    try:
        return PairStore(directory)
    except InputError:  # not there, or not whole
        return build_pair_store(
            directory, _pair_blocks(parameters, translated), [Words()], parameters.vocabulary
        )


def settle_unknown(
    vocabulary: Vocabulary, vectors: npt.NDArray[np.float32], counts: npt.NDArray[np.int64]
) -> None:
    """Give the unknown word a vector where training never saw it: the mean of the rarest tenth of the words.

    counts: occurrences of each unit, int64 (vocabulary,). Where the unknown word occurs, it was trained as
        any other.
    """
    unknown = vocabulary.unknown_id
    if counts[unknown] or len(vocabulary) < 2:
        return
    order = np.argsort(counts, kind="stable")
    rarest = order[order != unknown][: max(1, int(_RAREST_SHARE * (len(vocabulary) - 1)))]
    vectors[unknown] = vectors[rarest].mean(axis=0)


def _merge(
    vocabulary: Vocabulary, trained: npt.NDArray[np.float32], initial: WordVectors | None
) -> WordVectors:
    """The trained words, and behind them the initial vectors' words that no pair has, as they were."""
    if initial is None:
        return WordVectors(vocabulary.units, trained)
    words = initial.words
    others = [row for row, word in enumerate(words) if word not in vocabulary]
    return WordVectors(
        [*vocabulary.units, *(words[row] for row in others)],
        np.concatenate([trained, initial.vectors[others]]),
    )


def _report(vectors: WordVectors, trained: bool, begin: float, **details: Any) -> ParagramReport:
    return ParagramReport(
        words=len(vectors),
        dimension=vectors.dimension,
        unknown=vectors.unknown,
        fingerprint=vectors.fingerprint,
        trained=trained,
        seconds=time.perf_counter() - begin,
        **details,
    )
