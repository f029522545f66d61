"""Parsers: link-grammar if it is installed, Stanza's interface, and files of bracketed trees."""

import re
import shutil
import stat
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paraforge.base.errors import InputError, MissingPackageError
from paraforge.base.parsing.brackets import skeleton, template_of, top_two_levels
from paraforge.base.parsing.parser import describe_parser, open_parser
from paraforge.base.parsing.parsers import link_grammar

needs_link_parser = pytest.mark.skipif(
    shutil.which("link-parser") is None, reason="link-grammar is not installed: its tests need link-parser"
)


def test_no_such_parser() -> None:
    for name in ("berkeley", "file", "no/such/file.tsv"):
        with pytest.raises(InputError, match=r"Use .*link-grammar, stanza, or a file"):
            open_parser(name)


@needs_link_parser
def test_link_grammar() -> None:
    sentences = {
        "A man is riding a horse.": "(S (NP) (VP) (.))",
        "Do you like it?": "(S (X) (NP) (VP) (.))",
        "": None,
        # commands and comments of link-parser's are sentences here
        "!help": "(S (VP))",
        "%": "(S)",
        "word " * 101: None,
    }
    parser = open_parser("link-grammar")
    found = parser.parse(list(sentences))
    assert [tree and template_of(tree) for tree in found] == list(sentences.values())
    # a sentence's tree depends on nothing around it
    assert parser.parse(list(sentences)[:2]) == found[:2]


@needs_link_parser
@settings(max_examples=5)
@given(st.lists(st.text(max_size=25), min_size=1, max_size=4))
def test_every_sentence_gets_its_own_tree(texts: list[str]) -> None:
    known = "A man is riding a horse."
    found = open_parser("link-grammar").parse([known, *texts, known])
    assert len(found) == len(texts) + 2
    assert found[0] is not None
    assert found[0] == found[-1]
    assert all(tree is None or template_of(tree) for tree in found)


