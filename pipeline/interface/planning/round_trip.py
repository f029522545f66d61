"""Plans a round trip: the forward translation as usual, and the back-translation from a sample of it."""

from pathlib import Path
from typing import Any

import pyarrow as pa

from paraforge.base.shards.schema import schema_of
from paraforge.base.shards.store import ShardDirectory, ShardWriter
from paraforge.base.shards.work import replaced_directory
from paraforge.interface.configuration import Parameters
from paraforge.interface.planning.plan import NothingLeft, Plan, make_plan, model_path
from paraforge.translation.engines import is_remote
from paraforge.translation.stage.population import draw_sample
from paraforge.translation.stage.round_trip import FORWARD, forward_resources, write_back_corpus
from paraforge.translation.stage.translate import translate

_COLUMNS = ("source", "line", "source_text", "reference", "rejected", "first_row")
# Sentences that are translated forward to plan the back-translation, at most; of a server, which is paid.
_MOST, _PAID = 20_000, 384


def plan_round_trip(
    parameters: Parameters,
    corpus: ShardDirectory,
    built: Path,
    *,
    seconds: float,
    rate: float | None,
    sentences: int | None,
    **options: Any,
) -> dict[str, Plan]:
    """Plan both directions, as ``forward`` and ``back``.

    A sample is translated forward, which goes to the translation memory, and translating back is measured on
    it, for the same number of sentences. If the memory has all forward translations, only the
    back-translation is planned, for what is really left.

    built: where stage nmt builds the models. The rest is as for
    :func:`~paraforge.interface.planning.plan.make_plan`.

    Raises InputError if there is nothing to translate or no model.
    """
    changed = {
        "nmt": parameters.nmt.reversed(),
        "translate": parameters.translate.forward_parameters(),
        "resources": forward_resources(parameters.resources),
    }
    forward = parameters.model_copy(update=changed)
    options |= {"seconds": seconds, "rate": rate}
    if rate is not None:
        both = {FORWARD: forward, "back": parameters}
        options["sentences"] = sentences
        return {name: make_plan(one, corpus, built, **options) for name, one in both.items()}
    models = model_path(forward, built / FORWARD), model_path(parameters, built)
    try:
        first = make_plan(forward, corpus, models[0], sentences=sentences, **options)
    except NothingLeft:
        come = _translated_forward(forward, corpus.path, models[0])
        return {"back": make_plan(parameters, come, models[1], sentences=sentences, **options)}
    most = _PAID if is_remote(forward.translate.engine) else _MOST
    sample = _sample(forward, corpus, min(most, max(_PAID, int(seconds / 2 / first.rate.seconds))))
    come = _translated_forward(forward, sample, models[0])
    return {
        FORWARD: first,
        "back": make_plan(parameters, come, models[1], sentences=first.sentences, **options),
    }


def _sample(forward: Parameters, corpus: ShardDirectory, wanted: int) -> Path:
    """Write a sample of the references as a separate corpus. Returns its directory."""
    rows = draw_sample(corpus, wanted)
    texts = {"source_text": rows["source_text"], "reference": rows["reference"], "line": rows["sentence"]}
    schema = schema_of(_COLUMNS)
    columns = [texts.get(name, pa.nulls(rows.num_rows, schema.field(name).type)) for name in _COLUMNS]
    output = forward.resources.work / "plan" / "sample"
    with replaced_directory(output) as temporary:
        writer = ShardWriter(temporary, schema)
        writer.write(pa.table(dict(zip(_COLUMNS, columns, strict=True))).select(schema.names).cast(schema))
        writer.close({"step": "plan-sample"})
    return output


def _translated_forward(forward: Parameters, corpus: Path, model: Path) -> ShardDirectory:
    """Translate a corpus forward as the stage would, in the plan's work directory. Returns the corpus to
    translate back."""
    work = forward.resources.work / "plan"
    resources = forward.resources.model_copy(update={"work": work})
    section = forward.translate.model_copy(update={"check_quantised": False})
    translate(section, corpus, model, work / "translated", resources)
    write_back_corpus(work / "translated", work / "turned")
    return ShardDirectory(work / "turned")
