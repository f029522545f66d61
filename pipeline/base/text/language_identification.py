"""Runs py3langid's model over a whole column at once: the same answers, many times faster than text by text.

The model is a naive Bayes classifier: an automaton walks over the bytes of a text and gives a feature at some
of them; a class' score is its prior plus the sum over distinct features of log(1 + count) times the feature's
weight for the class. The package walks in Python and multiplies for each text separately.
"""

import unicodedata
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paraforge.base.compiled import compiled
from paraforge.base.text.ragged import text_bytes

# Both are checked at the start, because another release of the package may store its model differently.
_PROBES = (
    "The committee will meet again on Thursday.",
    "JEŠTĚ NIKDY NEBYLA NA HORÁCH.",
    "Der Ausschuss tritt am Donnerstag wieder zusammen.",
    "Ο επίτροπος θα μιλήσει αύριο.",
    "委員会は木曜日に再び会合する。",
    "Nasledujuci den sme sli domov, domov, domov.",
    "ok",
    "\U0001f600 42",
)


# Weights are multiples of 1/512 up to 16. As integers they are exact and half as large as floats.
_WEIGHT_SCALE = 512
# Number of texts that are walked in step, so that the processor fetches their next states at once.
_TOGETHER = 8


class LanguageModel:
    """The arrays of a loaded ``py3langid`` identifier.

    labels: code of each class; two classes can have the same code.
    """

    def __init__(self, identifier: Any) -> None:
        """Take the arrays of ``identifier``, restricted to its chosen languages, if any. Raises ValueError if
        its weights do not have the expected precision."""
        self.labels: list[str] = list(identifier.nb_classes)
        self._moves = np.frombuffer(identifier.tk_nextmove, dtype=np.uint32)
        # For each state, where its moves begin and its feature, side by side so that they are fetched
        # together.
        rows = np.asarray(identifier.tk_row, dtype=np.int64) << 8
        self._states = np.stack([rows, identifier.tk_output], axis=1).astype(np.int32)
        weights = np.asarray(identifier.nb_ptc, dtype=np.float64) * _WEIGHT_SCALE
        self._weights = np.zeros((len(weights), -(-weights.shape[1] // 16) * 16), np.int16)
        self._weights[:, : weights.shape[1]] = weights
        if not (self._weights[:, : weights.shape[1]] == weights).all():
            raise ValueError("the weights are not 16-bit floating-point numbers")
        self._priors = np.asarray(identifier.nb_pc, dtype=np.float64)
        first: dict[str, int] = {}
        # A language in two scripts has two classes; the better one counts.
        self._same = np.array(
            [first.setdefault(label, place) for place, label in enumerate(self.labels)], dtype=np.int64
        )

    def classify(self, texts: Any) -> npt.NDArray[np.int32]:
        """Return the number of the most probable class of each text of a pyarrow string array."""
        data, offsets = _bytes_of(texts)
        lengths = np.diff(offsets)
        order = np.argsort(lengths, kind="stable")
        return _best_classes(
            data,
            offsets[order],
            offsets[order + 1],
            order,
            self._moves,
            self._states,
            self._weights,
            self._priors,
            self._same,
            np.log1p(np.arange(lengths.max(initial=0) + 1, dtype=np.float32)).astype(np.float64),
        )


def load_language_model(identifier: Any) -> LanguageModel | None:
    """Return the model of a loaded identifier, or None if its arrays or answers are not as expected."""
    try:
        model = LanguageModel(identifier)
        answers = [model.labels[place] for place in model.classify(pa.array(_PROBES))]
    except (AttributeError, TypeError, ValueError, IndexError):
        return None
    return model if answers == [identifier.classify(text)[0] for text in _PROBES] else None


def _bytes_of(texts: Any) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Return the bytes that the automaton walks over, as the package prepares them, and where each text
    begins.

    Texts in all capitals are lower-cased, and all texts are composed (NFC), which ASCII already is.
    """
    texts = texts.cast(pa.large_string())
    others = pc.or_(pc.invert(pc.string_is_ascii(texts)), pc.ascii_is_upper(texts))
    if others.true_count:
        prepared = [_prepare(text) for text in texts.filter(others).to_pylist()]
        texts = pc.replace_with_mask(texts, others, pa.array(prepared, pa.large_string()))
    return text_bytes(texts)


def _prepare(text: str) -> str:
    return unicodedata.normalize("NFC", text.lower() if text.isupper() else text)


@compiled
def _walk(
    data: npt.NDArray[np.uint8],
    begins: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
    moves: npt.NDArray[np.uint32],
    states: npt.NDArray[np.int32],
    features: npt.NDArray[np.int32],
    sizes: npt.NDArray[np.int64],
) -> None:
    """Walk over texts in step, from the shortest to the longest. Write the features of text i, each as often
    as it is found, into ``features[i, :sizes[i]]``."""
    state = np.zeros(len(begins), np.int64)
    sizes[:] = 0
    first = 0
    for place in range(ends[-1] - begins[-1]):
        while begins[first] + place >= ends[first]:
            first += 1
        for lane in range(first, len(begins)):
            now = np.int64(moves[states[state[lane], 0] + data[begins[lane] + place]])
            state[lane] = now
            feature = states[now, 1]
            features[lane, sizes[lane]] = feature
            sizes[lane] += feature >= 0


@compiled
def _best_classes(
    data: npt.NDArray[np.uint8],
    begins: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
    order: npt.NDArray[np.int64],
    moves: npt.NDArray[np.uint32],
    states: npt.NDArray[np.int32],
    weights: npt.NDArray[np.int16],
    priors: npt.NDArray[np.float64],
    same: npt.NDArray[np.int64],
    factors: npt.NDArray[np.float64],
) -> npt.NDArray[np.int32]:
    """Return the best class of each text; 0 for a text without features.

    begins, ends: where the texts are in the data, from the shortest to the longest.
    order: the number of each of these texts. weights: features x at least classes, scaled.
    factors: log(1 + count) by count.
    """
    best = np.zeros(len(order), np.int32)
    classes = len(priors)
    scores = np.empty(classes, np.float64)
    once = np.zeros(weights.shape[1], np.int32)  # the sum of the weights of features that are found once
    counts = np.zeros(len(weights), np.int32)
    features_of = np.empty((_TOGETHER, len(factors)), np.int32)
    sizes = np.zeros(_TOGETHER, np.int64)
    for first in range(0, len(order), _TOGETHER):
        texts = slice(first, first + _TOGETHER)
        _walk(data, begins[texts], ends[texts], moves, states, features_of, sizes)
        for lane in range(len(begins[texts])):
            features = features_of[lane, : sizes[lane]]
            if len(features) == 0:
                continue
            for feature in features:
                counts[feature] += 1
            once[:] = 0
            for label in range(classes):  # an array copied as a whole takes two seconds to compile
                scores[label] = priors[label]
            for feature in features:
                count = counts[feature]
                counts[feature] = 0
                row = weights[feature]
                if count == 1:
                    for label in range(len(row)):
                        once[label] += row[label]
                elif count > 1:
                    factor = factors[count] / _WEIGHT_SCALE
                    for label in range(classes):
                        scores[label] += factor * row[label]
            factor = factors[1] / _WEIGHT_SCALE
            for label in range(classes):
                scores[label] += factor * once[label]
            for label in range(classes):
                # The first of a language's two classes stands for both.
                if same[label] != label and scores[label] > scores[same[label]]:
                    scores[same[label]] = scores[label]
            winner = 0
            for label in range(classes):
                if same[label] == label and scores[label] > scores[winner]:
                    winner = label
            best[order[first + lane]] = winner
    return best
