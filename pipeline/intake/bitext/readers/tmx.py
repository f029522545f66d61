"""Reads TMX files unit by unit, in bounded memory, without entities or network access."""

import codecs
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import Literal
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

import numpy as np
import pyarrow as pa
from pydantic import model_validator

from paraforge.base.errors import InputError
from paraforge.base.text.compression import read_ahead
from paraforge.base.text.lines import Reading
from paraforge.intake.bitext.source import CODES, ONLY, REJECT_MALFORMED, Block, NamedColumnSource

_READ_BYTES = 1 << 18
_BLOCK_UNITS = 10_000
_KEPT_CHARACTERS = 4_096
_MOST_LANGUAGES = 1_000  # so that names of languages in a damaged file do not fill memory
# Matches a unit, or a comment, which may contain units, and whose end may not be read yet.
_UNIT = re.compile(
    r"""<!--.*?(?:-->|\Z) | <tu(?:\s(?:[^<>"']|"[^"<]*"|'[^'<]*')*)?/?(?:(?<=/)>|(?<!/)>"""
    r"""[^<]*(?:<(?!/?tu[\s/>])[^<]*)*</tu\s*>)""",  # no unit is in another one
    re.DOTALL | re.VERBOSE,
)
# The content of these elements is markup of the translated document, not text (TMX 1.4b, section 3).
_CODE_ELEMENTS = frozenset(["bpt", "ept", "it", "ph", "ut"])
# These elements stand for something in the text, such as a line break or an image.
_PLACEHOLDERS = frozenset(["ph", "ut"])
# Replaces a placeholder until the characters around it are known. XML does not allow this character.
_PLACE = "\x00"
_BETWEEN_WORDS = re.compile(f"(?<=[^\\W_]){_PLACE}+(?=[^\\W_])|(?<=[.,:;!?…]){_PLACE}+(?=[^\\W\\d_])")
_UTF16 = {
    codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16", b"<\0": "utf-16-le", b"\0<": "utf-16-be"
}  # fmt: skip
_DECLARED = re.compile(rb"(?:\xef\xbb\xbf)?<\?xml[^>]*?\sencoding\s*=\s*[\"']([\w.:-]+)")


class TmxSource(NamedColumnSource):
    """TMX files; ``columns`` gives the language of each side: ``cs``, or ``cs|ces`` if both are used."""

    format: Literal["tmx"]

    @model_validator(mode="after")
    def _languages(self) -> "TmxSource":
        twice = [name for name, count in Counter(map(str.lower, self.names.values())).items() if count > 1]
        if twice:
            raise ValueError(f"both sides are in {twice[0]!r}, but only one text per language is read")
        return self

    def read(self, paths: Mapping[str, Path], reading: Reading) -> Iterator[Block]:
        """Read a TMX file. ``lines`` has the number of each ``<tu>`` element in the file, from 1.

        A unit that lacks a language is a row with a blank side. If a unit has several variants in one
        language, the first is used, and the others are counted as ``extra_variant``. The language ``en`` also
        matches ``en-GB``, in upper or lower case; ``cs|ces`` matches both. A placeholder between two words
        becomes a space; formatting inside a word is removed.

        A unit that is not well formed (with a character that XML does not allow, a bare ampersand, or an
        undeclared entity) is one malformed row; damage outside of units is an error. A unit with a text
        longer than ``max_line_bytes`` is rejected as ``overlong_line``. A document type that only names a DTD
        is accepted, and the DTD is not fetched; a declared entity is an error.

        Raises InputError if the file is damaged or truncated, or has no ``<tu>``, or no text in a language;
        in a strict reading, also if a unit is not well formed.
        """
        path, columns = paths[ONLY], {language.lower(): name for name, language in self.names.items()}
        tags: dict[str, str | None] = {}
        units = _units(path, reading)
        done, is_last = 0, False
        while not is_last:
            rows = [_row(unit, columns, tags, reading) for unit in islice(units, _BLOCK_UNITS)]
            is_last = len(rows) < _BLOCK_UNITS
            if is_last:  # before the last block, so that who reads only the first rows learns it too
                if not (done or rows):
                    raise InputError("no <tu> element: this is not a TMX file, or an empty one", path)
                _check_languages(tags, columns, path)
            if rows:
                yield Block(
                    lines=np.arange(done + 1, done + len(rows) + 1),
                    texts={
                        name: pa.array([row[name] for row, _ in rows], pa.string()) for name in self.columns
                    },
                    codes=np.array([code for _, code in rows], dtype=np.uint8),
                )
            done += len(rows)


def tmx_texts(path: Path, units: int) -> dict[str, list[str]]:
    """Return the texts of the first units of a TMX file by language.

    Languages are in lower case and without region (``en`` for ``en-US`` and ``en-GB``), unless only one
    language would be left.
    """
    texts_of: dict[str, list[str]] = {}
    for unit in islice(_units(path, Reading(strict=False)), units):
        for variant in () if unit is None else unit.iter("tuv"):
            texts = map(_text, islice(variant.iter("seg"), 1))
            texts_of.setdefault(_language(variant), []).extend(texts)
    merged: dict[str, list[str]] = {}
    for language, segments in texts_of.items():
        merged.setdefault(re.split("[-_]", language)[0], []).extend(segments)
    return merged if len(merged) > 1 else texts_of


def _check_languages(tags: Mapping[str, str | None], columns: Mapping[str, str], path: Path) -> None:
    for language, name in columns.items():
        if name not in tags.values():
            told = ", ".join(sorted(tags)) or "none"
            problem = f"no segment in language {language!r} for {name}; languages found: {told}"
            raise InputError(problem, path)


