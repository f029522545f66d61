"""Examination of a user's bitext before a project is made."""

import csv
import gzip
import importlib.util
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from paraforge.base.errors import ConfigurationError, InputError
from paraforge.base.text.lines import Reading
from paraforge.intake.bitext.parameters import Source
from paraforge.intake.bitext.readers.moses import MosesSource
from paraforge.intake.bitext.source import ColumnSource
from paraforge.interface.configuration import load_parameters
from paraforge.interface.configuration.parameters import Parameters
from paraforge.interface.project.bitext import Bitext, _has_sentences, look_at, look_at_table
from tests.here import run_command, without_git_and_dvc
from tests.intake.bitext.grammar import SENTENCES
from tests.interface.project.bitexts import bitext


@pytest.fixture(autouse=True)
def _init_alone() -> Iterator[None]:
    with without_git_and_dvc():
        yield


def chosen(project: Path) -> tuple[Parameters, Source]:
    """A project's parameters, and its only source."""
    parameters = load_parameters(project / "params.yaml")
    (source,) = parameters.ingest.sources
    return parameters, source


@pytest.mark.parametrize("swapped", [False, True])
def test_init_examines_bitext(swapped: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("paraforge.interface.project.bitext.Reading", partial(Reading, block_bytes=900))
    (tmp_path / "my").mkdir()
    czech, english = bitext(tmp_path, "news.cs.gz", "news.en.xz")
    given = (english, czech) if swapped else (czech, english)
    said = run_command("init", "my", "--bitext", *given).output
    assert re.search(r"source_text: .*news\.cs\.gz, 200 lines, cs", said)
    parameters, source = chosen(tmp_path / "my")
    assert isinstance(source, MosesSource)
    assert source.paths == {"source_text": str(czech), "reference": str(english)}
    assert parameters.nmt.source_language == "cs"
    monkeypatch.chdir(tmp_path / "my")
    assert "nothing changes" in run_command("configure").output


@pytest.mark.parametrize(
    ("several_words", "distinct", "sentences"),
    [(100, 100, True), (21, 100, True), (20, 100, False), (100, 6, True), (100, 5, False), (0, 100, False)],
)
def test_labels_and_names_are_not_sentences(several_words: int, distinct: int, sentences: bool) -> None:
    """In a column of sentences, more than a fifth of the texts have several words, and more than a twentieth
    are distinct.
    """
    names = ["word" + chr(97 + n // 10) + chr(97 + n % 10) for n in range(100)]
    texts = [f"{name} again" if n < several_words else name for n, name in enumerate(names)]
    assert _has_sentences([texts[n % distinct] for n in range(100)]) == sentences


def test_killed_init_continues_without_rewriting(tmp_path: Path) -> None:
    (tmp_path / ".paraforge-init").touch()
    (tmp_path / ".gitignore").write_text("mine\n")
    run_command("init", tmp_path)
    assert (tmp_path / ".gitignore").read_text() == "mine\n"
    assert (tmp_path / "params.yaml").is_file() and not (tmp_path / ".paraforge-init").exists()


def test_long_project_name_is_cut(tmp_path: Path) -> None:
    run_command("init", tmp_path / ("x" * 250))
    assert load_parameters(tmp_path / ("x" * 250) / "params.yaml").publish.name == "x" * 200
    with pytest.raises(UnicodeEncodeError, match="surrogates not allowed"):
        run_command("init", tmp_path / "my\udcff")
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(
    ("stem", "name"), [("news v1", "news-v1"), ("žž", "my-bitext"), ("x" * 250, "x" * 100), ("~old", "old")]
)
def test_source_name_is_derived_from_any_file_name(stem: str, name: str) -> None:
    found = Bitext("references", {"reference": "en"}, {"reference": Path(f"{stem}.en.gz")})
    assert found.parameters().sources[0].name == name


def test_non_english_references_use_other_scorer(tmp_path: Path) -> None:
    first, second = bitext(tmp_path, "a.cs", "a.en")
    third = tmp_path / "b.de"
    third.write_text("Der Hund läuft über die Straße.\n" * 200, encoding="utf-8")
    found = look_at(first, third)
    assert [*found.languages.values()] == ["cs", "de"] and "paragram=corpus" in found.choices
    assert "paragram=corpus" not in look_at(first, second).choices


@pytest.mark.parametrize(
    ("names", "languages"),
    [
        (("train.ces", "train.eng"), ("cs", "en")),
        (("a.ces_Latn", "a.eng_Latn"), ("cs", "en")),
        (("a.cs.bpe.gz", "a.en.bpe.gz"), ("cs", "en")),
        (("a.cs_CZ", "a.en-GB"), ("cs", "en")),
        (("a.CS", "a.EN"), ("cs", "en")),
        (("a.raw", "b.txt"), ("cs", "en")),
        (("a.dat", "b.dat"), ("cs", "en")),
        (("a.hsb", "a.en"), ("hsb", "en")),  # not known: what the name says
    ],
)
def test_languages_come_from_column_names(
    names: tuple[str, str], languages: tuple[str, str], tmp_path: Path
) -> None:
    pytest.importorskip("py3langid")
    assert tuple(look_at(*bitext(tmp_path, *names)).languages.values()) == languages


@pytest.mark.parametrize(
    ("name", "spoil", "said"),
    [
        ("a.cs", lambda data: data.decode().encode("iso8859-2", "replace"), "not UTF-8: byte"),
        ("a.cs", lambda data: b"\0" + data, "a NUL character"),
        ("a.txt", lambda text: text.decode().encode("cp1250").decode("cp1252", "replace").encode(), "damage"),
    ],
)
def test_init_reports_configure_problems(
    name: str,
    spoil: Callable[[bytes], bytes],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    czech, english = bitext(tmp_path, name, "a.en")
    czech.write_bytes(spoil(czech.read_bytes()))
    output = run_command("init", tmp_path / "my", "--bitext", czech, english).output
    assert said in output + caplog.text
    monkeypatch.chdir(tmp_path / "my")
    if "fix this first" in output:
        with pytest.raises(ConfigurationError, match=said):
            run_command("configure")
        run_command("configure", "ingest.cleaning.malformed=reject")


Rows = list[tuple[str, str]]
CZECH_ENGLISH = {"source_text": "cs", "reference": "en"}


def _rows(tmp_path: Path) -> Rows:
    czech, english = bitext(tmp_path, "a.cs", "a.en")
    return list(zip(*(path.read_text("utf-8").splitlines() for path in (czech, english)), strict=True))


def _lines(rows: Iterable[Iterable[object]]) -> str:
    return "".join("\t".join(map(str, row)) + "\n" for row in rows)


def _csv(rows: Iterable[Iterable[object]], delimiter: str = ",") -> str:
    file = io.StringIO()
    csv.writer(file, delimiter=delimiter).writerows(rows)
    return file.getvalue()


def _objects(rows: Rows) -> str:
    ids = (n if n % 2 else str(n) for n in range(len(rows)))
    items = ({"id": n, "translation": {"en": en, "cs": cs}} for n, (cs, en) in zip(ids, rows, strict=True))
    return "".join(json.dumps(item) + "\n" for item in items)


def _named(rows: Rows) -> str:
    return _lines([("id", "zdroj", "cíl"), *((n, *row) for n, row in enumerate(rows))])


def _units(rows: Rows) -> str:
    unit = '<tu><tuv xml:lang="{2}"><seg>{1}</seg></tuv><tuv xml:lang="cs_CZ"><seg>{0}</seg></tuv></tu>'
    units = (unit.format(*row, ("EN", "en-GB")[n % 2]) for n, row in enumerate(rows))
    return f"<tmx><body>{''.join(units)}</body></tmx>"


def _parquet(rows: Rows, nested: bool) -> bytes:
    """With texts as bytes, and as a dictionary, as pandas' categories are."""
    czech, english = (pa.array(side) for side in zip(*rows, strict=True))
    sides = [czech.cast(pa.binary()), english.dictionary_encode()]
    table = pa.table({"cs": sides[0], "en": sides[1], "key": [b"\xff"] * len(rows)})
    if nested:
        both = pa.StructArray.from_arrays(sides, ["cs", "en"])
        table = pa.table({"translation": both, "kind": ["a"] * len(rows)})
    file = io.BytesIO()
    parquet.write_table(table, file)
    return file.getvalue()


# What is written, the columns that are found, and what else the source says.
TABLES: dict[str, tuple[Callable[[Rows], str | bytes], list[int | str], dict[str, object]]] = {
    "t.tsv.gz": (
        lambda rows: gzip.compress(
            _lines((n, "ces", cs, f"a/file-{n}.xml", en) for n, (cs, en) in enumerate(rows)).encode()
        ),
        [2, 4],
        {"format": "tsv", "header": False},
    ),
    "t.csv": (
        lambda rows: _csv([("anglicky", "ta samá česky"), *(row[::-1] for row in rows)], ";"),
        ["ta samá česky", "anglicky"],
        {"format": "csv", "header": True, "separator": ";"},
    ),
    "T.CSV": (
        lambda rows: _csv(((f"{cs}, a, b", en) for cs, en in rows), ";"),
        [0, 1],
        {"format": "csv", "header": False, "separator": ";"},
    ),
    "tabs.csv": (
        lambda rows: _csv((('"a"\n', *row) for row in rows), "\t"),
        [1, 2],
        {"format": "csv", "header": False, "separator": "\t"},
    ),
    "pandas.csv": (
        lambda rows: _csv([("", "cs", "en"), *((n, *row) for n, row in enumerate(rows))]),
        ["cs", "en"],
        {"format": "csv", "header": True},
    ),
    "blank.csv": (  # a text is no name, also of a few words
        lambda rows: _csv([("", "This is a text"), *rows[1:]]),
        [0, 1],
        {"format": "csv", "header": False},
    ),
    "t.tab": (_named, ["zdroj", "cíl"], {"format": "tsv", "header": True}),
    "some_numbers.tsv": (  # a name above numbers and words is a row
        lambda rows: _lines(
            [
                ("chapter", "Dobrý den", "Good day"),
                *((n if n % 2 else "intro", *row) for n, row in enumerate(rows[1:])),
            ]
        ),
        [1, 2],
        {"format": "tsv", "header": False},
    ),
    "t.jsonl": (_objects, ["translation.cs", "translation.en"], {"format": "jsonl"}),
    "t.ndjson": (_objects, ["translation.cs", "translation.en"], {"format": "jsonl"}),
    "t.tmx": (_units, ["cs", "en"], {"format": "tmx"}),
    "t.pq": (lambda rows: _parquet(rows, nested=False), ["cs", "en"], {"format": "parquet"}),
    "t.parquet": (
        lambda rows: _parquet(rows, nested=True),
        ["translation.cs", "translation.en"],
        {"format": "parquet"},
    ),
}


@pytest.mark.parametrize("name", TABLES)
def test_table_columns_are_found(name: str, tmp_path: Path) -> None:
    pytest.importorskip("py3langid")
    written, columns, reading = TABLES[name]
    content = written(_rows(tmp_path))
    (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
    found = look_at_table(tmp_path / name)
    assert (found.kind, found.languages, found.lines) == ("bitext", CZECH_ENGLISH, 200)
    assert not found.problems()
    entry = found.entry()
    assert {**entry, **reading} == entry
    assert entry["columns"] == dict(zip(("source_text", "reference"), columns, strict=True))


NAME = 'it\'s "my" \\1'


def test_project_from_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("py3langid")
    (tmp_path / "t.csv").write_text(str(TABLES["t.csv"][0](_rows(tmp_path))), encoding="utf-8")
    find = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "fairseq" else find(name))
    said = run_command("init", tmp_path / NAME, "--table", tmp_path / "t.csv").output
    assert "It needs fairseq, so first run: paraforge doctor --install-fairseq" in said
    assert re.search(r"source_text: column .* of .*t\.csv, 200 lines, cs", said)
    monkeypatch.chdir(tmp_path / NAME)
    parameters, source = chosen(Path())
    assert parameters.publish.name == NAME
    assert isinstance(source, ColumnSource)
    assert source.columns == {"source_text": "ta samá česky", "reference": "anglicky"}
    assert (parameters.nmt.source_language, parameters.nmt.target_language) == ("cs", "en")
    assert "nothing changes" in run_command("configure").output


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.pdf", b"text", r"a\.pdf: a table must end in \.tsv"),
        ("a.tsv", b"one\ttwo\n" * 30, "no column has sentences. Check that"),
        ("a.tsv", b"", "empty"),
        ("a$b.tsv", b"one\ttwo\n", "the name looks like an environment variable"),
        ("a.csv", b'a,"' + b"x" * 200_000 + b'"\n', "no column has sentences. Check that"),
        ("A.JSON", b'[{"a": "text"}, 1]', r"A\.JSON: a JSON array"),
        ("a.jsonl", b'{"a": "text"}\n\n' + b"[" * 100_000 + b"\n", r"a\.jsonl:3: not a JSON object\."),
        ("a.tmx", b"<tmx><tu><tuv><seg>one two</seg></tuv></tu></tmx>", '"" of unknown language'),
        ("a.tmx", b"<tmx><body></body></tmx>", "no column has sentences. Check that"),
        ("a.parquet", b"version https://git-lfs.github.com/spec/v1\noid", "a Git LFS pointer"),
        ("a.parquet", b"PAR1nothing", "not a complete Parquet file"),
        ("missing.tsv", None, "no such file"),
        ("a.tsv", b"one\ttwo\nM\xfcll\tWaste\n", r"a\.tsv:2: not UTF-8: byte 0xFC.*from its encoding"),
        ("a.tsv", b"PAR1\x15\x04", "this is a Parquet file"),
    ],
)
def test_invalid_table_writes_nothing(name: str, content: bytes | None, message: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        run_command("init", tmp_path / "my", "--table", tmp_path / name)
    assert not (tmp_path / "my").exists()


def test_text_without_spaces_is_not_a_name_column(tmp_path: Path) -> None:
    pytest.importorskip("py3langid")
    path = tmp_path / "a.tsv"
    chinese = [
        f"{start}喜欢{thing}，所以每天都去买一些。"
        for start in "我你他她"
        for thing in ("茶", "书", "米饭", "花", "咖啡", "水果")
    ]
    path.write_text(
        "".join(f"{one}\t{english}\n" for one, (_, english) in zip(chinese, _rows(tmp_path), strict=False)),
        encoding="utf-8",
    )
    found = look_at_table(path)
    assert found.columns == {"source_text": 0, "reference": 1}
    assert (found.languages, found.lines) == ({"source_text": "zh", "reference": "en"}, 24)


def test_ambiguous_columns_are_not_guessed(tmp_path: Path) -> None:
    pytest.importorskip("py3langid")
    path = tmp_path / "a.tsv"
    path.write_text(_lines((czech, english, f"{english}!") for czech, english in _rows(tmp_path)))
    with pytest.raises(InputError, match=r"0 in 'cs', 1 in 'en', 2 in 'en'.*my\.yaml"):
        look_at_table(path)
    path.write_text(_lines((n, english) for n, (_, english) in enumerate(_rows(tmp_path))))
    with pytest.raises(InputError, match=r"1 in 'en'. For English alone use --english"):
        look_at_table(path)


def test_two_english_columns_are_paraphrases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("py3langid")
    path = tmp_path / "a.tsv"
    rows = "".join(f"{english}\tWell, {english}\n" for _, english in _rows(tmp_path))
    path.write_text(f"mt\treference\n{rows}")  # not Maltese
    assert "a project with your paraphrases" in run_command("init", tmp_path / "my", "--table", path).output
    monkeypatch.chdir(tmp_path / "my")
    parameters, source = chosen(Path())
    assert isinstance(source, ColumnSource)
    assert (parameters.ingest.kind, source.columns) == (
        "paraphrases",
        {"reference": "reference", "translation": "mt"},
    )


@pytest.mark.parametrize("code", ["twi", "luo", "pcm"])
def test_header_with_unknown_languages(code: str, tmp_path: Path) -> None:
    pytest.importorskip("py3langid")
    path = tmp_path / "a.tsv"
    rows = "".join(f"{english}\t{czech}\n" for czech, english in _rows(tmp_path))
    path.write_text(f"en\t{code}\n{rows}")
    found = look_at_table(path)
    named = {"source_text": code, "reference": "en"}
    assert (found.columns, found.languages, found.lines) == (named, named, 200)
    assert f"source_language: {code}\n" in found.yaml()


def _shorter(first: Path, second: Path) -> tuple[Path, Path]:
    second.write_text("A dog.\n" * 199)
    return first, second


def _renamed(first: Path, second: Path) -> tuple[Path, Path]:
    spare = first.with_name("x")
    first.rename(spare)
    second.rename(first)
    spare.rename(second)
    return first, second


def _slovak(first: Path, second: Path) -> tuple[Path, Path]:
    first.write_text("".join(f"{sentence}\n" for sentence in SENTENCES["sk"] * 5), encoding="utf-8")
    return first, second


def _variable(first: Path, second: Path) -> tuple[Path, Path]:
    return first.rename(first.with_name("a$HOME.cs")), second


def _place(first: Path, second: Path) -> tuple[Path, Path]:
    """A link to a file in a directory with such a name."""
    place = first.with_name("x$HOME")
    place.mkdir()
    link = first.with_name("b.cs")
    link.symlink_to(first.rename(place / "a.cs"))
    return link, second


BAD_BITEXTS: dict[str, tuple[Callable[[Path, Path], tuple[Path, Path]], str]] = {
    "lines": (_shorter, r"a\.en.*19\d|19\d.*lines"),
    "missing": (lambda first, second: (first, second.with_name("gone.en")), r"gone\.en: no such file"),
    "same": (lambda first, second: (first, first), "both sides are the same file"),
    "directory": (lambda first, second: (first, first.parent), "this is a directory"),
    "language": (_renamed, r"its name says 'cs', but its text looks like 'en'"),
    "close": (_slovak, r"its name says 'cs', but its text looks like 'sk'"),
    "pattern": (
        lambda first, second: (first.with_name("a.c?"), second),
        "the name looks like a pattern of files",
    ),
    "variable": (_variable, r"a\$HOME\.cs: the name looks like an environment variable"),
    "place": (_place, r"x\$HOME/a\.cs: the name looks like an environment variable"),
}


@pytest.mark.parametrize("name", BAD_BITEXTS)
def test_invalid_bitext_writes_nothing(name: str, tmp_path: Path) -> None:
    if name in ("language", "close"):
        pytest.importorskip("py3langid")
    spoil, message = BAD_BITEXTS[name]
    given = spoil(*bitext(tmp_path, "a.cs", "a.en"))
    with pytest.raises(InputError, match=message):
        run_command("init", tmp_path / "my", "--bitext", *given)
    assert not (tmp_path / "my").exists()
