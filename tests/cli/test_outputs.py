"""What --force replaces, and what it does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.cli.outputs import check_output_directory
from pipeline.errors import InputError


def test_only_a_directory_of_the_commands_own_kind_is_replaced(tmp_path: Path) -> None:
    output = tmp_path / "model"
    check_output_directory(output, False, ["encoder.json"])
    output.mkdir()
    with pytest.raises(InputError, match="already there"):
        check_output_directory(output, False, ["encoder.json"])
    check_output_directory(output, True, ["encoder.json"])
    (output / "thesis.tex").write_text("years of work")
    with pytest.raises(InputError, match="something else"):
        check_output_directory(output, True, ["encoder.json", "modules.json"])
    (output / "modules.json").write_text("{}")
    check_output_directory(output, True, ["encoder.json", "modules.json"])
    with pytest.raises(InputError, match="something else"):
        check_output_directory(output / "thesis.tex", True, ["encoder.json"])
