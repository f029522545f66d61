"""Each sign against what a reader counts, or a slow way finds; spelling, spaces and case aside."""

import re
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paraforge.corpus.scoring.meaning import words as module
from paraforge.corpus.scoring.meaning.words import WordBook, stem, without_affix
from tests.corpus.scoring.meaning.pairs import columns, found_in, signs

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


@pytest.mark.parametrize(
    ("kinds", "words"),
    [
        ("", "the of he - ... no, 's"),
        ("CONTENT", "dog uncle u.s. no."),
        ("CONTENT DENIAL", "fail refuses lost few"),
        ("CONTENT AFFIXED", "unhappy homeless"),
        ("CONTENT NUMBER", "five 5 hundred b52"),
        ("NEGATION", "not n't never"),
        ("CLAUSE", ", . and"),
    ],
)
def test_kinds_of_words(kinds: str, words: str) -> None:
    rows, table = WordBook().numbered(words.split())
    expected = sum(getattr(module, kind) for kind in kinds.split())
    assert {*table.properties[rows].tolist()} == {expected}


FORMS = {
    "city": "cities city", "fly": "fly flies", "tie": "tie ties", "run": "run runs running",
    "stop": "stop stopped stopping", "fall": "falls falling", "fizz": "fizz fizzing fizzes",
    "hop": "hope hoped", "carry": "carry carried carrying", "quick": "quick quickly",
    "happy": "happy happily", "lik": "like likely", "repeat": "repeat repeatedly", "ax": "ax axes",
    "larg": "larger large", "this": "this", "bus": "bus", "used": "used", "sing": "sing", "use": "use",
}  # fmt: skip
BASES = {"unfit": "fit", "undo": None, "useless": "useful", "bless": None, "non-art": "art", "art": None}


def test_forms_and_bases_of_words() -> None:
    stems = {form: one for one, forms in FORMS.items() for form in forms.split()}
    assert {form: stem(form) for form in stems} == stems
    assert {word: without_affix(word) for word in BASES} == BASES


def test_no_is_a_number_or_an_answer_as_it_stands() -> None:
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
def test_antonyms_are_those_of_a_table(pair: tuple[str, str], count: int) -> None:
    for one, other in (pair, pair[::-1]):
        first, second = (f"The thing was very {word} for them." for word in (one, other))
        both = f"Some were {one}, some {other}."
        assert columns((first, second))[0]["antonyms"] == count
        assert columns((both, both))[0]["antonyms"] == 0


@pytest.mark.parametrize("most", [0, 20, 1000])
def test_pairs_before_with_any_apostrophe_change_nothing(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The words of many pairs, all apostrophes among them, were looked up before, and perhaps forgotten."""
    monkeypatch.setattr("paraforge.corpus.scoring.meaning.words._MOST_WORDS", most)
    pairs = [(f"The thing was {one}.", f"The thing was {other}.") for one, other in [*OPPOSITES, *OTHERS]]
    used = WordBook()
    found_in([("It isn't, isn’t, isn ' t, she's.", "I don’t know 't she’s 's ' s.")], used)
    for pair in pairs:
        assert np.array_equal(found_in([pair], used)[0], found_in([pair], WordBook())[0])


def test_a_book_forgets_whole_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """It holds no more than allowed and the words of one call, and gives what a new book gives."""
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
    """Tokens as Moses' tokeniser separates them, with one space between."""
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
def test_spaces_tokenisation_and_case_decide_nothing(one: list[str], other: list[str]) -> None:
    texts = " ".join(one), " ".join(other)
    rows = columns(*((write(texts[0]), write(texts[1])) for write in WAYS))
    assert rows == rows[:1] * len(WAYS)
