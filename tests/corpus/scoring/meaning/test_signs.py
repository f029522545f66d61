"""Signs of an altered meaning: each sign, symmetry, and independence of other rows."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable
from random import Random

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from paraforge.base.files import read_json
from paraforge.corpus.scoring.alignment import directions_of
from paraforge.corpus.scoring.meaning import words as kinds_of
from paraforge.corpus.scoring.meaning import words as module
from paraforge.corpus.scoring.meaning.signs import NAMES, WEIGHTS, contradiction
from paraforge.corpus.scoring.meaning.words import (
    CONTENT,
    NUMBER,
    PERSONS,
    WordBook,
    antonyms,
    stem,
    without_affix,
)
from tests.corpus.scoring.meaning.pairs import columns, found_in, signs, vectors

WORDS = [
    "john", "mary", "hit", "the", "dog", "cat", "not", "isn't", "never", "happy", "unhappy", "two", "5",
    "1,000", "hundred", "he", "she", "his", "from", "to", "by", "was", "and", ",", ".",
    "Prague", "Praha", "Á", "of",
]  # fmt: skip
texts = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)


@given(st.lists(st.tuples(texts | st.text(max_size=30), texts), min_size=1, max_size=6))
def test_signs_are_symmetric(pairs: list[tuple[str, str]]) -> None:
    one, counts = found_in(pairs)
    other, turned = found_in([(second, first) for first, second in pairs])
    assert np.array_equal(one, other)
    assert np.array_equal(counts[:, [1, 0, *range(2, counts.shape[1])]], turned)


@given(st.lists(texts | st.text(max_size=40), min_size=1, max_size=6))
def test_identical_texts_have_no_sign(found: list[str]) -> None:
    assert not found_in([(text, text) for text in found])[0].any()
    for row in columns(*((text, text) for text in found)):
        assert (
            row["contradiction"] in (0, None) and row["reference_negations"] == row["translation_negations"]
        )


@pytest.mark.full
@given(st.lists(st.tuples(texts, texts), min_size=2, max_size=6))
def test_signs_do_not_depend_on_other_pairs(pairs: list[tuple[str, str]]) -> None:
    together = columns(*pairs)
    assert together == [columns(pair)[0] for pair in pairs]
    assert all(row["contradiction"] is None or 0 <= row["contradiction"] <= 1 for row in together)


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        (("The toy is safe.", "The toy is not dangerous."), ("The toy is safe.", "The toy is dangerous.")),
        (("It cost five crowns.", "It cost 5 crowns."), ("It cost five crowns.", "It cost 6 crowns.")),
        # `No` negates, and is the opposite of `any`, `nobody` of `everybody`: one change, not two.
        (
            ("We did not find any signs.", "We found no signs."),
            ("In May nobody came.", "Everybody came in May."),
        ),
    ],
)
def test_contradictions_score_above_paraphrases(good: tuple[str, str], bad: tuple[str, str]) -> None:
    paraphrase, contradiction = columns(good, bad)
    assert paraphrase["contradiction"] < contradiction["contradiction"]


def test_empty_side_has_null_contradiction() -> None:
    assert [row["contradiction"] for row in columns(("", "Not so."), ("Not so.", " "), ("", ""))] == [
        None
    ] * 3


def test_long_text_is_read_to_limit() -> None:
    text = "the dog " * 10_000
    assert columns((text, text + "not"))[0]["contradiction"] == 0


# Words of which many pairs are related: negations, denials, antonyms, affixes, pronouns, numbers.
RELATED = [
    "not", "never", "always", "fail", "few",
    "happy", "unhappy", "sad", "big", "small", "large", "safe", "unsafe", "hot", "cold", "open", "close",
    *PERSONS, "two", "three", "stone", "river", "the", "of",
]  # fmt: skip
related = st.lists(st.sampled_from(RELATED), min_size=1, max_size=20)


def neighbors(first: list[int], second: list[int], i: int, j: int) -> int:
    """Count the equal neighbors of two words; the ends of texts are equal."""
    fenced = [[-1, *words, -2] for words in (first, second)]
    return (fenced[0][i] == fenced[1][j]) + (fenced[0][i + 2] == fenced[1][j + 2])


def matched(first: list[int], second: list[int]) -> dict[int, int]:
    """Match equal words one to one: first those with an equal neighbor, then the others in order."""
    found: dict[int, int] = {}
    for least in (1, 0):
        for i in range(len(first)):
            fits = [
                j
                for j in range(len(second))
                if first[i] == second[j]
                and j not in found.values()
                and neighbors(first, second, i, j) >= least
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
            near = neighbors(a, b, i, j)
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
                if (properties[i] ^ properties[len(a) + j]) & kinds_of.NEGATION:
                    near = 3
                found[("antonyms", "antonyms_near", "antonyms_in_place", "negated")[near]] += 1
                taken.add(j)
                break
            both = properties[i] & properties[len(a) + j]
            if near and both & CONTENT and not both & NUMBER:
                distances[near].append(1 - float(directions[i] @ directions[len(a) + j]))
    loose = (Counter(a) - Counter(b), Counter(b) - Counter(a))
    content = {stems[place] for place in range(len(stems)) if properties[place] & CONTENT}
    found["left_over"] = min(8, *(sum(side[one] for one in content) for side in loose)) / 4
    found["replacements"] = sum(distance > 0.6 for distance in distances[2])
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
        counts["antonyms"]
        == one["antonyms"] + one["antonyms_near"] + one["antonyms_in_place"] + one.pop("negated", 0)
        and seen == pytest.approx({name: min(count, 2) for name, count in one.items() if count}, abs=1e-4)
        and counts["pronouns_changed"] == one["gender"] + one["person"]
        for one in expected
    )


@given(related, related)
@example(["happy", "safe", "happy", "safe", "happy"], ["happy", "unsafe", "happy", "safe"])
@example(["never", "happy"], ["never", "happy", "big", "not", "hot"])
@example(["the", "big", "stone"], ["the", "large", "stone"])
@example(["not"] * 3 + ["happy", "of"] * 3, ["the", "unhappy"] * 3)
@example(["happy"] * 3 + ["he", "i"] * 3 + ["fail"] * 3, ["the"] + ["sad"] * 3 + ["she", "you"] * 3)
@example(["the", "open"] * 3, ["the", "close"] * 3 + ["of"])
def test_signs_match_a_slow_comparison_of_leftover_words(first: list[str], second: list[str]) -> None:
    compare_with_the_slow_way(first, second)


@pytest.mark.parametrize("seed", range(8))
def test_signs_match_a_slow_comparison_in_long_sentences(seed: int) -> None:
    """The sentences have more marked words than one number has bits, and other words between them."""
    rng = Random(seed)
    others = [[f"{letter}{chr(97 + n // 26)}{chr(97 + n % 26)}q" for n in range(90)] for letter in "vw"]
    first, second = ([*rng.choices(RELATED, k=40), *words] for words in others)
    for words in (first, second):
        rng.shuffle(words)
    compare_with_the_slow_way(first, second)


rows_of_signs = st.lists(
    st.lists(st.floats(0, 2, width=32), min_size=len(NAMES), max_size=len(NAMES)), max_size=5
)


@given(rows_of_signs)
@example([[0.0] * (len(NAMES) - 1) + [left_over] for left_over in (0.5, 1.0, 2.0)])
def test_contradiction_is_a_hidden_layer_and_a_logistic_unit(rows: list[list[float]]) -> None:
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


# How many negations a reader counts.
NEGATIONS = {
    "The dog barks at night.": 0, "The dog does not bark.": 1, "The dog doesn't bark.": 1,
    "Nobody barks.": 1, "I never sleep without tea.": 2, "Nothing can stop it.": 1, "You cannot go.": 1,
    "You can't go.": 1, "Neither dog barks.": 1, "They hardly ever bark.": 1, "There is no dog nowhere.": 2,
    "None of them won't bark.": 2, "It is unsafe.": 1, "It is not unsafe.": 2, "A homeless man": 1,
    "An illegal, immoral and dishonest non-smoker": 4, "Uncle is under the unit until noon.": 0,
    "The disease was discovered immediately, unless I miss it.": 0, "An important industry inside": 0,
    "The inexpensive room was impolite.": 1 + 1, "He seldom eats.": 1, "I don't think so.": 1,
    "See no. 5 and No. 6.": 0, "There is no 5.": 1, "Did he go? No.": 1,
    "No! No!": 1, '"No," he said.': 1, "No, he does.": 0, "No. He said no.": 1, "But no, I don't.": 1,
}  # fmt: skip


@pytest.mark.parametrize("apostrophe", ["'", "’", " '", " ' ", " ’ ", "‘"])
def test_negations_are_counted(apostrophe: str) -> None:
    texts = [text.replace("'", apostrophe) for text in NEGATIONS]
    found = [row["reference_negations"] for row in columns(*((text, "Dogs.") for text in texts))]
    assert dict(zip(NEGATIONS, found, strict=True)) == NEGATIONS


@pytest.mark.parametrize(
    ("kinds", "words"),
    [
        ("", "the of he - ... no, 's"),
        ("CONTENT", "dog uncle u.s. no. five-"),
        ("CONTENT DENIAL", "fail refuses lost few false"),
        ("CONTENT AFFIXED", "unhappy homeless"),
        ("CONTENT NUMBER", "five 5 hundred b52"),
        ("NEGATION", "not n't never"),
        ("CLAUSE", ", . and"),
    ],
)
def test_word_properties(kinds: str, words: str) -> None:
    rows, table = WordBook().numbered(words.split())
    expected = sum(getattr(module, kind) for kind in kinds.split())
    assert {*table.properties[rows].tolist()} == {expected}


FORMS = {
    "city": "cities city", "fly": "fly flies", "tie": "tie ties", "run": "run runs running",
    "stop": "stop stopped stopping", "fall": "falls falling", "fizz": "fizz fizzing fizzes",
    "hop": "hope hoped", "carry": "carry carried carrying", "quick": "quick quickly",
    "happy": "happy happily", "lik": "like likely", "repeat": "repeat repeatedly", "ax": "ax axes",
    "larg": "larger large", "this": "this", "bus": "bus", "used": "used", "sing": "sing", "use": "use",
    "gas": "gas", "pass": "pass passing",
}  # fmt: skip
BASES = {"unfit": "fit", "undo": None, "useless": "useful", "bless": None, "non-art": "art", "art": None}


def test_forms_and_bases_of_words() -> None:
    stems = {form: one for one, forms in FORMS.items() for form in forms.split()}
    assert {form: stem(form) for form in stems} == stems
    assert {word: without_affix(word) for word in BASES} == BASES


def test_no_is_number_sign_or_answer_by_context() -> None:
    assert not signs(("See no. 5.", "See number 5."))[0]
    answers = ("No, I do.", "Yes, I do."), ("No, I do.", "I do."), ("No, I do.", "No, I do not.")
    assert [row["antonyms"] for row in columns(*answers)] == [1, 0, 0]
    assert ["negation_odd" in row for row in signs(*answers)] == [False, False, True]


OPPOSITES = [
    ("hot", "cold"), ("open", "closed"), ("happy", "unhappy"), ("safe", "dangerous"), ("legal", "illegal"),
    ("high", "low"), ("rich", "poor"), ("alive", "dead"), ("careful", "careless"), ("same", "different"),
]  # fmt: skip
OTHERS = [
    ("hot", "warm"), ("big", "large"), ("happy", "glad"), ("red", "wooden"), ("hot", "hotter"), ("and", "or"),
]  # fmt: skip


@pytest.mark.parametrize(("pair", "count"), [*((one, 1) for one in OPPOSITES), *((one, 0) for one in OTHERS)])
def test_antonyms_come_from_the_table(pair: tuple[str, str], count: int) -> None:
    for one, other in (pair, pair[::-1]):
        first, second = (f"The thing was very {word} for them." for word in (one, other))
        both = f"Some were {one}, some {other}."
        assert columns((first, second))[0]["antonyms"] == count
        assert columns((both, both))[0]["antonyms"] == 0


@pytest.mark.parametrize("most", [0, 20, 1000])
def test_earlier_pairs_do_not_change_the_signs(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache has seen many other words by then and may have dropped some."""
    monkeypatch.setattr("paraforge.corpus.scoring.meaning.words._MOST_WORDS", most)
    pairs = [
        (f"The thing was {first}.", f"The thing was {second}.") for first, second in [*OPPOSITES, *OTHERS]
    ]
    used = WordBook()
    found_in([("It isn't, isn’t, isn ' t, she's.", "I don’t know 't she’s 's ' s.")], used)
    for pair in pairs:
        assert np.array_equal(found_in([pair], used)[0], found_in([pair], WordBook())[0])


