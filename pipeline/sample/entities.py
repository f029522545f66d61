"""Who and what a sentence is about: pronouns and noun phrases, with their forms in both languages."""

from __future__ import annotations

from dataclasses import dataclass

from paraforge.sample import agreement as agree
from paraforge.sample import english
from paraforge.sample.choice import Chooser
from paraforge.sample.conjugation import Agreement
from paraforge.sample.lexicon import Adjective, Noun

POSSESSIVES = {
    "můj": "my",
    "tvůj": "your",
    "jeho": "his",
    "její": "her",
    "náš": "our",
    "váš": "your",
    "jejich": "their",
    "tento": "this",
}


@dataclass(frozen=True)
class Pronoun:
    """A personal pronoun: Czech drops it as a subject and has clitics elsewhere."""

    agreement: Agreement
    english_subject: str
    english_object: str
    possessive: str
    dative: str
    accusative: str
    comitative: str

    lemmas: tuple[str, ...] = ()

    def czech(self, form: str) -> str:
        """nom (empty: dropped), dat and acc (clitics), with (se mnou)."""
        return {"nom": "", "dat": self.dative, "acc": self.accusative, "with": self.comitative}[form]

    def english(self, form: str, chooser: Chooser) -> str:
        """The subject form, or `obj`."""
        return {"": self.english_subject, "he": self.english_subject, "obj": self.english_object}[form]

    @property
    def english_plural(self) -> bool:
        """Whether the English verb has no -s (I, you, we, they)."""
        return self.english_subject not in ("he", "she")

    @property
    def english_be(self) -> tuple[str, str]:
        """Present and past of `be`."""
        if self.english_subject == "I":
            return "am", "was"
        return ("are", "were") if self.english_plural else ("is", "was")

    @property
    def english_possessive(self) -> str:
        """my, your, ..."""
        return self.possessive


def _pronoun(
    person: int, number: str, gender: str, english_forms: str, czech_forms: str, comitative: str
) -> Pronoun:
    subject, object_, possessive = english_forms.split()
    dative, accusative = czech_forms.split()
    agreement = Agreement(person, number, gender)
    return Pronoun(agreement, subject, object_, possessive, dative, accusative, comitative)


PRONOUNS = (
    _pronoun(1, "s", "m", "I me my", "mi mě", "se mnou"),
    _pronoun(1, "s", "f", "I me my", "mi mě", "se mnou"),
    _pronoun(2, "s", "m", "you you your", "ti tě", "s tebou"),
    _pronoun(2, "s", "f", "you you your", "ti tě", "s tebou"),
    _pronoun(3, "s", "m", "he him his", "mu ho", "s ním"),
    _pronoun(3, "s", "f", "she her her", "jí ji", "s ní"),
    _pronoun(1, "p", "m", "we us our", "nám nás", "s námi"),
    _pronoun(2, "p", "m", "you you your", "vám vás", "s vámi"),
    _pronoun(3, "p", "m", "they them their", "jim je", "s nimi"),
)


