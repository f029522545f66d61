"""Properties of all commands: consistent options, --force that replaces only their own output, late
imports."""

import errno
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import typer

from paraforge.base.errors import InputError, ParaforgeError
from paraforge.interface import cli
from paraforge.interface.cli import COMMANDS, app
from paraforge.interface.cli.settings import check_output
from tests.corpus.selection.published import publish_pairs
from tests.here import run_command
from tests.project import ROOT, digests, environment

# A command's arguments, OUT for its output. What they name is made below, or does not exist: then an output
# is refused before anything else is looked at.
WRITERS: dict[str, tuple[str, ...]] = {
    "configure": ("configure", "-o", "OUT"),
    "configure --reset": ("configure", "--reset", "-o", "OUT"),
    "model import": ("model", "import", "missing", "OUT"),
    "translate": ("translate", "missing", "OUT"),
    "paraphrase": ("paraphrase", "missing", "OUT", "--model", "missing"),
    "score": ("score", "pairs.tsv", "OUT", "--vectors", "missing"),
    "query": ("query", "corpus", "SELECT source, line FROM corpus", "-o", "OUT"),
    "sample": ("sample", "corpus", "-o", "OUT"),
    "annotate serve": ("annotate", "serve", "corpus", "-d", "OUT"),
    "lexicon extract": ("lexicon", "extract", "missing", "OUT"),
    "train": ("train", "missing", "OUT"),
    "embed": ("embed", "missing", "missing", "OUT"),
    "triplets": ("triplets", "missing", "OUT"),
    "evaluate": ("evaluate", "missing", "-o", "OUT"),
    "export": ("export", "missing", "OUT", "--format", "sentence-transformers"),
    "export as text": ("export", "missing", "OUT", "--format", "word2vec"),
}
# Commands that write no file that a user names, or none at all.
READERS = {"plan", "verify", "push", "summary", "browse", "doctor", "init"}
READERS |= {"annotate report", "memory import", "lexicon lookup"}
NAMES = ("thesis.tsv", "thesis.parquet", "thesis.json", "thesis.npy", "thesis.txt")


@pytest.mark.parametrize(
    ("arguments", "instead"),
    [
        (("merge", "a", "b"), "list the corpora as sources of kind `paraphrases`"),
        (("export-corpus", "--help"), "`paraforge query CORPUS SQL -o FILE`"),
        (("model", "check", "DIR"), "`paraforge verify MODEL`"),
        (("memory", "list"), "`paraforge query data/translated"),
        (("plan", "--precision", "3"), "`plan --json`"),
        (("annotate", "serve", "CORPUS", "--allow-host", "x"), "the machine's IP address"),
        (("sample", "CORPUS", "--score", "x"), "`sample --where"),
        (("configure", "resources.cuda_graphs=true"), "always on: a GPU replays recorded steps"),
        (("configure", "embeddings.models.word.training.table_updates=lazy"), "fixed settings"),
        (("configure", "ingest.cleaning.entities=true"), "fixed: control characters reject a row"),
        (("configure", "translate.memory=false"), "another directory in `resources.translation_memory`"),
        (("configure", "publish.licence=mit"), "`license`, `licenses`"),
    ],
)
def test_removed_names_say_replacement(arguments: tuple[str, ...], instead: str) -> None:
    """The errors quote the table in CHANGELOG.md."""
    assert f"was removed in this version; now: {instead}" in told(*arguments)


@pytest.mark.parametrize(
    "arguments", [("mergee",), ("plan", "--precisions"), ("configure", "select.filters.length.formats=1")]
)
def test_unknown_names_are_not_called_removed(arguments: tuple[str, ...]) -> None:
    assert "removed" not in told(*arguments)


def told(*arguments: str) -> str:
    """The error of a command, on one line."""
    try:
        result = run_command(*arguments, expect=2)
    except ParaforgeError as error:
        return str(error)
    return re.sub(r"[│\s]+", " ", result.output)


def commands() -> Iterator[tuple[str, Any]]:
    """Every command by its full name."""
    root: Any = typer.main.get_command(app)
    for name in COMMANDS:
        command = root.get_command(None, name)
        if hasattr(command, "commands"):
            for inner in command.commands.values():
                yield f"{name} {inner.name}", inner
        else:
            yield name, command


def test_all_commands_are_listed_in_tests() -> None:
    writing = {name.split(" as ")[0].split(" --")[0] for name in WRITERS}
    unlike = {name for name, _ in commands()} ^ (writing | READERS)
    assert not unlike, f"{unlike}: only a command, or only in WRITERS and READERS here"


