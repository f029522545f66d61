"""Reads TMX files as a stream of translation units, in bounded memory, without entities or network access."""

import codecs
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal
from xml.parsers import expat

import numpy as np
import pyarrow as pa

from paraforge.base.errors import InputError
from paraforge.base.text.compression import read_ahead
from paraforge.base.text.lines import Reading
from paraforge.intake.bitext.block import CODES, REJECT_MALFORMED, Block
from paraforge.intake.bitext.source import ONLY, NamedColumnSource

_READ_BYTES = 1 << 18
_BLOCK_UNITS = 10_000
_KEPT_CHARACTERS = 4_096
# Their content is markup in the translated document's format, not text (TMX 1.4b, section 3).
_CODE_ELEMENTS = frozenset(["bpt", "ept", "it", "ph", "ut"])
# Those that stand for something in the text, such as a line break or an image.
_PLACEHOLDERS = frozenset(["ph", "ut"])
# Stands for a placeholder until its neighbors are known. XML does not allow this character.
_PLACE = "\x00"
_BETWEEN_WORDS = re.compile(f"(?<=[^\\W_]){_PLACE}+(?=[^\\W_])|(?<=[.,:;!?…]){_PLACE}+(?=[^\\W\\d_])")
_END_OF_UNIT = re.compile(rb"</tu\s*>")
# Start of the next parser's input, before the units that follow one that is not well formed.
_BEGINNING = b"<tmx><body>"
_UTF16 = {
    codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16", b"<\0": "utf-16-le", b"\0<": "utf-16-be"
}  # fmt: skip


class TmxSource(NamedColumnSource):
    """TMX files; ``columns`` gives the language of each side: ``cs``, or ``cs|ces`` if both are used."""

    format: Literal["tmx"]
    where: None = None

    def read(self, paths: Mapping[str, Path], reading: Reading) -> Iterator[Block]:
        """Read a TMX file. The line number of a row is that of its ``<tu>``, from 1; two units can be on one
        line.

        A unit without one of the languages is a row with a blank side. The first of several variants in one
        language is used (``extra_variant``). A document type that only names a DTD is accepted and not
        fetched; a declared entity is an error. A placeholder between two words becomes a space; formatting
        inside a word is removed.

        A unit that is not well formed (a character that XML does not allow, a bare ampersand, an entity that
        is not declared) is one malformed row. The language ``en`` also matches ``en-GB``, in upper or lower
        case, and ``cs|ces`` matches either. A segment longer than ``max_line_bytes`` makes its row
        ``overlong_line``.

        Raises InputError if the file is damaged or truncated, or has no ``<tu>`` or no unit in a language; in
        a strict reading, if a unit is not well formed.
        """
        path = paths[ONLY]
        collector = _Collector(path, self.names, reading)
        for data in read_ahead(path, _READ_BYTES):
            collector.feed(data)
            if len(collector.lines) >= _BLOCK_UNITS:
                yield collector.take()
        collector.finish()
        if collector.lines:
            yield collector.take()
        collector.check_found()


def tmx_languages(path: Path, units: int) -> Counter[str]:
    """Count the variants of the first units of a TMX file by language, in lower case."""
    collector = _Collector(path, {}, Reading(strict=False))
    for data in read_ahead(path, _READ_BYTES):
        collector.feed(data)
        if collector.units >= units:
            break
    return collector.found


class _BadUnit(Exception):
    """A unit cannot be read. skip: whether its end has not been reached."""

    def __init__(self, problem: str, skip: bool = True) -> None:
        super().__init__(problem)
        self.skip = skip


