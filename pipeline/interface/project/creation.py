"""A new project: its files, its repository, its parameters, and a user's bitext, looked at before it is made
of it: which side is English, and do lines pair."""

import configparser
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from paraforge.base.errors import InputError, MissingPackageError, ParaforgeError
from paraforge.base.files import write_whole
from paraforge.base.text.lines import Reading, paired_blocks
from paraforge.base.text.paths import files_of
from paraforge.corpus.scoring.general import is_english
from paraforge.intake.bitext.languages import identified
from paraforge.interface.configuration.choices import reconfigure
from paraforge.interface.project.files import MY_BITEXT, checksum, project_files, shipped, write_versions

_SAMPLE_LINES = 500
_COMPRESSED = {".gz", ".bz2", ".xz", ".zst"}
_LANGUAGE = re.compile(r"[a-z]{2,3}")


@dataclass(frozen=True)
class Bitext:
    """Two files, line n of one belonging to line n of the other.

    source, reference: the files, the second English if one of them is.
    languages: of both in this order; None where it is not known.
    lines: of each file.
    """

    source: Path
    reference: Path
    languages: tuple[str | None, str | None]
    lines: int

    @property
    def choices(self) -> list[str]:
        """What to configure for it."""
        english = self.languages[1] is None or is_english(self.languages[1])
        return ["corpus=my", "translation=small", "select=quality", *([] if english else ["paragram=corpus"])]

    def yaml(self, project: Path) -> str:
        """The group file that names it. project: the directory that paths inside it are relative to."""
        paths = {name: _relative(path, project) for name, path in zip(_SIDES, self._files, strict=True)}
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", _stem(self.reference)).strip(".-_") or "my-bitext"
        languages = {
            f"{name}_language": one for name, one in zip(_NMT_SIDES, self.languages, strict=True) if one
        }
        lines = [
            "# @package _global_",
            f"# Your bitext: {self.lines:,} pairs when it was looked at. Name more sources below this one.",
            "ingest:",
            "  kind: bitext",
            "  sources:",
            f"    - name: {json.dumps(name)}",
            "      format: moses",
            f"      paths: {json.dumps(paths, ensure_ascii=False)}",
            *(["nmt:"] if languages else []),
            *(f"  {key}: {json.dumps(value)}" for key, value in languages.items()),
        ]
        return "\n".join(lines) + "\n"

    @property
    def _files(self) -> tuple[Path, Path]:
        return self.source, self.reference


_SIDES = ("source_text", "reference")
_NMT_SIDES = ("source", "target")


def look_at(first: Path, second: Path) -> Bitext:
    """Read both files once, in bounded memory.

    Raises InputError: a file is missing, empty, no text or not named as files can be named in parameters,
    they have unequal numbers of lines, are the same, or their text is not in the languages that their names
    say.
    """
    files = (first, second)
    for path in files:
        if files_of(str(path)) != [path]:
            raise InputError("patterns of files have such names", path, remedy="Give the file another name.")
    if first.samefile(second):
        raise InputError("both sides are the same file", first)
    lines, texts = 0, ([], [])  # type: tuple[int, tuple[list[str], list[str]]]
    for blocks in paired_blocks(dict(zip(_SIDES, files, strict=True)), Reading(strict=False)):
        for found, block in zip(texts, blocks.values(), strict=True):
            found += block.lines.slice(0, max(0, _SAMPLE_LINES - len(found))).to_pylist()
        lines += len(next(iter(blocks.values())))
    languages = [_language(path, text) for path, text in zip(files, texts, strict=True)]
    if languages[0] is not None and languages[0] == languages[1]:
        raise InputError(f"both files seem to be in the same language ({languages[0]})", second)
    if languages[0] is not None and is_english(languages[0]):
        files, languages = (second, first), languages[::-1]
    return Bitext(*files, (languages[0], languages[1]), lines)


