"""What the search keeps: the best plans, and for each set of degrees the best that fits and the fastest that
doesn't."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from meshwright.choose.objective import score
from meshwright.spec.plan import Array, Plan, decode

KEYS = (
    "pp", "tp", "cp", "ep", "order", "schedule", "virtual_stages", "recompute", "sharding", "shard_group",
    "micro_batch", "sequence_parallel", "offload",
)  # fmt: skip
"""Tie-breakers among equal scores, the first one first; the smaller value (or code) wins."""

SHOWN_TIMES = 2.0
"""Sets of degrees whose best plan scores more than this many times the best of all aren't kept, unless asked for."""

Layout = tuple[int, int, int, int, int]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A plan that the search kept (its `PlanTable` fields), with the numbers that it was judged by."""

    fields: dict[str, Any]
    layers_per_stage: tuple[int, ...]
    score: float
    step_time_s: float
    memory_bytes: float

    @property
    def plan(self) -> Plan:
        return decode(self.fields, self.layers_per_stage)

    @property
    def layout(self) -> Layout:
        fields = self.fields
        return fields["tp"], fields["cp"], fields["ep"], fields["dp"], fields["pp"]


@dataclass(frozen=True, slots=True)
class TooLarge:
    """A set of degrees that does not fit: the least seconds and the least bytes of its plans, and the plan that needs
    the fewest bytes, sharded as far as it goes."""

    lower_bound_s: float
    least_bytes: float
    plan: Plan


@dataclass(frozen=True, slots=True)
class Priced:
    """Plans as flat columns: `columns` holds each plan field, `layout` a number for the set of degrees of each plan."""

    columns: Callable[[Array], dict[str, Array]]
    """Plan fields at the given positions."""
    layers_per_stage: tuple[int, ...]
    layout: Array
    layouts: list[Layout]
    time_s: Array
    memory_bytes: Array
    legal: Array


class Keeper:
    """Takes priced plans, keeps few. `reached` is a score that some plan is known to reach."""

    def __init__(
        self,
        objective: str,
        accelerators: int,
        capacity_bytes: float,
        top: int,
        within: float = SHOWN_TIMES,
        reached: float = np.inf,
    ) -> None:
        self.objective = objective
        self.accelerators = accelerators
        self.capacity_bytes = capacity_bytes
        self.top = top
        self.within = within
        self.reached = reached
        self.considered = 0
        self._best: list[tuple[tuple[Any, ...], Candidate]] = []
        self._fitting: dict[Layout, tuple[tuple[Any, ...], Candidate]] = {}
        self._unfit: dict[Layout, TooLarge] = {}

    def score(self, time_s: Any, memory_bytes: Any) -> Any:
        return score(self.objective, time_s, memory_bytes, self.accelerators)

    def bound(self) -> float:
        """Score that a further plan must not exceed to be ranked."""
        lowest = self._best[self.top - 1][1].score if len(self._best) >= self.top else np.inf
        return float(min(lowest, self.reached)) if self.top == 1 else float(lowest)

    def layout_bounds(self, layouts: list[Layout]) -> Array:
        """Score, for each set of degrees, that a further plan must not exceed to be kept for anything: the best of its
        degrees so far, and not far behind the best of all; or the last that is ranked."""
        best = (self._fitting[each][1].score if each in self._fitting else np.inf for each in layouts)
        of_layout = np.fromiter(best, dtype=float, count=len(layouts))
        return np.asarray(np.maximum(np.minimum(of_layout, self._far()), self.bound()))

    def _far(self) -> float:
        return self.within * min(self._best[0][1].score if self._best else np.inf, self.reached)

    def ranked(self) -> list[Candidate]:
        return [candidate for _, candidate in self._best]

    def by_layout(self) -> list[Candidate]:
        near = (pair for pair in self._fitting.values() if pair[1].score <= self._far())
        return [candidate for _, candidate in sorted(near, key=lambda pair: pair[0])]

    def too_large(self) -> list[TooLarge]:
        """Sets of degrees of which nothing that was tried fits, the one that could be fastest first."""
        never = (
            each
            for layout, each in self._unfit.items()
            if layout not in self._fitting and each.least_bytes > self.capacity_bytes
        )
        return sorted(never, key=lambda each: each.lower_bound_s)

    def offer_unfit(self, layout: Layout, lower_bound_s: float, least_bytes: float, frugal: Callable[[], Plan]) -> None:
        """Note what a set of degrees would take at least, in seconds and in bytes; `frugal` is the plan of the
        latter."""
        known = self._unfit.get(layout)
        if known is None:
            self._unfit[layout] = TooLarge(lower_bound_s, least_bytes, frugal())
        elif least_bytes < known.least_bytes:
            self._unfit[layout] = TooLarge(min(lower_bound_s, known.lower_bound_s), least_bytes, frugal())
        elif lower_bound_s < known.lower_bound_s:
            self._unfit[layout] = replace(known, lower_bound_s=lower_bound_s)

    def offer(self, priced: Priced) -> None:
        """Keep what is good enough of these plans."""
        self.considered += int(np.count_nonzero(priced.legal))
        fits = priced.legal & (priced.memory_bytes <= self.capacity_bytes)
        wanted = np.where(fits, self.score(priced.time_s, priced.memory_bytes), np.inf)
        bound = self.bound()
        if wanted.size > self.top:
            bound = min(bound, float(np.partition(wanted, self.top - 1)[self.top - 1]))
        positions = np.nonzero((wanted <= bound) & np.isfinite(wanted))[0]
        if len(positions):
            self._best += self._candidates(priced, wanted, self._first(priced, wanted, positions)[: self.top])
        self._best.sort(key=lambda pair: pair[0])
        del self._best[self.top :]
        self._offer_layouts(priced, wanted)

    def _first(self, priced: Priced, wanted: Array, positions: Array) -> Array:
        """Positions in order of score and tie-breakers."""
        columns = priced.columns(positions)
        return positions[np.lexsort([*(columns[name] for name in reversed(KEYS)), wanted[positions]])]

    def _offer_layouts(self, priced: Priced, wanted: Array) -> None:
        lowest = np.full(len(priced.layouts), np.inf)
        np.minimum.at(lowest, priced.layout, wanted)
        kept = np.array([self._fitting[each][1].score if each in self._fitting else np.inf for each in priced.layouts])
        better = np.isfinite(lowest) & (lowest <= kept)
        positions = np.nonzero((wanted == lowest[priced.layout]) & better[priced.layout])[0]
        if not len(positions):
            return
        ordered = self._first(priced, wanted, positions)
        _, first = np.unique(priced.layout[ordered], return_index=True)
        for key, candidate in self._candidates(priced, wanted, ordered[first]):
            layout = candidate.layout
            if layout not in self._fitting or key < self._fitting[layout][0]:
                self._fitting[layout] = (key, candidate)

    def _candidates(self, priced: Priced, wanted: Array, positions: Array) -> list[tuple[tuple[Any, ...], Candidate]]:
        columns = priced.columns(positions)
        rows = zip(*(columns[name].tolist() for name in columns), strict=True)
        found = []
        for position, row in zip(positions, rows, strict=True):
            fields = dict(zip(columns, row, strict=True))
            key = (float(wanted[position]), *(fields[name] for name in KEYS))
            time_s, memory = float(priced.time_s[position]), float(priced.memory_bytes[position])
            found.append((key, Candidate(fields, priced.layers_per_stage, key[0], time_s, memory)))
        return found
