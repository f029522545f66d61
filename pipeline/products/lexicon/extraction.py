"""Extracts a paraphrase lexicon: each word's paraphrases by adjusted PMI (ParaNMT, appendix A.1)."""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from paraforge import versions
from paraforge.base.files import hash_json, remove_directory, write_json
from paraforge.base.shards.resources import Resources, job_memory
from paraforge.base.shards.scheduler import open_jobs
from paraforge.base.shards.work import WorkDirectory, replaced_directory
from paraforge.corpus.publication.held_out import HeldOut
from paraforge.corpus.publication.lexicon_layout import FORMAT, MANIFEST, WORDS
from paraforge.products.lexicon.counting import count_pairs
from paraforge.products.lexicon.entries import assemble, write_words
from paraforge.products.lexicon.pair_sources import open_pairs
from paraforge.products.lexicon.parameters import LexiconParameters

logger = logging.getLogger(__name__)

STEP = "lexicon"


@dataclass(frozen=True)
class LexiconReport:
    """What extraction gave: ``rows`` = ``pairs`` + all of ``dropped``."""

    rows: int
    pairs: int
    dropped: dict[str, int]
    words: int
    words_with_paraphrases: int
    entries: int
    seconds: float


def extract_lexicon(
    inputs: Sequence[Path],
    output: Path,
    parameters: LexiconParameters,
    resources: Resources,
    allow_empty: bool = False,
    held_out: HeldOut | None = None,
) -> LexiconReport:
    """Extract a lexicon (ParaNMT appendix A.1) and put it in place of the directory ``output``.

    inputs: see :func:`paraforge.products.lexicon.pair_sources.open_pairs`. output: directory to make.
    parameters: filters, least number of pairs, smoothing. resources: where to run.
    allow_empty: make a lexicon without entries, and warn, where no pair is left to be counted.

    Raises:
        InputError: an input is missing or malformed, or none of its pairs is left to be counted.
        WorkLockedError: another process extracts a lexicon in the same work directory.
        Interrupted: SIGTERM or Ctrl-C; what is finished is kept, and the same call continues from there.
    """
    started = time.monotonic()
    work = WorkDirectory(STEP, resources.work.resolve())
    with work.lock():
        source = open_pairs(inputs, parameters.filters)
        counted = {
            "version": versions.LEXICON,
            "input": source.fingerprint,
            **({"held_out": held_out.digest} if held_out else {}),
            "parameters": parameters.model_dump(
                mode="json", include={"filters", "classes", "language", "minimum_pairs"}
            ),
        }
        # Another key cannot use these files: an abandoned run must not fill the disk for good.
        directory = work.path / hash_json(counted)[:40]
        for left in work.path.iterdir():
            if left.is_dir() and left != directory:
                remove_directory(left)
        with open_jobs(resources, source.rows) as jobs:
            memory = job_memory(resources)
            counts = count_pairs(source, parameters, directory, memory, jobs, allow_empty, held_out)
            with replaced_directory(output.resolve()) as temporary:
                files, degrees = assemble(counts, parameters, directory, temporary, jobs)
                write_words(counts.vocabulary, degrees, temporary / WORDS)
                entries = sum(int(file["rows"]) for file in files)
                settings = parameters.model_dump(mode="json", exclude={"word_lists", "reference_lexicons"})
                manifest = {
                    "format": FORMAT,
                    "paraforge": versions.__version__,
                    "parameters": settings,
                    "input": source.fingerprint,
                    "rows": source.rows,
                    "pairs": counts.pairs,
                    "dropped": counts.dropped,
                    "words": len(counts.vocabulary),
                    "entries": entries,
                    "files": files,
                }
                write_json(temporary / MANIFEST, manifest)
        for finished in work.path.iterdir():
            if finished.is_dir():
                remove_directory(finished)
    if counts.pairs and not entries:
        logger.warning(
            "the lexicon is empty: no two words are on opposite sides of %d pairs; %d pairs were counted",
            parameters.minimum_pairs,
            counts.pairs,
        )
    return LexiconReport(
        rows=source.rows,
        pairs=counts.pairs,
        dropped=counts.dropped,
        words=len(counts.vocabulary),
        words_with_paraphrases=int((degrees > 0).sum()),
        entries=entries,
        seconds=round(time.monotonic() - started, 3),
    )
