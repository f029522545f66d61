"""Before a translation a misaligned source is named, and an aligned one is not."""

from pathlib import Path

import pyarrow as pa
import pytest

from paraforge.base.shards.resources import Resources
from paraforge.base.shards.store import ShardWriter
from paraforge.corpus.columns import schema_of
from paraforge.intake.sample_bitext import generate
from paraforge.interface.planning.misalignment import warn_of_misaligned_sources
from tests.corpus.scoring.test_lexical import Row, bitext, shifted

SCHEMA = schema_of(["source", "source_text", "reference", "rejected"])


def warned(path: Path, sources: dict[str, list[Row]]) -> dict[str, float]:
    rows = [
        {"source": name, "source_text": foreign, "reference": reference}
        for name, pairs in sources.items()
        for foreign, reference in pairs
    ]
    writer = ShardWriter(path / "ingested", SCHEMA, 700)
    writer.write(pa.Table.from_pylist(rows, SCHEMA))
    writer.close({"step": "ingest"})
    return warn_of_misaligned_sources(path / "ingested", Resources(work=path / "work", workers=1))


def test_a_source_with_a_missing_line_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    found = warned(tmp_path, {"good": bitext(2000), "shifted": shifted(bitext(1000, seed=2))})
    assert list(found) == ["shifted"] and 0.4 < found["shifted"] < 0.8
    assert "source shifted looks misaligned" in caplog.text and "good" not in caplog.text


def test_a_corpus_that_is_all_shifted(tmp_path: Path) -> None:
    assert list(warned(tmp_path, {"all": shifted(bitext(3000))})) == ["all"]


@pytest.mark.parametrize("sources", [{}, {"few": shifted(bitext(50))}, {"paraphrases": [(None, "x")] * 500}])
def test_too_little_to_judge(tmp_path: Path, sources: dict[str, list[Row]]) -> None:
    assert warned(tmp_path, sources) == {}


def test_the_sample_is_aligned(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert (
        warned(tmp_path, {"sample": [(pair.cs, pair.reference) for pair in generate(2000)]}) == {}
        and not caplog.records
    )
