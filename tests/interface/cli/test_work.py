"""``paraforge work``: what is listed and what is removed. ``paraforge verify``: exit codes and what is
said."""

from pathlib import Path

import pytest

from paraforge.base.errors import InputError
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.step import run_step
from paraforge.stages import common
from tests.base.shards.steps import multiply_step, write_input
from tests.corpus.selection.published import publish_pairs
from tests.here import run_command


def test_list_and_prune(tmp_path: Path) -> None:
    write_input(tmp_path / "in", rows=45)
    resources = Resources(workers=1, work=tmp_path / "work")
    for factor in (2, 3):
        run_step(multiply_step(factor), [tmp_path / "in"], tmp_path / "data" / "out", resources)
    listed = run_command("work", "list", tmp_path)
    row = next(line for line in listed.stdout.splitlines() if line.startswith("multiply"))
    assert row.count("5: ") == 2
    assert "would be freed" in run_command("work", "prune", tmp_path, "--dry-run").stdout
    files = set((tmp_path / "work" / "multiply").glob("*.parquet"))
    assert len(files) == 10
    assert "multiply: 5 entries" in run_command("work", "prune", tmp_path).stdout
    assert len(set((tmp_path / "work" / "multiply").glob("*.parquet"))) == 5
    with pytest.raises(InputError):
        run_command("work", "prune", tmp_path, "--step", "nonsense")


def test_a_finished_stage_removes_what_earlier_parameters_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_input(tmp_path / "in", rows=45)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(common, "_QUICK", ("multiply",))
    resources = Resources(workers=1, work=tmp_path / "work")
    for factor in (2, 3):
        run_step(multiply_step(factor), [tmp_path / "in"], tmp_path / "data" / "out", resources)
    for keep, left in ((True, 10), (False, 5)):
        common._prune(resources.model_copy(update={"keep_work": keep}))
        assert len(list((tmp_path / "work" / "multiply").glob("*.parquet"))) == left


def problems_of(directory: Path) -> list[str]:
    """What is said of a directory, which is not sound where anything is."""
    result = run_command("verify", directory, expect=None)
    problems: list[str] = result.stderr.splitlines()
    assert (result.exit_code == 2) == bool(problems)
    return problems[:-1]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    publish_pairs(tmp_path, rows=300)
    return tmp_path


def test_sound_corpora(root: Path) -> None:
    result = run_command("verify", root / "corpus", root / "rejected")
    assert "corpus: sound:" in result.stdout
    assert "src:news+tatoeba|mt:3fa9c1d2" in result.stdout


def test_damage_is_told_with_its_remedy(root: Path) -> None:
    (root / "corpus" / "shard-00000.parquet").unlink()
    result = run_command("verify", root / "rejected", root / "corpus", expect=2)
    assert "rejected: sound" in result.stdout
    assert "shard-00000.parquet: missing. Publish the corpus again" in result.stderr
    assert "1 problem" in result.stderr


def test_the_refused_pairs_next_to_a_corpus_are_checked_too(root: Path) -> None:
    (root / "rejected" / "shard-00000.parquet").unlink()
    result = run_command("verify", root / "corpus", expect=2)
    assert "corpus: sound" in result.stdout
    assert "rejected: 1 problem" in result.stderr


def test_help_has_examples() -> None:
    result = run_command("verify", "--help")
    assert "paraforge verify data/corpus" in result.stdout
