"""A plan as people read it, and as JSON."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from paraforge.base.files import size
from paraforge.base.markdown import text_table
from paraforge.interface.planning.forecast import Facts, Forecast
from paraforge.interface.planning.plan import Plan


def plan_text(plan: Plan, price: float | None) -> str:
    """The plan in lines and one table."""
    facts, found = plan.facts, plan.forecast
    options = plan.choice.options
    lines = [
        f"{facts.rows:,} rows, {facts.sentences:,} distinct sentences of {facts.text_bytes:.0f} bytes",
        f"engine {plan.choice.engine}, {options.compute_type}, beam {options.beam}, {options.nbest} kept"
        + ("" if plan.measurement is None else f", on {plan.device}"),
    ]
    if plan.measurement is not None:
        rate = plan.measurement.rate
        lines += [
            f"sample: {rate.sentences:,} sentences in {rate.blocks} blocks; "
            f"{_rate(facts.seconds)} sentences/s ({_rate(facts.high)} to {_rate(facts.low)}), "
            f"{facts.target_tokens / facts.seconds:,.0f} target tokens/s; "
            f"model ready in {facts.load_seconds:.1f} s"
        ]
        if facts.failed:
            lines.append(f"{facts.failed:.2%} of the sample could not be translated")
    else:
        lines.append(f"rate as given: {_rate(facts.seconds)} sentences/s")
    lines += [
        "",
        f"device hours   {hours(found.device_hours)}  ({hours(found.low)} to {hours(found.high)})",
        f"rows           {hours(facts.rows * facts.row_seconds / 3600)} on processors, whatever the devices: "
        "finding distinct sentences, joining; in each time below",
        f"disk           {size(found.disk['total'])}  ({_parts(found.disk)})",
    ]
    if facts.memory:
        on_device = f", {size(facts.device_memory)} on the device" if facts.device_memory else ""
        lines.append(f"memory         {size(facts.memory)} a worker{on_device}")
    lines += [
        f"tasks          {found.tasks:,} of {min(facts.sentences_per_task, facts.sentences):,} sentences, "
        f"{found.task_seconds:.1f} s each: the work lost if the run is killed",
        *_tokens(plan),
        "",
        _table(plan, price),
        *_too_many(found),
        "",
        *_left(plan),
        *([] if plan.tokens else [_advice(plan)]),
    ]
    return "\n".join(lines)


def total_text(plans: Mapping[str, Plan], total: Plan, price: float | None) -> str:
    """The plan of each pivot, and what all of them take together."""
    found = total.forecast
    lines = [line for name, plan in plans.items() for line in (f"# {name}", "", plan_text(plan, price), "")]
    lines += [
        f"# {' + '.join(plans)}, one after the other",
        "",
        f"{total.facts.rows:,} rows, {total.facts.sentences:,} distinct sentences",
        f"device hours   {hours(found.device_hours)}  ({hours(found.low)} to {hours(found.high)})",
        f"disk           {size(found.disk['total'])}  ({_parts(found.disk)})",
        *_tokens(total),
        "",
        _table(total, price),
        "",
        *_left(total),
    ]
    return "\n".join(lines).rstrip()


def _tokens(plan: Plan) -> list[str]:
    """Tokens and money that a server takes for what is to be translated."""
    tokens = plan.tokens
    if tokens is None:
        return []
    by = "counted by the server on the sample" if tokens.counted else "a rough estimate from the texts"
    left = None if plan.progress is None else plan.progress.sentences_left
    lines = []
    for name, forecast in (("tokens", plan.facts.sentences), ("tokens left", left)):
        if forecast is not None:
            lines.append(
                f"{name:<14} {tokens.input * forecast:,.0f} input, {tokens.output * forecast:,.0f} output"
                f"  ({tokens.input:.0f} and {tokens.output:.0f} a sentence, {by})"
            )
            cost = tokens.cost(forecast)
            if cost is not None:
                prices = f"{tokens.input_price or 0:g} and {tokens.output_price or 0:g}"
                lines.append(f"{'':<14} {cost:,.2f} at {prices} a million")
    return lines


def _parts(disk: dict[str, int]) -> str:
    return ", ".join(f"{name} {size(amount)}" for name, amount in disk.items() if name != "total")


def _table(plan: Plan, price: float | None) -> str:
    header = ["devices", "time", "from", "to"] + ([] if price is None else [f"cost at {price:g} an hour"])
    rows = [
        [str(wall.devices), hours(wall.hours), hours(wall.low), hours(wall.high)]
        + ([] if wall.cost is None else [f"{wall.cost:,.2f}"])
        for wall in plan.forecast.walls
    ]
    if plan.left is not None:
        header += ["time left"] + ([] if price is None else ["cost left"])
        for row, wall in zip(rows, plan.left.walls, strict=True):
            row += [hours(wall.hours)] + ([] if wall.cost is None else [f"{wall.cost:,.2f}"])
    return "\n".join(text_table(header, rows, left=0))


def _too_many(found: Forecast) -> list[str]:
    """That more devices take longer, where starting a process on each takes longer than what it saves."""
    quickest = min(found.walls, key=lambda wall: wall.hours, default=None)
    if quickest is None or not any(wall.devices > quickest.devices for wall in found.walls):
        return []
    slowest = max(wall.hours for wall in found.walls if wall.devices > quickest.devices)
    if slowest <= quickest.hours:
        return []
    return [f"{quickest.devices} is enough: starting more processes takes longer than they save"]


def _left(plan: Plan) -> list[str]:
    """What is known already, and what is left."""
    done, left = plan.progress, plan.left
    if done is None or left is None:
        return []
    return [
        f"known          {done.sentences_known:,} of {done.sentences:,} sentences, "
        f"{done.rows_known:,} of {done.rows:,} rows, in the translation memory",
        f"left           {done.sentences_left:,} sentences, {done.rows - done.rows_known:,} rows: "
        f"{hours(left.device_hours)} of devices  ({hours(left.low)} to {hours(left.high)})",
        "",
    ]


def _advice(plan: Plan) -> str:
    size_now = plan.facts.sentences_per_task
    if size_now / 2 <= plan.best_task <= 2 * size_now:
        return f"translate.sentences_per_task: {size_now:,} is right for devices of this rate"
    return (
        f"translate.sentences_per_task: {plan.best_task:,} is right for devices of this rate "
        f"(now {size_now:,}); it is best chosen before the work begins"
    )


def hours(value: float) -> str:
    """Seconds, minutes, hours or days, whichever reads best."""
    seconds = value * 3600
    if 0 < seconds < 1:
        return "under 1 s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.1f} min"
    return f"{value:,.1f} h" if value < 96 else f"{value / 24:,.1f} days"


def plan_json(plan: Plan) -> dict[str, Any]:
    """Everything as JSON values."""
    facts: Facts = plan.facts
    return {
        "engine": plan.choice.engine,
        "options": plan.choice.options.model_dump(),
        "model": plan.choice.weights,
        "device": plan.device,
        "facts": asdict(facts),
        "sample": None if plan.measurement is None else asdict(plan.measurement.rate),
        "forecast": asdict(plan.forecast),
        "tokens": None if plan.tokens is None else plan.tokens.described(facts.sentences),
        "best_sentences_per_task": plan.best_task,
        "progress": None if plan.progress is None else asdict(plan.progress),
        "left": None if plan.left is None else asdict(plan.left),
    }


def _rate(seconds: float) -> str:
    # The interval of a sample of few blocks may begin at 0 seconds a sentence.
    return f"{1 / seconds:,.1f}" if seconds else "any"
