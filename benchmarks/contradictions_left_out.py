"""Whether a corpus without changed meanings makes better embeddings, and whether made contradictions do.

Given pairs of five kinds of text are scored and selected by select=quality with and without `contradiction`,
and with a lower maximum; a model is trained on the same number of pairs of each. The last one is fine-tuned
on triplets of the corpus with and without `triplets.contradictions`.

python -m benchmarks.contradictions_left_out work/left-out
"""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import typer

from benchmarks.contradictions import JUDGED, contradictions, good, sick
from benchmarks.hardware import hardware
from benchmarks.proof import section, trained
from benchmarks.results import append, over_seeds, sts_figures
from benchmarks.triplets import published
from examples.fine_tune import fine_tune
from experiments.pairs import SOURCES, paraphrases, sts_sets
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.store import ShardView, ShardWriter
from paraforge.corpus.columns import schema_of
from paraforge.corpus.scoring.general import DIRECTORY, NAME
from paraforge.corpus.scoring.parameters import ScoreParameters
from paraforge.corpus.scoring.score import score
from paraforge.corpus.scoring.verdict import area
from paraforge.corpus.selection.parameters import SelectParameters
from paraforge.corpus.selection.select import select
from paraforge.embeddings.evaluation.similarity.sts import evaluate_sts
from paraforge.embeddings.inference.export import export_model
from paraforge.embeddings.trainer.parameters import ModelParameters
from paraforge.products.loading import load_fixed, open_model
from paraforge.products.triplets.mining import mine_triplets
from paraforge.products.triplets.parameters import TripletsParameters

TASK: Final = "contradictions_left_out"
LINEAGE: Final = ["source", "line", "reference", "translation"]
MAXIMA: Final = {"with": {"good_pairs": 0.02}, "without": None, "with a maximum of 0.5": 0.5}
"""Of `contradiction`, None for no such filter."""
MODEL: Final = ModelParameters.model_validate(
    {
        "encoder": {"kind": "average", "unit": "word", "dimension": 300},
        "training": {"epochs": 5, "loss": "softmax", "batch_size": 128},
    }
)
_SHOWN: Final = 20


def translated(directory: Path, most: int) -> Path:
    """Shards of given pairs, at most so many of each source, as translations of each other."""
    schema = schema_of([*LINEAGE, "rank", "runaway", "output_truncated", "rejected", "failed"])
    writer = ShardWriter(directory, schema)
    for name in (*SOURCES[:4], "paranmt"):
        blocks = list(paraphrases(name))
        left, right = (pa.concat_arrays([getattr(one, side) for one in blocks]) for side in ("left", "right"))
        drawn = np.sort(np.random.default_rng(1).permutation(len(left))[:most])
        columns = {
            "source": pa.repeat(name, len(drawn)),
            "line": pa.array(drawn + 1),
            "reference": left.take(pa.array(drawn)),
            "translation": right.take(pa.array(drawn)),
            "rank": pa.repeat(0, len(drawn)),
            **dict.fromkeys(("runaway", "output_truncated"), pa.repeat(False, len(drawn))),
        }
        values = [columns.get(one.name, pa.nulls(len(drawn))).cast(one.type) for one in schema]
        writer.write(pa.table(values, schema=schema))
    writer.close({"step": "translate", "version": 1, "parameters": {}, "fingerprints": {}})
    return directory


def selected(pairs: Path, scored: Path, place: Path, maximum: Any, resources: Resources) -> pa.Table:
    """All rows with their fate under select=quality with another maximum of `contradiction`."""
    chosen = section("select", "quality")
    if maximum is None:
        chosen["order"].remove("contradiction")
        del chosen["filters"]["contradiction"]
    else:
        chosen["filters"]["contradiction"]["maximum"] = maximum
    select(SelectParameters.model_validate(chosen), [pairs, scored], place, resources)
    view = ShardView(pairs, scored, place)
    names = [*LINEAGE, "contradiction", "rejected"]
    return pa.concat_tables([view.read(shard, names) for shard in range(len(view))])


