"""The SQLite database of an evaluation: drawn pairs, annotators, and every answer that was ever given;
and how one is drawn, or opened again.

Answers are only ever added: a changed answer is a new row and the newest one counts, so nothing that a person
did can be overwritten. Each is a transaction of its own, synced before the page shows that it is saved.
"""

from __future__ import annotations

import sqlite3
import unicodedata
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from datetime import UTC, datetime
from pathlib import Path

from paraforge.base.errors import InputError, check_format
from paraforge.base.files import atomic_path
from paraforge.corpus.statistics.counts import Moments
from paraforge.interface.annotation.draw import (
    PAIRS_PER_BAND,
    SEED,
    BandFigures,
    Draw,
    DrawnPair,
    Origin,
    draw_pairs,
    open_for_annotation,
    origin_of,
)

FORMAT = 1
APPLICATION = 0x50464741  # "PFGA": distinguishes this database from any other SQLite file
LONGEST_NAME = 60
LONGEST_COMMENT = 2_000
_WAIT_SECONDS = 3.0
"""For another program that writes; others wait meanwhile, and a page that fails can be sent again."""
_TABLES = (
    "CREATE TABLE facts (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE manifests (content TEXT PRIMARY KEY, sha256 TEXT NOT NULL)",
    "CREATE TABLE bands (band INTEGER PRIMARY KEY, pairs INTEGER NOT NULL,"
    " overlaps INTEGER NOT NULL, overlap_total REAL NOT NULL, overlap_squares REAL NOT NULL)",
    "CREATE TABLE pairs (pair INTEGER PRIMARY KEY, band INTEGER NOT NULL REFERENCES bands,"
    " source TEXT NOT NULL, line INTEGER NOT NULL, rank INTEGER NOT NULL, rejected TEXT,"
    " reference TEXT NOT NULL, translation TEXT NOT NULL, paraphrase_score REAL NOT NULL, overlap_3 REAL)",
    "CREATE TABLE annotators (annotator INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE COLLATE NOCASE)",
    # A grade that is not given yet is null; a withdrawn answer is a row with neither grade.
    "CREATE TABLE answers (answer INTEGER PRIMARY KEY AUTOINCREMENT,"
    " annotator INTEGER NOT NULL REFERENCES annotators, pair INTEGER NOT NULL REFERENCES pairs,"
    " paraphrase INTEGER CHECK (paraphrase BETWEEN 1 AND 3), fluency INTEGER CHECK (fluency BETWEEN 1 AND 3),"
    " comment TEXT NOT NULL, answered_at TEXT NOT NULL)",
    "CREATE INDEX answers_of ON answers (annotator, pair, answer)",
    "CREATE VIEW current_answers AS SELECT * FROM answers WHERE answer IN"
    " (SELECT max(answer) FROM answers GROUP BY annotator, pair)",
)


@dataclass(frozen=True)
class Answer:
    """An annotator's answer about a pair: grades 1-3, None where there is none yet, and a remark."""

    paraphrase: int | None = None
    fluency: int | None = None
    comment: str = ""

    @property
    def complete(self) -> bool:
        """Whether both grades are given."""
        return self.paraphrase is not None and self.fluency is not None


@dataclass(frozen=True)
class Annotator:
    """Somebody who grades; ``graded`` pairs have both grades."""

    number: int
    name: str
    graded: int


def clean_name(name: str) -> str:
    """An annotator's name in one form. Raises InputError: it is empty, too long, or has characters that do
    not print."""
    cleaned = " ".join(unicodedata.normalize("NFC", name).split())
    if not cleaned:
        raise InputError("a name is needed")
    if len(cleaned) > LONGEST_NAME:
        raise InputError(f"a name has at most {LONGEST_NAME} characters")
    if not cleaned.isprintable():
        raise InputError("the name has characters that cannot be printed")
    return cleaned


