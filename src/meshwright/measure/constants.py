"""Physical numbers that measurements can correct: where each one lives, how far it may move and how to move it.

A constant is fitted as a factor on what the catalog says, so that one constant can stand for the same number of several
entries (the matmul efficiency of every Hopper card) and keeps their proportions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from meshwright.spec.cluster import Cluster
from meshwright.spec.plan import Array
from meshwright.spec.software import Software

Factors = Sequence[float] | Array


class Place(Protocol):
    """Where a number lives in what a prediction is made from."""

    def read(self, cluster: Cluster, software: Software) -> float | None:
        """The number as it is; None where there is none (or it is 0, which no factor moves)."""

    def scaled(self, cluster: Cluster, software: Software, factor: float) -> tuple[Cluster, Software]:
        """Both with the number times `factor`."""


@dataclass(frozen=True)
class Constant:
    """A number to fit, with its prior: ln(value / catalog value) is taken as normal with standard deviation
    `spread`."""

    name: str
    place: Place
    value: float
    """The catalog's; of the first entry where it stands for several."""
    spread: float
    low: float = 0.0
    high: float = float("inf")
    """Hard bounds: no share above 1, no kernel faster than the hardware."""
    unit: str = ""

    def holds(self, cluster: Cluster, software: Software) -> bool:
        """Whether a prediction made from these can depend on the number."""
        return self.place.read(cluster, software) is not None

    def factors(self, subjects: Iterable[tuple[Cluster, Software]]) -> tuple[float, float]:
        """The least and largest factor that keep the number within its bounds in all of `subjects`."""
        values = [value for each in subjects if (value := self.place.read(*each)) is not None]
        if not values:
            return 1.0, 1.0
        # what already breaks a bound may stay, not go further
        return min(1.0, self.low / min(values)), max(1.0, self.high / max(values))


def apply(
    constants: Sequence[Constant], factors: Factors, cluster: Cluster, software: Software
) -> tuple[Cluster, Software]:
    """Cluster and software with every constant times its factor."""
    for constant, factor in zip(constants, factors, strict=True):
        if factor != 1.0 and constant.holds(cluster, software):
            cluster, software = constant.place.scaled(cluster, software, float(factor))
    return cluster, software
