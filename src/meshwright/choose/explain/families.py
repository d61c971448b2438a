"""The kinds of layout: every plan is of exactly one, by the axes that have more than one rank."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from meshwright.choose import words
from meshwright.choose.explain.differences import behind, differences
from meshwright.choose.explain.facts import Alternative
from meshwright.choose.least_memory import least_memory
from meshwright.choose.reasons import lacks, why_not
from meshwright.choose.search import Found, search
from meshwright.choose.space import Fixed
from meshwright.cost.estimate import estimate
from meshwright.spec.estimate import Estimate
from meshwright.spec.plan import SHARDING, Plan
from meshwright.spec.rules import Job, divisors

Cell = Mapping[str, Any]
"""Pins, of which some allow several values."""


@dataclass(frozen=True, slots=True)
class Family:
    """The plans of any of these cells."""

    name: str
    title: str
    cells: tuple[Cell, ...]

    def holds(self, plan: Plan) -> bool:
        return any(all(_allows(pin, getattr(plan, name)) for name, pin in cell.items()) for cell in self.cells)


@dataclass(frozen=True, slots=True)
class Compared:
    """What alternatives are measured against: the best plan of a job on the accelerators that it uses."""

    job: Job
    pins: Fixed
    objective: str
    best: Estimate | None
    given: Plan | None = None

    @property
    def accelerators(self) -> int:
        return self.job.cluster.accelerators

    def found(self, cell: Cell) -> Found:
        """The best plan of a cell."""
        return search(self.job, self.accelerators, cell, self.objective, top=1, within=1.0)

    def against(self, name: str, title: str, priced: Estimate, given: bool = False) -> Alternative:
        """A plan that fits, with what it loses by."""
        best = self.best or priced
        chosen = _same(priced.plan, best.plan)
        return Alternative(
            name=name,
            title=title,
            verdict="chosen" if chosen else "lost",
            estimate=priced,
            behind=0.0 if chosen else behind(self.objective, priced, best),
            differences=() if chosen else differences(priced, best),
            given=given,
        )

    def best_of(self, name: str, title: str, cells: tuple[Cell, ...], given: bool = False) -> Alternative:
        """The best plan of some cells, or why they have none."""
        possible = [merged for merged in (merge(self.pins, cell) for cell in cells) if merged is not None]
        if not possible:
            against = [name for name in self.pins if any(not _admits(cell, name, self.pins) for cell in cells)]
            shown = ", ".join(f"{name} {words.pin(self.pins[name])}" for name in against)
            return Alternative(name, title, "excluded", reason=f"excluded by what is pinned: {shown}", given=given)
        found = [self.found(cell) for cell in possible]
        ranked = [each.ranked[0] for each in found if each.ranked]
        if ranked:
            winner = min(ranked, key=lambda each: each.score)
            return self.against(name, title, self.priced(winner.plan), given)
        if any(each.considered or each.too_large for each in found):
            return Alternative(name, title, "too large", reason=self._lacks(possible, found), given=given)
        return Alternative(name, title, "illegal", reason=why_not(self.job, possible[0]), given=given)

    def _lacks(self, cells: list[dict[str, Any]], found: list[Found]) -> str:
        """The least that the cells need. Where a bound of it doesn't say so already, it is searched for."""
        bounds = [each.least_bytes for one in found for each in one.too_large]
        least = [least_memory(self.job, cell) for cell in cells] if not bounds else []
        return lacks(self.job, min([*bounds, *(each.memory_bytes for each in least if each is not None)]))

    def priced(self, plan: Plan) -> Estimate:
        job = self.job
        return estimate(job.model, job.cluster, job.workload, plan, job.software)


def families(compared: Compared) -> tuple[Alternative, ...]:
    """The best plan of each family, or why it has none, on the accelerators that the best plan uses."""
    found = []
    for family in kinds(compared.accelerators, compared.job.model.is_moe):
        given = compared.given is not None and family.holds(compared.given)
        if compared.best is not None and family.holds(compared.best.plan):
            found.append(compared.against(family.name, family.title, compared.best, given))
        else:
            found.append(compared.best_of(family.name, family.title, family.cells, given))
    return tuple(found)


def kinds(accelerators: int, is_moe: bool) -> tuple[Family, ...]:
    """The families that so many accelerators allow. One accelerator has none."""
    many = frozenset(divisors(accelerators)) - {1}
    alone = {"tp": 1, "cp": 1, "pp": 1, "ep": 1}

    def family(name: str, title: str, *cells: Cell) -> Family:
        return Family(name, title, tuple({**alone, **cell} for cell in cells))

    everything = [
        (1, family("data", "pure data", {"dp": accelerators, "sharding": "none"})),
        (1, family("sharded-data", "sharded data", {"dp": accelerators, "sharding": frozenset(SHARDING) - {"none"}})),
        (1, family("tensor", "pure tensor", {"tp": accelerators, "dp": 1})),
        (1, family("pipeline", "pure pipeline", {"pp": accelerators, "dp": 1})),
        (1, family("context", "context and data", {"cp": many})),
        (2, family("tensor-data", "tensor and data", {"tp": many, "dp": many})),
        (2, family("pipeline-data", "pipeline and data", {"pp": many, "dp": many})),
        (2, family("tensor-pipeline", "tensor and pipeline", {"tp": many, "pp": many, "dp": 1})),
        (3, family("3d", "tensor, pipeline and data", {"tp": many, "pp": many, "dp": many})),
        (2, family("with-context", "context and more",
                   {"cp": many, "tp": many, "pp": many | {1}}, {"cp": many, "pp": many})),
    ]  # fmt: skip
    if is_moe:
        anything = many | {1}
        everything += [
            (1, family("expert-data", "experts and data", {"ep": many})),
            (1, family("with-experts", "experts and more",
                       {"ep": many, "tp": many, "pp": anything, "cp": anything},
                       {"ep": many, "pp": many, "cp": anything}, {"ep": many, "cp": many})),
        ]  # fmt: skip
    factors = _prime_factors(accelerators)
    return tuple(each for axes, each in everything if axes <= factors)


def merge(pins: Fixed, cell: Cell) -> dict[str, Any] | None:
    """Both at once; None where they exclude one another."""
    merged: dict[str, Any] = dict(pins)
    for name, pin in cell.items():
        if not _admits(cell, name, pins):
            return None
        merged.setdefault(name, pin)
    return merged


def _admits(cell: Cell, name: str, pins: Fixed) -> bool:
    """Whether what is pinned of a field, if anything, is among what the cell allows."""
    return name not in pins or name not in cell or _allows(cell[name], pins[name])


def _allows(pin: Any, value: Any) -> bool:
    return value in pin if isinstance(pin, frozenset) else bool(value == pin)


def _same(plan: Plan, other: Plan) -> bool:
    """Whether two plans are one. Layers that only one of them states are those that are solved for."""
    if not plan.layers_per_stage or not other.layers_per_stage:
        plan, other = replace(plan, layers_per_stage=()), replace(other, layers_per_stage=())
    return plan == other


def _prime_factors(number: int) -> int:
    count, factor = 0, 2
    while number > 1:
        while number % factor == 0:
            number, count = number // factor, count + 1
        factor += 1
    return count
