"""Encoders against their equations: vectors, gradients, and parameters."""

from pathlib import Path

import pytest
import torch
from pydantic import TypeAdapter, ValidationError
from torch import nn

import paraforge
from paraforge.base.errors import ConfigurationError
from paraforge.base.shards.resources import Resources
from paraforge.embeddings import encoders
from paraforge.embeddings.encoders.encoder import Encoder, build_encoder
from paraforge.embeddings.encoders.parameters import (
    AverageParameters,
    CombinationParameters,
    EncoderParameters,
    LstmParameters,
    named_encoder,
)
from paraforge.embeddings.encoders.recurrent import _TOGETHER, lstm_states, pack
from paraforge.embeddings.learning.batches import Bags, offsets_of
from paraforge.embeddings.trainer.data import TrainingData
from paraforge.embeddings.trainer.parameters import ModelParameters, PairFileParameters
from paraforge.embeddings.trainer.train_model import train_model
from tests.embeddings.trainer.equations import EQUATIONS, PARAMETERS, SENTENCES, bags, batch, build, maximum
from tests.embeddings.trainer.training import sentence_pairs, write_pairs


def perturbed(encoder: Encoder) -> Encoder:
    """The identity-RNN starts with weights that would hide a mistake."""
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for _, value in sorted(encoder.named_parameters()):
            value.add_(0.1 * torch.randn(value.shape, dtype=value.dtype, generator=generator))
    return encoder


@pytest.mark.parametrize("name", PARAMETERS)
def test_encoder_follows_its_equations(name: str) -> None:
    encoder = perturbed(build(name))
    vectors = encoder(batch(SENTENCES))
    assert vectors.shape == (len(SENTENCES), encoder.dimension)
    expected = torch.stack([EQUATIONS[name](encoder, sentence) for sentence in SENTENCES])
    torch.testing.assert_close(vectors, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", PARAMETERS)
def test_compact_rows_give_gradient_of_full_tables(name: str) -> None:
    encoder = perturbed(build(name))
    whole = batch(SENTENCES)
    vectors = encoder(whole)
    weights = torch.randn(vectors.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    (vectors * weights).sum().backward()

    compact, rows = {}, {}
    for unit in encoder.units():
        compact[unit], rows[unit] = whole[unit].compact()
    tables = encoder.tables()
    leaves = {
        table: tables[table].detach()[rows[unit]].requires_grad_()
        for table, unit in encoder.table_units().items()
    }
    composition = encoder.composition()
    value = (encoder(compact, leaves) * weights).sum()
    gradients = torch.autograd.grad(value, [*leaves.values(), *composition.values()])
    for (table, unit), gradient in zip(encoder.table_units().items(), gradients, strict=False):
        expected = tables[table].grad
        torch.testing.assert_close(gradient, expected[rows[unit]])
    for (_, parameter), gradient in zip(composition.items(), gradients[len(leaves) :], strict=True):
        torch.testing.assert_close(gradient, parameter.grad)


@pytest.mark.parametrize("name", PARAMETERS)
def test_sentence_without_tokens_is_zero(name: str) -> None:
    encoder = perturbed(build(name))
    mixed = encoder(batch([SENTENCES[0], [], SENTENCES[1]]))
    alone = encoder(batch([SENTENCES[0], SENTENCES[1]]))
    torch.testing.assert_close(mixed[[0, 2]], alone)
    assert (mixed[1] == 0).all()
    assert (encoder(batch([[], []])) == 0).all()


def test_finite_differences_through_an_lstm() -> None:
    encoder = build("lstm_last")
    compact, rows = bags(SENTENCES).compact()
    table = encoder.get_parameter("table").detach()[rows].requires_grad_()
    assert torch.autograd.gradcheck(lambda t: encoder({"word": compact}, {"table": t}), table)


@pytest.mark.parametrize("bidirectional", [False, True])
def test_grouped_lstm_matches_torch(bidirectional: bool) -> None:
    generator = torch.Generator().manual_seed(1)
    lengths = torch.randint(0, 13, (2 * _TOGETHER + 5,), generator=generator)
    tokens = int(lengths.sum())
    sentences = pack(Bags(torch.arange(tokens), offsets_of(lengths)))
    rows = torch.randn(tokens, 6, dtype=torch.float64, generator=generator, requires_grad=True)
    cell = nn.LSTM(6, 4, bidirectional=bidirectional, dtype=torch.float64)
    weights = torch.randn(tokens, 4 * (1 + bidirectional), dtype=torch.float64, generator=generator)
    vectors = sentences.vectors(rows)
    found = lstm_states(cell, vectors)
    expected = cell(vectors)[0].data
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-14)
    inputs = [rows, *cell.parameters()]
    gradients = (torch.autograd.grad((one * weights).sum(), inputs) for one in (found, expected))
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)


