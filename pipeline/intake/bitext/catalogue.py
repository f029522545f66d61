"""Public corpora (OPUS, WMT and others) by their identifier in the catalogue of the package mtdata."""

from __future__ import annotations

import contextlib
import difflib
import fnmatch
import json
import logging
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, cast

from paraforge.base.errors import InputError, require
from paraforge.base.files import atomic_path, read_json, write_json
from paraforge.base.text.compression import archive_errors
from paraforge.base.text.paths import expand
from paraforge.intake.bitext.download import download
from paraforge.intake.bitext.parameters import CatalogueSource
from paraforge.intake.bitext.readers.moses import MosesSource
from paraforge.intake.bitext.readers.tmx import TmxSource
from paraforge.intake.bitext.readers.tsv import TsvSource
from paraforge.intake.bitext.source import ONLY, FileSource

logger = logging.getLogger(__name__)

_ARCHIVES = ("zip", "tar", "tar.gz", "tgz")
_ENTRY = "entry.json"


def fetch(source: CatalogueSource, cache: Path) -> tuple[FileSource, list[dict[str, Path]]]:
    """Look a corpus up, fetch its files, and say how they are read.

    mtdata is asked only for the address and the format: fetching and reading are ours, so that a file that is
    cut short or ragged is noticed. What was fetched before is not fetched again.

    source: the identifier and the languages.
    cache: where downloads are kept, if the source names no other place.

    Returns the reader, and the paths of each file or pair of files.

    Raises:
        MissingPackageError: mtdata is not installed.
        InputError: no such corpus, other languages, a format that is not read, or it cannot be had.
    """
    root = Path(expand(source.cache)) if source.cache else cache
    directory = root / source.dataset.replace("/", "_")
    if (directory / _ENTRY).exists():
        entry = read_json(directory / _ENTRY)
    else:
        entry = find_entry(source.dataset)
        write_json(directory / _ENTRY, entry)
    order = _order(source, entry["languages"])
    urls = [entry["url"]] if isinstance(entry["url"], str) else list(entry["url"])
    files = []
    for number, url in enumerate(urls):
        files.append(directory / f"{number}-{Path(url).name or 'download'}")
        download(url, files[-1])
    kind = entry["ext"]
    if kind in _ARCHIVES:
        kind = entry["in_ext"] or ""
        files = _extract(files[0], entry["in_paths"] or [], directory, kind)
    elif entry["in_ext"]:
        kind = entry["in_ext"] if kind.startswith(entry["in_ext"]) else f"{entry['in_ext']} in {kind}"
    return _reader(source, kind.split(".")[0], files, order, entry)


def find_entry(dataset: str) -> dict[str, Any]:
    """The catalogue's entry of a corpus.

    A process of its own does this: mtdata holds 290,000 entries in memory and sets up logging for itself.

    Returns ``id languages tags url ext in_ext in_paths cols`` as JSON values.

    Raises:
        MissingPackageError: mtdata is not installed.
        InputError: no such corpus; the message names similar ones.
    """
    require("mtdata.entry", "catalogue")
    found = subprocess.run(
        [sys.executable, "-m", __name__, dataset], capture_output=True, text=True, check=False, timeout=600
    )
    try:
        answer = json.loads(found.stdout.splitlines()[-1])
    except (IndexError, ValueError) as error:
        raise InputError(f"mtdata failed: {found.stderr.strip()[-500:]}", dataset) from error
    if "similar" in answer:
        told = ", ".join(answer["similar"]) or "none"
        raise InputError(
            f"not in the catalogue of mtdata {answer['version']}; similar identifiers: {told}",
            dataset,
            remedy="'mtdata list -l ces-eng -id' lists those of a pair of languages",
        )
    return cast("dict[str, Any]", answer)


def describe(index: Any, dataset: str) -> dict[str, Any]:
    """An entry of mtdata's index as JSON values, or ``similar`` identifiers where there is none.

    index: ``mtdata.index.Index`` with its entries loaded. dataset: identifier.
    """
    by_id = {str(entry.did): entry for entry in index.get_entries()}
    entry = by_id.get(dataset)
    if entry is None:
        wanted = dataset.rsplit("-", 2)[1:]
        same = [name for name in by_id if name.rsplit("-", 2)[1:] in (wanted, wanted[::-1])]
        return {
            "similar": difflib.get_close_matches(dataset, same or list(by_id), n=5),
            "version": index.version,
        }
    languages = [str(tag) for tag in entry.did.langs]
    return {
        "id": dataset,
        "languages": languages,
        "tags": [_tags(language) for language in languages],
        "url": entry.url if isinstance(entry.url, str) else list(entry.url),
        "ext": entry.ext,
        "in_ext": entry.in_ext,
        "in_paths": None if entry.in_paths is None else list(entry.in_paths),
        "cols": None if entry.cols is None else list(entry.cols),
    }


