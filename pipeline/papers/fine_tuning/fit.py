"""End-to-end training of an encoder for a transfer task (Wieting 2016, 4.4 and 4.4.1)."""

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import torch
from torch import Tensor, nn

from paraforge.base.devices import torch_threads
from paraforge.base.errors import ParaforgeError
from paraforge.base.interrupts import check_interrupt
from paraforge.embeddings.encoders.protocol import Encoder
from paraforge.embeddings.evaluation.correlation import pearson
from paraforge.embeddings.learning.batches import TokenBatch
from paraforge.embeddings.trainer.mega_batches import encode
from paraforge.embeddings.trainer.model import SentenceModel
from paraforge.papers.fine_tuning.start import FineTuningParameters, start_model
from paraforge.papers.transfer.relatedness import (
    SigmoidSoftmax,
    best_epoch,
    expected_score,
    target_distribution,
)
from paraforge.papers.transfer.scores import pair_features, standardiser
from paraforge.papers.transfer.tasks import Examples, Kind

_RATES: Final = {"adam": 0.001, "adagrad": 0.05}
_ENCODER = "encoder"


@dataclass(frozen=True)
class Split:
    """Training, development and test examples of one fit."""

    kind: Kind
    train: Examples
    development: Examples
    test: Examples


@dataclass(frozen=True)
class Fitted:
    """What a fit gave.

    parameters: those of the candidates that did best on the development examples.
    development_score: accuracy or Pearson x 100; -inf where it was never defined. epoch: the best, from 1.
    predictions: of the test examples, labels or scores.
    model: the trained encoder with the task's vocabulary.
    """

    parameters: FineTuningParameters
    development_score: float
    epoch: int
    predictions: npt.NDArray[Any]
    model: SentenceModel


class TaskNetwork(nn.Module):
    """An encoder, and over its vectors the network of W16 4.4.

    Features are standardised by the mean and the standard deviation that they have on the training examples
    at the start: so the network learns at the same pace whatever the scale of a model's vectors. What hardly
    differs between the examples is divided by a tenth of the features' size, not by next to nothing.
    """

    def __init__(
        self,
        encoder: Encoder,
        pairs: bool,
        training: TokenBatch,
        network: SigmoidSoftmax,
        projection: nn.Linear | None = None,
    ) -> None:
        """training: the sentences of the training examples, of pairs all first ones before all second.
        projection: W_p of every sentence vector, `h = W_p v` (Arora 2017, A.2); None: h = v."""
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
        mean, deviation = map(torch.from_numpy, standardiser(features.cpu().numpy()))
        kinds = features.chunk(2, dim=1) if pairs else (features,)
        sizes = [kind.square().mean().sqrt().expand(kind.shape[1]) for kind in kinds]
        self.register_buffer("mean", mean.to(features))
        self.register_buffer("deviation", torch.maximum(deviation.to(features), torch.cat(sizes) / 10))
        network.to(features)

    def features(self, vectors: Tensor) -> Tensor:
        """Of (sentences, dimension) what is standardised: the vectors, or |u - v| and u * v; projected."""
        if self.projection is not None:
            vectors = self.projection(vectors)
        return pair_features(*vectors.chunk(2)) if self.pairs else vectors

    def forward(self, vectors: Tensor) -> Tensor:
        """Log-probabilities, (examples, classes), of sentence vectors."""
        return self.network((self.features(vectors) - self.mean) / self.deviation)

    def of_sentences(self, sentences: TokenBatch) -> Tensor:
        """The same of any number of sentences, without gradient."""
        with torch.no_grad():
            return self(encode(self.encoder, sentences, self.mean.device))


