"""The manifest of a published corpus: files and their SHA-256, columns, counts, parameters and origin."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import pyarrow as pa
from pydantic import AfterValidator, TypeAdapter

from paraforge.base.errors import InputError, check_format, describing
from paraforge.base.files import hash_json, plain_name, read_json, write_json
from paraforge.base.shards.schema import SCHEMA_VERSION
from paraforge.corpus.selection.fate import Counts
from paraforge.versions import __version__

# Readers of a Parquet directory skip names that begin with an underscore.
MANIFEST_NAME = "_manifest.json"
PUBLISH_AGAIN = "Publish the corpus again ('dvc repro publish'), or fetch the file again."
FORMAT = 1
Content = Literal["corpus", "rejected"]
KEPT: Final = "corpus"
REJECTED: Final = "rejected"
TRAIN = "train"


@dataclass(frozen=True)
class PublishedFile:
    """One Parquet file of a published corpus."""

    path: Annotated[str, AfterValidator(plain_name)]
    rows: int
    bytes: int
    sha256: str

    @property
    def split(self) -> str:
        """``train`` for ``shard-00000.parquet``, otherwise the beginning of the name, e.g. ``test``."""
        stem = self.path.rpartition("-")[0]
        return TRAIN if stem == "shard" else stem


@dataclass(frozen=True)
class Manifest:
    """The content of ``_manifest.json``.

    content: ``corpus`` (kept pairs) or ``rejected`` (rejected and failed pairs). name: title of the dataset.
    signature: see :mod:`paraforge.corpus.publication.signature`.
    counts: counts of the whole run; kept, rejected and failed add up to the input rows.
    sources: the same counts for each source. files: the Parquet files, in order.
    pivots: the same counts for each pivot, if there are several.
    columns: name, type and description of each column.
    steps: version, parameters and fingerprints of each step that made the corpus.
    licenses: license of each source, as configured.
    publication: an ID shared by the manifests of the kept and the rejected pairs of one run.
    verdict: see :func:`paraforge.corpus.selection.thresholds.verdict`; empty without mismatched pairs.
    wrong_pairs: the file of mismatched pairs, or None, as for the rejected pairs.
    group_score: see ``publish.group_score``; None without groups.
    """

    content: Content
    name: str
    signature: str
    counts: Counts
    sources: dict[str, Counts]
    files: list[PublishedFile]
    columns: list[dict[str, str]]
    steps: dict[str, Any]
    licenses: dict[str, str]
    publication: str = ""
    verdict: dict[str, Any] = field(default_factory=dict)
    wrong_pairs: PublishedFile | None = None
    pivots: dict[str, Counts] = field(default_factory=dict)
    group_score: float | None = None
    version: str = __version__
    schema_version: int = SCHEMA_VERSION

    @property
    def rows(self) -> int:
        """The rows of all files."""
        return sum(file.rows for file in self.files)

    @property
    def bytes(self) -> int:
        """The size of all files."""
        return sum(file.bytes for file in self.files)

    @property
    def splits(self) -> dict[str, int]:
        """The rows of each split, in the files' order."""
        rows: Counter[str] = Counter()
        for file in self.files:
            rows[file.split] += file.rows
        return dict(rows)

    @property
    def expected_rows(self) -> int:
        """The number of rows that the files must have according to the counts."""
        return self.counts.kept if self.content == KEPT else self.counts.left_out

    def as_dict(self) -> dict[str, Any]:
        """Return it as a JSON value, with the SHA-256 of everything else in ``sha256``."""
        value: dict[str, Any] = {
            "format": FORMAT,
            "paraforge": self.version,
            **self._plain("schema_version", "content", "name", "signature", "publication", "rows", "bytes"),
            "counts": self.counts.as_dict(),
            "sources": _as_dicts(self.sources),
            **self._plain("licenses", "columns", "steps", "verdict"),
            "wrong_pairs": None if self.wrong_pairs is None else vars(self.wrong_pairs),
            "files": [vars(file) for file in self.files],
        }
        if self.pivots:
            value["pivots"] = _as_dicts(self.pivots)
        if self.group_score is not None:
            value["group_score"] = self.group_score
        value["sha256"] = hash_json(value)
        return value

    def _plain(self, *names: str) -> dict[str, Any]:
        return {name: getattr(self, name) for name in names}

    def write(self, directory: Path) -> None:
        """Write ``_manifest.json``."""
        write_json(directory / MANIFEST_NAME, self.as_dict())


def read_manifest(directory: Path) -> Manifest:
    """Read ``_manifest.json`` and check that it is unchanged.

    Raises InputError if it is missing, not JSON, of another format or schema, incomplete, or was changed.
    """
    path = directory / MANIFEST_NAME
    if not directory.is_dir():
        raise InputError("no such directory", directory, remedy="Use the directory of a published corpus.")
    if not path.is_file():
        inside = next((d for d in (directory / KEPT, directory / "data" / KEPT) if d.is_dir()), None)
        remedy = f"Did you mean {inside}?" if inside else "Run 'dvc repro publish' to make one."
        raise InputError("no such file, so this is not a published corpus", path, remedy=remedy)
    value = read_json(path)
    with describing(path, "not a manifest of Paraforge", "Publish the corpus again."):
        check_format(int(value["format"]), FORMAT, path)
        sealed = {key: part for key, part in value.items() if key != "sha256"}
        if hash_json(sealed) != value["sha256"]:
            raise InputError(
                "the manifest was changed after it was written",
                path,
                remedy="Publish the corpus again, or download the manifest again.",
            )
        if value["schema_version"] != SCHEMA_VERSION:
            message = f"written with schema {value['schema_version']}; this version reads {SCHEMA_VERSION}"
            remedy = "Use the version of paraforge that wrote it, or publish the corpus again with this one."
            raise InputError(message, path, remedy=remedy)
        fields = {key: value[key] for key in Manifest.__annotations__ if key in value}
        manifest = TypeAdapter(Manifest).validate_python({**fields, "version": value["paraforge"]})
        if not all({"name", "type", "description"} <= column.keys() for column in manifest.columns):
            raise ValueError("columns: a name, a type or a description is missing")
        return manifest


def _as_dicts(counts: Mapping[str, Counts]) -> dict[str, Any]:
    return {name: count.as_dict() for name, count in sorted(counts.items())}


def describe_columns(schema: Iterable[pa.Field]) -> list[dict[str, str]]:
    """Return name, type and description of each column, for the manifest and the card."""
    return [
        {
            "name": column.name,
            "type": str(column.type),
            "description": (column.metadata or {}).get(b"description", b"").decode("utf-8"),
        }
        for column in schema
    ]
