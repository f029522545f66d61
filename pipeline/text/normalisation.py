"""Text as near-duplicate and decontamination look-ups compare it: letters and digits alone, lower-cased."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from paraforge.text.unicode_forms import normalise_unicode


def normalise(texts: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Reduce texts to their words: NFKC, lower case, every run of other characters one space.

    ``"It’s  5 o'clock!"`` gives ``"it s 5 o clock"``. Nulls stay null; a text without a letter or digit
    gives ``""``.
    """
    lowered = pc.utf8_lower(normalise_unicode(texts, "NFKC"))
    # Combining marks belong to their letter where NFKC has no composed form.
    words = pc.replace_substring_regex(lowered, pattern=r"[^\pL\pN\pM]+", replacement=" ")
    return pc.utf8_trim_whitespace(words)
