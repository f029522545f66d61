"""``paraforge verify``: exit codes and messages."""

from dataclasses import replace
from pathlib import Path

import pytest

from paraforge.base.files import write_digests
from paraforge.corpus.publication.manifest import read_manifest
from tests.corpus.selection.published import publish_pairs
from tests.here import run_command


def test_verify_reports_damage_with_remedy(root: Path) -> None:
    (root / "corpus" / "shard-00000.parquet").unlink()
    result = run_command("verify", root / "rejected", root / "corpus", expect=2)
    assert "rejected: OK" in result.stdout
    assert "shard-00000.parquet: missing. Publish the corpus again" in result.stderr
    assert "1 problem" in result.stderr
    (root / "rejected" / "shard-00000.parquet").unlink()
    assert "rejected: 1 problem" in run_command("verify", root / "corpus", expect=2).stderr


@pytest.fixture
def root(tmp_path: Path) -> Path:
    publish_pairs(tmp_path, rows=300)
    return tmp_path


def test_verify_sound_corpora(root: Path) -> None:
    result = run_command("verify", root / "corpus", root / "rejected")
    assert "corpus: OK:" in result.stdout
    assert "src:news+tatoeba|mt:3fa9c1d2" in result.stdout
    replace(read_manifest(root / "corpus"), signature="a\x9bb").write(root / "corpus")
    assert "  a\ufffdb\n" in run_command("verify", root / "corpus").stdout  # it may be from anywhere


def test_verify_finds_rejected_pairs_through_link(root: Path) -> None:
    link = root / "elsewhere" / "link"
    link.parent.mkdir()
    link.symlink_to(root / "corpus")
    assert "rejected: OK" in run_command("verify", link).stdout
    assert "int64" in run_command("query", link, "SELECT count(*) FROM rejected").stdout
    (root / "corpus").rename(link.parent / "corpus")
    (root / "corpus").symlink_to(link.parent / "corpus")  # what is next to the link comes first
    assert "rejected: OK" in run_command("verify", root / "corpus").stdout


def test_verify_names_damaged_model_file(tmp_path: Path) -> None:
    (tmp_path / "weights").write_text("one")
    write_digests(tmp_path)
    assert "OK" in run_command("verify", tmp_path).stdout
    (tmp_path / "weights").write_text("two")
    assert f"{tmp_path / 'weights'}: " in run_command("verify", tmp_path, expect=2).stderr
    whole = tmp_path / "whole"
    whole.mkdir()
    (whole / "weights").write_text("one")
    write_digests(whole)
    for given in ((tmp_path, whole), (whole, tmp_path)):
        assert f"{whole}: OK" in run_command("verify", *given, expect=2).stdout
