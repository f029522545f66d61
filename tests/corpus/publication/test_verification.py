"""Verification finds each kind of damage and names the file."""

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paraforge.base.errors import InputError
from paraforge.base.files import hash_json, read_json, sha256_file, write_json
from paraforge.corpus.columns import COLUMNS
from paraforge.corpus.publication.datasets import open_publication
from paraforge.corpus.publication.verification import verify
from tests.corpus.publication.test_verdict_words import drawn
from tests.corpus.selection.corpora import random_pairs, with_columns
from tests.corpus.selection.published import publish_pairs
from tests.damage import flip, truncate


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("sound")
    publish_pairs(root, wrong=drawn(50, {"news": 0.6}))
    return root


@pytest.fixture(params=["corpus", "rejected"])
def copy(request: pytest.FixtureRequest, sound: Path, tmp_path: Path) -> Path:
    target = tmp_path / request.param
    shutil.copytree(sound / request.param, target)
    return target


def check(corpus: Path) -> list[InputError]:
    problems = verify(corpus).problems
    assert all(problem.remedy for problem in problems)
    return problems


def test_companions_do_not_matter(copy: Path) -> None:
    (copy / "README.md").write_text("my own words", encoding="utf-8")
    (copy / "LICENSE").write_text("mine", encoding="utf-8")
    (copy / ".gitattributes").write_text("*.parquet lfs", encoding="utf-8")
    assert check(copy) == []


def edit(name: str, change: Callable[[dict[str, Any]], Any], seal: bool = True) -> Callable[[Path], None]:
    """Change a JSON file; ``seal`` updates the manifest's own checksum."""

    def damage(corpus: Path) -> None:
        content = read_json(corpus / name)
        change(content)
        if seal and "sha256" in content:
            content["sha256"] = hash_json({key: value for key, value in content.items() if key != "sha256"})
        write_json(corpus / name, content)

    return damage


edit_manifest = partial(edit, "_manifest.json")
edit_index = partial(edit, "_shards.json")


def swap(corpus: Path) -> None:
    first, second = corpus / "shard-00000.parquet", corpus / "shard-00001.parquet"
    aside = corpus / "aside"
    first.rename(aside)
    second.rename(first)
    aside.rename(second)


def rewrite(change: Callable[[pa.Table], pa.Table]) -> Callable[[Path], None]:
    """Rewrite a file, and update its checksums in manifest and index."""

    def damage(corpus: Path) -> None:
        path = corpus / "shard-00001.parquet"
        pq.write_table(change(pq.read_table(path)), path)

        def record(content: dict[str, Any]) -> None:
            entry = content["files"][1]
            entry["bytes"], entry["sha256"] = path.stat().st_size, sha256_file(path)

        edit_manifest(record)(corpus)
        edit_index(lambda i: i["shards"][1].update(sha256=sha256_file(path)))(corpus)

    return damage


def other_source(table: pa.Table) -> pa.Table:
    return with_columns(table, source=["elsewhere"] * table.num_rows)


@pytest.mark.parametrize(
    ("damage", "file", "message"),
    [
        (lambda c: flip(c / "shard-00001.parquet"), "shard-00001.parquet", "SHA-256 differs from"),
        (lambda c: truncate(c / "shard-00001.parquet"), "shard-00001.parquet", "bytes, the manifest says"),
        (swap, "shard-00000.parquet", "manifest"),
        (lambda c: (c / "shard-00001.parquet").unlink(), "shard-00001.parquet", "missing"),
        (lambda c: (c / "shard-00001.parquet").write_bytes(b""), "shard-00001.parquet", "has 0 bytes"),
        (lambda c: shutil.copy(c / "shard-00001.parquet", c / "b.parquet"), "b.parquet", "not in the"),
        (lambda c: (c / "_shards.json").unlink(), "_shards.json", "no such file"),
        (lambda c: (c / "_shards.json").write_text('{"shards": []}'), "_shards.json", "does not list"),
        (lambda c: (c / "_shards.json").write_text("[]"), "_shards.json", "not an index"),
        (lambda c: (c / "_manifest.json").unlink(), "_manifest.json", "no such file"),
        (lambda c: (c / "_manifest.json").write_text("{"), "_manifest.json", "not JSON"),
        (lambda c: (c / "_manifest.json").write_text("[]"), "_manifest.json", "not a manifest"),
        (lambda c: (c / "_manifest.json").write_text("{}"), "_manifest.json", "not a manifest"),
        (edit_manifest(lambda m: m.update(name="x"), seal=False), "_manifest.json", "was changed"),
        (edit_manifest(lambda m: m.update(format=99)), "_manifest.json", "written in format 99"),
        (edit_manifest(lambda m: m.update(schema_version=1)), "_manifest.json", "with schema 1; this"),
        (edit_manifest(lambda m: m.update(schema_version=99)), "_manifest.json", "with schema 99; this"),
        (edit_manifest(lambda m: m["columns"].append({})), "_manifest.json", "not a manifest"),
        (edit_manifest(lambda m: m["counts"].update(kept=1)), "_manifest.json", "do not add up"),
        (edit_manifest(lambda m: m["files"].pop()), "_manifest.json", "but its counts give"),
        (edit_manifest(lambda m: m["sources"].pop("news")), "_manifest.json", "sources do not add up"),
        (edit_manifest(lambda m: m["files"][0].update(rows=1)), "shard-00000.parquet", "the manifest says 1"),
        (edit_manifest(lambda m: m["files"][0].update(path="../shard-00000.parquet")), "_manifest.json",
         "not a plain file name"),
        (edit_manifest(lambda m: (m["wrong_pairs"] or m["files"][0]).update(path="a/b")), "_manifest.json",
         "not a plain file name"),
        (lambda c: (c / "_README.md").write_text("mine"), "_README.md", "damaged or was changed"),
        (lambda c: flip(c / ".huggingface.yaml"), ".huggingface.yaml", "damaged or was changed"),
        (lambda c: (c / ".huggingface.yaml").unlink(), ".huggingface.yaml", "missing"),
        (edit_index(lambda i: i["documents"].update({"../secret": "0"})), "_shards.json", "not a document"),
        (edit_index(lambda i: i["shards"][0].update(file="/etc/passwd")), "_shards.json", "does not list"),
        (edit_manifest(lambda m: m["columns"].pop()), "shard-00000.parquet", "manifest says nothing"),
        (edit_manifest(lambda m: m["columns"][0].update(type="int64")), "shard-00000.parquet", "(int64)"),
        (rewrite(lambda t: t.drop_columns(["line"])), "shard-00001.parquet", "says line (int64)"),
        (rewrite(lambda t: t.select(t.column_names[::-1])), "shard-00001.parquet", "manifest says source"),
        (rewrite(lambda t: t.slice(1)), "shard-00001.parquet", "rows, the manifest says"),
        (rewrite(other_source), "_manifest.json", "which is missing from the counts"),
    ],
)  # fmt: skip
def test_damage(copy: Path, damage: Callable[[Path], Any], file: str, message: str) -> None:
    damage(copy)
    problems = check(copy)
    assert any(Path(str(problem.path)).name == file and message in problem.message for problem in problems), (
        problems
    )


