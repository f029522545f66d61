"""Splits a mega-batch into mini-batches on a GPU: all of them at once, so that none waits for the CPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from paraforge.learning.batches import Bags, offsets_of


def split_on_device(
    bags: Bags, sentences: Sequence[Tensor], vocabulary: int, device: torch.device
) -> Iterator[tuple[Bags, Tensor]]:
    """What `bags.select(numbers).compact()` gives for each of `sentences`, on the device.

    One sort does for all; sizes come back to the CPU once. The pieces share their memory.

    bags: on the CPU. sentences: numbers of sentences, one tensor a mini-batch, on the CPU.
    vocabulary: ids are below it.
    """
    numbers = torch.cat(list(sentences))
    sizes = torch.tensor([len(one) for one in sentences])
    sentence_starts = offsets_of(sizes)
    lengths = bags.lengths[numbers]
    ends = offsets_of(lengths)
    token_starts = ends[sentence_starts]
    tokens = int(ends[-1])

    # A sentence's place and first token, counted in its mini-batch; one offset more than sentences in each.
    batch_of_sentence = torch.arange(len(sizes)).repeat_interleave(sizes)
    place = torch.arange(len(numbers)) - sentence_starts[batch_of_sentence]
    with_end = torch.arange(len(sizes)).repeat_interleave(sizes + 1)
    offsets = ends[torch.arange(len(numbers) + len(sizes)) - with_end] - token_starts[with_end]

    on_device = {
        "ids": bags.ids,
        "starts": bags.offsets[numbers] - ends[:-1],
        "lengths": lengths,
        "offsets": offsets,
        "place": place,
        "batch": batch_of_sentence,
        "token_starts": token_starts,
    }
    moved = {name: value.to(device, non_blocking=True) for name, value in on_device.items()}

    def of_tokens(values: Tensor) -> Tensor:
        return values.repeat_interleave(moved["lengths"], output_size=tokens)

    ids = moved["ids"][of_tokens(moved["starts"]) + torch.arange(tokens, device=device)]
    batch = of_tokens(moved["batch"])
    keys, order = (batch * vocabulary + ids).sort(stable=True)
    distinct, counts = torch.unique_consecutive(keys, return_counts=True)
    batch_of_row = distinct // vocabulary
    row_starts = offsets_of(torch.bincount(batch_of_row, minlength=len(sizes)))

    rows = distinct - batch_of_row * vocabulary
    row_place = torch.arange(len(distinct), device=device) - row_starts[batch_of_row]
    compact = torch.empty_like(ids)
    compact[order] = row_place.repeat_interleave(counts, output_size=tokens)
    local_order = order - moved["token_starts"][batch]
    first_tokens = offsets_of(counts)[:-1] - moved["token_starts"][batch_of_row]
    row_offsets = torch.empty(len(distinct) + len(sizes), dtype=torch.int64, device=device)
    row_offsets[torch.arange(len(distinct), device=device) + batch_of_row] = first_tokens
    ends_of_rows = row_starts[1:] + torch.arange(len(sizes), device=device)
    row_offsets[ends_of_rows] = moved["token_starts"].diff()
    sentence_of_token = of_tokens(moved["place"])

    row_borders = row_starts.tolist()
    for number in range(len(sizes)):
        first, last = int(token_starts[number]), int(token_starts[number + 1])
        begin, end = int(sentence_starts[number]), int(sentence_starts[number + 1])
        top, bottom = row_borders[number], row_borders[number + 1]
        piece = Bags(compact[first:last], moved["offsets"][begin + number : end + number + 1])
        piece.__dict__["order"] = local_order[first:last]
        piece.__dict__["lengths"] = moved["lengths"][begin:end]
        piece.__dict__["sentences"] = sentence_of_token[first:last]
        piece.__dict__["row_offsets"] = row_offsets[top + number : bottom + number + 1]
        yield piece, rows[top:bottom]
