"""Pairs, word vectors and judgments that experiments make from the files in PARAFORGE_DATA."""

import gzip
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from experiments import adequacy, pairs, train_contradiction, vectors
from experiments.pairs import FILES, paraphrases


def put(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(gzip.compress(text, mtime=0) if path.suffix == ".gz" else text)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PARAFORGE_DATA", str(tmp_path))
    return tmp_path


def made(source: str) -> list[tuple[str, str]]:
    return [
        pair
        for block in paraphrases(source)
        for pair in zip(block.left.to_pylist(), block.right.to_pylist(), strict=True)
    ]


def test_experiment_pairs_per_source(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(data / "leakage" / "multi30k_train.contaminated_rows.tsv", ["row\tset", "1\t2014.images"])
    put(data / FILES["captions"], ["a\tb\t\tc", "in\ta set", "d\te"])
    put(data / "captions" / "val.en5.tsv.gz", ["f\tg"])
    put(data / "captions" / "test_2016.en5.tsv.gz", ["h\ti"])
    captions = [("a", "b"), ("a", "c"), ("b", "c"), ("d", "e"), ("f", "g"), ("h", "i")]
    assert made("captions") == captions
    monkeypatch.setattr(pairs, "_BLOCK", 3)
    assert [len(block.left) for block in paraphrases("captions")] == [3, 3]
    put(data / FILES["news"], ["id\tref", "1\tx\ty\tz"])
    assert made("news") == [("x", "y"), ("x", "z"), ("y", "z")]
    put(data / FILES["bible"], ["verse\tcs\ten", "1\tcs\t a \tb\tc\td", "2\tcs\te\tf"])
    *first, last = made("bible")
    assert last == ("e", "f")
    assert len({*first}) == 2 and all(left < right for left, right in first)
    put(data / FILES["tatoeba"], [f"{n}\t{text}\t1" for n, text in enumerate("dcbaa")] + ["9\te\t2"])
    assert made("tatoeba") == [("a", "b"), ("a", "c"), ("a", "d"), ("b", "c"), ("b", "d"), ("c", "d")]
    put(data / FILES["tatoeba"], [f"{n}\t{text}\t1" for n, text in enumerate("abcde")])
    found = made("tatoeba")
    assert len({*found}) == 6 and found == sorted(found)
    put(data / FILES["ppdb"], ["a\tb"])
    put(data / FILES["paranmt"], ["ppdb\ta\tb"])
    assert made("ppdb") == made("paranmt") == [("a", "b")]


def test_word_vectors_match_ppmi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With all dimensions, the vectors' products are the square root of the matrix times itself, without the
    rare words.
    """
    rng = random.Random(1)
    blocks = [[" ".join(rng.choices("abcdefg", k=6)) for _ in range(30)] + ["rare a b"], ["c"]]

    def sentences() -> Iterator[list[str]]:
        yield from blocks

    monkeypatch.setattr(vectors, "sentences", sentences)
    monkeypatch.setattr(vectors, "_CUT", 50)
    words = sorted("abcdefg")
    counts = np.zeros((8, 8))  # row and column 0 are of the words left out
    for text in (text for block in blocks for text in block):
        ids = [words.index(word) + 1 if word in words else 0 for word in text.split()]
        for place, left in enumerate(ids):
            for distance, right in enumerate(ids[place + 1 : place + 4], 1):
                if left and right:
                    counts[left, right] += 1 / distance
                    counts[right, left] += 1 / distance
    counts = counts[1:, 1:]
    smoothed = counts.sum(1) ** 0.75
    pmi = np.log(counts * smoothed.sum() / np.outer(counts.sum(1), smoothed))
    left, values, _ = np.linalg.svd(np.maximum(pmi, 0))
    vectors.vectors(tmp_path / "vectors.txt", dimension=7, vocabulary=10, window=3)
    lines = sorted(line.split() for line in (tmp_path / "vectors.txt").read_text().splitlines())
    assert [word for word, *_ in lines] == words
    found = np.array([numbers for _, *numbers in lines], dtype=float)
    assert np.allclose(found @ found.T, left * values @ left.T, atol=1e-3)


def test_words_are_counted_over_all_blocks(data: Path) -> None:
    put(data / "books" / "sentences.tsv.gz", ["1\tb a", "2\tc a b"])
    put(data / FILES["ppdb"], ["a\tb", "a\tc"])
    for source, counts in (("books", "a\t2\nb\t2\nc\t1\n"), ("ppdb", "a\t1\nb\t1\nc\t1\n")):
        vectors.counts(source, data / "counts.txt")
        assert (data / "counts.txt").read_text() == counts
    assert list(vectors.sentences(["books", "ppdb"])) == [["b a", "c a b"], ["a", "b", "c"]]


def test_judgments_and_domain_distance(data: Path) -> None:
    put(data / "transfer" / "x.tsv", ["label\tid\tid\tone\tother", "1\t2\t3\ta\tb", "0\t2\t3\tc\td"])
    put(data / "sts" / "x.tsv", ["4.0\ta\tb", "3.9\tc\td", "\te\tf"])
    put(data / "adequacy" / "x.tsv", ["0.3\ta\tb", "0.29\tc\td"])
    for directory in ("transfer", "sts", "adequacy"):
        assert adequacy.judged(f"{directory}/x.tsv") == [("a", "b", True), ("c", "d", False)]
    inputs = np.array([[1, 0.2, 0.0], [1, 0.5, 0.4], [1, 0.6, 0.1], [1, 0.8, 0.9], [1, 0.9, 0.2]])
    one = inputs, np.array([False, True, False, False, True])
    other = inputs[::-1].copy(), np.array([True, False, True, True, False])
    long = np.concatenate([one[0]] * 3), np.concatenate([one[1]] * 3)
    both, longer = (adequacy.fitted({"one": first, "other": other}) for first in (one, long))
    assert both == pytest.approx(longer, abs=1e-3)
    for accepted, real in ((one[1], 0.4), (np.zeros(5, bool), 0.1), (np.ones(5, bool), 0.9)):
        shift = adequacy.offset(inputs, accepted, both)
        assert adequacy.share(inputs, both, shift) == pytest.approx(real)


def test_pairs_of_equal_and_different_meaning() -> None:
    rng = random.Random(1)
    text = "It is true, he has two very big dogs."
    others = {train_contradiction.reworded(text, rng, {"true,": ["right,"]}) for _ in range(300)}
    for other in (
        "It is right, he has two very big dogs.",
        "It's true, he has two very big dogs.",
        "It is true, he has 2 very big dogs.",
        "He has two very big dogs, it is true.",
        "It is true, he has two big dogs.",
    ):
        assert other in others
    assert train_contradiction.doubly_negated("He is happy now.", rng) == "He is not unhappy now."
    assert train_contradiction.doubly_negated("He is not happy now.", rng) == "He is unhappy now."
    assert train_contradiction.doubly_negated("He sleeps.", rng) is None
    assert train_contradiction.denied("Most came.", rng) is None
    assert (
        train_contradiction.denied("We saw many dogs and many cats.", rng) == "We saw few dogs and many cats."
    )
    made = train_contradiction.contradictions([("He has gold.", "He has gold.")], {"gold": ["silver"]})
    assert made["other word"] == [("He has gold.", "He has silver.")] and made["denial"] == []
    weights = [train_contradiction._weight(*one) for one in (
        ("bible", "good", 1), ("bible, doubly negated", "good", 1), ("bible", "negation", 500),
        ("tatoeba", "negation", 900), ("bible", "number", 250),
    )]  # fmt: skip
    assert weights == pytest.approx([3.0, 0.4, 1.3, 0.13, 0.25])
