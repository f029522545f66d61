"""What the selection `quality` changes on a translated corpus, against the one before it, and what for.

The corpus is scored and selected twice: with vectors trained on its own pairs and select=sample, as Paraforge
did before it had a scorer of its own, and with the built-in scorer and select=quality. Then an embedding
model is trained on the same number of pairs of each, and on each tenth by the built-in score.

python -m benchmarks.proof data/translated work/proof
python -m benchmarks.proof --pairs pairs.tsv.gz work/tenths
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import typer
import yaml

from benchmarks.hardware import hardware
from benchmarks.results import ROOT, append, over_seeds, sts_figures
from experiments.pairs import sts_sets
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.store import ShardView
from paraforge.base.text.lines import numbered_lines
from paraforge.corpus.scoring.corpus_counts import count_shard, put_together
from paraforge.corpus.scoring.general import DIRECTORY
from paraforge.corpus.scoring.parameters import ScoreParameters
from paraforge.corpus.scoring.score import build_scorers, score, score_table
from paraforge.corpus.selection.parameters import SelectParameters
from paraforge.corpus.selection.select import select
from paraforge.corpus.statistics.counts import BANDS, band_of
from paraforge.embeddings.evaluation.similarity.sts import evaluate_sts
from paraforge.embeddings.trainer.data import TrainingData
from paraforge.embeddings.trainer.paragram import build_paragram
from paraforge.embeddings.trainer.parameters import ModelParameters, PairFileParameters, ParagramParameters
from paraforge.embeddings.trainer.train_model import train_model
from paraforge.products.loading import load_fixed, open_model

SELECTIONS = {"before": "sample", "quality": "quality"}
MODEL = ModelParameters.model_validate(
    {
        "encoder": {"kind": "average", "unit": "trigram", "dimension": 300},
        "training": {"epochs": 5, "loss": "softmax", "batch_size": 128},
    }
)
_COLUMNS = ["source", "reference", "translation", "paraphrase_score", "rejected"]


def section(group: str, choice: str) -> Any:
    """What a file of `configs/` says of its section."""
    return yaml.safe_load((ROOT / "configs" / group / f"{choice}.yaml").read_text(encoding="utf-8"))[group]


def selected(translated: Path, place: Path, name: str, resources: Resources) -> pa.Table:
    """The corpus with scores and fates under one of the selections."""
    vectors, scored, fate = DIRECTORY, place / f"{name}-scored", place / f"{name}-selected"
    if name == "before":
        vectors = place / "vectors"
        build_paragram(
            ParagramParameters.model_validate(section("paragram", "corpus")), translated, vectors, resources
        )
    score(ScoreParameters(identify_language=False), translated, vectors, scored, resources, load_fixed)
    select(
        SelectParameters.model_validate(section("select", SELECTIONS[name])),
        [translated, scored],
        fate,
        resources,
    )
    view = ShardView(translated, scored, fate)
    return pa.concat_tables([view.read(shard, _COLUMNS) for shard in range(len(view))])


def describe(name: str, table: pa.Table, seed: int, text: str) -> pa.Table:
    """Record counts and bands, print what was refused and twenty random pairs; gives the kept pairs."""
    kept = table.filter(pc.is_null(table["rejected"]))
    counts, of_source = Counter(kept["source"].to_pylist()), Counter(table["source"].to_pylist())
    bands = np.bincount(band_of(kept["paraphrase_score"].to_numpy()) + 1, minlength=len(BANDS) + 1)[1:]
    append(
        "proof",
        name,
        {
            "rows": table.num_rows,
            "kept": kept.num_rows,
            **{f"kept_{source}": counts[source] for source in sorted(of_source)},
            **{f"band_{band}": int(number) for band, number in zip(BANDS, bands, strict=True)},
        },
        seeds=[seed],
        text=text,
    )
    print("refused:", Counter(filter(None, table["rejected"].to_pylist())).most_common())
    for row in np.random.default_rng(seed).choice(kept.num_rows, min(20, kept.num_rows), replace=False):
        pair = kept.slice(int(row), 1).to_pylist()[0]
        print(
            f"  {pair['paraphrase_score']:.2f} {pair['source']}: {pair['reference']} | {pair['translation']}"
        )
    return kept


def trained(
    pairs: pa.Table, count: int, seed: int, place: Path, model: ModelParameters = MODEL
) -> dict[str, float]:
    """STS figures of a model trained on a number of the pairs, drawn at random; it is left in `model`."""
    rows = np.sort(np.random.default_rng(seed).choice(pairs.num_rows, count, replace=False))
    drawn = pairs.take(pa.array(rows))
    file = place / "pairs.tsv"
    lines = zip(drawn["reference"].to_pylist(), drawn["translation"].to_pylist(), strict=True)
    file.write_text("".join(f"{a}\t{b}\n" for a, b in lines), encoding="utf-8", newline="\n")
    parameters = model.model_copy(update={"training": model.training.model_copy(update={"seed": seed})})
    data = TrainingData([PairFileParameters(path=str(file), format="tsv")])
    train_model(parameters, data, place / "model", Resources(work=place / "work", workers=1, threads=1))
    groups = evaluate_sts(open_model(str(place / "model"), [], "cpu").model, sts_sets()).groups
    return sts_figures({group.name: group.pearson for group in groups})


def compare(name: str, pairs: pa.Table, count: int, seeds: Sequence[int], place: Path, text: str) -> None:
    """Record the mean and deviation over the seeds of what models of these pairs score."""
    found = [trained(pairs, count, seed, place) for seed in seeds]
    figures, spread = over_seeds(found)
    figures["mean"] = float(np.mean(list(figures.values())))
    append("proof_sts", name, {**figures, "pairs": count}, seeds=seeds, deviations=spread, text=text)


def tenths(pairs: pa.Table, seeds: Sequence[int], place: Path, text: str) -> None:
    """Train on each tenth by the built-in score."""
    order = np.argsort(pairs["paraphrase_score"].to_numpy(), kind="stable")
    for number, rows in enumerate(np.array_split(order, 10), start=1):
        tenth = pairs.take(pa.array(rows))
        low = float(tenth["paraphrase_score"].to_numpy().min())
        compare(f"tenth {number}, from {low:.2f}", tenth, len(order) // 10, seeds, place, text=text)


def main(
    translated: Annotated[Path, typer.Argument(help="data/translated of a project, or with --pairs a TSV")],
    place: Annotated[Path, typer.Argument(help="directory for all that is made")],
    pairs: Annotated[
        bool, typer.Option("--pairs", help="a TSV of origin, sentence, sentence: tenths alone")
    ] = False,
    seeds: Annotated[int, typer.Option(help="trainings of each")] = 3,
    text: Annotated[str, typer.Option(help="what the corpus is called in the results")] = "seven domains",
    most: Annotated[int | None, typer.Option(help="train on at most so many pairs of each selection")] = None,
    by_tenths: Annotated[bool, typer.Option("--tenths/--no-tenths", help="train on each tenth")] = True,
) -> None:
    """Print and record all of it."""
    print(hardware())
    place.mkdir(parents=True, exist_ok=True)
    resources = Resources(work=place / "work", workers=1, threads=1)
    every = range(1, seeds + 1)
    if pairs:
        rows = [line.split("\t") for _, line in numbered_lines(translated)]
        table = pa.table({"reference": [row[1] for row in rows], "translation": [row[2] for row in rows]})
        counts = put_together([count_shard(table)])
        scores = score_table(table, build_scorers(DIRECTORY, load_fixed, counts))
        table = table.append_column("paraphrase_score", scores["paraphrase_score"])
        tenths(
            table.filter(pc.is_valid(table["paraphrase_score"])),
            every,
            place,
            translated.name.partition(".")[0],
        )
        return
    tables = {name: selected(translated, place, name, resources) for name in SELECTIONS}
    kept = {name: describe(name, table, 1, text) for name, table in tables.items()}
    count = min(table.num_rows for table in kept.values())
    count = count if most is None else min(count, most)
    for name, table in kept.items():
        compare(name, table, count, every, place, text)
    if by_tenths:
        scored = tables["quality"]
        tenths(scored.filter(pc.is_valid(scored["paraphrase_score"])), every, place, text)


if __name__ == "__main__":
    typer.run(main)
