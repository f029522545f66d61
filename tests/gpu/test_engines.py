"""Engines on a GPU match the CPU; run with ``pytest -m gpu``."""

from pathlib import Path

import pytest

from paraforge.translation.decoding.translator import DecodingOptions, Hypotheses, Placement
from paraforge.translation.engines import open_translator
from paraforge.translation.models.ctranslate2_library import multiply
from tests.translation.models.tiny import bitext, write_model, write_tiny_fairseq

pytestmark = pytest.mark.gpu
SENTENCES = [source for source, _ in bitext(200, seed=9, longest=9)]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    fairseq = write_tiny_fairseq(tmp_path_factory.mktemp("gpu") / "fairseq")
    model = write_model(fairseq, fairseq.parent / "model")
    return dict.fromkeys(("fairseq", "ctranslate2", "torch"), model)


def run(engine: str, model: Path, device: str, compute_type: str, **more: int) -> list[Hypotheses]:
    options = DecodingOptions.model_validate(
        {"beam": 5, "maximum_target_tokens": 40, "compute_type": compute_type}
    )
    return list(open_translator(engine, model, options, Placement(device, **more)).translate(SENTENCES))


@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
def test_device_multiplies_correctly(engine: str) -> None:
    multiply(engine, "cuda:0")


@pytest.mark.parametrize(
    ("engine", "compute_type", "least"),
    [
        *(("ctranslate2", "float32", 0.99), ("fairseq", "float32", 0.99), ("torch", "float32", 0.99)),
        *(("ctranslate2", "float16", 0.95), ("ctranslate2", "int8_float16", 0.8)),
        ("torch", "bfloat16", 0.9),
    ],
)
def test_gpu_hypotheses_match_cpu(
    engine: str, compute_type: str, least: float, models: dict[str, Path]
) -> None:
    expected = run(engine, models[engine], "cpu", "float32")
    found = run(engine, models[engine], "cuda", compute_type)
    same = [
        first.hypotheses[0].text == second.hypotheses[0].text
        for first, second in zip(expected, found, strict=True)
    ]
    assert sum(same) / len(same) >= least


def test_too_large_gpu_batches_are_halved(models: dict[str, Path]) -> None:
    import torch

    held = torch.empty(int(torch.cuda.mem_get_info()[0] * 0.97), dtype=torch.uint8, device="cuda")
    found = run("ctranslate2", models["ctranslate2"], "cuda", "float32", batch_tokens=10**7)
    del held
    assert not any(result.failed for result in found)
