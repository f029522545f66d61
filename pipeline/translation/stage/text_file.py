"""Translates a text file or a pipe line by line into a TSV of hypotheses."""

import math
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

from paraforge.base.errors import IncompleteError
from paraforge.base.files import text_output
from paraforge.base.logs import counted
from paraforge.base.progress import progress
from paraforge.base.text.lines import PIPE, whole_lines
from paraforge.translation.decoding.translator import Hypotheses, Translator

_MARKS = ("output_truncated", "empty", "non_finite", "runaway")


def read_sentences(path: Path) -> Iterator[str]:
    """Yield the lines of a file (plain, gz, bz2, xz, zst) or, for ``-``, of standard input.

    The first line is read immediately, so that a wrong path is an error before a model is loaded. Raises
    InputError, with the line, if the file is missing, empty, damaged, not UTF-8, or has a line of over 1 MB.
    """
    lines = (line for block in whole_lines(path) for line in block.lines.to_pylist())
    return chain([next(lines)], lines)


def translate_lines(
    translator: Translator, sentences: Iterable[str], output: Path, doing: str = "translate"
) -> Counter[str]:
    """Translate sentences and write a TSV: input line from 1, rank, score, text.

    The file appears under its name once it is complete. Until then, and after an interruption, the finished
    translations are in ``OUTPUT.part``.

    translator: an open engine. sentences: one per line, in order.
    output: file to write (``.gz``: compressed), or ``-``.

    Returns the numbers of sentences, hypotheses, failures, and marks of each kind.

    Raises:
        IncompleteError: sentences failed; the others are written.
    """
    counts: Counter[str] = Counter()
    with (
        text_output(None if output == PIPE else output, keep=True) as file,
        progress(total=None, unit="sentences", description=doing) as bar,
    ):
        for result in translator.translate(sentences):
            counts["sentences"] += 1
            file.writelines(_rows(counts["sentences"], result))
            _count(counts, result)
            bar.update(1)
    _say(counts)
    if counts["failed"]:
        raise IncompleteError(
            f"{counts['failed']} of {counts['sentences']} sentences failed; see the warnings"
        )
    return counts


def _rows(line: int, result: Hypotheses) -> Iterator[str]:
    if not result.hypotheses:
        yield f"{line}\t0\t\t\n"
    for rank, hypothesis in enumerate(result.hypotheses):
        score = "" if math.isnan(hypothesis.score) else f"{hypothesis.score:.6f}"
        yield f"{line}\t{rank}\t{score}\t{' '.join(hypothesis.text.split())}\n"


def _count(counts: Counter[str], result: Hypotheses) -> None:
    counts["hypotheses"] += len(result.hypotheses)
    counts["failed"] += result.failed is not None
    counts["source_truncated"] += result.source_truncated
    for mark in _MARKS:
        counts[mark] += sum(getattr(hypothesis, mark) for hypothesis in result.hypotheses)


def _say(counts: Counter[str]) -> None:
    marked = [f"{counts[mark]} {mark}" for mark in ("source_truncated", *_MARKS) if counts[mark]]
    noun = "hypothesis" if counts["hypotheses"] == 1 else "hypotheses"
    text = f"{counted(counts['sentences'], 'sentence')}, {counts['hypotheses']:,} {noun}"
    print(", ".join([text, *marked]), file=sys.stderr)
