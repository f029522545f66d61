"""Czech verb forms and clitics of the sample against forms written out by hand."""

from __future__ import annotations

import pytest

from paraforge.sample import conjugation as verb
from paraforge.sample.lexicon import load_lexicon
from paraforge.sample.rendering import vocalise

PRESENT = {
    "být": "jsem jsi je jsme jste jsou",
    "mít": "mám máš má máme máte mají",
    "chtít": "chci chceš chce chceme chcete chtějí",
    "moci": "můžu můžeš může můžeme můžete můžou",
    "vědět": "vím víš ví víme víte vědí",
    "jíst": "jím jíš jí jíme jíte jedí",
    "číst": "čtu čteš čte čteme čtete čtou",
    "koupit": "koupím koupíš koupí koupíme koupíte koupí",
    "potřebovat": "potřebuji potřebuješ potřebuje potřebujeme potřebujete potřebují",
    "smát se": "směji směješ směje smějeme smějete smějí",
    "sdílet": "sdílím sdílíš sdílí sdílíme sdílíte sdílejí",
    "poslat": "pošlu pošleš pošle pošleme pošlete pošlou",
    "začít": "začnu začneš začne začneme začnete začnou",
}


@pytest.mark.parametrize("key", PRESENT)
def test_present(key: str) -> None:
    assert " ".join(load_lexicon().verb(key).present) == PRESENT[key]


@pytest.mark.parametrize(
    ("participle", "person", "number", "gender", "expected"),
    [
        ("koupil", 1, "s", "f", "koupila"),
        ("šel", 3, "s", "f", "šla"),
        ("šel", 2, "p", "m", "šli"),
        ("šel", 3, "s", "m", "šel"),
        ("přečetl", 3, "p", "f", "přečetly"),
        ("padl", 3, "p", "n", "padla"),
    ],
)
def test_past(participle: str, person: int, number: str, gender: str, expected: str) -> None:
    assert verb.past(participle, verb.Agreement(person, number, gender)) == expected


def test_negation() -> None:
    assert [verb.negate(form) for form in ("je", "jsou", "má", "koupil")] == [
        "není",
        "nejsou",
        "nemá",
        "nekoupil",
    ]


@pytest.mark.parametrize(
    ("plural", "singular"),
    [
        ("uložte", "ulož"),
        ("klikněte", "klikni"),
        ("otevřete", "otevři"),
        ("dejte", "dej"),
        ("spusťte", "spusť"),
    ],
)
def test_imperative_singular(plural: str, singular: str) -> None:
    assert verb.imperative_singular(plural) == singular


@pytest.mark.parametrize(
    ("subject", "word", "auxiliary", "reflexive", "expected"),
    [
        ("", "vrátil", "jsem", "se", "vrátil jsem se"),
        ("Petr", "vrátil", "", "se", "Petr se vrátil"),
        ("", "koupil", "bych", "si", "koupil bych si"),
        ("Jana", "koupila", "by", "si", "Jana by si koupila"),
        ("", "hledám", "", "", "hledám"),
    ],
)
def test_clitics_stand_second(subject: str, word: str, auxiliary: str, reflexive: str, expected: str) -> None:
    assert verb.clause(subject, word, auxiliary, reflexive) == expected


@pytest.mark.parametrize(
    ("apart", "merged"),
    [
        ("Vrátil jsi se domů.", "Vrátil ses domů."),
        ("Koupila jsi si auto.", "Koupila sis auto."),
        ("Chtěl bys si koupit dům.", "Chtěl by sis koupit dům."),
        ("Vrátil jsem se domů.", "Vrátil jsem se domů."),
    ],
)
def test_second_person_clitics_merge(apart: str, merged: str) -> None:
    assert verb.merge_clitics(apart) == merged


@pytest.mark.parametrize(
    ("joined", "expected"),
    [
        ("v~Praze", "v Praze"),
        ("v~Vídni", "ve Vídni"),
        ("v~škole", "ve škole"),
        ("v~městě", "ve městě"),
        ("v~středu", "ve středu"),
        ("v~čtvrtek", "ve čtvrtek"),
        ("v~sobotu", "v sobotu"),
        ("V~Francii", "Ve Francii"),
        ("s~Petrem", "s Petrem"),
        ("s~sestrou", "se sestrou"),
        ("s~psem", "se psem"),
        ("s~štěnětem", "se štěnětem"),
        ("z~školy", "ze školy"),
        ("z~města", "z města"),
        ("k~obědu", "k obědu"),
        ("k~snídani", "ke snídani"),
        ("k~kamarádovi", "ke kamarádovi"),
        ("o~filmu", "o filmu"),
    ],
)
def test_prepositions_take_a_vowel_before_hard_clusters(joined: str, expected: str) -> None:
    assert vocalise(joined) == expected
