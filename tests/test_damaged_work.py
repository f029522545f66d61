"""Any file of the work directory may be damaged: its stage makes it again, to the same bytes."""

import random
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paraforge.base.errors import InputError
from paraforge.base.shards.store import ShardDirectory
from paraforge.intake.sample_bitext import write_sample
from tests.here import inside, run_stage
from tests.project import (
    TRAINED,
    digests,
    made_once,
    make_project,
    read_parameters,
    stage_names,
    write_parameters,
)

# What each stage publishes; nmt without a model and report keep nothing in the work directory.
OUTPUTS = {
    "ingest": "data/ingested",
    "translate": "data/translated",
    "paragram": "models/paragram",
    "score": "data/scored",
    "select": "data/selected",
    "publish": "data/corpus",
    "lexicon": "data/lexicon",
    "embeddings": "models/embeddings",
    "statistics": "data/statistics",
}

# Directories of shards that a stage begins with, of the stages that make no shard of each.
READ = {
    "select": ("data/translated", "data/scored"),
    "publish": ("data/translated", "data/scored", "data/selected"),
    "lexicon": ("data/translated", "data/scored"),
    "statistics": ("data/translated", "data/scored", "data/selected"),
    "embeddings": ("data/corpus",),
    "paraphraser": ("data/corpus",),
    "triplets": ("data/corpus",),
    "report": ("data/corpus", "data/rejected"),
}


Damage = Callable[[Path], None]


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not for a file that another host may not have finished."""
    monkeypatch.setattr("paraforge.translation.memory.memory._PAUSE", 0.0)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def overwrite(path: Path) -> None:
    size = max(path.stat().st_size, 1)
    path.write_bytes(random.Random(size).randbytes(size))


def empty_object(path: Path) -> None:
    path.write_bytes(b"{}")


def misspell(path: Path) -> None:
    """A bit of a key, or of a name: JSON as it should be, of other things."""
    path.write_text(re.sub(r'(?<=\w)[a-z](?=\w*":)', lambda found: found[0].upper(), path.read_text()))


def miscount(path: Path) -> None:
    """A bit of every number."""
    path.write_text(re.sub(r"\d(?=,?\s)", lambda found: str(int(found[0]) ^ 1), path.read_text()))


def damages_of(path: Path) -> tuple[Damage, ...]:
    return (cut, overwrite, empty_object, *([misspell, miscount] if path.suffix == ".json" else []))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small project of two sources, and so of two shards, of which every stage has been run.

    The sources are files: what the format ``sample`` does with its own, once damaged, is tested in
    tests/intake/sample_bitext.
    """

    def make(project: Path) -> None:
        small = ("embeddings.models.word.encoder.dimension=8", "lexicon.minimum_pairs=1")
        make_project(project, TRAINED, *small)
        parameters = read_parameters(project)
        source = {"format": "tsv", "columns": {"source_text": 0, "reference": 1}}
        paths = write_sample(project, pairs=300)[:2]
        parameters["ingest"]["sources"] = [{"name": p.stem, "path": p.name, **source} for p in paths]
        parameters["publish"]["licences"] = {p.stem: "MIT" for p in paths}
        write_parameters(project, parameters)
        with inside(project):
            for name in stage_names():
                assert run_stage(name)

    return made_once(tmp_path_factory, "damaged", make)


def work_of(project: Path, before: dict[str, str]) -> list[Path]:
    """Files of the work directory that are not as they were."""
    now = digests(project / "work")
    return [project / "work" / name for name, digest in now.items() if before.get(name) != digest]


def check(stage: str, project: Path, path: Path, damage: Damage, wanted: dict[str, str]) -> None:
    name = path.relative_to(project)
    if name.name == "lock":
        return
    content = path.read_bytes()
    path.unlink()  # it may be a link
    path.write_bytes(content)
    damage(path)
    with inside(project):
        assert run_stage(stage), name
    assert digests(project / OUTPUTS[stage]) == wanted, f"{name} after {damage.__name__}"


