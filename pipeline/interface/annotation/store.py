"""The sample that people grade, and the SQLite database with it, the annotators, and every answer ever given.

Answers are only added. A changed answer is a new row, and the newest row counts, so nothing that a person did
is overwritten. Each answer is a transaction of its own, synced before the page shows that it is saved.
"""

# ruff: noqa: S608 - names and paths are quoted

from __future__ import annotations

import sqlite3
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from paraforge.base.errors import InputError, check_format, first_line
from paraforge.base.files import atomic_path
from paraforge.corpus.publication.datasets import Dataset, open_publication
from paraforge.corpus.statistics.counts import BAND_EDGES, BANDS
from paraforge.interface.query.database import draw_key, fetch, open_database, rows_at, rows_of

PAIRS_PER_BAND = 100
SEED = 1
_NEEDED = ("source", "line", "reference", "translation", "paraphrase_score")
# Columns that a corpus may lack.
_OPTIONAL = "SELECT NULL::TINYINT AS rank, NULL::VARCHAR AS rejected, NULL::FLOAT AS overlap_3 WHERE false"


@dataclass(frozen=True)
class DrawnPair:
    """One pair to grade.

    band: 0 .. 4, see :data:`paraforge.corpus.statistics.counts.BANDS`.
    rejected: the filter that rejected the pair; None for a kept pair.
    """

    band: int
    source: str
    line: int
    rank: int
    rejected: str | None
    reference: str
    translation: str
    paraphrase_score: float
    overlap_3: float | None


@dataclass(frozen=True)
class BandFigures:
    """The number of pairs in a band, and their trigram overlap in [0, 1]."""

    pairs: int = 0
    overlap_3_mean: float | None = None
    overlap_3_sd: float | None = None


@dataclass(frozen=True)
class Draw:
    """A stratified sample: pairs by band and, within it, by sampling key.

    name, signature: name and signature of the corpus. manifests: SHA-256 of each dataset's manifest, by name.
    """

    name: str
    signature: str
    manifests: dict[str, str]
    seed: int
    per_band: int
    bands: list[BandFigures]
    pairs: list[DrawnPair]


def open_for_annotation(directory: Path, with_rejected: bool = True) -> list[Dataset]:
    """Open a published corpus and, by default, the rejected pairs next to it.

    Low bands of the score are mostly in ``data/rejected``; without it, they are empty. Raises InputError if
    it is not a published corpus, damaged, without scores, or the rejected pairs are from another run.
    """
    datasets = open_publication(directory, with_rejected)
    for dataset in datasets:
        if missing := [name for name in _NEEDED if name not in dataset.schema.names]:
            remedy = "Run 'dvc repro' to score the corpus."
            raise InputError(f"no column {', '.join(missing)}", dataset.directory, remedy=remedy)
    return datasets


def manifests_of(datasets: Sequence[Dataset]) -> dict[str, str]:
    """Return what identifies the datasets that a sample is drawn from."""
    manifests = {dataset.name: dataset.manifest for dataset in datasets if dataset.manifest}
    return {name: str(manifest.as_dict()["sha256"]) for name, manifest in manifests.items()}


def draw_pairs(datasets: Sequence[Dataset], per_band: int, seed: int) -> Draw:
    """Draw ``per_band`` pairs from each band uniformly without replacement, or all if a band has fewer.

    The pairs with the smallest hashes of lineage and seed are drawn: the same corpus and seed give the same
    pairs, however the corpus is cut into files.

    datasets: see :func:`open_for_annotation`. per_band: at least 1.

    Raises InputError if no pair is in any band, or a file is damaged.
    """
    parts = [
        f"SELECT * FROM {rows_of(dataset.files, 'filename = true', 'file_row_number = true')}"
        for dataset in datasets
        if dataset.files
    ]
    if not parts:
        raise InputError("the corpus has no pairs: there is nothing to grade", datasets[0].directory)
    with open_database() as connection:
        bands_found = fetch(
            connection,
            "SELECT band, count(*) AS pairs, avg(overlap_3::DOUBLE) AS overlap_3_mean, "
            "stddev_pop(overlap_3::DOUBLE) AS overlap_3_sd, arg_min(struct_pack(filename, "
            f"file_row_number), {draw_key(seed, 'source', 'line', 'rank')}, {per_band}) AS places "
            f"FROM ({_pairs(' UNION ALL BY NAME '.join(parts))}) GROUP BY band HAVING band >= 0 "
            "ORDER BY band",
        ).to_pylist()
        if not bands_found:
            message = "no pair has a paraphrase score within (-0.1, 1.0]: there is nothing to grade"
            raise InputError(message, datasets[0].directory)
        places = [tuple(place.values()) for band in bands_found for place in band["places"]]
        read = _pairs(rows_at(place for band in bands_found for place in band["places"]))
        pairs = {
            (pair["filename"], pair["file_row_number"]): pair for pair in fetch(connection, read).to_pylist()
        }
    bands = {band["band"]: BandFigures(*list(band.values())[1:4]) for band in bands_found}
    names = [field.name for field in fields(DrawnPair)]
    first: Any = datasets[0].manifest
    return Draw(
        first.name,
        first.signature,
        manifests_of(datasets),
        seed,
        per_band,
        [bands.get(number, BandFigures()) for number in range(len(BANDS))],
        [DrawnPair(**{name: pairs[place][name] for name in names}) for place in places],
    )


