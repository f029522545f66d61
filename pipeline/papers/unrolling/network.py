"""Defines a network that encodes a sentence and predicts the previous and the next one, and sentence vectors.

The loss is in DD 3 and 4 (Eq. 4, 6, 9, 10). Sentence vectors are the context (the encoder's output) or states
of the unrolled decoders (DD 3.3, Figure 1, Appendix C).
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from paraforge.base.text.vocabulary import WORD
from paraforge.embeddings.encoders.encoder import Encoder
from paraforge.embeddings.encoders.recurrent import PackedSentences, pack
from paraforge.embeddings.learning.batches import Bags, TokenBatch, bag_mean, take_rows
from paraforge.papers.unrolling.parameters import (
    NetworkParameters,
    ReaderParameters,
    RepresentationParameters,
)
from paraforge.papers.unrolling.triples import TripleBatch, with_ends

INITIAL_BOUND = 0.1
"""Initial weights are uniform between minus this and plus this (DD 4)."""


def negative_log_likelihood(
    states: Tensor, weight: Tensor, bias: Tensor, words: Bags, products: torch.dtype | None = None
) -> Tensor:
    """Return the sum of `logsumexp(U h_k + b) - u_w h_k - b_w` over the words w of all rows k, a scalar.

    states: h, (rows, dimension). weight: output vectors U, (vocabulary, dimension).
    bias: b, (vocabulary,). words: the words that each row predicts.
    products: type of matrix products, e.g. bfloat16.
    """
    low = states.dtype if products is None else products
    logits = (states.to(low) @ weight.to(low).t()).to(states.dtype) + bias
    normalizers = words.lengths.to(states.dtype) @ logits.logsumexp(1)
    return normalizers - logits[words.sentences, words.ids].sum()


class LayerNormGru(nn.Module):
    """A gated recurrent unit with layer normalization (Cho et al. 2014; Ba et al. 2016, Eq. 26-28).

    For input x and state h:

    (z; r) = s(N(W x) + N(U h)),  c = tanh(N(V x) + r * N(T h)),  h' = (1 - z) h + z c.

    Each N is a layer normalization with its own gain and bias; z and r are normalized together. W and V are
    rows of `input_weight`, U and T of `state_weight`, (3 state_dimension, dimension), those of z and r first.
    """

    def __init__(self, input_dimension: int, state_dimension: int) -> None:
        super().__init__()
        self.state_dimension = state_dimension
        self.input_weight = nn.Parameter(torch.empty(3 * state_dimension, input_dimension))
        self.state_weight = nn.Parameter(torch.empty(3 * state_dimension, state_dimension))
        self.input_gain = nn.Parameter(torch.ones(3 * state_dimension))
        self.state_gain = nn.Parameter(torch.ones(3 * state_dimension))
        self.input_bias = nn.Parameter(torch.zeros(3 * state_dimension))
        self.state_bias = nn.Parameter(torch.zeros(3 * state_dimension))

    def forward(self, inputs: Tensor, batch_sizes: Sequence[int], state: Tensor) -> Tensor:
        """Return the state of every token, (tokens, state_dimension), in packed order.

        inputs: (tokens, input_dimension) in packed order: the first tokens of all sentences, then the second
            tokens, and so on, with sentences in order of descending length.
        batch_sizes: number of sentences with a t-th token, for each t.
        state: initial states, (sentences, state_dimension), in the same order.
        """
        states = []
        for part in self.project(inputs).split(list(batch_sizes)):
            state = self.step(part, state[: len(part)])
            states.append(state)
        return torch.cat(states)

    def project(self, inputs: Tensor) -> Tensor:
        """Return the contribution of inputs, (rows, 3 state_dimension), which is independent of the state."""
        return self._normalize(F.linear(inputs, self.input_weight), self.input_gain, self.input_bias)

    def step(self, projected: Tensor, state: Tensor) -> Tensor:
        """Return the next states from the result of `project` and the previous states, (rows,
        state_dimension)."""
        size = 2 * self.state_dimension
        recurrent = self._normalize(F.linear(state, self.state_weight), self.state_gain, self.state_bias)
        gates = torch.sigmoid(projected[:, :size] + recurrent[:, :size])
        update, reset = gates.chunk(2, dim=1)
        candidate = torch.tanh(projected[:, size:] + reset * recurrent[:, size:])
        return torch.lerp(state, candidate, update)

    def _normalize(self, values: Tensor, gain: Tensor, bias: Tensor) -> Tensor:
        """Normalize both gates together, and the candidate, (rows, 3 state_dimension)."""
        size = 2 * self.state_dimension
        parts = [
            F.layer_norm(values[:, part], (values[:, part].shape[1],), gain[part], bias[part])
            for part in (slice(None, size), slice(size, None))
        ]
        return torch.cat(parts, dim=1)


class GruDecoder(nn.Module):
    """A GRU whose initial state is the context, and whose first input is a trained vector (<GO>)."""

    def __init__(self, word_dimension: int, state_dimension: int) -> None:
        super().__init__()
        self.start = nn.Parameter(torch.empty(word_dimension))
        self.gru = LayerNormGru(word_dimension, state_dimension)

    def forward(self, context: Tensor, vectors: Tensor, packed: PackedSentences) -> Tensor:
        """Return the states that predict each word, (tokens, state_dimension), in packed order.

        context: (sentences, state_dimension).
        vectors: word vectors, (tokens, word_dimension), in packed order.
        """
        sizes: list[int] = packed.batch_sizes.tolist()
        inputs = [self.start.expand(sizes[0], -1)]
        inputs += [part[:size] for part, size in zip(vectors.split(sizes), sizes[1:], strict=False)]
        return self.gru(torch.cat(inputs), sizes, context[packed.sorted_sentences])


class SentencePredictor(nn.Module):
    """An encoder and two decoders.

    words: input vectors of encoder and decoders, (vocabulary, word_dimension).
    predicted: number of words that decoders predict, the first ones of the vocabulary.
    decoders: decoders of the previous and the next sentence; none if a bag of words is predicted.
    output: output vectors u_w and biases b_w, shared by both decoders; a word's probability after the state
        h is `softmax(u_w h + b_w)`.
    """

    def __init__(
        self, parameters: NetworkParameters, words: int, seed: int, predicted: int | None = None
    ) -> None:
        """Make an untrained network: uniform weights, gains of layer normalization 1, biases 0."""
        super().__init__()
        self.predicted = words if predicted is None else predicted
        self.architecture = parameters
        dimension, state = parameters.word_dimension, parameters.context_dimension
        self.words = nn.Parameter(torch.empty(words, dimension))
        self.encoder = LayerNormGru(dimension, state) if parameters.encoder == "gru" else None
        self.decoders = nn.ModuleList(
            GruDecoder(dimension, state) for _ in range(2 if parameters.decoder == "gru" else 0)
        )
        self.output = nn.Linear(state, self.predicted)
        nn.init.zeros_(self.output.bias)
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for name, value in sorted(self.named_parameters()):
                if not name.endswith(("gain", "bias")):
                    value.uniform_(-INITIAL_BOUND, INITIAL_BOUND, generator=generator)

    def decoder(self, side: int) -> GruDecoder:
        """Return the recurrent decoder of the previous (0) or the next sentence (1)."""
        decoder = self.decoders[side]
        assert isinstance(decoder, GruDecoder)
        return decoder

    def encode(self, sentences: Bags) -> Tensor:
        """Return contexts, (sentences, context_dimension). Sentences include their end, so none is empty."""
        if self.encoder is None:
            return bag_mean(self.words, sentences) * sentences.lengths.to(self.words.dtype).unsqueeze(1)
        packed = pack(sentences)
        beginning = self.words.new_zeros(len(sentences), self.encoder.state_dimension)
        states = self.encoder(take_rows(self.words, packed.tokens), packed.batch_sizes.tolist(), beginning)
        return packed.last(states)

    def forward(self, batch: TripleBatch, products: torch.dtype | None = None) -> Tensor:
        """Return the negative log-probability, in nats, summed over the words of all neighbors, a scalar.

        products: type of the products with the output vectors.
        """
        context = self.encode(batch.current)
        sides = (batch.previous, batch.following)
        if not self.decoders:
            # Both neighbors have the same distribution, which is computed once.
            return self._loss(context, join_parts(sides), products)
        losses = []
        for side, words in enumerate(sides):
            packed = pack(words)
            states = self.decoder(side)(context, take_rows(self.words, packed.tokens), packed)
            ids = packed.tokens.ids
            each = Bags(ids, torch.arange(len(ids) + 1, device=ids.device))
            losses.append(self._loss(states, each, products))
        return torch.stack(losses).sum()

    def _loss(self, states: Tensor, words: Bags, products: torch.dtype | None) -> Tensor:
        return negative_log_likelihood(states, self.output.weight, self.output.bias, words, products)


def join_parts(parts: Sequence[Bags]) -> Bags:
    """Join the sentences with the same number in all parts, in the order of the parts."""
    number = torch.cat([part.sentences for part in parts])
    order = number.argsort(stable=True)
    ids = torch.cat([part.ids for part in parts])[order]
    return Bags(ids, torch.stack([part.offsets for part in parts]).sum(0))


DECODERS = 2


def unroll(network: SentencePredictor, context: Tensor, steps: int) -> Tensor:
    """Return the first hidden states of both recurrent decoders, (sentences, 2, steps, context_dimension).

    The first input is <GO>, as in training. Each later input is the mean of all word vectors, weighted by the
    probabilities from the previous step (DD Figure 1).

    context: (sentences, context_dimension).
    """
    sides = []
    for side in range(DECODERS):
        decoder = network.decoder(side)
        state, word = context, decoder.start.expand(len(context), -1)
        states = []
        for step in range(steps):
            state = decoder.gru.step(decoder.gru.project(word), state)
            states.append(state)
            if step + 1 < steps:
                word = network.output(state).softmax(1) @ network.words[: network.predicted]
        sides.append(torch.stack(states, 1))
    return torch.stack(sides, 1)


def represent(
    network: SentencePredictor, sentences: Bags, representation: RepresentationParameters
) -> Tensor:
    """Return sentence vectors in a representation.

    The context, or the mean of the unrolled states: (sentences, context_dimension); the unrolled states side
    by side: (sentences, 2 x steps x context_dimension).
    """
    context = network.encode(sentences)
    if representation.kind == "context":
        return context
    states = unroll(network, context, representation.steps)
    return states.mean((1, 2)) if representation.kind == "mean" else states.flatten(1)


class Reader(Encoder):
    """Encodes sentences with a network and one of its representations.

    end: id of the end-of-sentence symbol, which is added to every sentence.
    """

    end = 0

    def __init__(self, network: SentencePredictor, parameters: ReaderParameters) -> None:
        super().__init__()
        self.network = network
        self.reading = parameters
        representation = parameters.representation
        states = DECODERS * representation.steps if representation.kind == "unrolled" else 1
        self.dimension = states * parameters.layers.context_dimension

    def table_units(self) -> dict[str, str]:
        """Return the name of the table with word vectors."""
        return {"network.words": WORD}

    def forward(self, batch: TokenBatch, tables: Mapping[str, Tensor] | None = None) -> Tensor:
        """Return sentence vectors, zeros for a sentence without tokens; `tables` is ignored."""
        bags = batch[WORD]
        ended = with_ends(bags.ids.cpu().numpy(), bags.offsets.cpu().numpy(), self.end)
        sentences = Bags(*map(torch.from_numpy, ended)).to(bags.ids.device)
        vectors = represent(self.network, sentences, self.reading.representation)
        return vectors.masked_fill((bags.lengths == 0).unsqueeze(1), 0)
