"""Every seed that the parameters allow is one that the generators take."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from paraforge.embeddings.parameters import TrainingParameters
from paraforge.nmt.parameters import NmtTrainingParameters
from paraforge.report.parameters import ReportParameters
from paraforge.section import Section
from paraforge.triplets.parameters import TripletsParameters
from paraforge.unrolling.parameters import PredictionParameters


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