def test_maximum_of_negative_states_is_negative() -> None:
    """Neither the padding of a batch nor another sentence may supply the maximum."""
    sentences = [[0] * length for length in (3, 0, 1, 5)]
    states = -1 - torch.rand(9, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    packed = pack(bags(sentences))
    own = states[packed.place].split([len(sentence) for sentence in sentences])
    expected = [maximum(rows) if len(rows) else torch.zeros(2, dtype=torch.float64) for rows in own]
    assert torch.equal(packed.maximum(states), torch.stack(expected))


def test_unidirectional_lstm_cannot_concatenate() -> None:
    with pytest.raises(ValidationError, match="only a blstm has two"):
        LstmParameters(kind="lstm", directions="concatenation")


@pytest.mark.parametrize("name", PARAMETERS)
def test_fresh_encoder_keeps_short_vectors(name: str) -> None:
    """Large biases would make all sentences alike, and training could not begin."""
    encoder = build(name)
    said = []
    for factor in (0.001, -1.0):
        with torch.no_grad():
            for table_name, table in encoder.tables().items():
                if table_name.endswith("table"):
                    table.mul_(factor)
        said.append(encoder(batch(SENTENCES)))
    assert torch.cosine_similarity(*said).mean() < 0.5


@pytest.mark.parametrize("name", ["lstm_last", "lstm_last_no_gate", "rnn_tanh", "rnn_relu", "identity_rnn"])
def test_fresh_lstm_remembers_first_word(name: str) -> None:
    encoder = build(name)
    with torch.no_grad():  # of the length that vectors are at first
        encoder.get_parameter("table").mul_(0.05)
    same, another_first, another_last = encoder(batch([[3, *[1] * 8, 3], [8, *[1] * 8, 3], [3, *[1] * 8, 8]]))
    assert (same - another_first).norm() > 0.03 * (same - another_last).norm()


def test_identity_rnn_starts_as_the_mean() -> None:
    rnn, mean = build("identity_rnn"), build("word")
    torch.testing.assert_close(rnn(batch(SENTENCES)), mean(batch(SENTENCES)))
    anchors = rnn.anchors()
    assert set(anchors) == set(rnn.composition())
    for name, value in rnn.composition().items():
        assert torch.equal(anchors[name], value)


def test_parameters_are_tables_or_compositional() -> None:
    for name in PARAMETERS:
        encoder = build(name)
        names = {parameter for parameter, _ in encoder.named_parameters()}
        assert names == set(encoder.tables()) | set(encoder.composition())
        assert not set(encoder.tables()) & set(encoder.composition())
    units = ["word", "trigram", "word"]
    assert build("addition").table_units() == {f"parts.{n}.table": unit for n, unit in enumerate(units)}
    assert build("addition").scrambled_units() == {"word": 0.3}
    assert build("word").scrambled_units() == {}


@pytest.mark.parametrize("kind", ["dan", "projection", "weights", "lstm", "rnn"])
def test_fixed_word_vectors_get_no_gradient(kind: str) -> None:
    parameters = TypeAdapter(EncoderParameters).validate_python({"kind": kind, "dimension": 4, "fixed": True})
    encoder = build_encoder(parameters, lambda part, n: torch.randn(9, 4), 1)
    encoder(batch(SENTENCES)).sum().backward()
    without = [name for name, value in encoder.named_parameters() if value.grad is None]
    assert without == ["table"]


def test_fresh_encoder_is_uniform_within_bounds() -> None:
    lstms = [
        LstmParameters(kind="lstm", dimension=9, output_dimension=64, scramble=one) for one in (0.2, 0.1)
    ]
    numbers: list[int] = []
    encoder, other = (
        build_encoder(
            CombinationParameters(kind="concatenation", parts=lstms),
            lambda part, number: (numbers.append(number), torch.zeros(5, 9))[1],
            seed,
        )
        for seed in (3, 4)
    )
    assert numbers == [0, 1] * 2 and encoder.scrambled_units() == {"word": 0.2}
    for name, value in encoder.composition().items():
        if "bias" in name:
            assert not value.any()
        else:
            assert 0.99 / 8 < value.abs().max() <= 1 / 8 and float(value.detach().std()) == pytest.approx(
                3**-0.5 / 8, rel=0.1
            )
            assert not value.equal(other.composition()[name])


def test_encoder_parts_of_unequal_size_cannot_be_added() -> None:
    parts = [AverageParameters(dimension=3), AverageParameters(dimension=4, unit="trigram")]
    added = CombinationParameters(kind="addition", parts=parts)
    with pytest.raises(ConfigurationError, match=r"dimensions \[3, 4\] cannot be added"):
        build_encoder(added, lambda part, n: torch.zeros(5, part.dimension), 0)


def test_vectors_of_other_dimension_are_error() -> None:
    parts = [AverageParameters(dimension=5), AverageParameters(dimension=3)]
    both = CombinationParameters(kind="concatenation", parts=parts)
    with pytest.raises(ConfigurationError, match=r"vectors have 5: set encoder\.parts\.1\.dimension=5"):
        build_encoder(both, lambda part, n: torch.zeros(5, 5), 0)


MAXIMUM = '''
from typing import Literal

import torch
from pydantic import Field

from paraforge.embeddings.encoders.parameters import VectorParameters
from paraforge.embeddings.encoders.encoder import TableEncoder


class LargestParameters(VectorParameters):
    """Largest elements of a sentence's vectors, times a weight each."""

    kind: Literal["largest"]
    power: float = Field(1.0, gt=0, description="of the vectors' elements")

    def network(self, table):
        return Largest(table, self.unit)


class Largest(TableEncoder):
    def __init__(self, table, unit):
        super().__init__(table, unit)
        self.dimension = table.shape[1]
        self.weight = torch.nn.Parameter(torch.empty(self.dimension))

    def forward(self, batch, tables=None):
        bags, rows = batch[self.unit], self.rows(tables)
        highest = rows.new_full((len(bags), self.dimension), -torch.inf)
        index = bags.sentences.unsqueeze(1).expand(-1, self.dimension)
        highest = highest.scatter_reduce(0, index, rows[bags.ids], "amax")
        return torch.where(highest.isfinite(), highest, 0) * self.weight
'''


def test_encoder_is_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new file in the package, here in another directory, is enough to train, save and open an encoder."""
    chosen = {"kind": "concatenation", "parts": [{"kind": "largest", "dimension": 6}, {"kind": "average"}]}
    with pytest.raises(ValidationError, match=r"unknown kind largest: use average, .*dan, .*projection"):
        ModelParameters.model_validate({"encoder": chosen})
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "pooling.py").write_text(MAXIMUM)
    monkeypatch.setattr(encoders, "__path__", [*encoders.__path__, str(tmp_path / "files")])
    assert named_encoder("largest+word")["parts"][0] == {"kind": "largest"}
    with pytest.raises(ValidationError, match="power"):
        ModelParameters.model_validate({"encoder": {"kind": "largest", "power": -1}})
    parameters = ModelParameters.model_validate({"encoder": chosen})
    assert parameters.model_dump(mode="json")["encoder"]["parts"][0]["power"] == 1.0
    data = TrainingData([PairFileParameters(path=str(write_pairs(tmp_path / "pairs.tsv", sentence_pairs())))])
    report = train_model(parameters, data, tmp_path / "model", Resources(threads=1, work=tmp_path / "work"))
    assert report.dimension == 306
    losses = [entry["loss"] for entry in report.history]
    assert losses[-1] < losses[0]
    assert paraforge.load(tmp_path / "model").encode(["left1 left2", ""]).shape == (2, 306)
