"""Agreeing Czech words against tables written out by hand."""

from __future__ import annotations

import pytest

from paraforge.sample import agreement as agree
from paraforge.sample.declension import CASES

# gender and number: nominative, genitive, dative, accusative, locative, instrumental
ADJECTIVES = {
    "nový": {
        "ms": "nový nového novému nového novém novým",
        "is": "nový nového novému nový novém novým",
        "fs": "nová nové nové novou nové novou",
        "ns": "nové nového novému nové novém novým",
        "mp": "noví nových novým nové nových novými",
        "ip": "nové nových novým nové nových novými",
        "fp": "nové nových novým nové nových novými",
        "np": "nová nových novým nová nových novými",
    },
    "moderní": {
        "ms": "moderní moderního modernímu moderního moderním moderním",
        "is": "moderní moderního modernímu moderní moderním moderním",
        "fs": "moderní moderní moderní moderní moderní moderní",
        "ns": "moderní moderního modernímu moderní moderním moderním",
        "mp": "moderní moderních moderním moderní moderních moderními",
        "np": "moderní moderních moderním moderní moderních moderními",
    },
}
DETERMINERS = {
    "můj": {
        "ms": "můj mého mému mého mém mým",
        "is": "můj mého mému můj mém mým",
        "fs": "moje mé mé moji mé mou",
        "ns": "moje mého mému moje mém mým",
        "mp": "moji mých mým moje mých mými",
        "fp": "moje mých mým moje mých mými",
    },
    "svůj": {"ms": "svůj svého svému svého svém svým", "fs": "svoje své své svoji své svou"},
    "náš": {
        "ms": "náš našeho našemu našeho našem naším",
        "is": "náš našeho našemu náš našem naším",
        "fs": "naše naší naší naši naší naší",
        "ns": "naše našeho našemu naše našem naším",
        "mp": "naši našich našim naše našich našimi",
    },
    "její": {"ms": "její jejího jejímu jejího jejím jejím", "fs": "její její její její její její"},
    "jeho": {"ms": "jeho jeho jeho jeho jeho jeho", "fp": "jeho jeho jeho jeho jeho jeho"},
    "tento": {
        "ms": "tento tohoto tomuto tohoto tomto tímto",
        "is": "tento tohoto tomuto tento tomto tímto",
        "fs": "tato této této tuto této touto",
        "ns": "toto tohoto tomuto toto tomto tímto",
        "mp": "tito těchto těmto tyto těchto těmito",
        "np": "tato těchto těmto tato těchto těmito",
    },
}


@pytest.mark.parametrize(
    ("lemma", "place"), [(lemma, place) for lemma, table in ADJECTIVES.items() for place in table]
)
def test_adjectives(lemma: str, place: str) -> None:
    forms = [agree.inflect_adjective(lemma, place[0], place[1], case) for case in CASES]
    assert " ".join(forms) == ADJECTIVES[lemma][place]


@pytest.mark.parametrize(
    ("lemma", "plural"),
    [
        ("velký", "velcí"),
        ("drahý", "drazí"),
        ("tichý", "tiší"),
        ("dobrý", "dobří"),
        ("český", "čeští"),
        ("německý", "němečtí"),
        ("mladý", "mladí"),
        ("zahraniční", "zahraniční"),
    ],
)
def test_animate_plural_softens(lemma: str, plural: str) -> None:
    assert agree.inflect_adjective(lemma, "m", "p", "nom") == plural


@pytest.mark.parametrize(
    ("lemma", "place"), [(lemma, place) for lemma, table in DETERMINERS.items() for place in table]
)
def test_determiners(lemma: str, place: str) -> None:
    forms = [agree.inflect_determiner(lemma, place[0], place[1], case) for case in CASES]
    assert " ".join(forms) == DETERMINERS[lemma][place]


@pytest.mark.parametrize(
    ("participle", "forms"),
    [
        ("koupen", "koupen koupen koupena koupeno koupeni koupeny koupeny koupena"),
        ("byl", "byl byl byla bylo byli byly byly byla"),
        ("našel", "našel našel našla našlo našli našly našly našla"),
    ],
)
def test_participles(participle: str, forms: str) -> None:
    made = [agree.short_participle(participle, gender, number) for number in "sp" for gender in "mifn"]
    assert " ".join(made) == forms


@pytest.mark.parametrize(
    ("value", "gender", "forms"),
    [
        (2, "m", "dva dvou dvěma dva dvou dvěma"),
        (2, "f", "dvě dvou dvěma dvě dvou dvěma"),
        (2, "n", "dvě dvou dvěma dvě dvou dvěma"),
        (3, "i", "tři tří třem tři třech třemi"),
        (5, "f", "pět pěti pěti pět pěti pěti"),
        (9, "n", "devět devíti devíti devět devíti devíti"),
    ],
)
def test_numerals(value: int, gender: str, forms: str) -> None:
    assert " ".join(agree.inflect_numeral(value, gender, case) for case in CASES) == forms


def test_counted_nouns_take_the_genitive_plural_from_five_on() -> None:
    assert [agree.counted_case(4, case) for case in CASES] == list(CASES)
    assert [agree.counted_case(5, case) for case in CASES] == ["gen", "gen", "dat", "gen", "loc", "ins"]


def test_a_word_that_is_no_adjective_is_refused() -> None:
    with pytest.raises(ValueError, match="not the nominative"):
        agree.inflect_adjective("rychle", "m", "s", "nom")
