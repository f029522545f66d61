"""Stage paragram: makes the model that computes the paraphrase score.

It is the built-in scorer, a given sentence model, or word vectors, read from a file or trained on paraphrase
pairs (W16, Eq. 1 and 11).
"""

import logging
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from paraforge.base.files import hash_json, sha256_directory
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.store import ShardDirectory
from paraforge.base.shards.work import copy_files, replaced_directory
from paraforge.base.text.paths import expand
from paraforge.base.text.units import Units
from paraforge.base.text.vocabulary import UNKNOWN, WORD, Vocabulary
from paraforge.base.word_vectors.vectors import WordVectors
from paraforge.corpus.scoring import general
from paraforge.corpus.scoring.word_scorer import DESCRIPTION, VECTORS, WordScorer
from paraforge.embeddings.learning.runs import MODEL, open_or_build, run_once
from paraforge.embeddings.trainer.data import TrainingData
from paraforge.embeddings.trainer.parameters import ParagramParameters
from paraforge.versions import PARAGRAM

logger = logging.getLogger(__name__)

_RAREST_SHARE = 0.1
# Number of first references to check, and the least share of their words that the scorer knows if they are
# English.
_SAMPLE = 2_000


@dataclass(frozen=True, kw_only=True)
class ParagramReport:
    """The result of the stage.

    words: units of a model's tables. unknown: the word for words without a vector.
    model: kind of the given sentence model, or the name of the built-in scorer.
    trained: whether the vectors were trained here; the other fields describe the training.
    """

    words: int
    dimension: int
    unknown: str | None = None
    fingerprint: str
    trained: bool = False
    seconds: float
    model: str | None = None
    pairs: int = 0
    skipped: int = 0
    loss: list[float | None] = field(default_factory=list)
    pairs_per_second: float | None = None
    passed_over: int = 0


def build_paragram(
    parameters: ParagramParameters, translated: Path, output: Path, resources: Resources
) -> ParagramReport:
    """Make the scorer, model or table of word vectors that computes the paraphrase score.

    translated: the corpus' shards, read if parameters.corpus_pairs is set.
    output: directory of the scorer (see `WordScorer`), table (`WordVectors`) or model (`SentenceModel`);
        replaced as a whole.

    Raises:
        InputError: the model, a vector or pair file is wrong, or there is no pair to train on.
        Interrupted: SIGTERM or Ctrl-C; training resumes from its checkpoint when the stage runs again.
        WorkLockedError: another process is running the same training.
    """
    begin = time.perf_counter()
    if parameters.model is not None:
        details = _use_model(Path(expand(parameters.model)), output)
    elif parameters.vectors is not None:
        details = _use_given(Path(expand(parameters.vectors)), output)
    elif parameters.built_in is not None:
        details = _use_built_in(translated, output)
    else:
        details = _use_trained(parameters, translated, output, resources)
    return ParagramReport(**details, seconds=time.perf_counter() - begin)


def _use_trained(
    parameters: ParagramParameters, translated: Path, output: Path, resources: Resources
) -> dict[str, Any]:
    data = TrainingData(parameters.pair_files, [translated] if parameters.corpus_pairs else [])
    details = run_once(
        "paragram",
        _key(parameters, data),
        resources.work,
        output,
        train=lambda place: _train(parameters, data, translated, place, resources),
        open_model=WordVectors.open,
        scratch=("pairs", "checkpoints"),
    )
    return {**_describe(WordVectors.open(output)), "trained": True, **details}


def _use_built_in(translated: Path, output: Path) -> dict[str, Any]:
    """Copy the built-in scorer; warn if the corpus does not look like English."""
    scorer = WordScorer.open(general.DIRECTORY)
    first = next(iter(ShardDirectory(translated).tables(["reference"])), None)
    if first is not None and (doubt := scorer.doubt_about(first["reference"].slice(0, _SAMPLE))):
        other = "choose paragram=corpus, or give paragram.vectors or paragram.model"
        logger.warning("%s For another language %s.", doubt, other)
    with replaced_directory(output) as temporary:
        for name in (DESCRIPTION, VECTORS):
            # Not a link, because changes to it must not change the package.
            shutil.copyfile(general.DIRECTORY / name, temporary / name)
    return {
        "words": len(scorer.vectors.parts),
        "dimension": scorer.vectors.dimension,
        "fingerprint": scorer.fingerprint,
        "model": general.NAME,
    }


