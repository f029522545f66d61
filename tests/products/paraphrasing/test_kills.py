"""The stage paraphraser, killed where it has most to lose, ends with the bytes of a run that was not."""

import subprocess
import time
from pathlib import Path

import pytest

from tests.corpus.selection.published import publish_pairs
from tests.products.paraphrasing.test_pairs import pairs_of
from tests.products.paraphrasing.test_stage import SIDES, TREES, build
from tests.project import ROOT, digests, kill, start

# Below the stage's work directory; each appears in turn.
PLACES = (
    "pairs-*/prepared.json",
    "*/checkpoints/*",
    "*/model/model.json",
    "*/parse_generator/parts/*",
    "*/parse_generator/model/model.json",
)
RUN = """
import sys
from pathlib import Path
from tests.products.paraphrasing.test_stage import build
root, place = map(Path, sys.argv[1:])
build(root, place, templates={"parser": str(root / "trees.tsv"), "parses": "full"})
"""


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_killed_it_ends_with_the_same_bytes(tmp_path: Path) -> None:
    publish_pairs(tmp_path, rows=400)
    sentences = sorted({row[side] for row in pairs_of(tmp_path) for side in SIDES})
    trees = "".join(f"{text}\t{TREES[number % 3]}\n" for number, text in enumerate(sentences))
    (tmp_path / "trees.tsv").write_text(trees, encoding="utf-8")
    killed = 0
    for place in [*PLACES, None]:
        process = start(
            "python", "-c", RUN, str(tmp_path), str(tmp_path / "killed"), cwd=ROOT, stderr=subprocess.DEVNULL
        )
        while process.poll() is None:
            if place and any((tmp_path / "killed" / "work" / "paraphraser").glob(place)):
                kill(process)  # and the training process
                killed += 1
            time.sleep(0.02)
        assert place or process.returncode == 0
    assert killed == len(PLACES)
    build(tmp_path, tmp_path / "whole", templates={"parser": str(tmp_path / "trees.tsv"), "parses": "full"})
    assert digests(tmp_path / "killed" / "model") == digests(tmp_path / "whole" / "model")
