"""The two penalties of Wieting 2016 Eq. 11 as gradients: on compositional parameters and on vectors that
leave their start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor


@dataclass(frozen=True)
class Regularisation:
    """`lambda_composition * ||W_c - anchor||^2 + lambda_words * ||W_initial - W_w||^2`.

    composition_anchors: what a compositional parameter is pulled to; zero where it is not named here.
    initial_tables: the tables' initial vectors, read only; needed where lambda_words > 0.

    A row feels its penalty when it is touched, with dense table updates always.
    """

    lambda_words: float = 0.0
    lambda_composition: float = 0.0
    initial_tables: Mapping[str, Tensor] = field(default_factory=dict)
    composition_anchors: Mapping[str, Tensor] = field(default_factory=dict)

    def add_row_gradient(self, name: str, rows: Tensor, values: Tensor, gradient: Tensor) -> None:
        """Add the penalty's gradient for some rows of a table to `gradient`, in place."""
        if self.lambda_words and name in self.initial_tables:
            initial = self.initial_tables[name][rows]
            gradient.add_(values - initial.to(values.device), alpha=2 * self.lambda_words)

    def add_gradient(self, name: str, value: Tensor, gradient: Tensor) -> None:
        """Add the penalty's gradient for a compositional parameter to `gradient`, in place."""
        if self.lambda_composition:
            anchor = self.composition_anchors.get(name)
            distance = value if anchor is None else value - anchor
            gradient.add_(distance, alpha=2 * self.lambda_composition)

    def value(self, tables: Mapping[str, Tensor], composition: Mapping[str, Tensor]) -> float:
        """The penalty itself, over whole tables and all compositional parameters."""
        total = 0.0
        with torch.no_grad():
            if self.lambda_words:
                for name, initial in self.initial_tables.items():
                    total += self.lambda_words * float((tables[name] - initial).square().sum())
            if self.lambda_composition:
                for name, value in composition.items():
                    anchor = self.composition_anchors.get(name)
                    distance = value if anchor is None else value - anchor
                    total += self.lambda_composition * float(distance.square().sum())
        return total
