"""Errors read as a user needs them."""

from __future__ import annotations

import errno

import pytest

from paraforge.errors import (
    ConfigurationError,
    InputError,
    MissingPackageError,
    check_format,
    describe_os_error,
    require,
)


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
