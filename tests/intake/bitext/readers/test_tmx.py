"""TMX: units, inline codes, and malicious documents."""

from collections import Counter
from pathlib import Path
from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paraforge.base.errors import InputError
from paraforge.base.text.lines import Reading
from paraforge.intake.bitext.readers.tmx import TmxSource
from tests.intake.bitext.helpers import COMPRESSORS, blocks_of, rows_of, write

LANGUAGES = {"source_text": "cs", "reference": "en"}
HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'


def unit(**segments: str) -> str:
    variants = "".join(f'<tuv xml:lang="{tag}"><seg>{text}</seg></tuv>' for tag, text in segments.items())
    return f"<tu>{variants}</tu>\n"


def document(body: str, head: str = HEAD) -> str:
    return f'{head}<tmx version="1.4"><header/><body>\n{body}</body></tmx>\n'


def read(path: Path, changes: Counter[str] | None = None, **options: int) -> list[tuple[object, ...]]:
    reading = Reading(changes=Counter() if changes is None else changes, **options)
    return rows_of(blocks_of(TmxSource, path, LANGUAGES, reading))


# Characters that XML 1.0 allows; line ends are normalized by XML itself.
text = st.text(
    st.characters(blacklist_categories=["Cs", "Cc"], blacklist_characters="\ufffe\uffff"), max_size=15
)


@given(rows=st.lists(st.tuples(text, text), min_size=1), suffix=st.sampled_from(sorted(COMPRESSORS)))
def test_round_trip(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]], suffix: str
) -> None:
    body = "".join(unit(en=escape(en), cs=escape(cs)) for cs, en in rows)
    path = write(tmp_path_factory.mktemp("tmx") / f"a.tmx{suffix}", document(body))
    assert read(path) == [(n, cs, en, None) for n, (cs, en) in enumerate(rows, start=1)]


def test_tmx_language_codes_in_all_forms(tmp_path: Path) -> None:
    body = (
        '<tu><tuv xml:lang="EN-GB"><seg>Hello</seg></tuv><tuv lang="cs_CZ"><seg>Ahoj</seg></tuv></tu>'
        '<tu><tuv xml:lang="de"><seg>Hallo</seg></tuv><tuv xml:lang="cs"><seg>Nazdar</seg></tuv></tu>'
        '<tu><tuv xml:lang="eng"><seg>no</seg></tuv><tuv xml:lang="csb"><seg>ne</seg></tuv></tu>'
    )
    path = write(tmp_path / "a.tmx", document(body))
    assert [row[1:] for row in read(path)] == [("Ahoj", "Hello", None), ("Nazdar", "", None), ("", "", None)]
    both = blocks_of(TmxSource, path, {"source_text": "cs|csb", "reference": "en|eng"}, Reading())
    assert [row[1:] for row in rows_of(both)][2] == ("ne", "no", None)
    body = unit(**{"en-US": "color", "EN-gb": "colour"}) + "<tu/><tu></tu>"
    countries = {"source_text": "en", "reference": "en-GB"}
    both = blocks_of(TmxSource, write(tmp_path / "b.tmx", document(body)), countries, Reading())
    assert [row[1:3] for row in rows_of(both)] == [("color", "colour"), ("", ""), ("", "")]


def test_wanted_languages_after_many_others_are_found(tmp_path: Path) -> None:
    body = "".join(unit(**{f"x{n}": "a"}) for n in range(1_100)) + unit(en="Hello", cs="Ahoj")
    assert read(write(tmp_path / "a.tmx", document(body)))[-1] == (1_101, "Ahoj", "Hello", None)