class FineTuning:
    """Minimises, by mini-batches, the mean KL divergence from a target distribution over the classes plus L2
    penalties:

    `J + lambda_classifier ||layers above||^2 + lambda_words ||tables - start||^2
    + lambda_composition ||other parameters of the encoder - start||^2`.

    J is W16 Eq. 14; of a class its target is 1 and J the negative log-likelihood.
    """

    def __init__(
        self,
        network: TaskNetwork,
        sentences: TokenBatch,
        targets: Tensor,
        parameters: FineTuningParameters,
        generator: torch.Generator,
    ) -> None:
        """targets: (examples, classes), rows that sum to 1. generator: draws the order of examples."""
        self.network = network
        self._sentences = sentences
        self._targets = targets
        self._batch_size = parameters.batch_size
        self._generator = generator
        self._parameters = {name: value for name, value in network.named_parameters() if value.requires_grad}
        self._start = {name: value.detach().clone() for name, value in network.encoder.named_parameters()}
        self._penalties = parameters
        rate = parameters.learning_rate or _RATES[parameters.optimiser]
        self._optimiser: torch.optim.Optimizer
        if parameters.optimiser == "adagrad":
            self._optimiser = torch.optim.Adagrad(self._parameters.values(), lr=rate)
        else:
            self._optimiser = torch.optim.Adam(self._parameters.values(), lr=rate, fused=True)

    def loss(self, examples: Tensor) -> Tensor:
        """J of some examples, without penalties."""
        rows = torch.cat([examples, examples + len(self._targets)]) if self.network.pairs else examples
        device = self.network.mean.device
        batch = {unit: bags.select(rows).to(device) for unit, bags in self._sentences.items()}
        log_probabilities = self.network(self.network.encoder(batch))
        targets = self._targets[examples].to(log_probabilities)
        return nn.functional.kl_div(log_probabilities, targets, reduction="batchmean")

    def gradients(self, examples: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """J of some examples, and by name the gradients of J and all penalties, which the parameters have."""
        for value in self._parameters.values():
            # An encoder has no part in a batch without a single token, and no gradient is not zero to Adam.
            value.grad = torch.zeros_like(value)
        loss = self.loss(examples)
        loss.backward()
        gradients = {name: value.grad for name, value in self._parameters.items() if value.grad is not None}
        with torch.no_grad():
            self._add_penalties(gradients)
        return loss.detach(), gradients

    def _add_penalties(self, gradients: dict[str, Tensor]) -> None:
        penalties, tables = self._penalties, self.network.encoder.table_units()
        for name, gradient in gradients.items():
            part, _, inner = name.partition(".")
            value = self._parameters[name]
            if part != _ENCODER:
                gradient.add_(value, alpha=2 * penalties.lambda_classifier)
            else:
                weight = penalties.lambda_words if inner in tables else penalties.lambda_composition
                gradient.add_(value - self._start[inner], alpha=2 * weight)

    def epoch(self) -> None:
        """Go through all examples once, in random order; ParaforgeError where the loss is not finite."""
        self.network.encoder.train()  # no encoder behaves otherwise, but cuDNN refuses a gradient outside
        total = 0.0
        for examples in torch.randperm(len(self._targets), generator=self._generator).split(self._batch_size):
            check_interrupt()
            loss, _ = self.gradients(examples)
            self._optimiser.step()
            total += float(loss)
        self.network.encoder.eval()
        if not math.isfinite(total):
            raise ParaforgeError("the loss is not finite. Lower the learning rate or the penalty")


def fine_tune(
    model: SentenceModel,
    split: Split,
    candidates: Sequence[FineTuningParameters],
    seed: int,
    advance: Callable[[int], None] = lambda epochs: None,
) -> Fitted:
    """Train a copy of a model for a task with each setting, and take what did best on the development
    examples.

    seed: of random starts and of the order of examples; on a CPU the same seed gives the same result.
    advance: told how many epochs are done, or are not needed because training ended early.

    Raises ParaforgeError where the loss is not finite, Interrupted at SIGTERM or Ctrl-C.
    """
    best: Fitted | None = None
    for candidate in candidates:
        fitted = _fit(model, split, candidate, seed, advance)
        if best is None or fitted.development_score > best.development_score:
            best = fitted
    assert best is not None
    return best


def _fit(
    model: SentenceModel,
    split: Split,
    parameters: FineTuningParameters,
    seed: int,
    advance: Callable[[int], None],
) -> Fitted:
    other = [*split.development.texts, *split.test.texts]
    copied = start_model(model, split.train.texts, other, parameters.start, parameters.new_units, seed)
    sentences, development, test = (
        copied.batch(pa.array(examples.texts, pa.string()))
        for examples in (split.train, split.development, split.test)
    )
    classes = sorted(set(split.train.labels))
    targets = torch.from_numpy(_targets(split, classes)).float()
    generator = torch.Generator().manual_seed(seed)
    pairs = split.train.second is not None
    # Mini-batches are small; with one thread the figures do not depend on the machine's number of them.
    with torch_threads(1):
        copied.encoder.requires_grad_(parameters.encoder == "trained")
        inputs = (parameters.projection or copied.dimension) * (2 if pairs else 1)
        over = SigmoidSoftmax(inputs, parameters.hidden, targets.shape[1], generator)
        projection = None
        if parameters.projection is not None:
            projection = nn.Linear(copied.dimension, parameters.projection, bias=False)
            bound = copied.dimension**-0.5
            nn.init.uniform_(projection.weight, -bound, bound, generator)
        network = TaskNetwork(copied.encoder, pairs, sentences, over, projection)
        training = FineTuning(network, sentences, targets, parameters, generator)
        done = 0

        def train() -> None:
            nonlocal done
            training.epoch()
            done += 1
            advance(1)

        kept, score, epoch = best_epoch(
            train,
            lambda: _score(split, split.development, _predict(split, network, development, classes)),
            lambda: copy.deepcopy(network.state_dict()),
            parameters.epochs,
            parameters.patience,
        )
        advance(parameters.epochs - done)
        network.load_state_dict(kept)
        predictions = _predict(split, network, test, classes)
    return Fitted(parameters, score, epoch, predictions, copied)


def _targets(split: Split, classes: Sequence[str]) -> npt.NDArray[np.float64]:
    if split.kind == "relatedness":
        return target_distribution(np.array(split.train.labels, dtype=np.float64))  # Eq. 13
    return (np.array(split.train.labels)[:, None] == np.array(classes)).astype(np.float64)


def _predict(
    split: Split, network: TaskNetwork, sentences: TokenBatch, classes: Sequence[str]
) -> npt.NDArray[Any]:
    log_probabilities = network.of_sentences(sentences)
    if split.kind == "relatedness":
        return expected_score(log_probabilities)
    return np.array(classes)[log_probabilities.argmax(1).cpu().numpy()]


def _score(split: Split, examples: Examples, predictions: npt.NDArray[Any]) -> float | None:
    if split.kind == "relatedness":
        return pearson(np.array(examples.labels, dtype=np.float64), predictions)
    return 100 * float(np.mean(predictions == np.array(examples.labels)))