def _use_model(path: Path, output: Path) -> dict[str, Any]:
    from paraforge.embeddings.trainer.model import SentenceModel

    model = SentenceModel.open(path)
    with replaced_directory(output) as temporary:
        copy_files(path, temporary)
    return {
        "words": sum(map(len, model.vocabularies.values())),
        "dimension": model.dimension,
        "fingerprint": sha256_directory(output),
        "model": model.parameters.kind,
    }


def _use_given(path: Path, output: Path) -> dict[str, Any]:
    with replaced_directory(output) as temporary:
        if path.is_dir():
            WordVectors.open(path, verify=True)
            copy_files(path, temporary)
        else:
            WordVectors.convert(path, temporary)
    vectors = WordVectors.open(output)
    if vectors.unknown is None:
        logger.warning("%s has no vector %s: words without a vector are left out of a score", path, UNKNOWN)
    return _describe(vectors)


def _describe(vectors: WordVectors) -> dict[str, Any]:
    return {
        "words": len(vectors),
        "dimension": vectors.dimension,
        "unknown": vectors.unknown,
        "fingerprint": vectors.fingerprint,
    }


def _key(parameters: ParagramParameters, data: TrainingData) -> str:
    return hash_json(
        {
            "version": PARAGRAM,
            "parameters": parameters.model_dump(mode="json", exclude={"built_in", "pair_files"}),
            "data": data.fingerprint(),
        }
    )


def _train(
    parameters: ParagramParameters,
    data: TrainingData,
    translated: Path,
    directory: Path,
    resources: Resources,
) -> dict[str, Any]:
    """Train the table in `directory / MODEL`. Returns its part of the report."""
    from paraforge.embeddings.encoders.averages import Average
    from paraforge.embeddings.trainer.initial import random_table
    from paraforge.embeddings.trainer.objective import encoder_trainer
    from paraforge.embeddings.trainer.pair_store import PairStore, build_pair_store

    pairs = directory / "pairs"
    store = open_or_build(
        lambda: PairStore(pairs),
        lambda: build_pair_store(pairs, data.blocks(), [Units()], parameters.vocabulary),
    )
    training = parameters.training
    vocabulary = store.vocabularies[WORD]
    table = random_table(len(vocabulary), parameters.dimension, parameters.initial_scale, training.seed)
    encoder = Average(table, WORD)
    trainer = encoder_trainer(
        encoder,
        store,
        training,
        checkpoints=directory / "checkpoints",
        threads=resources.thread_count(),
        description="paragram",
    )
    record = trainer.run()
    trained = encoder.table.detach().numpy()
    settle_unknown(vocabulary, trained, store.counts(WORD))
    shards = ShardDirectory(translated).digest if parameters.corpus_pairs else None
    WordVectors(vocabulary.units, trained).save(directory / MODEL, trained_on=shards)
    return {
        "pairs": store.pairs,
        "skipped": store.skipped,
        "passed_over": record.counts["passed_over"],
        "loss": [entry["loss"] for entry in record.history],
        "pairs_per_second": trainer.rate,
    }


def settle_unknown(
    vocabulary: Vocabulary, vectors: npt.NDArray[np.float32], counts: npt.NDArray[np.int64]
) -> None:
    """Give the unknown word a vector if training never saw it: the mean of the rarest tenth of the words.

    counts: occurrences of each unit, int64 (vocabulary,).
    """
    unknown = vocabulary.unknown_id
    if counts[unknown]:
        return
    order = np.argsort(counts, kind="stable")
    rarest = order[order != unknown][: max(1, int(_RAREST_SHARE * (len(vocabulary) - 1)))]
    vectors[unknown] = vectors[rarest].mean(axis=0)