def create_store(path: Path, draw: Draw) -> AnnotationStore:
    """Write a database for a sample, whole or not at all. Raises InputError: ``path`` exists."""
    if path.exists():
        raise InputError("already exists", path, remedy="Use another --database, or remove it.")
    facts = {
        "id": uuid.uuid4().hex,
        "corpus": draw.origin.corpus,
        "name": draw.origin.name,
        "signature": draw.origin.signature,
        "seed": str(draw.seed),
        "per_band": str(draw.per_band),
    }
    with atomic_path(path) as temporary:
        temporary.touch()  # where that is not possible, the system's error is clearer than SQLite's
        connection = sqlite3.connect(temporary, isolation_level=None)
        try:
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute(f"PRAGMA user_version = {FORMAT}")
            connection.execute("BEGIN")
            for statement in _TABLES:
                connection.execute(statement)
            connection.executemany("INSERT INTO facts VALUES (?, ?)", facts.items())
            connection.executemany("INSERT INTO manifests VALUES (?, ?)", draw.origin.manifests.items())
            connection.executemany(
                "INSERT INTO bands VALUES (?, ?, ?, ?, ?)",
                (
                    (number, band.pairs, band.overlap.number, band.overlap.total, band.overlap.squares)
                    for number, band in enumerate(draw.bands)
                ),
            )
            connection.executemany(
                "INSERT INTO pairs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                ((number, *astuple(pair)) for number, pair in enumerate(draw.pairs, start=1)),
            )
            connection.execute("COMMIT")
        finally:
            connection.close()
    return AnnotationStore(path)