class _Collector:
    """Collects the segments of the wanted languages from parser events.

    The bytes from the start of the current unit are kept, so that another parser can continue after a unit
    that is not well formed.
    """

    def __init__(self, path: Path, languages: Mapping[str, str], reading: Reading) -> None:
        self.path = path
        self.changes = reading.changes
        self.strict = reading.strict
        self.max_bytes = reading.max_line_bytes
        self.columns = {language.lower(): name for name, language in languages.items()}
        self.lines: list[int] = []
        self.codes: list[int] = []
        self.texts: dict[str, list[str]] = {name: [] for name in languages}
        self.found: Counter[str] = Counter()
        self.units = 0
        self._decoder: codecs.IncrementalDecoder | None = None
        self._encoding: str | None = None  # for the next parser
        self._skipped: InputError | None = None  # error in a unit whose end has not been reached
        self._lines_before = 0  # lines of the file before the parser's input
        self._has_begun = False
        self._begin()

    def _begin(self) -> None:
        """Start a parser."""
        self.parser = expat.ParserCreate(self._encoding)
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters
        self.parser.EntityDeclHandler = self._entity
        self.parser.XmlDeclHandler = self._declaration
        # An external DTD is never fetched, so entities it declares would silently be missing from the text.
        self.parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
        self.parser.SkippedEntityHandler = self._undeclared_entity
        self._kept = b""
        self._kept_from = 0  # position of these bytes in the parser's input
        self._unit: dict[str, str] | None = None
        self._unit_begin = 0
        self._overlong = False
        self._column: str | None = None
        self._parts: list[str] | None = None  # of the segment being read
        self._size = 0
        self._code_depth = 0

    def feed(self, data: bytes) -> None:
        if not self._has_begun:
            self._has_begun = True
            if (name := _UTF16.get(data[:2])) is not None:
                self._decoder, self._encoding = codecs.getincrementaldecoder(name)(), "utf-8"
                self._begin()
        try:
            data = data if self._decoder is None else self._decoder.decode(data).encode()
        except UnicodeError as error:
            raise InputError(f"not UTF-16: {error}", self.path) from error
        while data:
            if self._skipped is not None:
                data = self._after_unit(data)
                continue
            self._kept += data
            try:
                self.parser.Parse(data, False)
            except (expat.ExpatError, _BadUnit) as error:
                data = self._give_up_unit(error)
                continue
            except (ValueError, LookupError) as error:
                # From Python's codecs, which expat uses for encodings that it does not know.
                raise InputError(
                    f"its encoding is not supported: {error}", self.path, remedy="Convert it to UTF-8."
                ) from error
            break
        if self._skipped is None:
            begin = self.parser.CurrentByteIndex if self._unit is None else self._unit_begin
            done = max(begin - self._kept_from, 0)
            self._kept, self._kept_from = self._kept[done:], self._kept_from + done
        # A tag without an end would be kept in memory.
        if len(self._kept) > 4 * self.max_bytes + 2 * _READ_BYTES:
            raise self._problem(f"a tag, comment or unit of more than {self.max_bytes:,} bytes")

    def _give_up_unit(self, error: Exception) -> bytes:
        """Reject the unit in which the parser failed. Returns the rest for another parser."""
        if isinstance(error, expat.ExpatError):
            message = f"not well-formed XML: {expat.errors.messages.get(error.code, str(error))}"
            place, line = self.parser.ErrorByteIndex, error.lineno
        else:
            message, place, line = str(error), self.parser.CurrentByteIndex, self.parser.CurrentLineNumber
        problem = InputError(message, self.path, self._lines_before + line, REJECT_MALFORMED)
        is_sound = isinstance(error, _BadUnit) and not error.skip
        rest = self._kept[max(place - self._kept_from, 0) :]
        if self.strict and (is_sound or _END_OF_UNIT.search(rest)):
            raise problem
        self._lines_before += line - 1
        self._kept = b""
        if is_sound:
            self._reject_unit()
            self._restart()
            return rest
        self._skipped = problem
        return self._after_unit(rest)

    def _after_unit(self, data: bytes) -> bytes:
        """Skip to the end of the unit that is not well formed. Returns what follows it, if anything yet."""
        data = self._kept + data
        end = _END_OF_UNIT.search(data)
        if end is None:
            # The end tag may be cut, so its first bytes are kept.
            self._lines_before += data[:-32].count(b"\n")
            self._kept = data[-32:]
            return b""
        if self.strict:
            assert self._skipped is not None
            raise self._skipped
        self._lines_before += data[: end.end()].count(b"\n")
        self._skipped, self._kept = None, b""
        self._reject_unit()
        self._restart()
        return data[end.end() :]

    def _reject_unit(self) -> None:
        self._unit = {}
        self._finish_unit(self._unit, CODES["malformed"])

    def _restart(self) -> None:
        self._begin()
        self.parser.Parse(_BEGINNING, False)
        self._kept_from = len(_BEGINNING)

    def finish(self) -> None:
        """Check that the file is complete. Raises InputError if it is not."""
        if self._skipped is not None:
            raise InputError(self._skipped.message, self.path, self._skipped.line)
        try:
            self.parser.Parse(b"", True)
        except (expat.ExpatError, _BadUnit) as error:
            message = expat.errors.messages.get(getattr(error, "code", 0), str(error))
            raise self._problem(f"not well-formed XML: {message}") from error

    def take(self) -> Block:
        block = Block(
            lines=np.array(self.lines, dtype=np.int64),
            texts={name: pa.array(values, pa.string()) for name, values in self.texts.items()},
            codes=np.array(self.codes, dtype=np.uint8),
        )
        self.lines, self.codes = [], []
        self.texts = {name: [] for name in self.texts}
        return block

    def check_found(self) -> None:
        if not self.units:
            raise InputError("no <tu> element: this is not a TMX file, or an empty one", self.path)
        for language, name in self.columns.items():
            if not any(_matches(found, language) for found in self.found):
                raise InputError(
                    f"no segment in language {language!r} for {name}; languages found: "
                    f"{', '.join(sorted(self.found)) or 'none'}",
                    self.path,
                )

    def _problem(self, problem: str, remedy: str | None = None) -> InputError:
        line = self._lines_before + self.parser.CurrentLineNumber
        return InputError(problem, self.path, line, remedy)

    def _declaration(self, version: str, encoding: str | None, standalone: int) -> None:
        self._encoding = self._encoding or encoding

    def _entity(self, name: str, *declaration: object) -> None:
        raise self._problem(
            f"the document type declares the entity {name!r}; entities are refused",
            "Remove the declaration and write the characters themselves.",
        )

    def _undeclared_entity(self, name: str, is_parameter: bool) -> None:
        problem = f"the entity {'%' if is_parameter else '&'}{name}; is not declared in the file"
        if self._unit is None:
            raise self._problem(problem, "Write the character itself.")
        raise _BadUnit(problem)

    def _start(self, element: str, attributes: dict[str, str]) -> None:
        if element == "tu" and self._unit is not None:
            raise _BadUnit("a <tu> inside a <tu>", skip=False)
        if element == "seg" and self._parts is not None:
            raise _BadUnit("a <seg> inside a <seg>")
        if self._parts is not None:
            if element in _CODE_ELEMENTS:
                self._code_depth += 1
                if element in _PLACEHOLDERS and self._code_depth == 1:
                    self._parts.append(_PLACE)
        elif element == "seg" and self._unit is not None and self._column is not None:
            self._parts, self._size = [], 0
        elif element == "tuv" and self._unit is not None:
            self._column = self._column_of(attributes)
        elif element == "tu":
            self._unit, self._overlong, self._unit_begin = {}, False, self.parser.CurrentByteIndex

    def _column_of(self, attributes: dict[str, str]) -> str | None:
        language = (attributes.get("xml:lang") or attributes.get("lang") or "").lower()
        if len(self.found) < 1000:  # a file of nonsense must not fill memory with names of languages
            self.found[language] += 1
        name = next((n for wanted, n in self.columns.items() if _matches(language, wanted)), None)
        if name is not None and self._unit is not None and name in self._unit:
            self.changes["extra_variant"] += 1
            return None
        return name

    def _characters(self, text: str) -> None:
        if self._parts is None or self._code_depth:
            return
        room = max(self.max_bytes - self._size, 0)
        self._size += len(text)
        self._parts.append(text[:room])
        self._overlong |= len(text) > room

    def _end(self, element: str) -> None:
        if self._parts is not None:
            if element in _CODE_ELEMENTS:
                self._code_depth -= 1
            elif element == "seg" and self._unit is not None and self._column is not None:
                text = _BETWEEN_WORDS.sub(" ", "".join(self._parts))
                self._unit[self._column] = text.replace(_PLACE, "")
                self._parts = self._column = None
        elif element == "tuv":
            self._column = None
        elif element == "tu" and self._unit is not None:
            self._finish_unit(self._unit, CODES["overlong_line"] if self._overlong else 0)

    def _finish_unit(self, unit: dict[str, str], code: int) -> None:
        self.units += 1
        self.lines.append(self.units)
        self.codes.append(code)
        for name, values in self.texts.items():
            text = unit.get(name, "")
            values.append(text[:_KEPT_CHARACTERS] if code else text)
        self._unit = None


def _matches(language: str, wanted: str) -> bool:
    """Return whether a language tag is one of the wanted ones or more specific."""
    tag = language.replace("_", "-")
    return any(tag == one or tag.startswith(f"{one}-") for one in wanted.replace("_", "-").split("|"))
