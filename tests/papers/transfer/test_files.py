"""Files of transfer tasks, good and bad."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from paraforge.base.errors import InputError
from paraforge.papers.transfer.tasks import TASKS, Examples, find_tasks, read_pairs, read_texts

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
    labelled = read_texts(write(tmp_path / "a", "0\tbad film\n1\tgood film\n1\t\n"))
    assert labelled == Examples(["bad film", "good film", ""], None, ["0", "1", "1"])
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


def test_repeats() -> None:
    train = Examples(["a", "b", "a"], None, ["0", "1", "1"])
    assert train.repeats == 1
    assert Examples(["b", "c", "b"], None, ["0", "1", "0"]).repeated_in(train) == 2
    pairs = Examples(["a", "a"], ["b", "c"], ["0", "1"])
    assert pairs.repeats == 0
    assert pairs.texts == ["a", "a", "b", "c"]


LABELLED = "0\tbad\n1\tgood\n" * 2


def test_tasks_are_found_and_the_others_are_missing(tmp_path: Path) -> None:
    write(tmp_path / "MR.tsv", LABELLED)
    write(tmp_path / "CR.tsv", LABELLED)
    for split in ("train", "test"):
        write(tmp_path / f"TREC.{split}.tsv", "A\ta\tx\nB\tb\ty\n")
    for split in ("train", "dev", "test"):
        write(tmp_path / f"SST_binary.{split}.tsv", LABELLED)
    write(tmp_path / "msr-para-train.tsv", MRPC)  # its test set is missing
    for split in ("train", "trial"):
        write(tmp_path / "sts" / f"SICK_{split}.txt", SICK.replace("a dog", split))
    tasks, missing = find_tasks([tmp_path, tmp_path / "sts"])
    found = {task.name: task for task in tasks}
    assert list(found) == ["MR", "CR", "SST binary", "TREC", "SICK-E", "SICK-R"]
    assert missing == ["SUBJ", "MPQA", "SST fine", "MRPC"]
    assert set(TASKS) == {*found, *missing}
    assert (found["MR"].test, found["MR"].tested_on) == (None, "10-fold cross-validation")
    assert (found["SICK-R"].tested_on, found["SICK-R"].kind) == ("trial", "relatedness")
    assert [name for name, task in found.items() if task.development is not None] == ["SST binary"]

    write(tmp_path / "sts" / "MR.tsv", LABELLED.replace("bad", "poor"))
    for places in ([tmp_path, tmp_path / "sts"], [tmp_path / "sts", tmp_path]):
        (task,) = find_tasks(places, ["MR"])[0]
        assert task.train.first[0] == ("bad" if places[0] == tmp_path else "poor")
    write(tmp_path / "sts" / "SICK_test_annotated.txt", SICK.replace("a dog", "test"))
    tested = {task.name: task for task in find_tasks([tmp_path / "sts"])[0]}
    assert (tested["SICK-E"].tested_on, tested["SICK-E"].kind) == ("test", "classification")
    for task in (tested["SICK-E"], tested["SICK-R"]):
        parts = [part.first[0] for part in (task.train, task.development, task.test) if part is not None]
        assert parts == ["train", "trial", "test"]
    write(tmp_path / "sts" / "MR.tsv", LABELLED + "2\tso\n")
    with pytest.raises(InputError, match=r"MR\.tsv: a class has a single example"):
        find_tasks([tmp_path / "sts"])