def _program(directory: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    """Write a program called link-parser that runs the body for each line that it reads."""
    path = directory / "link-parser"
    path.write_text(
        "#!/bin/sh\n[ \"$1\" = --version ] && { echo 'Version: stand-in'; exit; }\n"
        f'while read -r line; do case "$line" in {body} esac; done\n',
        encoding="utf-8",
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{directory}:/usr/bin:/bin")


@pytest.mark.parametrize("at_once", [4, 200])
def test_crash_or_long_sentence_loses_only_that_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    _program(tmp_path, monkeypatch, '!*) echo width set to 16381;; bad) exit 1;; *) echo "(S $line)";;')
    monkeypatch.setattr(link_grammar, "SENTENCES_AT_ONCE", at_once)
    longest = "a " * 99 + "a"
    found = open_parser("link-grammar").parse(["a", "bad", longest, f"{longest} a", "bad", "bad", "c"])
    assert found == ["(S a)", None, f"(S {longest})", None, None, None, "(S c)"]
    assert re.match("stand-in.*; constituency parses", describe_parser("link-grammar"))
    _program(tmp_path, monkeypatch, "!*) echo width set to 16381;;")
    with pytest.raises(InputError, match="link-grammar cannot parse"):
        describe_parser("link-grammar")


def test_hanging_parser_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _program(tmp_path, monkeypatch, '!*) echo width set to 16381;; bad) sleep 60;; *) echo "(S $line)";;')
    monkeypatch.setattr(link_grammar, "_START_SECONDS", 1)
    monkeypatch.setattr(link_grammar, "_PATIENCE", 0)
    assert open_parser("link-grammar").parse(["a", "bad", "b"]) == ["(S a)", None, "(S b)"]


def test_link_grammar_is_not_installed_or_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="apt-get install link-grammar"):
        open_parser("link-grammar")
    _program(tmp_path, monkeypatch, "*) ;;")
    parser = open_parser("link-grammar")
    for name, value in (("MAXIMUM_WORDS", 99), ("_OPTIONS", {"limit": 1})):
        with monkeypatch.context() as changed:
            changed.setattr(link_grammar, name, value)
            assert open_parser("link-grammar").fingerprint != parser.fingerprint
    (tmp_path / "link-parser").write_bytes(b"\x7fELF")
    for use in (lambda: open_parser("link-grammar"), lambda: parser.parse(["a"])):
        with pytest.raises(InputError, match=r"link-parser cannot be run: .*apt-get install link-grammar"):
            use()


def _fake_stanza(monkeypatch: pytest.MonkeyPatch, pipeline: Any) -> None:
    module = ModuleType("stanza")
    module.Pipeline = pipeline  # type: ignore[attr-defined]  # a module made here
    monkeypatch.setitem(sys.modules, "stanza", module)


def test_stanza_trees_match_their_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in replaces Stanza: it takes paragraphs and returns trees that print as brackets."""

    def pipeline(language: str, **options: Any) -> Any:
        assert language == "en"
        assert options["tokenize_no_ssplit"]
        assert options["download_method"] is None

        def parse(text: str) -> Any:
            trees = [f"(ROOT (S (W {line})))" for line in text.split("\n\n")]
            return SimpleNamespace(sentences=[SimpleNamespace(constituency=tree) for tree in trees])

        return parse

    _fake_stanza(monkeypatch, pipeline)
    parser = open_parser("stanza")
    assert parser.parse(["a\nb", " ", "c"]) == ["(ROOT (S (W a b)))", None, "(ROOT (S (W c)))"]
    assert parser.parse([""]) == [None]
    sys.modules["stanza"].__version__ = "9"  # type: ignore[attr-defined]  # a module made here
    assert open_parser("stanza").fingerprint != parser.fingerprint


def test_stanza_without_models_or_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    _fake_stanza(monkeypatch, Mock(side_effect=FileNotFoundError("resources.json")))
    with pytest.raises(InputError, match="Download its models"):
        open_parser("stanza")
    monkeypatch.setitem(sys.modules, "stanza", None)
    with pytest.raises(MissingPackageError, match=r"\[parse\]'"):
        open_parser("stanza")


def test_a_file_of_trees(tmp_path: Path) -> None:
    path = tmp_path / "trees.tsv"
    path.write_text("I am.\t(ROOT (S (NP (PRP I)) (VP (VBP am)) (. .)))\n\nNone here.\t\n", encoding="utf-8")
    parser = open_parser(str(path))
    assert parser.parse(["None here.", "I  am. ", "other"]) == [None, "(S (NP (PRP)) (VP (VBP)) (.))", None]
    before = parser.fingerprint
    path.write_text("I am.\t(S (NP (PRP I)\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"trees.tsv:1: not a bracketed tree: a bracket is not closed"):
        open_parser(str(path))
    path.write_text("fine\t(S)\nI am. (S)\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"trees.tsv:2: expected a sentence, a tab and its tree"):
        open_parser(str(path))
    path.write_text("fine\t(S)\n", encoding="utf-8")
    assert open_parser(str(path)).fingerprint != before


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
    ("(ROOT word)", "ROOT word"),
    ("(S (NP=2 (X a)) (-LRB- -LRB-) (VP|<V-NP> (V b)))", "S NP -LRB- VP"),
    ("(S1 (S (NP (A a))))", "S NP"),
    ("(VROOT (TOP (S (NP (A a)))))", "S NP"),
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
        ("()", "is empty"),
        ("(())", "is empty"),
        ("(S () (NP a))", "is empty"),
    ],
)
def test_malformed_trees(tree: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        template_of(tree)


def test_skeletons() -> None:
    """The trees are in the formats of link-parser and of the Penn Treebank."""
    cases = {
        "(S (NP a man.n) (VP is.v (VP riding.v (NP a horse.n))) .)": "(S (NP) (VP (X) (VP (X) (NP))) (.))",
        "(ROOT (S (NP (PRP I)) (VP (VBP am)) (. .)))": "(S (NP (PRP)) (VP (VBP)) (.))",
        "(S do.v (NP you) really now (VP go) ?)": "(S (X) (NP) (X) (VP) (.))",
        '(S " {{} (NP he) , but.ij (VP said) ; "})': "(S (NP) (,) (X) (VP) (:))",
        "(S (NP-SBJ (-NONE- *)) (VP (VB go)))": "(S (NP) (VP (VB)))",
        "(S {by} {.})": "(S)",
        "(S (A a) \u2026 ; - (A a) \u2013 \u2014 !)": "(S (A) (.) (:) (:) (A) (:) (:) (.))",
        "(ROOT (NP a) (VP b))": "(ROOT (NP) (VP))",  # two phrases without a sentence
    }
    assert {tree: skeleton(tree) for tree in cases} == cases
    assert template_of(next(iter(cases))) == "(S (NP) (VP) (.))"


def trees() -> st.SearchStrategy[Any]:
    labels = st.sampled_from(["S", "NP", "VP", "."])
    return st.recursive(
        st.tuples(labels, st.just(("word",))),
        lambda inner: st.tuples(labels, st.lists(inner, min_size=1, max_size=3).map(tuple)),
        max_leaves=12,
    )


def written(tree: Any, words: bool) -> str:
    label, children = tree
    if children == ("word",):
        return f"({label} word)" if words else f"({label})"
    return f"({' '.join([label, *(written(child, words) for child in children)])})"


@given(trees())
def test_skeleton_is_tree_without_words(tree: Any) -> None:
    assert skeleton(f"(ROOT {written(tree, True)})") == written(tree, False)
    # It has lost all that can be lost, and its top is the template.
    assert skeleton(written(tree, False)) == written(tree, False)
    if tree[1] != ("word",):
        label, children = tree
        assert template_of(written(tree, True)) == f"({' '.join([label, *(f'({c[0]})' for c in children)])})"


@given(st.text(alphabet="() ab.\t", max_size=30))
def test_any_text_parses_or_raises_value_error(text: str) -> None:
    try:
        assert re.fullmatch(r"\([^()]*( \([^()]+\))*\)", template_of(text))
    except ValueError as error:
        assert "bracket" in str(error) or "tree" in str(error)


def test_nesting_depth_is_limited() -> None:
    assert skeleton("(S " * 200 + ")" * 200).count("(") == 200
    for depth in (201, 5000):
        with pytest.raises(ValueError, match="200 deep"):
            skeleton("(S " * depth + ")" * depth)
