"""What is imported: kinds of places, and what is no model at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from paraforge.errors import InputError
from paraforge.models.importing import import_model


def test_what_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such model"):
        import_model(tmp_path / "missing", tmp_path / "nmt")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="not a model that can be imported"):
        import_model(tmp_path / "empty", tmp_path / "nmt")
    (tmp_path / "text.txt").touch()
    with pytest.raises(InputError, match="not a model that can be imported"):
        import_model(tmp_path / "text.txt", tmp_path / "nmt")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "text.txt"]


def test_tags_are_not_given_to_a_model_of_our_own(tiny_fairseq: Path, tmp_path: Path) -> None:
    import_model(tiny_fairseq, tmp_path / "nmt")
    with pytest.raises(InputError, match="it has its tags already"):
        import_model(tmp_path / "nmt", tmp_path / "other", affixes={"source_prefix": ["x"]})
