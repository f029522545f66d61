"""Transfer tasks: files, classification, relatedness, and reproducibility."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from paraforge.base.errors import ConfigurationError, InputError
from paraforge.embeddings.evaluation.comparing import Model, OpenedModel, pearson, spearman
from paraforge.embeddings.evaluation.evaluate import Evaluation
from paraforge.embeddings.learning.loop import Trainer
from paraforge.papers.evaluation import PairMetric, PaperEvaluation, evaluate_for_papers, jaccard, open_model
from paraforge.papers.transfer import evaluate as module
from paraforge.papers.transfer import training
from paraforge.papers.transfer.evaluate import (
    TransferScore,
    do_task,
    evaluate_transfer,
    features,
    fixed_embedder,
)
from paraforge.papers.transfer.tasks import TASKS, Examples, Task, find_tasks, read_pairs, read_texts
from paraforge.papers.transfer.training import expected_score, relatedness


class Numbers(Model):
    """Embeds texts of numbers by themselves."""

    def vectors_of(self, column: Any) -> npt.NDArray[np.float32]:
        return np.array([[*map(float, text.split())] for text in column.to_pylist()], dtype=np.float32)


def as_texts(numbers: npt.NDArray[np.float64]) -> list[str]:
    """Each row as a text."""
    return [" ".join(map(str, row)) for row in numbers.tolist()]


def texts(count: int, seed: int) -> tuple[list[str], npt.NDArray[np.float64]]:
    numbers = np.random.default_rng(seed).standard_normal((count, 4)).round(3)
    return as_texts(numbers), numbers


def labeled(count: int, seed: int, classes: int) -> Examples:
    """Three classes lie along the first number, two on either side of a plane."""
    found, numbers = texts(count, seed)
    side = numbers[:, 0] + numbers[:, 1] if classes == 2 else numbers[:, 0] * 1.5
    bounds = [0.0] if classes == 2 else [-0.6, 0.6]
    return Examples(found, None, [str(np.searchsorted(bounds, value)) for value in side])


class Moved(Numbers):
    """Of another mean and scale, which a classifier must not notice."""

    def vectors_of(self, column: Any) -> npt.NDArray[np.float32]:
        return 5 + super().vectors_of(column) / 10


@pytest.mark.parametrize("classes", [2, 3])
def test_separable_classes(classes: int) -> None:
    train, test = labeled(300, 1, classes), labeled(100, 2, classes)
    task = Task("x", "classification", train, None, test, "test")
    score = do_task(Moved(), task)
    assert score.accuracy >= 94
    assert do_task(Moved(), task) == score
    assert (score.train, score.test, score.pearson) == (300, 100, None)
    with_development = Task("x", "classification", train, labeled(60, 3, classes), test, "test")
    assert do_task(Moved(), with_development).accuracy >= 94


def test_cross_validation(monkeypatch: pytest.MonkeyPatch) -> None:
    examples = labeled(200, 1, 2)
    task = Task("x", "classification", examples)
    predict, seeds = module.predicted_on_test, list[int]()
    monkeypatch.setattr(
        module, "predicted_on_test", lambda *given: (seeds.append(given[-1]), predict(*given))[1]
    )
    score = do_task(Numbers(), task, seed=3)
    assert seeds == list(range(4, 14))  # each fold draws its development examples anew
    assert score.accuracy >= 90
    assert do_task(Numbers(), task, seed=3) == score
    assert score.tested_on == "10-fold cross-validation"
    shuffled = np.random.default_rng(1).permutation(examples.labels).tolist()
    guessed = do_task(Numbers(), Task("x", "classification", Examples(examples.first, None, shuffled)))
    assert 30 < guessed.accuracy < 70


def test_folds_do_not_train_on_test_examples() -> None:
    """A classifier can memorize vectors of 40 random numbers, but they say nothing about other examples."""
    drawn = np.random.default_rng(2)
    numbers = as_texts(drawn.standard_normal((80, 40)).round(3))
    examples = Examples(numbers, None, drawn.permutation(["a", "b"] * 40).tolist())
    assert do_task(Numbers(), Task("x", "classification", examples), folds=4).accuracy < 70


@pytest.mark.parametrize("development", [0, 6])
def test_final_classifier_uses_all_examples(monkeypatch: pytest.MonkeyPatch, development: int) -> None:
    """The other classifiers are evaluated on the development examples, or on a tenth of the training
    examples.
    """
    sizes = []

    def noted(train: module.Labeled, test: npt.NDArray[np.float32], penalty: float) -> module.Labels:
        sizes.append((len(train[1]), len(test)))
        return np.full(len(test), "a")

    monkeypatch.setattr(module, "_predict", noted)
    vectors, labels = np.zeros((40, 2), np.float32), np.array(["a", "b"] * 20)
    judging = (vectors[:development], labels[:development]) if development else None
    module.predicted_on_test((vectors, labels), judging, vectors, 1)
    assert sizes == [(40, development) if development else (36, 4)] * len(module.PENALTIES) + [(40, 40)]


def test_model_adapts_only_to_training_texts() -> None:
    given = []

    class Adapting(Numbers):
        def adapted_to(self, texts: Sequence[str]) -> Numbers:
            given.append(list(texts))
            return Numbers()

    train = labeled(40, 1, 2)
    do_task(Adapting(), Task("x", "classification", train, labeled(9, 2, 2), labeled(9, 3, 2), "test"))
    assert given == [train.first]


def test_features_of_pairs() -> None:
    pairs = Examples(["1 2"], ["3 -1"], ["0"])
    assert features(Numbers(), pairs).tolist() == [[2, 3, 3, -2]]
    assert features(Numbers(), Examples(["1 2"], None, ["0"])).tolist() == [[1, 2]]


def test_pair_classification() -> None:
    def pairs(count: int, seed: int) -> Examples:
        first, numbers = texts(count, seed)
        same = np.random.default_rng(seed + 9).random(count) < 0.5
        second = np.where(same[:, None], numbers + 0.01, -numbers)
        return Examples(first, as_texts(second), same.astype(str).tolist())

    score = do_task(Numbers(), Task("x", "classification", pairs(200, 1), None, pairs(80, 2), "test"))
    assert score.accuracy >= 97


def related(count: int, seed: int) -> Examples:
    first, numbers = texts(count, seed)
    noise = np.random.default_rng(seed + 9).standard_normal(numbers.shape)
    share = np.random.default_rng(seed + 5).random((count, 1))
    second = (1 - share) * numbers + share * noise
    scores = 5 - 4 * share[:, 0]
    return Examples(first, as_texts(second), scores.astype(str).tolist())


def test_relatedness() -> None:
    task = Task("x", "relatedness", related(300, 1), None, related(200, 2), "trial")
    score = do_task(Numbers(), task, seed=4)
    assert score.pearson > 50
    assert score.accuracy is None
    assert do_task(Numbers(), task, seed=4) == score
    train, test = (
        (features(Numbers(), examples), np.array(examples.labels, dtype=np.float64))
        for examples in (task.train, related(200, 2))
    )
    assert relatedness(train, test, test, 1)[0] != score.pearson  # another seed
    constant = [(np.pad(part[0][:20], ((0, 0), (0, 1))), part[1][:20]) for part in (train, test, test)]
    assert relatedness(constant[0], constant[1], constant[2], 1)[0] is not None


@pytest.mark.parametrize("given", [True, False])
def test_relatedness_training_matches_paper(monkeypatch: pytest.MonkeyPatch, given: bool) -> None:
    """Without development pairs, a tenth of the training pairs is held out for evaluation."""
    tasks, scores, starts = [], [], []

    def noted(task: Any, **options: Any) -> Any:
        tasks.append(task)
        starts.append(task.module.hidden.weight.detach().clone())
        return Trainer(task, **options)

    def scored(log_probabilities: Any) -> Any:
        scores.append(expected_score(log_probabilities))
        return scores[-1]

    monkeypatch.setattr(training, "Trainer", noted)
    monkeypatch.setattr(training, "expected_score", scored)
    monkeypatch.setattr(training, "HIDDEN", 3)
    train, test = (
        (features(Numbers(), examples), np.array(examples.labels, dtype=np.float64))
        for examples in (related(60, 1), related(50, 2))
    )
    found = relatedness(train, test if given else None, test, 1)
    assert found == (pearson(test[1], scores[-1]), spearman(test[1], scores[-1])) and found[0] != found[1]
    (task,) = tasks
    assert (task.size, task.total, task.patience) == ((60, 2400, 6) if given else (54, 2160, 6))
    assert len(scores[0]) == (50 if given else 6)
    assert task._parameters.lambda_classifier == 5e-5
    relatedness(train, test if given else None, test, 2)
    assert [task._seed for task in tasks] == [1, 2]  # of the order of examples
    assert not starts[0].equal(starts[1])
    assert given or not task._targets.equal(tasks[1]._targets)  # other pairs judge


def test_models_without_vectors(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="need sentence vectors"):
        fixed_embedder(PairMetric(jaccard), ["x"])
    (tmp_path / "MR.tsv").write_text("0\t1 2\n1\t2 3\n" * 20)
    (score,) = evaluate_transfer(Numbers(), find_tasks([tmp_path])[0])
    assert (score.name, score.train, score.test) == ("MR", 40, 40)


@pytest.mark.parametrize("positive", [None, "b"])
def test_task_with_positive_class_has_f1(positive: str | None) -> None:
    examples = texts(60, 1)[0]
    train = Examples(examples, None, ["a", "b"] * 30)
    score = do_task(Numbers(), Task("x", "classification", train, None, train, "test", positive))
    assert (score.f1 is None) == (positive is None)
    lines = PaperEvaluation(Evaluation("m", "kind"), [score]).lines()
    assert any(" F1 " in line for line in lines) == (positive is not None)


def test_missing_positive_class_has_f1_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "predicted_on_test", lambda *given: np.array(["a", "a"]))
    train, test = (Examples(["1", "2"], None, labels) for labels in (["a", "b"], ["a", "a"]))
    assert do_task(Numbers(), Task("x", "classification", train, None, test, "test", "b")).f1 == 0


def test_table_has_column_per_training() -> None:
    sizes = {"tested_on": "test", "train": 4000, "test": 1700}
    scores = [
        TransferScore(name="MRPC", accuracy=70, f1=80, **sizes),
        TransferScore(name="SICK-R", pearson=71, spearman=60, **sizes),
        TransferScore(name="MRPC", accuracy=75, training="fine-tuned", **sizes),
        TransferScore(name="SICK-R", pearson=76, spearman=60, training="fine-tuned", **sizes),
    ]
    found = PaperEvaluation(Evaluation("m", "kind"), scores, ["MR"])
    _, *table, _, missing = [line.split() for line in found.lines()[-7:]]
    assert table[-3:] == [
        ["MRPC", "4,000", "1,700", "70.0", "75.0", "accuracy", "test"],
        ["80.0", "-", "F1", "test"],
        ["SICK-R", "4,000", "1,700", "71.0", "76.0", "Pearson", "test"],
    ]
    assert missing == ["missing", "tasks:", "MR"]
    nothing = PaperEvaluation(Evaluation("m", "kind"), [], ["MR"]).as_json()
    assert nothing["transfer"] == {"tasks": [], "missing": ["MR"]}


def test_model_is_opened_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SICK is in the directory of similarity sets, where tasks are looked for as well."""
    sets, transfer = tmp_path / "sets", tmp_path / "transfer"
    transfer.mkdir()
    write(sets / "MR.tsv", "0\t1 2\n1\t2 3\n" * 4)
    opened = []

    def open_one(name: str, sentences: Sequence[str]) -> OpenedModel:
        opened.append(name)
        return OpenedModel(name, "kind", Numbers())

    def evaluated(name: str, open_others: Any, **options: Any) -> Any:
        return [open_others(one, ()).name for one in (name, "other")]

    monkeypatch.setattr("paraforge.papers.evaluation.evaluate", evaluated)
    found = evaluate_for_papers("model", open_one, sts=[sets], transfer=[transfer], folds=2)
    assert found.similarity == opened == ["model", "other"]


