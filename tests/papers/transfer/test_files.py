"""Files of transfer tasks in both layouts, good and bad."""

from pathlib import Path

import pytest

from paraforge.base.errors import InputError
from paraforge.papers.transfer import tasks as files
from paraforge.papers.transfer.tasks import (
    TASKS,
    Examples,
    find_tasks,
    read_mrpc,
    read_sick,
    read_sst_fine,
    read_sst_phrases,
    read_trec,
    read_trec_labels,
)

MRPC = '\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t1\t2\tA "dog"\tdog\n0\t3\t4\tcat\tsky\n'
SICK = (
    "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"
    "1\ta dog\tdog\t4.5\tENTAILMENT\n2\tcat\tsky\t1\tNEUTRAL\n"
)


def write(path: Path, text: str, encoding: str = "utf-8") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode(encoding))
    return path


def test_rows(tmp_path: Path) -> None:
    labelled = files.read_columns(write(tmp_path / "a", "0\tbad film\n1\tgood film\n"))
    assert labelled == Examples(["bad film", "good film"], None, ["0", "1"])
    trec = read_trec(write(tmp_path / "b", "NUM\tNUM:dist\tHow far ?\nLOC\tLOC:city\tWhere ?\n"))
    assert trec == Examples(["How far ?", "Where ?"], None, ["NUM", "LOC"])
    mrpc = read_mrpc(write(tmp_path / "c", MRPC))
    assert mrpc == Examples(['A "dog"', "cat"], ["dog", "sky"], ["1", "0"])
    sick = read_sick(write(tmp_path / "d", SICK), "relatedness_score")
    assert sick == Examples(["a dog", "cat"], ["dog", "sky"], ["4.5", "1"])
    assert read_sick(tmp_path / "d", "entailment_judgment").labels == ["ENTAILMENT", "NEUTRAL"]


def test_the_rows_of_senteval(tmp_path: Path) -> None:
    polarity = [write(tmp_path / "neg", "bad\nworse\n"), write(tmp_path / "pos", "good\n")]
    assert files.read_polarity(polarity) == Examples(["bad", "worse", "good"], None, ["0", "0", "1"])
    phrases = read_sst_phrases(write(tmp_path / "p", "bad film\t0\ngood\t1\n"))
    assert phrases == Examples(["bad film", "good"], None, ["0", "1"])
    assert read_sst_fine(write(tmp_path / "f", "3 a good film\n0 bad\n")).first == [
        "a good film",
        "bad",
    ]
    labels = write(tmp_path / "t", "NUM:dist How far is Bogotá ?\nLOC:city Where ?\n", "latin-1")
    assert read_trec_labels(labels) == Examples(["How far is Bogotá ?", "Where ?"], None, ["NUM", "LOC"])


@pytest.mark.parametrize("encoding", ["latin-1", "utf-8", "utf-8-sig"])
def test_files_from_before_utf_8(tmp_path: Path, encoding: str) -> None:
    paths = [write(tmp_path / name, f"a cliché {name} \r\n\n", encoding) for name in ("neg", "pos")]
    assert files.read_polarity(paths).first == ["a cliché neg", "a cliché pos"]
    labels = write(tmp_path / "t", "NUM:dist How far is Bogotá ?\nLOC:city Where ?\n", encoding)
    assert read_trec_labels(labels).first[0] == "How far is Bogotá ?"


WHOLE_SICK = (
    "pair_ID\tsentence_A\tsentence_B\tentailment_label\trelatedness_score\tentailment_AB\tSemEval_set\n"
    + "".join(
        f"{number}\ta {part}\tb\t{label}\t{score}\tA_x_B\t{part}\n"
        for number, (part, label, score) in enumerate(
            (part, label, score)
            for part in ("TRAIN", "TRIAL", "TEST")
            for label, score in (("NEUTRAL", 2.5), ("ENTAILMENT", 5))
        )
    )
)


def test_the_undivided_sick(tmp_path: Path) -> None:
    path = write(tmp_path / "SICK" / "SICK.txt", WHOLE_SICK)
    tasks, _ = find_tasks([tmp_path])
    assert [task.name for task in tasks] == ["SICK-E", "SICK-R"]
    for task, labels in zip(tasks, (["NEUTRAL", "ENTAILMENT"], ["2.5", "5"]), strict=True):
        assert task.development is not None
        assert task.test is not None
        for examples, part in [(task.train, "TRAIN"), (task.development, "TRIAL"), (task.test, "TEST")]:
            assert examples == Examples([f"a {part}"] * 2, ["b"] * 2, labels)
        assert task.tested_on == "test"
    write(path, WHOLE_SICK.replace("TEST", "TRAIN"))
    with pytest.raises(InputError, match="no row of TEST"):
        find_tasks([tmp_path])
    write(path, WHOLE_SICK.replace("\t5\tA_x_B\tTEST", "\t6\tA_x_B\tTEST"))
    with pytest.raises(InputError, match=r"SICK\.txt:7: the score '6'"):
        find_tasks([tmp_path])


