"""The definitions sentence by sentence and word by word, in float64."""

import numpy as np
import numpy.typing as npt
import torch

from paraforge.papers.unrolling.network import LayerNormGru, SentencePredictor

Vector = npt.NDArray[np.float64]


def _array(value: torch.Tensor) -> Vector:
    found: Vector = value.detach().double().numpy()
    return found


def _sigmoid(x: Vector) -> Vector:
    return 1 / (1 + np.exp(-x))


def _normalize(x: Vector, gain: Vector, bias: Vector) -> Vector:
    return gain * (x - x.mean()) / np.sqrt(x.var() + 1e-5) + bias


def gru_step(gru: LayerNormGru, x: Vector, h: Vector) -> Vector:
    """Ba et al. 2016, Eq. 26-28."""
    n = gru.state_dimension
    from_input, from_state = _array(gru.input_weight) @ x, _array(gru.state_weight) @ h
    gains = [_array(gru.input_gain), _array(gru.state_gain)]
    biases = [_array(gru.input_bias), _array(gru.state_bias)]
    gates = _normalize(from_input[: 2 * n], gains[0][: 2 * n], biases[0][: 2 * n])
    gates = gates + _normalize(from_state[: 2 * n], gains[1][: 2 * n], biases[1][: 2 * n])
    z, r = _sigmoid(gates[:n]), _sigmoid(gates[n:])
    c = np.tanh(
        _normalize(from_input[2 * n :], gains[0][2 * n :], biases[0][2 * n :])
        + r * _normalize(from_state[2 * n :], gains[1][2 * n :], biases[1][2 * n :])
    )
    return (1 - z) * h + z * c


def encode(network: SentencePredictor, sentence: list[int]) -> Vector:
    words = _array(network.words)
    if network.encoder is None:
        return np.sum([words[word] for word in sentence], axis=0)
    state = np.zeros(network.architecture.context_dimension)
    for word in sentence:
        state = gru_step(network.encoder, words[word], state)
    return state


def log_probabilities(network: SentencePredictor, state: Vector) -> Vector:
    logits = _array(network.output.weight) @ state + _array(network.output.bias)
    return logits - np.log(np.exp(logits).sum())


def loss(network: SentencePredictor, triples: list[tuple[list[int], list[int], list[int]]]) -> float:
    """Eq. 6 for bags of words, Eq. 10 for sequences, over both neighbors."""
    words = _array(network.words)
    total = 0.0
    for previous, current, following in triples:
        context = encode(network, current)
        for side, sentence in enumerate((previous, following)):
            state, given = context, None
            for word in sentence:
                if network.decoders:
                    decoder = network.decoder(side)
                    given = _array(decoder.start) if given is None else given
                    state = gru_step(decoder.gru, given, state)
                    given = words[word]
                total -= log_probabilities(network, state)[word]
    return total


def unroll(network: SentencePredictor, sentence: list[int], steps: int) -> list[list[Vector]]:
    """The states of both decoders, each step fed the mean word vector of the one before."""
    words = _array(network.words)
    result = []
    for side in range(2):
        decoder = network.decoder(side)
        state, given = encode(network, sentence), _array(decoder.start)
        states = []
        for _ in range(steps):
            state = gru_step(decoder.gru, given, state)
            states.append(state)
            probabilities = np.exp(log_probabilities(network, state))
            given = np.sum([p * vector for p, vector in zip(probabilities, words, strict=True)], axis=0)
        result.append(states)
    return result