def test_the_word_cache_is_bounded_and_forgets_whole_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache never exceeds its limit by more than the words of one call, and its answers equal those of a
    new cache.
    """
    monkeypatch.setattr("paraforge.corpus.scoring.meaning.words._MOST_WORDS", 100)
    book, start = WordBook(), len(WordBook().numbered([])[1].keys)
    stems = set()
    for first in range(0, 300, 30):
        vocabulary = [f"word{number}" for number in range(first, first + 30)]
        rows, words = book.numbered(vocabulary)
        alone, expected = WordBook().numbered(vocabulary)
        assert words.keys[rows].tolist() == expected.keys[alone].tolist()
        assert {len(column) for column in words[:7]} == {len(words.keys)}
        assert len(words.keys) <= 100 + start + 30
        stems.add(int(words.stems.max()))
    assert max(stems) <= int(expected.stems.max()) + 100


SPOKEN = [
    "john", "mary", "hit", "the", "dog", "not", "isn't", "can't", "never", "happy", "unhappy", "two", "5",
    "1,000", "50%", "she's", "they'll", "his", "from", "by", "and", "Prague", "Anna", "(", ")", "?", ",",
]  # fmt: skip
spoken = st.lists(st.sampled_from(SPOKEN), max_size=10)


def moses(text: str) -> str:
    """Return the Moses tokens separated by spaces."""
    return re.sub(r"(?<=\w)(?=')|(?<=\d)(?=%)", " ", text)


WAYS: list[Callable[[str], str]] = [
    str,
    lambda text: f"  {text.replace(' ', '  ')}\t",
    moses,
    lambda text: text.replace("'", "’"),
    str.lower,
    str.upper,
]


@given(spoken, spoken)
def test_spacing_tokenization_and_case_do_not_change_the_signs(first: list[str], second: list[str]) -> None:
    texts = " ".join(first), " ".join(second)
    rows = columns(*((write(texts[0]), write(texts[1])) for write in WAYS))
    assert rows == rows[:1] * len(WAYS)


SMALL = str.split(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
)
TENS = str.split("zero ten twenty thirty forty fifty sixty seventy eighty ninety")


def spelled(number: int, hyphen: str = "-", link: str = " and ") -> str:
    """A number below 10^9 in words."""
    for size, name in ((10**6, "million"), (1000, "thousand"), (100, "hundred")):
        if number >= size:
            rest = number % size
            behind = "" if not rest else f"{link if rest < 100 else ' '}{spelled(rest, hyphen, link)}"
            return f"{spelled(number // size, hyphen, link)} {name}{behind}"
    if number < 20:
        return SMALL[number]
    return TENS[number // 10] + (f"{hyphen}{SMALL[number % 10]}" if number % 10 else "")


def spellings(number: int) -> list[str]:
    """Ways to write a number."""
    found = [str(number), f"{number:,}", f"{number:,}".replace(",", " "), spelled(number)]
    found += [spelled(number, " ", " "), spelled(number, "-", " "), spelled(number, " ")]
    found += [f"{number // 1000} thousand"] if number % 1000 == 0 else []
    found += [f"{number / 10**6:g} million"] if number % 10**4 == 0 and number >= 10**6 else []
    return found


numbers = (
    st.integers(3, 99) | st.integers(100, 9999) | st.integers(10**4, 10**8).map(lambda n: n // 10**4 * 10**4)
)


@given(numbers, numbers, st.randoms(use_true_random=False))
def test_numbers_are_compared_by_value(number: int, other: int, rng: Random) -> None:
    one, again, different = (f"They saw {rng.choice(spellings(n))} ships." for n in (number, number, other))
    assert columns((one, again))[0]["numbers_missing"] == 0, (one, again)
    assert columns((one, different))[0]["numbers_missing"] == 2 * (number != other), (one, different)
    assert ("numbers" in signs((one, different))[0]) == (number != other)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("a six-year-old boy", "a 6-year-old boy"),
        ("5km of road", "5 km of road"),
        ("It rose by 50%.", "It rose by 50 %."),
        ("nineteen eighty-four was a year", "1984 was a year"),
        ("twenty twelve was a year", "2012 was a year"),
        ("the first row", "the 1st row"),
        ("the second of May", "May 2"),
        ("the fourteenth row", "the 14th row"),
        ("the twenty-third row", "the 23rd row"),
        ("the fortieth row", "the 40th row"),
        ("two dozen eggs", "24 eggs"),
        ("a debt of $3bn", "a debt of 3 billion dollars"),
        ("2.5 million people", "2,500,000 people"),
        ("since the 70s", "since the 1970s"),
        ("a seven-thousand limit", "a limit of 7,000"),
        ("1\u202f000 people", "1\u00a0000 people"),
        ("5k people", "5,000 people"),
        ("2.5 lakh people", "250,000 people"),
        ("three crore rupees", "30,000,000 rupees"),
        ("a fall of -5 degrees", "a fall of 5 degrees"),
        ("twice a day", "2 times a day"),
    ],
)
def test_numbers_are_recognized_in_compounds_and_dates(first: str, second: str) -> None:
    assert columns((first, second), (second, first)) == [columns((first, second))[0]] * 2
    assert columns((first, second))[0]["numbers_missing"] == 0


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("one of the dogs", "a dog"),
        ("the first of the dogs", "a dog"),
        ("the two of them", "both of them"),
        ("hundreds of people", "many people"),
        ("a dozen eggs", "some eggs"),
    ],
)
def test_ambiguous_number_words_are_not_missing(first: str, second: str) -> None:
    assert [row["numbers_missing"] for row in columns((first, second), (second, first))] == [0, 0]


@pytest.mark.parametrize(
    ("first", "second", "missing"),
    [
        ("1000 600 men", "1,000,600 men", 3),
        ("9 60 men", "9,060 men", 3),
        ("at ten fifteen", "at 1015", 3),
        ("at ten five", "at 15", 3),
        ("zero and five dogs", "5 dogs", 1),
        ("five and six dogs", "11 dogs", 3),
        ("the 2 dogs", "the dogs", 1),
        ("on 3.5.2010", "on 5.3.2010", 2),
        ("a hundred and five dogs", "the dogs", 1),
    ],
)
def test_adjacent_numbers_are_not_always_one(first: str, second: str, missing: int) -> None:
    assert columns((first, second))[0]["numbers_missing"] == missing


@pytest.mark.parametrize("text", ["1-" * 400, "a1" * 1000, "1" * 400, "1." * 400 + "1"])
def test_any_digit_run_is_parsed(text: str) -> None:
    assert columns((f"x {text}", f"x {text}"))[0]["numbers_missing"] == 0
    assert columns((f"x {text}", "x"))[0]["numbers_missing"] == 1
