"""References of shards as running text, against a slow loop; and the stage that trains on them."""

import csv
import itertools
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paraforge.base.errors import InputError
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.store import ShardWriter
from paraforge.corpus.publication.held_out import SCHEMA as HELD_OUT
from paraforge.corpus.publication.held_out import HeldOut, open_held_out
from paraforge.embeddings.unrolling.model import DecoderModel
from paraforge.embeddings.unrolling.parameters import DecodersStageParameters
from paraforge.embeddings.unrolling.sentences import (
    STILL_TEXT,
    References,
    Remaining,
    RunningText,
    read_sentences,
)
from paraforge.embeddings.unrolling.stage import build_decoders
from paraforge.intake.bitext.block import NAMES
from tests.embeddings.trainer.training import write_sts
from tests.embeddings.unrolling.corpus import random_documents

SCHEMA = pa.schema([(name, pa.string()) for name in ("source", "reference", "rejected")])
Row = tuple[str, str | None, str | None]


def write(directory: Path, rows: list[Row], rows_per_shard: int = 3) -> Path:
    columns = [list(column) for column in zip(*rows, strict=True)] if rows else [[], [], []]
    writer = ShardWriter(directory, SCHEMA, rows_per_shard)
    writer.write(pa.table(columns, schema=SCHEMA))
    writer.close({"step": "ingest"})
    return directory


def read(directory: Path, *sources: str, held_out: HeldOut | None = None) -> list[list[str]]:
    """Documents."""
    found: dict[int, list[str]] = {}
    text: RunningText = References(directory, sources)
    for block in read_sentences([text if held_out is None else Remaining(text, held_out)]):
        for sentence, document in zip(block.sentences.to_pylist(), block.documents.tolist(), strict=True):
            found.setdefault(document, []).append(sentence)
    assert list(found) == sorted(found)
    return list(found.values())


def expected(rows: list[Row], wanted: str, held: str = "") -> list[list[str]]:
    documents: list[list[str]] = []
    for source, group in itertools.groupby(rows, key=lambda row: row[0]):
        gap = True
        for _, text, rejected in group:
            fine = source.startswith(wanted) and (text or "").strip() and rejected in (None, *STILL_TEXT)
            fine = fine and text != held
            if fine and gap:
                documents.append([])
            if fine:
                assert text is not None
                documents[-1].append(text)
            gap = not fine
    return documents


rows = st.builds(
    lambda parts: [
        (name, text, why) for name, part in zip(("a.x", "a.y", "b"), parts, strict=True) for text, why in part
    ],
    st.tuples(
        *(
            st.lists(
                st.tuples(
                    st.sampled_from(["one", "two", "three", " ", "", None]),
                    st.sampled_from([None, None, *NAMES]),
                ),
                min_size=1,
                max_size=8,
            )
            for _ in range(3)
        )
    ),
)


@settings(max_examples=60)
@given(rows=rows, rows_per_shard=st.integers(1, 9))
def test_documents_end_at_every_gap(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Row], rows_per_shard: int
) -> None:
    directory = write(tmp_path_factory.mktemp("shards"), rows, rows_per_shard)
    assert read(directory, "a.*") == expected(rows, "a.")
    assert read(directory, "b", "a.?") == expected(rows, "")
    writer = ShardWriter(directory / "held_out", HELD_OUT)
    writer.write(pa.table([["Two!", None], ["", "no"]], schema=HELD_OUT))
    writer.close()
    writer.close({"step": "held_out"})
    held_out = open_held_out(directory / "held_out")
    assert read(directory, "b", "a.?", held_out=held_out) == expected(rows, "", "two")


def test_a_sentence_of_a_test_set_is_never_trained_on() -> None:
    assert not {"contaminated", "not_selected", "malformed"} & {*STILL_TEXT} and {*STILL_TEXT} < {*NAMES}


def test_an_unknown_source_is_an_error(tmp_path: Path) -> None:
    directory = write(tmp_path, [("news", "one", None)])
    with pytest.raises(InputError, match=r"no source books\.\*; there are news"):
        read(directory, "books.*", "news")


def shards_of(directory: Path, documents: list[list[str]]) -> Path:
    rows: list[Row] = []
    for document in documents:
        rows += [*(("news", text, None) for text in document), ("news", None, "blank_reference")]
    return write(directory, rows, 20)


def stage(place: Path, **values: Any) -> Any:
    small = {
        "network": {"word_dimension": 6},
        "training": {"batch_size": 8, "evaluate_every": 5},
        "representation": {"kind": "unrolled", "steps": 2},
    }
    parameters = DecodersStageParameters.model_validate({"model": small, **values})
    resources = Resources(threads=1, devices=["cpu"], work=place / "work")
    return build_decoders(parameters, place / "ingested", place / "model", resources, place / "curve.csv")


def test_references_and_a_file_of_the_same_text_give_the_same_model(tmp_path: Path) -> None:
    documents = random_documents(20)
    shards_of(tmp_path / "ingested", documents)
    (tmp_path / "book.txt").write_text("\n\n".join("\n".join(document) for document in documents) + "\n")
    pairs = [(f"w{k} w{k + 1}", f"w{k} w{(3 * k) % 11}") for k in range(10)]
    judged = {"test_sets": [str(write_sts(tmp_path / "2020.pairs.tsv", pairs))]}
    from_shards = stage(tmp_path, sources=["n*"], **judged)
    model = DecoderModel.open(tmp_path / "model")
    assert from_shards.documents == 20 and len(from_shards.readings) == 6
    with (tmp_path / "curve.csv").open() as file:
        curve = list(csv.DictReader(file))
    assert [int(row["update"]) for row in curve] == [entry["updates"] for entry in from_shards.history]
    from_file = stage(tmp_path, files=[{"path": str(tmp_path / "book.txt")}], **judged)
    assert from_file.history == from_shards.history
    other = DecoderModel.open(tmp_path / "model")
    assert other.encode(["w1 w2"]).tolist() == model.encode(["w1 w2"]).tolist()
    both = stage(tmp_path, files=[{"path": str(tmp_path / "book.txt")}], sources=["news"])
    assert both.documents == 40 and both.triples == 2 * from_file.triples


def test_without_text_there_is_no_model(tmp_path: Path) -> None:
    stage(tmp_path, files=[{"path": str(_book(tmp_path))}])
    assert stage(tmp_path) is None
    assert not list((tmp_path / "model").iterdir())
    assert (tmp_path / "curve.csv").read_text().splitlines() == ["update,epoch,loss,development_pearson"]
    with pytest.raises(InputError, match="not a directory of trained decoders"):
        DecoderModel.open(tmp_path / "model")


def _book(place: Path) -> Path:
    text = "\n\n".join("\n".join(document) for document in random_documents(4)) + "\n"
    (place / "small.txt").write_text(text)
    return place / "small.txt"
