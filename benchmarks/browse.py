"""The page of ``paraforge browse`` over a large corpus: preparation, counts, pairs, search, memory.

Over the generated corpus of ``benchmarks.query``; a count is compared with DuckDB's.
``python -m benchmarks.browse --help``
"""

import re
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import typer

from benchmarks.query import DIRECTORY, generate
from benchmarks.results import append

LIMIT_SECONDS = 0.3
_KEPT = re.compile(r"<strong>([\d,]+)</strong>")


def timed(function: Callable[[], object]) -> tuple[float, float]:
    """Seconds of wall-clock and of processor time that a call takes."""
    started, used = time.perf_counter(), time.process_time()
    function()
    return time.perf_counter() - started, time.process_time() - used


def memory(name: str) -> float:
    """MiB by a line of ``/proc/self/status``: ``RssAnon`` the process' own, ``RssFile`` mapped files."""
    found = re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(found[1]) / 1024 if found else 0.0


def main(
    corpus: Path = typer.Option(DIRECTORY, help="made if it is not there"),
    pairs: int = typer.Option(10_000_000, min=50_000, help="size of the corpus"),
    repeats: int = typer.Option(15, min=2, help="places of the handle"),
) -> None:
    """Time what the page asks for while a handle moves."""
    from paraforge.corpus.publication.datasets import open_published
    from paraforge.interface.browse.browser import Browser
    from paraforge.interface.browse.prepared import prepare
    from paraforge.interface.browse.server import create_app
    from paraforge.interface.query.database import fetch, open_database
    from paraforge.interface.web.security import HostPolicy

    generate(corpus, pairs)
    datasets = [open_published(corpus)]
    with tempfile.TemporaryDirectory(dir=corpus.parent) as cache, open_database(datasets) as connection:
        wall, processor = timed(lambda: prepare(datasets, Path(cache)))
        prepared = prepare(datasets, Path(cache))
        size = sum(path.stat().st_size for path in Path(cache).rglob("*") if path.is_file())
        append(
            "browse",
            "preparation, once",
            {
                "seconds": wall,
                "cpu_seconds": processor,
                "megabytes": size / 1e6,
                "own_mib": memory("RssAnon"),
            },
            pairs=pairs,
        )
        browser = Browser(prepared, connection)
        client = create_app(browser, HostPolicy("127.0.0.1")).test_client()
        client.get("/counts")
        others = "overlap_3.max=0.95&reference_tokens.min=2&translation_tokens.max=29&copy_rate.min=0.01"
        # The counts of the first place are also those of all pairs, and loops may still be compiled.
        client.get(f"/counts?{others}&paraphrase_score.min=0.001")
        places = [round(0.01 + 0.9 * place / repeats, 4) for place in range(repeats)]
        moves = [
            timed(partial(client.get, f"/counts?{others}&paraphrase_score.min={place}")) for place in places
        ]
        page = client.get(f"/counts?{others}&paraphrase_score.min={places[-1]}").text
        kept = _KEPT.search(page)
        sql = (
            "SELECT count(*) AS n FROM corpus WHERE overlap_3 <= 0.95::FLOAT AND reference_tokens >= 2 "
            "AND translation_tokens <= 29 AND copy_rate >= 0.01::FLOAT "
            f"AND paraphrase_score >= {places[-1]}::FLOAT"
        )
        expected = fetch(connection.cursor(), sql)["n"][0].as_py()
        assert kept is not None and int(kept[1].replace(",", "")) == expected
        append(
            "browse",
            "counts, histograms and reasons while a handle moves",
            {
                "seconds": statistics.median(one[0] for one in moves),
                "fastest_seconds": min(one[0] for one in moves),
                "slowest_seconds": max(one[0] for one in moves),
                "cpu_seconds": statistics.median(one[1] for one in moves),
                "goal_seconds": LIMIT_SECONDS,
                "own_mib": memory("RssAnon"),
                "mapped_mib": memory("RssFile"),
            },
            note=f"five thresholds, {repeats} places; the last is equal to DuckDB's count, {expected:,}",
            pairs=pairs,
        )
        queries = {
            "pairs drawn at random": "paraphrase_score.min=0.5&draw=2",
            "pairs nearest to a handle": "paraphrase_score.min=0.5&order=paraphrase_score",
        }
        for name, query in queries.items():
            client.get(f"/counts?{query}")
            wall, processor = timed(partial(client.get, f"/pairs?{query}"))
            append("browse", name, {"seconds": wall, "cpu_seconds": processor}, pairs=pairs)
        wall, processor = timed(lambda: client.get("/counts?q=a0+b1"))
        append(
            "browse",
            "search of a text, the first time",
            {"seconds": wall, "cpu_seconds": processor},
            pairs=pairs,
        )


if __name__ == "__main__":
    typer.run(main)
