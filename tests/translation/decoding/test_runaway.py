"""Loops are marked, in every engine and however they end; what people write is not."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from paraforge.corpus.selection.parameters import SelectParameters
from paraforge.intake.sample_bitext import generate
from paraforge.translation.decoding import translator
from paraforge.translation.decoding.translator import DecodingOptions, Placement, is_runaway, make_hypothesis
from paraforge.translation.engines import ENGINES, open_translator
from paraforge.translation.models.importing import usable_model


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        pytest.param([], False, id="nothing"),
        pytest.param(["a"], False, id="one token"),
        pytest.param(["a"] * 8, True, id="one token to the end"),
        pytest.param(["-"] * 8, True, id="a punctuation mark to the end"),
        pytest.param(["the", "dog"] * 8, True, id="a block of two"),
        pytest.param(["x", "y", *["a", "b", "c"] * 6], True, id="it began well"),
        pytest.param(list("abcdefgh"), False, id="all different"),
        pytest.param(list("abcdefghi") * 8, False, id="a block of nine is not a stutter"),
    ],
)
def test_at_the_cap_a_short_block_to_the_end_is_enough(tokens: list[str], expected: bool) -> None:
    assert is_runaway("", tokens, ended=False) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("a corimentmentmentment of people", True, id="letters within a word"),
        pytest.param("a man with a necktitititit", True, id="letters to the end"),
        pytest.param("SCCCCCCCCCC.", True, id="one letter"),
        pytest.param("this is not not not not not it", True, id="one word"),
        pytest.param("A man in a man in a man in a hat.", True, id="three words"),
        pytest.param("his son, his son, his son", True, id="words with commas"),
        pytest.param("Mississippi and bananas, hahaha", False, id="words that repeat letters"),
        pytest.param("No, no, no, no!", False, id="somebody says no"),
        pytest.param("It is very, very, very cold.", False, id="emphasis"),
        pytest.param("x" * 7, False, id="seven letters"),
        pytest.param("it was 10000000000000 times", False, id="zeros of a number"),
        pytest.param("=" * 60 + " Heap " + "- " * 60, False, id="lines"),
        pytest.param("", False, id="nothing"),
    ],
)
def test_loops_that_end_in_an_end_of_sentence(text: str, expected: bool) -> None:
    assert make_hypothesis(text, -0.5, text.split(), ended=True).runaway is expected


def test_tokens_that_no_word_shows() -> None:
    assert is_runaway("", ["0", "0", "1"] * 8)
    assert not is_runaway("", ["0", "0", "1"] * 7)


# That a server's answers are marked, tests/translation/engines/test_server.py sees.
@pytest.mark.parametrize("engine", [engine for engine in ENGINES if engine != "server"])
def test_every_engine_asks_the_same_function(
    engine: str, tiny_fairseq: Path, tiny_ctranslate2: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def spy(text: str, tokens: list[object], ended: bool = True) -> bool:
        asked.append(text)
        return True

    monkeypatch.setattr(translator, "is_runaway", spy)
    model = {"fairseq": tiny_fairseq, "fake": None}.get(engine, tiny_ctranslate2)
    (result,) = open_translator(engine, model, DecodingOptions(beam=2), Placement("cpu")).translate(["pes"])
    assert [hypothesis.text for hypothesis in result.hypotheses] == asked
    assert all(hypothesis.runaway for hypothesis in result.hypotheses)


def column(path: Path, number: int) -> list[str]:
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        lines = file.read().split("\n")
    return [fields[number] for line in lines if len(fields := line.split("\t")) > number]


def test_no_sentence_of_the_sample_is_marked() -> None:
    sentences = [text for pair in generate() for text in (pair.cs, pair.reference)]
    assert not [sentence for sentence in sentences if is_runaway(sentence, sentence.split())]


def test_human_sentences_are_not_marked(data_directory: Path) -> None:
    columns = {"multi30k": 0, "newstest": 1, "software": 1, "tatoeba": 1, "europarl": 0, "fishfillets": 2}
    sentences = [
        sentence
        for prefix, number in columns.items()
        for path in sorted((data_directory / "bitext").glob(f"{prefix}*"))
        for side in (number, number + 1)
        for sentence in column(path, side)
    ]
    assert len(sentences) > 250_000
    marked = [sentence for sentence in sentences if is_runaway(sentence, sentence.split())]
    assert len(marked) < len(sentences) / 10_000, marked


def test_a_model_outside_its_domain_is_marked_and_within_it_not(
    data_directory: Path, small_model_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    model = open_translator(
        "ctranslate2",
        usable_model(small_model_directory, "ctranslate2"),
        DecodingOptions(beam=1),
        Placement("cpu", threads=2),
    )

    def marked(name: str, number: int) -> tuple[int, int]:
        results = list(model.translate(column(data_directory / "bitext" / name, number)[:200]))
        best = [result.hypotheses[0] for result in results]
        return sum(one.runaway for one in best), sum(one.runaway and not one.output_truncated for one in best)

    assert marked("multi30k.test_2016_flickr.en-cs.tsv.gz", 1) == (
        2,
        2,
    )  # "speed speed speed speed speed", "ltititititi"
    everything, ended = marked("newstest2008-2023.en-cs.tsv.gz", 2)
    assert everything > 30
    assert ended > 30  # which only the end of the hypothesis had kept from being seen


@pytest.mark.parametrize("path", sorted(Path("configs/select").glob("*.yaml")), ids=lambda path: path.stem)
def test_every_shipped_selection_refuses_loops(path: Path) -> None:
    import yaml

    content = yaml.safe_load(path.read_text(encoding="utf-8"))["select"]
    flags = [
        getattr(one, "column", None)
        for one in SelectParameters.model_validate(content).filters
        if one.kind == "flag"
    ]
    assert {"runaway", "output_truncated"} <= set(flags)
