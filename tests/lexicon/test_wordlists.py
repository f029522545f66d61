"""Lists of word pairs in their several forms, and what is wrong with bad ones."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from paraforge.errors import InputError
from paraforge.lexicon.wordlists import read_reference_lexicon, read_similarity_list


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "text",
    [
        "word1\tword2\tPOS\tSimLex999\tconc(w1)\nold\tNew\tA\t1.58\t2.72\nsmart\tclever\tA\t9.2\t1.75\n",
        "Word 1,Word 2,Human (mean)\nold,new,1.58\nsmart,clever,9.2\n",
        "old new 1.58\nsmart clever 9.2\n",
        "\ufeffold\tnew\tA\t1.58\r\nsmart\tclever\tA\t9.2\r\n\n",
        "Word 1,Word 2,Human (mean),1,2\nold,new,1.58,1,2\nsmart,clever,9.2,9,9\n",
        '"old","new","1.58"\nsmart,"clever",9.2\n',
        "old;new;1.58\nsmart;clever;9.2\n",
    ],
    ids=[
        "SimLex-999",
        "WordSim-353",
        "MEN",
        "byte order mark and CRLF",
        "numbered judges in the header",
        "quoted",
        "semicolons",
    ],
)
def test_similarity_lists(tmp_path: Path, text: str) -> None:
    found = read_similarity_list(write(tmp_path / "list.txt", text))
    assert found.name == "list"
    assert found.pairs == [("old", "new"), ("smart", "clever")]
    assert found.scores == [1.58, 9.2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("\n\n", "the list is empty"),
        ("word1\tword2\tscore\n", "a header and no words"),
        ("old\tnew\t1.5\nsmart\t9.2\n", "list.txt:2: two words and a score in column 3"),
        ("old\tnew\t1.5\nsmart\tclever\tvery\n", "list.txt:2: the score 'very' is no number"),
        ("old\tnew\nsmart\tclever\n", "list.txt:2: two words and a score"),
        ("old\tnew\t1.5\nsmart\tclever\tnan\n", "list.txt:2: the score 'nan'"),
    ],
)
def test_malformed_similarity_lists(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_similarity_list(write(tmp_path / "list.txt", text))


def test_no_such_list(tmp_path: Path) -> None:
    for read in (read_similarity_list, read_reference_lexicon):
        with pytest.raises(InputError, match="no such file"):
            read(tmp_path / "absent")


def test_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_bytes(b"old\tnew\t1\ncaf\xe9\tbar\t2\n")
    with pytest.raises(InputError, match=r"list.txt:2: not UTF-8"):
        read_similarity_list(tmp_path / "list.txt")


PPDB = """\
[NN] ||| dog ||| hound ||| PPDB2.0Score=4.5 PPDB1.0Score=3.1 -logp(LHS|e1)=0.1 ||| 0-0 ||| Equivalence
[NN] ||| dog ||| puppy ||| PPDB2.0Score=5.0 PPDB1.0Score=3.1 ||| 0-0 ||| ForwardEntailment
[VB] ||| dog ||| hound ||| PPDB2.0Score=1.0 PPDB1.0Score=9.9 ||| 0-0 ||| Equivalence
[NN] ||| dog ||| hunting dog ||| PPDB2.0Score=6.0 ||| 0-0 ||| Equivalence
"""


def test_ppdb(tmp_path: Path) -> None:
    """Of several parts of speech the first is taken; phrases are passed over."""
    path = tmp_path / "ppdb-2.0-s-lexical.gz"
    path.write_bytes(gzip.compress(PPDB.encode()))
    found = read_reference_lexicon(path)
    assert found.scored
    assert found.scores == {("dog", "hound"): 4.5, ("dog", "puppy"): 5.0}
    assert found.paraphrases("dog") == ["puppy", "hound"]
    assert found.paraphrases("hound") == []


@pytest.mark.parametrize("separator", ["\t", " "])
def test_pair_lists_are_read_in_both_orders(tmp_path: Path, separator: str) -> None:
    text = "".join(
        f"{separator.join(pair)}\n" for pair in (("Dog", "hound"), ("dog", "dog"), ("puppy", "dog"))
    )
    found = read_reference_lexicon(write(tmp_path / "pairs.txt", text))
    assert not found.scored
    assert found.scores == {("dog", "hound"): 1.0, ("puppy", "dog"): 1.0}
    assert found.paraphrases("dog") == ["hound", "puppy"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[NN] ||| dog ||| hound\n", "ppdb:1: a PPDB entry is expected"),
        (PPDB + "[NN] ||| dog ||| cat ||| PPDB2.0Score=high |||\n", "ppdb:5: PPDB2.0Score is 'high'"),
        ("dog hound 1.0 more\n", "ppdb:1: two words"),
        ("dog\thound\tmuch\n", "ppdb:1: the score 'much' is no number"),
        ("dog\tdog\n", "no pair of words"),
    ],
)
def test_malformed_reference_lexicons(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_reference_lexicon(write(tmp_path / "ppdb", text))
