"""Which references several pivots share, and how long the join and the pairs of two translations take.

python -m benchmarks.pivots bible
python -m benchmarks.pivots bitexts
python -m benchmarks.pivots sample
python -m benchmarks.pivots growth --copies 50

Each pivot is ingested and translated by the engine fake. What is counted is compared with a dictionary.
"""

import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import typer

from benchmarks.distinct_pairs import rows_of
from benchmarks.hardware import peak_memory
from benchmarks.results import append
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.store import ShardDirectory
from paraforge.intake.bitext.ingest import ingest
from paraforge.intake.bitext.parameters import IngestParameters
from paraforge.intake.sample_bitext import INVENTED, write_sample
from paraforge.translation.stage.parameters import TranslateParameters
from paraforge.translation.stage.pivots import join_pivots, lineage_of, shared_references
from paraforge.translation.stage.translate import translate

app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None)

Row = tuple[str, str]


def _pivots(what: str, data: Path, copies: int, scratch: Path) -> Iterator[tuple[str, list[Row]]]:
    """Rows of each pivot: foreign side and reference."""
    if what == "bible":
        verses = list(rows_of(data / "bitext" / "bkr_cs_x_en7.tsv.gz"))
        for place in range(7):
            yield f"v{place + 1}", [(row[1], row[2 + place]) for row in verses if row[2 + place]]
    elif what == "bitexts":
        groups: dict[str, list[Row]] = defaultdict(list)
        for path in sorted((data / "bitext").glob("*.en-cs.tsv.gz")):
            rows = [(row[-1], row[-2]) for row in rows_of(path)]
            groups[path.name.split(".")[0].rstrip("0123456789-")] += rows
        yield from groups.items()
    else:
        for language in ("cs", INVENTED):
            paths = write_sample(scratch / "sample", language=language)
            lines = [line for path in paths for line in path.read_text(encoding="utf-8").split("\n")[:-1]]
            rows = [(source, reference) for source, reference in (line.split("\t") for line in lines)]
            yield (
                language,
                [
                    (f"{source} {copy}", f"{reference} {copy}") if copy else (source, reference)
                    for copy in range(copies)
                    for source, reference in rows
                ],
            )


@app.command()
def main(
    what: str = typer.Argument(help="bible, bitexts, sample or growth"),
    copies: int = typer.Option(1, help="of the sample, with a number behind each text"),
    data: Path = typer.Option(Path(), envvar="PARAFORGE_DATA"),
) -> None:
    """Ingest, translate, join, and record what came of it."""
    with tempfile.TemporaryDirectory() as place:
        scratch = Path(place)
        ingested, translated = {}, {}
        for name, rows in _pivots(what, data, copies, scratch):
            path = scratch / f"{name}.tsv"
            path.write_text("".join(f"{source}\t{text}\n" for source, text in rows), encoding="utf-8")
            columns = {"source_text": 0, "reference": 1}
            source = {"name": name, "format": "tsv", "path": str(path), "columns": columns}
            parameters = IngestParameters.model_validate({"sources": [source], "check_languages": False})
            resources = Resources(workers=1, work=scratch / f"work-{name}")
            ingested[name], translated[name] = scratch / "ingested" / name, scratch / "translated" / name
            ingest(parameters, ingested[name], resources)
            fake = TranslateParameters.model_validate({"engine": "fake"})
            translate(
                fake, ingested[name], scratch / "none", translated[name], resources, lineage_of(name, "all")
            )
        _measure(what, copies, ingested, translated, Resources(work=scratch / "work"), scratch / "out")


def _measure(
    what: str,
    copies: int,
    ingested: dict[str, Path],
    translated: dict[str, Path],
    resources: Resources,
    output: Path,
) -> None:
    before = peak_memory()
    started = time.perf_counter()
    found = shared_references(ingested, resources)
    counted = time.perf_counter() - started
    rows = join_pivots(translated, "all", output, resources)
    seconds = time.perf_counter() - started
    after = peak_memory()
    having: dict[str, set[str]] = defaultdict(set)
    for name, path in ingested.items():
        for table in ShardDirectory(path).tables(["reference", "rejected"]):
            for reference, rejected in zip(*(column.to_pylist() for column in table.columns), strict=True):
                if rejected is None:
                    having[reference].add(name)
    wanted = Counter("+".join(name for name in ingested if name in names) for names in having.values())
    assert found == wanted, "the join differs from a dictionary's"
    several = {names: number for names, number in found.items() if "+" in names}
    own = sum(rows[name] for name in ingested)
    overlaps = {
        f"both_{a}_{b}": sum(n for names, n in several.items() if {a, b} <= set(names.split("+")))
        for a, b in combinations(ingested, 2)
    }
    append(
        "pivots",
        f"{what}, {len(ingested)} pivots" + f", {copies} copies" * (copies > 1),
        {
            "rows": own,
            "references": len(having),
            "shared_references": sum(several.values()),
            "rows_per_reference": own / len(having),
            "pairs_of_translations": sum(rows.values()) - own,
            "most_pivots": max(len(names) for names in having.values()),
            "count_seconds": counted,
            "join_seconds": seconds - counted,
            "added_peak_mib": max(0.0, after - before),
            **dict(sorted(((k, n) for k, n in overlaps.items() if n), key=lambda one: -one[1])[:6]),
        },
        what=what,
        copies=copies,
        note="engine fake; the machine was shared with other work",
    )


if __name__ == "__main__":
    app()