def _order(source: CatalogueSource, languages: list[str]) -> list[str]:
    order = []
    for language in languages:
        name = next((n for n, wanted in source.languages.items() if _same(language, wanted)), None)
        if name is None or name in order:
            raise InputError(
                f"its languages are {', '.join(languages)}, not {', '.join(source.languages.values())}",
                source.dataset,
            )
        order.append(name)
    if len(order) != len(source.languages):
        raise InputError(f"it has {len(order)} language, not {len(source.languages)}", source.dataset)
    return order


def _same(language: str, wanted: str) -> bool:
    return language == wanted or language.split("_")[0] == wanted


def _reader(
    source: CatalogueSource, kind: str, files: list[Path], order: list[str], entry: Mapping[str, Any]
) -> tuple[FileSource, list[dict[str, Path]]]:
    if kind in ("txt", "raw") and len(files) == len(order):
        paths = dict(zip(order, files, strict=True))
        texts = {name: str(path) for name, path in paths.items()}
        return MosesSource(format="moses", name=source.name, paths=texts), [paths]
    whole = [str(path) for path in files]
    if kind == "tsv":
        columns = dict(zip(order, entry["cols"] or range(len(order)), strict=False))
        tsv = TsvSource(format="tsv", name=source.name, path=whole, columns=columns)
        return tsv, [{ONLY: path} for path in files]
    if kind == "tmx":
        tags = dict(zip(order, map("|".join, entry["tags"]), strict=True))
        tmx = TmxSource(format="tmx", name=source.name, path=whole, columns={**tags})
        return tmx, [{ONLY: path} for path in files]
    raise InputError(
        f"its format is {kind or entry['ext']}, which is not read here",
        source.dataset,
        remedy=f"'mtdata get -l ces-eng --train {source.dataset} -o DIR' writes two text files: "
        "give them as a source of format moses",
    )


def _tags(language: str) -> list[str]:
    """A language's three-letter tag, as the catalogue has it, and the two-letter one of most TMX files."""
    from mtdata.iso.iso639_1 import ISO693_1_to_3

    three = language.split("_")[0]
    return [three, *(two for two, other in ISO693_1_to_3.items() if other == three)]


def _extract(archive: Path, patterns: list[str], directory: Path, kind: str) -> list[Path]:
    """Write the archive's members that match the patterns, one each, under names of our own."""
    extracted = []
    for number, pattern in enumerate(patterns):
        target = directory / f"{number}-extracted.{kind}"
        if not target.exists():
            with _member(archive, pattern) as (name, stream), atomic_path(target) as temporary:
                logger.info("extracting %s from %s", name, archive.name)
                with temporary.open("wb") as file:
                    shutil.copyfileobj(stream, file, 1 << 20)
        extracted.append(target)
    return extracted


@contextlib.contextmanager
def _member(archive: Path, pattern: str) -> Iterator[tuple[str, BinaryIO]]:
    """Open the one file of a zip or tar archive whose name matches."""
    with archive_errors(archive, "Remove it and run the same command again."):
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as opened:
                name = _only(archive, pattern, fnmatch.filter(opened.namelist(), pattern))
                with opened.open(name) as stream:
                    yield name, cast("BinaryIO", stream)
            return
        with tarfile.open(archive) as tar:
            files = {member.name.removeprefix("./"): member for member in tar if member.isfile()}
            while tar.fileobj is not None and tar.fileobj.read(1 << 20):
                pass  # to the end, where the compressed data has its checksum
            name = _only(archive, pattern, fnmatch.filter(list(files), pattern))
            content = tar.extractfile(files[name])
            assert content is not None  # it is a regular file
            with content:
                yield name, cast("BinaryIO", content)


def _only(archive: Path, pattern: str, matches: list[str]) -> str:
    if len(matches) != 1:
        raise InputError(f"{len(matches)} members match {pattern!r}, one is wanted", archive)
    return matches[0]


def _main(dataset: str) -> None:
    """Print the entry as one line of JSON; run by :func:`find_entry`."""
    from mtdata.index import Index

    sys.stdout.write("\n" + json.dumps(describe(Index.get_instance(), dataset)) + "\n")


if __name__ == "__main__":
    _main(sys.argv[1])