def test_mentioned_commands_and_options_exist() -> None:
    """Commands are mentioned in the Makefile, the documentation and messages, in quotes or at the beginning
    of a line.
    """
    known = dict(commands())
    groups = {name.split()[0] for name in known if " " in name}
    named = re.compile(r"""(?:[`'"]|^\s*)paraforge ([a-z]+)(?: ([a-z]+)\b)?([^`'"\n]*)""", re.MULTILINE)
    files = [ROOT / "Makefile", *ROOT.glob(".ci/run"), *ROOT.glob("*.md")]
    for folder in ("pipeline", "stages", "configs", "docs", "examples", "benchmarks", "experiments"):
        files += [path for path in (ROOT / folder).rglob("*.*") if path.suffix in (".py", ".md", ".yaml")]
    files.remove(ROOT / "CHANGELOG.md")
    wrong = []
    for path in files:
        for first, second, rest in named.findall(path.read_text(encoding="utf-8")):
            name = f"{first} {second}" if first in groups and f"{first} {second}" in known else first
            if name not in known and name not in groups:
                wrong.append(f"{path.name}: paraforge {first}")
                continue
            options = (
                {option for param in known[name].params for option in param.opts} if name in known else set()
            )
            for option in re.findall(r"(?<=\s)--?[a-z][\w-]*", rest.split(" && ")[0].split(" #")[0]):
                if option not in {*options, "--help"}:
                    wrong.append(f"{path.name}: paraforge {name} {option}")
    assert not wrong


@pytest.mark.parametrize("name", [name for name, _ in commands()])
def test_writing_commands_have_force(name: str) -> None:
    command = dict(commands())[name]
    options = {option for param in command.params for option in param.opts}
    outputs = {
        param.name for param in command.params if param.name in ("output", "output_path", "destination")
    }
    if outputs and name != "configure":
        assert name not in READERS
        assert "--force" in options, "use FORCE and check_output of cli/settings.py"
    if any(param.name == "output" and param.opts[0].startswith("-") for param in command.params):
        assert {"--output", "-o"} <= options


@pytest.mark.parametrize("name", [name for name, _ in commands()])
def test_option_spelling_is_consistent(name: str) -> None:
    for parameter in dict(commands())[name].params:
        options = set(parameter.opts)
        if "-n" in options or "--count" in options:
            assert options == {"-n", "--count"}
        if "--json" in options:
            assert parameter.is_flag
        if "--device" in options:
            assert parameter.default == "auto"
        if "KEY=VALUE" in (parameter.metavar or "") and parameter.param_type_name == "option":
            assert options == {"--set"}
        if parameter.metavar and "|" not in parameter.metavar:
            # A name in capitals, or a form with some.
            assert re.fullmatch(r"\[?[A-Z_]+( |\.\.\.|[A-Z_=,.\]])*", parameter.metavar), parameter.name


NOUNS = "pairs|sentences|rows|lines|triplets|groups|files|evaluations|updates"


def test_terms_are_consistent() -> None:
    """Commands print their counts with `counted`."""
    commands = sorted(Path(cli.__file__).parent.glob("*.py"))
    plural = re.compile(rf'(.*(?<! of )(?<! only )\{{[^{{}}]+:,\}} (?:{NOUNS})(?= |,|:|;|"|\)).*)')
    assert len(commands) > 8
    found = [(path.name, line) for path in commands for line in plural.findall(path.read_text("utf-8"))]
    assert found == []


def test_overview_lists_every_command() -> None:
    shown = run_command("--help").stdout
    titles = re.findall(r"^(\w+):$", shown, re.M)
    assert titles == ["Options", "Project", "Corpus", "Translation", "Embeddings", "Lexicon", "Documentation"]
    listed = re.findall(r"^  ([a-z-]+) ", shown.partition("Project:")[2], re.M)
    assert listed == COMMANDS and len(set(listed)) == len(listed)


