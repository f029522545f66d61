"""Errors read as a user needs them."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import Field, model_validator

from paraforge.errors import (
    ConfigurationError,
    InputError,
    MissingPackageError,
    check_format,
    describe_os_error,
    describing,
    names_in_utf8,
    require,
)
from paraforge.section import Section


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (InputError("blank"), "blank"),
        (InputError("blank", "a.tsv"), "a.tsv: blank"),
        (InputError("blank", "a.tsv", 7), "a.tsv:7: blank"),
        (InputError("blank.", "a.tsv", 7, "Fill it in."), "a.tsv:7: blank. Fill it in."),
        (ConfigurationError(["one"]), "one"),
        (ConfigurationError(["one", "two"]), "2 problems in the parameters:\n  - one\n  - two"),
        (MissingPackageError("mtdata", "catalogue"), "pip install 'paraforge[catalogue]'"),
    ],
)
def test_messages(error: Exception, text: str) -> None:
    assert str(error).endswith(text)


def test_require_tells_a_missing_package_from_a_broken_one() -> None:
    assert require("json", "nothing").dumps([1]) == "[1]"
    with pytest.raises(MissingPackageError, match="no_such_package"):
        require("no_such_package.part", "extra")


def test_a_full_disk_says_what_to_do() -> None:
    error = OSError(errno.ENOSPC, "No space left on device", "work/x")
    assert "free some space" in describe_os_error(error)
    assert describe_os_error(OSError(errno.EACCES, "Permission denied", "x")).endswith("'x'")


def test_a_format_is_one_that_this_version_knows() -> None:
    for known in (1, 2):
        check_format(known, 2, "x")
    with pytest.raises(InputError, match=r"x: written in format 3, this version reads 2\. Upgrade paraforge"):
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
def test_a_damaged_description_is_one_line(content: dict[str, Any], text: str) -> None:
    with pytest.raises(InputError) as raised, describing("x.json"):
        Described.model_validate(content["model"])
    assert str(raised.value).startswith(text) and "\n" not in str(raised.value)


def test_a_file_name_that_is_not_utf8_is_a_mistake_of_the_user(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"caf\\udce9.*: not UTF-8"), names_in_utf8():
        pq.write_table(pa.table({"x": [1]}), os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.parquet"))
    with pytest.raises(UnicodeEncodeError), names_in_utf8():
        "ž".encode("ascii")
