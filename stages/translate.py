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
    outputs = {}
    metrics_by_pivot = {}
    for name, place, pivot in parameters.by_pivot():
        outputs[name] = output
        if parameters.pivots:
            outputs[name] = translated_of(name, parameters.resources)
        corpus, model = Path("data/ingested") / place, Path("models/nmt") / place
        lineage = lineage_of(name, parameters.publish.pairs) if parameters.pivots else {}
        if pivot.ingest.kind == "references":
            forward, back = round_trip(
                pivot.translate, corpus, model, outputs[name], pivot.resources, lineage, finish
            )
            metrics_by_pivot[name] = {**asdict(back), FORWARD: asdict(forward)}
        else:
            report = translate(
                pivot.translate, corpus, model, outputs[name], pivot.resources, lineage, finish
            )
            metrics_by_pivot[name] = asdict(report)
    metrics = of_pivots("translate", metrics_by_pivot)
    if parameters.pivots:
        metrics["rows_by_pivot"] = join_pivots(
            outputs, parameters.publish.pairs, output, parameters.resources
        )
        for _, _, pivot in parameters.by_pivot():
            finish_translations(pivot.resources)
    write_metrics("translate", metrics)


if __name__ == "__main__":
    run_stage("translate", main)
