"""Texts of other programs: what is repaired, what is damaged, and what must not change."""

import pyarrow as pa
import pytest

from paraforge.base.text.repair import (
    REPAIRS,
    decode_entities,
    has_doubled_quotes,
    has_lost_letters,
    has_markup,
    is_damaged,
    remove_invisible,
)

ENTITIES = {
    "I don&apos;t &quot;know&quot; &amp; &#39;say&#x27;": "I don't \"know\" & 'say'",
    "&#0000065;&#128512;&#x1f600;&#X00041;": "A\U0001f600\U0001f600A",
    "&#00000065; &#x0000041;": "&#00000065; &#x0000041;",
    "a &#91; b &#93; &#124; &bar; &bra; &ket; c": "a [ b ] | | [ ] c",
    "A&nbsp;man": "A\u00a0man",
    "&amp;lt;b&amp;gt;": "&lt;b&gt;",  # once
    "AT&T; R&D &nosuch; ?a=1&copy=2": "AT&T; R&D &nosuch; ?a=1&copy=2",
}


def test_entities_are_decoded_once() -> None:
    texts, changed = decode_entities(pa.array(ENTITIES))
    assert texts.to_pylist() == list(ENTITIES.values())
    assert changed.tolist() == [before != after for before, after in ENTITIES.items()]


INVISIBLE = {
    "co\u00adop\u200berate\u2060": "cooperate",
    "\ufeff\u200eword\u200f": "word",
    "a\u200cb": "ab",
    "I \u2764\ufe0f it": "I \u2764 it",
    "🏴\u2060b": "🏴b",
    "a\U000e0062\U000e007fb": "ab",  # a flag's letters without the flag
}
NEEDED = [
    "می\u200cروم",  # Persian
    "क्\u200dष",  # Hindi
    "👩\u200d\u2764\ufe0f\u200d👩 👨\u200d👩\u200d👧",
    "1\ufe0f\u20e3",
    "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
    "辻\U000e0100",
]


def test_unneeded_invisible_characters_are_removed() -> None:
    texts, changed = remove_invisible(pa.array([*INVISIBLE, *NEEDED]))
    assert texts.to_pylist() == [*INVISIBLE.values(), *NEEDED]
    assert changed.tolist() == [True] * len(INVISIBLE) + [False] * len(NEEDED)


CZECH = "Příliš žluťoučký kůň"
DAMAGED = [
    "Mal\ufffd chlapec",
    *(CZECH.encode().decode(page, "replace").replace("\ufffd", "\x81") for page in ("cp1252", "cp1250")),
    "MalÃ½ chlapec",
    "Привет, мир".encode().decode("cp1251", "replace"),
    "I donâ€™t know, naïve.",
    "cafÃ©",
    "JÅ’S CAFÉ”",  # two letters, of which each may be meant
    *("AaÉ”", "É”aA", "AÃ½A"),  # beside a small letter, or with a sign that ends no word
    "мир".encode().decode("cp1251"),
    "Nov\u00c3\u00bd u\u00c4itel na trhu, v\u00c4era ve\u00c4er",  # bytes that cp1252 does not have are gone
    "日本語".encode().decode("cp1252", "replace"),
]
# Each of these is also UTF-8 if it is written in one of the code pages, or nearly.
SOUND = [
    *[
        "HYVÄ…",
        "CAFÉ”",
        "IRMÃ…",
        "Её",
        "ÉTÉ»",
        "«Ещё»",
        "JÅ’S",
        "POLSKĄ”",
        "Größe",
        "Ñoño",
        "日本語",
        "aAÉ”",
        "É”Aa",
    ],
    *("её её", "да".encode().decode("cp1251"), "São Paulo", "naïve café", CZECH, ""),
    "Chvalte jej na buben a píšťalu, chvalte jej na husle a varhany.",
]


def test_certain_damage_is_detected() -> None:
    assert is_damaged(pa.array(DAMAGED)).all()
    assert not is_damaged(pa.array(SOUND)).any()


@pytest.mark.parametrize("page", ["cp1252", "cp1250", "cp1251"])
def test_letters_are_restored(page: str) -> None:
    text = {"cp1251": "Привет, мир"}.get(page, "Malý muž šel")
    misread = b"".join(text.encode().splitlines()).decode(page, "ignore")
    is_whole = len(misread.encode(page)) == len(text.encode())
    texts = [misread, "don\ufffdt", "I donâ€™t know, naïve.", "plain"]
    restored, changed = REPAIRS["damaged letters"](pa.array(texts))
    assert restored.to_pylist()[1:] == ["don’t", "I don’t know, naïve.", "plain"]
    assert not is_whole or (restored[0].as_py() == text and changed.tolist() == [True, True, True, False])


def test_apostrophes_of_contractions_are_restored() -> None:
    texts = [f"We\ufffd{end} x" for end in ("t", "s", "re", "ve", "ll", "d", "m", "x")]
    restored, _ = REPAIRS["damaged letters"](pa.array(texts))
    assert restored.to_pylist() == [*(text.replace("\ufffd", "’") for text in texts[:-1]), texts[-1]]


def test_lost_letters_markup_and_quotes_of_csv() -> None:
    texts = pa.array(
        ["Mal? p?ed", "What? Yes", "see http://a.b/c?d=e", "a <f0> b", "1 < 2 > 0", "</blockquote>"]
    )
    assert has_lost_letters(texts).tolist() == [True, False, False, False, False, False]
    assert has_markup(texts).tolist() == [False, False, False, True, False, True]
    quoted = ['"Say ""no"", and go."', '""No""', '"No", he said, "no."', '"No."', '""']
    assert has_doubled_quotes(pa.array(quoted)).tolist() == [True, False, False, False, False]