def test_unknown_task_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"--task Weather: use MR, CR, .*SICK-R"):
        evaluate_for_papers("jaccard", open_model, transfer=[tmp_path], task_names=["Weather"])


read_mrpc = partial(read_pairs, label="quality", first="#1 string", second="#2 string")
read_sick = partial(read_pairs, label="relatedness_score", first="sentence_a", second="sentence_b")

MRPC = '\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t1\t2\tA "dog"\tdog\n0\t3\t4\tcat\tsky\n'
SICK = (
    "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"
    "1\ta dog\tdog\t4.5\tENTAILMENT\n2\tcat\tsky\t1\tNEUTRAL\n"
)


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


def test_rows(tmp_path: Path) -> None:
    labeled = read_texts(write(tmp_path / "a", "0\tbad film\n1\tgood film\n1\t\n"))
    assert labeled == Examples(["bad film", "good film", ""], None, ["0", "1", "1"])
    trec = read_texts(write(tmp_path / "b", "NUM\tNUM:dist\tHow far ?\nLOC\tLOC:city\tWhere ?\n"), 2)
    assert trec == Examples(["How far ?", "Where ?"], None, ["NUM", "LOC"])
    mrpc = read_mrpc(write(tmp_path / "c", MRPC))
    assert mrpc == Examples(['A "dog"', "cat"], ["dog", "sky"], ["1", "0"])
    sick = read_sick(write(tmp_path / "d", SICK))
    assert sick == Examples(["a dog", "cat"], ["dog", "sky"], ["4.5", "1"])
    entailed = read_pairs(tmp_path / "d", "entailment_judgment", "sentence_a", "sentence_b")
    assert entailed.labels == ["ENTAILMENT", "NEUTRAL"]


