"""Looks words up in a lexicon, reading only the few row groups that contain them."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from paraforge.base.errors import InputError, describing
from paraforge.base.shards.store import open_parquet
from paraforge.corpus.publication.lexicon_layout import MANIFEST, SCHEMA, WORDS, read_lexicon_json


class Lexicon:
    """A lexicon on disk.

    path: its directory.
    manifest: the content of ``lexicon.json``: parameters, numbers of pairs, words and entries, files.
    """

    def __init__(self, path: str | Path) -> None:
        """Open a lexicon.

        Raises InputError if this is not a lexicon, has a newer format, or if a file is missing or damaged.
        """
        self.path = Path(path)
        if not self.path.is_dir():
            raise InputError(
                "no such lexicon", self.path, remedy="Run 'dvc repro lexicon' or 'paraforge lexicon extract'."
            )
        self.manifest, records = read_lexicon_json(self.path)
        for name, rows in records:
            with open_parquet(self.path / name, "Extract the lexicon again.") as file:
                actual = file.metadata.num_rows
            if actual != rows:
                raise InputError(f"{actual} rows, its manifest says {rows}", self.path / name)

    @property
    def files(self) -> list[Path]:
        """The files, in the order of the words."""
        return [self.path / str(file["file"]) for file in self.manifest["files"]]

    def entries(self, words: Iterable[str], columns: Sequence[str] | None = None) -> pa.Table:
        """Return all entries of the words, sorted by word and rank; words without entries are skipped.

        words: in the lexicon's form (see :meth:`normalize`).
        columns: columns to return besides ``word``; all by default.
        """
        distinct = sorted(set(words))
        names = SCHEMA.names if columns is None else list(dict.fromkeys(["word", *columns]))
        chosen = pc.field("word").isin(pa.array(distinct, pa.string()))
        # Only row groups whose statistics allow one of the words are read.
        return self._read(self.files, chosen, names)

    def _read(self, files: list[Path], chosen: pc.Expression, columns: list[str]) -> pa.Table:
        try:
            return pq.read_table(
                files, columns=columns, filters=chosen, partitioning=None, page_checksum_verification=True
            )
        except (pa.ArrowException, OSError) as error:
            problem = f"cannot be read: {error}"
            raise InputError(problem, self.path, remedy="Extract the lexicon again.") from error

    def lookup(
        self,
        words: Iterable[str],
        limit: int | None = 20,
        minimum_pairs: int = 1,
        minimum: float | None = None,
    ) -> dict[str, pa.Table]:
        """Return the best paraphrases of each word.

        words: any spelling; looked up in the lexicon's form. limit: most entries per word.
        minimum_pairs: least number of pairs of an entry. minimum: least adjusted PMI, in nats.

        Returns a table (:data:`~paraforge.corpus.publication.lexicon_layout.SCHEMA`) for each word as given;
        empty if it has no entry.
        """
        asked = list(words)
        names = {word: self.normalize(word) for word in asked}
        entries = self.entries(names.values())
        entries = entries.filter(pc.greater_equal(entries["pairs"], minimum_pairs))
        if minimum is not None:
            entries = entries.filter(pc.greater_equal(entries["adjusted_pmi"], minimum))
        # Sorted by rank, that is, by descending adjusted PMI.
        return {
            word: entries.filter(pc.equal(entries["word"], names[word])).slice(0, limit) for word in asked
        }

    def normalize(self, word: str) -> str:
        """Return a word in the lexicon's form: lower-cased, or its lemma.

        Raises MissingPackageError if the lexicon has lemmas and simplemma is not installed.
        """
        word = word.strip().lower()
        with describing(self.path / MANIFEST, remedy="Extract the lexicon again."):
            if self.manifest["parameters"]["classes"] == "lemmas":
                from paraforge.products.lexicon.pair_sources import lemma_of

                return lemma_of(self.manifest["parameters"]["language"])(word)
        return word

    def count_of(self, word: str) -> int:
        """Return the number of sentences with the word, ``#(u)``; 0 if there are fewer than an entry
        needs."""
        names = ["reference_count", "translation_count"]
        table = self._read([self.path / WORDS], pc.field("word") == self.normalize(word), names)
        return sum(sum(table[name].to_pylist()) for name in names)
