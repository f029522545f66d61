"""Every seed that the parameters allow is one that the generators take."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from paraforge.base.section import Section
from paraforge.embeddings.trainer.parameters import TrainingParameters
from paraforge.embeddings.unrolling.parameters import PredictionParameters
from paraforge.interface.report.parameters import ReportParameters
from paraforge.products.triplets.parameters import TripletsParameters
from paraforge.translation.training.parameters import NmtTrainingParameters


@pytest.mark.parametrize(
    ("section", "use"),
    [
        (ReportParameters, np.random.default_rng),
        (TripletsParameters, np.random.default_rng),
        (TrainingParameters, torch.Generator().manual_seed),
        (PredictionParameters, torch.Generator().manual_seed),
        (NmtTrainingParameters, np.random.RandomState),  # as fairseq's trainer does
    ],
)
def test_the_ends_of_the_range_can_be_used(section: type[Section], use: Callable[[int], object]) -> None:
    bounds = section.model_json_schema()["properties"]["seed"]
    use(bounds["minimum"])
    use(bounds.get("exclusiveMaximum", 1 << 80) - 1)
    with pytest.raises(ValidationError, match="greater than or equal to 0"):
        section.model_validate({"seed": -1})
