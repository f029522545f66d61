"""The Tatoeba example on invented sentences in the export's format."""

import bz2
import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from paraforge.base.files import read_json, write_json
from paraforge.intake.sample_bitext import write_sample
from tests.project import ROOT, environment

PAIRS = 300


@pytest.fixture(scope="module")
def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("tatoeba", ROOT / "examples" / "tatoeba" / "build.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write_exports(place: Path, names: tuple[str, str, str]) -> int:
    """Write the sample's sentences as an export, each once, in an order of no meaning; gives the pairs."""
    place.mkdir()
    lines = [
        line.split("\t")
        for path in write_sample(place / "sample", pairs=PAIRS)
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    numbers: list[dict[str, int]] = [{}, {}]
    links = {
        tuple(numbers[side].setdefault(text, 2 * len(numbers[side]) + side) for side, text in enumerate(pair))
        for pair in lines
    }
    for side, (name, code) in enumerate(zip(names[:2], ("ces", "eng"), strict=True)):
        rows = [f"{number}\t{code}\t{text}\tuser{number % 7}\t2020-01-01\t2020-01-02\n"
                for text, number in reversed(numbers[side].items())]  # fmt: skip
        (place / name).write_bytes(bz2.compress("".join(rows).encode()))
    # One link leads to a sentence that was deleted.
    text = "".join(f"{first}\t{second}\n" for first, second in sorted(links, reverse=True)) + "0\t999999\n"
    (place / names[2]).write_bytes(bz2.compress(text.encode()))
    return len(links)


def test_tatoeba_pairs_and_authors(example: ModuleType, tmp_path: Path) -> None:
    number = write_exports(tmp_path / "exports", example.export_names("ces"))
    assert example.write_pairs("ces", tmp_path / "exports", tmp_path) == number
    pairs = (tmp_path / "pairs.tsv").read_text(encoding="utf-8").splitlines()
    authors = [line.split("\t") for line in (tmp_path / "attribution.tsv").read_text().splitlines()]
    assert len(pairs) == number == len(authors) - 1
    assert [row[0] for row in authors[1:]] == [str(line) for line in range(1, number + 1)]
    ids = [(int(row[1]), int(row[3])) for row in authors[1:]]
    assert ids == sorted(ids)
    for row in authors[1:]:
        assert row[2] == f"user{int(row[1]) % 7}" and row[4] == f"user{int(row[3]) % 7}"


def test_damaged_export_line_is_named(example: ModuleType, tmp_path: Path) -> None:
    names = example.export_names("ces")
    write_exports(tmp_path / "exports", names)
    (tmp_path / "exports" / names[0]).write_bytes(bz2.compress(b"1\tces\n"))
    with pytest.raises(SystemExit, match=r"detailed\.tsv\.bz2:1: expected 4 fields"):
        example.write_pairs("ces", tmp_path / "exports", tmp_path)


@pytest.mark.full
@pytest.mark.timeout(1200)
def test_export_to_record(
    example: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in environment().items():
        monkeypatch.setenv(name, value)
    number = write_exports(tmp_path / "exports", example.export_names("ces"))
    project = tmp_path / "project"
    given = [str(project), "translation=fake", "select=sample", "lexicon=small", "triplets.encoder=none"]
    exports = ["--exports", str(tmp_path / "exports")]
    example.main([*given, *exports])
    record = read_json(project / "record.json")
    assert record["pairs"] == record["metrics"]["ingest"]["rows"] == number
    publish = record["metrics"]["publish"]
    assert publish["pairs"] + publish["rejected"] + publish["failed"] == number and publish["pairs"] > 0
    assert any(name.startswith("data/corpus/shard-") for name in record["outputs"])
    assert {"ingest", "publish", "embeddings", "report"} <= set(record["seconds"])
    # Again: nothing runs, and the record says the same.
    example.main([*given, *exports])
    assert read_json(project / "record.json") == record
    capsys.readouterr()
    for change, code, said in (("", 0, "the same inputs and outputs"), ("x", 1, "outputs: data/corpus/")):
        changed = {**record, "outputs": {name: sha + change for name, sha in record["outputs"].items()}}
        write_json(tmp_path / "other.json", changed)
        with pytest.raises(SystemExit) as end:
            example.main([*given, "--compare", str(tmp_path / "other.json")])
        assert end.value.code == code and said in capsys.readouterr().out
