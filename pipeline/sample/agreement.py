"""Czech words that agree with a noun: adjectives, participles, possessives, relatives and numerals."""

from __future__ import annotations

from paraforge.sample.declension import CASES, soften

_HARD = {
    ("m", "s"): "ý ého ému ého ém ým",
    ("i", "s"): "ý ého ému ý ém ým",
    ("f", "s"): "á é é ou é ou",
    ("n", "s"): "é ého ému é ém ým",
    ("m", "p"): "í ých ým é ých ými",
    ("i", "p"): "é ých ým é ých ými",
    ("f", "p"): "é ých ým é ých ými",
    ("n", "p"): "á ých ým á ých ými",
}
_SOFT = {
    ("m", "s"): "í ího ímu ího ím ím",
    ("i", "s"): "í ího ímu í ím ím",
    ("f", "s"): "í í í í í í",
    ("n", "s"): "í ího ímu í ím ím",
    ("m", "p"): "í ích ím í ích ími",
    ("i", "p"): "í ích ím í ích ími",
    ("f", "p"): "í ích ím í ích ími",
    ("n", "p"): "í ích ím í ích ími",
}
_MY = {  # with the stem's consonant: m-ůj, tv-ůj, sv-ůj
    ("m", "s"): "ůj ého ému ého ém ým",
    ("i", "s"): "ůj ého ému ůj ém ým",
    ("f", "s"): "oje é é oji é ou",
    ("n", "s"): "oje ého ému oje ém ým",
    ("m", "p"): "oji ých ým oje ých ými",
    ("i", "p"): "oje ých ým oje ých ými",
    ("f", "p"): "oje ých ým oje ých ými",
    ("n", "p"): "oje ých ým oje ých ými",
}
_OUR = {  # n-áš, v-áš
    ("m", "s"): "áš ašeho ašemu ašeho ašem aším",
    ("i", "s"): "áš ašeho ašemu áš ašem aším",
    ("f", "s"): "aše aší aší aši aší aší",
    ("n", "s"): "aše ašeho ašemu aše ašem aším",
    ("m", "p"): "aši ašich ašim aše ašich ašimi",
    ("i", "p"): "aše ašich ašim aše ašich ašimi",
    ("f", "p"): "aše ašich ašim aše ašich ašimi",
    ("n", "p"): "aše ašich ašim aše ašich ašimi",
}
_THIS = {
    ("m", "s"): "tento tohoto tomuto tohoto tomto tímto",
    ("i", "s"): "tento tohoto tomuto tento tomto tímto",
    ("f", "s"): "tato této této tuto této touto",
    ("n", "s"): "toto tohoto tomuto toto tomto tímto",
    ("m", "p"): "tito těchto těmto tyto těchto těmito",
    ("i", "p"): "tyto těchto těmto tyto těchto těmito",
    ("f", "p"): "tyto těchto těmto tyto těchto těmito",
    ("n", "p"): "tato těchto těmto tato těchto těmito",
}
_NUMERALS = {  # nominative, genitive, dative, accusative, locative, instrumental
    2: "dva dvou dvěma dva dvou dvěma",
    3: "tři tří třem tři třech třemi",
    4: "čtyři čtyř čtyřem čtyři čtyřech čtyřmi",
    5: "pět pěti pěti pět pěti pěti",
    6: "šest šesti šesti šest šesti šesti",
    7: "sedm sedmi sedmi sedm sedmi sedmi",
    8: "osm osmi osmi osm osmi osmi",
    9: "devět devíti devíti devět devíti devíti",
    10: "deset deseti deseti deset deseti deseti",
    12: "dvanáct dvanácti dvanácti dvanáct dvanácti dvanácti",
    15: "patnáct patnácti patnácti patnáct patnácti patnácti",
    20: "dvacet dvaceti dvaceti dvacet dvaceti dvaceti",
}
ENGLISH_NUMERALS = {
    2: "two",
    3: "three",
    4: "four",
    5: "five",
    6: "six",
    7: "seven",
    8: "eight",
    9: "nine",
    10: "ten",
    12: "twelve",
    15: "fifteen",
    20: "twenty",
}


def _cell(table: dict[tuple[str, str], str], gender: str, number: str, case: str) -> str:
    return table[gender, number].split()[CASES.index(case)]


def inflect_adjective(lemma: str, gender: str, number: str, case: str) -> str:
    """A hard (nový) or soft (moderní) adjective in agreement with a noun."""
    stem = lemma[:-1]
    if lemma.endswith("í"):
        return stem + _cell(_SOFT, gender, number, case)
    if lemma.endswith("ý"):
        if (gender, number, case) == ("m", "p", "nom"):
            return _animate_plural_stem(stem) + "í"
        return stem + _cell(_HARD, gender, number, case)
    raise ValueError(f"{lemma} is not the nominative of a Czech adjective")


def _animate_plural_stem(stem: str) -> str:
    if stem.endswith("sk"):
        return stem[:-2] + "št"
    if stem.endswith("ck"):
        return stem[:-2] + "čt"
    return soften(stem)


def short_participle(participle: str, gender: str, number: str) -> str:
    """A passive or l-participle in agreement (koupen, koupena, koupeno; koupeni, koupeny, koupena)."""
    stem = participle
    if participle.endswith("šel") and number + gender not in ("sm", "si"):
        stem = participle[:-2] + "l"
    endings = {"s": {"m": "", "i": "", "f": "a", "n": "o"}, "p": {"m": "i", "i": "y", "f": "y", "n": "a"}}
    return stem + endings[number][gender]


def inflect_determiner(lemma: str, gender: str, number: str, case: str) -> str:
    """A possessive (můj, tvůj, svůj, náš, váš, jeho, její, jejich) or `tento` in agreement."""
    if lemma in ("jeho", "jejich"):
        return lemma
    if lemma == "její":
        return inflect_adjective(lemma, gender, number, case)
    if lemma == "tento":
        return _cell(_THIS, gender, number, case)
    if lemma in ("náš", "váš"):
        return lemma[0] + _cell(_OUR, gender, number, case)
    return lemma.removesuffix("ůj") + _cell(_MY, gender, number, case)


def pronoun_accusative(gender: str, number: str) -> str:
    """The third-person accusative pronoun of written Czech (jej, ji, je)."""
    if number == "p":
        return "je"
    return {"m": "ho", "i": "jej", "f": "ji", "n": "jej"}[gender]


def inflect_numeral(value: int, gender: str, case: str) -> str:
    """A cardinal number; two distinguishes gender (dva, dvě)."""
    form = _NUMERALS[value].split()[CASES.index(case)]
    return "dvě" if form == "dva" and gender in "fn" else form


def counted_case(value: int, case: str) -> str:
    """Case of the noun after a number: from five on, nominative and accusative take the genitive plural."""
    return "gen" if value >= 5 and case in ("nom", "acc") else case
