"""End-to-end training against slow equations."""

import math
from collections.abc import Callable
from functools import partial
from unittest.mock import Mock

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
import torch
from torch import Tensor

from paraforge.base.errors import ParaforgeError
from paraforge.base.text.idf import Background
from paraforge.base.text.vocabulary import UNKNOWN
from paraforge.base.word_vectors.vectors import WordVectors
from paraforge.embeddings.encoders.parameters import AverageParameters, CombinationParameters
from paraforge.embeddings.evaluation.averages import Weighting, WordAverage
from paraforge.embeddings.learning.loop import Record
from paraforge.embeddings.trainer.model import SentenceModel
from paraforge.papers.transfer import training
from paraforge.papers.transfer.evaluate import do_task
from paraforge.papers.transfer.tasks import Examples, Kind, Task
from paraforge.papers.transfer.training import (
    ClassifierTraining,
    FineTuningParameters,
    SigmoidSoftmax,
    Split,
    TaskNetwork,
    average_as_encoder,
    expected_score,
    fine_tune,
    held_out_pairs,
    start_model,
    target_distribution,
)
from tests.embeddings.trainer.equations import PARAMETERS
from tests.papers.transfer.models import WORDS, make_model, related, sentiment, snapshot

KINDS = ["word", "dan_2_tanh", "lstm_last", "addition"]


def prepared(
    name: str,
    examples: Examples,
    targets: npt.NDArray[np.float64],
    parameters: FineTuningParameters,
    seed: int = 1,
) -> tuple[SentenceModel, ClassifierTraining]:
    """In float64, away from the start, so that penalties have a gradient."""
    model = make_model(PARAMETERS[name])
    model.encoder.double()
    sentences = model.batch(pa.array(examples.texts))
    generator = torch.Generator().manual_seed(1)
    pairs = examples.second is not None
    size = parameters.projection or model.dimension
    over = SigmoidSoftmax(size * (1 + pairs), 3, targets.shape[1], generator)
    projection = torch.nn.Linear(model.dimension, size, bias=False) if parameters.projection else None
    network = TaskNetwork(model.encoder, pairs, sentences, over, projection)
    predict = partial(network.of_examples, sentences)
    training = ClassifierTraining(network, predict, torch.from_numpy(targets), parameters, seed)
    with torch.no_grad():
        for value in network.parameters():
            value.add_(torch.randn(value.shape, generator=generator, dtype=torch.float64), alpha=0.1)
    return model, training


def targets_of(examples: Examples) -> npt.NDArray[np.float64]:
    if examples.second is not None:
        return target_distribution(np.array(examples.labels, dtype=np.float64))
    classes = sorted(set(examples.labels))
    return np.array([[float(label == name) for name in classes] for label in examples.labels])


def plain_loss(
    training: ClassifierTraining,
    vectors: npt.NDArray[np.float64],
    targets: npt.NDArray[np.float64],
    rows: list[int],
) -> float:
    """W16 Eq. 12-14 of sentence vectors: one example and one class after the other."""
    network = training.module
    weights = {name: value.detach().numpy() for name, value in network.network.named_parameters()}
    mean, deviation = network.mean.numpy(), network.deviation.numpy()
    total = 0.0
    for row in rows:
        features = list(vectors[row])
        if network.pairs:
            u, v = vectors[row], vectors[row + len(targets)]
            features = [abs(a - b) for a, b in zip(u, v, strict=True)]
            features += [a * b for a, b in zip(u, v, strict=True)]
        inputs = [(x - m) / d for x, m, d in zip(features, mean, deviation, strict=True)]
        hidden = []
        for weight, bias in zip(weights["hidden.weight"], weights["hidden.bias"], strict=True):
            hidden.append(1 / (1 + math.exp(-sum(w * x for w, x in zip(weight, inputs, strict=True)) - bias)))
        logits = []
        for weight, bias in zip(weights["output.weight"], weights["output.bias"], strict=True):
            logits.append(sum(w * h for w, h in zip(weight, hidden, strict=True)) + bias)
        normalizer = sum(math.exp(logit) for logit in logits)
        for target, logit in zip(targets[row], logits, strict=True):
            if target > 0:
                total += target * (math.log(target) - math.log(math.exp(logit) / normalizer))
    return total / len(rows)


