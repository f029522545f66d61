"""The history of a training of decoders as figures of a table."""

import json
from pathlib import Path

import pytest

from experiments import curve
from paraforge.embeddings.unrolling.model import DecoderModel
from tests.embeddings.unrolling.corpus import random_documents
from tests.here import run_command


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
