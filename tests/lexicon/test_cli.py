"""``paraforge lexicon`` as a user types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from paraforge.cli.lexicon import app
from paraforge.errors import ConfigurationError, InputError

PAIRS = [
    ("he laughed at the joke", "he chuckled at the joke", 0.9),
    ("she laughed loudly", "she chuckled loudly", 0.8),
    ("a bad line", "something else", 0.1),
]


@pytest.fixture
def lexicon(tmp_path: Path) -> Path:
    """A lexicon extracted from a text file by the command line."""
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{a}\t{b}\t{score}\n" for a, b, score in PAIRS), encoding="utf-8")
    output = tmp_path / "lexicon"
    arguments = ["extract", str(path), str(output), "--minimum-pairs", "2", "--work", str(tmp_path / "work")]
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    assert "from 2 of 3 pairs (left out: score 1)" in result.stdout
    return output


def run(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def test_lookup(lexicon: Path) -> None:
    code, shown, _ = run("lookup", "laughed", "-l", lexicon)
    assert code == 0
    assert "in 2 sentences" in shown
    assert shown.splitlines()[2].split()[:2] == ["1", "chuckled"]


def test_lookup_as_json(lexicon: Path) -> None:
    _, shown, _ = run("lookup", "laughed", "-l", lexicon, "--json")
    answer = json.loads(shown)
    assert answer["word"] == "laughed"
    assert answer["paraphrases"][0]["paraphrase"] == "chuckled"


def test_a_word_without_paraphrases_says_why(lexicon: Path) -> None:
    code, _, said = run("lookup", "absent", "-l", lexicon)
    assert code == 1
    assert "absent: not in the lexicon: in fewer than 2 sentences" in said
    code, _, said = run("lookup", "laughed", "absent", "-l", lexicon)
    assert code == 0
    code, _, said = run("lookup", "laughed", "-l", lexicon, "--minimum-pairs", 5)
    assert code == 1
    assert "in 2 sentences, but no other word is opposite it in 5 pairs" in said


def test_compare(lexicon: Path, tmp_path: Path) -> None:
    ppdb = tmp_path / "ppdb.txt"
    ppdb.write_text("laughed\tchuckled\nlaughed\tgiggled\n", encoding="utf-8")
    code, shown, _ = run("compare", lexicon, ppdb, "-w", "laughed", "--minimum-pairs", 1)
    assert code == 0
    assert "ppdb.txt: chuckled, giggled" in shown
    assert "has 2 pairs; the lexicon knows both words of 1, and has 1 as entries" in shown


def test_evaluate(lexicon: Path, tmp_path: Path) -> None:
    words = tmp_path / "list.txt"
    words.write_text("laughed chuckled 9\nhe joke 2\nover under 1\n", encoding="utf-8")
    code, shown, _ = run("evaluate", lexicon, "-w", words, "--json")
    assert code == 0
    assert json.loads(shown)["list"]["found"] == 1
    assert "adjusted_pmi (1 found)" in run("evaluate", lexicon, "-w", words)[1]


def test_only_a_lexicon_is_replaced(lexicon: Path, tmp_path: Path) -> None:
    arguments = ("extract", tmp_path / "pairs.tsv", lexicon, "--work", tmp_path / "work")
    with pytest.raises(InputError, match="already there"):
        run(*arguments)
    assert run(*arguments, "--force")[0] == 0
    thesis = lexicon / "thesis.tex"
    thesis.write_text("years of work", encoding="utf-8")
    with pytest.raises(InputError, match=r"thesis\.tex was put into it"):
        run(*arguments, "--force")
    (lexicon / "lexicon.json").unlink()
    with pytest.raises(InputError, match="not a lexicon"):
        run(*arguments, "--force")
    assert thesis.read_text(encoding="utf-8") == "years of work"


def test_mistakes(lexicon: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="already there"):
        run("extract", tmp_path / "pairs.tsv", lexicon)
    with pytest.raises(ConfigurationError, match="--smoothing magic"):
        run("extract", tmp_path / "pairs.tsv", tmp_path / "other", "--smoothing", "magic")