@pytest.mark.parametrize(
    "name",
    ["_README.md", ".huggingface.yaml", "LICENSE", "_manifest.json", "_shards.json", "shard-00000.parquet"],
)
def test_symbolic_links_fail_verification(copy: Path, tmp_path: Path, name: str) -> None:
    """A copy of the corpus would contain the target of the link, which may be any file."""
    secret = tmp_path / "secret"
    if (copy / name).exists():
        (copy / name).rename(secret)  # even one with the right bytes
    else:
        secret.write_text("secret", encoding="utf-8")
    (copy / name).symlink_to(secret)
    assert any(Path(str(one.path)).name == name and "symbolic link" in one.message for one in check(copy))


def test_misplaced_marker_files(sound: Path, tmp_path: Path) -> None:
    """The corpus has a rejected row, or a rejected row has a wrong reason or none. Checksums are right."""

    def marked(table: pa.Table, reason: str | None, name: str = "rejected") -> pa.Table:
        return with_columns(table, **{name: [value and reason for value in table[name].to_pylist()]})

    for kind, change, message in (
        (
            "corpus",
            lambda t: t.append_column("rejected", pa.nulls(len(t))),
            "has the column rejected",
        ),
        ("rejected", lambda t: marked(t, "another"), "the reasons in news"),
        ("rejected", lambda t: marked(t, None), "the reasons in news"),
        ("rejected", lambda t: marked(t, "another", "failed"), "the reasons in news"),
    ):
        target = tmp_path / kind
        shutil.copytree(sound / kind, target)
        rewrite(change)(target)
        assert any(message in problem.message for problem in check(target))
        shutil.rmtree(target)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m["pivots"].pop("cs"), "the counts of the pivots do not add up"),
        (lambda m: m["pivots"].update(pl=m["pivots"].pop("cs")), "rows of 'cs', which is missing"),
        (lambda m: m["pivots"]["cs"].update(kept=0), "the counts of cs do not add up"),
    ],
)
def test_pivots(tmp_path: Path, change: Callable[[dict[str, Any]], Any], message: str) -> None:
    pairs = random_pairs(100, seed=7)
    publish_pairs(tmp_path, table=pairs.append_column(COLUMNS["pivot"], pa.array(["cs", "de"] * 50)))
    assert check(tmp_path / "corpus") == check(tmp_path / "rejected") == []
    edit_manifest(change)(tmp_path / "corpus")
    assert any(message in problem.message for problem in check(tmp_path / "corpus"))


def test_no_such_corpus(tmp_path: Path) -> None:
    assert [problem.message for problem in check(tmp_path / "none")] == ["no such directory"]
    for inside in ("data/corpus", "corpus"):
        (tmp_path / inside).mkdir(parents=True)
        assert check(tmp_path)[0].remedy == f"Did you mean {tmp_path / inside}?"


def test_verification_lists_all_problems(copy: Path) -> None:
    flip(copy / "shard-00001.parquet")
    (copy / "shard-00000.parquet").unlink()
    (copy / "stranger.csv").write_text("x", encoding="utf-8")
    assert {Path(str(problem.path)).name for problem in check(copy)} == {
        "shard-00000.parquet",
        "shard-00001.parquet",
        "stranger.csv",
    }


def test_directories_from_different_publications(
    sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a kill between two renames, each directory is sound, but they do not belong together."""
    publish_pairs(tmp_path, rows=300)
    assert check(tmp_path / "corpus") == check(tmp_path / "rejected") == []
    shutil.rmtree(tmp_path / "rejected")
    assert check(tmp_path / "corpus") == []  # a corpus may be passed on alone
    shutil.copytree(sound / "rejected", tmp_path / "rejected")
    for one in ("corpus", "rejected"):
        monkeypatch.chdir(tmp_path / one)
        for path in (tmp_path / one, Path()):
            assert "a different run" in check(path)[0].message
    for other in (sound / "rejected", tmp_path / "corpus"):  # of another run, and the same pairs again
        shutil.rmtree(tmp_path / "rejected")
        shutil.copytree(other, tmp_path / "rejected")
        with pytest.raises(InputError, match="comes from a different run"):
            open_publication(tmp_path / "corpus")
    assert [one.name for one in open_publication(tmp_path / "corpus", with_rejected=False)] == ["corpus"]
