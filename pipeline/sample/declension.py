"""Czech noun declension: a lemma, its stem and a model word give the twelve case forms.

The model words are those of Czech grammars (pán, muž, předseda, hrad, stroj, žena, růže, ulice, píseň,
kost, město, moře, kuře, stavení, muzeum, ...), so that the lexicon reads like a dictionary. What departs from
its model is written out in the lexicon (`gp=sester`), never hidden in code.
"""

from __future__ import annotations

from collections.abc import Mapping

CASES = ("nom", "gen", "dat", "acc", "loc", "ins")

# Genders: m = masculine animate, i = masculine inanimate, f, n.
PARADIGM_GENDER = {
    "pán": "m",
    "muž": "m",
    "soudce": "m",
    "předseda": "m",
    "vedoucí": "m",
    "vrátný": "m",
    "hrad": "i",
    "stroj": "i",
    "žena": "f",
    "růže": "f",
    "ulice": "f",
    "píseň": "f",
    "kost": "f",
    "dovolená": "f",
    "město": "n",
    "moře": "n",
    "kuře": "n",
    "stavení": "n",
    "muzeum": "n",
}

# Five singular endings (genitive to instrumental; "=" is the lemma itself), then six plural ones.
# E: e or ě that softens the stem (kniha, knize); I: i that softens it (voják, vojáci);
# ECH: -ech, and after k, h, ch, g a softening -ích (vlak, vlacích).
_ENDINGS = {
    "pán": "a ovi a ovi em | I ů ům y ECH y",
    "muž": "e i e i em | i ů ům e ích i",
    "soudce": "e i e i em | i ů ům e ích i",
    "předseda": "y ovi u ovi ou | ové ů ům y ECH y",
    "vedoucí": "ího ímu ího ím ím | í ích ím í ích ími",
    "vrátný": "ého ému ého ém ým | í ých ým é ých ými",
    "hrad": "u u = u em | y ů ům y ECH y",
    "stroj": "e i = i em | e ů ům e ích i",
    "žena": "y E u E ou | y 0 ám y ách ami",
    "růže": "e i i i í | e í ím e ích emi",
    "ulice": "e i i i í | e 0 ím e ích emi",
    "píseň": "e i = i í | e í ím e ích emi",
    "kost": "i i = i í | i í em i ech mi",
    "dovolená": "é é ou é ou | é ých ým é ých ými",
    "město": "a u = E em | a 0 ům a ech y",
    "moře": "e i = i em | e í ím e ích i",
    "kuře": "ete eti = eti etem | ata at atům ata atech aty",
    "stavení": "í í = í ím | í í ím í ích ími",
    "muzeum": "a u = u em | a í ím a ích i",
}

_SOFTENED = {"k": "c", "h": "z", "g": "z", "r": "ř"}
_TAKES_HOOK = frozenset("dtnbpvmf")
_UNHOOKED = {"ď": "d", "ť": "t", "ň": "n"}


def soften(stem: str) -> str:
    """The stem before a softening ending: k, h, ch, g, r become c, z, š, z, ř."""
    if stem.endswith("ch"):
        return stem[:-2] + "š"
    return stem[:-1] + _SOFTENED.get(stem[-1], stem[-1])


def join(stem: str, ending: str) -> str:
    """Stem and ending in Czech spelling (síť + e = sítě; sestra: sestr + E = sestře)."""
    if ending == "0":
        return stem
    if ending == "E":
        return stem + "ě" if stem[-1] in _TAKES_HOOK else soften(stem) + "e"
    if ending == "I":
        return soften(stem) + "i"
    if ending == "ECH":
        return soften(stem) + "ích" if stem[-1] in "khg" else stem + "ech"
    if stem[-1] in _UNHOOKED and ending[0] in "eiíě":
        return stem[:-1] + _UNHOOKED[stem[-1]] + ("ě" + ending[1:] if ending[0] == "e" else ending)
    return stem + ending


def default_stem(lemma: str, paradigm: str) -> str:
    """The lemma without its nominative ending; a hook hidden in -ně comes back (kuchyně: kuchyň-)."""
    # A model word's last vowel is its ending, and -um of muzeum; one that ends in a consonant has none.
    cut = 2 if paradigm == "muzeum" else int(paradigm[-1] in "aáeéíoý")
    stem = lemma[: len(lemma) - cut] if cut else lemma
    if lemma.endswith("ě") and cut:
        hooked = {"d": "ď", "t": "ť", "n": "ň"}.get(stem[-1])
        if hooked is None:
            raise ValueError(f"{lemma}: give the stem explicitly")
        stem = stem[:-1] + hooked
    return stem


def decline(
    lemma: str, paradigm: str, stem: str | None = None, exceptions: Mapping[str, str] | None = None
) -> dict[tuple[str, str], str]:
    """All case forms of a noun as `(number, case) -> form`, number "s" or "p", cases as in `CASES`.

    `exceptions` maps a case initial and a number ("gp": genitive plural) to a full form, or to "-" and an
    ending. Raises KeyError for an unknown paradigm or exception.
    """
    stem = stem or default_stem(lemma, paradigm)
    singular, plural = (part.split() for part in _ENDINGS[paradigm].split("|"))
    forms = {("s", "nom"): lemma}
    for number, cases, endings in (("s", CASES[1:], singular), ("p", CASES, plural)):
        for case, ending in zip(cases, endings, strict=True):
            forms[number, case] = lemma if ending == "=" else join(stem, ending)
    case_of = {case[0]: case for case in CASES}
    for key, form in (exceptions or {}).items():
        slot = (key[1], case_of[key[0]])
        if slot not in forms:
            raise KeyError(f"{lemma}: unknown exception {key}")
        forms[slot] = join(stem, form[1:]) if form.startswith("-") else form
    return forms
