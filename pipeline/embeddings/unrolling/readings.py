"""A model judged by every way of reading it: context or unrolled states, by dot product and by cosine (DD
Tables 1 and 2, Appendix C)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import torch

from paraforge.base.interrupts import check_interrupt
from paraforge.embeddings.evaluation.sets.sentence_pairs import SentencePairs
from paraforge.embeddings.evaluation.similarity.sts import Compared, score
from paraforge.embeddings.unrolling.model import DecoderModel
from paraforge.embeddings.unrolling.parameters import DecodersParameters, RepresentationParameters
from paraforge.embeddings.unrolling.representation import compare, of_states


def readings_of(parameters: DecodersParameters) -> list[RepresentationParameters]:
    """Context, states side by side and their mean, each by dot product and by cosine, with the steps that the
    model is read by; of a bag-of-words decoder the context alone."""
    steps = parameters.reading.steps
    bow = parameters.network.decoder == "bow"
    return [
        RepresentationParameters.model_validate({"kind": kind, "steps": steps, "similarity": similarity})
        for kind in (("context",) if bow else ("context", "unrolled", "mean"))
        for similarity in ("dot", "cosine")
    ]


def scores_by_reading(
    model: DecoderModel, sets: Sequence[SentencePairs]
) -> dict[str, dict[str, float | None]]:
    """Pearson x 100 of each year by reading, e.g. `{"unrolled:3:cosine": {"2014": 41.3}}`; empty without
    sets.

    A sentence goes through the decoders once for all readings; memory holds the states of one set.
    """
    readings = readings_of(model.parameters)
    compared: dict[str, list[Compared]] = defaultdict(list)
    by_context = model.read_by(readings[0])
    for pairs in sets:
        check_interrupt()
        scored = pairs.scored
        texts = [*scored.first, *scored.second]
        vectors = {"context": by_context.encode(texts)}
        if any(reading.kind != "context" for reading in readings):
            states = torch.from_numpy(model.states(texts, readings[0].steps))
            vectors |= {
                reading.kind: of_states(states, reading).numpy()
                for reading in readings
                if reading.kind != "context"
            }
        for reading in readings:
            left, right = np.split(vectors[reading.kind], 2)
            values = compare(left, right, reading)
            compared[str(reading)].append(Compared(scored, values, pairs.unscored))
    return {
        name: {group.name: group.pearson for group in score(found).groups} for name, found in compared.items()
    }
