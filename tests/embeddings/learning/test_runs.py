"""A finished training is used again as long as its report and its model are what was trained."""

from pathlib import Path
from typing import Any

import pytest

from paraforge.base.files import write_json
from paraforge.embeddings.learning.runs import MODEL, run_once


@pytest.mark.parametrize("damaged", [None, f"{MODEL}/weights", f"{MODEL}/sha256.json", "report.json"])
def test_what_was_damaged_is_trained_again(tmp_path: Path, damaged: str | None) -> None:
    trained: list[Path] = []

    def train(directory: Path) -> dict[str, Any]:
        trained.append(directory)
        (directory / MODEL).mkdir(parents=True, exist_ok=True)
        (directory / MODEL / "weights").write_bytes(b"weights")
        (directory / "pairs").mkdir(exist_ok=True)
        write_json(directory / "pairs" / "index.json", {})
        return {"pairs": 7}

    def run() -> dict[str, Any]:
        output = tmp_path / "models" / "out"
        report = run_once(
            "kind", "key", tmp_path / "work", output, train=train, open_model=Path, scratch=["pairs"]
        )
        assert (output / "weights").read_bytes() == b"weights"
        return report

    assert run() == run() == {"pairs": 7} and len(trained) == 1
    assert not (trained[0] / "pairs").exists()
    if damaged is not None:
        path = trained[0] / damaged
        content = path.read_bytes()
        path.unlink()  # the output may be a link to it
        path.write_bytes(content[:-3] + b"xyz")
    assert run() == {"pairs": 7} and len(trained) == 1 + (damaged is not None)
