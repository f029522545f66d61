"""BLEU and chrF of a converted model, and the blockwise criterion against fairseq's."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from paraforge.base.errors import InputError
from paraforge.base.shards.store import read_parquet
from paraforge.base.text.units import load_processor
from paraforge.translation.training import criterion, validation
from paraforge.translation.training.criterion import blockwise_label_smoothed_loss
from paraforge.translation.training.parameters import NmtParameters
from paraforge.translation.training.validation import Scores, evaluate, score_hypotheses
from tests.translation.models.tiny import bitext, write_ctranslate2, write_tiny_fairseq


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("validation")
    fairseq = write_tiny_fairseq(folder / "fairseq", updates=60)
    write_ctranslate2(fairseq, folder / "converted")
    for language in ("cs", "en"):
        (folder / f"dict.{language}.txt").write_bytes((fairseq / f"dict.{language}.txt").read_bytes())
    for side in ("source", "target"):
        (folder / f"{side}.spm").write_bytes((fairseq / "sentencepiece.model").read_bytes())
    pairs = bitext(30, seed=3)
    table = pa.table({"source_text": [cs for cs, _ in pairs], "reference": [en for _, en in pairs]})
    pq.write_table(table, folder / "held_out.parquet")
    return folder


def test_scores_are_sacrebleus() -> None:
    # The unigrams to 4-grams of an identical corpus all match.
    scores = score_hypotheses(["a dog runs in the park"], ["a dog runs in the park"])
    assert scores.bleu == pytest.approx(100)
    assert scores.chrf == pytest.approx(100)
    assert scores.bleu_signature.startswith("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:")
    assert scores.chrf_signature.startswith("nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:")
    # Precisions 5/6, 3/5, 1/4 and, smoothed, 1/6: (5/6 * 3/5 * 1/4 * 1/6) ** (1/4) = 0.37992.
    assert score_hypotheses(["a dog runs in the park"], ["a dog runs at the park"]).bleu == pytest.approx(
        100 * (5 / 6 * 3 / 5 * 1 / 4 * 1 / 6) ** 0.25
    )


@pytest.mark.parametrize(("hypotheses", "references"), [(["a"], ["a", "b"]), ([], [])])
def test_what_cannot_be_scored(hypotheses: list[str], references: list[str]) -> None:
    with pytest.raises(InputError, match="cannot be scored"):
        score_hypotheses(hypotheses, references)


def score(directory: Path, beam: int = 3, threads: int = 1, **changes: Any) -> Scores:
    parameters = NmtParameters.model_validate({"maximum_tokens": 30, **changes})
    return evaluate(
        directory / "fairseq" / "checkpoint.pt", directory, parameters, beam=beam, threads=threads
    )


def test_evaluation(directory: Path) -> None:
    scores = score(directory)
    assert 0 < scores.bleu <= 100
    assert scores == score(directory, threads=2)


def test_fairseq_gives_the_scores_of_ctranslate2(directory: Path) -> None:
    """What CTranslate2 does not run is decoded by fairseq; of what both run, both find the same."""
    assert score(directory, architecture={"kind": "lstm"}, beam=1) == score(directory, beam=1)


def test_hypotheses_are_bounded_by_the_sources(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def translate(*arguments: object, maximum_tokens: int, **options: object) -> list[list[str]]:
        seen.append(maximum_tokens)
        return [["a"]] * 30

    monkeypatch.setattr(validation, "translate_pieces", translate)
    sources = read_parquet(directory / "held_out.parquet")["source_text"].to_pylist()
    longest = max(map(len, load_processor(directory / "source.spm").encode(sources)))
    for maximum in (1000, 5):
        score(directory, beam=1, maximum_tokens=maximum)
    assert seen == [2 * longest + 10, 5]


PADDING = 1


def oracle(
    features: torch.Tensor, weight: torch.Tensor, target: torch.Tensor, epsilon: float
) -> tuple[torch.Tensor, torch.Tensor]:
    from fairseq.criterions.label_smoothed_cross_entropy import label_smoothed_nll_loss

    log_probabilities = torch.log_softmax(features @ weight.t(), dim=-1)
    loss, nll = label_smoothed_nll_loss(log_probabilities, target, epsilon, ignore_index=PADDING)
    return loss, nll


@pytest.mark.parametrize("epsilon", [0.0, 0.1])
@pytest.mark.parametrize("rows", [1, 7, 128, 300])
def test_loss_and_gradients_are_fairseqs(rows: int, epsilon: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(criterion, "ROWS_PER_BLOCK", 64)
    torch.manual_seed(rows)
    features = torch.randn(rows, 12, dtype=torch.float64).float().requires_grad_()
    weight = torch.randn(40, 12).requires_grad_()
    target = torch.randint(0, 40, (rows,))
    target[::5] = PADDING
    loss, nll = blockwise_label_smoothed_loss(features, weight, target, epsilon, PADDING)
    (2.5 * loss).backward()
    gradients = [features.grad, weight.grad]
    features.grad = weight.grad = None
    expected_loss, expected_nll = oracle(features, weight, target, epsilon)
    (2.5 * expected_loss).backward()
    torch.testing.assert_close(loss, expected_loss)
    torch.testing.assert_close(nll, expected_nll)
    torch.testing.assert_close(gradients, [features.grad, weight.grad], rtol=1e-4, atol=1e-5)
    assert not nll.requires_grad


def test_padding_has_no_gradient() -> None:
    features = torch.randn(4, 8, requires_grad=True)
    target = torch.tensor([3, PADDING, 4, PADDING])
    loss, _ = blockwise_label_smoothed_loss(features, torch.randn(10, 8), target, 0.1, PADDING)
    loss.backward()
    assert features.grad is not None
    assert features.grad[1].abs().max() == 0
    assert features.grad[0].abs().max() > 0


def test_bfloat16_is_near() -> None:
    torch.manual_seed(2)
    features, weight = torch.randn(200, 32), torch.randn(90, 32) * 0.2
    target = torch.randint(2, 90, (200,))
    exact, _ = blockwise_label_smoothed_loss(features, weight, target, 0.1, PADDING)
    narrow, _ = blockwise_label_smoothed_loss(features, weight, target, 0.1, PADDING, torch.bfloat16)
    assert abs(narrow - exact) / exact < 2e-3