def test_misspelled_command_is_suggested() -> None:
    for written, meant in (("sumary", "summary"), ("trian", "train"), ("config", "configure")):
        with pytest.raises(ParaforgeError, match=f"no command '{written}'. Did you mean '{meant}'"):
            run_command(written)


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (InputError("damaged", Path("a"), 7), 2, "a:7: damaged"),
        (OSError(errno.ENOSPC, "No space left on device", "b"), 1, "No space left on device"),
    ],
)
def test_command_errors_are_one_line(
    error: Exception,
    code: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(cli, "app", Mock(side_effect=error))
    with pytest.raises(SystemExit) as ended:
        cli.main()
    told = capsys.readouterr().err
    assert ended.value.code == code and told.startswith("paraforge: ") and said in told
    assert told.count("\n") == 1


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("corpus")
    publish_pairs(root, rows=200)
    return root / "corpus"


@pytest.fixture
def place(tmp_path: Path, corpus: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a corpus, pairs, and files and directories of somebody else's."""
    (tmp_path / "corpus").symlink_to(corpus)
    (tmp_path / "pairs.tsv").write_text("a\tb\n")
    for name in NAMES:
        (tmp_path / name).write_text("years of work\n")
    (tmp_path / "shards").mkdir()
    (tmp_path / "shards" / "_shards.json").touch()
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("years of work\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(name: str, output: str, *more: str) -> str:
    """Run a command that is to be refused; its message."""
    arguments = [output if one == "OUT" else one for one in WRITERS[name]]
    with pytest.raises(ParaforgeError) as raised:
        run_command(*arguments, *more)
    assert raised.value.exit_code == 2
    return str(raised.value)


@pytest.mark.parametrize(
    "name", [one for one in WRITERS if "configure" not in one and one != "annotate serve"]
)
def test_force_replaces_only_own_output(name: str, place: Path, corpus: Path) -> None:
    before = digests(place), digests(corpus)
    for output in (*NAMES, "thesis"):
        assert "already exists (use --force to overwrite)" in run(name, output)
    said = run(name, "thesis", "--force")
    assert "not written by paraforge" in said or "is a directory" in said
    for inside in (*(f"corpus/{part}" for part in before[1]), "corpus/new.parquet", "shards/new.parquet"):
        assert "is inside the directory" in run(name, inside, "--force")
    assert (digests(place), digests(corpus)) == before


@pytest.mark.parametrize("name", ["query", "sample"])
def test_force_replaces_a_file(name: str, place: Path) -> None:
    output = place / "made.tsv"
    arguments = [str(output) if one == "OUT" else one for one in WRITERS[name]]
    run_command(*arguments)
    made = output.read_bytes()
    output.write_text("anything")
    run_command(*arguments, "--force")
    assert output.read_bytes() == made


@pytest.mark.parametrize(
    "name", ["lexicon", "encoder", "decoders", "sif", "model", "modules", "_triplets", "table", None]
)
def test_empty_or_own_directory_is_replaced(name: str | None, tmp_path: Path) -> None:
    output = tmp_path / "out"
    check_output(output, force=False, directory=True)
    output.mkdir()
    if name:
        (output / "notes.txt").touch()
        with pytest.raises(InputError, match=r"not written by paraforge.*none of .*encoder\.json.*Remove it"):
            check_output(output, force=True, directory=True)
        (output / f"{name}.json").touch()
    check_output(output, force=True, directory=True)
    (tmp_path / "file").touch()
    for place, message in (("file", "is not a directory"), ("file/below", "file: cannot be written to")):
        with pytest.raises(InputError, match=message):
            check_output(tmp_path / place, force=True, directory=True)


HEAVY = {"torch", "scipy", "sklearn", "transformers", "sentence_transformers", "ctranslate2", "fairseq"}
HEAVY |= {"numba", "sacremoses", "dask", "distributed", "stanza", "datasets", "polars"}
# Runs commands one after the other in one process, so that what a later one imports shows.
RUN = f"""
import json, sys
from typer.testing import CliRunner
from paraforge.interface.cli import app
for arguments in json.load(sys.stdin):
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, (arguments, result.output, result.exception)
    heavy = sorted({HEAVY!r} & set(sys.modules))
    assert not heavy, (arguments, heavy)
"""


def run_all(commands: list[list[str]], directory: Path) -> None:
    program = [sys.executable, "-c", RUN]
    options = {"cwd": directory, "env": environment(), "capture_output": True, "text": True}
    done = subprocess.run(program, input=json.dumps(commands), check=False, **options)
    assert done.returncode == 0, done.stderr


def test_help_imports_nothing_heavy(tmp_path: Path) -> None:
    run_all([["--help"], *([*name.split(), "--help"] for name, _ in commands())], tmp_path)


@pytest.mark.full
def test_result_commands_import_nothing_heavy(tmp_path: Path) -> None:
    publish_pairs(tmp_path / "data", rows=200)
    (tmp_path / "work").mkdir()
    (tmp_path / "sentences.txt").write_text("Pes běží.\n", encoding="utf-8")
    run_all(
        [
            ["configure", "corpus=sample"],
            ["verify", "data/corpus", "data/rejected"],
            ["sample", "data/corpus", "-n", "2"],
            ["query", "data/corpus", "SELECT count(*) FROM corpus"],
            ["summary"],
            ["translate", "sentences.txt", "translations.tsv", "--engine", "fake"],
        ],
        tmp_path,
    )
