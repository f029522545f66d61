"""Programs of experiments, each against what can be worked out by hand."""

import gzip
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch

from experiments import curve, differing, harder, pairs, taught, unknown
from experiments.pairs import STS_GROUPS
from experiments.under_trained import UPPER_QUARTILE, rarer_percent
from paraforge.base.files import read_json
from paraforge.base.text.pair_blocks import PairBlock
from paraforge.base.text.vocabulary import UNKNOWN, Vocabulary
from paraforge.embeddings.encoders.build import build_encoder
from paraforge.embeddings.encoders.parameters import AverageParameters
from paraforge.embeddings.trainer.model import SentenceModel
from paraforge.embeddings.unrolling.model import DecoderModel
from tests.embeddings.unrolling.corpus import random_documents
from tests.here import run_command

ANGLES = [0.0, 0.3, 0.6, 0.9, 1.2, 1.5]


def model(place: Path, angles: dict[str, float]) -> None:
    """The word `base` and others at an angle to it; unknown words have an angle of their own."""
    units = [UNKNOWN, "base", *angles]
    turned = [0.8, 0.0, *angles.values()]
    table = torch.tensor([[np.cos(angle), np.sin(angle)] for angle in turned], dtype=torch.float32)
    parameters = AverageParameters(dimension=2)
    encoder = build_encoder(parameters, lambda part, number: table, 0)
    SentenceModel(encoder, parameters, {"word": Vocabulary(units)}).save(place)