@dataclass(frozen=True)
class NounPhrase:
    """A noun with what agrees with it: an adjective, a possessive, a number."""

    noun: Noun
    number: str
    adjective: Adjective | None = None
    determiner: str | None = None  # a Czech lemma: můj, tvůj, svůj, tento, ...
    count: int | None = None

    @property
    def lemmas(self) -> tuple[str, ...]:
        """Lemmas that must not come twice in a sentence."""
        return (self.noun.lemma, *((self.adjective.lemma,) if self.adjective else ()))

    @property
    def gender(self) -> str:
        """Gender of agreeing words in this number."""
        return self.noun.gender_in(self.number)

    @property
    def agreement(self) -> Agreement:
        """What a verb shows with this subject: neuter singular after a number from five on."""
        if self.count is not None and self.count >= 5:
            return Agreement(3, "s", "n")
        return Agreement(3, self.number, self.gender)

    def case(self, case: str) -> str:
        """The phrase in a Czech case."""
        words = []
        inner = case if self.count is None else agree.counted_case(self.count, case)
        if self.determiner:
            words.append(agree.inflect_determiner(self.determiner, self.gender, self.number, case))
        if self.count is not None:
            words.append(agree.inflect_numeral(self.count, self.gender, case))
        if self.adjective:
            words.append(agree.inflect_adjective(self.adjective.lemma, self.gender, self.number, inner))
        words.append(self.noun.forms[self.number, inner])
        return " ".join(words)

    def czech(self, form: str) -> str:
        """A case; at, to, from (with the place's own preposition); rel_CASE (který); him (the pronoun)."""
        if form in ("at", "to", "from"):
            if self.noun.location is None:
                raise KeyError(f"{self.noun.lemma} is not a place")
            place = self.noun.location[0]
            preposition, case = {
                "v": {"at": ("v", "loc"), "to": ("do", "gen"), "from": ("z", "gen")},
                "na": {"at": ("na", "loc"), "to": ("na", "acc"), "from": ("z", "gen")},
                "u": {"at": ("u", "gen"), "to": ("k", "dat"), "from": ("od", "gen")},
            }[place][form]
            return f"{preposition}~{self.case(case)}"
        if form.startswith("rel_"):
            return agree.inflect_adjective("který", self.gender, self.number, form[4:])
        if form == "him":
            return agree.pronoun_accusative(self.gender, self.number)
        return self.case(form)

    @property
    def english_plural(self) -> bool:
        """Whether the English phrase takes a plural verb."""
        if "many" in self.noun.tags:
            return True
        if self.noun.tags & {"mass", "plural"}:
            return False
        return self.number == "p"

    @property
    def english_be(self) -> tuple[str, str]:
        """Present and past of `be`."""
        return ("are", "were") if self.english_plural else ("is", "was")

    @property
    def english_possessive(self) -> str:
        """The possessive pronoun that stands for the phrase."""
        if self.english_plural:
            return "their"
        return "her" if self.noun.gender == "f" else "his"

    @property
    def is_name(self) -> bool:
        """Names take no article."""
        return bool(self.noun.tags & {"name", "name_only"})

    def bare(self, chooser: Chooser) -> str:
        """Number, adjective and noun in English, without an article."""
        plural = self.english_plural and "many" not in self.noun.tags
        nouns = [word.plural if plural else word.singular for word in self.noun.english]
        words = [chooser.choose(self.noun.lemma, nouns)]
        if self.adjective:
            words.insert(0, chooser.choose(self.adjective.lemma, self.adjective.english))
        if self.count is not None:
            words.insert(0, agree.ENGLISH_NUMERALS[self.count])
        return " ".join(words)

    def english(self, form: str, chooser: Chooser) -> str:
        """a, the (also the default), bare, he (pronoun), him, or a possessive's own word (`my`)."""
        if form == "he":
            return "they" if self.english_plural else self._singular_pronoun("he", "she")
        if form == "him":
            return "them" if self.english_plural else self._singular_pronoun("him", "her")
        bare = self.bare(chooser)
        if form == "bare" or self.is_name:
            return bare
        if self.determiner in POSSESSIVES and form in ("", "a", "the", "obj"):
            word = POSSESSIVES[self.determiner]
            return f"{'these' if word == 'this' and self.english_plural else word} {bare}"
        if "bare" in self.noun.tags and form != "a" and self.number == "s" and not self.adjective:
            return bare
        if form == "a":
            if self.english_plural or "mass" in self.noun.tags:
                return bare
            return f"{english.indefinite_article(bare)} {bare}"
        if form in ("", "the", "obj"):
            return f"the {bare}"
        return f"{form} {bare}"

    def _singular_pronoun(self, male: str, female: str) -> str:
        return {"m": male, "f": female}.get(self.noun.gender, male) if self._human else "it"

    @property
    def _human(self) -> bool:
        human = {"name", "kin", "role", "figure", "official", "user", "criminal", "crowd"}
        return bool(self.noun.tags & human)
