"""Archives that models are distributed in: unpacked into their own folder alone, and to a bounded size."""

import errno
import stat
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from paraforge.base.errors import InputError
from paraforge.base.interrupts import check_interrupt
from paraforge.base.text.compression import archive_errors

# Weights hardly shrink and vocabularies shrink fourfold: whatever swells a hundredfold is no model.
MOST_RATIO = 100
# Room for small archives, whose texts may shrink more.
LEAST_BOUND = 64 << 20
MOST_BYTES = 256 << 30
MOST_ENTRIES = 10_000
_BLOCK = 1 << 20
_SHOWN = 80  # characters of a name in a message


def is_archive(path: Path) -> bool:
    """Whether a file is a zip or a tar (also gz, bz2, xz) archive; a torch checkpoint, a zip too, is not."""
    if not path.is_file() or path.suffix in (".pt", ".bin", ".npz"):
        return False
    return zipfile.is_zipfile(path) or tarfile.is_tarfile(path)


@contextmanager
def unpacked(path: Path, beside: Path) -> Iterator[Path]:
    """Unpack an archive into a folder of its own, which is removed when the block ends.

    path: zip or tar archive. beside: directory on whose disk the folder is made.

    Returns the folder; where the archive holds nothing but one folder, that one.

    Raises InputError: it is damaged, holds a link or a name that leads out of the folder, or is larger inside
    than a model can be.
    """
    beside.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".unpacked-", dir=beside) as name:
        folder = Path(name)
        with archive_errors(path):
            if zipfile.is_zipfile(path):
                _unpack_zip(path, folder)
            else:
                _unpack_tar(path, folder)
        inside = list(folder.iterdir())
        try:
            yield inside[0] if len(inside) == 1 and inside[0].is_dir() else folder
        except InputError as error:  # the user knows the archive, not the folder
            raise error.renamed(folder, path) from error


def check_zip(path: Path) -> None:
    """Refuse a zip file (also a NumPy .npz) whose members are larger than a model's can be. Raises
    InputError: they are, or it is no zip file."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except (zipfile.BadZipFile, EOFError) as error:
        raise InputError(f"damaged or truncated: {error}", path) from error
    bound = _Bound(path)
    for member in members:
        bound.enter()
        bound.take(member.file_size)


class _Bound:
    """Counts entries and bytes, and refuses more than a model can have."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._left = min(MOST_BYTES, max(LEAST_BOUND, MOST_RATIO * path.stat().st_size))
        self._entries = 0

    def enter(self) -> None:
        self._entries += 1
        if self._entries > MOST_ENTRIES:
            raise InputError(f"refused: more than {MOST_ENTRIES:,} files in it", self._path)

    def take(self, amount: int) -> None:
        self._left -= amount
        if self._left < 0:
            raise InputError("refused: it unpacks to far more than its size", self._path)


def _target(folder: Path, name: str, path: Path) -> Path:
    pure = PurePosixPath(name)
    if not pure.parts:
        raise InputError(f"refused: {_shown(name)} is no name of a file", path)
    if pure.is_absolute() or ".." in pure.parts or "\\" in name or "\0" in name or ":" in pure.parts[0]:
        raise InputError(f"refused: the name {_shown(name)} leads out of its folder", path)
    return folder.joinpath(*pure.parts)


def _shown(name: str) -> str:
    return repr(name if len(name) <= _SHOWN else f"{name[:_SHOWN]}...")


@contextmanager
def _member(path: Path, name: str) -> Iterator[None]:
    """Name archive and member where a member cannot be unpacked."""
    try:
        yield
    except (NotImplementedError, RuntimeError) as error:  # an unknown compression, a password
        raise InputError(f"{_shown(name)} cannot be unpacked: {error}", path) from error
    except OSError as error:
        if error.errno in (errno.EEXIST, errno.EISDIR, errno.ENOTDIR):
            raise InputError(f"refused: {_shown(name)} is in it twice, or within a file", path) from error
        if error.errno in (errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ):
            raise InputError(f"refused: {_shown(name)} cannot be a file's name here", path) from error
        raise


def _unpack_zip(path: Path, folder: Path) -> None:
    bound = _Bound(path)
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            bound.enter()
            mode = member.external_attr >> 16
            shown = _shown(member.filename)
            if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise InputError(f"refused: {shown} is a link or a device", path)
            if member.flag_bits & 1:
                raise InputError(f"{shown} is encrypted", path, remedy="Unpack it yourself.")
            if member.is_dir():
                continue
            target = _target(folder, member.filename, path)
            with _member(path, member.filename), archive.open(member) as source:
                _copy(source, target, bound)


def _unpack_tar(path: Path, folder: Path) -> None:
    bound = _Bound(path)
    with tarfile.open(path, "r:*") as archive:
        for member in archive:
            bound.enter()
            if member.isdir():
                continue
            source = archive.extractfile(member) if member.isreg() else None
            if source is None:
                raise InputError(f"refused: {_shown(member.name)} is a link or a device", path)
            target = _target(folder, member.name, path)
            with _member(path, member.name), source:
                _copy(source, target, bound)
        # The checksum of compressed data is at its end, behind the last member.
        while archive.fileobj is not None and (block := archive.fileobj.read(_BLOCK)):
            bound.take(len(block))


def _copy(source: IO[bytes], target: Path, bound: _Bound) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    # "x": two members of one name are a trick.
    with target.open("xb") as file:
        while block := source.read(_BLOCK):
            check_interrupt()
            bound.take(len(block))
            file.write(block)
