"""Which pairs a model is trained on: references, or what a teacher made of the sources."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paraforge import versions
from paraforge.base.errors import InputError
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.store import ShardDirectory, ShardWriter
from paraforge.base.text.units import load_processor
from paraforge.corpus.columns import schema_of
from paraforge.translation.models.sentencepiece import SPECIAL_TYPES
from paraforge.translation.training.binarisation import prepare_bitext
from paraforge.translation.training.finishing import training_signature
from paraforge.translation.training.parameters import NmtParameters
from paraforge.translation.training.stage import build_nmt, training_key
from paraforge.translation.training.training_pairs import accepted_pairs
from tests.translation.models.tiny import bitext
from tests.translation.training.test_binarisation import read_part

FAULTS = ("source_truncated", "output_truncated", "empty_output", "non_finite", "runaway")


def row(cs: str, reference: str, translation: str | None, **changes: Any) -> dict[str, Any]:
    base = {"source_text": cs, "reference": reference, "translation": translation, "rank": 0}
    return {**base, "rejected": None, "failed": None, **dict.fromkeys(FAULTS, False), **changes}


def write_translated(path: Path, rows: list[dict[str, Any]]) -> ShardDirectory:
    schema = schema_of(["source_text", "reference", "translation", "rank", *FAULTS, "rejected", "failed"])
    writer = ShardWriter(path, schema, 50)
    writer.write(pa.Table.from_pylist(rows, schema))
    writer.close({"step": "translate", "fingerprints": {"model": "0123456789abcdef"}})
    return ShardDirectory(path)


def distilled(path: Path, **changes: Any) -> NmtParameters:
    return NmtParameters.model_validate({"bitext": str(path), "target": "translation", **changes})


def pairs(shards: ShardDirectory, parameters: NmtParameters) -> list[tuple[str, str, str]]:
    tables = accepted_pairs(shards, parameters)
    return [(r["source_text"], r["target"], r["reference"]) for table in tables for r in table.to_pylist()]


def test_a_teacher_teaches_its_best_whole_translations(tmp_path: Path) -> None:
    rows = [
        row("a", "A", "Ta"),
        row("a", "A", "Tb", rank=1),
        row("b", "B", None, failed="no"),
        row("c", "C", None, rejected="identical"),
        row("d", "D", "Td", rejected="identical"),
        row("e", "E", ""),
        row("f", "", "Tf"),
        row("", "G", "Tg"),
        *(row(name, "X", "Tx", **{name: True}) for name in FAULTS),
        row("h", "H", "Th"),
    ]
    shards = write_translated(tmp_path / "translated", rows)
    assert pairs(shards, distilled(tmp_path / "translated")) == [("a", "Ta", "A"), ("h", "Th", "H")]
    # References are trained on whatever became of the translation.
    plain = [
        (r["source_text"], r["reference"])
        for r in rows
        if not r["rejected"] and r["source_text"] and r["reference"]
    ]
    assert [found[:2] for found in pairs(shards, NmtParameters())] == plain


def test_a_student_learns_translations_and_is_measured_on_references(tmp_path: Path) -> None:
    rows = [row(cs, en, f"{en} zz") for cs, en in bitext(300)]
    shards = write_translated(tmp_path / "translated", rows)
    chosen = distilled(tmp_path / "translated", vocabulary={"size": 70}, validation={"held_out": 20})
    prepared = prepare_bitext(shards, tmp_path / "work", chosen)
    decode = load_processor(tmp_path / "work" / "target.spm").decode
    trained = read_part(tmp_path / "work" / prepared.parts[0], "train", "en")
    assert len(trained) == prepared.trained > 200
    assert prepared.teacher == "0123456789abcdef"
    signature = training_signature(chosen, prepared, 7, "0" * 32)
    assert signature.endswith(f"|updates:7|seed:1|teacher:01234567|v:{versions.NMT}")
    # fairseq has four types of its own where SentencePiece has <unk>; the last is end-of-sentence.
    shift = len(SPECIAL_TYPES) - 1
    assert all(decode([number - shift for number in ids[:-1]]).endswith(" zz") for ids in trained)
    held_out = pq.read_table(tmp_path / "work" / "held_out.parquet")
    assert held_out.column_names == ["source_text", "reference"]
    assert held_out.num_rows == prepared.held_out > 10
    assert not any("zz" in text for text in held_out["reference"].to_pylist())
    # The same sentences are held out as where references are trained on: a student is never measured on
    # what its teacher was trained on, if both hold out as many.
    plain = NmtParameters.model_validate({"vocabulary": {"size": 70}, "validation": {"held_out": 20}})
    assert prepare_bitext(shards, tmp_path / "plain", plain).teacher is None
    assert pq.read_table(tmp_path / "plain" / "held_out.parquet") == held_out


def test_the_target_is_in_the_key_and_references_are_the_key_of_old(tmp_path: Path) -> None:
    shards = write_translated(tmp_path / "translated", [row("a", "A", "Ta")])
    plain = NmtParameters(bitext=tmp_path / "translated")
    assert training_key(plain, shards) == training_key(NmtParameters(), shards)
    assert training_key(plain, shards) != training_key(distilled(tmp_path / "translated"), shards)


def test_what_cannot_be_distilled(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="needs bitext: a directory"):
        NmtParameters(target="translation")
    schema = schema_of(["source_text", "reference"])
    writer = ShardWriter(tmp_path / "ingested", schema, 50)
    writer.write(pa.Table.from_pylist([{"source_text": "a", "reference": "A"}], schema))
    writer.close({"step": "ingest"})
    with pytest.raises(InputError, match="no column 'translation'"):
        pairs(ShardDirectory(tmp_path / "ingested"), distilled(tmp_path / "ingested"))
    # What the next stage is about to replace is no teacher.
    write_translated(tmp_path / "translated", [row("a", "A", "Ta")])
    with pytest.raises(InputError, match="Keep a copy elsewhere"):
        build_nmt(
            distilled(tmp_path / "translated"),
            tmp_path / "ingested",
            tmp_path / "nmt",
            tmp_path / "nmt.csv",
            Resources(work=tmp_path / "work"),
        )