@pytest.mark.parametrize(
    ("name", "make", "projection"),
    [(name, (sentiment, related)[k % 2], (None, 5)[k // 2]) for k, name in enumerate(KINDS)],
)
def test_transfer_loss_matches_paper(
    name: str, make: Callable[[int, int], Examples], projection: int | None
) -> None:
    examples = make(12, 1)
    targets = targets_of(examples)
    model, training = prepared(name, examples, targets, FineTuningParameters(projection=projection))
    rows = [7, 2, 9, 2]
    with torch.no_grad():
        vectors = model.encoder(model.batch(pa.array(examples.texts))).numpy()
    if projection is not None:
        vectors = vectors @ training.module.get_parameter("projection.weight").detach().numpy().T
    expected = plain_loss(training, vectors, targets, rows)
    assert training.loss(torch.tensor(rows)).item() == pytest.approx(expected, rel=1e-9)


def test_target_distribution_has_score_as_mean() -> None:
    """Equation 13 is computed for one score and one class at a time."""
    scores = np.concatenate([np.random.default_rng(1).uniform(1, 5, 200), [1, 2, 3, 4, 5]])
    for score, found in zip(scores, target_distribution(scores), strict=True):
        expected = [0.0] * 5
        for i in range(1, 6):
            if i == math.floor(score) + 1:
                expected[i - 1] = score - math.floor(score)
            elif i == math.floor(score):
                expected[i - 1] = math.floor(score) - score + 1
        np.testing.assert_allclose(found, expected, atol=1e-15)
        assert sum(i * p for i, p in enumerate(found, start=1)) == pytest.approx(score)


@pytest.mark.parametrize(("name", "projection"), [(name, (None, 3)[k % 2]) for k, name in enumerate(KINDS)])
def test_transfer_gradients_match_finite_differences(name: str, projection: int | None) -> None:
    examples = related(10, 2)
    settings = FineTuningParameters(
        lambda_classifier=0.3, lambda_words=0.7, lambda_composition=0.5, projection=projection
    )
    model = make_model(PARAMETERS[name])
    start = {f"encoder.{key}": value.double() for key, value in snapshot(model).items()}
    tables = {f"encoder.{key}" for key in model.encoder.tables()}
    _, training = prepared(name, examples, targets_of(examples), settings)
    rows = torch.tensor([3, 1, 8])
    parameters = dict(training.module.named_parameters())

    @torch.no_grad()
    def objective() -> float:
        total = training.loss(rows).item()
        for key, value in parameters.items():
            if not key.startswith("encoder."):
                total += 0.3 * float(value.square().sum())
            else:
                weight = 0.7 if key in tables else 0.5
                total += weight * float((value - start[key]).square().sum())
        return total

    loss, gradients = training.gradients(rows)
    assert float(loss) == pytest.approx(training.loss(rows).item())
    assert gradients.keys() == parameters.keys()
    generator, step = np.random.default_rng(1), 1e-6
    for key, value in parameters.items():
        flat, gradient = value.detach().view(-1), gradients[key].reshape(-1)
        for place in generator.choice(len(flat), min(4, len(flat)), replace=False).tolist():
            before = float(flat[place])
            values = []
            for sign in (1, -1):
                flat[place] = before + sign * step
                values.append(objective())
            flat[place] = before
            assert float(gradient[place]) == pytest.approx((values[0] - values[1]) / (2 * step), abs=2e-7)


def split_of(
    kind: Kind, train: Examples, development: Examples | None = None, test: Examples | None = None
) -> Split:
    return Split(kind, train, development or train, test or train)


def test_fine_tuning_learns_beyond_fixed_vectors() -> None:
    """In two dimensions, no plane separates the good ones of the forty words from the bad ones."""
    train, development, test = sentiment(400, 1), sentiment(100, 2), sentiment(200, 3)
    model = make_model()
    assert do_task(model, Task("x", "classification", train, development, test, "test")).accuracy < 70
    settings = FineTuningParameters(learning_rate=0.02, epochs=12)
    fitted = fine_tune(model, split_of("classification", train, development, test), [settings], 1)
    assert np.mean(fitted.predictions == np.array(test.labels)) > 0.93
    assert fitted.development_score > 93


def distance(model: SentenceModel, split: Split, settings: FineTuningParameters) -> float:
    """How far training moves the vectors of sentences, root mean square."""
    trained = fine_tune(model, split, [settings], 1).model
    before, after = (item.encode(split.train.texts) for item in (model, trained))
    return float(np.sqrt(np.mean((after - before) ** 2)))


@pytest.mark.full
@pytest.mark.parametrize(("name", "optimizer"), [("lstm", "adam"), ("projection", "adagrad")])
def test_growing_penalty_restores_model_parameters(name: str, optimizer: str) -> None:
    model = make_model(PARAMETERS[name])
    split = split_of("classification", sentiment(200, 1))
    moved = []
    for penalty in (0, 1e-2, 1, 1e6):
        penalties = {"lambda_words": penalty, "lambda_composition": penalty}
        settings = FineTuningParameters(optimizer=optimizer, learning_rate=0.01, epochs=8, **penalties)
        moved.append(distance(model, split, settings))
    assert moved[0] > moved[1] > moved[2] > moved[3]
    # Adam's steps have the size of its learning rate however steep the way back is, so it swings a little.
    assert moved[3] < (5e-3 if optimizer == "adam" else 1e-4)
    assert moved[0] > 20 * moved[3]


@pytest.mark.parametrize(("name", "start"), [("word", "random"), ("concatenation", "trained")])
def test_seed_determines_result_and_model_is_unchanged(name: str, start: str) -> None:
    model = make_model(PARAMETERS[name])
    before = snapshot(model)
    units = {unit: list(vocabulary.units) for unit, vocabulary in model.vocabularies.items()}
    split = split_of("relatedness", related(60, 1), related(20, 2), related(30, 3))
    settings = FineTuningParameters.model_validate({"start": start, "epochs": 2, "learning_rate": 0.01})
    first, again, other = (fine_tune(model, split, [settings], seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.predictions, again.predictions)
    assert all(torch.equal(value, snapshot(again.model)[key]) for key, value in snapshot(first.model).items())
    assert not np.array_equal(first.predictions, other.predictions)
    assert all(torch.equal(value, before[key]) for key, value in snapshot(model).items())
    assert {unit: vocabulary.units for unit, vocabulary in model.vocabularies.items()} == units
    assert not model.encoder.training
    assert all(value.grad is None for value in model.encoder.parameters())


@pytest.mark.parametrize("whole", [True, False])
def test_fixed_encoder_is_unchanged_while_layers_learn(whole: bool) -> None:
    """Either the whole encoder is fixed, or only its vectors."""
    settings = FineTuningParameters(
        encoder="fixed" if whole else "trained",
        projection=20,
        epochs=20,
        learning_rate=0.02,
        lambda_words=0.1,
    )
    model = make_model(AverageParameters(dimension=16, fixed=not whole))
    split = split_of("classification", sentiment(200, 1), sentiment(50, 2), sentiment(100, 3))
    fitted = fine_tune(model, split, [settings], 1)
    ids = model.vocabularies["word"].ids_of(fitted.model.vocabularies["word"].units)
    table = fitted.model.encoder.get_parameter("table").detach()
    assert torch.equal(table, model.encoder.get_parameter("table").detach()[ids])
    assert np.mean(fitted.predictions == np.array(split.test.labels)) > 0.7


def test_development_examples_select_settings() -> None:
    split = split_of("classification", sentiment(300, 1), sentiment(100, 2), sentiment(100, 3))
    slow, fast = FineTuningParameters(learning_rate=1e-6), FineTuningParameters(learning_rate=0.02)
    alone = [fine_tune(make_model(), split, [settings], 1) for settings in (slow, fast)]
    assert alone[0].development_score < alone[1].development_score
    both = fine_tune(make_model(), split, [slow, fast], 1)
    assert both.parameters == fast
    assert both.epoch == alone[1].epoch
    np.testing.assert_array_equal(both.predictions, alone[1].predictions)


def test_undefined_development_score_ranks_last(monkeypatch: pytest.MonkeyPatch) -> None:
    fits = iter([Mock(development_score=score) for score in (None, -20.0, -10.0, None)])
    monkeypatch.setattr("paraforge.papers.transfer.training._fit", lambda *_: next(fits))
    assert fine_tune(Mock(), Mock(), [FineTuningParameters()] * 4, 1).development_score == -10


def test_best_epoch_is_used() -> None:
    """Training examples contradict the development examples, so the first epoch is the best."""
    train, opposite = sentiment(200, 1), sentiment(50, 2)
    names = sorted(set(train.labels))
    opposite = Examples(opposite.first, None, [names[1 - names.index(label)] for label in opposite.labels])
    split = split_of("classification", train, opposite, sentiment(20, 3))
    assert fine_tune(make_model(), split, [FineTuningParameters(epochs=4, learning_rate=0.02)], 1).epoch == 1


def test_texts_without_tokens_and_unseen_labels() -> None:
    blank = Examples(["", " ", WORDS[0], WORDS[1]], None, ["a", "b", "a", "b"])
    test = Examples([WORDS[0], WORDS[1]], None, ["c", "a"])
    for name in ("word", "lstm"):
        settings = FineTuningParameters(batch_size=1, epochs=8, learning_rate=0.1)
        split = split_of("classification", blank, blank, test)
        fitted = fine_tune(make_model(PARAMETERS[name]), split, [settings], 1)
        assert fitted.predictions.tolist() == ["a", "b"]


def test_encoder_knows_words_of_all_examples() -> None:
    train, *others = (Examples([word, "other"], None, ["a", "b"]) for word in WORDS[:3])
    split = split_of("classification", train, *others)
    fitted = fine_tune(make_model(), split, [FineTuningParameters(epochs=1)], 1)
    assert fitted.model.vocabularies["word"].units[1:] == WORDS[:3]


def test_non_finite_loss_ends_training() -> None:
    settings = FineTuningParameters(learning_rate=1e38)
    with pytest.raises(ParaforgeError, match=r"the training diverged"):
        fine_tune(make_model(), split_of("classification", sentiment(60, 1)), [settings], 1)


def test_new_words_are_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model knows none of the words, so only new vectors can distinguish them."""
    model = make_model(words=["other"])
    split = split_of("classification", sentiment(400, 1), sentiment(100, 2), sentiment(200, 3))
    settings = FineTuningParameters(learning_rate=0.02, epochs=12)
    trained = fine_tune(model, split, [settings], 1)
    monkeypatch.setattr(training, "NEW_UNITS", 10_000)
    unknown = fine_tune(model, split, [settings], 1)
    accuracy = [np.mean(fitted.predictions == np.array(split.test.labels)) for fitted in (trained, unknown)]
    assert accuracy[0] > 0.85
    assert accuracy[1] < 0.65


def test_standardized_features_ignore_vector_scale() -> None:
    def first(scale: float) -> Tensor:
        model = make_model()
        with torch.no_grad():
            model.encoder.get_parameter("table").mul_(scale)
        sentences = model.batch(pa.array(sentiment(50, 1).first))
        over = SigmoidSoftmax(2, 3, 2, torch.Generator().manual_seed(1))
        return TaskNetwork(model.encoder, False, sentences, over).of_sentences(sentences)

    torch.testing.assert_close(first(1.0), first(64.0), rtol=1e-4, atol=1e-5)


def test_expected_score_matches_target_distribution() -> None:
    scores = np.array([1.0, 2.3, 4.5, 5.0])
    distribution = torch.from_numpy(target_distribution(scores))
    assert expected_score(distribution.log()) == pytest.approx(scores)


def test_epochs_shuffle_all_examples() -> None:
    examples = related(10, 2)
    settings = FineTuningParameters(epochs=3, batch_size=4)
    _, training = prepared("word", examples, targets_of(examples), settings)
    assert training.optimizer.learning_rate == 0.001
    _, other = prepared(
        "word", examples, targets_of(examples), settings.model_copy(update={"optimizer": "adagrad"}), 2
    )
    assert other.optimizer.learning_rate == 0.05
    batches = [rows.tolist() for rows in training.batches(Record())]
    assert [len(rows) for rows in batches] == [4, 4, 2] * 3
    assert [rows.tolist() for rows in other.batches(Record())] != batches
    epochs = [[row for rows in batches[first : first + 3] for row in rows] for first in (0, 3, 6)]
    assert all(sorted(epoch) == list(range(10)) for epoch in epochs) and epochs[0] != epochs[1] != epochs[2]


def test_projection_starts_uniform(monkeypatch: pytest.MonkeyPatch) -> None:
    modules = []

    def noted(module: torch.nn.Module, *others: object) -> ClassifierTraining:
        modules.append(module.get_parameter("projection.weight").detach().clone())
        return ClassifierTraining(module, *others)

    monkeypatch.setattr(training, "ClassifierTraining", noted)
    settings = FineTuningParameters(projection=400, epochs=1)
    for seed in (1, 2):
        fine_tune(make_model(), split_of("classification", sentiment(8, 1)), [settings], seed)
    (first, second), bound = modules, make_model().dimension ** -0.5
    assert 0.98 * bound < float(first.abs().max()) <= bound and not torch.equal(first, second)


@pytest.mark.parametrize("pairs", [2, 10, 101])
def test_training_excludes_held_out_pairs(pairs: int) -> None:
    trained, held = held_out_pairs(pairs, 1)
    assert sorted([*trained, *held]) == list(range(pairs)) and len(held) == max(1, pairs // 10)
    assert held.tolist() == held_out_pairs(pairs, 1)[1].tolist()
    assert pairs < 10 or held.tolist() != held_out_pairs(pairs, 2)[1].tolist()


def test_nearly_constant_feature_scale_is_limited() -> None:
    """A constant feature is not divided."""
    model, examples = make_model(AverageParameters(dimension=3)), sentiment(40, 1)
    with torch.no_grad():
        model.encoder.get_parameter("table")[:, 0] *= 1e-6
        model.encoder.get_parameter("table")[:, 1] = 0.25
    sentences = model.batch(pa.array(examples.texts))
    features = model.encoder(sentences).detach()
    network = TaskNetwork(model.encoder, False, sentences, SigmoidSoftmax(3, 2, 2, torch.Generator()))
    expected = [float(features.square().mean().sqrt()) / 10, 1, float(features[:, 2].std(correction=0))]
    assert network.deviation.tolist() == pytest.approx(expected)
    first, second = features.chunk(2)
    both = TaskNetwork(model.encoder, True, sentences, SigmoidSoftmax(6, 2, 2, torch.Generator()))
    for place, kind in ((0, first - second), (3, first * second)):  # each kind by its own usual size
        assert both.deviation[place] == pytest.approx(float(kind.square().mean().sqrt()) / 10)


TRAINING = ["word1x word2x new", "word1x new word3x", "rare", ""]
_SIF = Weighting("sif", Background("some", 90, {"a": 40, "b": 7}))
OTHER = ["word4x", "only here only", "rare new word1x word2x"]


@pytest.mark.parametrize("name", PARAMETERS)
def test_trained_start_uses_model_vectors(name: str) -> None:
    model = make_model(PARAMETERS[name])
    with torch.no_grad():  # some parameters start the same whatever the model: as ones, or as the identity
        for value in model.encoder.parameters():
            value.add_(0.1 * torch.rand(value.shape, generator=torch.Generator().manual_seed(1)))
    before = snapshot(model)
    copied = start_model(model, TRAINING, OTHER, "trained", 1)
    np.testing.assert_array_equal(copied.encode(TRAINING + OTHER), model.encode(TRAINING + OTHER))
    with torch.no_grad():
        for value in copied.encoder.parameters():
            value.add_(1)
    assert all(torch.equal(value, before[name]) for name, value in model.encoder.named_parameters())


def test_vocabulary_comes_from_task() -> None:
    model = make_model()
    copied = start_model(model, TRAINING, OTHER, "trained", 1)
    assert copied.vocabularies["word"].units == [UNKNOWN, "new", "word1x", "word2x", "word3x", "word4x"]
    # What the training texts have once, or only the others, has no vector of its own.


@pytest.mark.parametrize("name", ["word", "identity_rnn", "blstm"])
def test_random_start_depends_only_on_seed(name: str) -> None:
    model = make_model(PARAMETERS[name])
    starts = [start_model(model, TRAINING, OTHER, "random", seed) for seed in (1, 1, 2)]
    first, again, other = map(snapshot, starts)
    assert all(torch.equal(value, again[name]) for name, value in first.items())
    tables = {name for name in first if name.endswith("table")}
    assert not any(torch.equal(first[name], other[name]) for name in tables)
    if name == "identity_rnn":  # its other parameters always start as the identity
        return
    for parameter in first.keys() - tables:
        fixed = ("bias", "weights", "weight_hh") if "rnn" in name else ("bias", "weights")
        starts_the_same = parameter.rpartition(".")[2].startswith(fixed)
        assert torch.equal(first[parameter], other[parameter]) == starts_the_same, parameter


def test_random_start_draws_tables_separately() -> None:
    two = CombinationParameters(kind="concatenation", parts=[AverageParameters(dimension=3)] * 2)
    tables = snapshot(start_model(make_model(two), TRAINING, OTHER, "random", 1)).values()
    assert len(tables) == len({float(table[0, 0]) for table in tables}) == 2


def test_random_start_uses_training_text_weights() -> None:
    """Weights are a / (a + p), p from the training texts. Of their 7 words, word1x and new appear twice."""
    a = 0.1
    plain, weighted = (
        start_model(
            make_model(AverageParameters(dimension=2, initial_frequency=value)), TRAINING, OTHER, "random", 1
        )
        for value in (None, a)
    )
    # The unknown unit stands for rare; word4x is in no training text.
    counts = {UNKNOWN: 1, "new": 2, "word1x": 2, "word2x": 1, "word3x": 1, "word4x": 0}
    assert plain.vocabularies["word"].units == list(counts)
    expected = [a / (a + count / 7) for count in counts.values()]
    ratio = weighted.encoder.get_parameter("table") / plain.encoder.get_parameter("table")
    np.testing.assert_allclose(ratio.detach().mean(dim=1), expected, rtol=1e-5)
    no_words = start_model(make_model(), [""], ["word1x"], "random", 1)
    assert no_words.encoder.get_parameter("table").isfinite().all()


@pytest.mark.parametrize(
    ("weighting", "unknown", "components"), [(None, True, 2), (_SIF, False, 2), (_SIF, True, 0)]
)
def test_average_as_encoder(weighting: Weighting | None, unknown: bool, components: int) -> None:
    words = ["b", "a", *([UNKNOWN] if unknown else []), "c", "d"]
    table = np.random.default_rng(1).normal(size=(len(words), 5)).astype(np.float32)
    average = WordAverage(WordVectors(words, table), weighting)
    texts = ["a b c", "c", "", "d d a", "b a", *(["neither a"] if unknown else [])]
    if components:
        average = average.fitted_to(texts, components)
    encoder = average_as_encoder(average, texts)
    np.testing.assert_allclose(encoder.encode(texts), average.encode(texts), atol=1e-6)
    assert not encoder.encode(["never seen"]).any() or unknown
