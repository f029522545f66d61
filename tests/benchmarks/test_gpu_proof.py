"""The GPU benchmark with few sentences on a CPU."""

import gzip
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from benchmarks import device
from benchmarks.command_line import app_of
from benchmarks.device import Watch, name_of
from benchmarks.gpu_proof import PARTS, Figures, Setting, main
from benchmarks.results import read
from paraforge.base.errors import InputError
from tests.translation.models.tiny import bitext

pytestmark = pytest.mark.full


@pytest.fixture
def setting(tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Setting:
    monkeypatch.setenv("PARAFORGE_RESULTS", str(tmp_path / "results"))
    text = tmp_path / "text.tsv.gz"
    with gzip.open(text, "wt", encoding="utf-8") as file:
        file.writelines(f"set\t{english}\t{czech}\n" for czech, english in dict(bitext(60, seed=3)).items())
    return Setting(str(tiny_model), str(text), "cpu", True)


# What figures are, or more than which they are.
MEASURED: dict[str, tuple[Figures, dict[str, float]]] = {
    "float32": ({"compared_sentences": 24, "as_cpu_percent": 100}, {"largest_score_difference": -1}),
    "transformer-base, bfloat16, graphs": ({"tokens_per_target": 32}, {"sentences_per_second": 0}),
    "transformer-base, CTranslate2 int8_float16": (
        {"tokens_per_target": 32},
        {"target_tokens_per_second": 0},
    ),
    "bfloat16": ({"failed_sentences": 0}, {"bleu": 30, "sentences_per_second": 0}),
    "bfloat16, graphs": ({"failed_sentences": 0}, {"bleu": 30}),
    "float16": ({"failed_sentences": 0}, {"bleu": 30}),
    "tasks of 4000, 1 at once, torch": ({"failed_sentences": 0}, {"sentences_per_second": 0}),
    "tasks of 32000, 2 at once, ctranslate2": ({"failed_sentences": 0}, {"idle_percent": -1}),
    "two workers": ({"failed_sentences_1": 0, "failed_sentences_2": 0, "same_bytes": 1}, {}),
    "training": ({}, {"target_tokens_per_second": 0, "validation_loss_bits": 0}),
    "embeddings": ({}, {"average_pairs_per_second": 0, "lstm_pairs_per_second": 0}),
}


@pytest.mark.parametrize("name", MEASURED)
def test_gpu_proof_part(name: str, setting: Setting) -> None:
    exact, more = MEASURED[name]
    found = PARTS[name][0](setting)
    assert exact.items() <= found.items()
    assert all((found[figure] or 0) > least for figure, least in more.items())


def test_gpu_proof_command(setting: Setting, tmp_path: Path) -> None:
    given = ["--model", setting.model, "--text", setting.text, "--device", "cpu", "--small"]
    done = CliRunner().invoke(app_of(main), [*given, "--only", "float32"])
    assert done.exit_code == 0, done.output
    (line,) = read(tmp_path / "results" / "gpu_proof.jsonl")
    expected = {
        "name": "float32",
        "device": "cpu",
        "small": True,
        "model": Path(setting.model).name,
    }
    assert line.configuration == expected and line.figures["as_cpu_percent"] == 100
    assert CliRunner().invoke(app_of(main), [*given, "--minutes", "0"]).exit_code == 3
    assert "there is no part pace" in CliRunner().invoke(app_of(main), [*given, "--only", "pace"]).output
    other = CliRunner().invoke(app_of(main), [*given, "--device", "cuda:99"])
    assert isinstance(other.exception, InputError)


def test_gpu_figures_from_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = tmp_path / "nvidia-smi"
    driver.write_text(
        '#!/bin/sh\necho "$1" >> "$0.log"\ncase "$*" in *=name*) echo "NVIDIA H100"; exit;; esac\n'
        'echo "40, 1024"; echo "80, 3072"; echo "[N/A], 9000"; printf "9, 1"\n'
        'touch "$0.said"; exec sleep 60\n'
    )
    driver.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,GPU-5")
    monkeypatch.setattr(device, "finish", lambda _: None)
    assert name_of("cuda:1") == "NVIDIA H100"
    with Watch("cuda:0") as watch:
        while not (tmp_path / "nvidia-smi.said").exists():
            time.sleep(0.01)
    assert (watch.idle, watch.gib) == (pytest.approx(0.4), 3)
    assert (tmp_path / "nvidia-smi.log").read_text().split() == ["--id=GPU-5", "--id=4"]
