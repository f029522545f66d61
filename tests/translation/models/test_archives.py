"""Archives stay in their own folder and within bounds. Models of the hub, against a server on this machine
that speaks as much of its protocol as is needed."""

import bz2
import gzip
import hashlib
import http.server
import io
import json
import lzma
import random
import stat
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from paraforge.base.errors import InputError
from paraforge.translation.models import archives
from paraforge.translation.models.archives import is_archive, unpacked
from paraforge.translation.models.importing import download, import_model, is_hub_name, wanted
from tests.translation.models.tiny import write_ctranslate2

pytestmark = pytest.mark.filterwarnings("ignore:Duplicate name")
pytest.importorskip("huggingface_hub")
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def _zip(path: Path, *members: tuple[str, bytes], mode: int = 0) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            information = zipfile.ZipInfo(name)
            information.compress_type = zipfile.ZIP_DEFLATED
            information.external_attr = mode << 16
            archive.writestr(information, content)


def _tar(path: Path, name: str, content: bytes = b"x", kind: bytes = tarfile.REGTYPE, link: str = "") -> None:
    with tarfile.open(path, "w:gz") as archive:
        information = tarfile.TarInfo(name)
        information.type, information.linkname, information.size = kind, link, len(content)
        archive.addfile(information, io.BytesIO(content))


def _tar_twice(path: Path) -> None:
    with tarfile.open(path, "w:gz") as archive:
        for content in (b"x", b"y"):
            information = tarfile.TarInfo("a")
            information.size = 1
            archive.addfile(information, io.BytesIO(content))


def _unknown_method(path: Path) -> None:
    """Compression 99, which no program of ours reads: in the member's header and in the directory."""
    _zip(path, ("a", b"x"))
    content = bytearray(path.read_bytes())
    content[8:10] = (99).to_bytes(2, "little")
    directory = content.index(b"PK\x01\x02")
    content[directory + 10 : directory + 12] = (99).to_bytes(2, "little")
    path.write_bytes(content)


def test_the_only_folder_is_the_model(tmp_path: Path) -> None:
    _zip(tmp_path / "one.zip", ("model/a.txt", b"a"), ("model/sub/b.txt", b"b"))
    _zip(tmp_path / "flat.zip", ("a.txt", b"a"), ("sub/b.txt", b"b"))
    for name in ("one.zip", "flat.zip"):
        assert is_archive(tmp_path / name)
        with unpacked(tmp_path / name, tmp_path / "place") as folder:
            assert (folder / "a.txt").read_bytes() == b"a"
            assert (folder / "sub" / "b.txt").read_bytes() == b"b"
        assert not list((tmp_path / "place").iterdir())


def test_checkpoints_of_torch_are_no_archives(tmp_path: Path) -> None:
    _zip(tmp_path / "checkpoint.pt", ("archive/data.pkl", b"x"))
    assert not is_archive(tmp_path / "checkpoint.pt")
    (tmp_path / "text").write_text("nothing")
    assert not is_archive(tmp_path / "text")
    assert not is_archive(tmp_path)