def _pairs(rows: str) -> str:
    """Select what a pair needs, and its band: -1 outside of all; NULL without a score."""
    above = " + ".join(f"(paraphrase_score > '{edge}'::FLOAT)::INT" for edge in BAND_EDGES[:-1])
    return (
        "SELECT source, line, coalesce(rank, 0) AS rank, rejected, reference, translation, filename, "
        "nullif(paraphrase_score, 'nan'::FLOAT) AS paraphrase_score, file_row_number, "
        f"nullif(overlap_3, 'nan'::FLOAT) AS overlap_3, "
        f"if(paraphrase_score IS NULL OR isnan(paraphrase_score), NULL, {above} - 1) AS band "
        f"FROM ({_OPTIONAL} UNION ALL BY NAME {rows})"
    )


FORMAT = 1
LONGEST_NAME = 60
LONGEST_COMMENT = 2_000
_WAIT_SECONDS = 3.0
"""Seconds to wait for another program that writes. A page that fails can be sent again."""
_DRAW = TypeAdapter(Draw)
_TABLES = """
BEGIN;
CREATE TABLE evaluation (draw TEXT NOT NULL);
CREATE TABLE annotators (annotator INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE COLLATE NOCASE);
-- A grade that is not given yet is null; a withdrawn answer is a row with neither grade.
CREATE TABLE answers (answer INTEGER PRIMARY KEY AUTOINCREMENT,
    annotator INTEGER NOT NULL REFERENCES annotators,
    pair INTEGER NOT NULL CHECK (pair BETWEEN 1 AND {pairs}),
    paraphrase INTEGER CHECK (paraphrase BETWEEN 1 AND 3), fluency INTEGER CHECK (fluency BETWEEN 1 AND 3),
    comment TEXT NOT NULL DEFAULT '',
    answered_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%S+00:00', 'now')));
CREATE INDEX answers_of ON answers (annotator, pair, answer);
CREATE VIEW current_answers AS SELECT *, paraphrase NOT NULL AND fluency NOT NULL AS complete
    FROM answers JOIN annotators USING (annotator)
    WHERE answer IN (SELECT max(answer) FROM answers GROUP BY annotator, pair);
-- For users: every complete answer with its pair.
CREATE VIEW grades AS SELECT name AS annotator, paraphrase, fluency, comment, answered_at,
    drawn.value ->> 'source' AS source, drawn.value ->> 'line' AS line, drawn.value ->> 'rank' AS rank,
    drawn.value ->> 'rejected' AS rejected, drawn.value ->> 'paraphrase_score' AS paraphrase_score,
    drawn.value ->> 'reference' AS reference, drawn.value ->> 'translation' AS translation
    FROM current_answers JOIN evaluation JOIN json_each(draw, '$.pairs') AS drawn ON drawn.key = pair - 1
    WHERE complete ORDER BY pair, current_answers.annotator;
COMMIT;
"""


@dataclass(frozen=True)
class Answer:
    """An annotator's answer about a pair: two grades from 1 to 3, None if not given yet, and a comment, None
    if a page did not change it."""

    paraphrase: int | None = None
    fluency: int | None = None
    comment: str | None = ""

    @property
    def complete(self) -> bool:
        """Whether both grades are given."""
        return self.paraphrase is not None and self.fluency is not None


@dataclass(frozen=True)
class Annotator:
    """A person who grades; ``graded`` is the number of pairs with both grades."""

    number: int
    name: str
    graded: int


