"""Stage translate: translates the foreign side of every row, which can itself be a translation."""

from dataclasses import asdict
from pathlib import Path

from paraforge.stages.common import Parameters, run_stage
from paraforge.stages.metrics import of_pivots, write_metrics
from paraforge.translation.stage.pivots import join_pivots, lineage_of, translated_of
from paraforge.translation.stage.round_trip import FORWARD, finish_translations, round_trip
from paraforge.translation.stage.translate import translate


def main(parameters: Parameters) -> None:
    """Translate ``data/ingested`` with ``models/nmt`` into ``data/translated``.

    Several pivots are translated separately and then joined.
    """
    output = Path("data/translated")
    # With several pivots, finish at the end, so that a killed run does not repeat failed sentences.
    finish = not parameters.pivots
    made = {}
    found = {}
    for name, place, one in parameters.by_pivot():
        made[name] = output
        if parameters.pivots:
            made[name] = translated_of(name, parameters.resources)
        corpus, model = Path("data/ingested") / place, Path("models/nmt") / place
        lineage = lineage_of(name, parameters.publish.pairs) if parameters.pivots else {}
        if one.ingest.kind == "references":
            forward, back = round_trip(
                one.translate, corpus, model, made[name], one.resources, lineage, finish
            )
            found[name] = {**asdict(back), FORWARD: asdict(forward)}
        else:
            report = translate(one.translate, corpus, model, made[name], one.resources, lineage, finish)
            found[name] = asdict(report)
    metrics = of_pivots("translate", found)
    if parameters.pivots:
        metrics["rows_by_pivot"] = join_pivots(made, parameters.publish.pairs, output, parameters.resources)
        for _, _, one in parameters.by_pivot():
            finish_translations(one.resources)
    write_metrics("translate", metrics)


if __name__ == "__main__":
    run_stage("translate", main)
