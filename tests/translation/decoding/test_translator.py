"""Options and flags of translations; runaway hypotheses and length limits."""

import dataclasses
import gzip
import logging
import math
import shutil
from pathlib import Path

import pytest

from paraforge.corpus.selection.parameters import SelectParameters
from paraforge.translation.decoding import translator
from paraforge.translation.decoding.pieces import SentencePieces, limited_options, positions_of
from paraforge.translation.decoding.translator import (
    DecodingOptions,
    Hypotheses,
    Placement,
    is_runaway,
    make_hypothesis,
)
from paraforge.translation.engines import ENGINES, open_translator
from paraforge.translation.models.model import open_model
from tests.sample import generate
from tests.translation.engines.tiny_models import gains
from tests.translation.models.tiny import write_model, write_tiny_fairseq


@pytest.mark.parametrize(
    ("text", "score", "tokens", "flags"),
    [
        ("a dog", -0.5, ["▁a", "▁dog"], (3, False, False, False, False)),  # end-of-sentence counts
        (" ", -1.0, ["▁"], (2, False, False, False, True)),
        *(("a", score, ["▁a"], (2, False, False, True, False)) for score in (math.nan, math.inf, -math.inf)),
    ],
)
def test_hypothesis_flags(text: str, score: float, tokens: list[str], flags: tuple[object, ...]) -> None:
    found = make_hypothesis(text, score, tokens, ended=True)
    assert (found.tokens, found.output_truncated, found.runaway, found.non_finite, found.empty) == flags
    assert found.score == score if math.isfinite(score) else math.isnan(found.score)


@pytest.mark.parametrize(
    "wrong",
    [
        *({"nbest": 13}, {"nbest": 0}, {"beam": 0}, {"compute_type": "bfloat16x"}),
        *({"maximum_source_tokens": 1}, {"maximum_target_tokens": 1}),
    ],
)
def test_invalid_decoding_options_are_error(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        DecodingOptions.model_validate(wrong)


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
        pytest.param(list("abcdd"), False, id="the last two of five"),
        pytest.param(list("abcdefghi") * 8, False, id="a block of nine is not a stutter"),
    ],
)
def test_short_repeated_block_at_cap_is_a_loop(tokens: list[str], expected: bool) -> None:
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
def test_loops_ending_in_end_of_sentence(text: str, expected: bool) -> None:
    assert make_hypothesis(text, -0.5, text.split(), ended=True).runaway is expected
    assert is_runaway("", ["0", "0", "1"] * 8)  # tokens that no word shows
    assert not is_runaway("", ["0", "0", "1"] * 7)


