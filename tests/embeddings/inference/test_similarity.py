"""Cosines of files of pairs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from paraforge.base.errors import InputError
from paraforge.embeddings.inference import similarity
from paraforge.embeddings.inference.similarity import cosines_of_files, cosines_of_table
from tests.embeddings.trainer.test_model import make_model
from tests.here import run_command

LEFT = ["a dog", "the dog runs", "", "a"]
RIGHT = ["a dog .", "dog", "a", "the"]


def test_both_forms_give_the_models_cosines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(similarity, "_BLOCK", 3)
    model = make_model()
    expected = model.similarity(LEFT, RIGHT)
    table, left, right = tmp_path / "pairs.tsv", tmp_path / "left", tmp_path / "right"
    table.write_text("".join(f"x\t{b}\t{a}\n" for a, b in zip(LEFT, RIGHT, strict=True)))
    left.write_text("\n".join(LEFT))
    right.write_text("\n".join(RIGHT) + "\n")
    np.testing.assert_allclose(np.concatenate([*cosines_of_table(model, table, (2, 1))]), expected, atol=1e-6)
    np.testing.assert_allclose(np.concatenate([*cosines_of_files(model, left, right)]), expected, atol=1e-6)
    assert expected[2] == 0


def test_only_a_file_of_similarities_is_replaced(tmp_path: Path) -> None:
    make_model().save(tmp_path / "model")
    pairs, output = tmp_path / "pairs.tsv", tmp_path / "cosines.txt"
    pairs.write_text("a\tdog\n" * 3)
    arguments = ("similarity", tmp_path / "model", pairs, "-o", output)
    run_command(*arguments)
    written = output.read_text()
    assert len(written.splitlines()) == 3
    with pytest.raises(InputError, match="already there"):
        run_command(*arguments)
    run_command(*arguments, "--force")
    output.write_text("3.14\n")
    with pytest.raises(InputError, match="not numbers, one per line, so --force does not replace it"):
        run_command(*arguments, "--force")
    assert output.read_text() == "3.14\n" and written


def test_unequal_files_are_refused(tmp_path: Path) -> None:
    left, right = tmp_path / "left", tmp_path / "right"
    left.write_text("a\nb\n")
    right.write_text("a\n")
    with pytest.raises(InputError, match="right: has fewer lines"):
        list(cosines_of_files(make_model(), left, right))
    with pytest.raises(InputError, match="no such file"):
        list(cosines_of_table(make_model(), tmp_path / "missing"))
