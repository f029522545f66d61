"""``paraforge push`` against a Hub in memory."""

import os
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from paraforge.base.errors import InputError
from paraforge.corpus.publication.manifest import read_manifest
from paraforge.corpus.publication.parameters import NOT_STATED
from paraforge.corpus.publication.verification import verify
from tests.corpus.publication.test_groups import SPLITS, related_pairs
from tests.corpus.publication.test_verdict_words import drawn
from tests.corpus.selection.published import publish_pairs
from tests.here import run_command

huggingface_hub = pytest.importorskip("huggingface_hub")
NAME = "me/corpus"
LICENSES = {"licenses": {"news": "CC-BY-4.0", "tatoeba": "CC-BY 2.0 FR"}}


class Hub:
    """What this program asks of ``HfApi``, with the repositories' files in memory."""

    def __init__(self) -> None:
        self.files: dict[str, dict[str, bytes]] = {}
        self.private: dict[str, bool] = {}

    def __call__(self, **_: Any) -> "Hub":
        return self

    def repo_exists(self, name: str, repo_type: str) -> bool:
        return name in self.files

    def repo_info(self, name: str, repo_type: str) -> Any:
        return SimpleNamespace(private=self.private[name])

    def create_repo(self, name: str, repo_type: str, private: bool, exist_ok: bool) -> str:
        if name not in self.files:
            self.files[name], self.private[name] = {}, private
        return f"https://hub/datasets/{name}"

    def list_repo_files(self, name: str, repo_type: str) -> list[str]:
        return [*self.files[name]]

    def create_commit(self, name: str, operations: list[Any], commit_message: str, repo_type: str) -> None:
        for operation in operations:
            if isinstance(operation, huggingface_hub.CommitOperationDelete):
                del self.files[name][operation.path_in_repo]
            else:
                self.files[name][operation.path_in_repo] = Path(operation.path_or_fileobj).read_bytes()


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Hub:
    found = Hub()
    monkeypatch.setattr(huggingface_hub, "HfApi", found)
    return found


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("push")
    publish_pairs(root, table=related_pairs(), splits=SPLITS, wrong=drawn(50, {"news": 0.6}), **LICENSES)
    return root / "corpus"


def downloaded(hub: Hub, directory: Path) -> Path:
    directory.mkdir()
    for name, content in hub.files[NAME].items():
        (directory / name).write_bytes(content)
    return directory


def test_pushed_files_match_corpus(hub: Hub, corpus: Path, tmp_path: Path) -> None:
    result = run_command("push", corpus, NAME)
    assert "license of news: CC-BY-4.0" in result.stdout and f"datasets/{NAME}" in result.stderr
    copy = downloaded(hub, tmp_path / "copy")
    assert verify(copy).problems == [] and not hub.private[NAME]
    for path in corpus.iterdir():
        name = "README.md" if path.name == "_README.md" else path.name
        assert (copy / name).read_bytes() == path.read_bytes()
    run_command("push", copy, "me/copy")  # also from a download
    assert hub.files["me/copy"] == hub.files[NAME]


def test_push_replaces_only_the_corpus(
    hub: Hub, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.files[NAME], hub.private[NAME] = {"mine.parquet": b"1"}, False
    run_command("push", corpus, NAME)
    assert hub.files[NAME].pop("mine.parquet") == b"1"
    hub.files[NAME]["notes.md"] = b"2"
    publish_pairs(tmp_path / "less", table=related_pairs(300), **LICENSES)
    run_command("push", tmp_path / "less" / "corpus", NAME)
    assert hub.files[NAME].pop("notes.md") == b"2"
    copy = downloaded(hub, tmp_path / "copy")
    assert verify(copy).problems == [] and not list(copy.glob("test-*"))
    # A corpus that is made again while it is uploaded would arrive as parts of both.
    less, before = tmp_path / "less" / "corpus", dict(hub.files[NAME])
    shutil.copytree(corpus, tmp_path / "again")

    def make(*_: Any, **__: Any) -> list[str]:
        shutil.rmtree(less)
        (tmp_path / "again").rename(less)
        return []

    monkeypatch.setattr(hub, "list_repo_files", make)
    with pytest.raises(InputError, match="rebuilt in the meantime"):
        run_command("push", less, NAME)
    assert hub.files[NAME] == before


def test_private_push(hub: Hub, corpus: Path) -> None:
    run_command("push", corpus, NAME, "--private")
    assert hub.private[NAME]
    run_command("push", corpus, NAME, "--private")
    hub.files["me/public"], hub.private["me/public"] = {}, False
    with pytest.raises(InputError, match="exists and is public"):
        run_command("push", corpus, "me/public", "--private")
    assert hub.files["me/public"] == {}


@pytest.mark.parametrize("licenses", [{}, {"news": "MIT"}, {"news": "MIT", "tatoeba": NOT_STATED}])
def test_push_refuses_unlicensed_source(hub: Hub, tmp_path: Path, licenses: dict[str, str]) -> None:
    publish_pairs(tmp_path, table=related_pairs(300), licenses=licenses)
    with pytest.raises(InputError, match=r"no license is stated for .*tatoeba.*publish\.licenses"):
        run_command("push", tmp_path / "corpus", NAME)
    assert not hub.files


@pytest.mark.parametrize("name", ["_README.md", "shard-00000.parquet", "extra.txt", ".cache/key"])
def test_push_refuses_links(hub: Hub, corpus: Path, tmp_path: Path, name: str) -> None:
    copy, outside = tmp_path / "copy", tmp_path / "private"
    shutil.copytree(corpus, copy)
    (copy / name).parent.mkdir(exist_ok=True)
    (copy / name).unlink(missing_ok=True)
    outside.write_text("private")
    (copy / name).symlink_to(outside)
    with pytest.raises(InputError, match="a symbolic link"):
        run_command("push", copy, NAME)
    assert not hub.files


def test_unpushable_corpora(hub: Hub, corpus: Path, tmp_path: Path) -> None:
    said = run_command("push", corpus, NAME, "--dry-run").stdout
    assert f"{read_manifest(corpus).rows:,} pairs" in said and not hub.files
    damaged = tmp_path / "damaged"
    shutil.copytree(corpus, damaged)
    os.truncate(damaged / "shard-00000.parquet", 100)
    with pytest.raises(InputError, match="has 100 bytes"):
        run_command("push", damaged, NAME, "--dry-run")


@pytest.mark.parametrize("wrapped", [False, True])
def test_hub_errors_are_quoted(
    hub: Hub, corpus: Path, monkeypatch: pytest.MonkeyPatch, wrapped: bool
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        response = SimpleNamespace(status_code=403, headers={}, request=None)
        error = huggingface_hub.errors.HfHubHTTPError("403 Forbidden", response=response)
        if wrapped:
            raise RuntimeError("upload failed") from error
        raise error

    monkeypatch.setattr(hub, "create_commit", refuse)
    with pytest.raises(InputError, match=rf"{NAME}: the Hub reports: .*403 Forbidden.*hf auth login"):
        run_command("push", corpus, NAME)


@pytest.mark.parametrize(
    ("name", "says"),
    [("corpus", "not the"), ("a b/c", "not the"), ("a/b/c", "not the"), ("a/b..c", "the Hub")],
)
def test_invalid_repository_name_is_error(corpus: Path, name: str, says: str) -> None:
    with pytest.raises(InputError, match=rf"^{name}: {says} .*Use USER/NAME"):
        run_command("push", corpus, name)