# That a server's answers are marked, tests/translation/engines/test_server.py sees.
@pytest.mark.parametrize("engine", [engine for engine in ENGINES if engine != "server"])
def test_engines_share_loop_detection(engine: str, tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def spy(text: str, tokens: list[object], ended: bool = True) -> bool:
        asked.append(text)
        return True

    monkeypatch.setattr(translator, "is_runaway", spy)
    model = None if engine == "fake" else tiny_model
    settings = {"name": "ours"} if engine == "imported" else {}
    opened = open_translator(engine, model, DecodingOptions(beam=2), Placement("cpu"), settings)
    (result,) = opened.translate(["pes"])
    assert [hypothesis.text for hypothesis in result.hypotheses] == asked
    assert all(hypothesis.runaway for hypothesis in result.hypotheses)


def column(path: Path, number: int) -> list[str]:
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        lines = file.read().split("\n")
    return [fields[number] for line in lines if len(fields := line.split("\t")) > number]


def test_sample_sentences_are_not_marked_as_loops() -> None:
    sentences = [text for pair in generate() for text in (pair.cs, pair.reference)]
    assert not [sentence for sentence in sentences if is_runaway(sentence, sentence.split())]


@pytest.mark.full
def test_human_sentences_are_not_marked_as_loops(data_directory: Path) -> None:
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


@pytest.mark.parametrize("path", sorted(Path("configs/select").glob("*.yaml")), ids=lambda path: path.stem)
def test_shipped_selections_reject_loops(path: Path) -> None:

    from paraforge.interface.configuration.composition import compose

    content = compose(Path("configs"), [f"select={path.stem}"])["select"]
    flags = [
        getattr(rule, "column", None)
        for rule in SelectParameters.model_validate(content).filters
        if rule.kind == "flag"
    ]
    assert {"runaway", "output_truncated"} <= set(flags)


POSITIONS = 64  # of the tiny model
SENTENCES = ["pes " * 62, "pes " * 63, "pes " * 64, "pes " * 200, "kočka pes " * 70]


@pytest.fixture(scope="module")
def untrained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A barely trained model that does not know when to end."""
    folder = write_tiny_fairseq(tmp_path_factory.mktemp("untrained"), updates=1)
    return write_model(folder, folder.with_name("untrained-model"))


def run(engine: str, model: Path, options: DecodingOptions) -> list[Hypotheses]:
    return list(open_translator(engine, model, options, Placement("cpu")).translate(SENTENCES))


@pytest.fixture(scope="module")
def expected(untrained: Path) -> list[Hypotheses]:
    """What fairseq gives."""
    return run("fairseq", untrained, DecodingOptions(beam=2))


@pytest.mark.parametrize("engine", ["fairseq", "ctranslate2", "torch"])
def test_long_source_is_cut_and_marked(engine: str, untrained: Path, expected: list[Hypotheses]) -> None:
    # At most 1,024 and 256.
    found = expected if engine == "fairseq" else run(engine, untrained, DecodingOptions(beam=2))
    assert [result.failed for result in found] == [None] * len(SENTENCES)
    assert [result.source_truncated for result in found] == [False, False, True, True, True]
    # Engines agree with what fairseq can do: 63 tokens, then the end that it forces.
    assert all(result.hypotheses[0].output_truncated for result in found)
    assert {result.hypotheses[0].tokens for result in found} == {POSITIONS - 1}
    assert found[1].hypotheses == found[2].hypotheses == found[3].hypotheses
    more = gains(engine, untrained, SENTENCES)
    for first, second, gain in zip(found, expected, more, strict=True):
        best = first.hypotheses[0]
        assert best.text == second.hypotheses[0].text
        assert best.score == pytest.approx(second.hypotheses[0].score + gain / best.tokens, abs=1e-5)


def test_smaller_limit_is_used_and_logged_once(untrained: Path, caplog: pytest.LogCaptureFixture) -> None:
    options = DecodingOptions(beam=2)
    silent = dataclasses.replace(open_model(untrained), maximum_source_tokens=1024)
    with caplog.at_level(logging.INFO, "paraforge.translation.decoding.pieces"):
        chosen = limited_options(options, silent)
    assert chosen.maximum_source_tokens == POSITIONS
    assert chosen.maximum_target_tokens == POSITIONS - 1
    assert [record.getMessage() for record in caplog.records] == [
        "maximum_source_tokens is 64 instead of 1024: the model has 64 positions for a source",
        "maximum_target_tokens is 63 instead of 256: the model has 64 positions for a target",
    ]
    caplog.clear()
    # What a worker opens is what was chosen, and nobody says it again.
    open_translator("ctranslate2", silent, chosen, Placement("cpu"))
    assert not caplog.records
    smaller = options.with_changes(maximum_source_tokens=20, maximum_target_tokens=10)
    assert limited_options(smaller, silent) == smaller
    longest = options.with_changes(maximum_source_tokens=POSITIONS, maximum_target_tokens=POSITIONS)
    assert limited_options(longest, silent) == chosen
    # A model that says how long its sources are keeps its keys.
    found = limited_options(DecodingOptions(maximum_target_tokens=40), open_model(untrained))
    assert found == DecodingOptions(maximum_target_tokens=40)


def test_tags_count_as_source_tokens(tiny_model: Path) -> None:
    affixes = {"source_prefix": ("__cs__",), "source_suffix": ("</s>", "__en__")}
    model = dataclasses.replace(open_model(tiny_model), **affixes)
    pieces = SentencePieces(model, DecodingOptions(maximum_source_tokens=10))
    fits, cut = pieces.encode(["pes " * 6, "pes " * 7])  # and the end of the sentence
    assert (fits.truncated, cut.truncated) == (False, True)
    assert fits.tokens == cut.tokens == ["__cs__", *["▁pes"] * 6, "</s>", "__en__"]
    (least,) = SentencePieces(model, DecodingOptions(maximum_source_tokens=3)).encode(["pes " * 6])
    assert least.tokens == ["__cs__", "▁pes", "</s>", "__en__"]


def test_missing_position_embeddings(tmp_path: Path, untrained: Path) -> None:
    assert positions_of(untrained / "ctranslate2") == (POSITIONS, POSITIONS)
    begins = Path(shutil.copytree(untrained / "ctranslate2", tmp_path / "begins"))
    (begins / "config.json").write_text('{"add_source_bos": true}', encoding="utf-8")
    assert positions_of(begins) == (POSITIONS - 1, POSITIONS)  # the engine adds the start of a source
    (tmp_path / "model.bin").write_bytes(b"of another format")
    assert positions_of(tmp_path) == (None, None)
    model = dataclasses.replace(open_model(untrained), folders={"fairseq": untrained / "fairseq"})
    assert limited_options(DecodingOptions(), model) == DecodingOptions()
