"""Language codes of two and three letters, and the tags that models and locales use."""

import re
from typing import Final

# ISO 639-1 and 639-3 (or a macrolanguage's most spoken member, if models use that): de -> deu.
_CODES = (
    "af afr, am amh, ar ara, as asm, az aze, be bel, bg bul, bn ben, bs bos, ca cat, cs ces, cy cym, "
    "da dan, de deu, el ell, en eng, eo epo, es spa, et est, eu eus, fa fas, fi fin, fo fao, fr fra, "
    "fy fry, ga gle, gd gla, gl glg, gu guj, ha hau, he heb, hi hin, hr hrv, ht hat, hu hun, hy hye, "
    "id ind, ig ibo, is isl, it ita, ja jpn, jv jav, ka kat, kk kaz, km khm, kn kan, ko kor, ku kur, "
    "ky kir, la lat, lb ltz, lg lug, ln lin, lo lao, lt lit, lv lav, mg mlg, mi mri, mk mkd, ml mal, "
    "mn mon, mr mar, ms msa, mt mlt, my mya, nb nob, ne nep, nl nld, nn nno, no nor, oc oci, om orm, "
    "or ori, pa pan, pl pol, ps pus, pt por, rn run, ro ron, ru rus, rw kin, sd snd, si sin, sk slk, "
    "sl slv, sn sna, so som, sq sqi, sr srp, su sun, sv swe, sw swa, ta tam, te tel, tg tgk, th tha, "
    "ti tir, tk tuk, tl tgl, tn tsn, tr tur, ts tso, tt tat, ug uig, uk ukr, ur urd, uz uzb, vi vie, "
    "wo wol, xh xho, yi yid, yo yor, zh zho, zu zul"
)
THREE_LETTERS: Final[dict[str, str]] = {pair[:2]: pair[3:] for pair in _CODES.split(", ")}
# NLLB names members of these macrolanguages.
MEMBERS: Final = {
    "ara": "arb", "aze": "azj", "fas": "pes", "kur": "kmr", "lav": "lvs", "mlg": "plt", "mon": "khk",
    "msa": "zsm", "nep": "npi", "nor": "nob", "ori": "ory", "orm": "gaz", "pus": "pbt", "sqi": "als",
    "swa": "swh", "uzb": "uzn", "yid": "ydd",
}  # fmt: skip
_TWO_LETTERS = {three: two for two, three in THREE_LETTERS.items()}
_TWO_LETTERS |= {member: _TWO_LETTERS[three] for three, member in MEMBERS.items() if member != "nob"}
_TWO_LETTERS |= {"iw": "he", "in": "id", "ji": "yi"}  # no longer in use
# ISO 639-2's bibliographic codes, and Mandarin.
_OF_LIBRARIES = (
    "alb sq, arm hy, baq eu, bur my, chi zh, cmn zh, cze cs, dut nl, fre fr, geo ka, ger de, gre el, ice is, "
    "mac mk, may ms, per fa, rum ro, slo sk, wel cy"
)
_TWO_LETTERS |= {pair[:3]: pair[4:] for pair in _OF_LIBRARIES.split(", ")}
CODES: Final = frozenset(_TWO_LETTERS)
"""Every code that has an equivalent of two letters."""
_TAG = re.compile(r"(?:__|>>|<2)?([a-z]{2,3})(?:[-_][a-z0-9]{2,8})*(?:__|<<|>)?")


def two_letters(language: str) -> str | None:
    """Return the code of two letters (ISO 639-1) of a language: ``cs`` for ``cs``, ``cs-CZ``, ``ces``,
    ``ces_Latn``, ``>>ces<<``. None: it has another form, or is an unknown code of three letters."""
    match = _TAG.fullmatch(language.strip().lower())
    if match is None:
        return None
    code = match[1]
    return _TWO_LETTERS.get(code, code if len(code) == 2 else None)
