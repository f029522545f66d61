"""Why ingest rejects a row: every reason by name, in the order in which they are looked for."""

from __future__ import annotations

REASONS: dict[str, str] = {
    "malformed": "the row cannot be read: wrong number of columns, not JSON, a score that is no number",
    "invalid_utf8": "the line is not UTF-8",
    "null_byte": "the text has a NUL character",
    "overlong_line": "the line has more bytes than max_line_bytes; the rest of it was not read",
    "contaminated": "the row is in the source's list drop_rows",
    "not_selected": "the source's condition 'where' leaves the row out",
    "control_characters": "a side has a control character other than tabs and line breaks",
    "blank_source": "the foreign side is blank",
    "blank_reference": "the reference is blank",
    "blank_translation": "the translation of an existing paraphrase corpus is blank",
    "too_long": "a side has more than max_characters characters or max_words words",
    "identical": "the two sides are the same",
    "length_ratio": "one side is more than max_length_ratio times as long as the other",
    "duplicate": "an earlier row has the same two sides",
}

NAMES = tuple(REASONS)
# Reasons are codes while a block is worked on: 0 is a row not rejected, n is NAMES[n - 1].
CODES: dict[str, int] = {name: number for number, name in enumerate(NAMES, start=1)}
