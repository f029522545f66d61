"""TMX files: translation units read as a stream, in bounded memory, with no entities and nothing fetched."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal
from xml.parsers import expat

import numpy as np
import pyarrow as pa

from paraforge.base.errors import InputError
from paraforge.base.text.compression import read_ahead
from paraforge.base.text.lines import Reading
from paraforge.intake.bitext.block import CODES, Block
from paraforge.intake.bitext.source import ONLY, NamedColumnSource

_READ_BYTES = 1 << 18
_BLOCK_UNITS = 10_000
_KEPT_CHARACTERS = 4_096
# Their content is markup of the translated document's own format, not text (TMX 1.4b, section 3).
_CODE_ELEMENTS = frozenset(["bpt", "ept", "it", "ph", "ut"])


class TmxSource(NamedColumnSource):
    """TMX files; ``columns`` gives the language of each side: ``cs``, or ``cs|ces`` where either is used."""

    format: Literal["tmx"]
    where: None = None

    def read(self, paths: Mapping[str, Path], reading: Reading) -> Iterator[Block]:
        """Read a TMX file. The line number of a row is that of its ``<tu>``, from 1: a line may hold two.

        A unit without one of the languages is a row with a blank side. Of several variants in one language
        the first is taken (``extra_variant``). A document type that only names a DTD is accepted and not
        fetched; a declared entity is an error, and so is a reference to one that the DTD may declare.

        The language ``en`` takes ``en-GB`` too, in any case, and ``cs|ces`` either of the two. A segment
        longer than ``max_line_bytes`` makes its row ``overlong_line``.

        Raises InputError: a damaged or truncated file; XML that is not well formed; an entity other than
        those of XML itself; a unit or segment inside another; no ``<tu>``; a language that no unit has.
        """
        path = paths[ONLY]
        collector = _Collector(path, self.names, reading)
        try:
            for data in read_ahead(path, _READ_BYTES):
                collector.feed(data)
                if len(collector.lines) >= _BLOCK_UNITS:
                    yield collector.take()
            collector.parser.Parse(b"", True)
        except expat.ExpatError as error:
            raise InputError(
                f"not well-formed XML: {expat.errors.messages.get(error.code, str(error))}",
                path,
                error.lineno,
            ) from error
        except (ValueError, LookupError) as error:
            # Of Python's codecs, which expat asks about encodings that it does not know itself.
            raise InputError(
                f"its encoding is not supported: {error}", path, remedy="Convert it to UTF-8."
            ) from error
        if collector.lines:
            yield collector.take()
        collector.check_found()


class _Collector:
    """Collects the segments of the wanted languages from parser events."""

    def __init__(self, path: Path, languages: Mapping[str, str], reading: Reading) -> None:
        self.path = path
        self.changes = reading.changes
        self.max_bytes = reading.max_line_bytes
        self.columns = {language.lower(): name for name, language in languages.items()}
        self.lines: list[int] = []
        self.codes: list[int] = []
        self.texts: dict[str, list[str]] = {name: [] for name in languages}
        self.found: set[str] = set()
        self.units = 0
        self.fed = 0
        self._unit: dict[str, str] | None = None
        self._overlong = False
        self._column: str | None = None
        self._parts: list[str] | None = None  # of the segment being read
        self._size = 0
        self._code_depth = 0
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters
        self.parser.EntityDeclHandler = self._entity
        # A DTD outside the file is never fetched. What it may declare would be left out of the text silently.
        self.parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
        self.parser.SkippedEntityHandler = self._undeclared_entity

    def feed(self, data: bytes) -> None:
        self.parser.Parse(data, False)
        self.fed += len(data)
        # A tag without an end would be kept in memory until one comes.
        pending = self.fed - max(self.parser.CurrentByteIndex, 0)
        if pending > self.max_bytes + 2 * _READ_BYTES:
            self._refuse(f"a tag, comment or attribute of more than {self.max_bytes:,} bytes")

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

    def _refuse(self, problem: str, remedy: str | None = None) -> None:
        raise InputError(problem, self.path, self.parser.CurrentLineNumber, remedy)

    def _entity(self, name: str, *declaration: object) -> None:
        self._refuse(
            f"the document type declares the entity {name!r}; entities are refused",
            "Remove the declaration and write the characters themselves.",
        )

    def _undeclared_entity(self, name: str, is_parameter: bool) -> None:
        self._refuse(
            f"the entity {'%' if is_parameter else '&'}{name}; is not declared in the file, and the document "
            "type outside it is not fetched",
            "Write the character itself.",
        )

    def _start(self, element: str, attributes: dict[str, str]) -> None:
        if (element == "tu" and self._unit is not None) or (element == "seg" and self._parts is not None):
            self._refuse(f"a <{element}> inside a <{element}>")
        if self._parts is not None:
            if element in _CODE_ELEMENTS:
                self._code_depth += 1
        elif element == "seg" and self._unit is not None and self._column is not None:
            self._parts, self._size = [], 0
        elif element == "tuv" and self._unit is not None:
            self._column = self._column_of(attributes)
        elif element == "tu":
            self._unit, self._overlong = {}, False

    def _column_of(self, attributes: dict[str, str]) -> str | None:
        language = (attributes.get("xml:lang") or attributes.get("lang") or "").lower()
        if len(self.found) < 1000:  # a file of nonsense must not fill memory with names of languages
            self.found.add(language)
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
                self._unit[self._column] = "".join(self._parts)
                self._parts = self._column = None
        elif element == "tuv":
            self._column = None
        elif element == "tu" and self._unit is not None:
            self._finish_unit(self._unit)
            self._unit = None

    def _finish_unit(self, unit: dict[str, str]) -> None:
        self.units += 1
        self.lines.append(self.units)
        self.codes.append(CODES["overlong_line"] if self._overlong else 0)
        for name, values in self.texts.items():
            text = unit.get(name, "")
            values.append(text[:_KEPT_CHARACTERS] if self._overlong else text)


def _matches(language: str, wanted: str) -> bool:
    """Whether a language tag is one of those wanted or a narrower one."""
    tag = language.replace("_", "-")
    return any(tag == one or tag.startswith(f"{one}-") for one in wanted.replace("_", "-").split("|"))
