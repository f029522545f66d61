"""Archives stay in their own folder and within bounds."""

import bz2
import gzip
import io
import lzma
import random
import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from paraforge.base.errors import InputError
from paraforge.translation.models import archives
from paraforge.translation.models.archives import is_archive, unpacked

pytestmark = pytest.mark.filterwarnings("ignore:Duplicate name")


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