@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.parametrize("stage", OUTPUTS)
def test_any_file_of_a_finished_stage(finished: Path, tmp_path: Path, stage: str) -> None:
    project = tmp_path / "project"
    shutil.copytree(finished, project, symlinks=True)
    shutil.rmtree(project / "work")
    wanted = digests(project / OUTPUTS[stage])
    with inside(project):
        assert run_stage(stage)
    kinds: dict[str, list[Path]] = {}
    for path in sorted(work_of(project, {})):
        kinds.setdefault(re.sub(r"[0-9a-f]{8,}|\d+", "", str(path.relative_to(project))), []).append(path)
    for paths in kinds.values():  # files of one kind share its damages
        for number, damage in enumerate(damages_of(paths[0])):
            path = paths[number % len(paths)]
            if path.exists():
                check(stage, project, path, damage, wanted)


@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.parametrize("looks", [1, 2, 4])
@pytest.mark.parametrize("stage", OUTPUTS)
def test_any_file_of_a_stage_that_was_stopped(finished: Path, tmp_path: Path, stage: str, looks: int) -> None:
    begun = tmp_path / "begun"
    shutil.copytree(finished, begun, symlinks=True)
    shutil.rmtree(begun / "work")
    wanted = digests(begun / OUTPUTS[stage])
    with inside(begun):
        if run_stage(stage, after=looks):
            pytest.skip(f"{stage} does not look for signals so often")
    for number, name in enumerate(digests(begun / "work") if (begun / "work").exists() else ()):
        # The other way after another number of looks; finished files are damaged in every way above.
        damage = (cut, overwrite)[(number + looks) % 2]
        project = tmp_path / "project"
        shutil.copytree(begun, project, symlinks=True)
        check(stage, project, project / "work" / name, damage, wanted)
        shutil.rmtree(project)


def flip_each_column(path: Path) -> Iterator[str]:
    """Flip a bit of one column after another in the last shard; what was before is there after each."""
    content = path.read_bytes()
    path.unlink()  # it may be a link
    group = pq.ParquetFile(pa.BufferReader(content)).metadata.row_group(0)
    for number in range(group.num_columns):
        column = group.column(number)
        damaged = bytearray(content)
        damaged[column.data_page_offset + column.total_compressed_size // 2] ^= 1
        path.write_bytes(damaged)
        yield column.path_in_schema
    path.write_bytes(content)


@pytest.mark.full
@pytest.mark.parametrize("stage", READ)
def test_a_flipped_bit_in_any_column_stops_the_stage(finished: Path, tmp_path: Path, stage: str) -> None:
    """Also in a column that it does not read."""
    project = tmp_path / "project"
    shutil.copytree(finished, project, symlinks=True)
    parameters = read_parameters(project)
    parameters["paraphraser"]["model"] = "train"
    parameters["triplets"]["encoder"] = "models/embeddings/word"
    write_parameters(project, parameters)
    for name in READ[stage]:
        path = max((project / name).glob("*.parquet"))
        for column in flip_each_column(path):
            with inside(project), pytest.raises(InputError, match="index names") as raised:
                run_stage(stage)
            assert Path(raised.value.path or "").name == path.name, column
            assert "dvc repro" in (raised.value.remedy or "")


def test_directories_that_are_not_aligned_are_refused_by_every_stage(finished: Path, tmp_path: Path) -> None:
    """The numbers of rows are equal: only what the indices name tells them apart."""
    project = tmp_path / "project"
    shutil.copytree(finished, project, symlinks=True)
    parameters = read_parameters(project)
    parameters["translate"]["fake"]["defects"] = 0.5
    write_parameters(project, parameters)
    rows = ShardDirectory(project / "data/translated").rows
    with inside(project):
        assert run_stage("translate")
        assert ShardDirectory(project / "data/translated").rows == rows
        for stage in ("select", "publish", "lexicon", "statistics"):
            before = digests(project / OUTPUTS[stage])
            with pytest.raises(InputError, match=r"made from other shards of 'translate'.*dvc repro"):
                run_stage(stage)
            assert digests(project / OUTPUTS[stage]) == before
        for stage in ("paragram", "score", "select", "publish", "lexicon", "statistics"):
            assert run_stage(stage)
