"""Checks a published corpus against its manifest: files, checksums, rows, columns and counts."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

from paraforge.base.errors import InputError, ParaforgeError, describing
from paraforge.base.files import read_json, sha256_file
from paraforge.base.progress import progress
from paraforge.base.shards.pool import in_order
from paraforge.base.shards.schema import FATE_COLUMNS
from paraforge.base.shards.store import INDEX_NAME, read_parquet, read_schema
from paraforge.corpus.publication.card import CONFIGS_NAME
from paraforge.corpus.publication.datasets import beside
from paraforge.corpus.publication.manifest import (
    KEPT,
    MANIFEST_NAME,
    PUBLISH_AGAIN,
    Manifest,
    PublishedFile,
    read_manifest,
)
from paraforge.corpus.publication.statistics import Published, count_lineage
from paraforge.corpus.selection.fate import Counts, total_of

# Files that may be next to the data without being listed; on the Hub the card has no underscore.
_COMPANIONS = {"_README.md", "README.md", MANIFEST_NAME, INDEX_NAME}
_COMPANION_STEMS = ("license", "licence", "citation", "changelog", "notice")


def _problem(path: Path, message: str, remedy: str = PUBLISH_AGAIN) -> InputError:
    """Describe a difference from the manifest: which file, what is wrong, what to do."""
    return InputError(message, path, remedy=remedy)


@dataclass(frozen=True)
class Verification:
    """The result; the corpus is sound if there are no problems."""

    manifest: Manifest | None
    problems: list[InputError] = field(default_factory=list)


def verify(corpus: Path, workers: int = 2) -> Verification:
    """Check a published corpus, and list all problems. If it has symbolic links, only these are listed, and
    nothing is read.

    corpus: directory of a published corpus, kept or rejected pairs. workers: threads.
    """
    path = corpus / MANIFEST_NAME
    if corpus.is_dir() and (links := list(_links(corpus))):
        return Verification(None, links)
    try:
        manifest = read_manifest(corpus)
    except InputError as error:
        error.remedy = error.remedy or PUBLISH_AGAIN
        return Verification(None, [error])
    problems = [_problem(path, message) for message in _count_problems(manifest)]
    problems += _counterpart_problems(corpus, manifest)
    problems += _strangers(corpus, manifest)
    problems += _index_problems(corpus, manifest)
    if (wrong_pairs := manifest.wrong_pairs) is not None:
        problems += _check_bytes(corpus / wrong_pairs.path, wrong_pairs)
    total, damaged = Published(), False
    with progress(total=manifest.rows, unit="pairs", description=f"verify {corpus.name}") as bar:
        checks = in_order(
            lambda i: _check_file(corpus, manifest, manifest.files[i]), len(manifest.files), workers
        )
        for file, check in zip(manifest.files, checks, strict=True):
            bar.update(file.rows)
            if isinstance(check, InputError):
                problems.append(check)
                damaged = True
            else:
                total.add(check)
    if not damaged:  # the sums mean nothing unless every file could be read
        problems += [_problem(path, message) for message in _sum_problems(manifest, total)]
    return Verification(manifest, problems)


def counterpart(corpus: Path) -> Path | None:
    """Return the directory of rejected pairs next to one of kept pairs, or vice versa; None if there is
    none."""
    other = {"corpus": "rejected", "rejected": "corpus"}.get(corpus.resolve().name)
    path = None if other is None else beside(corpus, other)
    return path if path is not None and path.is_dir() else None


def _counterpart_problems(corpus: Path, manifest: Manifest) -> Iterator[InputError]:
    other = counterpart(corpus)
    if other is None or not manifest.publication:
        return
    with suppress(InputError):  # verifying the other directory reports this
        if read_manifest(other).publication != manifest.publication:
            message = f"comes from a different run than {corpus} (a run was killed between writing the two)"
            yield _problem(other / MANIFEST_NAME, message)


def _count_problems(manifest: Manifest) -> Iterator[str]:
    for name, counts in [("all", manifest.counts), *manifest.sources.items(), *manifest.pivots.items()]:
        try:
            counts.check(f"the counts of {name} do not add up")
        except ParaforgeError as error:
            yield str(error)
    for what, named in (("sources", manifest.sources), ("pivots", manifest.pivots)):
        if named and total_of(named) != manifest.counts:
            yield f"the counts of the {what} do not add up to those of the whole"
    if manifest.rows != manifest.expected_rows:
        yield f"its files have {manifest.rows:,} rows, but its counts give {manifest.expected_rows:,}"


def _links(corpus: Path) -> Iterator[InputError]:
    """Report symbolic links: a copy of the corpus would not contain the files that they point to."""
    for path in sorted(path for path in corpus.iterdir() if path.is_symlink()):
        remedy = "Replace it with a copy of the file."
        yield _problem(path, f"a symbolic link to {path.readlink()}", remedy)


def _strangers(corpus: Path, manifest: Manifest) -> Iterator[InputError]:
    listed = {file.path for file in (*manifest.files, manifest.wrong_pairs) if file is not None}
    for path in sorted(corpus.iterdir()):
        is_text = path.suffix.lower() in ("", ".md", ".txt", ".cff")
        if path.name in listed | _COMPANIONS or path.name.startswith("."):
            continue
        if not (is_text and path.stem.lower().startswith(_COMPANION_STEMS)):
            remedy = "Remove it: programs that read the whole directory would also read this file."
            yield _problem(path, "not in the manifest", remedy)


def _index_problems(corpus: Path, manifest: Manifest) -> Iterator[InputError]:
    path = corpus / INDEX_NAME
    try:
        with describing(path, "not an index of shards"):
            index = read_json(path)
            shards = [(s["file"], s["rows"], s["sha256"]) for s in index["shards"]]
            documents = dict(index.get("documents") or {})
    except InputError as error:
        yield _problem(path, error.message)
        return
    for name, expected in documents.items():
        document = corpus / name
        if name not in _COMPANIONS and name != CONFIGS_NAME:
            yield _problem(path, f"lists {name!r}, which is not a document of a corpus")
        elif not document.is_file():
            if not (corpus / name.removeprefix("_")).is_file():  # the Hub's name of the card
                yield _problem(document, "missing")
        elif sha256_file(document) != expected:
            yield _problem(document, f"differs from {path.name}: it is damaged or was changed")
    if shards != [(file.path, file.rows, file.sha256) for file in manifest.files]:
        yield _problem(path, "does not list the same files as the manifest")


def _check_bytes(path: Path, file: PublishedFile) -> Iterator[InputError]:
    if not path.is_file():
        yield _problem(path, "missing")
    elif (size := path.stat().st_size) != file.bytes:
        yield _problem(path, f"has {size:,} bytes, the manifest says {file.bytes:,}")
    elif sha256_file(path) != file.sha256:
        yield _problem(path, "its SHA-256 differs from the manifest: it was changed or damaged")


def _check_file(corpus: Path, manifest: Manifest, file: PublishedFile) -> InputError | Published:
    """Return the counts of a file, or what is wrong with it."""
    path = corpus / file.path
    if problem := next(_check_bytes(path, file), None):
        return problem
    expected = [f"{column['name']} ({column['type']})" for column in manifest.columns]
    try:
        columns = read_schema(path)
        actual = [f"{column.name} ({column.type})" for column in columns]
        for own, listed in zip_longest(actual, expected, fillvalue="nothing"):
            if own != listed:
                return _problem(path, f"has the column {own} where the manifest says {listed}")
        read = [name for name in ("source", "pivot", *FATE_COLUMNS) if name in columns.names]
        rows = read_parquet(path, read)
        if rows.num_rows != file.rows:
            return _problem(path, f"has {rows.num_rows:,} rows, the manifest says {file.rows:,}")
        return count_lineage(rows)
    except ParaforgeError as error:
        return _problem(path, getattr(error, "message", str(error)))


def _sum_problems(manifest: Manifest, published: Published) -> Iterator[str]:
    """Compare the rows with the counts. With a row that belongs to the other dataset, they cannot agree."""
    for named, rows in ((manifest.sources, published.sources), (manifest.pivots, published.pivots)):
        for name, counts in named.items():
            counted = rows.get(name, Counts())
            if manifest.content == KEPT:
                if counted.kept != counts.kept:
                    yield f"{name} has {counted.kept:,} rows, the counts say {counts.kept:,}"
            elif (counted.rejected, counted.failed) != (counts.rejected, counts.failed):
                yield f"the reasons in {name} differ from the counts"
        for name in sorted(rows.keys() - named.keys()) if named else ():
            yield f"there are rows of '{name}', which is missing from the counts"
