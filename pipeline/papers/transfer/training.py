"""Trains classifiers for transfer tasks, on fixed sentence vectors or together with the encoder.

See Wieting 2016 (W16), 4.4 and Eq. 12-14, and Tai 2015.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import torch
from pydantic import Field
from torch import Tensor, nn

from paraforge.base.devices import torch_threads
from paraforge.base.section import Section
from paraforge.base.text.units import make_units
from paraforge.base.text.vocabulary import UNKNOWN, WORD, Vocabulary
from paraforge.base.word_vectors.vectors import FloatArray
from paraforge.embeddings.encoders.encoder import Encoder, build_encoder
from paraforge.embeddings.encoders.parameters import AverageParameters, VectorParameters
from paraforge.embeddings.evaluation.averages import WordAverage
from paraforge.embeddings.evaluation.comparing import pearson, spearman
from paraforge.embeddings.learning.batches import TokenBatch
from paraforge.embeddings.learning.loop import Record, Task, Trainer, TrainingStep
from paraforge.embeddings.learning.optimizers import AdaGrad, Adam, Optimizer, separate
from paraforge.embeddings.trainer.initial import initial_table
from paraforge.embeddings.trainer.mega_batches import encode
from paraforge.embeddings.trainer.model import SentenceModel
from paraforge.embeddings.trainer.schedule import ORDER, generator_for
from paraforge.papers.transfer.tasks import Examples, Kind

Start = Literal["trained", "random"]
PATIENCE: Final = 3
"""Training ends after this many epochs without a gain on the development examples."""
HIDDEN: Final = 50
"""Size of the layer between sentence vectors and classes (Tai 2015)."""
NEW_UNITS: Final = 2
"""A unit that the model does not know gets its own vector if it is this often in the training examples."""


class FineTuningParameters(Section):
    """The start, optimizer and penalties of one training."""

    start: Start = Field(
        "trained",
        description="start from the model's own parameters, or from random ones of the same architecture",
    )
    epochs: int = Field(10, ge=1, description="most passes over the training examples")
    batch_size: int = Field(25, ge=1, description="examples in a mini-batch")
    encoder: Literal["trained", "fixed"] = Field(
        "trained", description="fixed: train only the layers above the sentence vectors"
    )
    projection: int | None = Field(
        None, ge=1, description="size of a linear layer over the sentence vectors; null: none"
    )
    optimizer: Literal["adam", "adagrad"] = Field("adam", description="Adam or AdaGrad")
    learning_rate: float | None = Field(
        None, gt=0, description="learning rate; null: 0.001 for Adam, 0.05 for AdaGrad, as in the paper"
    )
    lambda_classifier: float = Field(
        1e-4, ge=0, description="L2 penalty for the layers above the sentence vectors"
    )
    lambda_words: float = Field(
        0.0, ge=0, description="L2 penalty for changes of the vectors of words or other units"
    )
    lambda_composition: float = Field(
        0.0, ge=0, description="L2 penalty for changes of the encoder's other parameters"
    )


def average_as_encoder(average: WordAverage, texts: Sequence[str]) -> SentenceModel:
    """Return an encoder that computes an average of word vectors: the mean of rows of a table.

    The rows are the words' weighted vectors without the common components.
    texts: the table has the words of these texts. Other words, and words without a vector, are unknown; they
        get the unknown word's vector or zeros, and, unlike in the average, count in the sentence's length.
    """
    (cut,) = make_units(WORD).cut(pa.array(texts, pa.string()))
    known = average.vectors.rows(cut.vocabulary) >= 0
    units = [UNKNOWN, *sorted(word for word, has in zip(cut.vocabulary, known, strict=True) if has)]
    table = average.weighted(units)
    table -= (table @ average.components.T) @ average.components
    parameters = AverageParameters(dimension=average.dimension)
    encoder = build_encoder(parameters, lambda part, number: torch.from_numpy(table), seed=0)
    return SentenceModel(encoder, parameters, {WORD: Vocabulary(units)})


def start_model(
    model: SentenceModel,
    training_texts: Sequence[str],
    other_texts: Sequence[str],
    start: Start,
    seed: int,
) -> SentenceModel:
    """Return a model of the same architecture for the units of a task. The given model is not changed.

    Rows that no text of the task uses are dropped, so that updates of whole tables are fast. A unit that the
    model does not know gets its own row, a copy of the unknown unit's row, if it occurs at least `NEW_UNITS`
    times in the training texts.

    other_texts: texts of development and test examples; only units that the model knows are taken from them.
    start: `trained` copies the model's parameters, `random` initializes them from the seed.
    """
    vocabularies: dict[str, Vocabulary] = {}
    counts: dict[str, npt.NDArray[np.int64]] = {}
    texts = [pa.array(some, pa.string()) for some in (training_texts, other_texts)]
    for unit, known in model.vocabularies.items():
        cut = make_units(unit, model.sentencepiece_model).cut(*texts)
        training, other = (column.occurrences() for column in cut)
        own = {text for text in training.keys() | other.keys() if text in known}
        own |= {text for text, times in training.items() if times >= NEW_UNITS}
        units = sorted(own - {known.unknown})
        vocabularies[unit] = Vocabulary([known.unknown, *units], known.unknown)
        in_training = [training.get(text, 0) for text in units]
        counts[unit] = np.array([sum(training.values()) - sum(in_training), *in_training])

    def table(part: VectorParameters, number: int) -> Tensor:
        if start == "random":
            return initial_table(part, counts[part.unit], seed + number)
        return torch.empty(len(vocabularies[part.unit]), part.dimension)

    encoder = build_encoder(model.parameters, table, seed)
    if start == "trained":
        parameters, units_of_tables = dict(model.encoder.named_parameters()), encoder.table_units()
        with torch.no_grad():
            for name, value in encoder.named_parameters():
                if table_unit := units_of_tables.get(name):
                    rows = model.vocabularies[table_unit].ids_of(vocabularies[table_unit].units)
                    value.copy_(parameters[name][torch.from_numpy(rows)])
                else:
                    value.copy_(parameters[name])
    return SentenceModel(encoder.to(model.device), model.parameters, vocabularies, model.sentencepiece_model)


CLASSES: Final = 5
"""The highest relatedness; the lowest is 1."""
_RATES: Final = {"adam": 0.001, "adagrad": 0.05}
_FIXED: Final = FineTuningParameters(epochs=40, lambda_classifier=5e-5)
_FIXED_PATIENCE: Final = 6
"""Training of the relatedness model on fixed vectors."""
_ENCODER: Final = "encoder"

Scores = npt.NDArray[np.float64]
Scored = tuple[FloatArray, Scores]
"""Features of pairs, (pairs, numbers), and their scores."""


def target_distribution(scores: Scores) -> npt.NDArray[np.float64]:
    """Return the sparse distribution p with `sum of i * p_i = y` (W16 Eq. 13): 2.3 is p_2 = 0.7, p_3 = 0.3.

    scores: y, 1 to `CLASSES`. Returns (scores, CLASSES), rows that sum to 1; column i - 1 is class i.
    """
    classes = np.arange(1, CLASSES + 1)
    return np.maximum(0, 1 - np.abs(scores[:, None] - classes))


def expected_score(log_probabilities: Tensor) -> Scores:
    """Return `sum of i * p_i` over the classes i = 1 to K: the predicted relatedness, (examples,)."""
    classes = torch.arange(1, log_probabilities.shape[1] + 1, dtype=log_probabilities.dtype)
    return (log_probabilities.detach().cpu().exp() @ classes).numpy().astype(np.float64)


def pair_features(first: Tensor, second: Tensor) -> Tensor:
    """Return |u - v| and u * v side by side, (pairs, 2 x dimension)."""
    return torch.cat([(first - second).abs(), first * second], dim=1)


def held_out_pairs(pairs: int, seed: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Split the indices of pairs randomly into nine tenths and one tenth."""
    order = np.random.default_rng(seed).permutation(pairs)
    cut = max(1, pairs // 10)
    return order[cut:], order[:cut]


class SigmoidSoftmax(nn.Module):
    """The network `softmax(W_p * sigmoid(W x + b_h) + b_p)` over classes.

    For pairs, x is |u - v| and u * v concatenated, so W is W_+ and W_x of W16 Eq. 12 side by side.
    """

    def __init__(self, inputs: int, hidden: int, classes: int, generator: torch.Generator) -> None:
        super().__init__()
        self.hidden = nn.Linear(inputs, hidden)
        self.output = nn.Linear(hidden, classes)
        for layer in (self.hidden, self.output):
            bound = layer.in_features**-0.5
            for parameter in (layer.weight, layer.bias):
                nn.init.uniform_(parameter, -bound, bound, generator)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return log-probabilities, (examples, classes)."""
        return torch.log_softmax(self.output(torch.sigmoid(self.hidden(inputs))), dim=1)


class TaskNetwork(nn.Module):
    """An encoder, and the network of W16 4.4 on its vectors.

    Features are standardized by their initial mean and standard deviation on the training examples, so the
    scale of a model's vectors does not matter. A nearly constant feature is divided by a tenth of the
    features' root mean square instead of a number close to zero.
    """

    def __init__(
        self,
        encoder: Encoder,
        pairs: bool,
        training: TokenBatch,
        network: SigmoidSoftmax,
        projection: nn.Linear | None = None,
    ) -> None:
        """Compute the features' mean and standard deviation on the training examples.

        training: sentences of the training examples; for pairs, all first and then all second ones.
        projection: W_p in `h = W_p v` for a sentence vector v (Arora 2017, A.2); None for h = v.
        """
        super().__init__()
        self.encoder = encoder
        self.network = network
        self.projection = projection
        self.pairs = pairs
        self.mean: Tensor
        self.deviation: Tensor
        like = next(encoder.parameters())
        with torch.no_grad():
            if projection is not None:
                projection.to(like)
            features = self.features(encode(encoder, training, like.device))
        kinds = features.chunk(2, dim=1) if pairs else (features,)
        sizes = torch.cat([kind.square().mean().sqrt().expand(kind.shape[1]) for kind in kinds])
        deviation = features.std(0, correction=0)
        deviation = torch.where(deviation > 0, deviation, 1)
        self.register_buffer("mean", features.mean(0))
        self.register_buffer("deviation", torch.maximum(deviation, sizes / 10))
        network.to(features)

    def features(self, vectors: Tensor) -> Tensor:
        """Project sentence vectors, and return them or, for pairs, |u - v| and u * v."""
        if self.projection is not None:
            vectors = self.projection(vectors)
        return pair_features(*vectors.chunk(2)) if self.pairs else vectors

    def forward(self, vectors: Tensor) -> Tensor:
        """Return log-probabilities, (examples, classes), for sentence vectors."""
        return self.network((self.features(vectors) - self.mean) / self.deviation)

    def of_examples(self, sentences: TokenBatch, rows: Tensor) -> Tensor:
        """Return log-probabilities of the examples at these indices, with gradients.

        sentences: of all examples; for pairs, all first and then all second ones.
        """
        if self.pairs:
            rows = torch.cat([rows, rows + len(next(iter(sentences.values()))) // 2])
        batch = {unit: bags.select(rows).to(self.mean.device) for unit, bags in sentences.items()}
        return self(self.encoder(batch))

    def of_sentences(self, sentences: TokenBatch) -> Tensor:
        """Return log-probabilities for any number of sentences, without gradients."""
        with torch.no_grad():
            return self(encode(self.encoder, sentences, self.mean.device))


class ClassifierTraining(Task[Tensor, nn.Module]):
    """The task for the training loop: minimize a mean KL divergence J with L2 penalties,

    `J + lambda_classifier ||layers above||^2 + lambda_words ||tables - start||^2
    + lambda_composition ||other parameters of the encoder - start||^2`.

    J is W16 Eq. 14. In classification the target of the correct class is 1, so J is the negative
    log-likelihood.
    """

    counted = "examples"

    def __init__(
        self,
        module: nn.Module,
        predict: Callable[[Tensor], Tensor],
        targets: Tensor,
        parameters: FineTuningParameters,
        seed: int,
        patience: int = PATIENCE,
    ) -> None:
        """Prepare the training of a module.

        predict: returns the log-probabilities, (examples, classes), of the examples with the given indices.
        targets: (examples, classes); each row sums to 1. seed: decides the order of examples.
        """
        self.module = module
        self.size = len(targets)
        self.total = len(targets) * parameters.epochs
        self.patience: int | None = patience
        self._predict = predict
        self._targets = targets
        self._parameters = parameters
        self._seed = seed
        self._trained = {name: value for name, value in module.named_parameters() if value.requires_grad}
        encoder = getattr(module, _ENCODER, None)
        self._tables = (
            {f"{_ENCODER}.{name}" for name in encoder.table_units()} if encoder is not None else set()
        )
        self._start = {
            name: value.detach().clone()
            for name, value in self._trained.items()
            if name.startswith(f"{_ENCODER}.")
        }
        rate = parameters.learning_rate or _RATES[parameters.optimizer]
        named = {name: value.detach() for name, value in self._trained.items()}
        adagrad = parameters.optimizer == "adagrad"
        self.optimizer: Optimizer = AdaGrad(named, rate) if adagrad else Adam(named, learning_rate=rate)

    def batches(self, record: Record) -> Iterator[Tensor]:
        """Yield the examples of each epoch in random order."""
        for epoch in range(record.epoch, self._parameters.epochs):
            order = torch.from_numpy(generator_for(self._seed, ORDER, epoch).permutation(self.size))
            yield from order.split(self._parameters.batch_size)

    def step(self, batch: Tensor, updates: int) -> TrainingStep:
        """Make one update with these examples."""
        loss, gradients = self.gradients(batch)
        self.optimizer.begin_step()
        with torch.no_grad():
            for name, gradient in gradients.items():
                self.optimizer.update(name, gradient)
        return TrainingStep(len(batch), 1, float(loss), 1)

    def loss(self, examples: Tensor) -> Tensor:
        """Return J for some examples, without penalties."""
        log_probabilities = self._predict(examples)
        targets = self._targets[examples].to(log_probabilities)
        return nn.functional.kl_div(log_probabilities, targets, reduction="batchmean")

    def gradients(self, examples: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Return J for some examples, and the gradients of the whole objective by parameter name."""
        loss = self.loss(examples)
        # If a batch has no tokens, the encoder does not contribute and its gradient is zero.
        computed = torch.autograd.grad(loss, list(self._trained.values()), materialize_grads=True)
        gradients = dict(zip(self._trained, separate(computed), strict=True))
        weights = self._parameters
        with torch.no_grad():
            for name, gradient in gradients.items():
                value = self._trained[name]
                if name not in self._start:
                    gradient.add_(value, alpha=2 * weights.lambda_classifier)
                else:
                    weight = weights.lambda_words if name in self._tables else weights.lambda_composition
                    gradient.add_(value - self._start[name], alpha=2 * weight)
        return loss.detach(), gradients


def relatedness(
    train: Scored, development: Scored | None, test: Scored, seed: int
) -> tuple[float | None, float | None]:
    """Return Pearson and Spearman x 100 on the test pairs; the development pairs choose the epoch.

    train, development, test: features and scores, 1 to `CLASSES`.
    development: None to take a random tenth of the training pairs, which are then not trained on.
    """
    if development is None:
        fit, held_out = held_out_pairs(len(train[1]), seed)
        development = train[0][held_out], train[1][held_out]
        train = train[0][fit], train[1][fit]
    mean, deviation = train[0].mean(axis=0), train[0].std(axis=0)
    deviation[deviation == 0] = 1
    inputs, judged, tested = (
        torch.from_numpy(((features - mean) / deviation).astype(np.float32))
        for features, _ in (train, development, test)
    )
    model = SigmoidSoftmax(inputs.shape[1], HIDDEN, CLASSES, torch.Generator().manual_seed(seed))
    targets = torch.from_numpy(target_distribution(train[1])).float()
    task = ClassifierTraining(model, lambda rows: model(inputs[rows]), targets, _FIXED, seed, _FIXED_PATIENCE)
    gold = development[1]
    Trainer(task, evaluate=lambda _: _defined(pearson(gold, expected_score(model(judged))))).run()
    predicted = expected_score(model(tested))
    return pearson(test[1], predicted), spearman(test[1], predicted)


def _defined(score: float | None) -> float:
    return math.nan if score is None else score


@dataclass(frozen=True)
class Split:
    """Training, development and test examples of one fit."""

    kind: Kind
    train: Examples
    development: Examples
    test: Examples


@dataclass(frozen=True)
class Fitted:
    """The result of a fit.

    parameters: the candidate with the best development score.
    development_score: accuracy or Pearson x 100; None if it was never defined. epoch: the best one, from 1.
    predictions: labels or scores of the test examples.
    model: the trained encoder with the task's vocabulary.
    """

    parameters: FineTuningParameters
    development_score: float | None
    epoch: int
    predictions: npt.NDArray[Any]
    model: SentenceModel


def fine_tune(
    model: SentenceModel, split: Split, candidates: Sequence[FineTuningParameters], seed: int
) -> Fitted:
    """Train a copy of a model with each candidate, and return the one with the best development score.

    seed: decides random starts and the order of examples; on a CPU, the same seed gives the same result.

    Raises InputError if the loss is not finite.
    """
    fits = (_fit(model, split, candidate, seed) for candidate in candidates)
    return max(fits, key=lambda fit: -math.inf if fit.development_score is None else fit.development_score)


def _fit(model: SentenceModel, split: Split, parameters: FineTuningParameters, seed: int) -> Fitted:
    other = [*split.development.texts, *split.test.texts]
    copied = start_model(model, split.train.texts, other, parameters.start, seed)
    sentences, development, test = (
        copied.batch(pa.array(examples.texts, pa.string()))
        for examples in (split.train, split.development, split.test)
    )
    classes = np.array(sorted(set(split.train.labels)))
    labels = np.array(split.train.labels)
    related = split.kind == "relatedness"
    targets_of_classes = (
        target_distribution(labels.astype(np.float64)) if related else labels[:, None] == classes
    )
    targets = torch.from_numpy(targets_of_classes).float()
    generator = torch.Generator().manual_seed(seed)
    pairs = split.train.second is not None
    copied.encoder.requires_grad_(parameters.encoder == "trained")
    inputs = (parameters.projection or copied.dimension) * (2 if pairs else 1)
    over = SigmoidSoftmax(inputs, HIDDEN, targets.shape[1], generator)
    projection = None
    if parameters.projection is not None:
        projection = nn.Linear(copied.dimension, parameters.projection, bias=False)
        bound = copied.dimension**-0.5
        nn.init.uniform_(projection.weight, -bound, bound, generator)
    with torch_threads(1):
        network = TaskNetwork(copied.encoder, pairs, sentences, over, projection)

    def predicted(examples: TokenBatch) -> npt.NDArray[Any]:
        log_probabilities = network.of_sentences(examples)
        if related:
            return expected_score(log_probabilities)
        return classes[log_probabilities.argmax(1).cpu().numpy()]

    def judge(_: nn.Module) -> float:
        gold, values = np.array(split.development.labels), predicted(development)
        if related:
            return _defined(pearson(gold.astype(np.float64), values))
        return 100 * float(np.mean(values == gold))

    task = ClassifierTraining(network, partial(network.of_examples, sentences), targets, parameters, seed)
    record = Trainer(task, evaluate=judge).run()
    updates = -(-len(targets) // parameters.batch_size)
    epoch = (record.best_updates or record.updates) // updates
    with torch_threads(1):
        return Fitted(parameters, record.best_score, epoch, predicted(test), copied)
