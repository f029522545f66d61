"""A damaged input is an error that names the file, or changes nothing; earlier results are kept."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paraforge.base.errors import InputError, ParaforgeError
from paraforge.base.files import read_json
from tests.damage import Damage, apply, remove, truncate
from tests.guarantees.stages import RENAMES, STAGES, change, copy, result
from tests.guarantees.stages import remove as remove_outputs
from tests.guarantees.test_interrupted import run
from tests.here import inside, run_stage

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]


def inputs(stage: str) -> list[str]:
    """Return the files that a stage reads and other stages made."""
    return [name for name in STAGES[stage]["deps"] if name.startswith(("data/", "models/"))]


CASES = [(stage, name) for stage in STAGES for name in inputs(stage)]


def check(project: Path, stage: str, damaged: Path, wanted: dict[str, dict[str, str]]) -> None:
    """Check that the stage gives ``wanted``, or changes nothing and its error names the file, its
    directory, or, for a file in `work/`, the stage's directory there."""
    before = result(project, stage)
    try:
        with inside(project):
            run_stage(stage)
    except ParaforgeError as error:
        named = {damaged.parent.name, *damaged.relative_to(project).parts[2:]}
        assert any(name in str(error) for name in named), error
        wanted = before if result(project, stage) == before else wanted
    assert result(project, stage) == wanted, damaged


def last_of_each_kind(directory: Path) -> list[Path]:
    """The last file of each kind, such as the last of numbered shards."""
    if directory.is_file():
        return [directory]
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    return [*{path.name.split("-")[0] + path.suffix: path for path in files}.values()]


@pytest.mark.parametrize("damage", [truncate, remove])
@pytest.mark.parametrize(("stage", "name"), CASES)
def test_damaged_input_is_error(
    finished: Path, tmp_path: Path, stage: str, name: str, damage: Damage
) -> None:
    wanted = result(finished, stage)
    for number, original in enumerate(last_of_each_kind(finished / name)):
        if original.name == "_README.md" and damage is truncate:
            continue  # people edit a card: nothing says what its bytes were
        project = copy(finished, tmp_path / str(number), work=False)
        path = project / original.relative_to(finished)
        apply(damage, path)
        check(project, stage, path, wanted)


@pytest.mark.parametrize(("stage", "name"), [case for case in CASES if case[1].startswith("data/")])
def test_flipped_bit_in_any_column(finished: Path, tmp_path: Path, stage: str, name: str) -> None:
    wanted = result(finished, stage)
    project = copy(finished, tmp_path / "project", work=False)
    found = sorted((project / name).glob("*.parquet"))
    if not found:
        pytest.skip("it has no tables")
    content = found[-1].read_bytes()
    found[-1].unlink()  # it may be a link
    group = pq.ParquetFile(pa.BufferReader(content)).metadata.row_group(0)
    for number in range(group.num_columns):
        column = group.column(number)
        damaged = bytearray(content)
        damaged[column.data_page_offset + column.total_compressed_size // 2] ^= 1
        found[-1].write_bytes(damaged)
        check(project, stage, found[-1], wanted)


@pytest.mark.parametrize("killed", [False, True], ids=["finished", "killed"])
@pytest.mark.parametrize("stage", STAGES)
def test_damaged_work_file_is_error_or_remade(
    finished: Path, tmp_path: Path, stage: str, killed: bool
) -> None:
    """One file of each kind that a stage keeps, or leaves when killed, is cut: the stage makes it again or
    names it in an error.
    """
    wanted = result(finished, stage)
    begun = copy(finished, tmp_path / "begun", work=False)
    if killed:
        remove_outputs(begun, stage)
        run(begun, stage, kill_after=read_json(finished / RENAMES)[stage] // 2)
    else:
        with inside(begun):
            run_stage(stage)
    work = begun / "work"
    for number, kept in enumerate(last_of_each_kind(work) if work.exists() else []):
        if kept.name != "lock":
            project = copy(begun, tmp_path / str(number))
            path = project / kept.relative_to(begun)
            apply(truncate, path)
            check(project, stage, path, wanted)


def test_misaligned_directories_are_error(finished: Path, tmp_path: Path) -> None:
    """The numbers of rows are equal, so only the indexes differ."""
    project = copy(finished, tmp_path / "project")
    change(project, {"translate.fake.defects": 0.5})
    with inside(project):
        run_stage("translate")
        for stage in ("select", "publish", "lexicon", "statistics"):
            wanted = result(project, stage)
            with pytest.raises(InputError, match=r"made from other shards of 'translate'.*dvc repro"):
                run_stage(stage)
            assert result(project, stage) == wanted
