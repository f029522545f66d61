"""Final weights of a training, BLEU and chrF, and the criterion against fairseq's."""

import math
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from paraforge.translation.decoding.translator import DecodingOptions, Hypotheses, Hypothesis, Placement
from paraforge.translation.models.checkpoint import average_checkpoints, load_checkpoint, weights_only_state
from paraforge.translation.training import criterion, finishing, shortlist, validation
from paraforge.translation.training.criterion import blockwise_label_smoothed_loss
from paraforge.translation.training.finishing import finish_model
from paraforge.translation.training.parameters import NmtParameters
from paraforge.translation.training.training import TrainingResult
from paraforge.translation.training.training_run import TrainingRun
from paraforge.translation.training.validation import Scores, evaluate, score_hypotheses
from tests.translation.models.tiny import bitext
from tests.translation.training.test_training import Prepared, parameters


@pytest.fixture
def result(trained: TrainingRun, prepared: Prepared) -> TrainingResult:
    """A training whose second validation was the best."""
    history = [{**row, "bleu": bleu} for row, bleu in zip(trained.history, (1.0, 3.0, 2.0), strict=True)]
    return TrainingResult("maximum_updates", history, prepared[1])


@pytest.mark.parametrize(
    ("scores", "weights"),
    [((4.0, 4.0), "update 8"), *((one, "average of updates 8, 12") for one in ((4.0, 5.0), (0.5, 2.9)))],
)
def test_better_of_best_and_average_is_kept(
    tmp_path: Path,
    trained: TrainingRun,
    result: TrainingResult,
    monkeypatch: pytest.MonkeyPatch,
    scores: tuple[float, float],
    weights: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    given = iter(scores)

    def evaluate(*arguments: Any, **options: Any) -> Scores:
        assert options["beam"] == 3
        return Scores(bleu=next(given), chrf=7.0, bleu_signature="b", chrf_signature="c")

    monkeypatch.setattr(finishing, "evaluate", evaluate)
    description = finish_model(trained.directory, tmp_path, parameters(), result, threads=1)
    assert ("has learned almost nothing" in caplog.text) == (max(scores) < 3)
    assert description["trained_on"]["weights"] == weights
    assert description["trained_on"]["updates"] == 12
    assert description["metrics"] == {
        "rows": result.prepared.held_out, "beam": 3, "bleu": max(scores), "chrf": 7.0,
        "bleu_signature": "b", "chrf_signature": "c",
    }  # fmt: skip
    snapshots = [trained.directory / "snapshots" / f"update-{update:08d}.pt" for update in (8, 12)]
    best = weights_only_state(load_checkpoint(snapshots[0]))
    expected = average_checkpoints(snapshots) if "average" in weights else best
    written = load_checkpoint(tmp_path / "fairseq" / "checkpoint.pt")["model"]
    assert written.keys() == expected["model"].keys()
    assert all(torch.equal(written[name], expected["model"][name]) for name in written)


@pytest.mark.full
def test_large_vocabulary_gets_shortlist(
    tmp_path: Path, trained: TrainingRun, result: TrainingResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores = Scores(bleu=5.0, chrf=7.0, bleu_signature="b", chrf_signature="c")
    monkeypatch.setattr(finishing, "evaluate", lambda *arguments, **options: scores)
    found = []
    for fewest in (1000, 10):
        monkeypatch.setattr(shortlist, "FEWEST_TYPES", fewest)
        (output := tmp_path / str(fewest)).mkdir()
        description = finish_model(trained.directory, output, parameters(), result, threads=1)
        found.append((description["fingerprint"], "ctranslate2/vmap.txt" in description["files"]))
    assert [has for _, has in found] == [False, True]
    assert found[0][0] != found[1][0]
    lines = (output / "ctranslate2" / "vmap.txt").read_text(encoding="utf-8").splitlines()
    likely = {source: pieces.split() for source, _, pieces in (line.partition("\t") for line in lines)}
    assert likely["▁pes"][0] == "▁pes" and likely["▁pes"][1] == "▁dog"


@pytest.fixture
def directory(tiny_fairseq: Path, tmp_path: Path) -> Path:
    for name in ("checkpoint.pt", "dict.cs.txt", "dict.en.txt"):
        shutil.copy(tiny_fairseq / name, tmp_path)
    for side in ("source", "target"):
        shutil.copy(tiny_fairseq / "sentencepiece.model", tmp_path / f"{side}.spm")
    write_held_out(tmp_path, bitext(30, seed=3))
    return tmp_path


def write_held_out(folder: Path, pairs: list[tuple[str, str]]) -> None:
    table = pa.table({"source_text": [cs for cs, _ in pairs], "reference": [en for _, en in pairs]})
    pq.write_table(table, folder / "held_out.parquet")


def test_scores_match_sacrebleu() -> None:
    # The unigrams to 4-grams of an identical corpus all match.
    scores = score_hypotheses(["a dog runs in the park"], ["a dog runs in the park"])
    assert scores.bleu == pytest.approx(100)
    assert scores.chrf == pytest.approx(100)
    assert scores.bleu_signature.startswith("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:")
    assert scores.chrf_signature.startswith("nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:")
    # All n-grams match; the brevity penalty is exp(1 - 6 / 4), of hypotheses and not of references.
    short, long = ["a dog runs in"], ["a dog runs in the park"]
    assert score_hypotheses(short, long).bleu == pytest.approx(100 * math.exp(-0.5))
    # chrF counts recall twice as much as precision.
    assert score_hypotheses(short, long).chrf < score_hypotheses(long, short).chrf - 10


def score(directory: Path, beam: int = 3, threads: int = 1, **changes: Any) -> Scores:
    parameters = NmtParameters.model_validate({"maximum_tokens": 30, **changes})
    return evaluate(directory / "checkpoint.pt", directory, parameters, beam=beam, threads=threads)


@pytest.mark.full
def test_evaluation_does_not_depend_on_engine(directory: Path) -> None:
    """fairseq decodes models that CTranslate2 cannot run. For models that both can run, both give the same
    result.
    """
    scores = score(directory, beam=1)
    assert 0 < scores.bleu <= 100
    assert scores == score(directory, threads=2, beam=1)
    assert scores == score(directory, architecture={"kind": "lstm"}, beam=1)


@pytest.mark.parametrize(("kind", "maximum", "longest"), [("transformer", 1000, 16), ("lstm", 5, 5)])
def test_validation_uses_beam_and_length_limit(
    kind: str, maximum: int, longest: int, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Opened:
        def __init__(self, engine: str, model: Any, options: DecodingOptions, placement: Placement) -> None:
            assert engine == {"transformer": "ctranslate2", "lstm": "fairseq"}[kind]
            files = {path.name for path in model.folders[engine].glob("*")}
            assert files == ({"checkpoint.pt", "dict.cs.txt", "dict.en.txt"} if kind == "lstm" else set())
            assert (options.beam, options.maximum_target_tokens, placement.threads) == (3, longest, 2)

        def translate(self, sentences: list[str]) -> list[Hypotheses]:
            return [Hypotheses((Hypothesis(text, -1.0, 1),) if text != "pes" else ()) for text in sentences]

    monkeypatch.setattr(validation, "open_translator", Opened)
    monkeypatch.setattr(validation, "convert_fairseq", lambda *_: None)
    write_held_out(directory, [("pes spí dům", "pes spí velký dům"), ("pes", "dog")])  # of three pieces, one
    found = score(directory, threads=2, maximum_tokens=maximum, architecture={"kind": kind})
    assert found == score_hypotheses(["pes spí dům", ""], ["pes spí velký dům", "dog"])


PADDING = 1


def oracle(features: torch.Tensor, weight: torch.Tensor, target: torch.Tensor, epsilon: float) -> Any:
    from fairseq.criterions.label_smoothed_cross_entropy import label_smoothed_nll_loss

    log_probabilities = torch.log_softmax(features @ weight.t(), dim=-1)
    return label_smoothed_nll_loss(log_probabilities, target, epsilon, ignore_index=PADDING)


@pytest.mark.parametrize("epsilon", [0.0, 0.1])
@pytest.mark.parametrize("rows", [1, 7, 128, 300])
def test_loss_and_gradients_match_fairseq(rows: int, epsilon: float, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_bfloat16_loss_is_close() -> None:
    torch.manual_seed(2)
    features, weight = torch.randn(200, 32), torch.randn(90, 32) * 0.2
    target = torch.randint(2, 90, (200,))
    exact, _ = blockwise_label_smoothed_loss(features, weight, target, 0.1, PADDING)
    narrow, _ = blockwise_label_smoothed_loss(features, weight, target, 0.1, PADDING, torch.bfloat16)
    assert abs(narrow - exact) / exact < 2e-3
