"""Looks words up in a lexicon, reading only the few row groups that contain them."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from paraforge.base.errors import InputError
from paraforge.base.shards.store import open_parquet
from paraforge.corpus.publication.lexicon_layout import SCHEMA, WORDS, read_lexicon_json

Score = Literal["adjusted_pmi", "cross_pmi"]


class Lexicon:
    """A lexicon on disk.

    path: its directory.
    manifest: the content of ``lexicon.json``: parameters, numbers of pairs, words and entries, files.
    """

    def __init__(self, path: str | Path) -> None:
        """Open a lexicon. Raises InputError: not a lexicon, one of a newer format, or a file is missing or
        damaged."""
        self.path = Path(path)
        if not self.path.is_dir():
            raise InputError(
                "no such lexicon", self.path, remedy="Run 'dvc repro lexicon' or 'paraforge lexicon extract'."
            )
        self.manifest, records = read_lexicon_json(self.path)
        # For each row group: file, number in it, first and last word.
        self._groups: list[tuple[Path, int, str, str]] = []
        for name, rows in records:
            with open_parquet(self.path / name, "Extract the lexicon again.") as file:
                metadata = file.metadata
            if metadata.num_rows != rows:
                raise InputError(f"{metadata.num_rows} rows, its manifest says {rows}", self.path / name)
            for group in range(metadata.num_row_groups):
                if not metadata.row_group(group).num_rows:
                    continue
                statistics = metadata.row_group(group).column(0).statistics
                if statistics is None or not statistics.has_min_max:
                    raise InputError("no statistics of the words", self.path / name)
                self._groups.append((self.path / name, group, statistics.min, statistics.max))

    @property
    def files(self) -> list[Path]:
        """The files, in the order of the words."""
        return [self.path / str(file["file"]) for file in self.manifest["files"]]

    def entries(self, words: Iterable[str], columns: Sequence[str] | None = None) -> pa.Table:
        """Return all entries of the words, sorted by word and rank; words without entries are skipped.

        words: in the lexicon's form (see :meth:`normalise`).
        columns: columns to return besides ``word``; all by default.
        """
        wanted = sorted(set(words))
        names = SCHEMA.names if columns is None else list(dict.fromkeys(["word", *columns]))
        tables = [pa.schema([SCHEMA.field(name) for name in names]).empty_table()]
        groups: dict[Path, list[int]] = {}
        for path, group, first, last in self._groups:
            if any(first <= word <= last for word in wanted):
                groups.setdefault(path, []).append(group)
        for path, numbers in groups.items():
            with open_parquet(path) as file:
                for number in numbers:
                    table = file.read_row_group(number, columns=names, use_threads=False)
                    tables.append(table.filter(pc.is_in(table["word"], pa.array(wanted, pa.string()))))
        return pa.concat_tables(tables).select(names)

    def lookup(
        self,
        words: Iterable[str],
        limit: int | None = 20,
        minimum_pairs: int = 1,
        by: Score = "adjusted_pmi",
        minimum: float | None = None,
    ) -> dict[str, pa.Table]:
        """Return the best paraphrases of each word.

        words: any spelling; looked up in the lexicon's form. limit: most entries per word.
        minimum_pairs: least number of pairs of an entry. by: the score that orders them, descending.
        minimum: its least value, in nats; entries without a value stay.

        Returns a table (:data:`~paraforge.corpus.publication.lexicon_layout.SCHEMA`) for each word as given;
        empty if it has no entry.
        """
        given = list(words)
        names = {word: self.normalise(word) for word in given}
        found = self.entries(name for several in names.values() for name in several)
        found = found.filter(pc.greater_equal(found["pairs"], minimum_pairs))
        if minimum is not None:
            found = found.filter(pc.fill_null(pc.greater_equal(found[by], minimum), True))
        result = {}
        for word in given:
            table = found.filter(pc.is_in(found["word"], pa.array(names[word], pa.string())))
            order = pc.sort_indices(table, sort_keys=[(by, "descending"), ("rank", "ascending")])
            result[word] = table.take(order if limit is None else order[:limit])
        return result

    def normalise(self, word: str) -> list[str]:
        """Return a word in the lexicon's form: lower-cased, or its lemma.

        Raises MissingPackageError if the lexicon has lemmas and simplemma is not installed.
        """
        word = word.strip().lower()
        classes = self.manifest["parameters"]["classes"]
        if classes == "lemmas":
            from paraforge.products.lexicon.pair_sources import lemma_of

            return [lemma_of(self.manifest["parameters"]["language"])(word)]
        return [word]

    def count_of(self, word: str) -> int:
        """Return the number of sentences with the word, ``#(u)``; 0 if there are fewer than an entry
        needs."""
        names = self.normalise(word)
        with open_parquet(self.path / WORDS) as file:
            table = file.read(use_threads=False)
        table = table.filter(pc.is_in(table["word"], pa.array(names, pa.string())))
        return int(
            (pc.sum(table["reference_count"]).as_py() or 0)
            + (pc.sum(table["translation_count"]).as_py() or 0)
        )
