"""Fits SIF and its relatives from what a user names: vectors, counts, sentences."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from paraforge.base.errors import ConfigurationError, InputError
from paraforge.base.text.lines import numbered_lines
from paraforge.base.word_vectors.vectors import WordVectors
from paraforge.embeddings.evaluation.baselines.sif import SifOfEachSet
from paraforge.embeddings.evaluation.baselines.word_average import (
    InverseDocumentFrequency,
    SmoothInverseFrequency,
    Weighting,
    WordAverage,
    completed_from,
    sentence_counts,
    word_counts,
)
from paraforge.embeddings.evaluation.sets.finding import read_sets

WEIGHTS = ("sif", "idf", "none")


def fit_sif(
    vectors: Path,
    counts: Path | None,
    fit: Sequence[Path],
    weights: str,
    a: float,
    components: int,
    open_vectors: Callable[[Path], WordVectors],
) -> tuple[WordAverage | SifOfEachSet, dict[str, Any]]:
    """A weighted average of word vectors without common components, and what it was made of.

    open_vectors: opens `vectors`, when all other arguments have been checked.
    counts: file or corpus of word counts; needed for the weights `sif`.
    fit: sentences that the components, the weights `idf` and the words without a count are fitted on; without
        any the components are those of each evaluated set.
    weights: one of `WEIGHTS`. a: of Arora's weights. components: how many are removed.

    Raises:
        ConfigurationError: weights without what they need.
        InputError: a file that cannot be read, with file and line.
    """
    problems = []
    if weights not in WEIGHTS:
        problems.append(f"--weights {weights}: there are {', '.join(WEIGHTS)}")
    if weights == "sif" and counts is None:
        problems.append("--weights sif needs --counts: a file of 'word count' lines, or a corpus")
    if weights == "idf" and not fit:
        problems.append("--weights idf needs --fit: the sentences whose words are counted")
    if not a > 0:
        problems.append(f"--a {a}: greater than 0")
    if problems:
        raise ConfigurationError(problems)
    table = open_vectors(vectors)
    if components >= table.dimension:
        problems = [f"--components {components}: fewer than the {table.dimension} numbers of a vector"]
        raise ConfigurationError(problems)
    texts = [text for path in fit for text in read_sentences(path)]
    weighting = _weighting(weights, counts, texts, a)
    average = WordAverage(table, completed_from(weighting, texts) if texts else weighting)
    about = {
        "vectors": str(vectors),
        "vectors_fingerprint": table.fingerprint,
        "counts": None if counts is None else str(counts),
        "fitted_on": [str(path) for path in fit],
        "sentences": len(texts),
    }
    if not components:
        return average, about
    if not texts:
        return SifOfEachSet(average, components), about
    return average.fitted_to(texts, components), about


def _weighting(weights: str, counts: Path | None, texts: Sequence[str], a: float) -> Weighting | None:
    if weights == "sif":
        assert counts is not None
        return SmoothInverseFrequency(word_counts(counts), a)
    return InverseDocumentFrequency(sentence_counts(texts, "--fit")) if weights == "idf" else None


def read_sentences(path: Path) -> list[str]:
    """Sentences of sets of scored pairs, or of a file with a sentence a line. Raises InputError: the file
    cannot be read, or is empty."""
    if path.is_dir() or path.name.startswith("STS"):
        return [sentence for pairs in read_sets([path]) for sentence in pairs.sentences]
    first = next(numbered_lines(path), None)
    if first is None:
        raise InputError("the file is empty", path)
    if "\t" in first[1] or "|||" in first[1]:
        return [sentence for pairs in read_sets([path]) for sentence in pairs.sentences]
    return [text for _, text in numbered_lines(path)]
