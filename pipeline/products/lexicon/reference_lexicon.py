"""PPDB lexicons and other lists of word pairs, which a lexicon is compared with."""

import math
from dataclasses import dataclass
from pathlib import Path

from paraforge.base.errors import InputError
from paraforge.base.text import pair_blocks
from paraforge.base.text.lines import finite_number, numbered_lines

Pair = tuple[str, str]


@dataclass(frozen=True)
class ReferenceLexicon:
    """A PPDB lexicon, or any list of word pairs.

    name: of the file.
    scores: for each ordered pair its score, the PPDB 2.0 score where the file has it; 1.0 in a list without.
    scored: whether the file has scores.
    """

    name: str
    scores: dict[Pair, float]
    scored: bool

    def paraphrases(self, word: str) -> list[str]:
        """Paraphrases of a word, the best first; without scores in alphabetical order."""
        found: dict[str, float] = {}
        for (first, second), score in self.scores.items():
            if first == word:
                found[second] = max(score, found.get(second, -math.inf))
            elif second == word and not self.scored:
                found[first] = score
        return sorted(found, key=lambda other: (-found[other], other))


def read_reference_lexicon(path: Path) -> ReferenceLexicon:
    """Read a PPDB file (`[NN] ||| word ||| paraphrase ||| features ||| ...`) or a list of word pairs.

    The score is ``PPDB2.0Score``; of entries with several parts of speech the first is taken (ParaNMT,
    footnote 10). Multi-word phrases are passed over. A list has two words per line and may have a score.

    Raises:
        InputError: with file and line: neither of the two forms, a score that is no number, no entry at all.
    """
    scores: dict[Pair, float] = {}
    scored = False
    form: str | None = None
    for number, text in numbered_lines(path):
        if form is None:
            form = "ppdb" if pair_blocks.SEPARATOR in text else "list"
        if form == "ppdb":
            pair, score = _ppdb_entry(text, path, number)
        else:
            pair, score = _list_entry(text, path, number)
        scored |= score is not None
        if " " not in pair[0] and " " not in pair[1] and pair[0] != pair[1]:
            scores.setdefault(pair, 1.0 if score is None else score)
    if not scores:
        raise InputError("no pair of words in this file", path)
    return ReferenceLexicon(path.name, scores, scored)


def _ppdb_entry(text: str, path: Path, number: int) -> tuple[Pair, float | None]:
    entry = pair_blocks.parse_entry(pair_blocks.split_fields(text))
    if entry is None or not entry.phrase or not entry.paraphrase:
        raise InputError(
            "a PPDB entry is expected: [LHS] ||| phrase ||| paraphrase ||| features ||| ...", path, number
        )
    pair = (entry.phrase.lower(), entry.paraphrase.lower())
    if not entry.score:
        return pair, None
    score = finite_number(entry.score)
    if score is None:
        raise InputError(f"PPDB2.0Score is {entry.score!r}, no number", path, number)
    return pair, score


def _list_entry(text: str, path: Path, number: int) -> tuple[Pair, float | None]:
    fields = [field.strip(" ") for field in (text.split("\t") if "\t" in text else text.split())]
    if len(fields) not in (2, 3) or not fields[0] or not fields[1]:
        raise InputError("two words, and a score at most, are expected", path, number)
    score = None
    if len(fields) == 3:
        score = finite_number(fields[2])
        if score is None:
            raise InputError(f"the score {fields[2]!r} is no number", path, number)
    return (fields[0].lower(), fields[1].lower()), score
