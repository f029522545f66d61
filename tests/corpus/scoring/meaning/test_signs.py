"""What each sign sees; that the order of the sides, other rows and the cut of a column decide nothing."""

from collections import Counter, defaultdict
from random import Random

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from paraforge.base.files import read_json
from paraforge.corpus.scoring.alignment import directions_of
from paraforge.corpus.scoring.meaning import words as kinds_of
from paraforge.corpus.scoring.meaning.contradiction import WEIGHTS, contradiction
from paraforge.corpus.scoring.meaning.signs import NAMES
from paraforge.corpus.scoring.meaning.words import CONTENT, NUMBER, PERSONS, WordBook, antonyms, stem
from tests.corpus.scoring.meaning.pairs import columns, found_in, signs, vectors

WORDS = [
    "john", "mary", "hit", "the", "dog", "cat", "not", "isn't", "never", "happy", "unhappy", "two", "5",
    "1,000", "hundred", "he", "she", "his", "from", "to", "by", "was", "and", ",", ".",
    "Prague", "Praha", "Á", "of",
]  # fmt: skip
texts = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)


@given(st.lists(st.tuples(texts | st.text(max_size=30), texts), min_size=1, max_size=6))
def test_sides_may_be_exchanged(pairs: list[tuple[str, str]]) -> None:
    one, counts = found_in(pairs)
    other, turned = found_in([(second, first) for first, second in pairs])
    assert np.array_equal(one, other)
    assert np.array_equal(counts[:, [1, 0, *range(2, counts.shape[1])]], turned)


@given(st.lists(texts | st.text(max_size=40), min_size=1, max_size=6))
def test_a_text_and_itself_have_no_sign(found: list[str]) -> None:
    assert not found_in([(text, text) for text in found])[0].any()
    for row in columns(*((text, text) for text in found)):
        assert (
            row["contradiction"] in (0, None) and row["reference_negations"] == row["translation_negations"]
        )


@pytest.mark.full
@given(st.lists(st.tuples(texts, texts), min_size=2, max_size=6))
def test_a_pair_is_judged_by_itself(pairs: list[tuple[str, str]]) -> None:
    together = columns(*pairs)
    assert together == [columns(pair)[0] for pair in pairs]
    assert all(row["contradiction"] is None or 0 <= row["contradiction"] <= 1 for row in together)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("She is happy.", "She is not happy.", {"negation_odd", "negation_near"}),
        ("It isn't far.", "It is far.", {"negation_odd"}),
        ("The toy is safe.", "The toy is unsafe.", {"affixes", "flipped", "antonyms_in_place"}),
        ("He was never unhappy.", "He was happy.", {"flipped_twice"}),
        ("It costs 50 dollars.", "It costs 500 dollars.", {"numbers"}),
        ("He has three cats.", "He has four cats.", {"numbers"}),
        ("Her husband feeds his dog.", "Her husband feeds her dog.", {"gender", "gender_in_place"}),
        ("I saw you.", "I saw them.", {"person_in_place"}),
    ],
)
def test_what_is_seen(first: str, second: str, expected: set[str]) -> None:
    assert expected <= signs((first, second))[0].keys()
    assert not expected & signs((first, first))[0].keys()


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        (("The toy is safe.", "The toy is not dangerous."), ("The toy is safe.", "The toy is dangerous.")),
        (("It cost five crowns.", "It cost 5 crowns."), ("It cost five crowns.", "It cost 6 crowns.")),
    ],
)
def test_a_contradiction_is_surer_than_a_paraphrase(good: tuple[str, str], bad: tuple[str, str]) -> None:
    paraphrase, contradiction = columns(good, bad)
    assert paraphrase["contradiction"] < contradiction["contradiction"]


def test_a_side_without_a_token_has_no_contradiction() -> None:
    assert [row["contradiction"] for row in columns(("", "Not so."), ("Not so.", " "), ("", ""))] == [
        None
    ] * 3


def test_a_long_text_is_read_to_its_limit() -> None:
    text = "the dog " * 10_000
    assert columns((text, text + "not"))[0]["contradiction"] == 0


