"""The stage nmt: training once, reusing, importing, and doing without a model."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from paraforge import versions
from paraforge.base.errors import InputError
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.store import ShardDirectory
from paraforge.translation.decoding import torch_device as devices
from paraforge.translation.training import stage as nmt
from paraforge.translation.training.parameters import NmtParameters
from paraforge.translation.training.stage import build_nmt, training_key
from tests.translation.models.tiny import bitext
from tests.translation.training.test_binarisation import write_shards
from tests.translation.training.test_training import parameters


def files(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_training_once_and_publishing_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_shards(tmp_path / "ingested", [(cs, en, None) for cs, en in bitext(300)])
    resources = Resources(threads=1, devices=["cpu"], work=tmp_path / "work")
    arguments = (tmp_path / "ingested", tmp_path / "models" / "nmt", tmp_path / "nmt.csv")
    report = build_nmt(parameters(), *arguments, resources)
    assert report.origin == "trained"
    assert report.trained_on is not None
    assert report.trained_on["updates"] == 12
    pairs = report.trained_on["pairs"]
    assert report.trained_on["signature"].endswith(
        f"|pairs:{pairs}|spm:unigram-50-shared|arch:1+1x16|updates:12|seed:1|v:{versions.NMT}"
    )
    assert report.trained_on["ended_by"] == "maximum_updates"
    description = json.loads((tmp_path / "models" / "nmt" / "model.json").read_text(encoding="utf-8"))
    assert description["metrics"]["beam"] == 3
    assert description["metrics"]["bleu_signature"].startswith("nrefs:1|case:mixed|eff:no|tok:13a")
    before = files(tmp_path / "models" / "nmt")
    curve = (tmp_path / "nmt.csv").read_text(encoding="utf-8")

    def fail(*arguments: Any) -> None:
        raise AssertionError("trained twice")

    monkeypatch.setattr(nmt, "train_model", fail)
    (tmp_path / "models" / "nmt" / "model.json").unlink()
    build_nmt(parameters(), *arguments, resources.model_copy(update={"threads": 2}))
    assert files(tmp_path / "models" / "nmt") == before
    assert (tmp_path / "nmt.csv").read_text(encoding="utf-8") == curve
    # Another result parameter is another training.
    with pytest.raises(AssertionError, match="trained twice"):
        build_nmt(parameters(training={"seed": 2}), *arguments, resources)
    # A finished model that was damaged is made again, and comes out the same.
    monkeypatch.undo()
    (damaged,) = (tmp_path / "work" / "nmt").glob("*/model/source.spm")
    damaged.unlink()
    assert not list((tmp_path / "work" / "nmt").glob("*/parts"))
    build_nmt(parameters(), *arguments, resources)
    assert files(tmp_path / "models" / "nmt") == before


def test_the_key_follows_parameters_and_shards(tmp_path: Path) -> None:
    first = write_shards(tmp_path / "a", [("pes", "dog", None)])
    other = write_shards(tmp_path / "b", [("pes", "cat", None)])
    key = training_key(parameters(), first)
    assert key == training_key(parameters(), ShardDirectory(tmp_path / "a"))
    assert key == training_key(parameters(bitext=str(tmp_path / "a")), first)
    assert key != training_key(parameters(), other)
    assert key != training_key(parameters(architecture={"dropout": 0.3}), first)
    assert key != training_key(parameters(validation={"held_out": 21}), first)


@pytest.mark.parametrize("has_bfloat16", [True, False])
def test_the_key_has_the_precision_that_auto_means(
    has_bfloat16: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shards = write_shards(tmp_path / "ingested", [("pes", "dog", None)])
    places = []
    monkeypatch.setattr(devices, "cpu_has_bfloat16", lambda: has_bfloat16)
    monkeypatch.setattr(nmt, "publish", lambda *arguments: None)
    monkeypatch.setattr(nmt, "read_json", lambda path: {})
    monkeypatch.setattr(nmt, "trained_model", lambda shards, place, *others: places.append(place) or [])
    resources = Resources(threads=1, devices=["cpu"], work=tmp_path / "work")
    meant = "bfloat16" if has_bfloat16 else "float32"
    chosen = [parameters(training={"precision": precision}) for precision in ("auto", "bfloat16", "float32")]
    for one in chosen:
        nmt._train(one, tmp_path / "ingested", tmp_path / "nmt", resources)
    auto, *named = (place.name for place in places)
    assert auto == named[0 if has_bfloat16 else 1] and len(set(named)) == 2
    # A training from before, whose key has no more than "auto", is found if it is of the same precision.
    earlier = tmp_path / "work" / "nmt" / training_key(chosen[0], shards)
    earlier.mkdir(parents=True)
    for precision, found in ((meant, earlier.name), ("float16", auto)):
        (earlier / "settings.json").write_text(json.dumps({"precision": precision}))
        nmt._train(chosen[0], tmp_path / "ingested", tmp_path / "nmt", resources)
        assert places[-1].name == found


def test_a_bitext_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own.tsv").write_text("".join(f"{cs}\t{en}\n" for cs, en in bitext(50)), encoding="utf-8")
    source = {
        "name": "own",
        "format": "tsv",
        "path": str(tmp_path / "own.tsv"),
        "columns": {"source_text": 0, "reference": 1},
    }
    seen: list[int] = []

    def stop(shards: ShardDirectory, *arguments: Any) -> None:
        seen.append(shards.total_rows)
        raise InputError("seen")

    monkeypatch.setattr(nmt, "train_model", stop)
    resources = Resources(threads=1, work=tmp_path / "work")
    with pytest.raises(InputError, match="seen"):
        build_nmt(
            parameters(bitext={"sources": [source]}),
            tmp_path / "no",
            tmp_path / "nmt",
            tmp_path / "c.csv",
            resources,
        )
    assert seen == [50]


def test_no_model(tmp_path: Path) -> None:
    report = build_nmt(
        NmtParameters(model="none"), tmp_path / "no", tmp_path / "nmt", tmp_path / "nmt.csv", Resources()
    )
    assert report.origin == "none"
    assert [path.name for path in (tmp_path / "nmt").iterdir()] == ["model.json"]
    assert (tmp_path / "nmt.csv").read_text(encoding="utf-8").startswith("update,epoch")


def test_a_ready_model(tiny_fairseq: Path, tmp_path: Path) -> None:
    chosen = NmtParameters(model=str(tiny_fairseq))
    report = build_nmt(chosen, tmp_path / "no", tmp_path / "nmt", tmp_path / "nmt.csv", Resources())
    assert report.origin == "fairseq"
    assert report.bleu is None
    with pytest.raises(InputError, match="no such model"):
        build_nmt(
            NmtParameters(model="missing"),
            tmp_path / "no",
            tmp_path / "nmt",
            tmp_path / "nmt.csv",
            Resources(),
        )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"architecture": {"width": 30, "heads": 4}}, "multiple of heads"),
        ({"source_language": "en"}, "must differ"),
        ({"training": {"schedule": "linear", "warmup_updates": 10, "maximum_updates": 10}}, "fewer than"),
        ({"training": {"batch_tokens": 100}}, "at least maximum_tokens"),
        ({"vocabulary": {"sizes": 1}}, "Extra inputs"),
        ({"bitext": {"kind": "paraphrases", "sources": []}}, "at least 1 item"),
    ],
)
def test_parameters_that_are_refused(content: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        NmtParameters.model_validate(content)
