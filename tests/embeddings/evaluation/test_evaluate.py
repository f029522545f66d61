"""`paraforge evaluate`: figures, tables, errors, and no torch where it is not needed."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from paraforge.base.errors import ConfigurationError, InputError
from paraforge.embeddings.evaluation.evaluate import evaluate
from paraforge.embeddings.evaluation.sets import read_sets
from paraforge.embeddings.evaluation.sts import evaluate_sts
from paraforge.products.loading import open_model
from tests.embeddings.evaluation.test_averages import table
from tests.here import run_command
from tests.products.test_loading import save_word_model

SETS = {
    "2012.a.tsv": "5\tThe dog runs.\tA dog runs.\n1\tthe cat\tdog sits\n3\ta dog\ta cat\n\tx\ty\n",
    "2012.b.tsv": "4\tcat sits\tthe cat sits\n0\tcat\truns .\n2\tdog runs\tcat runs\n",
}


def write_sets_and_models(place: Path) -> None:
    (place / "sts").mkdir()
    for name, text in SETS.items():
        (place / "sts" / name).write_text(text)
    (place / "words.csv").write_text("word1,word2,score\ndog,cat,7\ncat,sits,2\ndog,gnu,1\n")
    table(True).save(place / "vectors")
    save_word_model(place / "model")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    write_sets_and_models(tmp_path)
    return tmp_path


def test_all_evaluations_at_once(place: Path) -> None:
    output = run_command(
        *("evaluate", place / "model", "--sts", place / "sts", "--similarity", place / "words.csv"),
        *("--by-length", "--baseline", "general", "--baseline", place / "vectors"),
        *("-o", place / "scores.json"),
    ).output
    content = json.loads((place / "scores.json").read_text())
    sets = read_sets([place / "sts"])
    ours, theirs = (evaluate_sts(open_model(str(place / name)).model, sets) for name in ("model", "vectors"))
    assert [(item["name"], item["unscored"]) for item in content["sets"]] == [("2012.a", 1), ("2012.b", 0)]
    assert content["sets"][0]["pearson"] == pytest.approx(ours.sets[0].pearson, abs=1e-4)
    assert content["years"][0]["pearson"] == pytest.approx(ours.groups[0].pearson, abs=1e-4)
    assert list(content["beside"]) == ["general", str(place / "vectors")]
    differences = [abs(a.pearson - b.pearson) for a, b in zip(ours.sets, theirs.sets, strict=True)]
    found = content["differences"][str(place / "vectors")]
    assert found["mean_absolute_pearson"] == pytest.approx(np.mean(differences), abs=1e-4)
    assert content["words"]["words"]["found"] == 2
    assert sum(item["pairs"] for item in content["by_length"]) == 6
    for text in ("2012.a", "mean of", "general", "Spearman", "mean absolute difference"):
        assert text in output


def test_errors(place: Path) -> None:
    with pytest.raises(ConfigurationError, match="nothing to evaluate on"):
        evaluate("general", open_model)
    with pytest.raises(ConfigurationError) as caught:
        evaluate("general", open_model, word_lists=[place / "words.csv"], lengths=True, beside=["general"])
    assert len(caught.value.problems) == 2
    with pytest.raises(ConfigurationError, match="gives words no vectors"):
        evaluate("general", open_model, word_lists=[place / "words.csv"])
    with pytest.raises(InputError, match="no such model"):
        evaluate(str(place / "none"), open_model, sts=[place / "sts"])


@pytest.mark.full
def test_sentence_pairs_are_evaluated_without_torch(place: Path) -> None:
    """Importing torch takes seconds, and word vectors do not need it."""
    arguments = ["evaluate", str(place / "vectors"), "--sts", str(place / "sts")]
    code = (
        "import sys; from paraforge.interface.cli import app; "
        f"app({arguments!r}, standalone_mode=False); print('torch' in sys.modules, 'sklearn' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False False"