# Words of which many pairs are related: negations, denials, antonyms, affixes, pronouns, numbers.
RELATED = [
    "not", "never", "fail", "few",
    "happy", "unhappy", "sad", "big", "small", "large", "safe", "unsafe", "hot", "cold", "open", "close",
    *PERSONS, "two", "three", "stone", "river", "the", "of",
]  # fmt: skip
related = st.lists(st.sampled_from(RELATED), min_size=1, max_size=20)


def neighbours(one: list[int], other: list[int], i: int, j: int) -> int:
    """How many neighbours of two words are equal; a text's ends are."""
    fenced = [[-1, *words, -2] for words in (one, other)]
    return (fenced[0][i] == fenced[1][j]) + (fenced[0][i + 2] == fenced[1][j + 2])


def matched(one: list[int], other: list[int]) -> dict[int, int]:
    """Places of equal words, one to one: first of those with an equal neighbour, then of all, in order."""
    found: dict[int, int] = {}
    for least in (1, 0):
        for i in range(len(one)):
            fits = [
                j
                for j in range(len(other))
                if one[i] == other[j] and j not in found.values() and neighbours(one, other, i, j) >= least
            ]
            if i not in found and fits:
                found[i] = fits[0]
    return found


def expected_signs(one: list[str], other: list[str], turned: bool) -> dict[str, float]:
    """All signs but that of numbers, as they are counted; of words that are left over, by looking at every
    two of them."""
    if turned:
        one, other = other, one
    rows, words = WordBook().numbered([*one, *other])
    stems, bases = words.stems[rows].tolist(), words.bases[rows].tolist()
    directions, _ = directions_of(vectors().of_words([*one, *other]))
    distances: dict[int, list[float]] = {1: [0.0], 2: [0.0]}
    persons_of, properties = words.persons[rows].tolist(), words.properties[rows].tolist()
    a, b = stems[: len(one)], stems[len(one) :]
    to_b = matched(a, b)
    taken_as_equal = set(to_b.values())
    taken = {*taken_as_equal}
    found: dict[str, float] = defaultdict(float)
    for i in (place for place in range(len(a)) if place not in to_b):
        for j in (place for place in range(len(b)) if place not in taken):
            near = neighbours(a, b, i, j)
            persons = sorted((persons_of[i], persons_of[len(a) + j]))
            if persons[0]:
                if persons == [4, 5]:
                    found["gender_in_place"] = max(found["gender_in_place"], near)
                elif persons[0] != persons[1]:
                    found["person_in_place"] = max(found["person_in_place"], near)
                continue
            affixed = bases[i] == b[j] or bases[len(a) + j] == a[i]
            if affixed or stem(other[j]) in antonyms().get(stem(one[i]), frozenset()):
                found["affixes"] += affixed
                found[("antonyms", "antonyms_near", "antonyms_in_place")[near]] += 1
                taken.add(j)
                break
            both = properties[i] & properties[len(a) + j]
            if near and both & CONTENT and not both & NUMBER:
                distances[near].append(1 - float(directions[i] @ directions[len(a) + j]))
    loose = (Counter(a) - Counter(b), Counter(b) - Counter(a))
    content = {stems[place] for place in range(len(stems)) if properties[place] & CONTENT}
    found["left_over"] = min(8, *(sum(side[one] for one in content) for side in loose)) / 4
    found["replacements"] = sum(one > 0.6 for one in distances[2])
    found["replaced_near"], found["replaced_in_place"] = max(distances[1]), max(distances[2])
    negations, denials, near = [0, 0], [0, 0], 0
    for side, equal in ((0, to_b.keys()), (1, taken_as_equal)):
        kinds = (properties[: len(a)], properties[len(a) :])[side]
        negations[side] = sum(kind & kinds_of.NEGATION > 0 for kind in kinds)
        denials[side] = sum(kind & kinds_of.DENIAL > 0 and i not in equal for i, kind in enumerate(kinds))
        content_of = [i for i, kind in enumerate(kinds) if kind & CONTENT]
        for i in (i for i, kind in enumerate(kinds) if kind & kinds_of.NEGATION and i not in equal):
            beside = [j for j in content_of if j < i][-1:] + [j for j in content_of if j > i][:1]
            near = max(near, len(equal & {*beside}))
    found["negations"], found["denials"] = (abs(first - second) for first, second in (negations, denials))
    found["negation_odd"] = found["negations"] % 2
    found["negation_near"] = near * found["negation_odd"]
    opposites = sum(found[name] for name in ("antonyms", "antonyms_near", "antonyms_in_place"))
    flips = found["negations"] + opposites
    found["flipped"], found["flipped_twice"] = flips % 2, 2 if flips and not flips % 2 else 0
    people = [Counter(side) for side in (persons_of[: len(a)], persons_of[len(a) :])]
    alone, there = (Counter({n: k for n, k in (x - y).items() if n}) for x, y in (people, people[::-1]))
    found["gender"] = min(alone[4], there[5]) + min(alone[5], there[4])
    found["person"] = min(alone.total(), there.total()) - found["gender"]
    return found


