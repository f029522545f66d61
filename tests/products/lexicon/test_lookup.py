"""Looking words up, and lexicons that cannot be read."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from paraforge.base.errors import InputError
from paraforge.base.files import read_json, write_json
from paraforge.base.shards.resources import Resources
from paraforge.products.lexicon import extraction as module
from paraforge.products.lexicon.extraction import extract_lexicon
from paraforge.products.lexicon.lookup import Lexicon
from paraforge.products.lexicon.parameters import LexiconParameters
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


def test_look_up_gives_what_the_files_hold(lexicon: Lexicon) -> None:
    table = whole(lexicon)
    words = ["w0", "w7", "w33", "w79"]
    found = lexicon.lookup(words, limit=None)
    for word in words:
        assert found[word].num_rows > 0
        assert found[word].equals(table.filter(pc.equal(table["word"], word)))


def test_a_look_up_reads_little(lexicon: Lexicon) -> None:
    """Only row groups with the word: damage elsewhere is not noticed."""
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


def test_limit_minimum_and_order(lexicon: Lexicon) -> None:
    best = lexicon.lookup(["W1 "], limit=5)["W1 "]
    assert best["rank"].to_pylist() == [1, 2, 3, 4, 5]
    everything = lexicon.lookup(["w1"], limit=None)["w1"].to_pylist()
    for column, value in (("pairs", everything[9]["pairs"]), ("adjusted_pmi", everything[9]["adjusted_pmi"])):
        option = {"pairs": "minimum_pairs", "adjusted_pmi": "minimum"}[column]
        found = lexicon.lookup(["w1"], limit=None, **{option: value})["w1"].to_pylist()
        assert found == [row for row in everything if row[column] >= value] != everything
    by_cross = lexicon.lookup(["w1"], by="cross_pmi")["w1"]["cross_pmi"].to_pylist()
    assert by_cross == sorted(by_cross, reverse=True)
    alike = lexicon.lookup(["w1"], limit=None, by="cross_pmi", minimum=by_cross[9])["w1"]
    assert alike["cross_pmi"].to_pylist() == by_cross[:10]


def test_a_word_that_is_not_there(lexicon: Lexicon) -> None:
    assert lexicon.lookup(["absent"])["absent"].num_rows == 0
    assert lexicon.count_of("absent") == 0
    assert lexicon.count_of("w0") == lexicon.lookup(["w0"])["w0"]["word_count"][0].as_py() > 100


def test_missing_and_damaged_lexicons(lexicon: Lexicon, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such lexicon"):
        Lexicon(tmp_path / "nowhere")
    with pytest.raises(InputError, match="not a lexicon"):
        Lexicon(tmp_path)
    manifest = read_json(lexicon.path / "lexicon.json")
    write_json(lexicon.path / "lexicon.json", {**manifest, "format": 99})
    with pytest.raises(InputError, match=r"format 99.*Upgrade"):
        Lexicon(lexicon.path)
    write_json(lexicon.path / "lexicon.json", {"format": 1})
    with pytest.raises(InputError, match="damaged"):
        Lexicon(lexicon.path)
    write_json(lexicon.path / "lexicon.json", manifest)
    write_json(lexicon.path / "lexicon.json", manifest | {"files": [manifest["files"][0] | {"rows": 1}]})
    with pytest.raises(InputError, match="rows, its manifest says 1"):
        Lexicon(lexicon.path)
    write_json(lexicon.path / "lexicon.json", manifest)
    last = lexicon.files[-1]
    content = last.read_bytes()
    last.write_bytes(content[:-100])
    with pytest.raises(InputError, match="cannot be read as Parquet"):
        Lexicon(lexicon.path)
    last.unlink()
    with pytest.raises(InputError, match="no such file"):
        Lexicon(lexicon.path)


def test_a_lookup_starts_without_what_it_does_not_need() -> None:
    """Compiled loops, torch, Dask and SciPy take seconds to import."""
    code = (
        "import sys, paraforge.interface.cli.lexicon, paraforge.products.lexicon.lookup; print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"numba", "torch", "dask", "distributed", "scipy", "sacremoses", "sklearn", "duckdb"}
    assert heavy.isdisjoint(done.stdout.split())
