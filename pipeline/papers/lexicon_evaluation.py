"""Evaluates a lexicon: correlation with human similarity judgments, and with PPDB (ParaNMT A.1)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paraforge.base.errors import InputError
from paraforge.base.text import ppdb
from paraforge.base.text.lines import finite_number, numbered_lines
from paraforge.embeddings.evaluation.comparing import spearman
from paraforge.embeddings.evaluation.sets import free_name
from paraforge.embeddings.evaluation.word_lists import (
    Pair,
    SimilarityList,
    correlate,
    read_similarity_lists,
)
from paraforge.products.lexicon.lookup import Lexicon


@dataclass(frozen=True)
class ReferenceLexicon:
    """A PPDB lexicon, or any list of word pairs.

    name: name of the file.
    scores: score of each ordered pair, the PPDB 2.0 score if the file has it; 1.0 in a list without scores.
    scored: whether the file has scores.
    """

    name: str
    scores: dict[Pair, float]
    scored: bool


def read_reference_lexicon(path: Path) -> ReferenceLexicon:
    """Read a PPDB file (`[NN] ||| word ||| paraphrase ||| features ||| ...`) or a list of word pairs.

    The score is ``PPDB2.0Score``; if a pair has entries for several parts of speech, the first is used
    (ParaNMT, footnote 10). Entries with several words are ignored. A list has two words per line, and perhaps
    a score.

    Raises InputError with file and line if an entry has neither form, if a score is not a number, or if there
    are no pairs.
    """
    scores: dict[Pair, float] = {}
    scored = False
    form: str | None = None
    for number, text in numbered_lines(path):
        if form is None:
            form = "ppdb" if ppdb.SEPARATOR in text else "list"
        if form == "ppdb":
            pair, score = _ppdb_entry(text, path, number)
        else:
            pair, score = _list_entry(text, path, number)
        scored |= score is not None
        if " " not in pair[0] and " " not in pair[1] and pair[0] != pair[1]:
            scores.setdefault(pair, 1.0 if score is None else score)
    if not scores:
        raise InputError("the file has no pairs of words", path)
    return ReferenceLexicon(path.name, scores, scored)


def _ppdb_entry(text: str, path: Path, number: int) -> tuple[Pair, float | None]:
    entry = ppdb.parse_entry(ppdb.split_fields(text))
    if entry is None or not entry.phrase or not entry.paraphrase:
        raise InputError(
            "expected a PPDB entry: [LHS] ||| phrase ||| paraphrase ||| features ||| ...", path, number
        )
    pair = (entry.phrase.lower(), entry.paraphrase.lower())
    if not entry.score:
        return pair, None
    score = finite_number(entry.score)
    if score is None:
        raise InputError(f"PPDB2.0Score is {entry.score!r}, not a number", path, number)
    return pair, score


def _list_entry(text: str, path: Path, number: int) -> tuple[Pair, float | None]:
    fields = [field.strip(" ") for field in (text.split("\t") if "\t" in text else text.split())]
    if len(fields) not in (2, 3) or not fields[0] or not fields[1]:
        raise InputError("expected two words and perhaps a score", path, number)
    score = None
    if len(fields) == 3:
        score = finite_number(fields[2])
        if score is None:
            raise InputError(f"the score {fields[2]!r} is not a number", path, number)
    return (fields[0].lower(), fields[1].lower()), score


SCORES = ("cross_pmi", "adjusted_pmi")


def lexicon_scores(
    lexicon: Lexicon, pairs: Iterable[Pair], minimum_pairs: int = 1
) -> dict[str, dict[Pair, float]]:
    """Return the lexicon's scores of pairs, in both orders of each pair, by score name."""
    orders = {order for first, second in pairs for order in ((first, second), (second, first))}
    names = {word: lexicon.normalize(word) for word, _ in orders}
    known = sorted(set(names.values()))
    entries = lexicon.entries(known, ["paraphrase", "pairs", *SCORES])
    # Filter before the conversion to Python objects: a frequent word has many thousand entries.
    is_known = pc.is_in(entries["paraphrase"], pa.array(known, pa.string()))
    entries = entries.filter(pc.and_(is_known, pc.greater_equal(entries["pairs"], minimum_pairs)))
    keys = list(zip(entries["word"].to_pylist(), entries["paraphrase"].to_pylist(), strict=True))
    result: dict[str, dict[Pair, float]] = {}
    for score in SCORES:
        values = dict(zip(keys, entries[score].to_pylist(), strict=True))
        scores = {(first, second): values.get((names[first], names[second])) for first, second in orders}
        result[score] = {pair: value for pair, value in scores.items() if value is not None}
    return result


@dataclass(frozen=True)
class Lists:
    """The similarity lists and reference lexicons for an evaluation."""

    judgments: list[SimilarityList]
    references: list[ReferenceLexicon]


def read_lists(word_lists: Sequence[Path], reference_lexicons: Sequence[Path] = ()) -> Lists:
    """Read similarity lists and reference lexicons. Raises InputError if a file is missing or malformed."""
    references: list[ReferenceLexicon] = []
    for path in reference_lexicons:
        lexicon = read_reference_lexicon(path)
        names = {reference.name for reference in references}
        references.append(replace(lexicon, name=free_name(lexicon.name, names)))
    return Lists(read_similarity_lists(word_lists), references)


def evaluate_lexicon(path: Path, lists: Lists, minimum_pairs: int = 1) -> dict[str, Any]:
    """Compute ParaNMT's Table 13: correlations of lexicon and reference lexicons with each similarity list.

    Returns for each list ``pairs`` (their number), ``found`` (pairs in the lexicon) and Spearman's rho x 100
    of each score; and for each reference lexicon, under its file name, ``found`` and ``spearman``.
    """
    lexicon = Lexicon(path)
    result: dict[str, Any] = {}
    for judgments in lists.judgments:
        scores = lexicon_scores(lexicon, judgments.pairs, minimum_pairs)
        row: dict[str, Any] = {"pairs": len(judgments.pairs)}
        for name in SCORES:
            correlation = correlate(judgments, scores[name])
            row["found"] = correlation.found
            row[name] = correlation.spearman
        for reference in lists.references:
            correlation = correlate(judgments, reference.scores)
            row[reference.name] = {"found": correlation.found, "spearman": correlation.spearman}
        result[judgments.name] = row
    return result


def shared_correlations(lexicon: Lexicon, reference: ReferenceLexicon) -> dict[str, float | None]:
    """Return Spearman's rho x 100 of each score with the reference lexicon's score, over the pairs in both.

    A pair that the reference lexicon has in both orders gets the mean of both scores. None if all values of
    one score are equal.
    """
    gold: dict[Pair, list[float]] = {}
    for pair, score in reference.scores.items():
        gold.setdefault((min(pair), max(pair)), []).append(score)
    result = {}
    for name, scores in lexicon_scores(lexicon, gold).items():
        shared = [
            (sum(gold[pair]) / len(gold[pair]), value) for pair, value in scores.items() if pair in gold
        ]
        rho = spearman(*np.array(shared, dtype=np.float64).reshape(-1, 2).T)
        result[name] = None if rho is None else round(rho, 2)
    return result
