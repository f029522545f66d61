"""The command line: ``paraforge COMMAND``; a command's module is imported only when it is called for."""

from paraforge.interface.cli import startup as _startup  # noqa: F401  first: from here on a signal is exit code 130

# isort: split
import codecs
import importlib
import sys
from io import TextIOWrapper
from typing import Any

import typer
from typer.core import TyperGroup

from paraforge.base.errors import ParaforgeError, describe_os_error, names_in_utf8
from paraforge.base.interrupts import last_words
from paraforge.interface.cli.settings import name_values
from paraforge.versions import __version__

# By section of the overview, name: what it is for. The command `a-b` is the function `a_b` of the module
# `a_b`, or of that in MODULES; a group has its typer.Typer there, ``app``.
SECTIONS = {
    "Corpus": {
        "summary": "Show what a run gave: counts, scores, examples.",
        "sample": "Show pairs drawn at random from a published corpus.",
        "query": "Ask a published corpus in SQL.",
        "browse": "Choose thresholds in the browser, by looking at what they keep.",
        "export-corpus": "Write a published corpus, or part of it, for other programs.",
        "merge": "Write several published corpora as one.",
        "diff": "Show what differs between two published corpora.",
        "push": "Upload a published corpus to the Hugging Face Hub.",
        "verify": "Check a published corpus: checksums, rows, counts, schema.",
        "annotate": "Grade pairs in the browser, and report the grades.",
        "score": "Score pairs of reference and translation.",
    },
    "Translation": {
        "plan": "Forecast what a translation will take: time, cost, disk, memory.",
        "memory": "Show, export and import remembered translations.",
        "model": "Import a ready translation model, check one, show any model.",
        "translate": "Translate a file of sentences, one per line.",
        "paraphrase": "Paraphrase a file of sentences, one per line.",
    },
    "Embeddings": {
        "train": "Train sentence embeddings on paraphrase pairs.",
        "train-decoders": "Train sentence embeddings on running text, to predict a sentence's neighbours.",
        "expand": "Give trained decoders more words, from word vectors.",
        "sif": "Fit SIF sentence embeddings over word vectors.",
        "fit-words": "Move word vectors by synonyms and antonyms.",
        "embed": "Embed a file of sentences into .npy or Parquet.",
        "similarity": "Similarity of the sentences of pairs under a trained model.",
        "neighbours": "Nearest neighbours of words and sentences.",
        "negatives": "Show the negatives that mega-batch training would pick.",
        "triplets": "Mine triplets with hard negatives in a corpus, for other trainers.",
        "evaluate": "Evaluate a model on similarity and transfer tasks.",
        "export": "Export a trained model for other programs.",
    },
    "Lexicon": {"lexicon": "Extract, look up, compare and evaluate a paraphrase lexicon."},
    "Project": {
        "init": "Make a project, or bring one up to date.",
        "configure": "Choose what a run does: write params.yaml from configs/.",
        "workers": "Start the workers of a cluster: SLURM, ssh, Kubernetes.",
        "doctor": "Check the installation, its engines and this project.",
    },
}
COMMANDS = [name for section in SECTIONS.values() for name in section]
MODULES = {
    **dict.fromkeys(("sample", "browse"), "query"),
    **dict.fromkeys(("export-corpus", "merge", "push", "verify"), "corpora"),
    **dict.fromkeys(("embed", "similarity", "neighbours", "negatives", "export"), "vectors"),
    **dict.fromkeys(("sif", "fit-words", "expand"), "words"),
    **dict.fromkeys(("init", "configure", "doctor"), "project"),
    "paraphrase": "translate",
    "train-decoders": "train",
}


class LazyGroup(TyperGroup):
    """A group that imports a command's module when the command is used or its own help is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Names in the order of :data:`COMMANDS`."""
        return COMMANDS

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command, imported now."""
        if cmd_name not in COMMANDS:
            from paraforge.interface.configuration.places import suggestion

            if ctx is not None and not ctx.resilient_parsing:
                ctx.fail(f"there is no command '{cmd_name}'{suggestion(cmd_name, COMMANDS)}")
            return None
        name = cmd_name.replace("-", "_")
        module = importlib.import_module(f"paraforge.interface.cli.{MODULES.get(cmd_name, name)}")
        if hasattr(module, "app"):
            group = module.app
        else:
            group = typer.Typer(rich_markup_mode=None, add_completion=False)
            group.command()(getattr(module, name))
        command = typer.main.get_command(group)
        command.name = cmd_name
        name_values(command)
        return command

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The overview, without importing any command."""
        width = max(map(len, COMMANDS))
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), text) for name, text in commands.items()])


app = typer.Typer(
    cls=LazyGroup,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Paraphrase corpora by back-translation, and what is trained and mined from them.",
)


@app.callback(invoke_without_command=True)
def _paraforge(version: bool = typer.Option(False, "--version", help="Print the version and exit.")) -> None:
    if version:
        typer.echo(f"paraforge {__version__}")
        raise typer.Exit()


def _write_utf8() -> None:
    """Text in pipes is UTF-8 as in files, whatever the locale; a terminal that cannot show it gets ``?``."""
    for stream in (sys.stdin, sys.stdout):
        if not isinstance(stream, TextIOWrapper) or codecs.lookup(stream.encoding).name == "utf-8":
            continue
        if stream.isatty():
            stream.reconfigure(errors="replace")
        else:
            stream.reconfigure(encoding="utf-8")


def main() -> None:
    """Entry point: a user's mistake is one line on standard error and an exit code, never a traceback."""
    _write_utf8()
    with last_words():
        try:
            with names_in_utf8():
                app()
        except ParaforgeError as error:
            typer.echo(f"paraforge: {error}", err=True)
            sys.exit(error.exit_code)
        except OSError as error:
            if isinstance(error, BrokenPipeError):
                raise
            typer.echo(f"paraforge: {describe_os_error(error)}", err=True)
            sys.exit(1)