def _row(
    unit: Element | None, columns: Mapping[str, str], tags: dict[str, str | None], reading: Reading
) -> tuple[dict[str, str], int]:
    """Return the texts of a row by column, and the code of the reason to reject it, or 0.

    unit: None if not well formed. columns: names of the columns by language.
    tags: collects the languages of all variants, each with the column that takes its texts.
    """
    texts: dict[str, str] = {}
    for variant in () if unit is None else unit.iter("tuv"):
        language = _language(variant)
        best = max(columns, key=lambda wanted: _count_matched(language, wanted))
        name = columns[best] if _count_matched(language, best) else None
        if len(tags) < _MOST_LANGUAGES or (name is not None and name not in tags.values()):
            tags[language] = name
        segment = next(variant.iter("seg"), None)
        if name in texts:
            reading.changes["extra_variant"] += 1
        elif name is not None and segment is not None:
            texts[name] = _text(segment)
    code = CODES["malformed"] if unit is None else 0
    if any(len(text) > reading.max_line_bytes for text in texts.values()):
        code = CODES["overlong_line"]
    kept = _KEPT_CHARACTERS if code else None
    return {name: texts.get(name, "")[:kept] for name in columns.values()}, code


def _language(variant: Element) -> str:
    return (variant.get("xml:lang") or variant.get("lang") or "").lower()


@lru_cache
def _count_matched(language: str, accepted: str) -> int:
    """Return how many characters of a language tag match one of the wanted tags (``cs|ces``); 0 for no match.

    A tag matches itself and shorter tags: ``en-gb`` matches ``en-gb`` and ``en``.
    """
    tag = f"{language.replace('_', '-')}-"
    return max(len(code) * tag.startswith(f"{code}-") for code in accepted.replace("_", "-").split("|"))


def _text(segment: Element) -> str:
    """Return the text of a segment without the markup of the translated document."""
    if not len(segment):
        return segment.text or ""
    for code in [element for element in segment.iter() if element.tag in _CODE_ELEMENTS]:
        tail = code.tail
        code.clear()
        code.text, code.tail = _PLACE if code.tag in _PLACEHOLDERS else "", tail
    return _BETWEEN_WORDS.sub(" ", "".join(segment.itertext())).replace(_PLACE, "")


def _units(path: Path, reading: Reading) -> Iterator[Element | None]:
    """Yield each unit of a file, or None for a unit that is not well formed.

    One parser checks the document without its units, and another one parses each unit.
    Raises InputError if the document is damaged; in a strict reading, also if a unit is not well formed.
    """
    document = expat.ParserCreate("utf-8")

    def refuse_entity(name: str, *declaration: object) -> None:
        problem = f"the document type declares the entity {name!r}; entities are refused"
        remedy = "Remove the declaration and write the characters themselves."
        raise InputError(problem, path, document.CurrentLineNumber, remedy)

    def check(outside: str, is_last: bool = False) -> None:
        try:
            document.Parse(outside.encode("utf-8", "surrogateescape"), is_last)
        except expat.ExpatError as error:
            remedy = "Is the file cut off?" if is_last else None
            raise _not_well_formed(error, path, remedy=remedy) from error

    def refuse_unit(name: str, attributes: object) -> None:
        if name == "tu":
            problem = "a <tu> element is not closed, or is in another one"
            remedy = "The file may be cut off, or the unit has a comment or CDATA with <tu>: remove that."
            raise InputError(problem, path, document.CurrentLineNumber, remedy)

    document.EntityDeclHandler, document.StartElementHandler = refuse_entity, refuse_unit
    text, line = "", 1
    for more in _decode(path):
        text += more
        done = 0
        for match in _UNIT.finditer(text):
            unit, before = match[0], text[done : match.start()]
            if unit.startswith("<!--"):
                continue
            check(before + "\n" * unit.count("\n"))  # errors count its lines
            line += before.count("\n")
            try:
                yield _parse(unit)
            except expat.ExpatError as error:
                if reading.strict:
                    raise _not_well_formed(error, path, line - 1, REJECT_MALFORMED) from error
                yield None
            line += unit.count("\n")
            done = match.end()
        text = text[done:]
        if len(text) > 4 * reading.max_line_bytes + 2 * _READ_BYTES:
            problem = f"a tag, comment or unit of more than {reading.max_line_bytes:,} bytes"
            raise InputError(problem, path, line)
    check(text, is_last=True)


def _parse(text: str) -> Element:
    builder, parser = TreeBuilder(), expat.ParserCreate("utf-8")
    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler = builder.start, builder.end
    parser.CharacterDataHandler = builder.data
    parser.Parse(text.encode("utf-8", "surrogateescape"), True)
    return builder.close()


def _not_well_formed(
    error: expat.ExpatError, path: Path, lines_before: int = 0, remedy: str | None = None
) -> InputError:
    message = expat.errors.messages.get(error.code, str(error))
    return InputError(f"not well-formed XML: {message}", path, lines_before + error.lineno, remedy)


def _decode(path: Path) -> Iterator[str]:
    """Yield the text of a file, decoded as the file declares.

    Bytes that are invalid in this encoding become surrogates, which the XML parser rejects.
    """
    data = read_ahead(path, _READ_BYTES)
    first = next(data, b"")
    declared = _DECLARED.match(first)
    encoding = _UTF16.get(first[:2]) or (declared[1].decode() if declared else "utf-8")
    try:
        str(b" ", encoding, "replace")  # refuses codecs that are not for text
        yield from codecs.iterdecode(chain([first], data), encoding, "surrogateescape")
    except LookupError as error:
        raise InputError(
            f"its encoding is not supported: {error}", path, remedy="Convert it to UTF-8."
        ) from error
    except UnicodeError as error:
        raise InputError(f"not in the encoding {encoding}: {error}", path) from error
