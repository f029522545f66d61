"""English morphology of the sample."""

from __future__ import annotations

import pytest

from paraforge.sample import english


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("book", "books"),
        ("bus", "buses"),
        ("city", "cities"),
        ("toy", "toys"),
        ("dish", "dishes"),
        ("box", "boxes"),
    ],
)
def test_plural(word: str, expected: str) -> None:
    assert english.plural(word) == expected


@pytest.mark.parametrize(
    ("verb", "expected"),
    [
        ("go", "goes"),
        ("have to", "has to"),
        ("carry", "carries"),
        ("look for", "looks for"),
        ("pass", "passes"),
    ],
)
def test_third_person(verb: str, expected: str) -> None:
    assert english.third_person(verb) == expected


@pytest.mark.parametrize(
    ("verb", "expected"),
    [
        ("make", "making"),
        ("sit", "sitting"),
        ("run into", "running into"),
        ("lie", "lying"),
        ("see", "seeing"),
        ("set up", "setting up"),
        ("open", "opening"),
        ("shut", "shutting"),
    ],
)
def test_ing(verb: str, expected: str) -> None:
    assert english.participle_ing(verb) == expected


@pytest.mark.parametrize(
    ("verb", "expected"),
    [
        ("bake", "baked"),
        ("carry", "carried"),
        ("play", "played"),
        ("stop", "stopped"),
        ("look into", "looked into"),
    ],
)
def test_regular_past(verb: str, expected: str) -> None:
    assert english.regular_past(verb) == expected


@pytest.mark.parametrize(
    ("following", "article"),
    [
        ("old car", "an"),
        ("big apple", "a"),
        ("university", "a"),
        ("useful program", "a"),
        ("European law", "a"),
        ("hour", "an"),
        ("house", "a"),
        ("umbrella", "an"),
        ("uninteresting film", "an"),
        ("e-mail", "an"),
        ("American team", "an"),
        ("TV", "a"),
    ],
)
def test_indefinite_article(following: str, article: str) -> None:
    assert english.indefinite_article(following) == article


@pytest.mark.parametrize(
    ("joined", "full", "contracted"),
    [
        ("I~am here.", "I am here.", "I'm here."),
        ("I~am~not here.", "I am not here.", "I'm not here."),
        ("He can~not find it.", "He cannot find it.", "He can't find it."),
        ("They do~not know.", "They do not know.", "They don't know."),
        ("We~have~not finished.", "We have not finished.", "We haven't finished."),
        ("She~will go.", "She will go.", "She'll go."),
        ("You~would like it.", "You would like it.", "You'd like it."),
        ("My brother~is tired.", "My brother is tired.", "My brother is tired."),
        ("Petr~has~not come.", "Petr has not come.", "Petr hasn't come."),
        ("Where~is he?", "Where is he?", "Where's he?"),
        ("Where~are they?", "Where are they?", "Where are they?"),
        ("There is~not enough.", "There is not enough.", "There isn't enough."),
        ("It could~not be.", "It could not be.", "It couldn't be."),
    ],
)
def test_contract(joined: str, full: str, contracted: str) -> None:
    assert english.contract(joined, False) == full
    assert english.contract(joined, True) == contracted


def test_contractions_name_no_subject() -> None:
    assert english.contractions("Petr~has~not come.") == [("has not", "hasn't")]
    assert english.contractions("I~am here, he~is~not.") == [("I am", "I'm"), ("he is not", "he's not")]
    assert english.contractions("My brother~is here.") == []
