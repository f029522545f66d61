"""Normalisation forms are those of Python's own tables, whatever Arrow does."""

import unicodedata
from collections.abc import Iterator

import pyarrow as pa
import pytest

from paraforge.base.text import normalisation
from paraforge.base.text.normalisation import Form, normalise_unicode

TEXTS = ["e\u0301", "\u00e9", "Prilis\u030c", "\ufb01ne", "plain", "", None]


@pytest.fixture(params=[True, False], ids=["as it is", "as before release 26"])
def _arrow(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if not request.param:
        monkeypatch.setattr(normalisation, "_arrow_composes", lambda: False)
    yield


@pytest.mark.usefixtures("_arrow")
@pytest.mark.parametrize("form", ["NFC", "NFKC"])
def test_forms(form: Form) -> None:
    wanted = [None if text is None else unicodedata.normalize(form, text) for text in TEXTS]
    array = pa.array(TEXTS, pa.string())
    assert normalise_unicode(array, form).to_pylist() == wanted
    assert normalise_unicode(pa.chunked_array([array, array]), form).to_pylist() == wanted * 2
