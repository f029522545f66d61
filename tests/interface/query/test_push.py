"""``push`` against a hub of our own: what arrives is the corpus, once; nothing is sent that may not be."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from paraforge.base.errors import InputError
from paraforge.corpus.publication.manifest import read_manifest
from paraforge.corpus.publication.verification import verify
from tests.corpus.publication.test_groups import SPLITS, related_pairs
from tests.corpus.selection.published import publish_pairs
from tests.here import run_command
from tests.interface.query.fake_hub import TOKEN, FakeHub, fake_hub
from tests.project import environment as outer_environment

pytest.importorskip("huggingface_hub")
NAME = "me/corpus"
LICENCES = {"licences": {"news": "CC-BY-4.0", "tatoeba": "CC-BY 2.0 FR"}}


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    with fake_hub() as found:
        yield found


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("push")
    publish_pairs(root, table=related_pairs(), splits=SPLITS, **LICENCES)
    return root / "corpus"


def environment(hub: FakeHub, tmp_path: Path, token: str = TOKEN) -> dict[str, str]:
    settings = {
        "HF_ENDPOINT": hub.address,
        "HF_TOKEN": token,
        "HF_HOME": str(tmp_path / "home"),
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
    }
    outer = {key: value for key, value in outer_environment().items() if key != "HF_HUB_OFFLINE"}
    return {**outer, **settings, "COLUMNS": "300"}


def push(hub: FakeHub, tmp_path: Path, *arguments: object, token: str = TOKEN) -> str:
    """Run the command in a process of its own, as the library reads its settings when it is imported; all it
    says."""
    done = subprocess.run(
        ["paraforge", "push", *map(str, arguments)],
        env=environment(hub, tmp_path, token),
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return " ".join((f"{done.returncode}: " + done.stdout + done.stderr).split())


def downloaded(hub: FakeHub, directory: Path) -> Path:
    directory.mkdir()
    for name, content in hub.repositories[NAME].items():
        (directory / name).write_bytes(content)
    return directory


def test_what_arrives_is_the_corpus(hub: FakeHub, corpus: Path, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    said = push(hub, tmp_path, corpus, NAME)
    assert said.startswith("0: ") and f"{hub.address}/datasets/{NAME}" in said
    copy = downloaded(hub, tmp_path / "copy")
    assert verify(copy).problems == [] and hub.commits == 1 and not hub.private
    for path in corpus.iterdir():
        name = "README.md" if path.name == "_README.md" else path.name
        assert (copy / name).read_bytes() == path.read_bytes()
    loaded = datasets.load_dataset(str(copy), cache_dir=str(tmp_path / "cache"))
    assert {name: len(rows) for name, rows in loaded.items()} == read_manifest(corpus).splits


def test_one_that_was_cut_off_resumes(hub: FakeHub, corpus: Path, tmp_path: Path) -> None:
    hub.break_after = 2
    said = push(hub, tmp_path, corpus, NAME)
    assert said.startswith("2: ") and "the Hub says" in said
    assert hub.commits == 0 and set(hub.repositories[NAME]) == {".gitattributes"}
    hub.break_after = None
    assert push(hub, tmp_path, corpus, NAME).startswith("0: ")
    assert verify(downloaded(hub, tmp_path / "copy")).problems == []
    binary = [path.stat().st_size for path in corpus.iterdir() if path.suffix in (".parquet", ".arrow")]
    assert sorted(hub.sent) == sorted(binary)


@pytest.mark.parametrize("uploads", [1, 2, 3])
def test_one_that_was_killed_resumes(hub: FakeHub, corpus: Path, tmp_path: Path, uploads: int) -> None:
    program = "from paraforge.interface.cli import main; main()"
    command = [sys.executable, "-c", program, "push", str(corpus), NAME]
    process = subprocess.Popen(command, env=environment(hub, tmp_path))
    hub.uploaded = lambda: process.kill() if len(hub.sent) == uploads else None
    assert process.wait() == -signal.SIGKILL
    assert hub.commits == 0 and set(hub.repositories[NAME]) == {".gitattributes"}
    before = len(hub.blobs)
    assert push(hub, tmp_path, corpus, NAME).startswith("0: ")
    copy = downloaded(hub, tmp_path / "copy")
    assert verify(copy).problems == [] and hub.commits == 1
    binary = [path for path in corpus.iterdir() if path.suffix in (".parquet", ".arrow")]
    assert before >= uploads and len(hub.sent) == len(binary)


def test_again_sends_nothing_and_another_one_replaces(hub: FakeHub, corpus: Path, tmp_path: Path) -> None:
    push(hub, tmp_path, corpus, NAME)
    hub.repositories[NAME]["notes.md"] = b"somebody's"
    sent = len(hub.sent)
    assert push(hub, tmp_path, corpus, NAME).startswith("0: ")
    assert len(hub.sent) == sent
    publish_pairs(tmp_path / "less", table=related_pairs(300), **LICENCES)
    assert push(hub, tmp_path, tmp_path / "less" / "corpus", NAME).startswith("0: ")
    assert hub.repositories[NAME].pop("notes.md") == b"somebody's"
    copy = downloaded(hub, tmp_path / "copy")
    assert verify(copy).problems == [] and not list(copy.glob("test-*"))


def test_a_private_one(hub: FakeHub, corpus: Path, tmp_path: Path) -> None:
    assert push(hub, tmp_path, corpus, NAME, "--private").startswith("0: ")
    assert hub.private == {NAME}


def test_a_repository_with_other_files(hub: FakeHub, corpus: Path, tmp_path: Path) -> None:
    hub.repositories[NAME] = {"README.md": b"mine", "data.csv": b"1"}
    said = push(hub, tmp_path, corpus, NAME)
    assert said.startswith("2: ") and "other files in it: README.md, data.csv" in said and "--force" in said
    assert hub.repositories[NAME]["README.md"] == b"mine" and hub.commits == 0
    assert push(hub, tmp_path, corpus, NAME, "--force").startswith("0: ")
    assert hub.repositories[NAME]["data.csv"] == b"1"
    hub.repositories["me/other"] = {"_manifest.json": b"[]"}
    assert "not a corpus' manifest" in push(hub, tmp_path, corpus, "me/other")


def test_no_right_and_no_hub(hub: FakeHub, corpus: Path, tmp_path: Path) -> None:
    assert "hf auth login" in push(hub, tmp_path, corpus, NAME, token="hf_wrong")
    assert "right to write" in push(hub, tmp_path, corpus, "somebody/corpus")
    assert not hub.repositories
    hub.address = "http://127.0.0.1:9"
    said = push(hub, tmp_path, corpus, NAME)
    assert said.startswith("2: ") and "the Hub says" in said


def test_a_dry_run_needs_no_network(corpus: Path, tmp_path: Path) -> None:
    nowhere = FakeHub("http://127.0.0.1:9")
    said = push(nowhere, tmp_path, corpus, NAME, "--dry-run")
    manifest = read_manifest(corpus)
    assert said.startswith("0: ") and "licence of news: CC-BY-4.0" in said and "README.md" in said
    assert all(f"{file.bytes:,} {file.path}" in said for file in manifest.files)
    assert f"{manifest.rows:,} pairs" in said


@pytest.mark.parametrize(
    "licence",
    [
        *(None, "unknown", "not stated", "CC-BY-NC-ND 4.0", "CC_BY_ND", "All rights reserved", "Proprietary"),
        *("no redistribution", "non-redistributable", "Not for redistribution", "may not be redistributed"),
        *("redistribution is prohibited", "redistribution not allowed", "MIT and CC-BY-ND-4.0", "no license"),
        *("Unspecified", "unlicenced", "TODO", "tbd", "N/A", "-", "for research use only", "none"),
        *("see website", "(see LICENSE)", "ask the authors"),
    ],
)
def test_licences_that_do_not_allow_it(hub: FakeHub, tmp_path: Path, licence: str | None) -> None:
    licences = {"news": "CC-BY-SA 4.0", **({"tatoeba": licence} if licence else {})}
    publish_pairs(tmp_path, table=related_pairs(300), licences=licences)
    with pytest.raises(InputError, match=re.escape(f"tatoeba: {licence or 'not stated'}")) as error:
        run_command("push", tmp_path / "corpus", NAME, "--dry-run")
    assert "publish.licences" in str(error.value.remedy) and "news" not in error.value.message
    run_command("push", tmp_path / "corpus", NAME, "--dry-run", "--licences-checked")


def test_what_cannot_be_pushed(corpus: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged"
    shutil.copytree(corpus, damaged)
    os.truncate(damaged / "shard-00000.parquet", 100)
    with pytest.raises(InputError, match="has 100 bytes"):
        run_command("push", damaged, NAME, "--dry-run")
    for name in ("corpus", "a/b/c", "/b", "a/", "č/b", "a b/c", "a/-b", "a/b.git", "a/b--c"):
        with pytest.raises(InputError, match="is not USER/NAME"):
            run_command("push", corpus, name)