def test_language_without_a_text_of_its_own_is_missing(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tmx", document(unit(**{"en-GB": "colour", "cs": "barva"})))
    with pytest.raises(InputError, match="language 'en' for source_text; languages found: cs, en-gb"):
        list(blocks_of(TmxSource, path, {"source_text": "en", "reference": "en-GB"}, Reading()))


def test_inline_codes_are_removed_but_highlighted_text_kept(tmp_path: Path) -> None:
    segment = (
        'Press <bpt i="1">&lt;b&gt;</bpt><hi>Save</hi><ept i="1">&lt;/b&gt;</ept><ph>\\n<sub>x</sub></ph> now'
    )
    between = 'Save the file<ph x="1">&lt;br/&gt;</ph>Close the window.<ph x="2"/>Go<ut/>on.'
    body = unit(en=segment, cs="Uložte") + unit(en=between, cs="Uložte")
    texts = [row[2] for row in read(write(tmp_path / "a.tmx", document(body)))]
    assert texts == ["Press Save now", "Save the file Close the window. Go on."]


def test_first_of_two_variants_is_used_and_counted(tmp_path: Path) -> None:
    body = (
        '<tu><tuv xml:lang="en"><seg>one</seg></tuv><tuv xml:lang="en"><seg>two</seg></tuv>'
        '<tuv xml:lang="cs"><seg>jeden</seg></tuv></tu>'
    )
    changes: Counter[str] = Counter()
    assert read(write(tmp_path / "a.tmx", document(body)), changes)[0][1:] == ("jeden", "one", None)
    assert changes == {"extra_variant": 1}


def test_doctype_without_entities_is_accepted_unfetched(tmp_path: Path) -> None:
    head = HEAD + '<!DOCTYPE tmx SYSTEM "http://127.0.0.1:9/tmx14.dtd">\n'
    assert len(read(write(tmp_path / "a.tmx", document(unit(en="a", cs="b"), head)))) == 1


LAUGHS = '<!DOCTYPE tmx [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>\n'
EXTERNAL = '<!DOCTYPE tmx [<!ENTITY a SYSTEM "file:///etc/passwd">]>\n'
PARAMETER = '<!DOCTYPE tmx [<!ENTITY % a SYSTEM "http://127.0.0.1:9/x.dtd"> %a;]>\n'
DTD = '<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n'
OPEN = HEAD + "<tmx><body>\n"
PAIR = unit(en="a", cs="b")
UNKNOWN = unit(en="10&nbsp;km &mdash; more", cs="b")
DECLARED = ":2: the document type declares the entity '[ab]'"
NESTED = ":3: a <tu> element is not closed, or is in another one"
NOT_WELL_FORMED = ":[234]: (not well-formed XML|a <tu> element is not closed)"
WRONG: dict[str, tuple[str | bytes, str]] = {
    "laughs": (document(unit(en="&a;", cs="b"), HEAD + LAUGHS), DECLARED),
    "external entity": (document(unit(en="&a;", cs="b"), HEAD + EXTERNAL), DECLARED),
    "parameter entity": (document(unit(en="&a;", cs="b"), HEAD + PARAMETER), DECLARED),
    "undeclared entity": (document(UNKNOWN), ":3: not well-formed XML: undefined entity"),
    # A DTD elsewhere may declare it, so XML allows it: it would be left out of the text.
    "entity of a DTD": (document(UNKNOWN, HEAD + DTD), ":4: not well-formed XML: undefined entity"),
    # Of what is opened and not closed, any number is found in linear time.
    "unit in a unit": (document("<tu><tu></tu></tu>"), NESTED),
    "unit without end": (document(PAIR.replace("</tu>", "")), NESTED),
    "many units": (document("<tu>" * 300_000), NESTED),
    "many attributes": (document("<tu a='" * 100_000), ":3: "),
    "many quoted attributes": (document('<tu a="' * 100_000), ":3: "),
    "many comments": (document("<!--" * 100_000), ":3: "),
    "many variants": (document("<tu><tuv " * 100_000), ":3: "),
    "unknown encoding": (
        document(PAIR, '<?xml version="1.0" encoding="x-none"?>\n'),
        ": its encoding",
    ),
    "encoding of no text": (
        document(PAIR, '<?xml version="1.0" encoding="zlib"?>\n'),
        ": its encoding",
    ),
    "truncated": (OPEN + '<tu><tuv xml:lang="en"><seg>never closed', NOT_WELL_FORMED),
    "crossed": (OPEN + "<tu><seg></tu></body></tmx>", NOT_WELL_FORMED),
    "unclosed": (OPEN + PAIR, ":4: not well-formed XML: .*cut off"),
    "ampersand": (OPEN + unit(en="a & b", cs="b") + "</body></tmx>", NOT_WELL_FORMED),
    "no UTF-8": (document(unit(en="X", cs="b")).encode().replace(b"X", b"\xff"), NOT_WELL_FORMED),
    "no such language": (
        document(unit(de="a", cs="b")),
        ".* no segment in language 'en' for reference; languages found: cs, de",
    ),
    "no unit": (document(""), ".* no <tu> element"),
    "HTML": ("<html><body/></html>", ".* no <tu> element"),
}


@pytest.mark.parametrize("name", WRONG)
def test_invalid_tmx_documents(tmp_path: Path, name: str) -> None:
    content, message = WRONG[name]
    path = write(tmp_path / "a.tmx", content)
    with pytest.raises(InputError, match=rf"a\.tmx{message}"):  # also if only the first rows are read
        next(blocks_of(TmxSource, path, LANGUAGES, Reading()))


def test_commented_unit_is_not_a_row(tmp_path: Path) -> None:
    body = unit(en="a", cs="b") + "<!-- " + unit(en="x" * 300_000, cs="y") + "-->" + unit(en="c", cs="d")
    assert [row[2] for row in read(write(tmp_path / "b.tmx", document(body)))] == ["a", "c"]


def test_damaged_unit_is_one_bad_row(tmp_path: Path) -> None:
    units = [unit(en=f"a{n}", cs="\n" * n) for n in range(4)]
    path = write(tmp_path / "a.tmx", document(units[0] + units[1].replace("a1", "\f") + units[2] + units[3]))
    with pytest.raises(InputError, match=r"a\.tmx:4: not well-formed XML: .*malformed to 'reject'"):
        read(path)
    assert [row[-1] for row in read(path, strict=False)] == [None, "malformed", None, None]
    path = write(tmp_path / "c.tmx", document("".join(units[:3]) + units[3].replace("a3", "\f")))
    with pytest.raises(InputError, match=r"c\.tmx:9: not well-formed XML"):
        read(path)
    path = write(tmp_path / "b.tmx", document("".join(units[:3]) + "\f" + units[3]))
    with pytest.raises(InputError, match=r"b\.tmx:9: not well-formed XML"):
        read(path, strict=False)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf16_with_and_without_byte_order_mark(tmp_path: Path, encoding: str) -> None:
    content = document(unit(en="Hello", cs="Čau"), '<?xml version="1.0" encoding="UTF-16"?>\n')
    for mark in ("", "\ufeff"):
        path = write(tmp_path / "a.tmx", (mark + content).encode(encoding))
        assert read(path)[0][1:] == ("Čau", "Hello", None)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(InputError, match=f"a.tmx: not in the encoding {encoding[:6]}"):
        read(path)


def test_overlong_segment_is_cut_and_counted(tmp_path: Path) -> None:
    body = "".join(unit(en="x" * length, cs="b") for length in (300_000, 100_001, 100_000))
    rows = read(write(tmp_path / "a.tmx", document(body)), max_line_bytes=100_000)
    assert [row[-1] for row in rows] == ["overlong_line", "overlong_line", None]
    assert [len(str(row[2])) for row in rows] == [4096, 4096, 100_000]


@pytest.mark.parametrize(
    "opening", ['<tu note="', "<!--", "<", "<![CDATA["], ids=["attribute", "comment", "tag", "cdata"]
)
def test_endless_element_has_bounded_memory(tmp_path: Path, opening: str) -> None:
    content = f"{HEAD}<tmx><body>{unit(en='a', cs='b')}{opening}".encode() + b"x" * 30_000_000
    with pytest.raises(InputError, match=r"of more than 1,000 bytes|not well-formed"):
        read(write(tmp_path / "a.tmx.zst", content), max_line_bytes=1000)


@pytest.mark.parametrize("count", [20_000, 25_000])
def test_many_units_are_read_in_blocks(tmp_path: Path, count: int) -> None:
    body = "".join(unit(en=f"a{n}", cs=f"b{n}") for n in range(count))
    path = write(tmp_path / "a.tmx", document(body))
    blocks = list(blocks_of(TmxSource, path, LANGUAGES, Reading()))
    assert len(blocks) >= 2
    assert sum(map(len, blocks)) == count
    assert rows_of(blocks)[-1] == (count, f"b{count - 1}", f"a{count - 1}", None)
