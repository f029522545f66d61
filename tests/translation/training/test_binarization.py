"""Held-out rows, and the binarized parts that fairseq trains on."""

from collections import Counter
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paraforge.base.errors import InputError
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.store import ShardDirectory
from paraforge.base.text.units import load_processor
from paraforge.translation.models.fairseq_compat import import_fairseq
from paraforge.translation.training import binarization
from paraforge.translation.training.binarization import (
    PreparedBitext,
    drawn_of,
    encode_sentences,
    held_out_threshold,
    prepare_bitext,
)
from paraforge.translation.training.parameters import NmtParameters
from tests.base.shards.steps import write_table
from tests.project import digests
from tests.translation.models.tiny import bitext

import_fairseq()  # or it cannot be imported
RESOURCES = Resources()
PARAMETERS: dict[str, Any] = {"vocabulary": {"size": 70}, "validation": {"held_out": 20}}


# Foreign side, reference, why ingest refused it.
Row = tuple[str, str, str | None]


def accepted(pairs: int, longest: int = 7) -> list[Row]:
    return [(cs, en, None) for cs, en in bitext(pairs, longest=longest)]


def write_shards(path: Path, rows: list[Row], rows_per_shard: int = 100) -> ShardDirectory:
    columns = [pa.array(column, pa.string()) for column in zip(*rows, strict=True)]
    table = pa.table(columns, ["source_text", "reference", "rejected"])
    return ShardDirectory(write_table(path, table, rows_per_shard, step="ingest"))


def parameters(**changes: Any) -> NmtParameters:
    return NmtParameters.model_validate({**PARAMETERS, **changes})


ROWS: list[Row] = [
    (cs, f"{en} dog", None if n % 11 else "identical") for n, (cs, en) in enumerate(bitext(400))
]


def prepare(place: Path, rows: list[Row] = ROWS, rows_per_shard: int = 100, **changes: Any) -> PreparedBitext:
    """Prepare rows in ``place/work``; every pair is counted once."""
    shards = write_shards(place / "shards", rows, rows_per_shard)
    found = prepare_bitext(shards, place / "work", parameters(**changes), RESOURCES)
    assert found.pairs == len([row for row in rows if row[2] is None and row[0] and row[1]])
    assert found.trained + found.held_out + found.set_aside + found.too_long == found.pairs
    return found


def read_part(part: Path, split: str, language: str) -> list[list[int]]:
    from fairseq.data.indexed_dataset import MMapIndexedDataset

    dataset = MMapIndexedDataset(str(part / f"{split}.cs-en.{language}"))
    return [dataset[index].tolist() for index in range(len(dataset))]


@given(st.lists(st.text(), min_size=1))
def test_equal_sentences_share_held_out_value(sentences: list[str]) -> None:
    values = drawn_of(pa.chunked_array([pa.array(sentences * 2, pa.string())]))
    assert np.array_equal(values[: len(sentences)], values[len(sentences) :])
    assert ((values >= 0) & (values < 1)).all()


@given(st.integers(0, 10**7), st.integers(1, 10_000))
def test_at_most_a_tenth_is_held_out(rows: int, wanted: int) -> None:
    assert 0 <= held_out_threshold(rows, wanted) <= 0.1


def test_training_and_held_out_sides_are_disjoint(tmp_path: Path) -> None:
    # Many Czech sentences occur several times, with different references.
    prepared = prepare(tmp_path)
    held_out = pq.read_table(tmp_path / "work" / "held_out.parquet")
    assert 0 < held_out.num_rows == prepared.held_out <= 20
    part = tmp_path / "work" / prepared.parts[0]
    sources, targets = (read_part(part, "train", language) for language in ("cs", "en"))
    assert len(sources) == len(targets) == prepared.trained
    assert prepared.target_tokens == sum(map(len, targets))
    trained, held = set(map(tuple, sources)), set(map(tuple, read_part(part, "valid", "cs")))
    assert not trained & held
    # Those that were accepted and are not held out, in order.
    rows = [row for row in ROWS if row[2] is None]
    values = drawn_of(pa.chunked_array([[row[0] for row in rows]]))
    threshold = held_out_threshold(prepared.pairs, 20)
    kept = [row for row, value in zip(rows, values, strict=True) if value >= threshold]
    processor = load_processor(tmp_path / "work" / "source.spm")
    for side, found in enumerate((sources, targets)):
        assert found == encode_sentences(processor, [row[side] for row in kept]).to_pylist()
    assert held <= set(map(tuple, encode_sentences(processor, [row[0] for row in rows]).to_pylist()))


