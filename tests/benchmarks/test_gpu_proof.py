"""The proof for a GPU, with few sentences on a CPU: what its parts measure, and which are run when."""

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from benchmarks import device, gpu_proof
from benchmarks.device import Watch, name_of
from benchmarks.gpu_proof import PARTS, Figures, Setting, app, run, write_expected
from benchmarks.results import read
from paraforge.base.errors import InputError
from paraforge.translation.engines.ctranslate2 import CTranslate2Translator
from paraforge.translation.torch_search.search import Search
from tests.translation.models.tiny import bitext


@pytest.fixture
def setting(tiny_ctranslate2: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Setting:
    monkeypatch.setenv("PARAFORGE_RESULTS", str(tmp_path / "results"))
    pairs = dict(bitext(60, seed=3))
    text = tmp_path / "text.tsv.gz"
    with gzip.open(text, "wt", encoding="utf-8") as file:
        file.writelines(f"set\t{target}\t{source}\n" for source, target in pairs.items())
    return Setting(str(tiny_ctranslate2), str(text), "cpu", True, str(tmp_path / "expected.json"))


def measured(setting: Setting, name: str) -> Figures:
    return PARTS[name].measure(setting)


def test_all_parts_take_37_minutes_at_most_and_each_fits_into_one_call() -> None:
    limits = [part.limit for part in PARTS.values()]
    assert sum(limits) <= 37 * 60 - len(limits) and max(limits) <= 9 * 60


def test_peaks(setting: Setting) -> None:
    assert all(value and value > 0 for value in measured(setting, "peaks").values())


def test_translations_are_compared_with_those_of_a_cpu(setting: Setting, tmp_path: Path) -> None:
    without = measured(setting, "CTranslate2 float16")
    assert "as_cpu_percent" not in without and without["failed_sentences"] == 0
    assert 0 <= (without["idle_percent"] or 0) <= 100 and (without["bleu"] or 0) > 30
    write_expected(setting)
    found = measured(setting, "CTranslate2 float16")
    assert (found["compared_sentences"], found["as_cpu_percent"]) == (24, 100)
    assert (found["largest_score_difference"] or 0) < 1e-5
    content = json.loads(Path(setting.expected).read_text())
    changed = {key: ["0", score] for key, (_, score) in list(content["best"].items())[:6]}
    Path(setting.expected).write_text(json.dumps({**content, "best": content["best"] | changed}))
    assert measured(setting, "CTranslate2 float16")["as_cpu_percent"] == 75
    Path(setting.expected).write_text(json.dumps({**content, "model": "another"}))
    assert "as_cpu_percent" not in measured(setting, "CTranslate2 float16")


@pytest.mark.parametrize("name", ["bfloat16", "bfloat16, graphs", "float16"])
def test_ways_of_the_engine_torch(name: str, setting: Setting) -> None:
    found = measured(setting, name)
    assert found["failed_sentences"] == 0 and (found["bleu"] or 0) > 30


def test_graphs_and_shapes(setting: Setting) -> None:
    found = measured(setting, "graphs equal to eager")
    assert (found["sentences"], found["differing_sentences"], found["failed_sentences"]) == (24, 0, 0)
    assert measured(setting, "256 shapes")["shapes"] == 4


def test_a_sentence_that_differs_in_its_last_bit_is_counted(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    translator = setting.open("ctranslate2", "float32")
    found = list(translator.translate(["pes spí", "dům"]))
    (best,) = found[1].hypotheses
    other = replace(found[1], hypotheses=(replace(best, score=best.score * (1 + 2**-52)),))
    assert gpu_proof._differing(found, [found[0], other]) == 1


@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
def test_batches_that_do_not_fit_are_halved_once(
    engine: str, setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner: Any = Search if engine == "torch" else CTranslate2Translator
    name = "find" if engine == "torch" else "submit"
    original = getattr(owner, name)

    def little_room(self: Any, batch: Any) -> Any:
        if len(batch) > 10:
            raise RuntimeError("CUDA failed with error out of memory")
        return original(self, batch)

    monkeypatch.setattr(owner, name, little_room)
    found = measured(setting, f"a tenth of the memory, {engine}")
    assert found == {"failed_sentences": 0, "halvings": 2, "halvings_again": 0, "differing_texts": 0}


def test_what_overflows_is_computed_again(setting: Setting) -> None:
    assert measured(setting, "overflow in float16") == {
        "sentences": 24,
        "recomputed_sentences": 24,
        "failed_sentences": 0,
        "non_finite_sentences": 0,
        "texts_unlike_float32": 0,
    }


@pytest.mark.parametrize("name", [name for name in PARTS if name.startswith("tasks of 4000")])
def test_tasks(name: str, setting: Setting) -> None:
    found = measured(setting, name)
    assert found["failed_sentences"] == 0 and 0 <= (found["idle_percent"] or 0) <= 100


@pytest.mark.slow
def test_a_killed_worker_changes_no_byte(setting: Setting) -> None:
    found = measured(setting, "two workers, one killed")
    assert (found["killed"], found["failed_sentences"], found["same_bytes"]) == (1, 0, 1)


@pytest.mark.slow
def test_training(setting: Setting) -> None:
    found = measured(setting, "training")
    assert (found["target_tokens_per_second"] or 0) > 0 and (found["validation_loss_bits"] or 0) > 0


def test_a_call_does_what_is_left_and_fits(setting: Setting, tmp_path: Path) -> None:
    begun: list[str] = []

    def measure(_: Setting, name: str, limit: float) -> Figures:
        begun.append(name)
        if name == "float16":
            raise RuntimeError("the device is lost")
        return {"x": 1}

    left = run(setting, 230, (), measure)
    assert left == [] and begun == list(PARTS)  # none of which took its time
    line = next(one for one in read(tmp_path / "results" / "gpu_proof.jsonl") if one.figures.get("failed"))
    assert (line.configuration["name"], line.note) == ("float16", "the device is lost")
    begun.clear()
    assert run(setting, 1000, (), measure) == [] and not begun  # a part that failed was measured too
    assert run(setting, 1000, ["peaks", "float16"], measure) == [] and begun == ["peaks", "float16"]
    other = replace(setting, small=False)
    begun.clear()
    left = run(other, 150, (), measure)
    assert begun and [name for name in PARTS if name in left] == left
    assert all(PARTS[name].limit > 140 for name in left) and set(begun) | set(left) == set(PARTS)


def test_a_part_is_measured_in_a_process_that_ends_with_its_limit(setting: Setting) -> None:
    with pytest.raises(RuntimeError, match="not finished after 0 s"):
        gpu_proof.in_own_process(setting, "peaks", 0.01)
    with pytest.raises(RuntimeError, match="no part"):
        gpu_proof.in_own_process(setting, "no part", 60)


def test_the_command(setting: Setting, tmp_path: Path) -> None:
    given = ["--model", setting.model, "--text", setting.text, "--device", "cpu", "--small"]
    done = CliRunner().invoke(app, [*given, "--only", "peaks"])
    assert done.exit_code == 0, done.output
    (line,) = read(tmp_path / "results" / "gpu_proof.jsonl")
    assert line.configuration == {
        "name": "peaks",
        "device": "cpu",
        "small": True,
        "model": Path(setting.model).name,
    }
    assert CliRunner().invoke(app, [*given, "--minutes", "0"]).exit_code == 3
    assert "there is no part pace" in CliRunner().invoke(app, [*given, "--only", "pace"]).output
    if not device.shutil.which("nvidia-smi"):
        done = CliRunner().invoke(app, [*given[:4], "--device", "cuda:0"])
        assert isinstance(done.exception, InputError)


def test_a_text_without_sentences_is_named(setting: Setting, tmp_path: Path) -> None:
    empty = tmp_path / "empty.tsv.gz"
    empty.write_bytes(gzip.compress(b""))
    with pytest.raises(InputError, match=r"no sentences.*empty|empty.*no sentences"):
        replace(setting, text=str(empty)).sentences(3)


def test_what_the_driver_says_of_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = tmp_path / "nvidia-smi"
    driver.write_text(
        '#!/bin/sh\necho "$@" >> "$0.log"\ncase "$*" in *=name*) echo "NVIDIA H100"; exit;; esac\n'
        'echo "40, 300.5, 1024"; echo "80, [N/A], 3072"; printf "9, 1"; exec sleep 60\n'
    )
    driver.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,GPU-5")
    monkeypatch.setattr(device, "finish", lambda _: None)
    assert name_of("cuda:1") == "NVIDIA H100"
    with Watch("cuda:0") as watch:
        device.time.sleep(0.5)
    assert (watch.idle, watch.watts, watch.gib) == (pytest.approx(0.4), 300.5, 3)
    assert [line.split()[0] for line in (tmp_path / "nvidia-smi.log").read_text().splitlines()] == [
        "--id=GPU-5",
        "--id=4",
    ]
