"""Corpora of the mtdata catalogue, their files served on loopback."""

from __future__ import annotations

import http.server
import io
import json
import os
import random
import sys
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from paraforge.base.errors import InputError, MissingPackageError
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.store import ShardDirectory
from paraforge.intake.bitext import catalogue
from paraforge.intake.bitext.ingest import ingest
from paraforge.intake.bitext.parameters import IngestParameters
from tests.intake.bitext.helpers import write

DATASET = "Loop-corpus-1-ces-eng"
PAIRS = [("Ahoj", "Hello"), ("Nazdar", "Hi")]
CS, EN = ("".join(f"{text}\n" for text in side) for side in zip(*PAIRS, strict=True))
UNIT = '<tu><tuv xml:lang="{}"><seg>{}</seg></tuv><tuv xml:lang="{}"><seg>{}</seg></tuv></tu>'
TMX = "<tmx>" + "".join(UNIT.format("en-GB", en, "cs", cs) for cs, en in PAIRS) + "</tmx>"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A directory and the address under which its files are served."""
    files = tmp_path / "served"
    files.mkdir()
    handler = partial(http.server.SimpleHTTPRequestHandler, directory=str(files))
    handler.log_message = lambda *arguments: None  # type: ignore[attr-defined]
    httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=httpd.serve_forever)
    thread.start()
    yield files, f"http://127.0.0.1:{httpd.server_address[1]}"
    httpd.shutdown()
    httpd.server_close()
    thread.join()


def entry(**fields: Any) -> dict[str, Any]:
    """What mtdata says of a corpus, from its own class for entries."""
    mtdata_entry = pytest.importorskip("mtdata.entry", reason="mtdata is not installed")
    made = mtdata_entry.Entry(DATASET, **fields)
    index = SimpleNamespace(get_entries=lambda: [made], version="0")
    return catalogue.describe(index, DATASET)


def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: dict[str, Any]) -> list[tuple[str, str]]:
    monkeypatch.setattr(catalogue, "find_entry", lambda dataset: found)
    source = {"name": "loop", "format": "mtdata", "dataset": DATASET}
    parameters = IngestParameters.model_validate({"sources": [source]})
    ingest(parameters, tmp_path / "out", Resources(work=tmp_path / "work", workers=1))
    (table,) = ShardDirectory(tmp_path / "out").tables(["source_text", "reference"])
    return list(zip(*table.to_pydict().values(), strict=True))


def zipped(path: Path, **members: str) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(name.replace("__", "."), text)


def tarred(path: Path, **members: str) -> None:
    with tarfile.open(path, "w:gz") as archive:
        for name, text in members.items():
            information = tarfile.TarInfo(f"./data/{name.replace('__', '.')}")
            information.size = len(text.encode())
            archive.addfile(information, io.BytesIO(text.encode()))


def test_a_zip_with_parallel_texts(
    tmp_path: Path, server: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    files, address = server
    zipped(files / "corpus.zip", a__cs=CS, a__en=EN, README="read me")
    found = entry(url=f"{address}/corpus.zip", in_paths=["*.cs", "*.en"], in_ext="txt")
    assert rows(tmp_path, monkeypatch, found) == PAIRS
    (files / "corpus.zip").unlink()  # a second run has all it needs
    monkeypatch.setattr(catalogue, "find_entry", None)
    source = {"name": "loop", "format": "mtdata", "dataset": DATASET}
    parameters = IngestParameters.model_validate({"sources": [source]})
    again = ingest(parameters, tmp_path / "out", Resources(work=tmp_path / "work", workers=1))
    assert again.kept == 2


def test_a_tar_with_parallel_texts(
    tmp_path: Path, server: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    files, address = server
    tarred(files / "corpus.tgz", a__cs=CS, a__en=EN)
    found = entry(url=f"{address}/corpus.tgz", in_paths=["data/a.cs", "data/a.en"], in_ext="txt")
    assert rows(tmp_path, monkeypatch, found) == PAIRS


@pytest.mark.parametrize("columns", [None, (1, 2)])
def test_a_compressed_table(
    tmp_path: Path,
    server: tuple[Path, str],
    monkeypatch: pytest.MonkeyPatch,
    columns: tuple[int, int] | None,
) -> None:
    files, address = server
    before = "" if columns is None else "0.9\t"
    write(files / "corpus.tsv.gz", "".join(f"{before}{cs}\t{en}\tmore\n" for cs, en in PAIRS))
    found = entry(url=f"{address}/corpus.tsv.gz", cols=columns)
    assert rows(tmp_path, monkeypatch, found) == PAIRS


def test_a_tmx_with_two_letter_languages(
    tmp_path: Path, server: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    files, address = server
    write(files / "corpus.tmx.gz", TMX)
    assert rows(tmp_path, monkeypatch, entry(url=f"{address}/corpus.tmx.gz")) == PAIRS


def test_two_addresses(tmp_path: Path, server: tuple[Path, str], monkeypatch: pytest.MonkeyPatch) -> None:
    files, address = server
    write(files / "train.cs", CS)
    write(files / "train.en", EN)
    found = entry(url=(f"{address}/train.cs", f"{address}/train.en"), ext="txt")
    assert rows(tmp_path, monkeypatch, found) == PAIRS


def test_a_format_that_is_not_read(
    tmp_path: Path, server: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    files, address = server
    zipped(files / "corpus.zip", a__sgm=CS, b__sgm=EN)
    found = entry(url=f"{address}/corpus.zip", in_paths=["a.sgm", "b.sgm"], in_ext="sgm")
    with pytest.raises(InputError, match="its format is sgm, which is not read here") as raised:
        rows(tmp_path, monkeypatch, found)
    assert "mtdata get" in str(raised.value)


def test_a_damaged_archive(tmp_path: Path, server: tuple[Path, str], monkeypatch: pytest.MonkeyPatch) -> None:
    files, address = server
    zipped(files / "corpus.zip", a__cs=CS * 100, a__en=EN)
    spoilt = bytearray((files / "corpus.zip").read_bytes())
    spoilt[45] ^= 0xFF
    (files / "corpus.zip").write_bytes(bytes(spoilt))
    found = entry(url=f"{address}/corpus.zip", in_paths=["*.cs", "*.en"], in_ext="txt")
    with pytest.raises(InputError, match="damaged or truncated archive"):
        rows(tmp_path, monkeypatch, found)


def test_a_member_that_is_not_there(
    tmp_path: Path, server: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    files, address = server
    zipped(files / "corpus.zip", a__cs=CS)
    found = entry(url=f"{address}/corpus.zip", in_paths=["*.cs", "*.en"], in_ext="txt")
    with pytest.raises(InputError, match=r"0 members match '\*\.en'"):
        rows(tmp_path, monkeypatch, found)


def test_other_languages(tmp_path: Path, server: tuple[Path, str], monkeypatch: pytest.MonkeyPatch) -> None:
    found = entry(url=f"{server[1]}/corpus.tsv") | {"languages": ["deu", "eng"]}
    with pytest.raises(InputError, match="its languages are deu, eng, not ces, eng"):
        rows(tmp_path, monkeypatch, found)


def test_an_identifier_that_is_not_there_brings_similar_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    named = [SimpleNamespace(did=f"Loop-{name}-1-ces-eng") for name in ("corpus", "corpora", "other")]
    index = SimpleNamespace(get_entries=lambda: named, version="0")
    answer = catalogue.describe(index, "Loop-corpsu-1-ces-eng")
    assert answer["similar"][0] == DATASET
    done = SimpleNamespace(stdout=f"log\n{json.dumps(answer)}\n", stderr="")
    monkeypatch.setattr(catalogue.subprocess, "run", lambda *arguments, **options: done)
    monkeypatch.setattr(catalogue, "require", lambda *names: None)
    with pytest.raises(
        InputError, match=r"not in the catalogue of mtdata 0; similar identifiers: Loop-corpus"
    ):
        catalogue.find_entry("Loop-corpsu-1-ces-eng")


def test_without_mtdata(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mtdata", None)
    monkeypatch.delitem(sys.modules, "mtdata.entry", raising=False)
    with pytest.raises(MissingPackageError, match=r"pip install .*\[catalogue\]'"):
        catalogue.find_entry(DATASET)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(
    not os.environ.get("PARAFORGE_CATALOGUE"),
    reason="PARAFORGE_CATALOGUE is not set: this test has mtdata build its whole index, half a minute's work",
)
def test_the_real_catalogue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mtdata", reason="mtdata is not installed")
    monkeypatch.setenv("MTDATA", str(tmp_path))
    found = catalogue.find_entry("Statmt-europarl-9-ces-eng")
    assert found["languages"] == ["ces", "eng"]
    assert found["tags"] == [["ces", "cs"], ["eng", "en"]]
    assert found["url"].endswith("europarl-v9.cs-en.tsv.gz")


@pytest.mark.parametrize("kind", ["zip", "lzma.zip", "tgz"])
def test_damaged_archives_give_the_exact_text_or_one_line(tmp_path: Path, kind: str) -> None:
    texts = {"*.cs": CS * 40, "*.en": EN * 40}
    archive = tmp_path / f"corpus.{kind}"
    if kind == "tgz":
        tarred(archive, a__cs=texts["*.cs"], a__en=texts["*.en"])
    else:
        method = zipfile.ZIP_LZMA if kind.startswith("lzma") else zipfile.ZIP_DEFLATED
        with zipfile.ZipFile(archive, "w", method) as opened:
            for name, text in texts.items():
                opened.writestr(name.replace("*", "a"), text)
    whole = archive.read_bytes()
    chance = random.Random(kind)
    refused = 0
    for number in range(250):
        damaged = bytearray(whole)
        for _ in range(chance.randint(1, 2)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        archive.write_bytes(damaged[: chance.choice([len(damaged), chance.randrange(len(damaged))])])
        try:
            paths = catalogue._extract(archive, list(texts), tmp_path / str(number), "txt")
        except InputError as error:
            refused += 1
            assert str(error).startswith(str(archive)) and "\n" not in str(error)
        else:
            assert [path.read_text(encoding="utf-8") for path in paths] == list(texts.values())
    assert refused > 100
