"""What --force replaces, and what it does not."""

import json
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paraforge.base.errors import InputError
from paraforge.interface.cli import outputs
from paraforge.interface.cli.outputs import (
    FileKind,
    check_output_directory,
    check_output_file,
    json_object,
    numpy_array,
    table,
    text_lines,
)

MODEL = outputs.TRAINED_MODEL
COLUMNS = ["word", "score"]


def test_only_a_directory_of_the_commands_own_kind_is_replaced(tmp_path: Path) -> None:
    output = tmp_path / "model"
    check_output_directory(output, False, MODEL)
    output.mkdir()
    with pytest.raises(InputError, match="already there"):
        check_output_directory(output, False, MODEL)
    check_output_directory(output, True, MODEL)
    description = output / "encoder.json"
    for content in ("", "no JSON", "[]", '{"architecture": 1}'):
        description.write_text(content)
        with pytest.raises(InputError, match=r"not a trained model .*encoder\.json"):
            check_output_directory(output, True, MODEL, outputs.SIF)
    description.write_text('{"architecture": {}, "vocabularies": {}}')
    (output / "model.safetensors").touch()
    check_output_directory(output, True, outputs.SIF, MODEL)
    with pytest.raises(InputError, match="not a SIF model"):
        check_output_directory(output, True, outputs.SIF)


@pytest.mark.parametrize("name", ["thesis.tex", "data/thesis.tex"])
def test_a_directory_that_somebody_put_a_file_into_is_not_replaced(tmp_path: Path, name: str) -> None:
    (tmp_path / "encoder.json").write_text('{"architecture": {}, "vocabularies": {}}')
    check_output_directory(tmp_path, True, MODEL)
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("years of work")
    with pytest.raises(InputError, match=f"{name} was put into it"):
        check_output_directory(tmp_path, True, MODEL)


def test_a_translation_model_lists_its_own_files(tmp_path: Path) -> None:
    (tmp_path / "ctranslate2").mkdir()
    (tmp_path / "ctranslate2" / "model.bin").touch()
    listed = {"fingerprint": "0", "files": {"ctranslate2/model.bin": {}}}
    (tmp_path / "model.json").write_text(json.dumps(listed))
    check_output_directory(tmp_path, True, outputs.TRANSLATION_MODEL)
    (tmp_path / "ctranslate2" / "notes.txt").touch()
    with pytest.raises(InputError, match=r"notes\.txt"):
        check_output_directory(tmp_path, True, outputs.TRANSLATION_MODEL)


def test_a_file_is_no_directory_and_a_directory_no_file(tmp_path: Path) -> None:
    file = tmp_path / "pairs.tsv"
    file.write_text("a\tb\n")
    with pytest.raises(InputError, match="not a directory"):
        check_output_directory(file, True, MODEL)
    with pytest.raises(InputError, match="not a file"):
        check_output_file(tmp_path, True, numpy_array())


KINDS = {
    "json": json_object("an evaluation", "model", "kind"),
    "npy": numpy_array(),
    "numbers": text_lines("numbers", r"-?\d+\.\d{6}", repeated=True),
    "heading": text_lines("a report", ".*", r"seed \d+"),
    **{form: table("words", form, COLUMNS) for form in ("csv", "tsv", "jsonl", "parquet")},
    "rows": table("words", "json", COLUMNS),
}
OWN = {
    "json": '{"model": "a", "kind": "b", "more": 1}',
    "numbers": "0.500000\n-1.000000\n",
    "heading": "name\nseed 3\nand more\n",
    "csv": "word,score,other\n",
    "tsv": "score\tword\n",
    "jsonl": '{"word": "a", "score": 1}\n',
    "rows": '[{"word": "a", "score": 1}]',
}
OTHER = [
    "years of work\n",
    "{}",
    '[{"a": 1}]',
    "word;score\n",
    "0.5\n",
    "PAR1",
    "\udcff\n",
    '{"word": "a"}\n',
]


def _write_own(name: str, path: Path) -> None:
    if name == "npy":
        with path.open("wb") as file:
            np.save(file, np.zeros(2))
    elif name == "parquet":
        pq.write_table(pa.table({"word": ["a"], "score": [1.0]}), path)
    else:
        path.write_text(OWN[name])


@pytest.mark.parametrize(("name", "kind"), KINDS.items(), ids=KINDS)
def test_only_a_file_of_the_commands_own_kind_is_replaced(name: str, kind: FileKind, tmp_path: Path) -> None:
    output = tmp_path / "output"
    check_output_file(output, False, kind)
    _write_own(name, output)
    with pytest.raises(InputError, match="already there"):
        check_output_file(output, False, kind)
    check_output_file(output, True, kind)
    for content in OTHER:
        output.write_text(content, errors="surrogateescape")
        with pytest.raises(InputError, match="--force does not replace it"):
            check_output_file(output, True, kind)
        assert output.read_text(errors="surrogateescape") == content
    output.write_text("")
    check_output_file(output, True, kind)


