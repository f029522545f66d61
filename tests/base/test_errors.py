"""Messages and exit codes of errors."""

from __future__ import annotations

import ast
import errno
import os
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import Field, model_validator

from paraforge.base import errors
from paraforge.base.errors import (
    ConfigurationError,
    IncompleteError,
    InputError,
    Interrupted,
    MissingPackageError,
    ParaforgeError,
    RetryError,
    WorkLockedError,
    check_format,
    describe_os_error,
    describing,
    did_you_mean,
    install_command,
    names_in_utf8,
    naming,
    require,
)
from paraforge.base.section import Section
from paraforge.base.shards.store import write_shard
from paraforge.base.shards.work import replaced_directory
from tests.project import ROOT


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (InputError("blank"), "blank"),
        (InputError("blank", "a.tsv"), "a.tsv: blank"),
        (InputError("blank", "a.tsv", 7), "a.tsv:7: blank"),
        (InputError("blank.", "a.tsv", 7, "Fill it in."), "a.tsv:7: blank. Fill it in."),
        (InputError("blank?", "a.tsv", 7, "Fill it in."), "a.tsv:7: blank? Fill it in."),
        (
            InputError("\0\x08\x0b\x1f\n\tb", "\x7f\x9f\xa0"),
            "\ufffd\ufffd\xa0: \ufffd\ufffd\ufffd\ufffd\n\tb",
        ),
        (InputError("in /a/b", "/a/b/c", 7, "Fix it.").renamed("/a/b", "x"), "x/c:7: in x. Fix it."),
        (ConfigurationError(["one"]), "one"),
        (ConfigurationError(["one", "two"]), "2 problems in the parameters:\n  - one\n  - two"),
        (MissingPackageError("openai", "server"), f"pip install --editable '{ROOT}[server]'"),
        (MissingPackageError("torch", ""), f"pip install --editable '{ROOT}'"),
        (MissingPackageError("fairseq", "fairseq"), "paraforge doctor --install-fairseq"),
        *((Interrupted(), "interrupted"), (Interrupted("why"), "why")),
    ],
)
def test_messages(error: Exception, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert str(error).endswith(text)
    monkeypatch.setattr(errors, "__file__", str(tmp_path / "paraforge/base/errors.py"))  # not in a clone
    assert install_command("server") == "pip install 'paraforge-corpus[server]'"


def test_each_kind_of_error_has_its_exit_code() -> None:
    assert [kind.exit_code for kind in (ParaforgeError, InputError, ConfigurationError)] == [1, 2, 2]
    assert [kind.exit_code for kind in (MissingPackageError, WorkLockedError, IncompleteError)] == [3, 4, 5]
    assert [kind.exit_code for kind in (RetryError, Interrupted)] == [5, 130]


@pytest.mark.parametrize(
    ("wrong", "known", "meant"),
    [
        ("min", ["minimum_pairs", "minimum"], "minimum"),
        ("mi", ["minimum", "my"], "my"),
        ("abcd", ["abxy"], "abxy"),  # half of a short name
        ("abcdef", ["abcxyz"], None),
    ],
)
def test_similar_name_is_suggested(wrong: str, known: list[str], meant: str | None) -> None:
    assert did_you_mean(wrong, known) == (f"; did you mean '{meant}'?" if meant else "")


def test_extras_named_in_errors_exist() -> None:
    """Calls of `require` name an extra in quotes or by a module's constant EXTRA."""
    named = {"fairseq": "paraforge doctor --install-fairseq"}
    found = set()
    for path in (ROOT / "pipeline").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in (
                "require",
                "MissingPackageError",
            ):
                found |= {node.args[1].value} if isinstance(node.args[1], ast.Constant) else set()
            if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Constant):
                target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
                found |= {node.value.value} if getattr(target, "id", "") == "EXTRA" else set()
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    section = project.partition("[project.optional-dependencies]")[2].partition("\n[")[0]
    extras = set(re.findall(r"^([\w-]+) = ", section, re.MULTILINE))
    assert len(found) > 10
    assert found <= extras | {""} | set(named)
    assert {name: install_command(name) for name in named} == named


