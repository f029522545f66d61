"""link-grammar's ``link-parser``, a separate program that is fed through a pipe."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from paraforge.base.errors import InputError
from paraforge.base.files import hash_json, sha256_file

PROGRAM = "link-parser"
LANGUAGE = "en"
LINKAGES = 10
# Seconds by link-parser's own clock. A sentence that takes longer has no tree.
SECONDS = 3
SENTENCES_AT_ONCE = 200
# Longer than link-parser's limit (254 tokens), and than anything it finishes in time.
MAXIMUM_WORDS = 100
# A program that neither answers nor keeps its time limit is killed after this many seconds per sentence.
_PATIENCE = 10 * SECONDS
_START_SECONDS = 30
_INSTALL = "Debian: apt-get install link-grammar link-grammar-dictionaries-en."
_OPTIONS = {
    "constituents": 1,
    "graphics": 0,
    "limit": LINKAGES,
    "timeout": SECONDS,
    "panic": 0,
    "spell": 0,
    "verbosity": 0,
}
# A command whose answer follows every tree. Without it, a sentence without a tree would go unnoticed.
_MARK, _MARKED = "!width=16381", "width set to 16381"


class LinkGrammar:
    """A :class:`~paraforge.base.parsing.parser.Parser` over ``link-parser``."""

    def __init__(self) -> None:
        """Look for the program. Raises InputError if it is not installed."""
        program = shutil.which(PROGRAM)
        if program is None:
            raise InputError(f"the parser 'link-grammar' needs the program {PROGRAM}", remedy=_INSTALL)
        self._program = program
        self.version = _version(program)
        self.fingerprint = hash_json([PROGRAM, self.version, _OPTIONS, MAXIMUM_WORDS, 1])

    def parse(self, sentences: Sequence[str]) -> list[str | None]:
        """Return the trees of the sentences; see :class:`~paraforge.base.parsing.parser.Parser`.

        Raises:
            InputError: the program cannot be run.
        """
        trees: list[str | None] = []
        for start in range(0, len(sentences), SENTENCES_AT_ONCE):
            trees += self._parse_some(sentences[start : start + SENTENCES_AT_ONCE])
        return trees

    def _parse_some(self, sentences: Sequence[str]) -> Iterator[str | None]:
        """Parse sentences that fit in one run. A sentence that crashes the program has no tree; those after
        it are tried again."""
        texts = [_one_line(sentence) for sentence in sentences]
        start = 0
        while start < len(texts):
            trees = self._run(texts[start:])
            yield from trees
            start += len(trees)
            if start < len(texts):
                yield None
                start += 1

    def _run(self, texts: Sequence[str]) -> list[str | None]:
        """Return the trees of the first texts: of all texts, unless the program dies or hangs."""
        lines = (f" {text}\n{_MARK}\n" if text else f"{_MARK}\n" for text in texts)
        command = [self._program, LANGUAGE, *(f"-{name}={value}" for name, value in _OPTIONS.items())]
        environment = {**os.environ, "LC_ALL": "C.UTF-8"}
        try:
            done = subprocess.run(
                command,
                input="".join(lines).encode(),
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
                timeout=_START_SECONDS + _PATIENCE * len(texts),
                check=False,
            )
            output = done.stdout
        except subprocess.TimeoutExpired as error:
            output = error.stdout or b""
        except OSError as error:
            raise InputError(f"{self._program} cannot be run: {error.strerror}", remedy=_INSTALL) from error
        answers = output.decode("utf-8", "replace").split(_MARKED)[:-1]
        return [tree_of(answer) for answer in answers]


def _version(program: str) -> str:
    """Return a fingerprint of program and dictionary, because another dictionary gives other trees."""
    try:
        said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(f"{program} cannot be run: {error}", remedy=_INSTALL) from error
    lines = (said.stdout + said.stderr).splitlines()
    version = next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("Version")), "unknown"
    )
    dictionary = Path("/usr/share/link-grammar") / LANGUAGE / "4.0.dict"
    return f"{version}, {sha256_file(dictionary)[:8]}" if dictionary.is_file() else version


def _one_line(sentence: str) -> str:
    """Return the line to send, without control characters; empty if the sentence is too long."""
    words = "".join(letter if letter.isprintable() else " " for letter in sentence).split()
    return " ".join(words) if len(words) <= MAXIMUM_WORDS else ""


def tree_of(answer: str) -> str | None:
    """Return the first tree of an answer, ``(S (NP a man.n) (VP is.v (VP riding.v)) .)``; None if it has
    none. Its words are as link-parser writes them; a round bracket of the text is a brace in them."""
    start = answer.find("(S")
    depth = 0
    for place in range(start, len(answer) if start >= 0 else start):
        depth += {"(": 1, ")": -1}.get(answer[place], 0)
        if depth == 0:
            return " ".join(answer[start : place + 1].split())
    return None
