"""The copy that is trained for a task: the model's vectors, the task's vocabulary."""

import numpy as np
import pytest
import torch

from paraforge.base.text.idf import Background
from paraforge.base.text.vocabulary import UNKNOWN
from paraforge.base.word_vectors.vectors import WordVectors
from paraforge.embeddings.encoders.parameters import AverageParameters
from paraforge.embeddings.evaluation.averages import Weighting, WordAverage
from paraforge.papers.transfer.training import average_as_encoder, start_model
from tests.embeddings.trainer.equations import PARAMETERS
from tests.papers.transfer.models import make_model, snapshot

TRAINING = ["word1x word2x new", "word1x new word3x", "rare", ""]
_SIF = Weighting("sif", Background("some", 90, {"a": 40, "b": 7}))
OTHER = ["word4x", "only here only", "rare new word1x word2x"]


@pytest.mark.parametrize("name", PARAMETERS)
def test_the_trained_start_has_the_models_vectors(name: str) -> None:
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


def test_the_vocabulary_is_the_tasks() -> None:
    model = make_model()
    copied = start_model(model, TRAINING, OTHER, "trained", 1)
    assert copied.vocabularies["word"].units == [UNKNOWN, "new", "word1x", "word2x", "word3x", "word4x"]
    # What the training texts have once, or only the others, has no vector of its own.


@pytest.mark.parametrize("name", ["word", "identity_rnn", "blstm"])
def test_the_random_start_depends_on_the_seed_alone(name: str) -> None:
    model = make_model(PARAMETERS[name])
    first, again, other = (
        snapshot(start_model(model, TRAINING, OTHER, "random", seed)) for seed in (1, 1, 2)
    )
    assert all(torch.equal(value, again[name]) for name, value in first.items())
    tables = {name for name in first if name.endswith("table")}
    assert not any(torch.equal(first[name], other[name]) for name in tables)
    if name == "identity_rnn":  # its other parameters always start as the identity
        return
    for parameter in first.keys() - tables:
        fixed = ("bias", "weights", "weight_hh") if "rnn" in name else ("bias", "weights")
        starts_the_same = parameter.rpartition(".")[2].startswith(fixed)
        assert torch.equal(first[parameter], other[parameter]) == starts_the_same, parameter


def test_a_random_start_is_weighted_by_the_training_texts() -> None:
    """a / (a + p) with p of the training texts: 7 words, of which word1x and new are two each."""
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
def test_an_average_as_an_encoder(weighting: Weighting | None, unknown: bool, components: int) -> None:
    words = ["b", "a", *([UNKNOWN] if unknown else []), "c", "d"]
    table = np.random.default_rng(1).normal(size=(len(words), 5)).astype(np.float32)
    average = WordAverage(WordVectors(words, table), weighting)
    texts = ["a b c", "c", "", "d d a", "b a", *(["neither a"] if unknown else [])]
    if components:
        average = average.fitted_to(texts, components)
    encoder = average_as_encoder(average, texts)
    np.testing.assert_allclose(encoder.encode(texts), average.encode(texts), atol=1e-6)
    assert not encoder.encode(["never seen"]).any() or unknown
