"""Commands of `python -m experiments.programs`."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.programs import app, words_of
from paraforge.base.errors import ConfigurationError, InputError
from paraforge.embeddings.evaluation.averages import WordAverage, fit_sif
from paraforge.embeddings.evaluation.sets import read_sets
from paraforge.embeddings.evaluation.sts import evaluate_sts
from paraforge.papers.evaluation import evaluate_for_papers as evaluate
from paraforge.papers.evaluation import open_model
from tests.embeddings.evaluation.test_averages import COUNTS, table
from tests.embeddings.evaluation.test_evaluate import write_sets_and_models
from tests.here import run_command
from tests.products.test_loading import save_word_model

DEVELOPMENT = "4\tcat sits\tthe cat sits\n0\tcat\truns .\n3\tdog runs\tcat runs\n"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    write_sets_and_models(tmp_path)
    (tmp_path / "sts" / "dev.tsv").write_text(DEVELOPMENT)
    (tmp_path / "transfer").mkdir()
    rows = [f"{number % 2}\t{'the dog runs' if number % 2 else 'a cat sits'}\n" for number in range(40)]
    (tmp_path / "transfer" / "MR.tsv").write_text("".join(rows))
    (tmp_path / "counts.txt").write_text("".join(f"{word} {count}\n" for word, count in COUNTS.items()))
    return tmp_path


def run(*arguments: str | Path) -> str:
    return str(run_command(*arguments, app=app).output)


def test_all_evaluations_at_once(place: Path) -> None:
    output = run(
        *("evaluate", place / "model", "--sts", place / "sts", "--similarity", place / "words.csv"),
        *("--transfer", place / "transfer", "--by-length", "--baseline", "tfidf", "--baseline", "jaccard"),
        *("--output", place / "scores.json"),
    )
    content = json.loads((place / "scores.json").read_text())
    assert [item["name"] for item in content["sets"]] == ["2012.a", "2012.b", "dev"]
    assert list(content["beside"]) == ["tfidf", "jaccard"]
    assert list(content["differences"]) == ["tfidf", "jaccard"]
    assert {"words", "by_length"} <= content.keys()
    (task,) = content["transfer"]["tasks"]
    assert (task["name"], task["accuracy"], task["train"]) == ("MR", 100, 40)
    assert "TREC" in content["transfer"]["missing"]
    for text in ("2012.a", "mean of", "tfidf", "Spearman", "missing tasks: CR", "mean absolute difference"):
        assert text in output


def test_errors(place: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        evaluate("jaccard", open_model, transfer=[place / "none"], lengths=True, beside=["tfidf"])
    assert len(caught.value.problems) == 1
    with pytest.raises(ConfigurationError, match="only compares pairs"):
        evaluate("jaccard", open_model, transfer=[place / "transfer"])
    with (place / "sts" / "2012.b.tsv").open("a") as file:
        file.write("five\ta\tb\n")
    with pytest.raises(InputError, match=r"2012\.b\.tsv:4: the score 'five' is not a number"):
        evaluate("jaccard", open_model, sts=[place / "sts"])


@pytest.mark.parametrize(
    "arguments", [("evaluate", "x", "--seed", 1 << 32), ("train-decoders", "x", "y", "--threads", -1)]
)
def test_numbers_out_of_range_are_refused(arguments: tuple[object, ...]) -> None:
    assert "Invalid value for" in run_command(*arguments, app=app, expect=2).output


def test_sif_per_set_and_fitted(place: Path) -> None:
    said = run("sif", place / "vectors", place / "each", "--counts", place / "counts.txt")
    assert "1 component(s) of each set removed" in said
    run("sif", place / "vectors", place / "fit", "--counts", place / "counts.txt", "--fit", place / "sts")
    run("sif", place / "model", place / "idf", "--weights", "idf", "--fit", place / "sts")
    run("sif", place / "vectors", place / "w", "--counts", place / "counts.txt", "--components", "0")
    run("sif", place / "vectors", place / "r", "--weights", "none")
    sets = read_sets([place / "sts"])
    figures = {
        name: [score.pearson for score in evaluate_sts(open_model(str(place / name)).model, sets).sets]
        for name in ("each", "fit", "idf", "w", "r", "vectors")
    }
    assert len({tuple(values) for values in figures.values()}) == 6
    description = json.loads((place / "fit" / "sif.json").read_text())
    assert description["about"]["sentences"] == 20
    assert description["about"]["vectors_fingerprint"] == table(True).fingerprint


def test_texts_that_sif_is_fitted_on(place: Path) -> None:
    lines = place / "lines.txt"
    lines.write_text("the dog runs\na cat sits\n")

    def fitted(*files: Path, components: int = 1) -> Any:
        return fit_sif(table(True), None, files, "none", 1e-3, components)

    of_lines, about = fitted(lines)
    assert about["sentences"] == 2
    expected = WordAverage(table(True)).fitted_to(["the dog runs", "a cat sits"])
    np.testing.assert_array_equal(of_lines.components, expected.components)
    assert fitted(place / "sts" / "dev.tsv")[1]["sentences"] == 6
    assert fitted(components=2)[0].of_each_set == 2
    with pytest.raises(InputError, match="99 components cannot be removed"):
        fitted(lines, components=99)
    (place / "empty.txt").write_text("\n")
    with pytest.raises(InputError, match="empty"):
        fitted(place / "empty.txt")


@pytest.mark.parametrize("weights", ["sif", "idf", "tf"])
def test_weights_need_counts_or_sentences(place: Path, weights: str) -> None:
    with pytest.raises(ConfigurationError, match=f"--weights {weights}: use sif with --counts"):
        run("sif", place / "vectors", place / "w", "--weights", weights)


def test_evaluation_of_external_word_vectors(tmp_path: Path, place: Path) -> None:
    save_word_model(tmp_path / "trigrams", "trigram")
    for name in ("general", str(tmp_path / "trigrams")):
        with pytest.raises(InputError, match="not the mean of its words"):
            words_of(Path(name))
    trained = open_model(str(place / "model")).model
    plain = WordAverage(words_of(place / "model"))
    np.testing.assert_allclose(plain.encode(["a dog"]), trained.encode(["a dog"]), atol=1e-6)


@pytest.mark.parametrize("options", [["--components", "0"], ["--fit", "sts"]])
def test_punctuation_counts_are_completed_with_warning(
    place: Path, options: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    """The warning appears with any fit. If there are sentences, no mark weighs 1 for lack of a count."""
    name = f"bare-{'-'.join(options)}.txt".replace("/", "")
    (place / name).write_text("the 60\na 30\ndog 3\n")
    fit = [place / part if part == "sts" else part for part in options]
    run("sif", place / "vectors", place / "sif", "--counts", place / name, *fit)
    run("evaluate", place / "sif", "--sts", place / "sts")
    assert any(name in message and "no count" in message for message in caplog.messages)
    opened = open_model(str(place / "sif")).model
    if "--fit" in options:
        assert isinstance(opened, WordAverage) and opened.weighting is not None
        assert opened.weighting.weights(["."])[0] < 0.5
