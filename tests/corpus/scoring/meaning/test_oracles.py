"""Each sign against what a reader counts, or a slow way finds; spelling, spaces and case aside."""

import itertools
import re
from collections import Counter
from functools import cache
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paraforge.corpus.scoring.general import DIRECTORY
from paraforge.corpus.scoring.meaning.evidence import Evidence
from paraforge.corpus.scoring.meaning.words import CONTENT, PERSONS, WordBook, WordTable, negated_by_affix
from paraforge.corpus.scoring.word_scorer import WordScorer
from tests.corpus.scoring.meaning.pairs import columns, of, signs

SCORER = WordScorer.open(DIRECTORY)

COUNTS = ("antonyms", "numbers_missing", "pronouns_changed", "words_exchanged", "names_missing")

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
def test_negations_are_counted_as_a_reader_does(apostrophe: str) -> None:
    texts = [text.replace("'", apostrophe) for text in NEGATIONS]
    found = [row["reference_negations"] for row in columns(*((text, "Dogs.") for text in texts))]
    assert dict(zip(NEGATIONS, found, strict=True)) == NEGATIONS


@given(st.sampled_from(sorted(NEGATIONS)), st.sampled_from(sorted(NEGATIONS)))
def test_parity_is_of_both_sides_words(one: str, other: str) -> None:
    affixes = [
        sum(negated_by_affix(word) for word in re.findall(r"[a-z-]+", text.lower())) for text in (one, other)
    ]
    words = [NEGATIONS[text] - affix for text, affix in zip((one, other), affixes, strict=True)]
    assert signs((one, other))[0].get("negation_odd", 0) == (words[0] - words[1]) % 2


def test_no_is_a_number_or_an_answer_as_it_stands() -> None:
    assert not signs(("See no. 5.", "See number 5."))[0]
    answers = ("No, I do.", "Yes, I do."), ("No, I do.", "I do."), ("No, I do.", "No, I do not.")
    assert [row["antonyms"] for row in columns(*answers)] == [1, 0, 0]
    assert ["negation_odd" in row for row in signs(*answers)] == [False, False, True]


OPPOSITES = [
    ("hot", "cold"),
    ("open", "closed"),
    ("happy", "unhappy"),
    ("safe", "dangerous"),
    ("legal", "illegal"),
    ("high", "low"),
    ("rich", "poor"),
    ("alive", "dead"),
    ("careful", "careless"),
    ("same", "different"),
]
OTHERS = [
    ("hot", "warm"),
    ("big", "large"),
    ("happy", "glad"),
    ("red", "wooden"),
    ("hot", "hotter"),
    ("and", "or"),
]


@pytest.mark.parametrize(("pair", "count"), [*((one, 1) for one in OPPOSITES), *((one, 0) for one in OTHERS)])
def test_antonyms_are_those_of_a_table(pair: tuple[str, str], count: int) -> None:
    for one, other in (pair, pair[::-1]):
        first, second = (f"The thing was very {word} for them." for word in (one, other))
        both = f"Some were {one}, some {other}."
        assert columns((first, second))[0]["antonyms"] == count
        assert columns((both, both))[0]["antonyms"] == 0


pronoun_texts = st.lists(st.sampled_from([*sorted(PERSONS), "stone", "river", "saw"]), max_size=8)


@given(pronoun_texts, pronoun_texts)
def test_pronouns_are_counted_by_person(one: list[str], other: list[str]) -> None:
    people = [Counter(PERSONS[word] for word in words if word in PERSONS) for words in (one, other)]
    alone = [first - second for first, second in (people, people[::-1])]
    # He for she, she for he; then anybody for anybody else.
    gender = min(alone[0][4], alone[1][5]) + min(alone[0][5], alone[1][4])
    person = min(alone[0].total(), alone[1].total()) - gender
    found = columns((f"{' '.join(one)} .", f"{' '.join(other)} ."))[0]["pronouns_changed"]
    assert found == gender + person


NAMES = ["Anna", "Bob", "Cruz", "Dodoma", "Ferrari", "Golem", "Havel", "Linz", "Mumbai", "Nepal"]
name_lists = st.lists(st.sampled_from(NAMES), max_size=5, unique=True)


@given(name_lists, name_lists, st.randoms(use_true_random=False))
def test_names_are_missing_as_sets_differ(one: list[str], other: list[str], rng: Random) -> None:
    rng.shuffle(other)
    first, second = ("they met " + " and then ".join(names) + " there" for names in (one, other))
    assert columns((first, second))[0]["names_missing"] == len({*one} ^ {*other})


THINGS = ["john", "mary", "dog", "stone", "river", "hit", "saw", "carries", "table", "window", "garden"]


