"""How an encoder is trained end to end for a transfer task (Wieting 2016, 4.4), and what it starts from: a
copy of the model over the task's units, or weighted word vectors (SIF) as an encoder."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import torch
from pydantic import Field
from torch import Tensor

from paraforge.base.section import Section
from paraforge.base.text.units import make_units
from paraforge.base.text.vocabulary import UNKNOWN, WORD, Vocabulary
from paraforge.embeddings.encoders.build import build_encoder
from paraforge.embeddings.encoders.parameters import AverageParameters, VectorParameters
from paraforge.embeddings.evaluation.baselines.word_average import WordAverage
from paraforge.embeddings.trainer.initial import initial_table
from paraforge.embeddings.trainer.model import SentenceModel

Start = Literal["trained", "random"]


class FineTuningParameters(Section):
    """Start, optimiser and penalties of one training."""

    start: Start = Field(
        "trained", description="the model's own parameters, or random ones of the same architecture"
    )
    epochs: int = Field(10, ge=1, description="passes over the training examples at most")
    patience: int = Field(3, ge=1, description="epochs without gain on the development examples")
    batch_size: int = Field(25, ge=1, description="examples of a mini-batch")
    encoder: Literal["trained", "fixed"] = Field(
        "trained", description="fixed: only the layers above the sentence vectors are trained"
    )
    projection: int | None = Field(
        None, ge=1, description="elements of a linear layer over the sentence vectors; null: none"
    )
    hidden: int = Field(50, ge=1, description="units of the layer between sentence vectors and classes")
    optimiser: Literal["adam", "adagrad"] = Field("adam", description="Adam or AdaGrad")
    learning_rate: float | None = Field(
        None, gt=0, description="null: 0.001 of Adam, 0.05 of AdaGrad, as in the paper"
    )
    lambda_classifier: float = Field(
        1e-4, ge=0, description="L2 penalty of the layers above the sentence vectors"
    )
    lambda_words: float = Field(
        0.0, ge=0, description="L2 penalty of vectors of words or other units for leaving their start"
    )
    lambda_composition: float = Field(
        0.0, ge=0, description="L2 penalty of the encoder's other parameters for leaving their start"
    )
    new_units: int = Field(
        2,
        ge=0,
        description="a unit that the model does not know has a vector of its own where the training "
        "examples have it so often; it starts as the unknown unit's; 0: none has",
    )


def average_as_encoder(average: WordAverage, texts: Sequence[str]) -> SentenceModel:
    """An average of word vectors as an encoder: a word's row is its vector times its weight, without the
    common components, so the mean of the rows is the sentence's vector.

    texts: the words of other texts are unknown. A word that has no vector is unknown as well, which is a zero
        vector where the table has none; unlike in the average it counts in the sentence's length.
    """
    (cut,) = make_units(WORD).cut(pa.array(texts, pa.string()))
    known = average.vectors.rows(cut.vocabulary) >= 0
    words = [word for word, has in zip(cut.vocabulary, known, strict=True) if has and word != UNKNOWN]
    units = [UNKNOWN, *sorted(words)]
    rows = average.vectors.rows(units)
    table = np.array(average.vectors.vectors[np.maximum(rows, 0)], dtype=np.float32)
    table[rows < 0] = 0
    if average.weighting is not None:
        table *= average.weighting.weights(units)[:, None].astype(np.float32)
    table -= (table @ average.components.T) @ average.components
    parameters = AverageParameters(dimension=average.dimension)
    encoder = build_encoder(parameters, lambda part, number: torch.from_numpy(table), seed=0)
    return SentenceModel(encoder, parameters, {WORD: Vocabulary(units)})


def start_model(
    model: SentenceModel,
    training_texts: Sequence[str],
    other_texts: Sequence[str],
    start: Start,
    new_units: int,
    seed: int,
) -> SentenceModel:
    """A model of the same architecture over the units that a task has; the given one is not changed.

    Tables lose the rows that no text of the task reads, so an update of whole tables is fast. Units that the
    model does not know, and that the training texts have at least `new_units` times (0: none), get a row of
    their own, which starts as the unknown unit's.

    other_texts: of development and test examples; only units that the model knows are taken from them.
    start: `trained` takes the model's parameters; `random` draws all of them by seed, as a training would.
    """
    vocabularies: dict[str, Vocabulary] = {}
    counts: dict[str, npt.NDArray[np.int64]] = {}
    texts = [pa.array(some, pa.string()) for some in (training_texts, other_texts)]
    for unit, known in model.vocabularies.items():
        training, other = make_units(unit, model.sentencepiece_model).cut(*texts)
        found = training.vocabulary
        in_training = np.bincount(training.ids, minlength=len(found))
        in_other = np.bincount(other.ids, minlength=len(found))
        occurrences = {known.unknown: 0}
        for place in np.flatnonzero(in_training + in_other).tolist():
            text, times = found[place], int(in_training[place])
            own = text in known or (new_units > 0 and times >= new_units)
            name = text if own else known.unknown
            occurrences[name] = occurrences.get(name, 0) + times
        units = [known.unknown, *sorted(occurrences.keys() - {known.unknown})]
        vocabularies[unit] = Vocabulary(units, known.unknown)
        # How often the training texts have each.
        counts[unit] = np.array([occurrences[name] for name in units])

    def table(part: VectorParameters, number: int) -> Tensor:
        if start == "random":
            return initial_table(part, counts[part.unit], seed + number)
        return torch.empty(len(vocabularies[part.unit]), part.dimension)

    encoder = build_encoder(model.parameters, table, seed)
    if start == "trained":
        given, units_of_tables = dict(model.encoder.named_parameters()), encoder.table_units()
        with torch.no_grad():
            for name, value in encoder.named_parameters():
                if table_unit := units_of_tables.get(name):
                    rows = model.vocabularies[table_unit].ids_of(vocabularies[table_unit].units)
                    value.copy_(given[name][torch.from_numpy(rows)])
                else:
                    value.copy_(given[name])
    return SentenceModel(encoder.to(model.device), model.parameters, vocabularies, model.sentencepiece_model)
