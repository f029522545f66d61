"""Bracketed trees cut to two levels; parse files, good and bad; the parser library."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from paraforge.errors import InputError, MissingPackageError
from paraforge.statistics.parameters import ParseFile
from paraforge.statistics.parses import parse_with_stanza, read_parses, top_two_levels

# The first tree is of the Penn Treebank, in the form in which NLTK's documentation shows it.
TREES = [
    (
        "( (S (NP-SBJ (NP (NNP Pierre) (NNP Vinken)) (, ,) (ADJP (NP (CD 61) (NNS years)) (JJ old)) (, ,))"
        " (VP (MD will) (VP (VB join) (NP (DT the) (NN board) ))) (. .) ))",
        "S NP VP .",
    ),
    ("(ROOT (S (NP (PRP I)) (VP (VBP am)) (. .)))", "S NP VP ."),
    ("(S (NP (PRP I)) (VP (VBP am)))", "S NP VP"),
    ("(TOP (FRAG (NP (NN Fire)) (. !)))", "FRAG NP ."),
    ("(ROOT (SBARQ (WHNP-1 (WP who)) (SQ (NP-SBJ (-NONE- *T*-1)) (VP (VBZ is)))))", "SBARQ WHNP SQ"),
    ("(S (-NONE- *) (VP (VB go)))", "S VP"),
    ("(ROOT (NP (NN word)))", "NP NN"),
    ("(ROOT (NN word))", "NN word"),
    ("(S (NP=2 (X a)) (-LRB- -LRB-) (VP|<V-NP> (V b)))", "S NP -LRB- VP"),
    # two sentences under one root: the wrapper is the root
    ("(ROOT (S (NP (A a))) (S (VP (B b))))", "ROOT S S"),
]


@pytest.mark.parametrize(("tree", "levels"), TREES)
def test_top_two_levels(tree: str, levels: str) -> None:
    assert top_two_levels(tree) == levels


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ("S NP VP", "begins with"),
        ("(S (NP a)", "not closed"),
        ("(S (NP a)) (S (NP b))", "after the tree"),
        ("(S (NP a)))", "after the tree"),
        ("", "begins with"),
    ],
)
def test_malformed_trees(tree: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        top_two_levels(tree)


def test_a_file_parallel_to_a_source(tmp_path: Path) -> None:
    path = tmp_path / "trees.txt"
    path.write_text("(S (NP a))\n\n(S (VP b))\n(broken\n", encoding="utf-8")
    files = [ParseFile(path=str(path), source="news")]
    # line 2 has no tree; line 4 is not wanted and not looked at
    assert read_parses(files, {"news": {1, 2, 3}}) == {("news", 1): "S NP", ("news", 3): "S VP"}
    with pytest.raises(InputError, match=r"trees.txt:4: no bracketed tree: a bracket is not closed"):
        read_parses(files, {"news": {4}})


def test_a_keyed_file(tmp_path: Path) -> None:
    path = tmp_path / "trees.tsv"
    path.write_text("news\t7\t(S (NP a))\nbooks\t7\t(S (VP a))\n", encoding="utf-8")
    files = [ParseFile(path=str(path))]
    assert read_parses(files, {"books": {7, 8}}) == {("books", 7): "S VP"}
    path.write_text("news\t7\t(S (NP a))\n(S (VP a))\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"trees.tsv:2: source, line number and tree are expected"):
        read_parses(files, {"news": {7}})


def test_stanza_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "stanza", None)
    with pytest.raises(MissingPackageError, match=r"paraforge\[parse\]"):
        parse_with_stanza([["a"]])


def _fake_stanza(monkeypatch: pytest.MonkeyPatch, pipeline: Any) -> None:
    module = ModuleType("stanza")
    module.Pipeline = pipeline  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "stanza", module)


def test_stanzas_trees_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in with Stanza's interface: pretokenised sentences in, trees that print as brackets out."""

    def pipeline(language: str, **options: Any) -> Any:
        assert language == "en"
        assert options["tokenize_pretokenized"]
        assert options["download_method"] is None

        def parse(sentences: list[list[str]]) -> Any:
            trees = [f"(ROOT (S {' '.join(f'(W{n} {w})' for n, w in enumerate(s))}))" for s in sentences]
            return SimpleNamespace(sentences=[SimpleNamespace(constituency=tree) for tree in trees])

        return parse

    _fake_stanza(monkeypatch, pipeline)
    assert parse_with_stanza([["a", "b"], ["c"]]) == ["S W0 W1", "S W0"]
    assert parse_with_stanza([]) == []


def test_stanza_without_models(monkeypatch: pytest.MonkeyPatch) -> None:
    def pipeline(*arguments: Any, **options: Any) -> Any:
        raise FileNotFoundError("resources.json")

    _fake_stanza(monkeypatch, pipeline)
    with pytest.raises(InputError, match="Fetch its models"):
        parse_with_stanza([["a"]])
