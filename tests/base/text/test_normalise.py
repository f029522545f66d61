"""Words of texts: the fast way of ASCII gives what Arrow's regular expressions give, whatever the array.
Normalisation forms are those of Python's own tables, whatever Arrow does."""

import unicodedata
from collections.abc import Iterator
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from paraforge.base.text import normalisation
from paraforge.base.text.normalisation import Form, normalise, normalise_unicode

BYTES = st.text(st.characters(max_codepoint=127), max_size=12)
TEXTS = st.lists(st.one_of(st.none(), BYTES, BYTES, st.text(max_size=8)), max_size=30)
FORMS = ["e\u0301", "\u00e9", "Prilis\u030c", "\ufb01ne", "plain", "", None]


@example(texts=["a", " ", "", "  b. C  ", "...", "\x00x\x7f", "É's  ﬁne", None], first=0)
@given(texts=TEXTS, first=st.integers(0, 5))
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
@pytest.mark.parametrize("chunked", [False, True])
def test_both_ways_agree(kind: Any, chunked: bool, texts: list[str | None], first: int) -> None:
    array = pa.array(texts, kind).slice(min(first, len(texts)))
    slow = normalisation._words(array)
    given_array = pa.chunked_array([array, array[:3], array], kind) if chunked else array
    with mock.patch.object(normalisation, "_FEW", 0):
        fast = normalise(given_array)
    expected = pa.chunked_array([slow, slow[:3], slow], kind) if chunked else slow
    assert fast.equals(expected)
    fast.validate(full=True)
    assert normalise(given_array).equals(expected)


def test_an_example() -> None:
    texts = ["It’s  5 o'clock!", "ÉTÉ, 2½", None, "—"] * 500
    assert normalise(pa.array(texts)).to_pylist() == ["it s 5 o clock", "été 21 2", None, ""] * 500


@pytest.fixture(params=[True, False], ids=["as it is", "as before release 26"])
def _arrow(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if not request.param:
        monkeypatch.setattr(normalisation, "_arrow_composes", lambda: False)
    yield


@pytest.mark.usefixtures("_arrow")
@pytest.mark.parametrize("form", ["NFC", "NFKC"])
def test_forms(form: Form) -> None:
    wanted = [None if text is None else unicodedata.normalize(form, text) for text in FORMS]
    array = pa.array(FORMS, pa.string())
    assert normalise_unicode(array, form).to_pylist() == wanted
    assert normalise_unicode(pa.chunked_array([array, array]), form).to_pylist() == wanted * 2
