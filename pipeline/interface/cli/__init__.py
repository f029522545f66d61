"""The command line ``paraforge COMMAND``. A command's module is imported only when needed."""

from paraforge.interface.cli import startup as _startup  # noqa: F401 - importing it handles signals, before the slow imports

# isort: split
import codecs
import difflib
import importlib
import re
import sys
from io import TextIOWrapper
from typing import Any

import typer
from typer.core import TyperGroup

from paraforge.base.errors import InputError, page, replacement
from paraforge.base.interrupts import errors_in_words
from paraforge.versions import __version__

# Sections of the overview, with each command's purpose. A command is the function, or the group of commands,
# with its name in the module with its name, or in its entry of MODULES.
SECTIONS = {
    "Project": {
        "init": "Make a project, or update one from an earlier version.",
        "configure": "Choose models, thresholds and files, and write params.yaml.",
        "plan": "Forecast the time, price and disk space of a translation.",
        "doctor": "Check the installation, the engines and this project.",
    },
    "Corpus": {
        "summary": "Show the result of a run: counts, scores, examples.",
        "sample": "Show random pairs from a published corpus.",
        "query": "Query a published corpus with SQL.",
        "browse": "Choose thresholds in the browser, and see what they keep.",
        "score": "Score pairs of sentences from a file.",
        "verify": "Check a published corpus: checksums, rows, counts, columns.",
        "push": "Upload a published corpus to the Hugging Face Hub.",
        "annotate": "Grade pairs in the browser, and report the grades.",
    },
    "Translation": {
        "model": "Import translation models.",
        "translate": "Translate a file of sentences, one per line.",
        "paraphrase": "Paraphrase a file of sentences, one per line.",
        "memory": "Import translations from another system.",
    },
    "Embeddings": {
        "train": "Train sentence embeddings on paraphrase pairs.",
        "embed": "Embed a file of sentences, as .npy or Parquet.",
        "evaluate": "Evaluate a model on sentence and word similarity.",
        "export": "Export a trained model for other programs.",
        "triplets": "Mine triplets with hard negatives for other trainers.",
    },
    "Lexicon": {"lexicon": "Extract a paraphrase lexicon, or look up words."},
}
COMMANDS = [name for section in SECTIONS.values() for name in section]
MODULES = {
    **dict.fromkeys(SECTIONS["Project"], "project"),
    **dict.fromkeys(("sample", "browse"), "query"),
    **dict.fromkeys(("summary", "push", "verify"), "corpora"),
    **dict.fromkeys(SECTIONS["Translation"], "translation"),
    **dict.fromkeys(SECTIONS["Embeddings"], "embeddings"),
}


class LazyGroup(TyperGroup):
    """Imports a command's module when the command is used or its help is printed."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return names in the order of :data:`COMMANDS`."""
        return COMMANDS

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command, imported now."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"paraforge.interface.cli.{MODULES.get(cmd_name, cmd_name)}")
        group = getattr(module, cmd_name)
        if not isinstance(group, typer.Typer):
            group = typer.Typer(rich_markup_mode=None, add_completion=False)
            group.command()(getattr(module, cmd_name))
        command = typer.main.get_command(group)
        command.name = cmd_name
        return command

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command at the start of the arguments; for a misspelled one, the error suggests the
        nearest."""
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            close = difflib.get_close_matches(name, COMMANDS, n=1)
            hint = f"Did you mean '{close[0]}'?" if close else "'paraforge --help' lists the commands."
            raise InputError(f"no command '{name}'", remedy=replacement(name) or hint)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; the error for a removed option or subcommand says what replaces it."""
        try:
            return super().invoke(ctx)
        except Exception as error:
            # Typer has its own copy of click, whose classes are not public.
            usage: Any = error
            if named := re.match(r"No such (?:option: |command ')([\w-]+)", getattr(usage, "message", "")):
                usage.message = f"{usage.message}. {replacement(named[1], usage.ctx.info_name)}".rstrip(". ")
            raise

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the overview without importing any command."""
        width = max(map(len, COMMANDS))
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), text) for name, text in commands.items()])

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the address of this version's documentation."""
        formatter.write_paragraph()
        formatter.write_text("Documentation:")
        formatter.write(f"  {page('index')}\n")


app = typer.Typer(
    cls=LazyGroup,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Build paraphrase corpora by back-translation, and train sentence embeddings on them.",
)


@app.callback(invoke_without_command=True)
def _paraforge(version: bool = typer.Option(False, "--version", help="Print the version and exit.")) -> None:
    if version:
        typer.echo(f"paraforge {__version__}")
        raise typer.Exit()


def _write_utf8() -> None:
    """Make standard output UTF-8 in any locale, as in files. A terminal that cannot show a character gets
    ``?``."""
    for stream in (sys.stdin, sys.stdout):
        if not isinstance(stream, TextIOWrapper) or codecs.lookup(stream.encoding).name == "utf-8":
            continue
        if stream.isatty():
            stream.reconfigure(errors="replace")
        else:
            stream.reconfigure(encoding="utf-8")


def main() -> None:
    """Run the command line. A user's mistake gives one line on standard error and an exit code, never a
    traceback."""
    _write_utf8()
    with errors_in_words(lambda message: typer.echo(f"paraforge: {message}", err=True)):
        app()