@pytest.mark.parametrize(
    ("read", "text", "line"),
    [
        pytest.param(read_texts, "0\ta\n1\n", 2, id="too few fields"),
        pytest.param(read_texts, "0\ta\n1\tb\tc\n", 2, id="too many fields"),
        pytest.param(read_texts, "0\ta\n \tb\n", 2, id="blank label"),
        pytest.param(read_texts, "0\ta\n0\tb\n", None, id="one class"),
        pytest.param(partial(read_texts, text=2), "A\ta\tx\nB\tb\n", 2, id="TREC"),
        pytest.param(read_mrpc, "x\ty\n", 1, id="no such column"),
        pytest.param(read_mrpc, MRPC + "1\t2\n", 4, id="MRPC"),
        pytest.param(read_mrpc, MRPC + "yes\t1\t2\ta\tb\n", 4, id="another quality"),
        pytest.param(read_mrpc, "", None, id="empty"),
        pytest.param(read_mrpc, "\n", 1, id="blank"),
        pytest.param(read_mrpc, MRPC + "1\t1\t2\t\tb\n", 4, id="blank sentence"),
        pytest.param(read_sick, SICK + "3\ta\tb\t5.5\tNEUTRAL\n", 4, id="score beyond 5"),
        pytest.param(read_sick, SICK + "3\ta\tb\tnan\tNEUTRAL\n", 4, id="no score"),
    ],
)
def test_malformed(tmp_path: Path, read: Callable[..., object], text: str, line: int | None) -> None:
    path = write(tmp_path / "file", text)
    with pytest.raises(InputError) as caught:
        read(path)
    assert (caught.value.path, caught.value.line) == (str(path), line)


