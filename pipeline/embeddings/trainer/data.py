"""The data of a training: pairs from files and corpora, development and test sets."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from paraforge.base.errors import InputError
from paraforge.base.files import hash_json, sha256_file
from paraforge.base.shards.schema import TEXT_COLUMNS
from paraforge.base.shards.store import INDEX_NAME, ShardDirectory
from paraforge.base.text.normalization import normalize
from paraforge.base.text.pair_blocks import PairBlock, read_pair_file
from paraforge.base.text.paths import expand
from paraforge.corpus.publication.datasets import (
    Dataset,
    corpus_blocks,
    is_published,
    open_published,
    published_tables,
)
from paraforge.corpus.publication.manifest import MANIFEST_NAME, TRAIN
from paraforge.embeddings.evaluation.comparing import Comparable
from paraforge.embeddings.evaluation.leakage import LeakageFilter
from paraforge.embeddings.evaluation.sets import SentencePairs, read_sets
from paraforge.embeddings.evaluation.sts import development_score
from paraforge.embeddings.trainer.parameters import PairFileParameters

if TYPE_CHECKING:
    from paraforge.embeddings.learning.loop import Evaluate

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class TrainingData:
    """Sources of pairs and judgments.

    corpora: published corpora (`data/corpus`) or directories of shards (`data/translated`).
    reserved: corpora that are not trained on. Pairs with one of their held-out sentences are dropped from
        other sources.
    development: STS files or directories that choose the epoch.
    test_sets: sets for evaluating the trained model.
    foreign: further sets whose sentences must not be trained on.
    drop_leaked: whether pairs with a sentence of these sets, or of a corpus' held-out splits, are left out or
        only reported.
    """

    pair_files: Sequence[PairFileParameters] = ()
    corpora: Sequence[Path] = ()
    development: Sequence[str] = ()
    test_sets: Sequence[str] = ()
    foreign: Sequence[str] = ()
    drop_leaked: bool = True
    reserved: Sequence[Path] = ()

    @cached_property
    def sets_by_role(self) -> dict[str, list[SentencePairs]]:
        """Return the sets of each role: `development`, `test` and `foreign`."""
        roles = {"development": self.development, "test": self.test_sets, "foreign": self.foreign}
        return {role: read_sets([*map(expand, paths)]) if paths else [] for role, paths in roles.items()}

    @cached_property
    def development_pairs(self) -> dict[str, int]:
        """The number of pairs of each evaluated set, by name, that also choose the epoch. Order of the sides,
        case and punctuation are ignored. Sets without such pairs are left out; a warning names the others."""
        choosing = {pair for pairs in self.development_sets for pair in _normalize(pairs)}
        pairs_of = {}
        for pairs in self.evaluated_sets if choosing else []:
            if shared := sum(pair in choosing for pair in _normalize(pairs)):
                pairs_of[pairs.name] = shared
                message = (
                    "%s: %d of its %d pairs are also used to choose the epoch, so its scores are too high"
                )
                logger.warning(message, pairs.name, shared, len(pairs))
        return pairs_of

    @cached_property
    def development_sets(self) -> list[SentencePairs]:
        """The sets that choose the epoch. Raises InputError if the scores of one are all equal: every model
        would be as good as the first."""
        sets = self.sets_by_role["development"]
        for pairs in sets:
            if len(np.unique(pairs.scored.gold)) < 2:
                raise InputError(
                    f"the development set {pairs.name} has no two different scores, so it cannot choose",
                    remedy="Leave it out, or use a file with its scores.",
                )
        return sets

    @property
    def evaluated_sets(self) -> list[SentencePairs]:
        """The sets that the trained model is evaluated on."""
        return self.sets_by_role["test"]

    def development_score_of(self, model: Comparable) -> Evaluate | None:
        """Return the function that evaluates `model` for a training loop (its argument is not used); None
        without development sets."""
        sets = self.development_sets
        return (lambda _: development_score(model, sets)) if sets else None

    def leakage_filter(self) -> LeakageFilter:
        """Return the filter for pairs with a sentence of any set. Sets are distinguished by role and content,
        not by file names; a set with several roles counts once."""
        roles: dict[str, list[str]] = {}
        sets: dict[str, SentencePairs] = {}
        for role, members in self.sets_by_role.items():
            for pairs in members:
                digest = _digest(pairs)
                sets.setdefault(digest, pairs)
                roles.setdefault(digest, []).append(role)
        named: dict[str, Iterable[str]] = {
            f"{pairs.name} ({', '.join(dict.fromkeys(roles[digest]))})": pairs.sentences
            for digest, pairs in sets.items()
        }
        for split in self._held_out:
            named[split.name] = _sentences(split)
        return LeakageFilter(named, self.drop_leaked)

    @cached_property
    def _held_out(self) -> list[Dataset]:
        """Return the corpora's held-out sentences by name, CORPUS (SPLIT)."""
        return [
            replace(split, name=f"{corpus} ({name})")
            for corpus in (*self.corpora, *self.reserved)
            if is_published(corpus)
            for name, split in open_published(corpus).splits.items()
            if name != TRAIN
        ]

    def blocks(self) -> Iterator[PairBlock]:
        """Yield all pairs, leaked ones included, block by block, corpora first. Raises InputError if a source
        is missing or damaged."""
        for corpus in self.corpora:
            yield from corpus_blocks(corpus)
        for number, file in enumerate(self.pair_files):
            path = Path(expand(file.path))
            for block in read_pair_file(path, file.format, file.columns, file.limit):
                # Two files with one name in different directories are two sources.
                yield replace(block, source=f"{number}: {block.source}")

    def fingerprint(self) -> str:
        """Return the SHA-256 of the pairs' files and of each role's sets with names, sentences and scores.
        Raises InputError if one cannot be read."""
        files = []
        for file in self.pair_files:
            path = Path(expand(file.path))
            if not path.is_file():
                raise InputError("no such file", path)
            files.append([sha256_file(path), file.format, file.columns, file.limit])
        return hash_json(
            {
                "training": {"files": files, "corpora": [_corpus_digests(corpus) for corpus in self.corpora]},
                "drop_leaked": self.drop_leaked,
                **({"held_out": [_digests(split) for split in self._held_out]} if self._held_out else {}),
                # Their names are in the training's report.
                **{
                    role: [[pairs.name, pairs.group, _digest(pairs)] for pairs in sets]
                    for role, sets in self.sets_by_role.items()
                },
            }
        )