@pytest.mark.parametrize(
    ("write", "message"),
    [
        pytest.param(lambda p: _zip(p, ("../out.txt", b"x")), "leads out of its folder", id="zip up"),
        pytest.param(lambda p: _zip(p, ("/out.txt", b"x")), "leads out of its folder", id="zip root"),
        pytest.param(lambda p: _zip(p, ("a\\..\\out", b"x")), "leads out of its folder", id="zip backslash"),
        pytest.param(
            lambda p: _zip(p, ("link", b"/etc/passwd"), mode=stat.S_IFLNK | 0o777), "a link", id="zip link"
        ),
        pytest.param(lambda p: _zip(p, ("a", b"x"), ("a", b"y")), "'a' is in it twice", id="zip twice"),
        pytest.param(
            lambda p: _zip(p, ("a", b"x"), ("a/b", b"y")), "'a/b' is in it twice", id="zip in a file"
        ),
        pytest.param(lambda p: _zip(p, ("a/b", b"x"), ("a", b"y")), "'a' is in it twice", id="zip a folder"),
        pytest.param(lambda p: _zip(p, (".", b"x")), "'.' is no name of a file", id="zip dot"),
        pytest.param(lambda p: _zip(p, ("a" * 300, b"x")), r"'a{80}\.\.\.' cannot be", id="zip long name"),
        pytest.param(lambda p: _unknown_method(p), "'a' cannot be unpacked: .*compression", id="zip method"),
        pytest.param(lambda p: _tar(p, "."), "'.' is no name of a file", id="tar dot"),
        pytest.param(lambda p: _tar(p, "a" * 300), r"'a{80}\.\.\.' cannot be", id="tar long name"),
        pytest.param(lambda p: _tar_twice(p), "'a' is in it twice", id="tar twice"),
        pytest.param(lambda p: _zip(p, ("a", bytes(70 << 20))), "refused: it unpacks", id="zip bomb"),
        pytest.param(lambda p: _tar(p, "../out.txt"), "leads out of its folder", id="tar up"),
        pytest.param(lambda p: _tar(p, "/out.txt"), "leads out of its folder", id="tar root"),
        pytest.param(lambda p: _tar(p, "l", b"", tarfile.SYMTYPE, "/etc/passwd"), "a link", id="tar link"),
        pytest.param(lambda p: _tar(p, "l", b"", tarfile.LNKTYPE, "../../x"), "a link", id="tar hard link"),
        pytest.param(lambda p: _tar(p, "d", b"", tarfile.CHRTYPE), "a device", id="tar device"),
        pytest.param(lambda p: _tar(p, "a", bytes(70 << 20)), "refused: it unpacks", id="tar bomb"),
    ],
)
def test_tricks_are_refused(tmp_path: Path, write: Callable[[Path], None], message: str) -> None:
    archive = tmp_path / "inside" / "archive"
    archive.parent.mkdir()
    write(archive)
    with pytest.raises(InputError, match=message) as caught, unpacked(archive, tmp_path / "inside"):
        pass
    # One line with the archive, and no temporary name.
    assert str(caught.value).startswith(f"{archive}: ")
    assert ".unpacked-" not in str(caught.value)
    assert "\n" not in str(caught.value)
    # Nothing was written outside, and nothing is left inside.
    assert [path.name for path in tmp_path.rglob("*")] == ["inside", "archive"]


def test_too_many_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MOST_ENTRIES", 3)
    _zip(tmp_path / "a.zip", *((str(number), b"x") for number in range(4)))
    with pytest.raises(InputError, match="more than 3 files"), unpacked(tmp_path / "a.zip", tmp_path):
        pass


def test_damaged_archives(tmp_path: Path) -> None:
    _tar(tmp_path / "a.tar.gz", "a", bytes(range(256)) * 400)
    whole = gzip.decompress((tmp_path / "a.tar.gz").read_bytes())
    (tmp_path / "cut.tar.gz").write_bytes(gzip.compress(whole)[:-40])
    with (
        pytest.raises(InputError, match="damaged or truncated archive"),
        unpacked(tmp_path / "cut.tar.gz", tmp_path),
    ):
        pass


@pytest.mark.parametrize("kind", ["zip", "tar.gz", "tar.bz2", "tar.xz"])
def test_damage_anywhere_is_found(tmp_path: Path, kind: str) -> None:
    """Also in a member's compressed bytes, where it may still unpack to as many bytes as before."""
    chance = random.Random(kind)
    content = "".join(chance.choice("abcdefgh \n") for _ in range(3_000)).encode()
    path = tmp_path / f"a.{kind}"
    if kind == "zip":
        _zip(path, ("a", content))
    else:
        _tar(path, "a", content)
        whole = gzip.decompress(path.read_bytes())
        path.write_bytes({"gz": gzip, "bz2": bz2, "xz": lzma}[kind[4:]].compress(whole))
    packed = path.read_bytes()
    refused = 0
    for _ in range(150):
        damaged = bytearray(packed)
        damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
        path.write_bytes(damaged)
        try:
            with unpacked(path, tmp_path) as folder:
                # Its name has no checksum in a zip file's local header, and is not used.
                assert [one.read_bytes() for one in folder.iterdir()] == [content]
        except InputError as error:
            refused += 1
            assert str(error).startswith(str(path)) and "\n" not in str(error)
    assert refused > 100


