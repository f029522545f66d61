"""Czech verb forms, from present to imperative, and the place of the clitics."""

from __future__ import annotations

from dataclasses import dataclass

from paraforge.sample.agreement import short_participle


@dataclass(frozen=True)
class Agreement:
    """What a verb agrees with: person 1-3, number "s" or "p", gender m, i, f or n."""

    person: int
    number: str
    gender: str

    @property
    def index(self) -> int:
        """Place in a table of six forms: 1st to 3rd person singular, then plural."""
        return self.person - 1 + (3 if self.number == "p" else 0)


PAST_AUXILIARY = ("jsem", "jsi", "", "jsme", "jste", "")
CONDITIONAL = ("bych", "bys", "by", "bychom", "byste", "by")
_TO_BE = ("jsem", "jsi", "je", "jsme", "jste", "jsou")
_WILL_BE = ("budu", "budeš", "bude", "budeme", "budete", "budou")
_EXCEPTIONS = {
    "být": _TO_BE,
    "chtít": ("chci", "chceš", "chce", "chceme", "chcete", "chtějí"),
}


def present(infinitive: str, singular: str, plural: str) -> tuple[str, ...]:
    """The six present forms (a perfective verb's future) from the third persons singular and plural."""
    if infinitive in _EXCEPTIONS:
        return _EXCEPTIONS[infinitive]
    stem, vowel = singular[:-1], singular[-1]
    if vowel in "áí":
        first = stem + vowel + "m"
    else:  # -e: potřebuje, potřebují, potřebuji; čte, čtou, čtu
        first = plural[:-2] + "u" if plural.endswith("ou") else plural[:-1] + "i"
    return first, singular + "š", singular, singular + "me", singular + "te", plural


def negate(form: str) -> str:
    """The negated finite verb form."""
    return "není" if form == "je" else "ne" + form


def future_of_be(agreement: Agreement) -> str:
    """budu, budeš, ..."""
    return _WILL_BE[agreement.index]


def past(participle: str, agreement: Agreement) -> str:
    """The l-participle in agreement (koupil, koupila, koupili, ...), without its auxiliary."""
    return short_participle(participle, agreement.gender, agreement.number)


def imperative_singular(plural: str) -> str:
    """The singular imperative from the plural one (uložte: ulož; klikněte: klikni)."""
    if plural.endswith(("ěte", "ete")):
        return plural[:-3] + "i"
    return plural.removesuffix("te")


def clause(subject: str, verb: str, auxiliary: str, reflexive: str) -> str:
    """Subject and verb with the clitics in second place: `Petr se vrátil`, but `vrátil jsem se`."""
    first, last = (subject, verb) if subject else (verb, "")
    return " ".join(word for word in (first, auxiliary, reflexive, last) if word)


_CONTRACTED_CLITICS = (
    ("bys se", "by ses"),
    ("bys si", "by sis"),
    ("jsi se", "ses"),
    ("jsi si", "sis"),
)


def merge_clitics(sentence: str) -> str:
    """Written Czech merges the second person auxiliary with a reflexive: `jsi se` is `ses`."""
    for apart, merged in _CONTRACTED_CLITICS:
        sentence = sentence.replace(f" {apart} ", f" {merged} ")
    return sentence