@given(st.lists(st.sampled_from(THINGS), min_size=2, unique=True), st.randoms(use_true_random=False))
def test_exchanged_words_are_found_by_looking_at_every_two(words: list[str], rng: Random) -> None:
    assert (WordBook().look_up(THINGS).properties & CONTENT).all()
    other = list(words)
    i, k = rng.sample(range(len(words)), 2)
    other[i], other[k] = other[k], other[i]
    expected = 0
    fenced = [["<", *side, ">"] for side in (words, other)]
    for one, two in itertools.combinations(words, 2):
        places = [[side.index(one), side.index(two)] for side in fenced]
        if places[0][1] - places[0][0] == 1 or places[1][0] < places[1][1]:
            continue
        stayed = sum(
            fenced[0][places[0][mine] + step] == fenced[1][places[1][1 - mine] + step]
            for mine in (0, 1)
            for step in (-1, 1)
        )
        expected += stayed > 1
    found = columns((" ".join(words), " ".join(other)))[0]
    assert found["words_exchanged"] == expected
    assert abs(i - k) == 1 or expected


@given(st.lists(st.sampled_from([*THINGS, ","]), min_size=2, unique=True), st.randoms(use_true_random=False))
def test_turns_are_words_that_were_behind_their_neighbour(words: list[str], rng: Random) -> None:
    other = list(words)
    rng.shuffle(other)
    turns = [
        sum(
            there.index(one) > there.index(two)
            for one, two in itertools.pairwise(here)
            if "," not in (one, two)
        )
        for here, there in ((words, other), (other, words))
    ]
    found = 2 * signs((" ".join(words), " ".join(other)))[0].get("turns", 0)
    # Which side is read is a matter of the words' hashes.
    assert found in [min(count, 4) for count in turns]


@cache
def alone(word: str) -> WordTable:
    """What a book that was asked nothing before knows of a word."""
    return WordBook().look_up([word])


@given(st.lists(st.lists(st.sampled_from([*NEGATIONS, *THINGS, "'t", "happy", "sad", "5"])), max_size=4))
def test_what_is_known_of_a_word_does_not_depend_on_what_was_asked_before(asked: list[list[str]]) -> None:
    book = WordBook()
    for words in asked:
        table = book.look_up(words)
        for name in ("keys", "properties", "values", "persons", "magnitudes"):
            np.testing.assert_array_equal(
                getattr(table, name),
                np.array([getattr(alone(word), name)[0] for word in words], getattr(table, name).dtype),
            )


@pytest.mark.parametrize("most", [0, 20, 1000])
def test_pairs_before_with_any_apostrophe_change_nothing(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The words of many pairs, all apostrophes among them, were looked up before, and perhaps forgotten."""
    monkeypatch.setattr("paraforge.corpus.scoring.meaning.words._MOST_WORDS", most)
    pairs = [(f"The thing was {one}.", f"The thing was {other}.") for one, other in [*OPPOSITES, *OTHERS]]
    found = Evidence(SCORER.vectors)
    found.signs(of([("It isn't, isn’t, isn ' t, she's.", "I don’t know 't she’s 's ' s.")]))
    for pair in pairs:
        assert np.array_equal(found.signs(of([pair]))[0], Evidence(SCORER.vectors).signs(of([pair]))[0])


SPOKEN = [
    "john", "mary", "hit", "the", "dog", "not", "isn't", "can't", "never", "happy", "unhappy", "two", "5",
    "1,000", "50%", "she's", "they'll", "his", "from", "by", "and", "Prague", "Anna", "(", ")", "?", ",",
]  # fmt: skip
spoken = st.lists(st.sampled_from(SPOKEN), max_size=10)


def moses(text: str) -> str:
    """Tokens as Moses' tokeniser separates them, with one space between."""
    return re.sub(r"(?<=\w)(?=')|(?<=\d)(?=%)", " ", text)


@given(spoken, spoken)
def test_spaces_and_tokenisation_decide_nothing(one: list[str], other: list[str]) -> None:
    pair = (" ".join(one), " ".join(other))
    wide = tuple(f"  {text.replace(' ', '  ')}\t" for text in pair)
    whole = columns(pair)[0]
    assert columns((wide[0], wide[1]))[0] == whole
    assert columns((moses(pair[0]), moses(pair[1])))[0] == whole
    typeset = [text.replace("'", "’") for text in pair]
    assert columns((typeset[0], typeset[1]))[0] == whole


@given(spoken, spoken)
def test_case_decides_nothing_but_names(one: list[str], other: list[str]) -> None:
    pair = (" ".join(one), " ".join(other))
    rows = columns(pair, (pair[0].lower(), pair[1].lower()), (pair[0].upper(), pair[1].upper()))
    without = [{name: row[name] for name in COUNTS[:-1]} for row in rows]
    assert without[0] == without[1] == without[2]
    assert rows[1]["names_missing"] == 0
