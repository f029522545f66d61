"""``paraforge plan``: forecast a translation before it starts."""

import json
from dataclasses import asdict
from pathlib import Path

import typer

from paraforge.base.errors import ConfigurationError

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
        help="sentences/s of a device, if known; then no sample is translated",
    ),
    input_price: float = typer.Option(None, min=0, max=_MOST, help="server: price of a million input tokens"),
    output_price: float = typer.Option(
        None, min=0, max=_MOST, help="server: price of a million output tokens"
    ),
    sentences: int = typer.Option(None, min=1, help="plan for this many sentences with the corpus' lengths"),
    as_json: bool = typer.Option(False, "--json", help="print JSON"),
) -> None:
    """Forecast the time, price and disk of translating the corpus.

    Translates a sample on one device, with the same sentence lengths as the corpus. Times have a 95% interval
    and leave out sentences that are in the translation memory. Ingests the sources in params.yaml if
    necessary; 'dvc repro' reuses the result. With several pivots, prints a plan for each and their sum; with
    --sentences, only for the first. For English alone, plans the forward translation.

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
    from paraforge.interface.project.files import check_versions
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
    if any(is_remote(one.translate.engine) for _, _, one in pivots):
        numbers = [1]
    if sentences:
        pivots = pivots[:1]
    plans: dict[str, Plan] = {}
    for name, place, one in pivots:
        corpus = ingested_corpus(one)
        built = Path("models/nmt") / place
        if one.ingest.kind == "references":
            name, one, built = f"{name} {FORWARD}", forward_of(one), built / FORWARD
            typer.echo("This is the forward translation. Translating back takes additional time.", err=True)
        plans[name] = make_plan(
            one,
            corpus,
            built if rate is not None else model_path(one, built),
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
