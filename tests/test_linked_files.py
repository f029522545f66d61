"""Files that DVC's cache, the output and the work directory share are never written in place."""

import hashlib
import subprocess
from pathlib import Path

import pytest

from tests.project import read_parameters, run, write_parameters


def inodes(directory: Path, suffix: str = "") -> dict[int, Path]:
    return {path.stat().st_ino: path for path in directory.rglob(f"*{suffix}") if path.is_file()}


def check_cache(project: Path) -> int:
    """Every file of the cache has the MD5 that it is named after, and cannot be written to."""
    files = list((project / ".dvc" / "cache" / "files" / "md5").glob("??/*"))
    for path in files:
        digest = hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()
        assert path.parent.name + path.name.removesuffix(".dir") == digest
        assert path.stat().st_mode & 0o222 == 0
    return len(files)


@pytest.mark.full
@pytest.mark.timeout(900)
def test_linked_files_are_never_written(finished_project: Path, tmp_path: Path) -> None:
    project = tmp_path / "project"
    subprocess.run(["cp", "-a", finished_project, project], check=True)  # with its links
    cached = inodes(project / ".dvc" / "cache")
    for name in ("ingested", "translated", "scored"):
        shards = inodes(project / "data" / name, ".parquet")
        assert shards and shards.keys() <= cached.keys()
        assert name == "ingested" or shards.keys() <= inodes(project / "work").keys()
    before = check_cache(project)
    files = project / "work" / "ingest" / "files"
    kept = {path.name for path in files.iterdir()}
    parameters = read_parameters(project)
    for changed in ({"ingest": {"sources": [{**parameters["ingest"]["sources"][0], "pairs": 800}]}}, {}):
        write_parameters(project, {**parameters, **{k: {**parameters[k], **v} for k, v in changed.items()}})
        run("dvc", "repro", "publish", cwd=project)
        assert check_cache(project) >= before
    # Back at the first parameters, everything is as it was.
    assert "up to date" in run("dvc", "status", "publish", cwd=project).stdout
    # What the work directory kept of the other parameters is gone, but for translations and scores.
    assert {path.name for path in files.iterdir()} == kept