class AnnotationStore:
    """An open evaluation; may be used by several threads and several processes at once.

    identity: a random name, so that a browser never takes one evaluation for another.
    draw: the sample as it was drawn; pair n is ``draw.pairs[n - 1]``.
    """

    def __init__(self, path: Path) -> None:
        """Open a database. Raises InputError: it is missing, damaged, not one of ours, or of a newer
        format."""
        self.path = path
        if not path.is_file():
            raise InputError(
                "this is a directory" if path.is_dir() else "no such database",
                path,
                remedy="'paraforge annotate CORPUS' makes one; give its path if it is elsewhere.",
            )
        try:
            with self._connection() as connection:
                self._check(connection)
                connection.execute("PRAGMA journal_mode = WAL")
                facts = dict(connection.execute("SELECT key, value FROM facts").fetchall())
                manifests = dict(connection.execute("SELECT content, sha256 FROM manifests").fetchall())
                bands = [
                    BandFigures(pairs, Moments(*moments))
                    for pairs, *moments in connection.execute(
                        "SELECT pairs, overlaps, overlap_total, overlap_squares FROM bands ORDER BY band"
                    )
                ]
                rows = connection.execute("SELECT * FROM pairs ORDER BY pair").fetchall()
            self.identity = facts["id"]
            origin = Origin(facts["corpus"], facts["name"], facts["signature"], manifests)
            pairs = [DrawnPair(*values) for _, *values in rows]
            self.draw = Draw(origin, int(facts["seed"]), int(facts["per_band"]), bands, pairs)
        except (sqlite3.DatabaseError, KeyError, ValueError) as error:
            raise InputError(f"not a database of annotations: {error}", path) from error

    def _check(self, connection: sqlite3.Connection) -> None:
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if application != APPLICATION:
            raise InputError("not a database of annotations", self.path)
        check_format(version, FORMAT, self.path)

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        # mode=rw: a database that somebody moved away is an error, and not an empty new one.
        address = f"{self.path.absolute().as_uri()}?mode=rw"
        connection = sqlite3.connect(address, timeout=_WAIT_SECONDS, isolation_level=None, uri=True)
        try:
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA synchronous = FULL")  # in WAL mode: a commit survives a power cut
            yield connection
        finally:
            connection.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    def join(self, name: str) -> Annotator:
        """The annotator of that name, new or known. Raises InputError: see :func:`clean_name`."""
        name = clean_name(name)
        with self._transaction() as connection:
            connection.execute("INSERT INTO annotators (name) VALUES (?) ON CONFLICT DO NOTHING", (name,))
            (number,) = connection.execute(
                "SELECT annotator FROM annotators WHERE name = ?", (name,)
            ).fetchone()
        return next(one for one in self.annotators() if one.number == number)

    def annotators(self) -> list[Annotator]:
        """All annotators, in the order in which they joined."""
        with self._connection() as connection:
            rows = connection.execute(
                "SELECT annotator, name, (SELECT count(*) FROM current_answers AS a"
                " WHERE a.annotator = n.annotator AND paraphrase NOT NULL AND fluency NOT NULL)"
                " FROM annotators AS n ORDER BY annotator"
            ).fetchall()
        return [Annotator(*row) for row in rows]

    def annotator(self, number: int) -> Annotator | None:
        """The annotator of that number."""
        return next((one for one in self.annotators() if one.number == number), None)

    def answers(self, annotator: int) -> dict[int, Answer]:
        """An annotator's current answers, by pair; half answers are included."""
        with self._connection() as connection:
            rows = connection.execute(
                "SELECT pair, paraphrase, fluency, comment FROM current_answers WHERE annotator = ?",
                (annotator,),
            ).fetchall()
        return {pair: Answer(*rest) for pair, *rest in rows}

    def record(self, annotator: int, pair: int, answer: Answer) -> bool:
        """Save an answer; returns False where it equals the newest one. When this returns, the answer is on
        the disk."""
        with self._transaction() as connection:
            newest = connection.execute(
                "SELECT paraphrase, fluency, comment FROM current_answers WHERE annotator = ? AND pair = ?",
                (annotator, pair),
            ).fetchone()
            if answer == (Answer() if newest is None else Answer(*newest)):
                return False
            connection.execute(
                "INSERT INTO answers (annotator, pair, paraphrase, fluency, comment, answered_at)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                (annotator, pair, answer.paraphrase, answer.fluency, answer.comment, _now()),
            )
        return True

    def undo(self, annotator: int) -> int | None:
        """Withdraw the annotator's latest answer; gives its pair, None where nothing is left to withdraw."""
        with self._transaction() as connection:
            latest = connection.execute(
                "SELECT pair FROM current_answers WHERE annotator = ?"
                " AND (paraphrase NOT NULL OR fluency NOT NULL) ORDER BY answer DESC LIMIT 1",
                (annotator,),
            ).fetchone()
            if latest is None:
                return None
            connection.execute(
                "INSERT INTO answers (annotator, pair, comment, answered_at) VALUES (?, ?, '', ?)",
                (annotator, latest[0], _now()),
            )
        return int(latest[0])

    def judgements(self) -> list[tuple[int, str, Answer, str]]:
        """Every complete answer that counts, by pair and annotator: pair, name, answer, time."""
        with self._connection() as connection:
            rows = connection.execute(
                "SELECT pair, name, paraphrase, fluency, comment, answered_at"
                " FROM current_answers JOIN annotators USING (annotator)"
                " WHERE paraphrase NOT NULL AND fluency NOT NULL ORDER BY pair, annotator"
            ).fetchall()
        return [(pair, name, Answer(p, f, comment), at) for pair, name, p, f, comment, at in rows]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def open_evaluation(
    corpus: Path | None, database: Path, per_band: int | None, seed: int | None, with_rejected: bool | None
) -> tuple[AnnotationStore, bool]:
    """The evaluation in ``database``, drawn from ``corpus`` where there is none yet.

    corpus: directory of a published corpus; None to continue with a database.
    per_band, seed, with_rejected: of the draw; None for the default, or for what the database has.

    Returns the store, and whether it is new. Raises InputError: the database was drawn otherwise than asked
    for, or there is neither.
    """
    if not database.exists():
        if corpus is None:
            raise InputError("no such database", database, remedy="Use a corpus to draw pairs from.")
        datasets = open_for_annotation(corpus, with_rejected is not False)
        draw = draw_pairs(datasets, corpus, per_band or PAIRS_PER_BAND, SEED if seed is None else seed)
        return create_store(database, draw), True
    store = AnnotationStore(database)
    other = "Continue without this option, or name another --database to start again."
    if corpus is not None:
        asked = bool(len(store.draw.origin.manifests) > 1) if with_rejected is None else with_rejected
        found = origin_of(open_for_annotation(corpus, asked), corpus).manifests
        if found != store.draw.origin.manifests:
            raise InputError(
                f"drawn from another corpus than {corpus} is now ({store.draw.origin.signature})",
                database,
                remedy="Use another --database to start a new evaluation, or continue this one: "
                f"paraforge annotate serve --database {database}",
            )
    if per_band is not None and per_band != store.draw.per_band:
        raise InputError(f"drawn with --count {store.draw.per_band}", database, remedy=other)
    if seed is not None and seed != store.draw.seed:
        raise InputError(f"drawn with --seed {store.draw.seed}", database, remedy=other)
    return store, False
