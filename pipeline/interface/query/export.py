"""A published corpus as one text: ParaNMT's three columns, or JSON lines."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from paraforge.base.errors import InputError
from paraforge.base.files import text_output
from paraforge.base.progress import progress
from paraforge.corpus.publication.datasets import Dataset, published_tables
from paraforge.interface.query.database import Rows
from paraforge.interface.query.output import safe_text, write_text

TextFormat = Literal["paranmt", "jsonl"]
PARANMT: tuple[str, ...] = ("reference", "translation", "paraphrase_score")
# What would end a field or a line of a TSV, or of a reader that knows more line ends.
_BREAKS = r"[\t\n\r\x0b\x0c\x1c-\x1e\x{85}\x{2028}\x{2029}]"


def text_format(path: Path) -> TextFormat:
    """The format that a file's name asks for: JSON lines by `.jsonl` or `.jsonl.gz`, else ParaNMT's. Raises
    InputError: it asks for another one."""
    ending = Path(path.name.removesuffix(".gz")).suffix.lower()
    if ending in (".csv", ".json", ".parquet"):
        raise InputError(
            f"the ending '{ending}' does not say which format: ParaNMT's or JSON lines",
            path,
            remedy=f"Write a directory (--output DIR --format {ending[1:].replace('json', 'jsonl')}), "
            "or one file with 'paraforge query'.",
        )
    return "jsonl" if ending == ".jsonl" else "paranmt"


def export_text(
    corpus: Dataset,
    output: Path | None,
    form: TextFormat,
    columns: Sequence[str] = (),
    spreadsheet: bool = False,
) -> tuple[int, int]:
    """Write all pairs of a corpus, in its order, to a file (`.gz`: compressed) or to standard output.

    `paranmt` is the form of the released corpora: reference, translation and paraphrase score, separated
    by tabs, without a header; `corpus=paranmt-tsv` reads it. A missing score is an empty field. `jsonl` is an
    object a line, with null where a value is missing or not a number.

    columns: of `jsonl`, all by default.
    spreadsheet: of `paranmt`, an apostrophe before texts that a spreadsheet would run as a formula.
    Memory does not grow with the corpus.

    Returns rows, and texts in which a tab or line end became a blank (of `paranmt`). Raises InputError: no
    such column.
    """
    known = corpus.schema.names
    names = list(PARANMT if form == "paranmt" else columns or known)
    if unknown := [name for name in names if name not in known]:
        remedy = f"It has {', '.join(known)}."
        raise InputError(f"no column {', '.join(unknown)}", corpus.directory, remedy=remedy)
    batches = _batches(corpus, names)
    with text_output(output) as file:
        if form == "jsonl":
            schema = pa.schema([corpus.schema.field(name) for name in names])
            return write_text(Rows(schema, batches), file, form), 0
        changed = 0
        for batch in batches:
            lines, count = _three_columns(batch, spreadsheet)
            file.writelines(lines)
            changed += count
    return corpus.rows, changed


def _batches(corpus: Dataset, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The columns of all files, by their present names."""
    with progress(total=corpus.rows, unit="pairs", description="export") as bar:
        for table in published_tables(corpus, names):
            yield from table.to_batches()
            bar.update(len(table))


def _three_columns(batch: pa.RecordBatch, spreadsheet: bool = False) -> tuple[Iterator[str], int]:
    """Lines, and the number of texts that had to be changed."""
    changed = 0
    parts = []
    for name in PARANMT[:2]:
        text = batch.column(name).cast(pa.large_string())
        parts.append(pc.replace_substring_regex(text, _BREAKS, " "))
        changed += pc.sum(pc.not_equal(text, parts[-1])).as_py() or 0
        if spreadsheet:
            parts[-1] = pa.array(map(safe_text, parts[-1].fill_null("").to_pylist()), pa.large_string())
    score = batch.column(PARANMT[2])
    known = pc.if_else(pc.is_nan(score), pa.scalar(None, score.type), score)
    parts += [known.cast(pa.large_string()), pa.scalar("\t", pa.large_string())]
    joined = pc.binary_join_element_wise(*parts, null_handling="replace", null_replacement="")
    return (f"{line}\n" for line in joined.to_pylist()), changed
