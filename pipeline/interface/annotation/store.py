"""The SQLite database of an evaluation, with the drawn pairs, the annotators, and every answer ever given.

Answers are only added. A changed answer is a new row, and the newest row counts, so nothing that a person did
is overwritten. Each answer is a transaction of its own, synced before the page shows that it is saved.
"""

from __future__ import annotations

import sqlite3
import unicodedata
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path

from pydantic import TypeAdapter

from paraforge.base.errors import InputError, check_format, first_line
from paraforge.base.files import atomic_path
from paraforge.interface.annotation.draw import (
    PAIRS_PER_BAND,
    SEED,
    Draw,
    draw_pairs,
    manifests_of,
    open_for_annotation,
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
def _describing(path: Path) -> Iterator[None]:
    """Turn the errors of a database that cannot be read into an InputError."""
    try:
        yield
    except (sqlite3.DatabaseError, TypeError, ValueError) as error:
        name = getattr(error, "sqlite_errorname", "SQLITE_ERROR")
        what, remedy = "not a database of annotations", None
        if name == "SQLITE_CORRUPT":
            what = "damaged"
        elif isinstance(error, sqlite3.OperationalError) and name != "SQLITE_ERROR":
            what = "cannot be opened"
            remedy = "Close the program that writes to it, or copy it to where you can write."
        raise InputError(f"{what}: {first_line(error)}", path, remedy=remedy) from error


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
        with _describing(path):
            with self._connection() as connection:
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
                    message = "the file has another evaluation now; start 'paraforge annotate serve' again"
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
        return next(one for one in self.annotators() if one.name.casefold() == name.casefold())

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
            found = connection.execute(
                "SELECT paraphrase, fluency, comment FROM current_answers WHERE annotator = ? AND pair = ?",
                (annotator, pair),
            ).fetchone()
            newest = found or astuple(Answer())
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

    def judgements(self) -> list[tuple[int, str, Answer, str]]:
        """Return every complete answer that counts, by pair and annotator: pair, name, answer, time. Raises
        InputError if the database is damaged."""
        with _describing(self.path), self._connection() as connection:
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