@pytest.mark.full
def test_pairs_above_maximum_are_sampled_by_source(tmp_path: Path) -> None:
    rows: list[Row] = [
        (f"{cs} {number % 1500}", f"{en} {number}", None) for number, (cs, en) in enumerate(2 * bitext(1500))
    ]
    found = {}
    for maximum, order in ((10**6, 1), (1000, 1), (1000, -1)):
        place = tmp_path / f"{maximum}{order}"
        prepared = prepare(place, rows[::order], maximum_pairs=maximum)
        (part,) = (place / "work" / part for part in prepared.parts)
        processor = load_processor(place / "work" / "source.spm")
        sources = sorted({row[0] for row in rows})
        encoded = list(map(tuple, encode_sentences(processor, sources).to_pylist()))
        source_of = dict(zip(encoded, sources, strict=True))
        found[maximum, order] = {source_of[tuple(row)] for row in read_part(part, "train", "cs")}
        if maximum == 1000:
            assert 850 < prepared.trained < 1150
            assert len(found[maximum, order]) < 0.8 * prepared.trained, "all pairs of a source, or none"
            assert found[maximum, order] < found[10**6, 1]
    assert found[1000, 1] == found[1000, -1]


def test_prepared_bitext_does_not_depend_on_shards(tmp_path: Path) -> None:
    for name, rows_per_shard in (("a", 50), ("b", 1000)):
        prepare(tmp_path / name, rows_per_shard=rows_per_shard)
    first, second = (digests(tmp_path / name / "work") for name in ("a", "b"))
    assert first == second and any(name.endswith(".bin") for name in first)