def _language(path: Path, text: list[str]) -> str | None:
    """What the text is in, if that can be identified, otherwise what the name says. Raises InputError: the
    one is English and the other is not."""
    suffix = next((one[1:].lower() for one in reversed(path.suffixes) if one not in _COMPRESSED), "")
    named = suffix if _LANGUAGE.fullmatch(suffix) and suffix not in ("txt", "tok", "src", "ref") else None
    found = identified(text)
    if found is not None and named is not None and is_english(named) != is_english(found):
        raise InputError(
            f"its name says {named!r}, and its text looks like {found!r}",
            path,
            remedy="Rename the file if the name is wrong, or give the other one.",
        )
    return named or found


def _stem(path: Path) -> str:
    return path.name.split(".")[0]


def _relative(path: Path, project: Path) -> str:
    absolute = path.resolve()
    inside = absolute.is_relative_to(project.resolve())
    return os.fspath(absolute.relative_to(project.resolve()) if inside else absolute)


_MOST_NAMED = 5
# Is there while a project is being made: the same command continues with a directory that has it.
_UNFINISHED = ".paraforge-init"


def make_project(directory: Path, bitext: Bitext | None = None) -> None:
    """Make a directory a project of DVC, in a git repository where git is installed.

    directory: that does not exist yet, or is empty but for git's files, or was left by a killed call:
        that continues, and no file that is there is written again.
    bitext: what the project begins with; the embedded sample where None.

    Raises:
        InputError: the directory has files.
        MissingPackageError: DVC is not installed.
        ParaforgeError: git or DVC failed.
    """
    if importlib.util.find_spec("dvc") is None:
        raise MissingPackageError("dvc", "pipeline")
    if directory.exists() and not directory.is_dir():
        raise InputError("this is a file", directory)
    mark = directory / _UNFINISHED
    others = (
        sorted(path.name for path in directory.iterdir() if path.name != ".git") if directory.exists() else []
    )
    if others and not mark.exists():
        more = f" and {len(others) - _MOST_NAMED} more" if len(others) > _MOST_NAMED else ""
        raise InputError(
            f"not empty: it has {', '.join(others[:_MOST_NAMED])}{more}",
            directory,
            remedy="Name a new directory; 'paraforge init --upgrade' brings a project up to date.",
        )
    directory.mkdir(parents=True, exist_ok=True)
    mark.touch()
    _set_up_dvc(directory, ["--no-scm"] if shutil.which("git") is None else _set_up_git(directory))
    files = project_files(directory.resolve().name)
    for name, text in files.items():
        if not (directory / name).exists():
            write_whole(directory / name, text)
    write_versions(directory, {name: checksum(text) for name, text in files.items()})
    if bitext is not None:
        write_whole(directory / MY_BITEXT, bitext.yaml(directory))
    found = reconfigure(directory / "configs", bitext.choices if bitext else [], directory / "params.yaml")
    write_whole(directory / "params.yaml", found.text)
    mark.unlink()


def _set_up_git(directory: Path) -> list[str]:
    """Make it a repository unless it is inside one; what DVC is to be told of that."""
    inside = subprocess.run(
        ["git", "rev-parse", "--show-toplevel"], cwd=directory, capture_output=True, text=True, check=False
    )
    if inside.returncode == 0:
        return [] if Path(inside.stdout.strip()).samefile(directory) else ["--subdir"]
    _run(["git", "init", "--quiet"], directory)
    return []


def _set_up_dvc(directory: Path, options: list[str]) -> None:
    _run([sys.executable, "-m", "dvc", "init", "--quiet", "--force", *options], directory)
    settings = configparser.ConfigParser(interpolation=None)
    for path in (directory / ".dvc" / "config", shipped(".dvc/config")):
        settings.read(path, encoding="utf-8")
    with (directory / ".dvc" / "config").open("w", encoding="utf-8") as file:
        settings.write(file)


def _run(command: list[str], directory: Path) -> None:
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()
        raise ParaforgeError(f"'{' '.join(command[-3:])}' failed in {directory}: {said}")
