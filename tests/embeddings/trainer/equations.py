"""The encoders' equations, one sentence and one step at a time, and an encoder of every kind."""

from collections.abc import Callable
from itertools import pairwise

import torch
from torch import Tensor

from paraforge.embeddings.encoders.averages import DanParameters, ProjectionParameters, WeightsParameters
from paraforge.embeddings.encoders.encoder import Encoder, build_encoder
from paraforge.embeddings.encoders.parameters import (
    AverageParameters,
    CombinationParameters,
    EncoderParameters,
    LstmParameters,
    VectorParameters,
)
from paraforge.embeddings.encoders.recurrent import IdentityRnnParameters, LstmLastParameters, RnnParameters
from paraforge.embeddings.learning.batches import Bags

ROWS, SIZE, OUTPUT = 9, 4, 3
SENTENCES = [[3, 1, 4, 1, 5], [8], [2, 6, 5, 3, 5, 8, 7], [0, 0], [7, 1, 8]]

PARAMETERS: dict[str, EncoderParameters] = {
    "word": AverageParameters(dimension=SIZE),
    "weights": WeightsParameters(dimension=SIZE, fixed=False),
    "projection": ProjectionParameters(kind="projection", dimension=SIZE, output_dimension=OUTPUT),
    "dan_1_relu": DanParameters(kind="dan", dimension=SIZE, output_dimension=OUTPUT, activation="relu"),
    "dan_2_tanh": DanParameters(kind="dan", dimension=SIZE, output_dimension=OUTPUT, layers=2),
    "rnn_tanh": RnnParameters(kind="rnn", dimension=SIZE, output_dimension=OUTPUT),
    "rnn_relu": RnnParameters(kind="rnn", dimension=SIZE, output_dimension=OUTPUT, activation="relu"),
    "identity_rnn": IdentityRnnParameters(kind="identity_rnn", dimension=SIZE),
    "lstm_last": LstmLastParameters(kind="lstm_last", dimension=SIZE, output_dimension=OUTPUT),
    "lstm_last_no_gate": LstmLastParameters(
        kind="lstm_last", dimension=SIZE, output_dimension=OUTPUT, output_gate=False
    ),
    "lstm": LstmParameters(kind="lstm", dimension=SIZE, output_dimension=OUTPUT),
    "blstm": LstmParameters(kind="blstm", dimension=SIZE, output_dimension=OUTPUT),
    "lstm_max": LstmParameters(kind="lstm", dimension=SIZE, output_dimension=OUTPUT, pooling="max"),
    "blstm_max": LstmParameters(kind="blstm", dimension=SIZE, output_dimension=OUTPUT, pooling="max"),
    "blstm_concatenated": LstmParameters(
        kind="blstm", dimension=SIZE, output_dimension=OUTPUT, directions="concatenation"
    ),
    "blstm_concatenated_max": LstmParameters(
        kind="blstm", dimension=SIZE, output_dimension=OUTPUT, directions="concatenation", pooling="max"
    ),
    "addition": CombinationParameters(
        kind="addition",
        parts=[
            AverageParameters(dimension=OUTPUT),
            AverageParameters(dimension=OUTPUT, unit="trigram"),
            LstmParameters(kind="lstm", dimension=SIZE, output_dimension=OUTPUT),
        ],
    ),
    "concatenation": CombinationParameters(
        kind="concatenation",
        parts=[AverageParameters(dimension=SIZE), AverageParameters(dimension=2, unit="trigram")],
    ),
    "weights_first": CombinationParameters(
        kind="concatenation",
        parts=[
            WeightsParameters(dimension=SIZE, fixed=False),
            AverageParameters(dimension=2, unit="trigram"),
        ],
    ),
}


def build(name: str) -> Encoder:
    def make_table(part: VectorParameters, number: int) -> Tensor:
        generator = torch.Generator().manual_seed(100 + number)
        return torch.randn(ROWS, part.dimension, dtype=torch.float64, generator=generator)

    return build_encoder(PARAMETERS[name], make_table, seed=5).double()


def bags(sentences: list[list[int]]) -> Bags:
    lengths = torch.tensor([0, *map(len, sentences)])
    ids = torch.tensor([number for sentence in sentences for number in sentence], dtype=torch.int64)
    return Bags(ids, lengths.cumsum(0))


def id_lists(bags: Bags) -> list[list[int]]:
    """The sentences of bags."""
    borders = bags.offsets.tolist()
    return [bags.ids[a:b].tolist() for a, b in pairwise(borders)]


def batch(sentences: list[list[int]]) -> dict[str, Bags]:
    """The trigram unit has other ids than the word unit."""
    return {"word": bags(sentences), "trigram": bags([[(n + 1) % ROWS for n in s] for s in sentences])}


Equations = Callable[[Encoder, list[int]], Tensor]


def _mean(encoder: Encoder, sentence: list[int]) -> Tensor:
    return encoder.get_parameter("table")[sentence].mean(0)


def _weights(encoder: Encoder, sentence: list[int], prefix: str = "") -> Tensor:
    table, weights = (encoder.get_parameter(f"{prefix}{name}") for name in ("table", "weights"))
    return torch.stack([weights[word] * table[word] for word in sentence]).mean(0)


def _projection(encoder: Encoder, sentence: list[int]) -> Tensor:
    return encoder.get_parameter("linear.weight") @ _mean(encoder, sentence) + encoder.get_parameter(
        "linear.bias"
    )


