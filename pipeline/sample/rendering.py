"""Rendering a pattern with filled slots as a Czech and as an English sentence."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping

from paraforge.sample import conjugation, english
from paraforge.sample.agreement import inflect_adjective, short_participle
from paraforge.sample.choice import Chooser
from paraforge.sample.conjugation import Agreement
from paraforge.sample.entities import NounPhrase, Pronoun
from paraforge.sample.lexicon import Adverb, Lexicon, Verb
from paraforge.sample.slots import Digits, Filling, Quality

_TOKEN = re.compile(r"\{([^{}]+)\}")
_ALTERNATION = re.compile(r"\[([^\[\]]*)\]")
_PREPOSITION = re.compile(r"\b([vszkVSZK])~(\w+)")
_SIBILANT_CLUSTER = re.compile(r"[szšžčť][bcčdďfghjklmnňpqrřstťvxzž]")
_MODALS = frozenset(("must", "should", "ought to"))
_TIES_ON = ("tř", "čt", "dv", "vš", "mn", "ps", "lv", "jm")


def _vocalised(preposition: str, word: str) -> bool:
    word = word.lower()
    cluster = bool(_SIBILANT_CLUSTER.match(word)) or word.startswith(_TIES_ON)
    if preposition == "v":
        return word[0] in "vf" or cluster or word.startswith("měst")
    if preposition in "sz":
        return word[0] in "szšž" or cluster
    return word[0] in "kg" or cluster


def vocalise(sentence: str) -> str:
    """Resolve `v~městě` to `ve městě`, `s~Petrem` to `s Petrem`: v, s, z, k take -e before hard clusters."""

    def resolve(match: re.Match[str]) -> str:
        preposition, word = match.group(1), match.group(2)
        return f"{preposition}{'e' if _vocalised(preposition.lower(), word) else ''} {word}"

    return _PREPOSITION.sub(resolve, sentence).replace("~", " ")


def _finish(sentence: str) -> str:
    sentence = re.sub(r"\s+", " ", sentence).strip()
    sentence = re.sub(r" ([.,!?:;])", r"\1", sentence)
    for mark in (". ", "? ", "! "):
        head, *rest = sentence.split(mark)
        sentence = mark.join([head, *(part[:1].upper() + part[1:] for part in rest)])
    return sentence[:1].upper() + sentence[1:]


class Renderer:
    """Renders templates over one lexicon."""

    def __init__(self, lexicon: Lexicon) -> None:
        self._lexicon = lexicon
        self._frames: dict[str, Verb] = {}

    def _filling(self, name: str, filled: Mapping[str, Filling]) -> Filling:
        if not name.startswith("="):
            return filled[name]
        if name not in self._frames:
            self._frames[name] = self._lexicon.verb(name[1:])
        return self._frames[name]

    def czech(self, template: str, filled: Mapping[str, Filling], generator: random.Random) -> str:
        """The Czech sentence; `[a|b]` in the template is drawn."""

        def alternate(match: re.Match[str]) -> str:
            options = match.group(1).split("|")
            return options[int(generator.random() * len(options))]

        def resolve(match: re.Match[str]) -> str:
            name, _, form = match.group(1).partition(".")
            form, _, argument = form.partition(":")
            return self._czech_form(name, form, argument, filled)

        sentence = _TOKEN.sub(resolve, _ALTERNATION.sub(alternate, template))
        return conjugation.merge_clitics(_finish(vocalise(sentence)))

    def _czech_form(self, name: str, form: str, argument: str, filled: Mapping[str, Filling]) -> str:
        filling = self._filling(name, filled)
        if isinstance(filling, Adverb):
            return filling.czech
        if isinstance(filling, Digits):
            return filling.text
        if isinstance(filling, Verb):
            return _czech_verb(filling, form, filled.get(argument))
        if isinstance(filling, Quality):
            if form == "comp":
                assert filling.adjective.comparative is not None
                return inflect_adjective(filling.adjective.comparative, *_target(filled[argument]), "nom")
            return inflect_adjective(filling.adjective.lemma, *_target(filled[argument]), form)
        if form in ("aux", "cond"):
            table = conjugation.PAST_AUXILIARY if form == "aux" else conjugation.CONDITIONAL
            return table[filling.agreement.index]
        return filling.czech(form or "nom")

    def english(self, template: str, filled: Mapping[str, Filling], chooser: Chooser) -> str:
        """The English sentence with its contractions still open (see `english.contract`)."""

        def alternate(match: re.Match[str]) -> str:
            options = match.group(1).split("|")
            return chooser.choose(f"{match.start()}:{match.group(0)}", options)

        def resolve(match: re.Match[str]) -> str:
            token = match.group(1)
            if "!" in token:
                name, _, verbs = token.partition("!")
                options = [self._agreeing(verb, filled[name]) for verb in verbs.split("|")]
                return chooser.choose(f"{match.start()}:{token}", options)
            name, _, form = token.partition(".")
            form, _, argument = form.partition(":")
            return self._english_form(name, form, argument, filled, chooser)

        return _finish(_TOKEN.sub(resolve, _ALTERNATION.sub(alternate, template)))

    @staticmethod
    def _agreeing(verb: str, subject: Filling) -> str:
        assert isinstance(subject, NounPhrase | Pronoun)
        bare = subject.english_plural or verb in _MODALS
        return verb if bare else english.third_person(verb)

    def _english_form(
        self, name: str, form: str, argument: str, filled: Mapping[str, Filling], chooser: Chooser
    ) -> str:
        filling = self._filling(name, filled)
        if isinstance(filling, Adverb):
            return chooser.choose(filling.czech, filling.english)
        if isinstance(filling, Digits):
            return filling.text
        if isinstance(filling, Quality):
            adjective = filling.adjective
            options = adjective.english_comparative if form == "comp" else adjective.english
            return chooser.choose(adjective.lemma, options)
        if isinstance(filling, Verb):
            if form == "pres":
                subject = filled[argument]
                assert isinstance(subject, NounPhrase | Pronoun)
                form = "base" if subject.english_plural else "s"
            return chooser.choose(
                f"{filling.infinitive} {name}", [verb.form(form or "base") for verb in filling.english]
            )
        return self._english_entity(filling, form, argument, filled, chooser)

    def _english_entity(
        self,
        entity: NounPhrase | Pronoun,
        form: str,
        argument: str,
        filled: Mapping[str, Filling],
        chooser: Chooser,
    ) -> str:
        present, past = entity.english_be
        if form in ("be", "was", "do", "has", "poss"):
            return {
                "be": present,
                "was": past,
                "do": "do" if entity.english_plural else "does",
                "has": "have" if entity.english_plural else "has",
                "poss": entity.english_possessive,
            }[form]
        if form in ("he_was", "he_is"):
            pronoun = entity.english("he", chooser)
            return f"{pronoun} {past}" if form == "he_was" else f"{pronoun}~{present}"
        if form == "at":
            assert isinstance(entity, NounPhrase) and entity.noun.location
            return f"{entity.noun.location[1]} {entity.english('', chooser)}"
        owned = isinstance(entity, NounPhrase) and entity.determiner == "svůj" and form != "bare"
        if form == "own" or owned:
            owner = filled[argument or "who"]
            assert isinstance(entity, NounPhrase) and isinstance(owner, NounPhrase | Pronoun)
            return f"{owner.english_possessive} {entity.bare(chooser)}"
        auxiliaries = {
            "is": present,
            "will": "will",
            "would": "would",
            "have": "have" if entity.english_plural else "has",
        }
        if form in auxiliaries:
            return f"{entity.english('', chooser)}~{auxiliaries[form]}"
        return entity.english(form, chooser)


def _target(filling: Filling) -> tuple[str, str]:
    if isinstance(filling, NounPhrase):
        return filling.gender, filling.number
    assert isinstance(filling, Pronoun)
    return filling.agreement.gender, filling.agreement.number


def _czech_verb(verb: Verb, form: str, subject: Filling | None) -> str:
    if form == "inf":
        return " ".join(filter(None, (verb.infinitive, verb.reflexive)))
    if form in ("refl", "vn", "imp", "imps", "binf"):
        noun = verb.verbal_noun or ""
        imperative = verb.imperative or ""
        return {
            "refl": verb.reflexive,
            "vn": noun,
            "imp": imperative,
            "imps": conjugation.imperative_singular(imperative),
            "binf": verb.infinitive,
        }[form]
    assert isinstance(subject, NounPhrase | Pronoun)
    agreement: Agreement = subject.agreement
    if form == "pass":
        assert verb.passive is not None
        return short_participle(verb.passive, agreement.gender, agreement.number)
    if form == "fut":
        return conjugation.future_of_be(agreement)
    inner, _, clitic = form.removeprefix("clause_").partition("+")
    finite = inner.removeprefix("n")
    word = verb.present[agreement.index] if finite == "pres" else conjugation.past(verb.past, agreement)
    if inner.startswith("n"):
        word = conjugation.negate(word)
    if not form.startswith("clause_"):
        return word
    auxiliary = ""
    if finite == "past":
        auxiliary = conjugation.PAST_AUXILIARY[agreement.index]
    elif finite == "cond":
        auxiliary = conjugation.CONDITIONAL[agreement.index]
    return conjugation.clause(subject.czech("nom"), word, auxiliary, clitic or verb.reflexive)