def clean_name(name: str) -> str:
    """Return an annotator's name in one form. Raises InputError if it is empty, too long, or has characters
    that do not print."""
    cleaned = " ".join(unicodedata.normalize("NFC", name).split())
    if not cleaned:
        raise InputError("enter a name")
    if len(cleaned) > LONGEST_NAME:
        raise InputError(f"a name has at most {LONGEST_NAME} characters")
    if not cleaned.isprintable():
        raise InputError("the name has characters that cannot be printed")
    return cleaned


def create_store(path: Path, draw: Draw) -> AnnotationStore:
    """Write a database for a sample atomically. Raises InputError if ``path`` exists or the disk is full."""
    if path.exists():
        raise InputError("already exists", path, remedy="Use another --database, or remove it.")
    # SQLite would write the log of a removed database of that name into the new one.
    for ending in ("-wal", "-shm", "-journal"):
        path.with_name(path.name + ending).unlink(missing_ok=True)
    with atomic_path(path) as temporary:
        temporary.touch()  # if that is not possible, the system's error is clearer than SQLite's
        try:
            with closing(sqlite3.connect(temporary, isolation_level=None)) as connection:
                connection.execute(f"PRAGMA user_version = {FORMAT}")
                connection.executescript(_TABLES.format(pairs=len(draw.pairs)))
                connection.execute("INSERT INTO evaluation VALUES (?)", (_DRAW.dump_json(draw).decode(),))
        except sqlite3.Error as error:
            raise InputError(f"cannot be written: {error}", path) from error
    return AnnotationStore(path)


@contextmanager
def _database_errors(path: Path) -> Iterator[None]:
    """Turn the errors of a database that cannot be read into an InputError."""
    try:
        yield
    except (sqlite3.DatabaseError, TypeError, ValueError) as error:
        name = getattr(error, "sqlite_errorname", "SQLITE_ERROR")
        message, remedy = "not a database of annotations", None
        if name == "SQLITE_CORRUPT":
            message = "damaged"
        elif isinstance(error, sqlite3.OperationalError) and name != "SQLITE_ERROR":
            message = "cannot be opened"
            remedy = "Close the program that writes to it, or copy it to where you can write."
        raise InputError(f"{message}: {first_line(error)}", path, remedy=remedy) from error


