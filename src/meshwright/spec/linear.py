"""One weight matrix and the way tensor parallelism splits it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Split = Literal["column", "row", "replicated"]


@dataclass(frozen=True, slots=True)
class Linear:
    """One weight matrix of shape (out_features, in_features) and how tensor parallelism splits it.

    `column` splits the output, `row` the input, `replicated` neither. `units` is the number of indivisible pieces along
    the split dimension (attention heads); 0 means that any whole share will do. A matrix that exists once per routed
    expert has `experts` copies, of which a token passes through `active`.
    """

    name: str
    in_features: int
    out_features: int
    split: Split
    units: int = 0
    bias: bool = False
    experts: int = 1
    active: int = 1

    @property
    def is_expert(self) -> bool:
        return self.experts > 1

    @property
    def matrix_parameters(self) -> int:
        return self.in_features * self.out_features * self.experts

    @property
    def num_parameters(self) -> int:
        return self.matrix_parameters + (self.out_features * self.experts if self.bias else 0)

    @property
    def active_parameters(self) -> int:
        """Parameters that one token passes through."""
        return self.num_parameters // self.experts * self.active
