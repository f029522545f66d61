"""Unicode normalisation forms of whole columns, right with every release of Arrow."""

from __future__ import annotations

import unicodedata
from functools import cache
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

Form = Literal["NFC", "NFKC"]


@cache
def _arrow_composes() -> bool:
    """Whether Arrow composes: before release 26 its NFC and NFKC gave the decomposed forms."""
    texts = pa.array(["e\u0301", "\u00e9"], pa.string())
    return all(pc.utf8_normalize(texts, form).to_pylist() == ["\u00e9", "\u00e9"] for form in ("NFC", "NFKC"))


def normalise_unicode(texts: pa.Array | pa.ChunkedArray, form: Form) -> pa.Array | pa.ChunkedArray:
    """Each text in a normalisation form; nulls stay null."""
    if _arrow_composes():
        return pc.utf8_normalize(texts, form)
    if isinstance(texts, pa.ChunkedArray):
        return pa.chunked_array([normalise_unicode(chunk, form) for chunk in texts.chunks], texts.type)
    normal = [None if text is None else unicodedata.normalize(form, text) for text in texts.to_pylist()]
    return pa.array(normal, texts.type)
