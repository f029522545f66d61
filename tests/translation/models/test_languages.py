"""Language codes to the tokens that models have for them."""

from __future__ import annotations

import pytest

from paraforge.base.errors import InputError
from paraforge.translation.models.languages import THREE_LETTERS, language_token, language_tokens

NLLB = ["ces_Latn", "eng_Latn", "zho_Hans", "zho_Hant", "lvs_Latn", "pes", "en_route", "▁eng_Latn"]


@pytest.mark.parametrize(
    ("language", "vocabulary", "token"),
    [
        ("cs", ["__cs__", "__en__"], "__cs__"),
        ("cs", NLLB, "ces_Latn"),
        ("ces", NLLB, "ces_Latn"),
        ("lv", NLLB, "lvs_Latn"),
        ("zho_Hant", NLLB, "zho_Hant"),
        ("en", ["cs_CZ", "en_XX"], "en_XX"),
        ("de", [">>deu<<", ">>eng<<"], ">>deu<<"),
        ("de", ["<2de>"], "<2de>"),
        ("fa", ["▁pes", "pes"], None),
        ("pes", ["▁pes", "pes"], None),
        ("en", [], None),
    ],
)
def test_the_token_of_a_language(language: str, vocabulary: list[str], token: str | None) -> None:
    assert language_token(language, vocabulary) == token


def test_several_tokens_of_a_language_are_the_users_to_choose() -> None:
    with pytest.raises(InputError, match="zho_Hans, zho_Hant"):
        language_token("zh", NLLB)


def test_all_tokens() -> None:
    assert language_tokens(NLLB) == ["ces_Latn", "eng_Latn", "lvs_Latn", "zho_Hans", "zho_Hant"]


def test_codes_are_codes() -> None:
    assert THREE_LETTERS["de"] == "deu"
    assert all(len(two) == 2 and len(three) == 3 for two, three in THREE_LETTERS.items())
    assert len(set(THREE_LETTERS.values())) == len(THREE_LETTERS)
