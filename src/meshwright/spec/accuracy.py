"""How far off predictions were on sources that no constant was fitted to: what an honest range is made of."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Spread:
    """Measured over predicted step time: 80 % of the runs lie between `low` and `high`."""

    low: float
    high: float
    rows: int = 0
    sources: int = 0


@dataclass(frozen=True)
class Accuracy:
    """The spread of all runs, of regimes that were worse, and what was measured at all."""

    overall: Spread
    regimes: Mapping[str, Spread] = field(default_factory=dict)
    accelerators: frozenset[str] = frozenset()
    profiles: frozenset[str] = frozenset()
    unmeasured: float = 0.5
    """For each aspect of a job that no run had, the range widens by this share of itself."""

    def range(self, regimes: Iterable[str], unmeasured_aspects: int = 0) -> tuple[float, float]:
        """(low, high) factors on a predicted step time: the widest of the regimes that it is in."""
        spreads = [self.overall, *(self.regimes[name] for name in regimes if name in self.regimes)]
        wider = 1 + self.unmeasured * unmeasured_aspects
        low = min(math.log(min(spread.low, 1.0)) for spread in spreads)
        high = max(math.log(max(spread.high, 1.0)) for spread in spreads)
        return math.exp(wider * low), math.exp(wider * high)
