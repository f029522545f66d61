"""Readers on damaged files: the exact text, a reason, or an error with file and line."""

import io
import json
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.dom import expatbuilder
from xml.parsers import expat
from xml.sax.saxutils import escape

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paraforge.base.errors import InputError
from paraforge.intake.bitext.parameters import IngestParameters
from paraforge.intake.bitext.sources import read_file, resolve
from tests.intake.bitext.helpers import COMPRESSORS, rows_of

Row = tuple[int, str, str]
ROWS = [
    (1, "Žluťoučký kůň", "A yellow horse"),
    (2, "a & b < c", 'He said: "no"'),
    (3, "10 km", "10 km or so"),
    (4, "\u2028", "\U0001f600 and \u00a0"),
    (5, "poslední", "the last"),
]


def tsv_text() -> str:
    return "".join(f"{n}\t{cs}\t{en}\n" for n, cs, en in ROWS)


def lines_of(data: bytes) -> list[str | None]:
    """Lines as the readers define them; None for one that is not UTF-8."""
    data = data.removeprefix(b"\xef\xbb\xbf")
    raw = data.replace(b"\r\n", b"\n")
    raw = raw.removesuffix(b"\n") if raw.endswith(b"\n") else raw.removesuffix(b"\r")
    decoded: list[str | None] = []
    for line in raw.split(b"\n"):
        try:
            decoded.append(line.decode())
        except UnicodeDecodeError:
            decoded.append(None)
    return decoded


def tsv_rows(data: bytes) -> dict[int, tuple[str, str]]:
    rows = {}
    lines = lines_of(data)
    width = data.split(b"\n")[0].count(b"\t") + 1
    for number, line in enumerate(lines, start=1):
        fields = (line or "").split("\t")
        if line == "":
            rows[number] = ("", "")
        elif len(fields) == width and width > 2:
            rows[number] = (fields[1], fields[2])
    return rows


def jsonl_rows(data: bytes) -> dict[int, tuple[str, str]]:
    rows = {}
    for number, line in enumerate(lines_of(data), start=1):
        try:
            item = json.loads(line) if line else {"cs": "", "en": ""} if line == "" else None
            rows[number] = (item["cs"] or "", item["en"] or "")
        except (ValueError, TypeError, KeyError):
            continue
    return rows


def jsonl_text() -> str:
    pairs = [json.dumps({"cs": cs, "en": en}, ensure_ascii=n % 2 == 0) for n, cs, en in ROWS]
    return "\n".join([*pairs, ""])


def tmx_text() -> str:
    units = "".join(
        f'<tu><tuv xml:lang="en"><seg>{escape(en)}</seg></tuv>'
        f'<tuv xml:lang="cs"><seg>{escape(cs)}</seg></tuv></tu>\n'
        for _, cs, en in ROWS
    )
    head = '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n'
    return f'{head}<tmx version="1.4"><body>\n{units}</body></tmx>\n'


def text_of_element(node: Any) -> str:
    if node.nodeType in (node.TEXT_NODE, node.CDATA_SECTION_NODE):
        return str(node.data)
    return "".join(map(text_of_element, node.childNodes))


def tmx_rows(data: bytes) -> dict[int, tuple[str, str]]:
    rows = {}
    try:
        document = expatbuilder.parseString(data, namespaces=False)
    except (expat.ExpatError, ValueError, LookupError):
        return {}
    for number, unit in enumerate(document.getElementsByTagName("tu"), start=1):
        texts = {"cs": "", "en": ""}
        for variant in reversed(unit.getElementsByTagName("tuv")):
            segments = variant.getElementsByTagName("seg")
            language = (variant.getAttribute("xml:lang") or variant.getAttribute("lang")).lower()
            for wanted in texts:
                if segments and re.fullmatch(rf"{wanted}([-_].*)?", language):
                    texts[wanted] = text_of_element(segments[0])
        rows[number] = (texts["cs"], texts["en"])
    return rows


def parquet_data() -> bytes:
    buffer = io.BytesIO()
    table = pa.table({"cs": [cs for _, cs, _ in ROWS], "en": [en for _, _, en in ROWS]})
    pq.write_table(table, buffer, write_page_checksum=True, store_schema=False)
    return buffer.getvalue()


