"""The command line: ``paraforge COMMAND``; a command's module is imported only when it is called for."""

from __future__ import annotations

from paraforge.cli import startup as _startup  # noqa: F401  first: from here on a signal is exit code 130

# isort: split
import importlib
import sys
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from paraforge import __version__
from paraforge.cli.spelling import name_values, respelled
from paraforge.errors import ParaforgeError, describe_os_error
from paraforge.interrupts import last_words

# By section of the overview, name: (module, what it is for). A module has ``app``, a typer.Typer of one
# command or of a group.
SECTIONS: dict[str, dict[str, tuple[str, str]]] = {
    "Corpus": {
        "summary": ("paraforge.cli.summary", "Show what a run gave: counts, scores, examples."),
        "sample": ("paraforge.cli.sample", "Show pairs drawn at random from a published corpus."),
        "query": ("paraforge.cli.query", "Ask a published corpus in SQL."),
        "browse": ("paraforge.cli.browse", "Choose thresholds in the browser, by looking at what they keep."),
        "export-corpus": ("paraforge.cli.export_corpus", "Write a published corpus as TSV or JSON lines."),
        "diff": ("paraforge.cli.diff", "Show what differs between two published corpora."),
        "verify": ("paraforge.cli.verify", "Check a published corpus: checksums, rows, counts, schema."),
        "annotate": (
            "paraforge.cli.annotate",
            "Grade pairs in the browser, and report the grades.",
        ),
        "score": ("paraforge.cli.score", "Score pairs of reference and translation."),
    },
    "Translation": {
        "plan": ("paraforge.cli.plan", "Forecast what a translation will take: time, cost, disk, memory."),
        "memory": (
            "paraforge.cli.memory",
            "Show, export and import remembered translations.",
        ),
        "model": ("paraforge.cli.model", "Import a ready translation model, check one, show any model."),
        "translate": ("paraforge.cli.translate", "Translate a file of sentences, one a line."),
        "paraphrase": ("paraforge.cli.paraphrase", "Paraphrase a file of sentences, one a line."),
    },
    "Embeddings": {
        "train": ("paraforge.cli.train", "Train sentence embeddings on paraphrase pairs."),
        "train-decoders": (
            "paraforge.cli.train_decoders",
            "Train sentence embeddings on running text, to predict a sentence's neighbours.",
        ),
        "expand": ("paraforge.cli.expand", "Give trained decoders more words, from word vectors."),
        "sif": ("paraforge.cli.sif", "Fit SIF sentence embeddings over word vectors."),
        "embed": ("paraforge.cli.embed", "Embed a file of sentences into .npy or Parquet."),
        "similarity": (
            "paraforge.cli.similarity",
            "Similarity of the sentences of pairs under a trained model.",
        ),
        "neighbours": ("paraforge.cli.neighbours", "Nearest neighbours of words and sentences."),
        "negatives": ("paraforge.cli.negatives", "Show which negatives mega-batches give pairs."),
        "triplets": (
            "paraforge.cli.triplets",
            "Mine triplets with hard negatives in a corpus, for other trainers.",
        ),
        "evaluate": (
            "paraforge.cli.evaluate",
            "Evaluate a model on similarity and transfer tasks.",
        ),
        "export": ("paraforge.cli.export", "Export a trained model for other programs."),
    },
    "Lexicon": {
        "lexicon": ("paraforge.cli.lexicon", "Extract, look up, compare and evaluate a paraphrase lexicon."),
    },
    "Project": {
        "configure": ("paraforge.cli.configure", "Choose what a run does: write params.yaml from configs/."),
        "work": ("paraforge.cli.work", "Show and prune what is kept for resuming."),
        "doctor": ("paraforge.cli.doctor", "Check the installation, its engines and this project."),
    },
}
COMMANDS = {name: entry for section in SECTIONS.values() for name, entry in section.items()}


class LazyGroup(TyperGroup):
    """A group that imports a command's module when the command is used or its own help is asked for."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read options of the release before as they are written now."""
        return super().parse_args(ctx, respelled(args))

    def list_commands(self, ctx: Any) -> list[str]:
        """Names in the order of :data:`COMMANDS`."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command, imported now."""
        if cmd_name not in COMMANDS:
            return None
        command = typer.main.get_command(importlib.import_module(COMMANDS[cmd_name][0]).app)
        command.name = cmd_name
        name_values(command)
        return command

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The overview, without importing any command."""
        width = max(map(len, COMMANDS))
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), text) for name, (_, text) in commands.items()])


app = typer.Typer(
    cls=LazyGroup,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Paraphrase corpora by back-translation, and what is trained and mined from them.",
)


@app.callback(invoke_without_command=True)
def _paraforge(
    version: bool = typer.Option(False, "--version", help="Print the version and exit."),
) -> None:
    if version:
        typer.echo(f"paraforge {__version__}")
        raise typer.Exit()
    if Path("dvc.yaml").is_file():
        from paraforge.shards.dvc_files import repair

        for path, aside in repair():
            typer.echo(f"paraforge: {path} was cut off when DVC was killed, and is now {aside}", err=True)


def main() -> None:
    """Entry point: a user's mistake is one line on standard error and an exit code, never a traceback."""
    with last_words():
        try:
            app()
        except ParaforgeError as error:
            typer.echo(f"paraforge: {error}", err=True)
            sys.exit(error.exit_code)
        except OSError as error:
            if isinstance(error, BrokenPipeError):
                raise
            typer.echo(f"paraforge: {describe_os_error(error)}", err=True)
            sys.exit(1)
