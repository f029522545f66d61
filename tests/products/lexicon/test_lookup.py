"""Lookups in a lexicon, and unreadable lexicons."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from paraforge.base.errors import ConfigurationError, InputError
from paraforge.base.files import read_json, write_json
from paraforge.base.shards.resources import Resources
from paraforge.products.lexicon import extraction as module
from paraforge.products.lexicon.extraction import extract_lexicon
from paraforge.products.lexicon.lookup import Lexicon
from paraforge.products.lexicon.parameters import LexiconParameters
from tests.here import run_command
from tests.products.lexicon.corpora import write_corpus, zipf_corpus


@pytest.fixture
def lexicon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lexicon:
    """A lexicon of several files, each of several row groups."""
    monkeypatch.setattr(module, "ROWS_PER_FILE", 700)
    monkeypatch.setattr(module, "ROWS_PER_GROUP", 64)
    corpus = write_corpus(tmp_path / "corpus", zipf_corpus(400))
    parameters = LexiconParameters(minimum_pairs=1)
    place = tmp_path / "word=cat"  # no column
    extract_lexicon([corpus], place / "lexicon", parameters, Resources(workers=1, work=place / "work"))
    return Lexicon(place / "lexicon")


def whole(lexicon: Lexicon) -> Any:
    return pq.read_table(lexicon.files, partitioning=None)


def test_lookup_matches_files(lexicon: Lexicon) -> None:
    table = whole(lexicon)
    words = ["w0", "w7", "w33", "w79"]
    found = lexicon.lookup(words, limit=None)
    for word in words:
        assert found[word].num_rows > 0
        assert found[word].equals(table.filter(pc.equal(table["word"], word)))
    assert lexicon.count_of("w0") == found["w0"]["word_count"][0].as_py() > 100
    assert lexicon.lookup(["absent"])["absent"].num_rows == lexicon.count_of("absent") == 0


def test_lookup_reads_little(lexicon: Lexicon) -> None:
    """A lookup reads only row groups with the word, so it does not notice damage elsewhere."""
    right = lexicon.lookup(["w5"], limit=None)["w5"]
    damaged = 0
    for file in lexicon.files:
        content = bytearray(file.read_bytes())
        metadata = pq.read_metadata(file)
        for number in range(metadata.num_row_groups):
            column = metadata.row_group(number).column(0)
            if not column.statistics.min <= "w5" <= column.statistics.max:
                content[column.dictionary_page_offset + 4] ^= 0xFF
                damaged += 1
        file.chmod(0o644)
        file.write_bytes(content)
    assert damaged > 10
    assert lexicon.lookup(["w5"], limit=None)["w5"].equals(right)
    with pytest.raises(InputError, match="cannot be read"):
        lexicon.lookup(["w1", "w79"])


def test_lookup_limit_minimum_and_order(lexicon: Lexicon) -> None:
    best = lexicon.lookup(["W1 "], limit=5)["W1 "]
    assert best["rank"].to_pylist() == [1, 2, 3, 4, 5]
    everything = lexicon.lookup(["w1"], limit=None)["w1"].to_pylist()
    for column, value in (("pairs", everything[9]["pairs"]), ("adjusted_pmi", everything[9]["adjusted_pmi"])):
        option = {"pairs": "minimum_pairs", "adjusted_pmi": "minimum"}[column]
        found = lexicon.lookup(["w1"], limit=None, **{option: value})["w1"].to_pylist()
        assert found == [row for row in everything if row[column] >= value] != everything
    scores = [row["adjusted_pmi"] for row in everything]
    assert scores == sorted(scores, reverse=True)


def test_missing_and_damaged_lexicons(lexicon: Lexicon, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such lexicon"):
        Lexicon(tmp_path / "nowhere")
    with pytest.raises(InputError, match="not a lexicon"):
        Lexicon(tmp_path)
    manifest = read_json(lexicon.path / "lexicon.json")
    for changed, message in (
        ({**manifest, "format": 99}, r"format 99.*Upgrade"),
        ({"format": 1}, "damaged"),
        ({**manifest, "files": [{**manifest["files"][0], "rows": 1}]}, "rows, its manifest says 1"),
        ({**manifest, "files": [{**manifest["files"][0], "file": "../a"}]}, "not a plain file name"),
    ):
        write_json(lexicon.path / "lexicon.json", changed)
        with pytest.raises(InputError, match=message):
            Lexicon(lexicon.path)
    write_json(lexicon.path / "lexicon.json", {**manifest, "parameters": []})
    with pytest.raises(InputError, match=r"lexicon\.json: damaged"):
        Lexicon(lexicon.path).lookup(["a"])
    write_json(lexicon.path / "lexicon.json", manifest)
    (lexicon.path / "words.parquet").write_bytes(b"xx")
    with pytest.raises(InputError, match=r"Extract the lexicon again"):
        lexicon.count_of("w0")
    last = lexicon.files[-1]
    content = last.read_bytes()
    last.write_bytes(content[:-100])
    with pytest.raises(InputError, match="cannot be read as Parquet"):
        Lexicon(lexicon.path)
    last.unlink()
    with pytest.raises(InputError, match="no such file"):
        Lexicon(lexicon.path)


PAIRS = [
    ("he laughed at the joke", "he chuckled at the joke", 0.9),
    ("she laughed loudly", "she chuckled loudly", 0.8),
    ("a bad line", "something else", 0.1),
]


@pytest.fixture
def made(tmp_path: Path) -> Path:
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


def test_lookup_ignores_case(made: Path) -> None:
    shown = run("lookup", "laughed", *OF_A_FEW, "-l", made).stdout
    assert "in 2 sentences" in shown
    assert shown.splitlines()[2].split()[:2] == ["1", "chuckled"]


def test_word_without_paraphrases_is_explained(made: Path) -> None:
    said = run("lookup", "absent", "-l", made, expect=1).stderr
    assert "absent: not in the lexicon: it occurs in fewer than 2 sentences" in said
    said = run("lookup", "don't laugh", "-l", made, expect=1).stderr
    assert "whose entries are single tokens; look up don, 't, laugh" in said
    both = run("lookup", "laughed", "absent", *OF_A_FEW, "-l", made)
    assert "chuckled" in both.stdout and "absent: not in the lexicon" in both.stderr
    # What stands opposite each other a few times is noise, and not shown unless it is asked for.
    said = run("lookup", "laughed", "-l", made).stderr
    assert (
        "in 2 sentences, but with no word in at least 10 pairs with an adjusted PMI of at least 1.5" in said
    )


def test_lexicon_is_replaced(made: Path, tmp_path: Path) -> None:
    run("extract", tmp_path / "pairs.parquet", made, "--work", tmp_path / "work", "--force")
    (made / "lexicon.json").unlink()
    with pytest.raises(InputError, match="not written by paraforge"):
        run("extract", tmp_path / "pairs.parquet", made, "--force")


def test_lookup_mistakes(made: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"pseudo_count: .*: should be greater than 0"):
        run("extract", tmp_path / "pairs.parquet", tmp_path / "other", "--set", "pseudo_count=0")
