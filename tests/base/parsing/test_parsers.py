"""The parsers: link-grammar where it is installed, Stanza's interface, files of trees."""

from __future__ import annotations

import shutil
import stat
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paraforge.base.errors import InputError, MissingPackageError
from paraforge.base.parsing.brackets import template_of
from paraforge.base.parsing.parser import PARSERS, open_parser, parser_names
from paraforge.base.parsing.parsers import link_grammar

needs_link_parser = pytest.mark.skipif(
    shutil.which("link-parser") is None, reason="link-grammar is not installed: its tests need link-parser"
)


def test_the_names_that_a_parameter_may_have() -> None:
    assert tuple(parser_names()) == PARSERS


def test_no_such_parser() -> None:
    for name in ("berkeley", "file", "no/such/file.tsv"):
        with pytest.raises(InputError, match="There are link-grammar, stanza, or a file"):
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
def test_whatever_the_text_every_sentence_has_its_own_answer(texts: list[str]) -> None:
    known = "A man is riding a horse."
    found = open_parser("link-grammar").parse([known, *texts, known])
    assert len(found) == len(texts) + 2
    assert found[0] is not None
    assert found[0] == found[-1]
    assert all(tree is None or template_of(tree) for tree in found)


def _program(directory: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    """A program called link-parser that does as the body says with each line that it reads."""
    path = directory / "link-parser"
    path.write_text(
        "#!/bin/sh\n[ \"$1\" = --version ] && { echo 'Version: stand-in'; exit; }\n"
        f'while read -r line; do case "$line" in {body} esac; done\n',
        encoding="utf-8",
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{directory}:/usr/bin:/bin")


def test_a_sentence_that_kills_the_program_costs_itself_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _program(tmp_path, monkeypatch, '!*) echo width set to 16381;; bad) exit 1;; *) echo "(S $line)";;')
    parser = open_parser("link-grammar")
    assert parser.parse(["a", "bad", "b", "bad", "bad", "c"]) == ["(S a)", None, "(S b)", None, None, "(S c)"]


def test_a_program_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _program(tmp_path, monkeypatch, '!*) echo width set to 16381;; bad) sleep 60;; *) echo "(S $line)";;')
    monkeypatch.setattr(link_grammar, "_START_SECONDS", 1)
    monkeypatch.setattr(link_grammar, "_PATIENCE", 0)
    assert open_parser("link-grammar").parse(["a", "bad", "b"]) == ["(S a)", None, "(S b)"]


def test_link_grammar_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="apt-get install link-grammar"):
        open_parser("link-grammar")


def test_stanza_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "stanza", None)
    with pytest.raises(MissingPackageError, match=r"\[parse\]'"):
        open_parser("stanza")


def _fake_stanza(monkeypatch: pytest.MonkeyPatch, pipeline: Any) -> None:
    module = ModuleType("stanza")
    module.Pipeline = pipeline  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "stanza", module)


def test_stanzas_trees_belong_to_their_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in with Stanza's interface: paragraphs in, trees that print as brackets out."""

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


def test_stanza_without_models(monkeypatch: pytest.MonkeyPatch) -> None:
    def pipeline(*arguments: Any, **options: Any) -> Any:
        raise FileNotFoundError("resources.json")

    _fake_stanza(monkeypatch, pipeline)
    with pytest.raises(InputError, match="Fetch its models"):
        open_parser("stanza")


def test_a_file_of_trees(tmp_path: Path) -> None:
    path = tmp_path / "trees.tsv"
    path.write_text("I am.\t(ROOT (S (NP (PRP I)) (VP (VBP am)) (. .)))\n\nNone here.\t\n", encoding="utf-8")
    parser = open_parser(str(path))
    assert parser.parse(["None here.", "I  am. ", "other"]) == [None, "(S (NP (PRP)) (VP (VBP)) (.))", None]
    before = parser.fingerprint
    path.write_text("I am.\t(S (NP (PRP I)\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"trees.tsv:1: no bracketed tree: a bracket is not closed"):
        open_parser(str(path))
    path.write_text("fine\t(S)\nI am. (S)\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"trees.tsv:2: a sentence and its tree are expected"):
        open_parser(str(path))
    path.write_text("fine\t(S)\n", encoding="utf-8")
    assert open_parser(str(path)).fingerprint != before
