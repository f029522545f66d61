"""Variants of fine-tuning, from the options to the table."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paraforge.base.errors import ConfigurationError, InputError
from paraforge.embeddings.evaluation.comparing import pearson, spearman
from paraforge.papers.transfer.evaluate import TransferScore, held_out_examples
from paraforge.papers.transfer.fine_tuning import Variant, fine_tune_transfer, make_variants, task_splits
from paraforge.papers.transfer.tasks import Examples, Task
from paraforge.papers.transfer.training import FineTuningParameters, Fitted, Split, held_out_pairs
from tests.papers.test_commands import run
from tests.papers.transfer.models import WORDS, make_model, related, sentiment

LABELS = np.arange(400) % 2


def test_folds_hold_out_every_example_once() -> None:
    examples = sentiment(60, 1)
    texts = [f"{number} {text}" for number, text in enumerate(examples.first)]
    numbered = Examples(texts, None, examples.labels)
    splits = task_splits(Task("x", "classification", numbered), seed=4, folds=5)
    assert len(splits) == 5
    assert sorted(text for split in splits for text in split.test.first) == sorted(numbered.first)
    for split in splits:
        parts = [set(split.train.first), set(split.development.first), set(split.test.first)]
        assert sum(map(len, parts)) == len(set().union(*parts)) == 60
        assert len(parts[1]) == pytest.approx(0.1 * 48, abs=1)
    assert splits == task_splits(Task("x", "classification", numbered), seed=4, folds=5)
    assert splits != task_splits(Task("x", "classification", numbered), seed=5, folds=5)


@pytest.mark.parametrize(
    "draw", [held_out_pairs, lambda count, seed: held_out_examples(LABELS[:count], seed)]
)
def test_development_examples_are_drawn_by_the_seed(draw: Callable[[int, int], Any]) -> None:
    first, again, other = (draw(200, seed)[1].tolist() for seed in (1, 1, 2))
    assert first == again != other


def test_provided_split_is_used() -> None:
    train, development, test = related(50, 1), related(10, 2), related(20, 3)
    (split,) = task_splits(Task("x", "relatedness", train, development, test, "test"), 1, 10)
    assert (split.train, split.development, split.test) == (train, development, test)
    (split,) = task_splits(Task("x", "relatedness", train, None, test, "test"), 1, 10)
    assert len(split.train) == 45
    assert len(split.development) == 5
    assert split.train == train.select(held_out_pairs(50, 1)[0])
    assert split.test == test
    given, found = (set(zip(one.first, one.second, one.labels, strict=True)) for one in (train, split.train))
    assert found <= given


def test_too_few_examples() -> None:
    task = Task("x", "classification", Examples(list("xxyy"), None, list("xxyy")))
    with pytest.raises(InputError, match="every class has a single example"):
        task_splits(task, 1, 10)


@pytest.mark.parametrize("labels", ["xxy", "xxyyz", "x" * 40 + "y"])
def test_only_example_of_class_is_trained_on(labels: str) -> None:
    examples = Examples(list(map(str, range(len(labels)))), None, list(labels))
    for seed in range(20):
        (split,) = task_splits(Task("x", "classification", examples, None, examples, "test"), seed, 10)
        assert set(split.train.labels) == set(labels)
        assert sorted(split.train.first + split.development.first) == sorted(examples.first)


def test_variants() -> None:
    assert [variant.name for variant in make_variants()] == ["fine-tuned"]
    changes = {"learning_rate": ["0.01", "0.02"], "epochs": ["3"]}
    variants = make_variants(["trained", "random"], [1e-3, 1e-4], changes)
    assert [variant.name for variant in variants] == ["fine-tuned", "fine-tuned, L2", "from random"]
    plain, penalized, random = variants
    assert [candidate.learning_rate for candidate in plain.candidates] == [0.01, 0.02]
    assert [candidate.lambda_words for candidate in penalized.candidates] == [1e-3, 1e-3, 1e-4, 1e-4]
    assert all(item.lambda_words == item.lambda_composition for item in penalized.candidates)
    assert {candidate.start for candidate in random.candidates} == {"random"}
    assert [variant.name for variant in make_variants(["random", "random"])] == ["from random"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["other"],), "start: 'other': should be 'trained' or 'random'"),
        ((["trained"], [-1.0]), "lambda_words: -1.0"),
        ((["trained"], [], {"rate": ["1"]}), "rate: there is no such parameter"),
        ((["trained"], [], {"epochs": ["many"]}), "epochs: 'many'"),
    ],
)
def test_invalid_variants(arguments: tuple[list[str]], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        make_variants(*arguments)


@pytest.mark.full
def test_scores_of_all_variants() -> None:
    settings = FineTuningParameters(learning_rate=0.02, epochs=12)
    variants = [
        Variant("fine-tuned", (settings,)),
        Variant("slow", (settings.model_copy(update={"learning_rate": 1e-7, "epochs": 1}),)),
    ]
    tasks = [
        Task("MR", "classification", sentiment(480, 1)),
        Task("SICK-R", "relatedness", related(200, 1), None, related(60, 2), "trial"),
    ]
    scores = fine_tune_transfer(make_model(), tasks, variants, seed=3, folds=3)
    assert [(score.name, score.training) for score in scores] == [
        (task.name, variant.name) for task in tasks for variant in variants
    ]
    good, bad, related_good, related_bad = scores
    assert good.accuracy > 85 > 70 > bad.accuracy
    assert (good.tested_on, len(good.chosen)) == ("3-fold cross-validation", 3)
    assert good.train == good.test == 480
    assert related_good.pearson > related_bad.pearson
    assert related_good.accuracy is None
    assert (related_good.tested_on, related_good.test, len(related_good.chosen)) == ("trial", 60, 1)
    assert good.chosen[0]["learning_rate"] == 0.02
    assert 1 <= good.chosen[0]["epoch"] <= 12
    assert scores == fine_tune_transfer(make_model(), tasks, variants, seed=3, folds=3)


def test_score_is_mean_over_seeded_folds(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds: list[int] = []

    def fitted(model: object, split: Split, candidates: Sequence[FineTuningParameters], seed: int) -> Fitted:
        seeds.append(seed)
        guessed = np.arange(len(split.test)) ** 3 if split.kind == "relatedness" else np.array("good")
        return Fitted(candidates[0], 50.0, len(seeds), guessed, model)

    monkeypatch.setattr("paraforge.papers.transfer.fine_tuning.fine_tune", fitted)
    examples, test = sentiment(60, 1), related(9, 2)
    tasks = [
        Task("MR", "classification", examples),
        Task("SICK-R", "relatedness", related(20, 1), None, test, "test"),
    ]
    variants = [Variant("fine-tuned", (FineTuningParameters(epochs=4),))]
    first, second = fine_tune_transfer(make_model(), tasks, variants, 7, 3)
    assert seeds == [7, 8, 9, 7]
    assert first.accuracy == pytest.approx(100 * examples.labels.count("good") / 60)
    assert first.chosen == [{"epochs": 4, "epoch": n, "development_score": 50.0} for n in (1, 2, 3)]
    gold, guessed = np.array(test.labels, dtype=np.float64), np.arange(9) ** 3
    assert (second.pearson, second.spearman) == (pearson(gold, guessed), spearman(gold, guessed))


def test_undefined_development_score_is_none() -> None:
    """Constant judgments have no correlation, and JSON has no -Infinity."""
    alike = related(10, 2)
    development = Examples(alike.first, alike.second, ["3"] * 10)
    task = Task("SICK-R", "relatedness", related(20, 1), development, related(30, 3), "test")
    variants = [Variant("fine-tuned", (FineTuningParameters(epochs=2),))]
    (score,) = fine_tune_transfer(make_model(), [task], variants, 1)
    assert score.chosen == [{"epochs": 2, "epoch": 2, "development_score": None}]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "transfer").mkdir()
    for name, examples in (("MR", sentiment(120, 1)), ("CR", sentiment(60, 2))):
        rows = zip(examples.labels, examples.first, strict=True)
        (tmp_path / "transfer" / f"{name}.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in rows))
    for name, examples in (("train", related(80, 1)), ("trial", related(40, 2))):
        lines = ["relatedness_score\tsentence_A\tsentence_B\tentailment_judgment"]
        for score, first, second in zip(examples.labels, examples.first, examples.second or [], strict=True):
            lines.append(f"{score}\t{first}\t{second}\t{'yes' if float(score) > 3 else 'no'}")
        (tmp_path / "transfer" / f"SICK_{name}.txt").write_text("\n".join(lines) + "\n")
    make_model().save(tmp_path / "model")
    (tmp_path / "vectors.txt").write_text("".join(f"{word} {n} 1\n" for n, word in enumerate(WORDS)))
    return tmp_path


@pytest.mark.full
def test_fine_tuning_options_table_and_json(place: Path) -> None:
    output = run(
        *("evaluate", place / "model", "--transfer", place / "transfer", "--task", "MR", "--task", "SICK-R"),
        *("--task", "SICK-E", "--folds", "2", "--fine-tune", "--fine-tune-from", "trained"),
        *("--fine-tune-from", "random", "--fine-tune-penalty", "1e-6", "--fine-tune-penalty", "1e-5"),
        *("--set", "learning_rate=0.02,0.001", "--set", "epochs=2"),
        *("--output", place / "scores.json"),
    )
    content = json.loads((place / "scores.json").read_text())["transfer"]
    assert content["missing"] == []  # of the tasks that were asked for
    names = ["fixed", "fine-tuned", "fine-tuned, L2", "from random"]
    for task in ("MR", "SICK-R", "SICK-E"):
        found = [item for item in content["tasks"] if item["name"] == task]
        assert [item["training"] for item in found] == names
        measure = "pearson" if task == "SICK-R" else "accuracy"
        (line,) = (line for line in output.split("\n") if line.startswith(task))
        assert " ".join(f"{item[measure]:.1f}" for item in found) in " ".join(line.split())
        assert found[0]["chosen"] == []
        assert found[2]["chosen"][0]["lambda_words"] in (1e-6, 1e-5)
        assert found[3]["chosen"][0]["start"] == "random"
    assert "2-fold cross-validation" in output
    assert "fine-tuned, L2" in output
    (place / "transfer" / "TREC.train.tsv").write_text("malformed\n")
    (place / "transfer" / "TREC.test.tsv").write_text("malformed\n")  # and not asked for
    fixed = run("evaluate", place / "model", "--transfer", place / "transfer", "--task", "MR", "--folds", "2")
    assert "fine-tuned" not in fixed
    assert "CR" not in fixed


def test_requested_seed_and_folds_are_used(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = []

    def noted(*arguments: Any) -> list[TransferScore]:
        given.append(arguments[-2:])
        return []

    monkeypatch.setattr("paraforge.papers.transfer.fine_tuning.fine_tune_transfer", noted)
    monkeypatch.setattr("paraforge.papers.evaluation.evaluate_transfer", noted)
    for more in ([], ["--fine-tune"]):
        asked = ("--transfer", place / "transfer", "--seed", "5", "--folds", "3")
        run("evaluate", place / "model", *asked, *more)
    assert given == [(5, 3)] * 3  # fixed; fixed and trained


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--fine-tune-penalty", "0.1"], "need --fine-tune"),
        (
            ["--fine-tune", "--fine-tune-from", "random", "--fine-tune-penalty", "0.1"],
            "needs --fine-tune-from trained",
        ),
        (["--set", "epochs=2"], "need --fine-tune"),
        (["--fine-tune", "--set", "epochs"], "KEY=VALUE,... is expected"),
        (["--fine-tune", "--set", "patience=2"], "patience: there is no such parameter"),
        (["--task", "SST"], "--task SST: use MR, CR"),
    ],
)
def test_invalid_options_of_command(place: Path, arguments: list[str], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        run("evaluate", place / "model", "--transfer", place / "transfer", *arguments)


def test_models_without_encoder_cannot_be_fine_tuned(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("sif", place / "vectors.txt", place / "sif", "--weights", "none")
    monkeypatch.setattr("paraforge.papers.evaluation.evaluate", lambda *_, **__: pytest.fail("in vain"))
    with pytest.raises(ConfigurationError, match=r"has no encoder to train.*--components 0"):
        run("evaluate", place / "sif", "--transfer", place / "transfer", "--sts", place, "--fine-tune")
    (place / "decoders").mkdir()
    (place / "decoders" / "decoders.json").touch()
    with pytest.raises(ConfigurationError, match=r"decoders@context are decoders, which have no encoder"):
        run("evaluate", place / "decoders@context", "--transfer", place / "transfer", "--fine-tune")
    with pytest.raises(ConfigurationError, match="--task and --fine-tune need --transfer"):
        run("evaluate", place / "model", "--sts", place / "transfer", "--fine-tune")
    with pytest.raises(InputError, match="no transfer task here"):
        run("evaluate", place / "model", "--transfer", place / "transfer", "--task", "TREC")


def test_smooth_inverse_frequency_with_a_learned_projection(place: Path) -> None:
    """Arora 2017, Table 2, trains a projection of fixed vectors. Then the vectors are trained as well."""
    (place / "counts.txt").write_text("".join(f"{word} {3 * n + 1}\n" for n, word in enumerate(WORDS)))
    run("sif", place / "vectors.txt", place / "sif", "--counts", place / "counts.txt", "--components", "0")
    for encoder in ("fixed", "trained"):
        run(
            *("evaluate", place / "sif", "--transfer", place / "transfer", "--task", "SICK-R", "--fine-tune"),
            *("--set", f"encoder={encoder}", "--set", "projection=7", "--set", "epochs=2"),
            *("-o", place / f"{encoder}.json"),
        )
    fixed, trained = (
        [task["pearson"] for task in json.loads((place / f"{name}.json").read_text())["transfer"]["tasks"]]
        for name in ("fixed", "trained")
    )
    assert fixed[0] == trained[0]  # logistic regression and the like, on the vectors as they are
    assert fixed[1] != trained[1]
