"""PPDB and lists of pairs in their several forms, and what is wrong with bad ones."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from paraforge.base.errors import InputError
from paraforge.products.lexicon.reference_lexicon import read_reference_lexicon


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


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


def test_no_such_list(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_reference_lexicon(tmp_path / "absent")
