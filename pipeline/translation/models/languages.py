"""How multilingual models name languages: ``__cs__``, ``ces_Latn``, ``cs_CZ``, ``>>ces<<``, ``<2cs>``."""

import re
from collections.abc import Iterable

from paraforge.base.errors import InputError

# ISO 639-1 and 639-3 (or the macrolanguage's most spoken one, where models use that): de -> deu.
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
THREE_LETTERS: dict[str, str] = {pair[:2]: pair[3:] for pair in _CODES.split(", ")}
# __cs__, >>ces<<, <2cs>, ces_Latn, cs_CZ
_TAG = re.compile(r"__.+__|>>.+<<|<2.+>|[a-z]{2,3}_[A-Z]([A-Za-z]|[A-Za-z]{3})", re.DOTALL)
# NLLB names members of these macrolanguages.
_MEMBERS = {
    "ara": "arb", "aze": "azj", "fas": "pes", "kur": "kmr", "lav": "lvs", "mlg": "plt", "mon": "khk",
    "msa": "zsm", "nep": "npi", "nor": "nob", "ori": "ory", "orm": "gaz", "pus": "pbt", "sqi": "als",
    "swa": "swh", "uzb": "uzn", "yid": "ydd",
}  # fmt: skip


def language_token(language: str, vocabulary: Iterable[str]) -> str | None:
    """The token by which a model's vocabulary names a language, or None if it has none.

    language: a code (``cs``, ``ces``), or the token itself. vocabulary: all tokens of the model.

    Raises InputError: several tokens fit (``zho_Hans``, ``zho_Hant``), and only the user knows which.
    """
    words = vocabulary if isinstance(vocabulary, (set, frozenset, dict)) else set(vocabulary)
    if _TAG.fullmatch(language) and language in words:
        return language
    three = THREE_LETTERS.get(language, language)
    codes = dict.fromkeys((language, three, _MEMBERS.get(three, three)))
    for form in ("__{}__", ">>{}<<", "<2{}>"):
        for code in codes:
            if form.format(code) in words:
                return form.format(code)
    found = sorted(word for word in words if _TAG.fullmatch(word) and word.partition("_")[0] in codes)
    if len(found) > 1:
        raise InputError(
            f"the model has several tokens for the language {language!r}: {', '.join(found)}",
            remedy="Give one of them as the language.",
        )
    return found[0] if found else None


def language_tokens(vocabulary: Iterable[str]) -> list[str]:
    """All tokens of a vocabulary that look like names of languages, sorted."""
    return sorted(word for word in vocabulary if _TAG.fullmatch(word))
