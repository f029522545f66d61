"""SIF sentence embeddings (Arora 2017) as models: fitted to what a user names, in memory, and as a directory
that is opened like any other model."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paraforge.base.errors import ConfigurationError, InputError, check_format, describing
from paraforge.base.files import read_json, write_json
from paraforge.base.shards.work import replaced_directory
from paraforge.base.text.idf import Background
from paraforge.base.text.lines import numbered_lines
from paraforge.base.text.tokens import TOKENIZER_NAME
from paraforge.base.word_vectors.vectors import WordVectors
from paraforge.embeddings.evaluation.baselines.word_average import (
    InverseDocumentFrequency,
    SmoothInverseFrequency,
    Weighting,
    WordAverage,
    completed_from,
    sentence_counts,
    word_counts,
)
from paraforge.embeddings.evaluation.sets import read_sets

DESCRIPTION: Final = "sif.json"
FORMAT: Final = 1
_TENSORS: Final = "model.safetensors"
_WORDS: Final = "words.json"
WEIGHTS = ("sif", "idf", "none")


@dataclass(frozen=True)
class SifOfEachSet:
    """SIF whose common components are those of whatever set is compared, as Arora 2017 evaluates it.

    average: weighted average, without components. components: how many are removed.
    """

    average: WordAverage
    components: int = 1

    uses_threads = False

    @property
    def dimension(self) -> int:
        """Elements of a sentence's vector."""
        return self.average.dimension

    def encode(self, texts: str | Sequence[str] | Any) -> npt.NDArray[np.float32]:
        """Vectors without the common components of these texts; of a single text, as it is, (dimension,)."""
        return self.average.encode(texts) if isinstance(texts, str) else self.adapted_to(texts).encode(texts)

    def similarity(self, first: Sequence[str] | Any, second: Sequence[str] | Any) -> npt.NDArray[np.float32]:
        """Cosines without the common components of all these texts."""
        return self.adapted_to(_strings(first) + _strings(second)).similarity(first, second)

    def adapted_to(self, texts: Sequence[str]) -> WordAverage:
        """Without the common components of these texts, which also give p(w) of words without a count; as
        they are where not one of them has a vector."""
        average = WordAverage(self.average.vectors, completed_from(self.average.weighting, texts))
        if not any(block.any() for block in average.averages(texts)):
            return average
        return average.fitted_to(texts, self.components)


def _strings(texts: Sequence[str] | Any) -> list[str]:
    if isinstance(texts, str):
        raise ValueError("a single text: two lists of as many texts are compared")
    return texts.to_pylist() if isinstance(texts, pa.Array | pa.ChunkedArray) else list(texts)


def save_sif(model: WordAverage | SifOfEachSet, directory: Path, about: dict[str, Any] | None = None) -> None:
    """Write a model with its word vectors and counts; what `directory` had is replaced as a whole. On
    disk: `sif.json` (format, sizes, weighting, `about`), `words.json` and `model.safetensors`."""
    import torch

    from paraforge.embeddings.learning.checkpoint import write_tensors

    average = model.average if isinstance(model, SifOfEachSet) else model
    weighting = average.weighting
    counts = dict(weighting.background.counts) if weighting else {}
    description = {
        "format": FORMAT,
        "tokenizer": TOKENIZER_NAME,
        "words": len(average.vectors),
        "dimension": average.dimension,
        "weighting": _describe(weighting),
        "components": len(average.components),
        "components_of_each_set": model.components if isinstance(model, SifOfEachSet) else 0,
        "about": about or {},
    }
    with replaced_directory(directory) as temporary:
        write_json(temporary / DESCRIPTION, description)
        write_json(temporary / _WORDS, {"vectors": average.vectors.words, "counts": list(counts)})
        write_tensors(
            temporary / _TENSORS,
            {
                "vectors": torch.from_numpy(np.array(average.vectors.vectors, dtype=np.float32)),
                "counts": torch.tensor(list(counts.values()), dtype=torch.int64),
                "components": torch.from_numpy(np.ascontiguousarray(average.components)),
            },
        )


def describe_average(model: WordAverage | SifOfEachSet) -> str:
    """What an average of word vectors does, for people."""
    average = model.average if isinstance(model, SifOfEachSet) else model
    weighting = average.weighting
    text = "plain average" if weighting is None else f"average weighted by {weighting.kind}"
    if isinstance(model, SifOfEachSet):
        return f"{text}, {model.components} component(s) of each set removed"
    count = len(average.components)
    return f"{text}, {count} fitted component(s) removed" if count else text


def _describe(weighting: Weighting | None) -> dict[str, Any] | None:
    if weighting is None:
        return None
    background = weighting.background
    described = {
        "kind": weighting.kind,
        "name": background.name,
        "documents": background.documents,
        "counted": len(background.counts),
        "partial": background.partial,
    }
    return {**described, "a": weighting.a} if isinstance(weighting, SmoothInverseFrequency) else described


def open_sif(directory: Path) -> WordAverage | SifOfEachSet:
    """Open what :func:`save_sif` wrote; InputError where it is damaged, sizes do not fit, or there is NaN."""
    import torch

    from paraforge.embeddings.learning.checkpoint import read_tensors

    path = directory / DESCRIPTION
    content = read_json(path)
    words = read_json(directory / _WORDS)
    with describing(path):
        check_format(content["format"], FORMAT, path)
        size, dimension = int(content["words"]), int(content["dimension"])
        components, of_each_set = int(content["components"]), int(content["components_of_each_set"])
        described = content["weighting"]
        counted = int(described["counted"]) if described else 0
        names, counted_names = [str(word) for word in words["vectors"]], [str(w) for w in words["counts"]]
        if min(size, dimension) < 1 or min(components, of_each_set, counted) < 0:
            raise ValueError("a size that cannot be")
    if len(names) != size or len(counted_names) != counted:
        raise InputError(f"other numbers of words than {DESCRIPTION} says", directory / _WORDS)
    expected = {
        "vectors": torch.empty(size, dimension, device="meta"),
        "counts": torch.empty(counted, dtype=torch.int64, device="meta"),
        "components": torch.empty(components, dimension, device="meta"),
    }
    tensors = {name: tensor.numpy() for name, tensor in read_tensors(directory / _TENSORS, expected).items()}
    with describing(path):
        vectors = WordVectors(names, tensors["vectors"])
        counts = dict(zip(counted_names, tensors["counts"].tolist(), strict=True))
        average = WordAverage(vectors, _weighting(described, counts), tensors["components"])
    return SifOfEachSet(average, of_each_set) if of_each_set else average


def _weighting(described: dict[str, Any] | None, counts: dict[str, int]) -> Weighting | None:
    if described is None:
        return None
    partial = bool(described["partial"])
    background = Background(str(described["name"]), int(described["documents"]), counts, partial)
    if background.documents < 1 or any(count < 0 for count in counts.values()):
        raise ValueError("a count that cannot be")
    if described["kind"] == SmoothInverseFrequency.kind:
        return SmoothInverseFrequency(background, float(described["a"]))
    if described["kind"] == InverseDocumentFrequency.kind:
        return InverseDocumentFrequency(background)
    raise ValueError(f"no weighting {described['kind']!r}")


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
    weighting = _named_weighting(weights, counts, texts, a)
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


def _named_weighting(weights: str, counts: Path | None, texts: Sequence[str], a: float) -> Weighting | None:
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
