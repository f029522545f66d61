"""``paraforge lexicon`` as a user types it."""

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paraforge.base.errors import ConfigurationError, InputError
from tests.here import run_command

PAIRS = [
    ("he laughed at the joke", "he chuckled at the joke", 0.9),
    ("she laughed loudly", "she chuckled loudly", 0.8),
    ("a bad line", "something else", 0.1),
]


@pytest.fixture
def lexicon(tmp_path: Path) -> Path:
    """A lexicon extracted from a Parquet file by the command line."""
    path = tmp_path / "pairs.parquet"
    names = ("reference", "translation", "paraphrase_score")
    pq.write_table(pa.table(dict(zip(names, zip(*PAIRS, strict=True), strict=True))), path)
    output = tmp_path / "lexicon"
    said = run("extract", path, output, "--set", "minimum_pairs=2", "--work", tmp_path / "work").stdout
    assert "from 2 of 3 pairs (left out: score 1)" in said
    return output


# Scores of three pairs are small, and their smoothing is most of them.
OF_A_FEW = ("--minimum-pairs", 1, "--minimum-pmi", 0)


def run(*arguments: object, expect: int = 0) -> Any:
    return run_command("lexicon", *arguments, expect=expect)


def test_lookup(lexicon: Path) -> None:
    shown = run("lookup", "laughed", *OF_A_FEW, "-l", lexicon).stdout
    assert "in 2 sentences" in shown
    assert shown.splitlines()[2].split()[:2] == ["1", "chuckled"]
    shown = run("lookup", "laughed", *OF_A_FEW, "-l", lexicon, "--json").stdout
    answer = json.loads(shown)
    assert answer["word"] == "laughed"
    assert answer["paraphrases"][0]["paraphrase"] == "chuckled"


def test_a_word_without_paraphrases_says_why(lexicon: Path) -> None:
    said = run("lookup", "absent", "-l", lexicon, expect=1).stderr
    assert "absent: not in the lexicon: it occurs in fewer than 2 sentences" in said
    both = run("lookup", "laughed", "absent", *OF_A_FEW, "-l", lexicon)
    assert "chuckled" in both.stdout and "absent: not in the lexicon" in both.stderr
    said = run("lookup", "laughed", "-l", lexicon, "--minimum-pairs", 5).stderr
    assert "in 2 sentences, but no word is on the other side in 5 pairs" in said
    # What stands opposite each other a few times is noise, and not shown unless it is asked for.
    said = run("lookup", "laughed", "-l", lexicon).stderr
    assert "in 10 pairs; --minimum-pairs 1 shows rarer entries" in said


def test_what_stands_side_by_side_as_often_is_shown_when_it_is_asked_for(lexicon: Path) -> None:
    asked = ("lookup", "laughed", "-l", lexicon, "--minimum-pairs", 1)
    assert "chuckled" in run(*asked, "--minimum-pmi", 9, "--by-cross").stdout
    said = run(*asked, "--minimum-pmi", 9).stderr
    found = re.search(r"(--minimum-pmi) (-?[\d.]+) shows 'chuckled'", said)
    assert found, said
    assert "chuckled" in run(*asked, *found.groups()).stdout


def test_a_lexicon_is_replaced(lexicon: Path, tmp_path: Path) -> None:
    run("extract", tmp_path / "pairs.parquet", lexicon, "--work", tmp_path / "work", "--force")
    (lexicon / "lexicon.json").unlink()
    with pytest.raises(InputError, match="not written by paraforge"):
        run("extract", tmp_path / "pairs.parquet", lexicon, "--force")


def test_mistakes(lexicon: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"pseudo_count: .*: should be greater than 0"):
        run("extract", tmp_path / "pairs.parquet", tmp_path / "other", "--set", "pseudo_count=0")