def compare_with_the_slow_way(one: list[str], other: list[str]) -> None:
    pair = (" ".join(one), " ".join(other))
    (counts,), (row,) = columns(pair), signs(pair)
    seen = {name: value for name, value in row.items() if name != "numbers"}
    # Which side is looked at first is a matter of the words' hashes where the sides have equally many.
    turns = {len(one) > len(other)} if len(one) != len(other) else {False, True}
    expected = [expected_signs(one, other, turned) for turned in turns]
    assert any(
        seen == pytest.approx({name: min(count, 2) for name, count in one.items() if count}, abs=1e-4)
        and counts["antonyms"] == one["antonyms"] + one["antonyms_near"] + one["antonyms_in_place"]
        and counts["pronouns_changed"] == one["gender"] + one["person"]
        for one in expected
    )


@given(related, related)
@example(["happy", "safe", "happy", "safe", "happy"], ["happy", "unsafe", "happy", "safe"])
@example(["never", "happy"], ["never", "happy", "big", "not", "hot"])
@example(["not"] * 3 + ["happy", "of"] * 3, ["the", "unhappy"] * 3)
@example(["happy"] * 3 + ["he", "i"] * 3 + ["fail"] * 3, ["the"] + ["sad"] * 3 + ["she", "you"] * 3)
@example(["the", "open"] * 3, ["the", "close"] * 3 + ["of"])
def test_words_that_are_left_over_are_compared_two_by_two(one: list[str], other: list[str]) -> None:
    compare_with_the_slow_way(one, other)


@pytest.mark.parametrize("seed", range(8))
def test_so_are_many(seed: int) -> None:
    """More than are noted as the bits of one number, and other words between them."""
    rng = Random(seed)
    others = [[f"{letter}{chr(97 + n // 26)}{chr(97 + n % 26)}q" for n in range(90)] for letter in "vw"]
    one, other = ([*rng.choices(RELATED, k=40), *words] for words in others)
    for words in (one, other):
        rng.shuffle(words)
    compare_with_the_slow_way(one, other)


rows_of_signs = st.lists(
    st.lists(st.floats(0, 2, width=32), min_size=len(NAMES), max_size=len(NAMES)), max_size=5
)


@given(rows_of_signs)
@example([[0.0] * (len(NAMES) - 1) + [left_over] for left_over in (0.5, 1.0, 2.0)])
def test_the_model_is_a_layer_and_a_logistic_unit(rows: list[list[float]]) -> None:
    about = read_json(WEIGHTS)
    assert about["signs"] == [*NAMES]
    hidden, hidden_bias, output = (np.array(about[name]) for name in ("hidden", "hidden_bias", "output"))
    found = contradiction(np.array(rows, np.float32).reshape(-1, len(NAMES)))

    def sure(row: list[float]) -> float:
        units = np.maximum(np.array(row) @ hidden + hidden_bias, 0)
        return float(1 / (1 + np.exp(-(units @ output + about["bias"]))))

    least = sure([0.0] * len(NAMES))
    expected = [max(0.0, (sure(row) - least) / (1 - least)) if any(row[:-1]) else 0 for row in rows]
    assert found.tolist() == pytest.approx(expected, abs=1e-5)