def test_require_distinguishes_missing_from_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "broken_package.py").write_text("import broken")
    with pytest.raises(ModuleNotFoundError, match="'broken'"):
        require("broken_package", "extra")
    assert require("json", "nothing").dumps([1]) == "[1]"
    with pytest.raises(MissingPackageError, match="no_such_package"):
        require("no_such_package.part", "extra")


def test_full_disk_error_says_what_to_do() -> None:
    for number in (errno.ENOSPC, errno.EDQUOT):
        assert "free some space" in describe_os_error(OSError(number, "full", "work/x"))
    for number in (errno.EIO, errno.ESTALE, errno.EROFS, errno.ENXIO, errno.ENODEV, errno.ETIMEDOUT):
        assert "the disk fails" in describe_os_error(OSError(number, "no", "work/x"))
    assert describe_os_error(OSError(errno.EACCES, "Permission denied", "x")).endswith("'x'")
    for error, words in ((MemoryError(), "memory ran out"), (MemoryError("for an\narray"), "for an array")):
        assert describe_os_error(error).startswith(f"{words}: free some")


def test_unknown_format_version_is_error() -> None:
    for known in (1, 2):
        check_format(known, 2, "x")
    with pytest.raises(InputError, match=r"x: written in format 3, but .* reads 2\. Upgrade paraforge"):
        check_format(3, 2, "x")
    for unknown in (0, -1):
        with pytest.raises(InputError, match=r"this version reads 2$"):
            check_format(unknown, 2, "x")


class Described(Section):
    """What a file describes."""

    size: int
    parts: list[Described] = Field(default_factory=list)

    @model_validator(mode="after")
    def _parts_fit(self) -> Described:
        if len(self.parts) > self.size:
            raise ValueError("too many parts")
        return self


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ({}, "x.json: damaged: KeyError('model')"),
        ({"model": {"size": "three"}}, "x.json: damaged: size: Input should be a valid integer"),
        ({"model": {"size": 2, "parts": [{"size": 2}, {}]}}, "x.json: damaged: parts.1.size: Field required"),
        ({"model": {"size": 0, "parts": [{"size": 2}]}}, "x.json: damaged: Value error, too many parts"),
    ],
)
def test_damaged_description_is_one_line_error(content: dict[str, Any], text: str) -> None:
    with pytest.raises(InputError) as raised, describing("x.json"):
        Described.model_validate(content["model"])
    assert str(raised.value).startswith(text) and "\n" not in str(raised.value)


def test_non_utf8_file_name_is_user_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"caf\\udce9.*: not UTF-8"), names_in_utf8():
        pq.write_table(pa.table({"x": [1]}), os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.parquet"))
    with pytest.raises(UnicodeEncodeError), names_in_utf8():
        "ž".encode("ascii")


@pytest.mark.parametrize("error", [OSError(errno.EIO, "no", "its own file"), OSError("without a number")])
def test_complete_error_is_not_wrapped(error: OSError) -> None:
    with pytest.raises(OSError, match=r"its own file|without a number") as raised, naming("a.tsv", "read"):
        raise error
    assert raised.value is error


def test_disk_error_names_file_and_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Libraries raise such errors without a file name."""

    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, "Error writing bytes to file. Detail: [errno 5] Input/output error")

    monkeypatch.setattr("paraforge.base.shards.store.pq.write_table", fail)
    with pytest.raises(OSError, match="while this was written") as raised:
        write_shard(pa.table({"a": [1]}), tmp_path / "shard.parquet")
    said = describe_os_error(raised.value)
    assert f"{tmp_path}/shard.parquet" in said and "the disk fails" in said and "run the same command" in said
    with (
        pytest.raises(OSError, match="while this was written") as raised,
        replaced_directory(tmp_path / "out"),
    ):
        fail()
    assert f"{tmp_path}/out" in describe_os_error(raised.value)
    assert "temporary files" in describe_os_error(OSError(errno.EIO, "Input/output error"))
    assert list(tmp_path.iterdir()) == []
