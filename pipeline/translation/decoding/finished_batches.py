"""The batches of a shard that were translated before a run stopped or died: they are not translated again."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import islice
from pathlib import Path
from typing import Any

from paraforge.base.errors import ParaforgeError
from paraforge.base.files import hash_json, remove_directory
from paraforge.base.shards.scheduler import report_rows
from paraforge.base.shards.work import Begun, read_begun, write_begun
from paraforge.translation.decoding.translator import Hypotheses, Hypothesis, Translator

logger = logging.getLogger(__name__)

# What a killed process may lose of a task that takes long.
_SAVE_SECONDS = 30.0
_BLOCK_SENTENCES = 2000
_current: ContextVar[FinishedBatches | None] = ContextVar("finished_batches", default=None)


class FinishedBatches:
    """Results by batch. A batch is known by all of its sentences in their order: alone, or with other ones
    beside it, a sentence might come out with another rounding."""

    def __init__(self, path: Path | None, libraries: Mapping[str, str] | None = None) -> None:
        """Read what a stopped run left in ``path``. A damaged file is skipped, and so is one that was made
        with other versions of libraries than ``libraries`` (name -> version): a shard has one version."""
        self._path = path
        self._libraries = dict(libraries or {})
        self._results: dict[str, list[Any]] = {}
        left = None if path is None else read_begun(path)
        if left is not None and left.libraries == self._libraries:
            self._results = left.content
        elif left is not None:
            logger.warning(
                "%s was begun with %s, not with %s: it begins again", path, left.libraries, self._libraries
            )
        self._before = len(self._results)
        self._saved = time.monotonic()

    def find(self, sentences: Sequence[str]) -> list[Hypotheses] | None:
        """Results of a batch with these sentences."""
        found = self._results.get(hash_json(sentences)) if self._before else None
        if found is None:
            return None
        report_rows(len(sentences))
        return [
            Hypotheses(tuple(Hypothesis(**one) for one in hypotheses), truncated, failed)
            for hypotheses, truncated, failed in found
        ]

    def add(self, sentences: Sequence[str], results: Sequence[Hypotheses]) -> None:
        """Keep the results of a batch."""
        report_rows(len(sentences))
        if self._path is not None:
            self._results[hash_json(sentences)] = [
                [[vars(one) for one in result.hypotheses], result.source_truncated, result.failed]
                for result in results
            ]
            if time.monotonic() - self._saved > _SAVE_SECONDS:
                self.save()

    def save(self) -> None:
        """Write all batches."""
        self._saved = time.monotonic()
        if self._path is not None and self._results:
            write_begun(self._path, Begun(self._libraries, self._results))  # of a shard, and rarely


def finished_batches() -> FinishedBatches:
    """Those of the shard that is being translated, or an empty store."""
    return _current.get() or FinishedBatches(None)


@contextmanager
def kept_batches(
    path: Path | None, always: bool = False, libraries: Mapping[str, str] | None = None
) -> Iterator[None]:
    """While the block runs, engines ask for finished batches. They are written to ``path`` now and then, and
    when an error or an interrupt ends the block, or ``always``.

    libraries: versions that decide the results; what other versions left in ``path`` is not used.
    """
    batches = FinishedBatches(path, libraries)
    token = _current.set(batches)
    try:
        yield
        if always:
            batches.save()
    except ParaforgeError:
        batches.save()
        raise
    finally:
        _current.reset(token)


class KeptAnswers:
    """A translator whose answers are kept on disk until all are there, because they were paid for.

    They are in ``directory``, a file for each block of sentences, and the next run asks for the others only.
    """

    def __init__(self, translator: Translator, directory: Path) -> None:
        self._translator = translator
        self._directory = directory
        self.fingerprint = translator.fingerprint

    def translate(self, sentences: Iterable[str]) -> Iterator[Hypotheses]:
        """Translate a stream; see :class:`~paraforge.translation.decoding.translator.Translator`."""
        stream = iter(sentences)
        number = 0
        while block := list(islice(stream, _BLOCK_SENTENCES)):
            with kept_batches(self._directory / f"{number:06d}.json", always=True):
                results = list(self._translator.translate(block))
            yield from results
            number += 1
        remove_directory(self._directory)
