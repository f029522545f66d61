"""Language codes in all their forms."""

import pytest

from paraforge.base.text.language_codes import MEMBERS, THREE_LETTERS, two_letters


def test_codes_are_codes() -> None:
    assert THREE_LETTERS["de"] == "deu"
    assert all(len(two) == 2 and len(three) == 3 for two, three in THREE_LETTERS.items())
    assert len(set(THREE_LETTERS.values())) == len(THREE_LETTERS)
    assert set(MEMBERS) <= set(THREE_LETTERS.values())


def test_language_forms_map_to_codes() -> None:
    for two, three in THREE_LETTERS.items():
        own = {two, three, MEMBERS.get(three, three) if three != "nor" else three}
        tagged = [f"{code}{region}" for code in own for region in ("", "_Latn", "-XX", "_XX")]
        around = [form.format(code) for code in own for form in ("__{}__", ">>{}<<", "<2{}>")]
        for written in [*tagged, *around]:
            assert two_letters(written) == two_letters(written.upper()) == two, written


@pytest.mark.parametrize(
    ("written", "code"),
    [("iw", "he"), (" en ", "en"), ("xx", "xx"), *((other, None) for other in ("yue", "English", "a|b", ""))],
)
def test_others(written: str, code: str | None) -> None:
    assert two_letters(written) == code
