"""Keys of texts."""

from __future__ import annotations

import pyarrow as pa
import pytest

from paraforge.base.shards.keys import text_keys


def test_known_values() -> None:
    # XXH3-128 of the empty input with seed 0, from the algorithm's own test vectors.
    assert [f"{half:016x}" for half in text_keys(pa.array([""]))[0]] == [
        "99aa06d3014798d8",
        "6001c324468d497f",
    ]


def test_equal_texts_have_equal_keys_and_other_texts_others() -> None:
    keys = text_keys(pa.array(["a", "ab", "a", "á"]), pa.array(["bc", "c", "bc", "bc"]))
    assert keys[0].tolist() == keys[2].tolist()
    assert len({tuple(key) for key in keys.tolist()}) == 3


def test_slices_and_chunks_do_not_matter() -> None:
    texts = pa.chunked_array([["x", "y"], ["z"]])
    whole = text_keys(pa.array(["x", "y", "z"]))
    assert (text_keys(texts) == whole).all()
    assert (text_keys(pa.array(["w", "x", "y", "z"]).slice(1)) == whole).all()


def test_no_rows() -> None:
    assert text_keys(pa.array([], pa.string())).shape == (0, 2)


def test_a_null_has_no_key() -> None:
    with pytest.raises(ValueError, match="null"):
        text_keys(pa.array(["a", None]))