@pytest.mark.parametrize(
    ("read", "text", "line"),
    [
        pytest.param(files.read_columns, "0\ta\n1\n", 2, id="too few fields"),
        pytest.param(files.read_columns, "0\ta\n \tb\n", 2, id="blank label"),
        pytest.param(files.read_columns, "0\ta\n0\tb\n", None, id="one class"),
        pytest.param(read_trec, "A\ta\tx\nB\tb\n", 2, id="TREC"),
        pytest.param(read_trec_labels, "A:a x\nB b\n", 2, id="TREC labels"),
        pytest.param(read_mrpc, "x\ty\n", 1, id="no such column"),
        pytest.param(read_mrpc, MRPC + "1\t2\n", 4, id="MRPC"),
        pytest.param(read_mrpc, "", None, id="empty"),
        pytest.param(
            lambda path: read_sick(path, "relatedness_score"),
            SICK + "3\ta\tb\t5.5\tNEUTRAL\n",
            4,
            id="score beyond 5",
        ),
    ],
)
def test_malformed(tmp_path: Path, read: object, text: str, line: int | None) -> None:
    path = write(tmp_path / "file", text)
    assert callable(read)
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


LABELLED = "0\tbad\n1\tgood\n"


def test_tasks_are_found_and_the_others_are_missing(tmp_path: Path) -> None:
    write(tmp_path / "MR.tsv", LABELLED)
    write(tmp_path / "CR" / "custrev.neg", "bad\n")
    write(tmp_path / "CR" / "custrev.pos", "good\n")
    for split in ("train", "test"):
        write(tmp_path / f"SST_binary.{split}.tsv", LABELLED)
        write(tmp_path / f"TREC.{split}.tsv", "A\ta\tx\nB\tb\ty\n")
    write(tmp_path / "SST_binary.dev.tsv", LABELLED)
    write(tmp_path / "msr-para-train.tsv", MRPC)  # its test set is missing
    for split in ("train", "trial"):
        write(tmp_path / "sts" / f"SICK_{split}.txt", SICK.replace("a dog", split))
    tasks, missing = find_tasks([tmp_path, tmp_path / "sts"])
    found = {task.name: task for task in tasks}
    assert list(found) == ["MR", "CR", "SST binary", "TREC", "SICK-E", "SICK-R"]
    assert missing == ["SUBJ", "MPQA", "SST fine", "MRPC"]
    assert set(TASKS) == {*found, *missing}
    assert found["MR"].test is None
    assert found["SST binary"].development is not None
    assert found["TREC"].development is None
    assert (found["SICK-R"].tested_on, found["SICK-R"].kind) == ("trial", "relatedness")
    assert found["SICK-R"].development is None

    write(tmp_path / "sts" / "SICK_test_annotated.txt", SICK.replace("a dog", "test"))
    tested = {task.name: task for task in find_tasks([tmp_path / "sts"])[0]}
    assert (tested["SICK-E"].tested_on, tested["SICK-E"].kind) == ("test", "classification")
    for task in (tested["SICK-E"], tested["SICK-R"]):
        parts = [part.first[0] for part in (task.train, task.development, task.test) if part is not None]
        assert parts == ["train", "trial", "test"]


def test_the_layout_of_senteval(tmp_path: Path) -> None:
    for name, (negative, positive) in {
        "MR": ("rt-polarity.neg", "rt-polarity.pos"),
        "CR": ("custrev.neg", "custrev.pos"),
        "SUBJ": ("subj.objective", "subj.subjective"),
        "MPQA": ("mpqa.neg", "mpqa.pos"),
    }.items():
        write(tmp_path / name / negative, "bad\n")
        write(tmp_path / name / positive, "good\n")
    for split in ("train", "dev", "test"):
        write(tmp_path / "SST" / "binary" / f"sentiment-{split}", "bad\t0\ngood\t1\n")
        write(tmp_path / "SST" / "fine" / f"sentiment-{split}", "0 bad\n4 good\n")
    for name in ("train_5500", "TREC_10"):
        write(tmp_path / "TREC" / f"{name}.label", "A:a x\nB:b y\n")
    for split in ("train", "test"):
        write(tmp_path / "MRPC" / f"msr_paraphrase_{split}.txt", MRPC)
    for split in ("train", "trial", "test_annotated"):
        write(tmp_path / "SICK" / f"SICK_{split}.txt", SICK)
    tasks, missing = find_tasks([tmp_path])
    assert [task.name for task in tasks] == list(TASKS)
    assert missing == []
