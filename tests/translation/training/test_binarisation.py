"""Held-out rows, and the binarised parts that fairseq trains on."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from paraforge.base.errors import InputError
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.store import ShardDirectory, ShardWriter
from paraforge.base.text.units import load_processor
from paraforge.translation.models.fairseq_compat import import_fairseq
from paraforge.translation.training import binarisation, parts
from paraforge.translation.training.binarisation import held_out_threshold, prepare_bitext
from paraforge.translation.training.parameters import NmtParameters
from paraforge.translation.training.parts import encode_sentences
from paraforge.translation.training.training_pairs import held_out_values
from tests.project import digests
from tests.translation.models.tiny import bitext

import_fairseq()  # or it cannot be imported
RESOURCES = Resources()
PARAMETERS: dict[str, Any] = {"vocabulary": {"size": 70}, "validation": {"held_out": 20}}


def write_shards(
    path: Path, rows: list[tuple[str, str, str | None]], rows_per_shard: int = 100
) -> ShardDirectory:
    table = pa.table(
        {
            "source_text": pa.array([row[0] for row in rows], pa.string()),
            "reference": pa.array([row[1] for row in rows], pa.string()),
            "rejected": pa.array([row[2] for row in rows], pa.string()),
        }
    )
    writer = ShardWriter(path, table.schema, rows_per_shard)
    writer.write(table)
    writer.close({"step": "ingest"})
    return ShardDirectory(path)


def parameters(**changes: Any) -> NmtParameters:
    return NmtParameters.model_validate({**PARAMETERS, **changes})


ROWS: list[tuple[str, str, str | None]] = [
    (cs, en, "identical" if number % 11 == 0 else None) for number, (cs, en) in enumerate(bitext(400))
]


def read_part(part: Path, split: str, language: str) -> list[list[int]]:
    from fairseq.data.indexed_dataset import MMapIndexedDataset

    dataset = MMapIndexedDataset(str(part / f"{split}.cs-en.{language}"))
    return [dataset[index].tolist() for index in range(len(dataset))]


@given(st.lists(st.text(), min_size=1))
def test_equal_sentences_have_equal_values(sentences: list[str]) -> None:
    values = held_out_values(pa.chunked_array([pa.array(sentences * 2, pa.string())]))
    assert np.array_equal(values[: len(sentences)], values[len(sentences) :])
    assert ((values >= 0) & (values < 1)).all()


@given(st.integers(0, 10**7), st.integers(1, 10_000))
def test_at_most_a_tenth_is_held_out(rows: int, wanted: int) -> None:
    assert 0 <= held_out_threshold(rows, wanted) <= 0.1


def test_counts_add_up_and_sides_are_disjoint(tmp_path: Path) -> None:
    # Many Czech sentences occur several times, with different references.
    bitext_shards = write_shards(tmp_path / "shards", ROWS)
    prepared = prepare_bitext(bitext_shards, tmp_path / "work", parameters(), RESOURCES)
    accepted = [row for row in ROWS if row[2] is None]
    assert prepared.pairs == len(accepted)
    assert prepared.trained + prepared.held_out + prepared.set_aside + prepared.too_long == prepared.pairs
    held_out = pq.read_table(tmp_path / "work" / "held_out.parquet")
    assert 0 < held_out.num_rows == prepared.held_out <= 20
    processor = load_processor(tmp_path / "work" / "source.spm")
    part = tmp_path / "work" / prepared.parts[0]
    trained = {tuple(row) for row in read_part(part, "train", "cs")}
    held = {tuple(row) for row in read_part(part, "valid", "cs")}
    assert len(read_part(part, "train", "cs")) == len(read_part(part, "train", "en")) == prepared.trained
    assert not trained & held
    refused = {row[0] for row in ROWS if row[2]} - {row[0] for row in accepted}
    encoded = set(map(tuple, encode_sentences(processor, sorted(refused)).to_pylist()))
    assert not encoded & (trained | held)
    assert prepared.target_tokens == sum(map(len, read_part(part, "train", "en")))


@pytest.mark.full
def test_of_more_pairs_than_the_maximum_sources_are_drawn(tmp_path: Path) -> None:
    rows = [
        (f"{cs} {number % 1500}", f"{en} {number}", None) for number, (cs, en) in enumerate(2 * bitext(1500))
    ]
    found = {}
    for maximum, order in ((10**6, 1), (1000, 1), (1000, -1)):
        work = tmp_path / f"{maximum}{order}"
        shards = write_shards(tmp_path / f"shards{maximum}{order}", rows[::order])
        prepared = prepare_bitext(shards, work, parameters(maximum_pairs=maximum), RESOURCES)
        assert prepared.trained + prepared.held_out + prepared.set_aside + prepared.too_long == 3000
        (part,) = (work / part for part in prepared.parts)
        processor = load_processor(work / "source.spm")
        sources = sorted({row[0] for row in rows})
        encoded = list(map(tuple, encode_sentences(processor, sources).to_pylist()))
        source_of = dict(zip(encoded, sources, strict=True))
        found[maximum, order] = {source_of[tuple(row)] for row in read_part(part, "train", "cs")}
        if maximum == 1000:
            assert 850 < prepared.trained < 1150
            assert len(found[maximum, order]) < 0.8 * prepared.trained, "all pairs of a source, or none"
            assert found[maximum, order] < found[10**6, 1]
    assert found[1000, 1] == found[1000, -1]


def test_the_result_does_not_depend_on_the_shards_cut_or_the_processes(tmp_path: Path) -> None:
    for name, rows_per_shard in (("a", 50), ("b", 1000)):
        prepare_bitext(
            write_shards(tmp_path / name, ROWS, rows_per_shard),
            tmp_path / f"work-{name}",
            parameters(),
            RESOURCES,
        )
    names = sorted(path.relative_to(tmp_path / "work-a") for path in (tmp_path / "work-a").rglob("*.*"))
    assert any(name.suffix == ".bin" for name in names)
    for name in names:
        if (tmp_path / "work-a" / name).is_file() and name.suffix != ".parquet":
            assert (tmp_path / "work-a" / name).read_bytes() == (tmp_path / "work-b" / name).read_bytes(), (
                name
            )


def test_bytes_are_those_of_fairseq_preprocess(tmp_path: Path) -> None:
    from fairseq import options
    from fairseq_cli import preprocess

    shards = write_shards(tmp_path / "shards", ROWS)
    chosen = parameters(validation={"held_out": 1})
    prepared = prepare_bitext(shards, tmp_path / "work", chosen, RESOURCES)
    processor = load_processor(tmp_path / "work" / "source.spm")
    held = set(pq.read_table(tmp_path / "work" / "held_out.parquet")["source_text"].to_pylist())
    threshold = held_out_threshold(prepared.pairs, 1)
    rows = [row for row in ROWS if row[2] is None]
    values = held_out_values(pa.chunked_array([pa.array([row[0] for row in rows])]))
    kept = [row for row, value in zip(rows, values, strict=True) if value >= threshold and row[0] not in held]
    for language, side in (("cs", 0), ("en", 1)):
        text = "".join(" ".join(processor.encode(row[side], out_type=str)) + "\n" for row in kept)
        (tmp_path / f"train.{language}").write_text(text, encoding="utf-8")
    arguments = options.get_preprocessing_parser().parse_args(
        [
            *("-s", "cs", "-t", "en", "--trainpref", str(tmp_path / "train"), "--joined-dictionary"),
            *("--destdir", str(tmp_path / "bin"), "--srcdict", str(tmp_path / "work" / "dict.cs.txt")),
        ]
    )
    preprocess.main(arguments)
    for name in ("train.cs-en.cs.bin", "train.cs-en.cs.idx", "train.cs-en.en.bin", "train.cs-en.en.idx"):
        ours = tmp_path / "work" / prepared.parts[0] / name
        assert ours.read_bytes() == (tmp_path / "bin" / name).read_bytes(), name


def test_parts_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shards = write_shards(tmp_path / "shards", ROWS)
    whole = prepare_bitext(shards, tmp_path / "whole", parameters(), RESOURCES)
    monkeypatch.setattr(parts, "PAIRS_PER_PART", 128)
    cut = prepare_bitext(shards, tmp_path / "cut", parameters(), RESOURCES)
    assert len(cut.parts) == -(-whole.trained // 128)
    rows = [row for part in cut.parts for row in read_part(tmp_path / "cut" / part, "train", "en")]
    assert rows == read_part(tmp_path / "whole" / whole.parts[0], "train", "en")
    assert (tmp_path / "cut" / cut.parts[1] / "dict.cs.txt").is_file()


@pytest.mark.parametrize("types", [70, 70_000])
def test_parts_are_those_of_fairseqs_builder(tmp_path: Path, types: int) -> None:
    from fairseq.data.indexed_dataset import make_builder

    for language in ("cs", "en"):
        (tmp_path / f"dict.{language}.txt").write_text("piece 1\n" * types)
    writer = parts.PartWriter(tmp_path, ("cs", "en"))
    sides = [[[number % types + 4, 2], [2]] for number in (123, 69_999)]
    writer.write(pa.table([pa.array(side, pa.list_(pa.int32())) for side in sides], ["source", "target"]))
    writer.close()
    for language, side in zip(("cs", "en"), sides, strict=True):
        builder = make_builder(str(tmp_path / "expected.bin"), "mmap", vocab_size=types + 4)
        for row in side:
            builder.add_item(torch.tensor(row))
        builder.finalize(str(tmp_path / "expected.idx"))
        for ending in ("bin", "idx"):
            found = tmp_path / writer.parts[0] / f"train.cs-en.{language}.{ending}"
            assert found.read_bytes() == (tmp_path / f"expected.{ending}").read_bytes()


def test_long_pairs_are_counted(tmp_path: Path) -> None:
    rows = [*ROWS, ("pes " * 80, "dog", None), ("pes", "", None), ("pes", "dog " * 80, None)]
    prepared = prepare_bitext(
        write_shards(tmp_path / "shards", rows), tmp_path / "work", parameters(maximum_tokens=64), RESOURCES
    )
    assert prepared.too_long == 2
    assert prepared.pairs == len([row for row in rows if row[2] is None and row[1]])


def test_loss_and_bleu_are_of_the_same_text(tmp_path: Path) -> None:
    # Sentences of 1 to 30 words: some are longer than 24 tokens.
    rows: list[tuple[str, str, str | None]] = [(cs, en, None) for cs, en in bitext(300, longest=30)]
    chosen = parameters(maximum_tokens=24, validation={"held_out": 25})
    prepared = prepare_bitext(write_shards(tmp_path / "shards", rows), tmp_path / "work", chosen, RESOURCES)
    assert prepared.trained + prepared.held_out + prepared.set_aside + prepared.too_long == prepared.pairs
    held_out = pq.read_table(tmp_path / "work" / "held_out.parquet")
    assert 10 < held_out.num_rows == prepared.held_out
    for language, column, side in (("cs", "source_text", "source"), ("en", "reference", "target")):
        processor = load_processor(tmp_path / "work" / f"{side}.spm")
        expected = encode_sentences(processor, held_out[column].to_pylist()).to_pylist()
        assert read_part(tmp_path / "work" / prepared.parts[0], "valid", language) == expected
        assert max(map(len, expected)) <= 24


def test_separate_vocabularies(tmp_path: Path) -> None:
    chosen = parameters(vocabulary={"size": 50, "shared": False})
    prepare_bitext(write_shards(tmp_path / "shards", ROWS), tmp_path / "work", chosen, RESOURCES)
    source, target = (load_processor(tmp_path / "work" / f"{side}.spm") for side in ("source", "target"))
    assert source.decode(source.encode("kočka")) == "kočka"
    assert target.unk_id() in target.encode("č")


def test_a_sampled_vocabulary_sees_fewer_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def count(sentences: Any, path: Path, **options: Any) -> None:
        seen.append(len(list(sentences)))
        raise InputError("enough")

    monkeypatch.setattr(binarisation, "train_vocabulary", count)
    shards = write_shards(tmp_path / "shards", ROWS)
    for sample in (10**6, 100):
        with pytest.raises(InputError):
            prepare_bitext(shards, tmp_path / "work", parameters(vocabulary={"sample": sample}), RESOURCES)
    assert seen[0] > 600
    assert 100 < seen[1] < 300  # both sides of about 100 pairs


def test_a_finished_preparation_is_taken_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shards = write_shards(tmp_path / "shards", ROWS)
    first = prepare_bitext(shards, tmp_path / "work", parameters(), RESOURCES)

    def fail(*arguments: Any, **options: Any) -> None:
        raise AssertionError("prepared twice")

    monkeypatch.setattr(binarisation, "train_vocabulary", fail)
    assert prepare_bitext(shards, tmp_path / "work", parameters(), RESOURCES) == first


@pytest.mark.parametrize("killed", ["train_vocabulary", "write_json"])
def test_a_killed_preparation_begins_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed: str
) -> None:
    """write_json: killed with everything written but the record of it."""
    shards, work = write_shards(tmp_path / "shards", ROWS, 20), tmp_path / "work"
    expected = prepare_bitext(shards, tmp_path / "whole", parameters(), RESOURCES)

    def kill(*arguments: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(binarisation, killed, kill)
        with pytest.raises(KeyboardInterrupt):
            prepare_bitext(shards, work, parameters(), RESOURCES)
    assert prepare_bitext(shards, work, parameters(), RESOURCES) == expected
    assert digests(work) == digests(tmp_path / "whole")


def test_a_preparation_without_its_parts_is_made_again(tmp_path: Path) -> None:
    shards = write_shards(tmp_path / "shards", ROWS)
    first = prepare_bitext(shards, tmp_path / "work", parameters(), RESOURCES)
    shutil.rmtree(tmp_path / "work" / "parts")
    assert prepare_bitext(shards, tmp_path / "work", parameters(), RESOURCES) == first
    assert (tmp_path / "work" / first.parts[0]).is_dir()


def test_a_corpus_of_paraphrases_needs_no_model(tmp_path: Path) -> None:
    rows: list[tuple[str, str, str | None]] = [("", "dog", None), ("", "cat", None)]
    with pytest.raises(InputError, match=r"no pairs to train on.*none"):
        prepare_bitext(write_shards(tmp_path / "shards", rows), tmp_path / "work", parameters(), RESOURCES)


def test_nothing_to_train_on(tmp_path: Path) -> None:
    rows: list[tuple[str, str, str | None]] = [("pes", "dog", "duplicate")]
    with pytest.raises(InputError, match="no pairs to train on"):
        prepare_bitext(write_shards(tmp_path / "shards", rows), tmp_path / "work", parameters(), RESOURCES)
