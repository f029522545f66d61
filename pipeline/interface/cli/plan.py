"""``paraforge plan``: what a translation will take, before it is begun."""

import json
from pathlib import Path

import typer

from paraforge.base.errors import ConfigurationError
from paraforge.base.interrupts import graceful_interrupts

_MOST_DEVICES = 100_000


def plan(
    overrides: list[str] = typer.Argument(
        None,
        metavar="GROUP=CHOICE|KEY=VALUE",
        help="choices that differ from params.yaml, as for 'paraforge configure'",
    ),
    price: float = typer.Option(None, min=0, help="price of one device per hour, in any currency"),
    devices: str = typer.Option("1,2,4,8", help="numbers of devices to compare"),
    seconds: float = typer.Option(90, min=1, help="most seconds to spend on the sample"),
    precision: float = typer.Option(
        0.03, min=0.001, max=1, help="stop earlier when the rate is known to within this share"
    ),
    rate: float = typer.Option(
        None, min=0.001, help="sentences/s of a device, if you know it; then no sample is translated"
    ),
    input_price: float = typer.Option(None, min=0, help="server: price of a million input tokens"),
    output_price: float = typer.Option(None, min=0, help="server: price of a million output tokens"),
    sentences: int = typer.Option(None, min=1, help="plan for this many sentences with the corpus' lengths"),
    ingested: Path = typer.Option(
        None, metavar="DIR", help="plan for these ingested shards instead of the sources in params.yaml"
    ),
    model: Path = typer.Option(
        None, metavar="DIR", help="plan with this model instead of the one in params.yaml"
    ),
    configs: Path = typer.Option(
        None, metavar="DIR", help="directory of the groups; by default configs/, or the package's own"
    ),
    parameters_path: Path = typer.Option(Path("params.yaml"), "--params", help="parameters to plan for"),
    as_json: bool = typer.Option(False, "--json", help="print JSON"),
) -> None:
    """Forecast the time, price, disk and memory of translating the corpus.

    Translates a sample with the same sentence lengths as the whole on one device. The interval is a 95%
    bootstrap over its blocks. The sources in params.yaml are ingested first if they have not been; 'dvc
    repro' reuses the result. The plan shows how many sentences the translation memory already has. At its
    end, the stage translate compares the plan with what it measured. With several pivots, each is planned,
    and their sum; --sentences, --ingested and --model plan only the first.

    A server (translate.engine: server) is paid by tokens. The plan counts them while it translates 384
    sentences, which go to the translation memory. With --rate, tokens are estimated from the texts.

    \b
    Examples:
      paraforge plan --price 2.5 --devices 1,2,4,8
      paraforge plan translation=opus-mt nmt.model=models/opus translate.beam=4
      paraforge plan --rate 7000 --sentences 51400000 --devices 1,8 --price 3
      paraforge plan translation=server translate.server.model=NAME --input-price 0.15 --output-price 0.6
      paraforge plan --json > plan.json
    """

    from paraforge.base.shards.store import ShardDirectory
    from paraforge.interface.configuration import load_parameters
    from paraforge.interface.configuration.choices import reconfigure, stale_words
    from paraforge.interface.planning.measurement import warn_of_misaligned_sources
    from paraforge.interface.planning.plan import ingested_corpus, make_plan, model_path, summed, tidied
    from paraforge.interface.planning.table import plan_json, plan_text, total_text
    from paraforge.interface.project.files import check_versions
    from paraforge.translation.engines import is_model_free, is_remote
    from paraforge.translation.models.importing import usable_model

    check_versions(parameters_path.parent)
    if overrides:
        from paraforge.interface.configuration.composition import configs_directory

        parameters = reconfigure(configs_directory(configs), overrides, parameters_path).parameters
    else:
        parameters = load_parameters(parameters_path)
        if stale := stale_words(parameters_path.parent):
            typer.echo(stale, err=True)
    counts = [part.strip() for part in devices.split(",")]
    if not all(part.isdecimal() and 0 < int(part) <= _MOST_DEVICES for part in counts):
        raise ConfigurationError(
            [f"--devices {devices}: numbers from 1 to {_MOST_DEVICES:,}, separated by commas"]
        )
    numbers = sorted({int(part) for part in counts})
    pivots = list(parameters.by_pivot())
    if any(is_remote(one.translate.engine) for _, _, one in pivots):
        numbers = [1]
    if sentences or ingested or model:
        pivots = pivots[:1]
    plans = {}
    with graceful_interrupts():
        for name, place, one in pivots:
            with tidied(one.resources.work):
                published = Path("data/ingested") / place
                corpus = ShardDirectory(ingested) if ingested else ingested_corpus(one, published)
                warn_of_misaligned_sources(corpus.path, one.resources)
                used = built = Path("models/nmt") / place
                if model is not None:
                    free = is_model_free(one.translate.engine)
                    used = model if free else usable_model(model, one.translate.engine)
                elif rate is None:
                    used = model_path(one, corpus, built)
                plans[name] = make_plan(
                    one,
                    corpus,
                    used,
                    devices=numbers,
                    price=price,
                    seconds=seconds,
                    precision=precision,
                    rate=rate,
                    sentences=sentences,
                    token_prices=(input_price, output_price),
                )
        found = summed(list(plans.values())) if len(plans) > 1 else plans[name]
    if as_json:
        printed = plan_json(found)
        if len(plans) > 1:
            printed["pivots"] = {name: plan_json(plan) for name, plan in plans.items()}
        typer.echo(json.dumps(printed, indent=2))
        return
    typer.echo(total_text(plans, found, price) if len(plans) > 1 else plan_text(found, price))