class AnnotationStore:
    """An open evaluation. Several threads and processes can use it at once.

    draw: the sample as it was drawn; pair n is ``draw.pairs[n - 1]``.
    """

    def __init__(self, path: Path) -> None:
        """Open a database. Raises InputError if it is missing, damaged, not one of ours, or of a newer
        format."""
        self.path = path
        if not path.is_file():
            raise InputError(
                "this is a directory" if path.is_dir() else "no such database",
                path,
                remedy="'paraforge annotate serve CORPUS' makes one; use its path if it is elsewhere.",
            )
        with _database_errors(path):
            with self._connection() as connection:
                # A view that another program made can be endless.
                tables = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN "
                if connection.execute(f"{tables} ('evaluation', 'annotators', 'answers')").fetchone() != (3,):
                    raise ValueError("a table is missing")
                (draw,) = connection.execute("SELECT draw FROM evaluation").fetchone()
                (version,) = connection.execute("PRAGMA user_version").fetchone()
                check_format(version, FORMAT, path)
                connection.execute("PRAGMA journal_mode = WAL")
            self.draw = _DRAW.validate_json(draw)
            self._drawn = draw

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        # mode=rw: a missing database is an error, instead of a new empty one.
        address = f"{self.path.absolute().as_uri()}?mode=rw"
        with closing(
            sqlite3.connect(address, timeout=_WAIT_SECONDS, isolation_level=None, uri=True)
        ) as connection:
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA synchronous = FULL")  # in WAL mode, a commit survives a power cut
            yield connection

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            with connection:
                # The pairs have other numbers there.
                if connection.execute("SELECT draw FROM evaluation").fetchone() != (self._drawn,):
                    message = "the file now contains another evaluation; restart 'paraforge annotate serve'"
                    raise sqlite3.DatabaseError(message)
                yield connection

    def join(self, name: str) -> Annotator:
        """Return the annotator of that name, in upper or lower case, new or known. Raises InputError as
        :func:`clean_name` does."""
        name = clean_name(name)
        with self._transaction() as connection:
            # SQLite's NOCASE knows only the letters of ASCII.
            names = connection.execute("SELECT name FROM annotators").fetchall()
            if name.casefold() not in [known.casefold() for (known,) in names]:
                connection.execute("INSERT INTO annotators (name) VALUES (?)", (name,))
        return next(known for known in self.annotators() if known.name.casefold() == name.casefold())

    def annotators(self) -> list[Annotator]:
        """Return all annotators, in the order in which they joined."""
        with self._connection() as connection:
            rows = connection.execute(
                "SELECT annotator, name, (SELECT count(*) FROM current_answers AS a"
                " WHERE a.annotator = n.annotator AND complete) FROM annotators AS n ORDER BY annotator"
            ).fetchall()
        return [Annotator(*row) for row in rows]

    def answers(self, annotator: int) -> dict[int, Answer]:
        """Return an annotator's current answers, by pair; half answers are included."""
        with self._connection() as connection:
            rows = connection.execute(
                "SELECT pair, paraphrase, fluency, comment FROM current_answers WHERE annotator = ?",
                (annotator,),
            ).fetchall()
        return {pair: Answer(*rest) for pair, *rest in rows}

    def record(self, annotator: int, pair: int, answer: Answer) -> bool:
        """Save an answer, which is on disk when this returns. Returns False if it changes nothing.

        Fields that are None stay unchanged, because another page may have set them.
        """
        with self._transaction() as connection:
            current = connection.execute(
                "SELECT paraphrase, fluency, comment FROM current_answers WHERE annotator = ? AND pair = ?",
                (annotator, pair),
            ).fetchone()
            newest = current or astuple(Answer())
            changed = [old if new is None else new for old, new in zip(newest, astuple(answer), strict=True)]
            if changed == [*newest]:
                return False
            connection.execute(
                "INSERT INTO answers (annotator, pair, paraphrase, fluency, comment) VALUES (?, ?, ?, ?, ?)",
                (annotator, pair, *changed),
            )
        return True

    def undo(self, annotator: int) -> int | None:
        """Withdraw the annotator's latest answer; returns its pair, or None if there is nothing left."""
        with self._transaction() as connection:
            latest = connection.execute(
                "SELECT pair FROM current_answers WHERE annotator = ?"
                " AND (paraphrase NOT NULL OR fluency NOT NULL) ORDER BY answer DESC LIMIT 1",
                (annotator,),
            ).fetchone()
            if latest is None:
                return None
            connection.execute("INSERT INTO answers (annotator, pair) VALUES (?, ?)", (annotator, *latest))
        return int(latest[0])

    def judgments(self) -> list[tuple[int, str, Answer, str]]:
        """Return every complete answer that counts, by pair and annotator: pair, name, answer, time. Raises
        InputError if the database is damaged."""
        with _database_errors(self.path), self._connection() as connection:
            rows = connection.execute(
                "SELECT pair, name, paraphrase, fluency, comment, answered_at FROM current_answers"
                " WHERE complete ORDER BY pair, annotator"
            ).fetchall()
        return [(pair, name, Answer(p, f, comment), at) for pair, name, p, f, comment, at in rows]


def open_evaluation(
    corpus: Path | None, database: Path, per_band: int | None, seed: int | None, with_rejected: bool | None
) -> tuple[AnnotationStore, bool]:
    """Open the evaluation in ``database``, or draw one from ``corpus`` if there is none yet.

    corpus: directory of a published corpus; None to continue with a database.
    per_band, seed, with_rejected: of a new draw; None for the default.

    Returns the store, and whether it is new. Raises InputError if the database was drawn from another corpus
    or with other options, or if neither is given.
    """
    if not database.exists():
        if corpus is None:
            raise InputError("no such database", database, remedy="Use a corpus to draw pairs from.")
        datasets = open_for_annotation(corpus, with_rejected is not False)
        draw = draw_pairs(datasets, per_band or PAIRS_PER_BAND, SEED if seed is None else seed)
        return create_store(database, draw), True
    store = AnnotationStore(database)
    draw = store.draw
    remedy = "Use another --database to start a new evaluation, or continue this one: "
    remedy += f"paraforge annotate serve --database {database}"
    if any(option is not None for option in (per_band, seed, with_rejected)):
        message = f"its pairs were already drawn, {draw.per_band} from each band with seed {draw.seed}"
        raise InputError(message, database, remedy=remedy)
    if corpus and manifests_of(open_for_annotation(corpus, len(draw.manifests) > 1)) != draw.manifests:
        message = f"was drawn from a different corpus than {corpus} ({draw.signature})"
        raise InputError(message, database, remedy=remedy)
    return store, False
