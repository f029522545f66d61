"""What a training is told of its data: the sets it may not see, and what tells two trainings apart."""

from itertools import permutations, product
from pathlib import Path

import pytest

from paraforge.embeddings.trainer.data import TrainingData
from paraforge.embeddings.trainer.parameters import PairFileParameters
from tests.embeddings.trainer.training import sentence_pairs, write_pairs, write_sts

ROLES = ("development", "test_sets", "foreign")


def in_directory(directory: Path, name: str = "test.tsv") -> Path:
    directory.mkdir(exist_ok=True)
    return directory / name


@pytest.mark.parametrize("roles", [*permutations(ROLES, 2)], ids="-".join)
@pytest.mark.parametrize("names", [("test.tsv", "test.tsv"), ("a.tsv", "b.tsv")])
def test_sets_of_every_role_are_left_out_whatever_their_files_are_called(
    tmp_path: Path, roles: tuple[str, str], names: tuple[str, str]
) -> None:
    pairs = sentence_pairs(60)
    given = [
        str(write_sts(in_directory(tmp_path / role, name), pairs[10 * k : 10 * k + 10]))
        for k, (role, name) in enumerate(zip(roles, names, strict=True))
    ]
    files = [PairFileParameters(path=str(write_pairs(tmp_path / "pairs.tsv", pairs)))]
    data = TrainingData(files, **dict(zip(roles, ([path] for path in given), strict=True)))
    leakage = data.leakage_filter()
    kept = sum(len(block) for block in leakage(data.blocks()))
    assert kept == 40
    assert sorted(leakage.report.by_set.values()) == [10, 10]


def test_a_set_that_is_given_in_several_roles_counts_once(tmp_path: Path) -> None:
    pairs = sentence_pairs(30)
    sets = [str(write_sts(in_directory(tmp_path / name, f"{name}.tsv"), pairs[:5])) for name in ("a", "b")]
    files = [PairFileParameters(path=str(write_pairs(tmp_path / "pairs.tsv", pairs)))]
    data = TrainingData(files, development=sets[:1], test_sets=sets[:1], foreign=sets[1:])
    leakage = data.leakage_filter()
    assert sum(len(block) for block in leakage(data.blocks())) == 25
    assert leakage.report.by_set == {"a (development, test, foreign)": 5}


def test_every_choice_of_roles_has_its_own_fingerprint(tmp_path: Path) -> None:
    """Also of files with the same name, the same content, or the same sentences and other scores."""
    pairs = sentence_pairs(8)
    first = write_sts(in_directory(tmp_path / "a"), pairs[:4])
    second = write_sts(in_directory(tmp_path / "b"), pairs[4:])
    renamed = write_sts(in_directory(tmp_path / "c", "2015.other.tsv"), pairs[:4])
    scored = in_directory(tmp_path / "d")
    scored.write_text(first.read_text().replace("5\t", "4\t"))
    files = [PairFileParameters(path=str(write_pairs(tmp_path / "pairs.tsv", pairs)))]
    choices: list[list[str]] = [[], *([str(path)] for path in (first, second, renamed, scored))]
    found = {
        TrainingData(
            files, development=development, test_sets=test, foreign=foreign, drop_leaked=drop
        ).fingerprint()
        for development, test, foreign, drop in product(choices, choices, choices, (True, False))
    }
    assert len(found) == 2 * len(choices) ** 3


def test_files_of_one_name_are_two_sources(tmp_path: Path) -> None:
    paths = [write_pairs(in_directory(tmp_path / name, "ppdb.tsv"), sentence_pairs(3)) for name in "ab"]
    data = TrainingData([PairFileParameters(path=str(path)) for path in paths])
    assert len({block.source for block in data.blocks()}) == 2
