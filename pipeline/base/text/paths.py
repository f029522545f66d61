"""Paths of sources: environment variables, the home directory, and patterns for many files."""

import glob
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from paraforge.base.errors import InputError
from paraforge.base.files import at_home


@dataclass(frozen=True)
class UserFile:
    """Marks a parameter that names a user's files: a file, a pattern, or a directory.

    'paraforge configure' checks that they exist and puts a link to each into `inputs/STAGE`, which DVC
    watches.

    words: other allowed values. hub: whether a name on the Hugging Face Hub is also allowed.
    neighbors: patterns of files that are read from the same directory as the named one.
    """

    words: tuple[str, ...] = ()
    hub: bool = False
    neighbors: tuple[str, ...] = ()


FilePath = Annotated[str, Field(min_length=1), UserFile()]


_VARIABLE = re.compile(r"\$(\w+)|\$\{(\w+)\}")


def expand(text: str) -> str:
    """Expand environment variables (``$NAME``, ``${NAME}``) and ``~``. Raises InputError if a variable
    is not set."""

    def value(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        setting = os.environ.get(name)
        if not setting:
            raise InputError(
                f"{text}: the environment variable {name} is not set",
                remedy=f"Set it, e.g. export {name}=/data",
            )
        return setting

    expanded = _VARIABLE.sub(value, text)
    return str(at_home(expanded)) if expanded.startswith("~") else expanded


def files_of(text: str) -> list[Path]:
    """Return the files that match a path or pattern (``*``, ``?``, ``[...]``, ``**``), sorted by name.
    Raises InputError if a variable is not set, there is no such file, or it is not a file."""
    expanded = expand(text)
    # An existing file or directory with a bracket in its name is meant literally.
    if glob.has_magic(expanded) and not Path(expanded).exists():
        parent = next(parent for parent in Path(expanded).parents if parent.is_dir())
        pattern = str(Path(expanded).relative_to(parent))
        paths = [parent / name for name in sorted(glob.glob(pattern, root_dir=parent, recursive=True))]  # noqa: PTH207 - Path.glob finds hidden files
        files = [path for path in paths if not path.is_dir()]
        if not files:
            raise InputError("no file matches this pattern", expanded)
        for path in files:
            require_regular(path)
        return files
    path = Path(expanded)
    if path.is_dir():
        raise InputError("this is a directory", path, remedy=f"Pass its files, e.g. {path}/*.tsv.gz.")
    require_regular(path)
    return [path]


def require_regular(path: Path) -> None:
    """Raise InputError if a path is missing, a dangling link, or cannot be read twice from its beginning (a
    pipe, device or socket)."""
    if path.is_file():
        return
    if path.exists():
        raise InputError("not a regular file", path, remedy="Write its output to a file first.")
    problem = "a link to a file that does not exist" if path.is_symlink() else "no such file"
    raise InputError(problem, path)