def test_training_parts_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = prepare(tmp_path / "whole")
    monkeypatch.setattr(binarization, "PAIRS_PER_PART", 128)
    cut = prepare(tmp_path / "cut")
    assert len(cut.parts) == -(-whole.trained // 128)
    rows = [row for part in cut.parts for row in read_part(tmp_path / "cut" / "work" / part, "train", "en")]
    assert rows == read_part(tmp_path / "whole" / "work" / whole.parts[0], "train", "en")
    assert (tmp_path / "cut" / "work" / cut.parts[1] / "dict.cs.txt").is_file()


def test_long_pairs_are_counted(tmp_path: Path) -> None:
    rows = [*ROWS, ("pes " * 80, "dog", None), ("pes", "", None), ("pes", "dog " * 80, None)]
    rows.append(("pes", " ", None))  # without a piece
    assert prepare(tmp_path, rows, maximum_tokens=64).too_long == 3


def test_loss_and_bleu_use_same_text(tmp_path: Path) -> None:
    # Sentences of 1 to 30 words: some are longer than 24 tokens.
    prepared = prepare(tmp_path, accepted(300, 30), maximum_tokens=24, validation={"held_out": 25})
    held_out = pq.read_table(tmp_path / "work" / "held_out.parquet")
    assert 10 < held_out.num_rows == prepared.held_out
    for language, column, side in (("cs", "source_text", "source"), ("en", "reference", "target")):
        processor = load_processor(tmp_path / "work" / f"{side}.spm")
        expected = encode_sentences(processor, held_out[column].to_pylist()).to_pylist()
        assert read_part(tmp_path / "work" / prepared.parts[0], "valid", language) == expected
        assert max(map(len, expected)) <= 24
    both = [read_part(tmp_path / "work" / prepared.parts[0], "train", one) for one in ("cs", "en")]
    assert max(len(row) for side in both for row in side) == 24


def test_separate_vocabularies(tmp_path: Path) -> None:
    prepare(tmp_path, vocabulary={"size": 50, "shared": False})
    source, target = (load_processor(tmp_path / "work" / f"{side}.spm") for side in ("source", "target"))
    assert source.decode(source.encode("kočka")) == "kočka"
    assert target.unk_id() in target.encode("č")


def test_sampled_vocabulary_reads_fewer_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def count(sentences: Any, path: Path, **options: Any) -> None:
        seen.append(len(list(sentences)))
        raise InputError("enough")

    monkeypatch.setattr(binarization, "train_vocabulary", count)
    rows: list[Row] = [(f"{cs} {number}", en, None) for number, (cs, en) in enumerate(bitext(3000))]
    for sample, maximum in ((10**6, 10**6), (100, 10**6), (1000, 1000)):
        with pytest.raises(InputError):
            prepare(tmp_path, rows, 1000, vocabulary={"sample": sample}, maximum_pairs=maximum)
    assert seen[0] > 5000
    assert 100 < seen[1] < 300  # both sides of about 100 pairs
    assert 1700 < seen[2] < 2300  # of all that are trained on


def test_sample_keeps_all_validation_pairs() -> None:
    numbers = range(4000)
    targets = [f"dog {number}" for number in numbers]
    sources = [f"pes {number // 4}" for number in numbers]
    pairs = pa.table({"source_text": sources, "target": targets, "reference": targets})
    found = binarization.Draw(held_out=0.1, share=1.0, sample=0.3).sampled(pairs)
    held = drawn_of(pairs["source_text"]) < 0.1
    assert found.num_rows - found["drawn"].null_count == held.sum()
    others = Counter(found.filter(found["drawn"].is_null())["source_text"].to_pylist())
    assert 0.25 < others.total() / (~held).sum() < 0.35
    assert set(others.values()) == {1, 2, 3, 4}
    # Of more pairs than the maximum, all of a source are drawn, or none.
    drawn = binarization.Draw(held_out=0.1, share=0.5, sample=1.0).trained(pairs)
    assert 0.4 < drawn.num_rows / (~held).sum() < 0.6
    assert set(Counter(drawn["source_text"].to_pylist()).values()) == {4}


def test_finished_preparation_is_reused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[tuple[Path, bool]] = []
    monkeypatch.setattr(
        binarization, "sync_tree", lambda place: synced.append((place, (place / "prepared.json").exists()))
    )
    first = prepare(tmp_path)
    assert synced == [(tmp_path / "work", False)]  # before the record says that everything is there
    monkeypatch.setattr(binarization, "train_vocabulary", Mock(side_effect=AssertionError("prepared twice")))
    assert prepare(tmp_path) == first


@pytest.mark.parametrize("killed", ["train_vocabulary", "write_json"])
def test_killed_preparation_restarts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed: str) -> None:
    """The kill in `write_json` comes when everything but the record is written."""
    expected = prepare(tmp_path / "whole", rows_per_shard=20)
    with monkeypatch.context() as patched:
        patched.setattr(binarization, killed, Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            prepare(tmp_path, rows_per_shard=20)
    assert prepare(tmp_path, rows_per_shard=20) == expected
    assert digests(tmp_path / "work") == digests(tmp_path / "whole" / "work")


@pytest.mark.parametrize(
    "rows",
    [[("", "dog", None), ("", "cat", None)], [("pes", "dog", "duplicate")]],
    ids=["paraphrases", "none"],
)
def test_no_pairs_to_train_on(tmp_path: Path, rows: list[Row]) -> None:
    with pytest.raises(InputError, match=r"no pairs to train on.*none"):
        prepare(tmp_path, rows)