@pytest.mark.parametrize(
    ("mark", "content"),
    [
        ("_manifest.json", {"files": []}),
        ("_shards.json", {"shards": []}),
        ("lexicon.json", {"entries": 0, "files": []}),
        ("encoder.json", {"architecture": {}, "vocabularies": {}}),
        ("modules.json", []),
    ],
)
def test_a_part_of_a_published_directory_is_not_replaced(mark: str, content: object, tmp_path: Path) -> None:
    part = tmp_path / "shard-00000.parquet"
    _write_own("parquet", part)
    for text in (json.dumps(content), "damaged"):
        (tmp_path / mark).write_text(text)
        for output in (part, tmp_path / mark):
            with pytest.raises(InputError, match=f"part of the directory that {mark} describes"):
                check_output_file(output, True)


def test_a_file_that_only_has_the_name_of_a_description_describes_nothing(tmp_path: Path) -> None:
    (tmp_path / "sif.json").write_text('{"model": "models/sif", "kind": "SIF"}')
    check_output_file(tmp_path / "sif.json", True, json_object("an evaluation", "model", "kind"))


@pytest.mark.parametrize("name", ["new.parquet", "below/new.parquet"])
@pytest.mark.parametrize(
    ("mark", "content"), [("_manifest.json", '{"files": []}'), ("_shards.json", '{"shards": []}')]
)
def test_nothing_new_is_put_into_a_dataset(tmp_path: Path, mark: str, content: str, name: str) -> None:
    """Readers of the directory would take it for part of it, and the next 'dvc repro' would remove it."""
    (tmp_path / mark).write_text(content)
    with pytest.raises(InputError, match=f"part of the directory that {mark} describes"):
        check_output_file(tmp_path / name, False)
    with pytest.raises(InputError, match=f"part of the directory that {mark} describes"):
        check_output_directory(tmp_path / name, True, MODEL)


def test_a_path_through_a_dataset_is_not_in_it(tmp_path: Path) -> None:
    for name in ("corpus", "elsewhere"):
        (tmp_path / name).mkdir()
    (tmp_path / "corpus" / "_manifest.json").write_text('{"files": []}')
    check_output_file(tmp_path / "corpus" / ".." / "new.parquet", False)
    (tmp_path / "link").symlink_to("corpus")
    with pytest.raises(InputError, match="part of the directory"):
        check_output_file(tmp_path / "elsewhere" / ".." / "link" / "new.parquet", False)


@pytest.mark.parametrize("character", ["\u2028", "\x85", "\x0b", "\x0c", "\x1c"])
def test_only_a_line_feed_ends_a_line_of_an_output(tmp_path: Path, character: str) -> None:
    output = tmp_path / "pairs.jsonl"
    output.write_text(
        json.dumps({"reference": f"a{character}b"}, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    check_output_file(output, True, text_lines("JSON lines", r"\{.*\}", repeated=True))
    output.write_text(f"1\t0\t-0.5\ta{character}b\n", encoding="utf-8")
    check_output_file(output, True, text_lines("rows", r"\d+\t\d+\t(-?\d+\.\d+)?\t.*", repeated=True))


def test_nothing_is_begun_where_nothing_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o555)
    if os.access(tmp_path, os.W_OK):  # whoever may do all
        monkeypatch.setattr(os, "access", lambda path, mode: Path(path).stat().st_mode >> 6 & mode == mode)
    for output in (tmp_path / "new", tmp_path / "below" / "new"):
        with pytest.raises(InputError, match=f"{tmp_path}: cannot be written to"):
            check_output_file(output, False)
        with pytest.raises(InputError, match=f"{tmp_path}: cannot be written to"):
            check_output_directory(output, True, MODEL)
    tmp_path.chmod(0o755)
    check_output_file(tmp_path / "below" / "new", False)
    (tmp_path / "mounted").mkdir()
    tmp_path.chmod(0o555)
    check_output_directory(tmp_path / "mounted", True, MODEL)
    tmp_path.chmod(0o755)


def test_nothing_is_put_below_a_file(tmp_path: Path) -> None:
    (tmp_path / "notes").touch()
    for output in (tmp_path / "notes" / "new", tmp_path / "notes" / "below" / "new"):
        with pytest.raises(InputError, match="notes: not a directory"):
            check_output_file(output, False)
        with pytest.raises(InputError, match="notes: not a directory"):
            check_output_directory(output, True, MODEL)
