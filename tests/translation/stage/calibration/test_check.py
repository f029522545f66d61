"""A quantised model that is worse than it should be is not relied on; everybody agrees on that for good."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from benchmarks.bitext import write_ingested
from paraforge.base.errors import InputError, Interrupted
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.store import ShardDirectory, ShardWriter
from paraforge.translation.decoding import batching
from paraforge.translation.engines import ctranslate2
from paraforge.translation.models.importing import usable_model
from paraforge.translation.stage.calibration import check, loss
from paraforge.translation.stage.parameters import TranslateParameters
from paraforge.translation.stage.translate import TranslationReport, translate
from tests.here import run_command
from tests.translation.models.tiny import bitext
from tests.translation.stage.calibration.spoiling import spoil_int8

pytest.importorskip("ctranslate2")


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the corpus be as large as a sample of 200 sentences needs."""
    monkeypatch.setattr(loss, "SHARE", 2)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("calibration") / "ingested"
    pairs = list(dict.fromkeys(bitext(800, seed=5)))
    return write_ingested(path, [cs for cs, _ in pairs], [en for _, en in pairs], rows_per_shard=40)


def parameters(compute_type: str = "int8", **quantisation: Any) -> TranslateParameters:
    return TranslateParameters.model_validate(
        {
            "beam": 2,
            "compute_type": compute_type,
            "sentences_per_task": 100,
            "quantisation": {"sentences": 200, **quantisation},
        }
    )


def run(
    root: Path, corpus: Path, model: Path, chosen: TranslateParameters
) -> tuple[TranslationReport, list[bytes]]:
    where = Resources(workers=1, threads=1, work=root / "work", devices=["cpu"])
    report = translate(chosen, corpus, model, root / "translated", where)
    return report, [path.read_bytes() for path in ShardDirectory(root / "translated").paths]


@pytest.fixture
def garbled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """An int8 that says everything backwards; gives the compute types in which sentences were translated."""
    return spoil_int8(monkeypatch, lambda text: text[::-1])


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> loss.QuantisationLoss:
    """What is measured, whatever this processor's int8 is like: the loss is below 0.015 nats a token."""
    found = loss.QuantisationLoss(
        "int8", 200, identical=0.9, loss=0.01, bound=0.015, ruined=0.0, ruined_bound=0.008
    )
    monkeypatch.setattr(check, "measure_loss", lambda *arguments: found)
    return found


@pytest.fixture
def not_again(monkeypatch: pytest.MonkeyPatch) -> Any:
    """From when it is called on, nobody may translate or draw a sample."""

    def forbid() -> None:
        def fail(*arguments: Any, **options: Any) -> None:
            raise AssertionError("calibrated twice")

        monkeypatch.setattr(check, "write_sample", fail)
        monkeypatch.setattr(check, "run_step", fail)

    return forbid


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("compute_type", ["int8", "auto"])
def test_what_loses_too_much_is_translated_in_float32(
    compute_type: str, corpus: Path, tiny_ctranslate2: Path, tmp_path: Path, garbled: list[str]
) -> None:
    plain, expected = run(tmp_path / "plain", corpus, tiny_ctranslate2, parameters("float32"))
    assert plain.calibration is None
    garbled.clear()
    report, found = run(tmp_path / "checked", corpus, tiny_ctranslate2, parameters(compute_type))
    assert found == expected
    # The sample in both, everything else in float32.
    assert garbled.count("int8") == 200
    assert garbled.count("float32") == 200 + report.sentences
    assert report.compute_type == "float32"
    assert report.calibration is not None
    assert report.calibration.chosen == "float32"
    loss = report.calibration.loss
    assert loss is not None
    assert loss.compute_type == "int8"
    assert loss.sentences == 200
    assert loss.bound is not None and loss.loss is not None
    assert loss.bound > loss.loss > 0.5
    assert loss.ruined > 0.5
    assert loss.chrf is not None
    assert loss.chrf_float32 is not None
    assert loss.chrf < loss.chrf_float32 - 10
    # What metrics/translate.json will hold, and what _shards.json says of the shards.
    assert json.loads(json.dumps(asdict(report)))["calibration"]["loss"]["loss"] == loss.loss
    published = ShardDirectory(tmp_path / "checked" / "translated")
    assert published.description["parameters"]["compute_type"] == "float32"
    # Shards of a run that asked for float32 at once are the same ones.
    again, _ = run(tmp_path / "checked", corpus, tiny_ctranslate2, parameters("float32"))
    assert again.sentences_from_memory == again.sentences


