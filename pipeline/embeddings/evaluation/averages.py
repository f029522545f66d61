"""Averages word vectors: plain, or weighted by smooth inverse frequency (SIF, Arora 2017) or inverse document
frequency, with common components removed. Such models are stored in directories."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paraforge.base.errors import InputError, check_format, describing
from paraforge.base.files import read_json, write_json
from paraforge.base.shards.work import replaced_directory
from paraforge.base.text.idf import Background, background_of_frequencies, count_documents
from paraforge.base.text.lines import numbered_lines
from paraforge.base.text.tokens import TOKENIZER_NAME, tokenize_column
from paraforge.base.word_vectors.vectors import FloatArray, WordVectors
from paraforge.embeddings.evaluation.comparing import Model
from paraforge.embeddings.evaluation.sets import read_sets

SIF_A = 1e-3
"""The value of a in all tables of Arora 2017."""


@dataclass(frozen=True)
class Weighting:
    """Weights words by their frequency.

    kind: `sif` is a / (a + p(w)) (Arora 2017, Algorithm 1); a word that was not counted has p = 0 and thus
        weight 1. Lists that lack whole kinds of words are first completed from a text, see
        `Background.completed`. `idf` is ln((1 + N) / (1 + N_w)) over N sentences (Arora 2017, Eq. 7).
    background: for `sif`, `documents` is the number of running words, and `counts` how often each occurs; for
        `idf`, `documents` is the number of sentences, and `counts` how many contain each word.
    """

    kind: str
    background: Background
    a: float = SIF_A

    def __post_init__(self) -> None:
        if self.kind not in ("sif", "idf"):
            raise ValueError(f"unknown weighting {self.kind!r}")
        if not 0 < self.a < np.inf:
            raise InputError(f"a is {self.a}; it must be greater than 0")

    def weights(self, words: Sequence[str]) -> npt.NDArray[np.float64]:
        """Return the weight of each word, (words,) float64, not negative."""
        get, total = self.background.counts.get, self.background.documents
        counts = np.fromiter((get(word, 0) for word in words), np.float64, len(words))
        if self.kind == "sif":
            return self.a / (self.a + counts / total)
        return np.log((1 + total) / (1 + counts))


def sentence_counts(texts: Sequence[str], name: str) -> Background:
    """Count the sentences that contain each word, for the inverse document frequency."""
    return Background(name, len(texts), count_documents(tokenize_column(pa.array(texts, pa.string()))))


def completed_from(weighting: Weighting | None, texts: Sequence[str]) -> Weighting | None:
    """Return the weighting with p(w) estimated from texts for words that its list lacks
    (`Background.completed`)."""
    if weighting is None or weighting.kind != "sif" or not weighting.background.partial:
        return weighting
    column = tokenize_column(pa.array(texts, pa.string()))
    return replace(weighting, background=weighting.background.completed(column))


# Sentences per block, which bounds memory: 4096 x 300 float32 are 5 MB.
_BLOCK_ROWS: Final = 4096
_ROUNDING: Final = 1e-6


class WordAverage(Model):
    """The average `v_s = 1/|s| * sum of weight(w) * v_w`, minus its projections on the components.

    Without weighting and components, this is plain averaging; with the weighting `sif` and one component, it
    is SIF (Arora 2017, Algorithm 1). A word without a vector gets the unknown word's vector, if the table has
    one, with its own weight; otherwise it is left out of the sum and of |s|.

    of_each_set: how many common components of the compared texts to remove, as in Arora 2017's evaluation,
        instead of fitted ones; a single text keeps all components.
    """

    uses_threads = False

    def __init__(
        self,
        vectors: WordVectors,
        weighting: Weighting | None = None,
        components: FloatArray | None = None,
        of_each_set: int = 0,
    ) -> None:
        """vectors: table in memory or memory-mapped; only the rows of words that occur are read.
        weighting: weights of words; None for equal weights.
        components: (components, dimension) float32, orthonormal rows, as :func:`common_components` gives.
        """
        self.vectors = vectors
        self.dimension = vectors.dimension
        self.weighting = weighting
        self.components = np.empty((0, vectors.dimension), np.float32) if components is None else components
        self.of_each_set = of_each_set

    def vectors_of(self, column: Any) -> FloatArray:
        """See `Model`; also zeros if only rounding errors are left after removing the components."""
        if self.of_each_set and len(column) > 1:
            return self.adapted_to(column).vectors_of(column)
        blocks = [self._without_components(block) for block in self.averages(column)]
        return np.concatenate(blocks) if blocks else np.empty((0, self.dimension), np.float32)

    def averages(self, texts: Sequence[str] | Any) -> Iterator[FloatArray]:
        """Yield weighted averages, with all components, block by block."""
        column = texts if isinstance(texts, pa.Array | pa.ChunkedArray) else pa.array(texts, pa.string())
        for first in range(0, len(column), _BLOCK_ROWS):
            yield self._average(column.slice(first, _BLOCK_ROWS))

    def fitted_to(self, texts: Sequence[str] | Any, components: int = 1) -> WordAverage:
        """Return the same average without the common components of these texts.

        Raises the errors of :func:`common_components`.
        """
        removed = common_components(self.averages(texts), components)
        return WordAverage(self.vectors, self.weighting, removed)

    def adapted_to(self, texts: Sequence[str] | Any) -> WordAverage:
        """Return the average for a set of texts: with `of_each_set` without their common components, and with
        p(w) of uncounted words estimated from them. If none of the texts has a vector, all components
        stay."""
        if not self.of_each_set:
            return self
        average = WordAverage(self.vectors, completed_from(self.weighting, texts))
        if not any(block.any() for block in average.averages(texts)):
            return average
        return average.fitted_to(texts, self.of_each_set)

    def weighted(self, words: Sequence[str]) -> FloatArray:
        """Return the weighted vector of each word, (words, dimension); zeros for a word without one."""
        table = self.vectors.of_words(words)
        if self.weighting is not None:
            table *= self.weighting.weights(words)[:, None].astype(np.float32)
        return table

    def _average(self, column: Any) -> FloatArray:
        tokens = tokenize_column(column)
        if self.weighting is not None and self.weighting.background.partial:
            self.weighting.background.missing(tokens.occurrences())
        known = (self.vectors.rows(tokens.vocabulary) >= 0).astype(np.float32)[:, None]
        lengths = np.maximum(tokens.sums(known), 1)
        return np.asarray(tokens.sums(self.weighted(tokens.vocabulary)) / lengths, np.float32)

    def _without_components(self, block: FloatArray) -> FloatArray:
        if not len(self.components):
            return block
        rest = np.asarray(block - (block @ self.components.T) @ self.components, dtype=np.float32)
        lengths, rest_lengths = (np.linalg.norm(vectors, axis=1) for vectors in (block, rest))
        rest[rest_lengths <= _ROUNDING * lengths] = 0
        return rest


def common_components(blocks: Iterable[FloatArray], components: int = 1) -> FloatArray:
    """Return the first right singular vectors of the uncentered matrix of all sentence vectors.

    They are eigenvectors of the sum of outer products, in double precision, so memory does not grow with the
    number of sentences.

    blocks: sentence vectors, (sentences, dimension) each. components: how many to return.

    Returns (components, dimension) float32, orthonormal, with each row's largest element positive. Raises
    InputError if no sentence has a vector, or if there are more components than dimensions.
    """
    gram: npt.NDArray[np.float64] | None = None
    for block in blocks:
        double = block.astype(np.float64)
        product = double.T @ double
        gram = product if gram is None else gram + product
    if gram is None or not gram.any():
        raise InputError(
            "no sentence has a vector, so there is no common component",
            remedy="Fit on sentences whose words have vectors.",
        )
    if not 1 <= components <= len(gram):
        raise InputError(
            f"{components} components cannot be removed from vectors with {len(gram)} dimensions"
        )
    _, eigenvectors = np.linalg.eigh(gram)
    directions = eigenvectors.T[::-1][:components]
    largest = np.take_along_axis(directions, np.abs(directions).argmax(axis=1)[:, None], axis=1)
    return (directions * np.sign(largest)).astype(np.float32)


DESCRIPTION: Final = "sif.json"
FORMAT: Final = 2
_TABLE: Final = "vectors"


def save_sif(model: WordAverage, directory: Path, about: dict[str, Any] | None = None) -> None:
    """Write a model, replacing the whole directory: `sif.json` (weighting with counts, components, `about`)
    and the table `vectors`."""
    description = {
        "format": FORMAT,
        "tokenizer": TOKENIZER_NAME,
        "weighting": _describe(model.weighting),
        "components": model.components.tolist(),
        "components_of_each_set": model.of_each_set,
        "about": about or {},
    }
    with replaced_directory(directory) as temporary:
        write_json(temporary / DESCRIPTION, description)
        model.vectors.save(temporary / _TABLE)


def describe_average(model: WordAverage) -> str:
    """Describe an average of word vectors in a few words."""
    text = "plain average" if model.weighting is None else f"average weighted by {model.weighting.kind}"
    if model.of_each_set:
        return f"{text}, {model.of_each_set} component(s) of each set removed"
    count = len(model.components)
    return f"{text}, {count} fitted component(s) removed" if count else text


def _describe(weighting: Weighting | None) -> dict[str, Any] | None:
    if weighting is None:
        return None
    background = {**vars(weighting.background), "counts": dict(weighting.background.counts)}
    return {"kind": weighting.kind, "background": background, "a": weighting.a}


def open_sif(directory: Path) -> WordAverage:
    """Open what :func:`save_sif` wrote. Raises InputError if it is damaged."""
    path = directory / DESCRIPTION
    content = read_json(path)
    with describing(path):
        check_format(content["format"], FORMAT, path)
        vectors = WordVectors.open(directory / _TABLE, verify=True)
        components = np.array(content["components"], np.float32).reshape(-1, vectors.dimension)
        if not np.isfinite(components).all():
            raise ValueError("a component is not finite")
        of_each_set = int(content["components_of_each_set"])
        return WordAverage(vectors, _weighting(content["weighting"]), components, of_each_set)


def _weighting(described: dict[str, Any] | None) -> Weighting | None:
    if described is None:
        return None
    background = Background(**described["background"])
    if not background.documents >= 1 or not all(count >= 0 for count in background.counts.values()):
        raise ValueError("a count is negative, or not a number")
    return Weighting(described["kind"], background, float(described.get("a", SIF_A)))


def fit_sif(
    vectors: WordVectors, counts: Path | None, fit: Sequence[Path], weights: str, a: float, components: int
) -> tuple[WordAverage, dict[str, Any]]:
    """Fit a weighted average of word vectors without common components.

    counts: file of word counts; required for the weights `sif`.
    fit: sentences to fit the components, the weights `idf` and the probabilities of uncounted words on;
        without them, the components of each evaluated set are removed.
    weights: `sif`, `idf`, or `none`. a: constant of the weights `sif`. components: how many to remove.

    Returns the model and a description of what it was made from. Raises InputError if a file cannot be read.
    """
    texts = [text for path in fit for text in read_sentences(path)]
    weighting = None
    if weights == "sif":
        assert counts is not None
        weighting = Weighting("sif", background_of_frequencies(counts), a)
    elif weights == "idf":
        weighting = Weighting("idf", sentence_counts(texts, "--fit"))
    about = {
        "vectors_fingerprint": vectors.fingerprint,
        "counts": None if counts is None else str(counts),
        "fitted_on": [str(path) for path in fit],
        "sentences": len(texts),
    }
    if not texts:
        return WordAverage(vectors, weighting, of_each_set=components), about
    average = WordAverage(vectors, completed_from(weighting, texts))
    return average.fitted_to(texts, components) if components else average, about


def read_sentences(path: Path) -> list[str]:
    """Return the sentences of sets of scored pairs, or of a file with one sentence per line. Raises
    InputError if the file cannot be read or is empty."""
    if path.is_dir() or path.name.startswith("STS"):
        return [sentence for pairs in read_sets([path]) for sentence in pairs.sentences]
    first = next(numbered_lines(path), None)
    if first is None:
        raise InputError("the file is empty", path)
    if "\t" in first[1] or "|||" in first[1]:
        return [sentence for pairs in read_sets([path]) for sentence in pairs.sentences]
    return [text for _, text in numbered_lines(path)]
