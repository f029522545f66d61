"""Bracketed trees: their top two levels, and what is left of them without words."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paraforge.base.parsing.brackets import fill_template, skeleton, template_of, top_two_levels

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
        ("()", "is empty"),
        ("(())", "is empty"),
        ("(S () (NP a))", "is empty"),
    ],
)
def test_malformed_trees(tree: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        template_of(tree)


def test_skeletons() -> None:
    """Trees as link-parser and the Penn treebank write them."""
    cases = {
        "(S (NP a man.n) (VP is.v (VP riding.v (NP a horse.n))) .)": "(S (NP) (VP (X) (VP (X) (NP))) (.))",
        "(ROOT (S (NP (PRP I)) (VP (VBP am)) (. .)))": "(S (NP (PRP)) (VP (VBP)) (.))",
        "(S do.v (NP you) really now (VP go) ?)": "(S (X) (NP) (X) (VP) (.))",
        '(S " {{} (NP he) , but.ij (VP said) ; "})': "(S (NP) (,) (X) (VP) (:))",
        "(S (NP-SBJ (-NONE- *)) (VP (VB go)))": "(S (NP) (VP (VB)))",
        "(S {by} {.})": "(S)",
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
def test_a_skeleton_is_the_tree_without_its_words(tree: Any) -> None:
    assert skeleton(f"(ROOT {written(tree, True)})") == written(tree, False)
    # It has lost all that can be lost, and its top is the template.
    assert skeleton(written(tree, False)) == written(tree, False)
    if tree[1] != ("word",):
        label, children = tree
        assert template_of(written(tree, True)) == f"({' '.join([label, *(f'({c[0]})' for c in children)])})"


@given(trees(), trees())
def test_a_filled_template_is_still_that_template(one: Any, other: Any) -> None:
    tree, template = written(one, False), template_of(written(one, False))
    assert fill_template(template, tree) == tree
    filled = fill_template(template, written(other, False))
    assert template_of(filled) == template
    assert skeleton(filled) == filled


def test_filling_a_template() -> None:
    assert fill_template("(S (X) (PP))", "(S (X) (PP (X) (NP)) (.))") == "(S (X) (PP (X) (NP)))"
    assert fill_template("(S (NP) (NP))", "(S (VP (X)) (NP (X)))") == "(S (NP (X)) (NP))"
    with pytest.raises(ValueError, match="not closed"):
        fill_template("(S (NP))", "(S (NP)")


@given(st.text(alphabet="() ab.\t", max_size=30))
def test_any_text_is_a_tree_or_a_value_error(text: str) -> None:
    try:
        assert re.fullmatch(r"\([^()]*( \([^()]+\))*\)", template_of(text))
    except ValueError as error:
        assert "bracket" in str(error) or "tree" in str(error)


def test_nesting_has_an_end() -> None:
    with pytest.raises(ValueError, match="200 deep"):
        skeleton("(S " * 5000 + ")" * 5000)