@dataclass(frozen=True)
class Format:
    """A format: a whole file, how it is read, and a slow reader written apart from ours."""

    name: str
    data: bytes
    columns: dict[str, int | str]
    expected: Callable[[bytes], dict[int, tuple[str, str]]]
    names_line: bool = True


NAMED: dict[str, int | str] = {"source_text": "cs", "reference": "en"}
FORMATS = [
    Format("tsv", tsv_text().encode(), {"source_text": 1, "reference": 2}, tsv_rows),
    Format("jsonl", jsonl_text().encode(), NAMED, jsonl_rows),
    Format("tmx", tmx_text().encode(), NAMED, tmx_rows),
    Format("parquet", parquet_data(), NAMED, lambda data: {n: (cs, en) for n, cs, en in ROWS}, False),
]
NASTY = [
    b"\0", b"\xff", b"\xc3", b"\r", b"\n", b"\r\n", b"\t", b'"', b"\\", b"&nbsp;", b"%x;", b"<seg>", b"</tu>",
    b"<tu>", b"\xef\xbb\xbf", b"\xff\xfe", b"1e300", b"9" * 400, b"9" * 5000, b"NaN", b"[", b"{", b"\\ud800",
    b"<!--", b'encoding="x-none"', b"\xe2\x80\xa8",
]  # fmt: skip


def damaged(data: bytes, chance: random.Random) -> bytes:
    """One to three changes of a kind that transfers, editors and scripts make."""
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(data) + 1)
        length = chance.choice([1, 1, 2, 5, 40])
        kind = chance.randrange(6)
        if kind == 0:
            data = data[:at] + chance.choice(NASTY) + data[at:]
        elif kind == 1:
            data = data[:at] + data[at + length :]
        elif kind == 2:
            data = data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :]
        elif kind == 3:
            data = data[:at] + data[max(0, at - length) : at] + data[at:]
        elif kind == 4:
            data = data[: max(at, 1)]
        else:
            data = data.replace(chance.choice([b"\n", b"\t", b'"', b"en", b"UTF-8"]), chance.choice(NASTY), 1)
    return data or b"\n"


def outcome(path: Path, form: Format, malformed: str) -> tuple[list[tuple[Any, ...]], InputError | None]:
    """The rows that are read before the file ends or an error comes."""
    source = {"name": "a", "path": str(path), "format": form.name, "columns": form.columns}
    parameters = IngestParameters.model_validate({"sources": [source], "cleaning": {"malformed": malformed}})
    (files,) = resolve(parameters, path.parent)
    rows: list[tuple[Any, ...]] = []
    try:
        for block in read_file(files.files[0], parameters.cleaning):
            rows += rows_of([block])
    except InputError as error:
        return rows, error
    return rows, None


def check(form: Format, path: Path, data: bytes, expected: dict[int, tuple[str, str]]) -> None:
    for malformed in ("error", "reject"):
        rows, error = outcome(path, form, malformed)
        for line, cs, reference, reason in rows:
            # Where one unit of a TMX file is not well formed, the oracle of whole files has no rows.
            if reason is None and (expected or form.name != "tmx"):
                assert (cs, reference) == expected[line], (malformed, line)
        if error is None:
            assert len(rows) >= len(expected)
            continue
        message = str(error)
        assert message.startswith(str(path)), message
        assert "\n" not in message
        if malformed == "reject" and form.name in ("tsv", "jsonl"):
            # Only a file that is something else altogether is given up.
            assert rows == []
        elif form.names_line and rows:
            assert error.line is not None, message


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
def test_damaged_text(tmp_path: Path, form: Format) -> None:
    chance = random.Random(form.name)
    for number in range(100):
        data = damaged(form.data, chance)
        path = tmp_path / f"{number}.{form.name}"
        path.write_bytes(data)
        check(form, path, data, form.expected(data))


@pytest.mark.parametrize("suffix", [suffix for suffix in COMPRESSORS if suffix])
def test_damaged_compressed_data(tmp_path: Path, suffix: str) -> None:
    chance = random.Random(suffix)
    form = FORMATS[0]
    packed = COMPRESSORS[suffix](form.data)
    for number in range(80):
        path = tmp_path / f"{number}.tsv{suffix}"
        path.write_bytes(damaged(packed, chance))
        rows, error = outcome(path, form, "error")
        assert (error is not None and str(error).startswith(str(path))) or rows == [
            (*row, None) for row in ROWS
        ]
