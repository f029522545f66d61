"""The stage nmt: training, reuse, import, no model, and distillation."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError

from benchmarks.bitext import write_ingested
from paraforge import versions
from paraforge.base.errors import InputError
from paraforge.base.files import check_digests, hash_json, read_json, write_json
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.store import ShardDirectory
from paraforge.base.text.units import load_processor
from paraforge.corpus.columns import schema_of
from paraforge.translation.decoding import device as devices
from paraforge.translation.models.conversion import write_description
from paraforge.translation.models.sentencepiece import SPECIAL_TYPES
from paraforge.translation.training import stage as nmt
from paraforge.translation.training.binarization import accepted_pairs, pair_columns, prepare_bitext
from paraforge.translation.training.finishing import training_signature
from paraforge.translation.training.parameters import NmtParameters, doubt_about
from paraforge.translation.training.stage import NmtReport, build_nmt, trained_model, training_key
from tests.base.shards.steps import write_table
from tests.project import digests
from tests.translation.models.tiny import bitext
from tests.translation.training.test_binarization import accepted, read_part, write_shards
from tests.translation.training.test_training import parameters

FAULTS = ("source_truncated", "output_truncated", "empty_output", "non_finite", "runaway")


def build(root: Path, chosen: NmtParameters, **resources: Any) -> NmtReport:
    where = {"threads": 1, "devices": ["cpu"], "work": root / "work", **resources}
    return build_nmt(chosen, root / "ingested", root / "nmt", root / "nmt.csv", Resources(**where))


def stop(*arguments: Any) -> None:
    raise InputError("training begins")


@pytest.mark.full
def test_training_runs_once_and_republishes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_shards(tmp_path / "ingested", accepted(300))
    report = build(tmp_path, parameters())
    assert report.origin == "trained"
    assert (report.trained_on["updates"], report.trained_on["ended_by"]) == (12, "maximum_updates")
    pairs = report.trained_on["pairs"]
    assert report.trained_on["signature"].endswith(
        f"|pairs:{pairs}|spm:unigram-50-shared|arch:1+1x16|updates:12|seed:1|v:{versions.NMT}"
    )
    description = read_json(tmp_path / "nmt" / "model.json")
    assert description["metrics"]["beam"] == 3
    assert description["metrics"]["bleu_signature"].startswith("nrefs:1|case:mixed|eff:no|tok:13a")
    before, curve = digests(tmp_path / "nmt"), (tmp_path / "nmt.csv").read_bytes()
    assert b"seconds" not in curve  # another stage reads the curve of a pivot
    monkeypatch.setattr(nmt, "train_model", stop)
    (tmp_path / "nmt" / "model.json").unlink()
    build(tmp_path, parameters(), threads=2)
    assert (digests(tmp_path / "nmt"), (tmp_path / "nmt.csv").read_bytes()) == (before, curve)
    # Another result parameter is another training.
    with pytest.raises(InputError, match="training begins"):
        build(tmp_path, parameters(training={"seed": 2}))
    # A finished model that was damaged is made again, and comes out the same.
    monkeypatch.undo()
    (damaged,) = (tmp_path / "work" / "nmt").glob("*/model/source.spm")
    damaged.unlink()
    large = ("parts", "checkpoints", "snapshots", "validation", "candidate.pt")
    assert not [name for name in large if list((tmp_path / "work" / "nmt").glob(f"*/{name}"))]
    build(tmp_path, parameters())
    assert digests(tmp_path / "nmt") == before


def test_default_choices_do_not_change_training_key(tmp_path: Path) -> None:
    shards = write_shards(tmp_path / "in", [("pes", "dog", None)])
    later = {"target": True, "maximum_pairs": True, "architecture": {"kind"}}
    values = parameters().model_dump(
        mode="json", exclude={"model": True, "forward": True, "bitext": True, **later}
    )
    digests_of = [record.sha256 for record in shards.records]
    content = {"step": "nmt", "version": versions.NMT, "parameters": values, "shards": digests_of}
    assert training_key(parameters(), shards) == hash_json(content)[:32]


@pytest.mark.parametrize("damaged", ["source.spm", "model.json", "../history.json", None])
def test_changed_finished_model_is_not_reused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, damaged: str | None
) -> None:
    model = tmp_path / "model"
    model.mkdir()
    (model / "source.spm").write_bytes(b"pieces")
    write_description(model, origin="trained", languages=("cs", "en"), entries={})
    write_json(tmp_path / "history.json", [{"update": 1}])
    monkeypatch.setattr(nmt, "train_model", stop)
    shards: Any = None
    assert trained_model(shards, tmp_path, parameters(), Resources()) == [{"update": 1}]
    (model / damaged).unlink() if damaged else (model / "source.spm").write_bytes(b"Pieces")
    with pytest.raises(InputError, match="training begins"):
        trained_model(shards, tmp_path, parameters(), Resources())
    assert "The model is trained again" in caplog.text


def test_leftovers_of_killed_finished_run_are_removed(tmp_path: Path) -> None:
    for name in ("model", "parts", "snapshots"):
        (tmp_path / name).mkdir()
    write_description(tmp_path / "model", origin="trained", languages=("cs", "en"), entries={})
    write_json(tmp_path / "history.json", [])
    shards = write_shards(tmp_path / "in", [("pes", "dog", None)])
    assert nmt.trained_model(shards, tmp_path, parameters(), Resources()) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["history.json", "in", "model"]
    nmt.publish(tmp_path / "model", tmp_path / "out")
    assert check_digests(tmp_path / "out") == []


@pytest.mark.parametrize("has_bfloat16", [True, False])
def test_training_key_has_resolved_precision(
    has_bfloat16: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_shards(tmp_path / "ingested", [("pes", "dog", None)])
    places = []
    monkeypatch.setattr(devices, "cpu_has_bfloat16", lambda: has_bfloat16)
    monkeypatch.setattr(nmt, "publish", lambda *arguments: None)
    monkeypatch.setattr(nmt, "read_json", lambda path: {})
    monkeypatch.setattr(nmt, "trained_model", lambda shards, place, *others: places.append(place) or [])
    resources = Resources(threads=1, devices=["cpu"], work=tmp_path / "work")
    chosen = [parameters(training={"precision": precision}) for precision in ("auto", "bfloat16", "float32")]
    for one in chosen:
        nmt._train(one, tmp_path / "ingested", tmp_path / "nmt", resources)
    auto, *named = (place.name for place in places)
    assert auto == named[0 if has_bfloat16 else 1] and len(set(named)) == 2


def test_training_time_is_announced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(nmt, "train_model", stop)
    write_shards(tmp_path / "ingested", accepted(10))
    # 12,000 updates with 2 x 2,000 tokens; weights: 500,000, 750,000, and 1,000,000 for the vocabulary.
    trained = NmtParameters.model_validate(
        {
            "architecture": {
                "encoder_layers": 1, "decoder_layers": 1, "width": 250, "feed_forward": 500, "heads": 2
            },
            "vocabulary": {"size": 4000},
            "training": {"batch_tokens": 2000, "accumulate": 2, "maximum_updates": 12_000},
        }
    )  # fmt: skip
    assert trained.training_time == f"{round(48e6 * (63 + 11 * 2.25) / 1e6 / 60)} minutes"
    with caplog.at_level("INFO"), pytest.raises(InputError, match="training begins"):
        build(tmp_path, trained)
    assert "takes about 70 minutes on two CPU cores" in caplog.text
    assert "translation=ready nmt.model=NAME" in caplog.text
    assert "a model trained on 10 pairs gets most translations wrong" in caplog.text
    assert (doubt_about(9_999) is None, doubt_about(10_000)) == (False, None)
    limited = trained.training.model_copy(update={"maximum_minutes": 5})
    short = trained.model_copy(update={"training": limited})
    assert short.training_time == "5 minutes"


def own_bitext(place: Path) -> dict[str, Any]:
    """A section ``bitext`` with a file of 50 pairs."""
    (place / "own.tsv").write_text("".join(f"{cs}\t{en}\n" for cs, en in bitext(50)), encoding="utf-8")
    columns = {"source_text": 0, "reference": 1}
    return {"sources": [{"name": "own", "format": "tsv", "path": str(place / "own.tsv"), "columns": columns}]}


@pytest.mark.parametrize("function", ["train_model", "ingest"])
def test_training_bitext_of_project_languages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    """The bitext is that of both models, and the languages are those of both files."""
    seen: list[Any] = []

    def noted(*arguments: Any) -> None:
        seen.append(arguments[0].total_rows if function == "train_model" else arguments[-1])
        stop()

    monkeypatch.setattr(nmt, function, noted)
    section = parameters(forward="train", bitext=own_bitext(tmp_path))
    for one in (section, section.reversed()):
        with pytest.raises(InputError, match="training begins"):
            build(tmp_path, one)
    if function == "train_model":
        assert seen == [50, 50]
    else:
        assert seen[0] == seen[1] and (seen[0].source, seen[0].target) == ("cs", "en")


def test_forward_model_swaps_sides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    section = parameters(model="models/back", forward="train")
    there = section.reversed()
    assert (there.model, there.forward, there.source_language, there.target_language) == (
        "train", None, "en", "cs",
    )  # fmt: skip
    pairs = [("pes", "dog", None), ("kočka", "cat", "too_long"), ("", "house", None)]
    shards = write_shards(tmp_path / "ingested", pairs)
    table = accepted_pairs(shards.read(0, pair_columns(shards, there)), there)
    assert table.to_pylist() == [{"source_text": "dog", "reference": "pes", "target": "pes"}]
    # Another training than that of a model whose source is the foreign side, whatever its languages are.
    swapped = section.model_copy(update={"source_language": "en", "target_language": "cs"})
    keys = {training_key(one, shards) for one in (section, swapped, there)}
    assert len(keys) == 3
    assert training_key(section, shards) == training_key(section.model_copy(update={"forward": None}), shards)
    # Of a teacher's shards the best and faultless rows, one for each pair.
    names = ["source_text", "reference", "rejected", "translation", "failed", "rank", *FAULTS]
    rows = [["pes", "dog", None, "a dog", None, rank, *[False] * len(FAULTS)] for rank in (0, 1)]
    teacher = pa.table([pa.array(list(column)) for column in zip(*rows, strict=True)], names)
    assert accepted_pairs(teacher, there).num_rows == 1


def test_nmt_stage_without_model(tmp_path: Path) -> None:
    assert build(tmp_path, NmtParameters(model="none")).origin == "none"
    assert [path.name for path in (tmp_path / "nmt").iterdir()] == ["model.json"]
    assert (tmp_path / "nmt.csv").read_text(encoding="utf-8").startswith("update,epoch")


def test_nmt_stage_with_ready_model(tiny_fairseq: Path, tmp_path: Path) -> None:
    report = build(tmp_path, NmtParameters(model=str(tiny_fairseq)))
    assert (report.origin, report.bleu) == ("fairseq", None)
    with pytest.raises(InputError, match="it translates from cs to en, not from de to en"):
        build(tmp_path, NmtParameters(model=str(tiny_fairseq), source_language="de"))
    with pytest.raises(InputError, match="no such model"):
        build(tmp_path, NmtParameters(model="missing"))


SIDES = {"reference": 0, "translation": 1}
OWN = {"name": "own", "format": "tsv", "path": "own.tsv", "columns": SIDES}
PARAPHRASES = {"kind": "paraphrases", "sources": [OWN]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"architecture": {"width": 30, "heads": 4}}, "multiple of heads"),
        ({"architecture": {"width": 33, "heads": 3}}, "width must be even"),
        ({"architecture": {"kind": "lstm", "width": 33}}, "kind lstm: width must be even"),
        ({"architecture": {"kind": "lstm", "encoder_layers": 2}}, "decoder_layers equal"),
        ({"source_language": "en"}, "must differ"),
        ({"training": {"schedule": "linear", "warmup_updates": 10, "maximum_updates": 10}}, "fewer than"),
        ({"training": {"warmup_updates": 0}}, "warmup_updates must be at least 1"),  # fairseq divides by it
        ({"training": {"batch_tokens": 249}}, "at least maximum_tokens"),
        ({"vocabulary": {"sizes": 1}}, "Extra inputs"),
        ({"bitext": PARAPHRASES}, "bitext.kind must be bitext, but is paraphrases"),
    ],
)
def test_invalid_nmt_parameters(content: dict[str, Any], message: str) -> None:
    NmtParameters.model_validate({"training": {"batch_tokens": 250}})  # as the longest pair has
    with pytest.raises(ValidationError, match=message):
        NmtParameters.model_validate(content)


def row(cs: str, reference: str, translation: str | None, **changes: Any) -> dict[str, Any]:
    base = {"source_text": cs, "reference": reference, "translation": translation, "rank": 0}
    return {**base, "rejected": None, "failed": None, **dict.fromkeys(FAULTS, False), **changes}


def write_translated(path: Path, rows: list[dict[str, Any]]) -> ShardDirectory:
    schema = schema_of(["source_text", "reference", "translation", "rank", *FAULTS, "rejected", "failed"])
    made_by = {"step": "translate", "fingerprints": {"model": "0123456789abcdef"}}
    return ShardDirectory(write_table(path, pa.Table.from_pylist(rows, schema), 50, **made_by))


def distilled(path: Path, **changes: Any) -> NmtParameters:
    return NmtParameters.model_validate({"bitext": str(path), "target": "translation", **changes})


def pairs(shards: ShardDirectory, parameters: NmtParameters) -> list[tuple[str, str, str]]:
    columns = pair_columns(shards, parameters)
    tables = [accepted_pairs(table, parameters) for table in shards.tables(columns)]
    return [(r["source_text"], r["target"], r["reference"]) for table in tables for r in table.to_pylist()]


def test_distillation_uses_best_complete_translations(tmp_path: Path) -> None:
    rows = [
        *(row("a", "A", "Ta"), row("a", "A", "Tb", rank=1), row("b", "B", None, failed="no")),
        *(row("c", "C", None, rejected="identical"), row("d", "D", "Td", rejected="identical")),
        *(row("e", "E", ""), row("f", "", "Tf"), row("", "G", "Tg"), row("h", "H", "Th")),
        *(row(name, "X", "Tx", **{name: True}) for name in FAULTS),
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


def test_student_learns_translations_and_is_judged_on_references(tmp_path: Path) -> None:
    rows = [row(cs, en, f"{en} zz") for cs, en in bitext(300)]
    shards = write_translated(tmp_path / "translated", rows)
    chosen = distilled(tmp_path / "translated", vocabulary={"size": 70}, validation={"held_out": 20})
    prepared = prepare_bitext(shards, tmp_path / "work", chosen, Resources())
    decode = load_processor(tmp_path / "work" / "target.spm").decode
    trained = read_part(tmp_path / "work" / prepared.parts[0], "train", "en")
    assert len(trained) == prepared.trained > 200
    assert prepared.teacher == "0123456789abcdef"
    signature = training_signature(chosen, prepared, 7, "0" * 32)
    assert signature.endswith(f"|updates:7|seed:1|teacher:01234567|v:{versions.NMT}")
    assert "|spm:unigram-70-shared|" in signature
    separate = chosen.vocabulary.model_copy(update={"shared": False})
    signature = training_signature(chosen.model_copy(update={"vocabulary": separate}), prepared, 7, "0" * 32)
    assert "|spm:unigram-70-separate|" in signature
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
    assert prepare_bitext(shards, tmp_path / "plain", plain, Resources()).teacher is None
    assert pq.read_table(tmp_path / "plain" / "held_out.parquet") == held_out


def test_undistillable_corpora_are_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="needs bitext: a directory"):
        NmtParameters(target="translation")
    write_ingested(tmp_path / "ingested", ["a"], ["A"])
    with pytest.raises(InputError, match="no column 'translation'"):
        pairs(ShardDirectory(tmp_path / "ingested"), distilled(tmp_path / "ingested"))
    # What the next stage is about to replace is no teacher.
    write_translated(tmp_path / "translated", [row("a", "A", "Ta")])
    with pytest.raises(InputError, match="Copy them"):
        build(tmp_path, distilled(tmp_path / "translated"))
