"""How an encoder is trained end to end for a transfer task (Wieting 2016, 4.4)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from paraforge.base.section import Section

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