@pytest.fixture
def hub(tiny_fairseq: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """A hub with the model org/tiny; gives the list of files that were asked for."""
    from huggingface_hub import constants

    folder = write_ctranslate2(tiny_fairseq, tmp_path / "repository")
    (folder / "run_me.py").write_text("raise SystemExit('code of the model was run')")
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self._answer(body=False)

        def do_GET(self) -> None:
            self._answer(body=True)

        def _answer(self, body: bool) -> None:
            parts = self.path.partition("?")[0].strip("/").split("/")
            revisions = ([], ["revision", "main"], ["revision", COMMIT])
            if parts[:4] == ["api", "models", "org", "tiny"] and parts[4:] in revisions:
                files = [{"rfilename": file.name} for file in sorted(folder.iterdir())]
                content = json.dumps({"id": "org/tiny", "sha": COMMIT, "siblings": files}).encode()
                self._send(200, content, body)
            elif parts[:4] == ["org", "tiny", "resolve", COMMIT] and (folder / parts[4]).is_file():
                asked.append(parts[4])
                self._send(200, (folder / parts[4]).read_bytes(), body)
            else:
                missing = "RevisionNotFound" if "tiny" in parts else "RepoNotFound"
                self._send(404, b"{}", body, {"X-Error-Code": missing})

        def _send(self, code: int, content: bytes, body: bool, headers: dict[str, str] | None = None) -> None:
            self.send_response(code)
            etag = hashlib.sha256(content).hexdigest()
            for name, value in {"X-Repo-Commit": COMMIT, "ETag": f'"{etag}"', **(headers or {})}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if body:
                self.wfile.write(content)

        def log_message(self, format: str, *arguments: object) -> None:
            """Silent."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    endpoint = f"http://127.0.0.1:{server.server_port}"
    template = constants.HUGGINGFACE_CO_URL_TEMPLATE.replace(constants.ENDPOINT, endpoint)
    monkeypatch.setattr(constants, "ENDPOINT", endpoint)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    yield asked
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_model_is_imported_by_its_name(hub: list[str], tmp_path: Path) -> None:
    description = import_model("org/tiny", tmp_path / "nmt")
    assert description["imported_from"] == f"org/tiny@{COMMIT}"
    assert description["origin"] == "ctranslate2"
    assert "run_me.py" not in hub
    local = import_model(tmp_path / "repository", tmp_path / "local")
    assert description["fingerprint"] == local["fingerprint"]
    assert import_model(f"org/tiny@{COMMIT}", tmp_path / "pinned")["fingerprint"] == local["fingerprint"]


def test_what_is_not_on_the_hub(hub: list[str]) -> None:
    with pytest.raises(InputError, match="org/absent is neither a path here nor a model of the hub"):
        download("org/absent")
    with pytest.raises(InputError, match="the hub's org/tiny has no revision 'v9'"):
        download("org/tiny@v9")


def test_no_way_to_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(InputError, match=r"cannot reach the Hub for|the Hub does not give"):
        download("org/tiny")


def test_names() -> None:
    assert is_hub_name("Helsinki-NLP/opus-mt-cs-en")
    assert is_hub_name("facebook/nllb-200@main")
    for text in ("models", "../models/x", "/a/b", "a/b/c", "", "a/.."):
        assert not is_hub_name(text)


def test_files_that_are_wanted() -> None:
    names = ["config.json", "pytorch_model.bin", "model.safetensors", "tf_model.h5", "model.py", "source.spm"]
    assert wanted(names) == ["config.json", "model.safetensors", "source.spm"]
    assert wanted(["pytorch_model.bin", "a/model.safetensors"]) == ["pytorch_model.bin"]
    assert wanted(["model.bin", "shared_vocabulary.txt"]) == ["model.bin", "shared_vocabulary.txt"]