def _dan(function: Callable[[Tensor], Tensor], layers: int) -> Equations:
    def equations(encoder: Encoder, sentence: list[int]) -> Tensor:
        state = _mean(encoder, sentence)
        for layer in range(layers):
            weight, bias = (
                encoder.get_parameter(f"layers.{2 * layer}.{name}") for name in ("weight", "bias")
            )
            state = function(weight @ state + bias)
        return state

    return equations


def _rnn(function: Callable[[Tensor], Tensor]) -> Equations:
    def equations(encoder: Encoder, sentence: list[int]) -> Tensor:
        get = encoder.get_parameter
        state = torch.zeros(OUTPUT, dtype=torch.float64)
        for word in sentence:
            state = function(
                get("cell.weight_ih_l0") @ get("table")[word]
                + get("cell.weight_hh_l0") @ state
                + get("cell.bias_ih_l0")
                + get("cell.bias_hh_l0")
            )
        return state

    return equations


def _identity_rnn(encoder: Encoder, sentence: list[int]) -> Tensor:
    get = encoder.get_parameter
    state = torch.zeros(SIZE, dtype=torch.float64)
    for word in sentence:
        state = get("input_weight") @ get("table")[word] + get("state_weight") @ state + get("bias")
    return state / len(sentence)


def _lstm_last(output_gate: bool) -> Equations:
    """W16 Eq. 5-9."""

    def equations(encoder: Encoder, sentence: list[int]) -> Tensor:
        get = encoder.get_parameter
        state = cell = torch.zeros(OUTPUT, dtype=torch.float64)
        for word in sentence:
            raw = get("weight_input") @ get("table")[word] + get("weight_state") @ state + get("bias")
            i = torch.sigmoid(raw[:OUTPUT] + get("peephole_input") * cell)
            f = torch.sigmoid(raw[OUTPUT : 2 * OUTPUT] + get("peephole_forget") * cell)
            cell = f * cell + i * torch.tanh(raw[2 * OUTPUT : 3 * OUTPUT])
            o = torch.sigmoid(raw[3 * OUTPUT :] + get("peephole_output") * cell) if output_gate else 1
            state = o * torch.tanh(cell)
        return state

    return equations


def _states(encoder: Encoder, sentence: list[int], prefix: str, suffix: str) -> Tensor:
    get = encoder.get_parameter
    state = cell = torch.zeros(OUTPUT, dtype=torch.float64)
    states = []
    for word in sentence:
        raw = (
            get(f"{prefix}cell.weight_ih_l0{suffix}") @ get(f"{prefix}table")[word]
            + get(f"{prefix}cell.weight_hh_l0{suffix}") @ state
            + get(f"{prefix}cell.bias_ih_l0{suffix}")
            + get(f"{prefix}cell.bias_hh_l0{suffix}")
        )
        i, f, g, o = raw.split(OUTPUT)
        cell = torch.sigmoid(f) * cell + torch.sigmoid(i) * torch.tanh(g)
        state = torch.sigmoid(o) * torch.tanh(cell)
        states.append(state)
    return torch.stack(states)


def _lstm(encoder: Encoder, sentence: list[int], prefix: str = "") -> Tensor:
    return _states(encoder, sentence, prefix, "").mean(0)


def maximum(states: Tensor) -> Tensor:
    return torch.stack([max(column) for column in states.T])


def _blstm(concatenated: bool, pooled: Callable[[Tensor], Tensor]) -> Equations:
    def equations(encoder: Encoder, sentence: list[int]) -> Tensor:
        forward = _states(encoder, sentence, "", "")
        backward = _states(encoder, sentence[::-1], "", "_reverse").flip(0)
        both = torch.cat([forward, backward], dim=1) if concatenated else (forward + backward) / 2
        return pooled(both)

    return equations


def _parts(encoder: Encoder, sentence: list[int]) -> list[Tensor]:
    trigrams = [(number + 1) % ROWS for number in sentence]
    return [
        encoder.get_parameter("parts.0.table")[sentence].mean(0),
        encoder.get_parameter("parts.1.table")[trigrams].mean(0),
    ]


def _addition(encoder: Encoder, sentence: list[int]) -> Tensor:
    word, trigram = _parts(encoder, sentence)
    return word + trigram + _lstm(encoder, sentence, "parts.2.")


def _concatenation(encoder: Encoder, sentence: list[int]) -> Tensor:
    return torch.cat(_parts(encoder, sentence))


EQUATIONS: dict[str, Equations] = {
    "word": _mean,
    "weights": _weights,
    "weights_first": lambda encoder, sentence: torch.cat(
        [_weights(encoder, sentence, "parts.0."), _parts(encoder, sentence)[1]]
    ),
    "projection": _projection,
    "dan_1_relu": _dan(torch.relu, 1),
    "dan_2_tanh": _dan(torch.tanh, 2),
    "rnn_tanh": _rnn(torch.tanh),
    "rnn_relu": _rnn(torch.relu),
    "identity_rnn": _identity_rnn,
    "lstm_last": _lstm_last(True),
    "lstm_last_no_gate": _lstm_last(False),
    "lstm": _lstm,
    "blstm": _blstm(False, lambda states: states.mean(0)),
    "lstm_max": lambda encoder, sentence: maximum(_states(encoder, sentence, "", "")),
    "blstm_max": _blstm(False, maximum),
    "blstm_concatenated": _blstm(True, lambda states: states.mean(0)),
    "blstm_concatenated_max": _blstm(True, maximum),
    "addition": _addition,
    "concatenation": _concatenation,
}
