"""Sentences as a packed sequence: sorted by length, all first tokens, then all second tokens, ...; no
padding."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from paraforge.embeddings.learning.batches import Bags, bag_mean, offsets_of, take_rows


@dataclass(frozen=True)
class PackedSentences:
    """A batch without its empty sentences, in packed order.

    tokens: ids in packed order. batch_sizes: int64 on the CPU (longest,), sentences that have a t-th token.
    sorted_sentences: the sentence at each place, longest first, those without tokens last.
    place: the packed place of each token of the original order, int64 (tokens,).
    """

    tokens: Bags
    batch_sizes: Tensor
    sorted_sentences: Tensor
    place: Tensor
    offsets: Tensor

    def __bool__(self) -> bool:
        """Whether there is any token at all: torch's recurrent modules refuse an empty sequence."""
        return len(self.place) > 0

    def vectors(self, rows: Tensor) -> PackedSequence:
        """Vectors of the tokens as torch's recurrent modules take them."""
        return PackedSequence(take_rows(rows, self.tokens), self.batch_sizes)

    def mean(self, states: Tensor) -> Tensor:
        """Mean over each sentence's tokens of (tokens, dimension) in packed order; 0 for a sentence without
        tokens."""
        return bag_mean(states, Bags(self.place, self.offsets))

    def maximum(self, states: Tensor) -> Tensor:
        """Of each element the maximum over a sentence's tokens of (tokens, dimension) in packed order; 0 for
        a sentence without tokens. Equal maxima share the gradient."""
        size = states.shape[1]
        sentence = Bags(self.place, self.offsets).sentences.unsqueeze(1).expand(-1, size)
        none = states.new_zeros(len(self.offsets) - 1, size)
        return none.scatter_reduce(0, sentence, states[self.place], "amax", include_self=False)

    def last(self, states: Tensor) -> Tensor:
        """The last token's row of (tokens, dimension) in packed order; 0 for a sentence without tokens."""
        has_tokens = self.offsets.diff() > 0
        lasts = self.place[self.offsets[1:][has_tokens] - 1]
        return bag_mean(states, Bags(lasts, offsets_of(has_tokens.long())))


def in_full_precision(cell: nn.RNNBase, vectors: PackedSequence) -> Tensor:
    """Hidden states of every token, (tokens, dimension), in packed order. On CUDA autocast runs torch's
    recurrent modules in float16, even where bfloat16 is asked for."""
    with torch.autocast(vectors.data.device.type, enabled=False):
        states, _ = cell(vectors)
    return states.data


def pack(bags: Bags) -> PackedSentences:
    """Sort the sentences by falling length, stably, and put their tokens in packed order."""
    lengths = bags.lengths
    sorted_sentences = lengths.argsort(descending=True, stable=True)
    device, tokens = lengths.device, len(bags.ids)
    # torch wants the sizes on the CPU. They are computed there, so that a GPU is waited for once.
    on_cpu = lengths.cpu()
    longest = int(on_cpu.max()) if len(on_cpu) else 0
    # How many sentences are longer than t: the sorted lengths, counted.
    counts = torch.bincount(on_cpu, minlength=longest + 1)
    batch_sizes = len(on_cpu) - counts.cumsum(0)[:longest]
    step_offsets = offsets_of(batch_sizes).to(device, non_blocking=True)
    step = torch.arange(longest, device=device).repeat_interleave(step_offsets.diff(), output_size=tokens)
    number = torch.arange(tokens, device=device)
    position = bags.offsets[sorted_sentences[number - step_offsets[step]]] + step
    place = torch.empty_like(position)
    place[position] = number
    packed = Bags(bags.ids[position], step_offsets)
    return PackedSentences(packed, batch_sizes, sorted_sentences, place, bags.offsets)