def test_the_nearer_model_and_its_unknown_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Judgements are linear in the second model's cosines, so it is always right; of the first one's words
    the last is unknown."""
    names = [f"word{number}x" for number in range(len(ANGLES))]
    model(tmp_path / "second", dict(zip(names, ANGLES, strict=True)))
    model(tmp_path / "first", dict(zip(names[:-1], ANGLES, strict=False)))
    rows = [f"{1 + 4 * np.cos(angle):.6f}\tbase\t{name}\n" for name, angle in zip(names, ANGLES, strict=True)]
    (tmp_path / "sts").mkdir()
    (tmp_path / "sts" / "2012.some.tsv").write_text("".join(rows))
    monkeypatch.setenv("PARAFORGE_DATA", str(tmp_path))
    monkeypatch.setattr(pairs, "STS_GROUPS", ("2012",))
    differing.main(tmp_path / "first", tmp_path / "second", tmp_path / "figures.json", 1.0, 1)

    figures = json.loads((tmp_path / "figures.json").read_text())["figures"]
    gold = 1 + 4 * np.cos(ANGLES)
    cosines = np.cos([*ANGLES[:-1], 0.8])
    slope, start = np.polyfit(cosines, gold, 1)
    gap = np.abs(start + slope * cosines - gold)
    assert (gap >= 1).sum() == 1 and gap[-1] >= 1
    assert figures == {
        "pairs": 6,
        "differing_percent": round(100 / 6, 2),
        "first_nearer_percent": 0.0,
        "unknown": round(100 / 12, 2),
        "tokens": 2.0,
        "second_unknown": 50.0,
        "second_tokens": 2.0,
    }
    shown = capsys.readouterr().out
    assert f"unknown: {names[-1]}" in shown and shown.count("judged") == 1


def test_words_get_the_vectors_that_are_given_and_unknown_ones_their_own(tmp_path: Path) -> None:
    model(tmp_path / "trained", {"red": 0.5})
    (tmp_path / "fitted.txt").write_text(f"3 2\n{UNKNOWN} 0 0\nred 3 4\nbase 5 6\n")
    unknown.main(tmp_path / "trained", "own", tmp_path / "own", tmp_path / "fitted.txt")
    unknown.main(tmp_path / "own", "shared", tmp_path / "shared")
    words = ["red", "base", "green", "blue"]
    own = SentenceModel.open(tmp_path / "own").encode(words)
    shared = SentenceModel.open(tmp_path / "shared").encode(words)
    assert own[:2].tolist() == shared[:2].tolist() == [[3, 4], [5, 6]]
    assert np.linalg.norm(own[2] - own[3]) > 0.1 and not shared[2:].any()
    unknown.main(tmp_path / "shared", "shared", tmp_path / "centred", centred=True)
    centred = SentenceModel.open(tmp_path / "centred").encode(words[:2])
    np.testing.assert_allclose(centred, [[1 / 3, 2 / 3], [7 / 3, 8 / 3]], rtol=1e-6)


def test_words_are_those_of_each_sentence_by_itself(tmp_path: Path) -> None:
    """Of "base. red" alone Moses' rules make two words, as an abbreviation's full stop comes before a small
    letter."""
    model(tmp_path / "words", {"red": 0.5})
    opened = SentenceModel.open(tmp_path / "words")
    lengths, unknown, names = differing._words(opened, [("base.", "red"), ("A base", "red blue.")])
    assert lengths.tolist() == [3, 5] and unknown.tolist() == [1, 3]
    assert names == [["."], ["a", "blue", "."]]


@pytest.mark.parametrize("decoder", ["bow", "gru"])
def test_a_curve_has_what_each_evaluation_found(tmp_path: Path, decoder: str) -> None:
    book = tmp_path / "book.txt"
    book.write_text("\n\n".join("\n".join(document) for document in random_documents(20)) + "\n")
    for year in ("2012", "2013", "2014"):
        rows = [f"{k % 6}\tw{k % 12} w{k % 5}\tw{(int(year) * k) % 11}\n" for k in range(20)]
        (tmp_path / f"{year}.pairs.tsv").write_text("".join(rows))
    command = [
        "train-decoders", str(book), str(tmp_path / "model"), "--word-dimension", "6", "--decoder", decoder,
        "--threads", "1", "--batch-size", "20", "--evaluate-every", "2", "--work", str(tmp_path / "work"),
    ]  # fmt: skip
    for year in ("2012", "2013", "2014"):
        command += ["--test", str(tmp_path / f"{year}.pairs.tsv")]
    run_command(*command)
    curve.main(tmp_path / "model", tmp_path / "figures.json")
    labels = json.loads((tmp_path / "figures.json").read_text())["labels"]
    history = DecoderModel.open(tmp_path / "model").about["history"]
    assert list(labels) == [f"after {entry['updates']:,} updates" for entry in history] and len(labels) > 1
    for figures, entry in zip(labels.values(), history, strict=True):
        years = entry["readings"]["context:cosine"]
        assert figures["context_cosine"] == pytest.approx(sum(years.values()) / 3, abs=0.06)
        assert figures["sentences"] == entry["triples"]
        best = {
            kind: max(figures[kind], figures[f"{kind}_cosine"])
            for kind in ("context", "unrolled", "mean")
            if kind in figures
        }
        assert ("gain" in figures) == (decoder == "gru")
        if decoder == "gru":
            gain = max(best["unrolled"], best["mean"]) - best["context"]
            assert figures["gain"] == pytest.approx(gain, abs=0.11)


class Random:
    """The text ``12L`` has a random vector, and ``12R`` one that is 60 degrees from it."""

    def encode(self, texts: list[str]) -> np.ndarray:
        drawn = np.random.default_rng(1).standard_normal((2, 4000, 20)).astype(np.float32)
        own, other = drawn / np.linalg.norm(drawn, axis=2, keepdims=True)
        other -= (own * other).sum(1, keepdims=True) * own
        other /= np.linalg.norm(other, axis=1, keepdims=True)
        sides = {"L": own, "R": 0.5 * own + np.sqrt(0.75) * other}
        return np.stack([sides[text[-1]][int(text[:-1])] for text in texts]).astype(np.float32)


def test_figures_of_known_cosines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    block = PairBlock(*(pa.array([f"{number}{side}" for number in range(4000)]) for side in "LR"))
    monkeypatch.setattr(harder, "load", lambda _: Random())
    monkeypatch.setattr(harder, "paraphrases", lambda source: iter([block] if source == "paranmt" else []))
    harder.main(tmp_path / "model", 1, tmp_path / "figures.json")
    figures = read_json(tmp_path / "figures.json")["labels"]
    assert [*figures] == ["M = 1", "M = 20", "M = 40"]
    assert {one["positive_cosine"] for one in figures.values()} == {50.0}
    # Of more vectors the nearest is nearer.
    one, twenty, forty = (figures[name]["negative_cosine"] for name in figures)
    assert 0 < one < twenty < forty < 100
    assert figures["M = 1"]["nearer_percent"] < figures["M = 40"]["nearer_percent"] == 100.0


def test_the_share_is_of_tokens() -> None:
    counts = {"the": 500, "cat": 100, "sleeps": 99}
    texts = ["the cat sleeps", "the the dog"]
    assert round(rarer_percent(texts, counts, 100), 4) == round(100 * 2 / 6, 4)
    assert round(rarer_percent(texts, counts, 1), 4) == round(100 / 6, 4)


def test_every_percentile_is_of_a_set_of_the_years() -> None:
    assert {name.split(".")[0] for name in UPPER_QUARTILE} == {"2012", "2013", "2014"} <= {*STS_GROUPS}


def test_sentences_to_learn_from_a_teacher_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each seed draws others, of the source's own, none twice: of paraphrases and of bitext's English."""
    monkeypatch.setenv("PARAFORGE_DATA", str(tmp_path))
    monkeypatch.setattr(taught, "ROWS", {"ppdb": 30, "newstest": 20})
    known = {"ppdb": [f"word{number}" for number in range(200)]}
    known["newstest"] = [f"Sentence  {number}." for number in range(100)]
    pairs_of_words = zip(known["ppdb"][::2], known["ppdb"][1::2], strict=True)
    for path, lines in (
        (pairs.FILES["ppdb"], [f"{left}\t{right}" for left, right in pairs_of_words]),
        (taught.BITEXT["newstest"], [f"set\t{text}\tVěta." for text in known["newstest"] * 2]),
    ):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        with gzip.open(tmp_path / path, "wt", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
    for source, rows in taught.ROWS.items():
        drawn = []
        for seed in (1, 2):
            taught.main(tmp_path / "drawn", seed)
            lines = (tmp_path / "drawn" / f"{source}.tsv").read_text().splitlines()
            drawn.append([text for line in lines for text in line.split("\t")])
            assert len(set(drawn[-1])) == len(drawn[-1]) == 2 * len(lines) == 2 * rows
            assert set(drawn[-1]) <= {" ".join(text.split()) for text in known[source]}
        assert set(drawn[0]) != set(drawn[1])