@pytest.mark.usefixtures("large")
def test_a_compute_type_that_says_nothing_is_not_relied_on(
    corpus: Path, tiny_ctranslate2: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No pair of hypotheses has a loss then, and what is known of it is kept all the same."""
    spoil_int8(monkeypatch, lambda text: "")
    report, _ = run(tmp_path, corpus, tiny_ctranslate2, parameters())
    assert report.compute_type == "float32" and report.calibration is not None
    found = report.calibration.loss
    assert found is not None and found.loss is found.bound is None and found.ruined > 0.9
    assert "a loss that cannot be measured" in str(found)
    assert check._measured(next((tmp_path / "work").rglob("loss.json")).parent) is not None


def test_a_small_corpus_is_translated_in_float32_without_a_sample(
    corpus: Path, tiny_ctranslate2: Path, tmp_path: Path, garbled: list[str]
) -> None:
    report, _ = run(tmp_path, corpus, tiny_ctranslate2, parameters())
    assert report.calibration == check.Calibration("float32", 0.02, None)
    assert garbled == ["float32"] * report.sentences
    with pytest.raises(InputError, match=r"too little text to check int8 .*compute_type: float32"):
        run(tmp_path, corpus, tiny_ctranslate2, parameters(check="error"))


@pytest.mark.usefixtures("large")
def test_what_is_good_enough_is_kept(
    corpus: Path,
    tiny_ctranslate2: Path,
    tmp_path: Path,
    measured: loss.QuantisationLoss,
    not_again: Any,
) -> None:
    unchecked, expected = run(tmp_path / "skip", corpus, tiny_ctranslate2, parameters(check="skip"))
    assert unchecked.calibration is None
    assert not (tmp_path / "skip" / "work" / "translation" / "calibration").exists()
    report, found = run(tmp_path / "checked", corpus, tiny_ctranslate2, parameters(maximum_loss=0.016))
    assert found == expected
    assert report.compute_type == "int8"
    assert report.calibration == check.Calibration("int8", 0.016, measured)
    not_again()
    again, found = run(tmp_path / "checked", corpus, tiny_ctranslate2, parameters(maximum_loss=0.016))
    assert found == expected
    assert again.calibration == report.calibration
    assert again.sentences_from_memory == again.sentences


@pytest.mark.usefixtures("large")
def test_a_run_that_was_killed_goes_on_as_it_was_decided(
    corpus: Path,
    tiny_ctranslate2: Path,
    tmp_path: Path,
    garbled: list[str],
    not_again: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole, expected = run(tmp_path / "whole", corpus, tiny_ctranslate2, parameters())

    def stop() -> bool:
        return len(garbled) > 700  # past the sample

    garbled.clear()
    with monkeypatch.context() as patch:
        patch.setattr(batching, "stop_requested", stop)
        with pytest.raises(Interrupted):
            run(tmp_path / "parts", corpus, tiny_ctranslate2, parameters())
    # On another machine int8 may be as good as float32: nobody asks it.
    monkeypatch.setattr(
        ctranslate2.CTranslate2Translator, "translate", lambda self, s: batching.translate_in_batches(self, s)
    )
    not_again()
    report, found = run(tmp_path / "parts", corpus, tiny_ctranslate2, parameters())
    assert found == expected
    assert report.calibration == whole.calibration
    assert 0 < report.reused_tasks < report.tasks


@pytest.mark.usefixtures("large")
def test_a_sample_that_was_interrupted_or_lost_is_measured_again(
    corpus: Path, tiny_ctranslate2: Path, tmp_path: Path, garbled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop() -> bool:
        return len(garbled) > 100

    with monkeypatch.context() as patch:
        patch.setattr(batching, "stop_requested", stop)
        with pytest.raises(Interrupted):
            run(tmp_path, corpus, tiny_ctranslate2, parameters())
    first, expected = run(tmp_path, corpus, tiny_ctranslate2, parameters())
    (record,) = (tmp_path / "work" / "translation" / "calibration").glob("*/loss.json")
    record.write_text("{", encoding="utf-8")
    garbled.clear()
    again, found = run(tmp_path, corpus, tiny_ctranslate2, parameters())
    assert (found, again.calibration) == (expected, first.calibration)
    assert not garbled  # the sample's hypotheses were still there


@pytest.mark.usefixtures("large")
def test_another_limit_asks_nobody_again(
    corpus: Path,
    tiny_ctranslate2: Path,
    tmp_path: Path,
    measured: loss.QuantisationLoss,
    not_again: Any,
) -> None:
    first, _ = run(tmp_path, corpus, tiny_ctranslate2, parameters(maximum_loss=0.016))
    assert first.compute_type == "int8"
    not_again()
    report, _ = run(tmp_path, corpus, tiny_ctranslate2, parameters(maximum_loss=0.014))
    assert report.compute_type == "float32"
    assert report.calibration == check.Calibration("float32", 0.014, measured)


def test_an_edited_corpus_keeps_the_answer_and_another_one_is_asked(
    corpus: Path,
    tiny_ctranslate2: Path,
    tmp_path: Path,
    garbled: list[str],
    not_again: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loss, "SHARE", 1)
    whole = ShardDirectory(corpus)
    count = len(whole)

    def part(name: str, shards: list[int]) -> Path:
        writer = ShardWriter(tmp_path / name, whole.schema, 40)
        for shard in shards:
            table = whole.read(shard)
            # Its number of the first row is that of the other corpus.
            place = table.schema.get_field_index("first_row")
            none = pa.nulls(table.num_rows, pa.int64())
            writer.write(table.set_column(place, table.schema.field(place), none))
        writer.close({"step": "ingest"})
        return tmp_path / name

    half = list(range(count // 2 + 1))
    first, _ = run(tmp_path, part("first", half), tiny_ctranslate2, parameters())
    assert first.calibration is not None and first.calibration.loss is not None
    garbled.clear()
    other, _ = run(tmp_path, part("rest", list(range(len(half), count))), tiny_ctranslate2, parameters())
    assert garbled.count("int8") and other.calibration != first.calibration
    not_again()
    garbled.clear()
    for name, shards in {"less": half[2:], "more": [*half, count - 1], "whole": list(range(count))}.items():
        report, _ = run(tmp_path, part(name, shards), tiny_ctranslate2, parameters())
        assert report.calibration == first.calibration
    # Too little text for a sample of its own, and yet an edit.
    report, _ = run(tmp_path, part("few", half[:4]), tiny_ctranslate2, parameters())
    assert report.calibration is not None and report.calibration.loss == first.calibration.loss


@pytest.mark.usefixtures("large")
def test_an_error_where_that_is_asked_for(
    corpus: Path, tiny_ctranslate2: Path, tmp_path: Path, garbled: list[str]
) -> None:
    with pytest.raises(InputError, match=r"int8 compared with float32 on 200 sentences: .*less than 0\.02"):
        run(tmp_path, corpus, tiny_ctranslate2, parameters(check="error"))
    assert not (tmp_path / "translated").exists()
    assert not (tmp_path / "work" / "translate-sentences").exists()


def test_by_hand(tiny_ctranslate2: Path, corpus: Path, tmp_path: Path, garbled: list[str]) -> None:
    pairs = "".join(f"{cs}\t{en}\n" for cs, en in dict.fromkeys(bitext(800, seed=5)))
    (tmp_path / "test.tsv").write_text(pairs, encoding="utf-8")

    def check_model(*arguments: object, expect: int = 0) -> str:
        command = ("model", "check", tiny_ctranslate2, "--count", 200, "--threads", 1, *arguments)
        return str(run_command(*command, expect=expect).output)

    own = ("--bitext", tmp_path / "test.tsv", "--columns", "1,0")
    lost = check_model("--compute-type", "int8", *own, expect=1)
    assert "int8 compared with float32 on 200 sentences" in lost
    assert "a run would use float32" in lost
    kept = check_model("--compute-type", "int8_float32", "--bitext", corpus, "--limit", 50)
    assert "within the limit, 50 nats" in kept
    with pytest.raises(InputError, match="float32 does not round"):
        check_model("--bitext", corpus)


def test_a_real_model_in_int8_loses_little(
    data_directory: Path, small_model_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from paraforge.translation.decoding.translator import DecodingOptions, Placement

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = check.loss_on_bitext(
        usable_model(small_model_directory, "ctranslate2"),
        data_directory / "bitext" / "multi30k.val.en-cs.tsv.gz",
        DecodingOptions(beam=2, compute_type="int8"),
        Placement("cpu"),
        columns=(0, 1),
        sentences=200,
    )
    # Without VNNI, processors add products of int8 in 16 bits, which ruins one sentence of 200.
    assert found.bound is not None and found.bound < 0.03
    assert found.ruined < 0.01
    assert found.identical > 0.6
    assert found.chrf_float32 is not None
    assert 40 < found.chrf_float32 < 80