def judged(place: Path) -> dict[str, float]:
    """STS of a model, and the areas of its cosines of good pairs against contradictions: those that people
    wrote, and those that rules make of translations."""
    model: Any = open_model(str(place), [], "cpu").model
    groups = evaluate_sts(model, sts_sets()).groups
    found = sts_figures({group.name: group.pearson for group in groups})

    def cosines(pairs: Sequence[tuple[str, str]]) -> Any:
        first, second = (np.asarray(model.encode(list(side))) for side in zip(*pairs, strict=True))
        lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
        return np.asarray((first * second).sum(axis=1) / np.maximum(lengths, 1e-9), np.float64)

    right = cosines([pair for name, pairs in good().items() if name in JUDGED for pair in pairs])
    wrong = contradictions()
    made = [pair for name, pairs in wrong.items() if name.endswith("of a translation") for pair in pairs]
    found["sick_contradictions"] = area(cosines(sick("ENTAILMENT")), cosines(wrong["SICK"]))
    found["wikifactcheck"] = area(right, cosines(wrong["WikiFactCheck"]))
    found["made_of_translations"] = area(right, cosines(made))
    return found


def compare(name: str, runs: Sequence[dict[str, float]], **counts: int) -> None:
    """Record mean and deviation over the seeds."""
    figures, spread = over_seeds(runs)
    append(TASK, name, {**figures, **counts}, seeds=range(1, len(runs) + 1), deviations=spread)


def main(
    place: Annotated[Path, typer.Argument(help="directory for all that is made")],
    most: Annotated[int, typer.Option(help="pairs of each kind of text")] = 12_000,
    rows: Annotated[int, typer.Option(help="triplets of a fine-tuning")] = 10_000,
    seeds: Annotated[int, typer.Option(help="trainings of each")] = 3,
) -> None:
    """Print and record all of it."""
    print(hardware())
    place.mkdir(parents=True, exist_ok=True)
    resources = Resources(work=place / "work", workers=1, threads=1)
    pairs, scored = translated(place / "translated", most), place / "scored"
    score(ScoreParameters(identify_language=False), pairs, DIRECTORY, scored, resources, load_fixed)
    tables = {
        name: selected(pairs, scored, place / f"selected-{number}", maximum, resources)
        for number, (name, maximum) in enumerate(MAXIMA.items())
    }
    kept = {name: table.filter(pc.is_null(table["rejected"])) for name, table in tables.items()}
    refused = tables["with"].filter(pc.equal(tables["with"]["rejected"], "contradiction")).to_pylist()
    for row in random.Random(1).sample(refused, min(_SHOWN, len(refused))):
        print(*(row[name] for name in ("source", "contradiction", "reference", "translation")), sep="\t")
    every, count = range(1, seeds + 1), min(table.num_rows for table in kept.values())
    for name, table in kept.items():
        found = []
        for seed in every:
            trained(table, count, seed, place, MODEL)
            found.append(judged(place / "model"))
        compare(f"corpus {name}", found, kept=table.num_rows, pairs=count)
    export_model(place / "model", place / "start", "sentence-transformers")
    compare("before fine-tuning", [judged(place / "start")])
    corpus = published(place / "published", [kept["with"].select(LINEAGE)])
    for contradicted in (False, True):
        triplets = place / f"triplets-{contradicted}"
        chosen = TripletsParameters(encoder=NAME, contradictions=contradicted)
        mine_triplets(chosen, corpus, triplets, resources)
        found = []
        for seed in every:
            output = place / f"tuned-{contradicted}-{seed}"
            fine_tune(str(place / "start"), triplets, output, 1, 128, 1e-2, rows, seed)
            found.append(judged(output))
        compare("triplets " + ("with contradictions" if contradicted else "alone"), found, triplets=rows)


if __name__ == "__main__":
    typer.run(main)
