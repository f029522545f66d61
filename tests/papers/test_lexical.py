"""Baselines against loops and against figures on real sets."""

import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from paraforge.embeddings.evaluation.sets import read_sets
from paraforge.embeddings.evaluation.sts import evaluate_sts
from paraforge.papers.evaluation import BASELINES, PairMetric, TfIdf, words_and_marks

TEXTS = ["The dog runs.", "a dog sits, a cat sits", "Cats!", "it's the dog", "The dog runs.", "A cat sits"]
TEXTS += ["x", ""]
FIRST = ["The dog runs.", "a cat sits", "unseen", "", "dog dog sits", "the cats"]
SECOND = ["the dog sits", "a cat sits", "The dog", "dog", "sits dog", "a cats"]


def make_baseline(name: str, texts: list[str]) -> TfIdf | PairMetric:
    return BASELINES[name][1](texts)


def trigrams(text: str) -> list[str]:
    padded = [f" {word} " for word in text.lower().split()]
    return [word[i : i + 3] for word in padded for i in range(len(word) - 2)]


def tf_idf_cosine(first: list[str], second: list[str], documents: list[list[str]]) -> float:
    def vector(terms: list[str]) -> dict[str, float]:
        known = {term: sum(term in document for document in documents) for term in terms}
        return {
            term: (1 + math.log(count)) * (1 + math.log((1 + len(documents)) / (1 + known[term])))
            for term, count in Counter(terms).items()
            if known[term] > 1
        }

    left, right = vector(first), vector(second)
    norm = math.sqrt(sum(v * v for v in left.values())) * math.sqrt(sum(v * v for v in right.values()))
    return sum(left[term] * right.get(term, 0) for term in left) / norm if norm else 0.0


@pytest.mark.parametrize(("name", "terms"), [("tfidf", words_and_marks), ("tfidf-trigrams", trigrams)])
def test_tf_idf_matches_loop(name: str, terms: Callable[[str], list[str]]) -> None:
    documents = [terms(text) for text in TEXTS]
    expected = [tf_idf_cosine(terms(a), terms(b), documents) for a, b in zip(FIRST, SECOND, strict=True)]
    model = make_baseline(name, TEXTS)
    np.testing.assert_allclose(model.similarity(FIRST, SECOND), expected, atol=1e-12)
    assert expected[1] == pytest.approx(1)


def test_jaccard() -> None:
    model = make_baseline("jaccard", [])
    assert model.similarity(FIRST, SECOND).tolist() == [2 / 5, 1, 0, 0, 1, 1 / 3]
    assert model.similarity([""], [" "]).tolist() == [0]
    assert words_and_marks("It's 5 o'clock!") == ["it", "'", "s", "5", "o", "'", "clock", "!"]


def test_chrf_matches_definition() -> None:
    """chrF is the F-score with beta 2 of the mean precision and the mean recall of character n-grams, n from
    1 to 6. An order for which a side has no n-gram is left out.
    """

    def slow(reference: str, translation: str) -> float:
        sides = [text.replace(" ", "") for text in (translation, reference)]
        precision, recall = [], []
        for order in range(1, 7):
            found, wanted = (
                Counter(text[i : i + order] for i in range(len(text) - order + 1)) for text in sides
            )
            if found and wanted:
                precision.append((found & wanted).total() / found.total())
                recall.append((found & wanted).total() / wanted.total())
        p, r = np.mean(precision), np.mean(recall)
        return float(5 * p * r / (4 * p + r)) if p + r else 0.0

    references = ["The dog runs.", "a cat sits", "what a strange thing", "xyz"]
    translations = ["The dog sits.", "a cat sits", "a strange cat", "abc"]
    model = make_baseline("chrf", [])
    expected = [slow(*pair) for pair in zip(references, translations, strict=True)]
    np.testing.assert_allclose(model.similarity(references, translations), expected, atol=1e-9)
    assert expected[1] == 1 and expected[3] == 0


def test_bleu_by_hand() -> None:
    """Precisions are 3/4, 2/3 and 1/2. Of the single 4-gram none matches, which smoothing counts as 1/2."""
    model = make_baseline("bleu", [])
    found = model.similarity(["The dog runs ."], ["the dog runs !"])
    assert found == pytest.approx([(3 / 4 * 2 / 3 * 1 / 2 * 1 / 2) ** 0.25])
    shorter = model.similarity(["The dog runs ."], ["the dog runs"])
    assert shorter == pytest.approx([math.exp(1 - 4 / 3)])  # all n-grams are right, and one word is missing


def test_meteor_by_hand() -> None:
    """Precision and recall are 3/4, with one chunk of three matches."""
    pytest.importorskip("nltk")
    model = make_baseline("meteor", [])
    found = model.similarity(["The dog runs ."], ["the dog runs !"])
    assert found == pytest.approx([0.75 * (1 - 0.5 * (1 / 3) ** 3)])
    shorter = model.similarity(["The dog runs ."], ["the dog runs"])  # recall weighs nine times as much
    assert shorter == pytest.approx([0.75 / (0.9 + 0.1 * 0.75) * (1 - 0.5 * (1 / 3) ** 3)])
    assert model.similarity(["", "a"], ["a", " "]).tolist() == [0, 0]


def test_tf_idf_of_nothing() -> None:
    assert TfIdf([""]).similarity(["dog"], ["dog"]).tolist() == [0]


@pytest.mark.full
def test_baselines_on_real_sets(data_directory: Path) -> None:
    """The expected figures were measured elsewhere on the same sets. Jaccard must agree to the digit;
    trigrams within 0.2, because their document frequencies come from unknown sentences.
    """
    years = {"2012", "2013", "2014", "2017", "stsb-dev", "SICK_trial"}
    everything = read_sets([data_directory / "sts"])
    sets = [pairs for pairs in everything if pairs.group in years]
    sentences = [sentence for pairs in everything for sentence in pairs.sentences]

    def figures(model: TfIdf | PairMetric) -> dict[str, float | None]:
        return {group.name: group.pearson for group in evaluate_sts(model, sets).groups}

    jaccard = {"2012": 49.8, "2013": 40.7, "2014": 57.6, "2017": 73.9, "SICK_trial": 58.6, "stsb-dev": 63.1}
    assert figures(make_baseline("jaccard", [])) == pytest.approx(jaccard, abs=0.05)
    found = figures(TfIdf(sentences, "trigrams"))
    trigram = {"2012": 62.8, "2013": 61.3, "2014": 70.3, "2017": 81.5, "SICK_trial": 66.6, "stsb-dev": 78.5}
    assert found == pytest.approx(trigram, abs=0.25)
