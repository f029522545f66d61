"""``init``, ``configure``, ``plan`` and ``doctor``: everything before a run."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import asdict
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import typer

from paraforge.base.errors import ConfigurationError, InputError
from paraforge.base.files import write_whole
from paraforge.base.logs import counted

if TYPE_CHECKING:
    from paraforge.interface.configuration.choices import Configured


_MARKS = {"ok": "ok     ", "missing": "missing", "broken": "BROKEN ", "note": "note   "}


def init(
    directory: Path = typer.Argument(
        None,
        metavar="DIR",
        help="new or empty directory; with --upgrade, the project (default: the current directory)",
    ),
    bitext: tuple[Path, Path] = typer.Option(
        None, metavar="FILE FILE", help="bitext in two files: foreign and English sentences, line by line"
    ),
    table: Path = typer.Option(
        None,
        metavar="FILE",
        help="bitext in one TSV, CSV, JSON Lines, Parquet or TMX file; finds its two columns",
    ),
    english: Path = typer.Option(
        None,
        metavar="FILE",
        help="English sentences alone, one per line, to translate to another language and back",
    ),
    upgrade: bool = typer.Option(
        False, "--upgrade", help="update a project from an earlier version; your files stay"
    ),
) -> None:
    """Make a project in a new directory. Run it with 'dvc repro'.

    \b
    Examples:
      paraforge init my                                  the embedded sample, and a file for your bitext
      paraforge init my --bitext a.cs.gz a.en.gz         your bitext; checks its lines and languages
      paraforge init my --table pairs.tsv                your bitext in one file; finds its columns
      paraforge init my --english sentences.txt          English alone; a round trip
      paraforge init --upgrade                           after an upgrade of Paraforge
    """
    from paraforge.interface.configuration import PARAMETERS, load_parameters
    from paraforge.interface.project.bitext import look_at, look_at_english, look_at_table
    from paraforge.interface.project.creation import make_project, upgrade_project
    from paraforge.translation.training.parameters import READY_MODEL, doubt_about

    sources = sum(map(bool, (bitext, table, english)))
    if upgrade:
        if sources:
            raise InputError("use --upgrade without --bitext, --table and --english")
        project = directory or Path()
        if not upgrade_project(project):
            typer.echo("  dvc.yaml: kept, because you changed it; this version's is in dvc.yaml.new")
        typer.echo(f"{project}: up to date. Next: paraforge configure && dvc status")
        return
    if directory is None:
        raise InputError("DIR is missing: paraforge init DIR")
    if sources > 1:
        raise InputError("use only one of --bitext, --table and --english")
    texts = look_at(*bitext) if bitext else look_at_table(table) if table else None
    texts = look_at_english(english) if english else texts
    make_project(directory, texts)
    contents = "the embedded sample" if texts is None else f"your {texts.kind}"
    typer.echo(f"{directory}: a project with {contents}")
    if texts is not None:
        for side, place in texts.places.items():
            language = texts.languages[side] or "of unknown language"
            typer.echo(f"  {side}: {place}, {counted(texts.lines, 'line')}, {language}")
        typer.echo(f"  choices: {' '.join(texts.choices)}")
        for problem in texts.problems():
            typer.echo(f"  fix this first, with 'paraforge configure': {problem}")
    else:
        typer.echo("  For your own bitext, edit configs/corpus/my.yaml, then run")
        typer.echo("  paraforge configure corpus=my translation=small select=quality")
    typer.echo(f"Next: cd {quote(str(directory))} && dvc repro")
    if texts is not None and texts.kind == "references":
        typer.echo("  Before that, set both models, from the other language and into it:")
        typer.echo(f"  {READY_MODEL} nmt.forward=NAME")
    nmt = load_parameters(directory / PARAMETERS).nmt
    if nmt.model == "train":
        typer.echo(
            f"  This first trains a translation model, which takes about {nmt.training_time} on two "
            "CPU cores."
        )
        if importlib.util.find_spec("fairseq") is None:
            typer.echo("  It needs fairseq, so first run: paraforge doctor --install-fairseq")
        if texts is not None and (doubt := doubt_about(texts.lines)):
            typer.echo(f"  But {doubt}.")
        typer.echo(f"  To use a pretrained model instead, first run: {READY_MODEL}")
    typer.echo("Before 'dvc exp run', run: git add . && git commit -m 'A corpus'")


def configure(
    overrides: list[str] = typer.Argument(
        None,
        metavar="GROUP=CHOICE|KEY=VALUE",
        help="choices and values, e.g. corpus=my translate.beam=4",
    ),
    output: Path = typer.Option(Path("params.yaml"), "--output", "-o", metavar="FILE", help="file to write"),
    show: bool = typer.Option(False, "--show", help="print the file instead of writing it"),
    groups: bool = typer.Option(
        False, "--groups", help="list the groups and their choices, and where the files are"
    ),
    schema: bool = typer.Option(False, "--schema", help="print the JSON schema of params.yaml, for editors"),
    reset: bool = typer.Option(False, "--reset", help="forget earlier choices and edits"),
    check_files: bool = typer.Option(
        True, "--files/--no-files", help="check your files and their first rows"
    ),
) -> None:
    """Write params.yaml from choices and values, after checking every value and every file.

    A choice is a YAML file: one that comes with Paraforge, or your own in configs/GROUP/.

    Earlier choices and your edits in params.yaml are kept, unless this call changes them. The command prints
    what changes; 'dvc status' then lists the stages that 'dvc repro' will run.

    \b
    Examples:
      paraforge configure corpus=my translation=small          another bitext, another model
      paraforge configure corpus=my select=quality             your own configs/corpus/my.yaml
      paraforge configure select=wieting2021                   another selection of the same corpus
      paraforge configure --reset                              back to the embedded sample
      paraforge configure --groups                             list the groups and their choices
    """
    from paraforge.interface.configuration import Parameters
    from paraforge.interface.configuration.choices import reconfigure
    from paraforge.interface.configuration.composition import choices, shipped
    from paraforge.interface.configuration.inputs import INPUTS, link_inputs
    from paraforge.interface.configuration.inputs import check_files as check
    from paraforge.interface.project.creation import check_versions

    if schema:
        typer.echo(json.dumps(Parameters.model_json_schema(), indent=2, ensure_ascii=False))
        return
    configs = Path("configs")
    if groups:
        for group, names in choices(configs).items():
            typer.echo(f"{group}: {', '.join(names)}")
        typer.echo(f"Their files are in {shipped('configs')}; yours belong in configs/GROUP/.")
        return
    check_versions(output.parent)
    root = Path.cwd()
    above = next((directory for directory in root.parents if (directory / "dvc.yaml").is_file()), None)
    if above is not None and not (root / "dvc.yaml").is_file():
        raise InputError("the project is in a directory above", above, remedy=f"First run: cd {above}")
    if output.exists() and not output.is_file():
        raise InputError("not a regular file", output)
    configured = reconfigure(configs, overrides or [], output, reset)
    problems = check(configured.parameters) if check_files else []
    if problems:
        raise ConfigurationError(problems)
    if show:
        typer.echo(configured.text, nl=False)
        return
    write_whole(output, configured.text)
    typer.echo("\n".join(_lines(configured, output)))
    chosen = dict(choice.split("=", 1) for choice in configured.choices if "=" in choice)
    if chosen.get("corpus", "sample") != "sample" and "select" not in chosen:
        typer.echo("select=sample is meant for the embedded sample. For your own bitext use select=quality.")
    project = output.parent
    if (project / "dvc.yaml").is_file():
        link_inputs(configured.parameters, root=project / INPUTS)


def _lines(configured: Configured, output: Path) -> list[str]:
    lines = [f"{output}: {' '.join(configured.choices) or 'the embedded sample'}"]
    lines += [f"  no longer chosen: {line}" for line in configured.forgotten]
    lines += [f"  kept as edited: {line}" for line in configured.edited]
    if configured.changes is None:
        return [*lines, "  written"]
    return [*lines, *(f"  {line}" for line in configured.changes or ["nothing changes"])]


def doctor(
    install_fairseq: bool = typer.Option(
        False, "--install-fairseq", help="build and install fairseq, which trains translation models"
    ),
) -> None:
    """Check the installation, its engines and this project.

    Exits with 1 if something that every corpus needs is broken.
    """
    if install_fairseq:
        from paraforge.translation.models.fairseq_compat import install_fairseq as install

        raise typer.Exit(0 if install() else 1)
    from paraforge.interface.project.diagnosis import diagnose

    broken = False
    for section, findings in diagnose():
        if findings:
            typer.echo(section)
        for finding in findings:
            typer.echo(f"  {_MARKS[finding.state]}  {finding.name}: {finding.detail}")
            if finding.remedy:
                typer.echo(f"           -> {finding.remedy}")
            broken = broken or finding.state == "broken"
    if broken:
        raise typer.Exit(1)


_MOST_DEVICES = 100_000
_MOST = 1e9


def plan(
    overrides: list[str] = typer.Argument(
        None,
        metavar="GROUP=CHOICE|KEY=VALUE",
        help="choices that differ from params.yaml, as for 'paraforge configure'",
    ),
    price: float = typer.Option(None, min=0, max=_MOST, help="price of one device per hour, in any currency"),
    devices: str = typer.Option("1,2,4,8", help="numbers of devices to compare"),
    seconds: float = typer.Option(90, min=1, help="time limit for the sample, in seconds"),
    rate: float = typer.Option(
        None,
        min=0.001,
        max=_MOST,
        help="sentences/s of a device, if you know it; no sample is translated",
    ),
    input_price: float = typer.Option(None, min=0, max=_MOST, help="server: price per million input tokens"),
    output_price: float = typer.Option(
        None, min=0, max=_MOST, help="server: price per million output tokens"
    ),
    sentences: int = typer.Option(
        None, min=1, help="plan for this many sentences, as long as those of the corpus"
    ),
    as_json: bool = typer.Option(False, "--json", help="print JSON"),
) -> None:
    """Forecast the time, price and disk space of translating the corpus.

    Translates a sample with the sentence lengths of the corpus on one device. Times have a 95% interval and
    leave out sentences that are in the translation memory. If the sources in params.yaml are not ingested
    yet, this command ingests them; 'dvc repro' reuses the result. With several pivots, it prints a plan for
    each and their sum (with --sentences, only a plan for the first). For English alone, it plans the forward
    translation.

    A server (translate.engine: server) charges for tokens. To count them, the command translates 384
    sentences, which stay in the translation memory.

    \b
    Examples:
      paraforge plan --price 2.5 --devices 1,2,4,8
      paraforge plan translation=ready nmt.model=models/opus translate.beam=4
      paraforge plan --rate 7000 --sentences 51400000 --devices 1,8 --price 3
      paraforge plan translation=server translate.server.model=NAME --input-price 0.15 --output-price 0.6
      paraforge plan --json > plan.json
    """

    from paraforge.interface.configuration import PARAMETERS, load_parameters
    from paraforge.interface.configuration.choices import reconfigure, stale_words
    from paraforge.interface.planning.plan import (
        Plan,
        forward_of,
        ingested_corpus,
        make_plan,
        model_path,
        plan_text,
    )
    from paraforge.interface.project.creation import check_versions
    from paraforge.translation.engines import is_remote
    from paraforge.translation.stage.round_trip import FORWARD

    check_versions()
    if overrides:
        parameters = reconfigure(Path("configs"), overrides, PARAMETERS).parameters
    else:
        parameters = load_parameters()
        if stale := stale_words(Path()):
            typer.echo(stale, err=True)
    counts = [part.strip() for part in devices.split(",")]
    if not all(part.isdecimal() and 0 < int(part) <= _MOST_DEVICES for part in counts):
        raise ConfigurationError(
            [f"--devices {devices}: expected numbers from 1 to {_MOST_DEVICES:,}, separated by commas"]
        )
    numbers = sorted({int(part) for part in counts})
    pivots = list(parameters.by_pivot())
    if any(is_remote(pivot.translate.engine) for _, _, pivot in pivots):
        numbers = [1]
    if sentences:
        pivots = pivots[:1]
    plans: dict[str, Plan] = {}
    for name, place, pivot in pivots:
        corpus = ingested_corpus(pivot)
        built = Path("models/nmt") / place
        if pivot.ingest.kind == "references":
            name, pivot, built = f"{name} {FORWARD}", forward_of(pivot), built / FORWARD
            typer.echo("This is the forward translation. Translating back takes additional time.", err=True)
        plans[name] = make_plan(
            pivot,
            corpus,
            built if rate is not None else model_path(pivot, built),
            devices=numbers,
            price=price,
            seconds=seconds,
            rate=rate,
            sentences=sentences,
            token_prices=(input_price, output_price),
        )
    if as_json:
        typer.echo(json.dumps({name: asdict(plan) for name, plan in plans.items()}, indent=2))
    else:
        typer.echo(plan_text(plans, price))