def _normalize(pairs: SentencePairs) -> list[tuple[str, ...]]:
    """Return the two sentences of each pair, without case and punctuation, in alphabetical order."""
    sides = [normalize(pa.array(list(side), pa.string())).to_pylist() for side in (pairs.first, pairs.second)]
    return [tuple(sorted(pair)) for pair in zip(*sides, strict=True)]


def _digest(pairs: SentencePairs) -> str:
    """Return the identity of a set: its sentences and scores, without its name."""
    return hash_json([list(pairs.first), list(pairs.second), pairs.gold.tobytes().hex()])


def _corpus_digests(directory: Path) -> list[str]:
    if is_published(directory):
        return _digests(open_published(directory).training)
    if directory.is_dir() and not (directory / INDEX_NAME).is_file():
        raise InputError(
            "neither a published corpus nor shards",
            directory,
            remedy=f"Use one such as data/corpus ({MANIFEST_NAME}) or data/translated ({INDEX_NAME}).",
        )
    return [record.sha256 for record in ShardDirectory(directory).records]


def _sentences(dataset: Dataset) -> Iterator[str]:
    columns = [name for name in TEXT_COLUMNS if name in dataset.schema.names]
    for table in published_tables(dataset, columns):
        for side in table.columns:
            yield from side.to_pylist()


def _digests(dataset: Dataset) -> list[str]:
    """Return the SHA-256 of each file of a split."""
    assert dataset.manifest is not None
    names = {path.name for path in dataset.files}
    return [file.sha256 for file in dataset.manifest.files if file.path in names]