LABELED = "0\tbad\n1\tgood\n" * 2


@pytest.mark.parametrize(
    ("name", "file", "text", "development"),
    [
        ("SST binary", "SST_binary.{}.tsv", LABELED.replace("bad", "PART"), "dev"),
        ("SST fine", "SST_fine.{}.tsv", LABELED.replace("bad", "PART"), "dev"),
        ("MRPC", "msr-para-{}.tsv", MRPC.replace('A "dog"', "PART"), "val"),
    ],
)
def test_task_parts_have_their_files(
    tmp_path: Path, name: str, file: str, text: str, development: str
) -> None:
    parts = ["train", development, "test"]
    for part in parts:
        write(tmp_path / file.format(part), text.replace("PART", part))
    (task,) = find_tasks([tmp_path])[0]
    found = [one.first[0] for one in (task.train, task.development, task.test) if one is not None]
    assert (task.name, found) == (name, parts)


def test_present_tasks_are_found(tmp_path: Path) -> None:
    write(tmp_path / "MR.tsv", LABELED)
    write(tmp_path / "CR.tsv", LABELED)
    for split in ("train", "test"):
        write(tmp_path / f"TREC.{split}.tsv", "A\ta\tx\nB\tb\ty\n")
    for split in ("train", "dev", "test"):
        write(tmp_path / f"SST_binary.{split}.tsv", LABELED)
    write(tmp_path / "msr-para-train.tsv", MRPC)  # its test set is missing
    for split in ("train", "trial"):
        write(tmp_path / "sts" / f"SICK_{split}.txt", SICK.replace("a dog", split))
    tasks, missing = find_tasks([tmp_path, tmp_path / "sts"])
    found = {task.name: task for task in tasks}
    assert list(found) == ["MR", "CR", "SST binary", "TREC", "SICK-E", "SICK-R"]
    assert {"SUBJ", "MPQA", "SST fine", "MRPC"} <= set(missing)
    assert missing == [name for name in TASKS if name not in found]
    assert (found["MR"].test, found["MR"].tested_on) == (None, "10-fold cross-validation")
    assert (found["SICK-R"].tested_on, found["SICK-R"].kind) == ("trial", "relatedness")
    assert [name for name, task in found.items() if task.development is not None] == ["SST binary"]

    write(tmp_path / "sts" / "MR.tsv", LABELED.replace("bad", "poor"))
    for places in ([tmp_path, tmp_path / "sts"], [tmp_path / "sts", tmp_path]):
        (task,) = find_tasks(places, ["MR"])[0]
        assert task.train.first[0] == ("bad" if places[0] == tmp_path else "poor")
    write(tmp_path / "sts" / "SICK_test_annotated.txt", SICK.replace("a dog", "test"))
    tested = {task.name: task for task in find_tasks([tmp_path / "sts"])[0]}
    assert (tested["SICK-E"].tested_on, tested["SICK-E"].kind) == ("test", "classification")
    for task in (tested["SICK-E"], tested["SICK-R"]):
        parts = [part.first[0] for part in (task.train, task.development, task.test) if part is not None]
        assert parts == ["train", "trial", "test"]
    write(tmp_path / "sts" / "MR.tsv", LABELED + "2\tso\n")
    with pytest.raises(InputError, match=r"MR\.tsv: a class has a single example"):
        find_tasks([tmp_path / "sts"])
