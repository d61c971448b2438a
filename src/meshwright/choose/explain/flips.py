"""What would flip the choice: one quantity after another is changed until other degrees become the best.

A quantity steps outward from what it is now to a sixteenth and to sixteen times that. Between whole searches the plans
that they kept are priced again, which takes milliseconds; whole searches confirm both sides of every threshold and the
far ends, and what they find joins the plans that are priced again. Small spaces are searched wholly at every doubling,
and at every value of batch and sequence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from meshwright.choose.explain import variations
from meshwright.choose.explain.facts import Flip, Side
from meshwright.choose.keeper import Candidate, Layout
from meshwright.choose.objective import score
from meshwright.choose.pricing import priced, table_of
from meshwright.choose.search import Found
from meshwright.choose.sizes import search_sizes
from meshwright.choose.space import Fixed
from meshwright.spec.plan import Plan
from meshwright.spec.rules import Job

FARTHEST = 16
"""Quantities are changed up to this factor, either way."""
STEPS_PER_DOUBLING = 32
"""Steps of a quantity that isn't whole: 2.2 % apart."""
_WITHIN = 1.1
"""How far behind layouts may be that a search keeps for pricing again."""
_ROUNDING = 1e-6
"""More than a plan priced again may differ from the same plan in a search."""
_SMALL_SPACE = 20_000
"""Spaces with fewer plans are searched wholly at every doubling."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """Something that can be changed. `down` and `up` are the values to try, from now outward."""

    name: str
    title: str
    unit: str
    now: float
    down: tuple[float, ...]
    up: tuple[float, ...]
    apply: Callable[[Job, float], Job]
    few: bool = False
    """Whether every value is looked at, not only doublings and what lies before one that flips."""


def flips(
    job: Job, pins: Fixed, objective: str, found: Found, progress: Callable[[str], None] | None = None
) -> tuple[Flip, ...]:
    """For each quantity and direction, where the degrees of the best plan stop being the best. `found` is the search of
    the job as it is."""
    if not found.ranked:
        return ()
    base, pool = found.ranked[0].layout, _Pool()
    pool.take(found.by_layout)
    result = []
    best = found.ranked[0].plan
    # a batch that no plan with the chosen replicas can divide says nothing about what is better
    unit = best.dp * int(pins.get("num_micro_batches", 1)) * int(pins.get("micro_batch", 1))
    for quantity in quantities(job, objective, unit):
        for direction, values in (("down", quantity.down), ("up", quantity.up)):
            if not values:
                continue
            if progress is not None:
                progress(f"searching what would flip the choice: {quantity.title}, {direction}")
            asked = _Asked(job, pins, objective, quantity, pool, thorough=_thorough(found, objective))
            keeps, flipped = _threshold(asked, base, (quantity.now, *values))
            result.append(
                Flip(
                    quantity.name,
                    quantity.title,
                    quantity.unit,
                    quantity.now,
                    direction,  # type: ignore[arg-type]
                    keeps=_side(asked, keeps) if keeps != quantity.now else _known(quantity.now, found.ranked[0]),
                    flips=None if flipped is None else _side(asked, flipped),
                )
            )
    return tuple(result)


def quantities(job: Job, objective: str, batch_unit: int = 1) -> Iterator[Quantity]:
    """What can change the choice under an objective, and the values to try; batches in multiples of `batch_unit`."""
    for number, level in enumerate(job.cluster.levels) if objective != "memory" else ():
        yield _continuous(
            "link_speed",
            f"{level.name} speed",
            "bytes_per_s",
            level.bytes_per_s,
            _link_speed(number, level.bytes_per_s),
        )
        if level.ports_per_node:
            yield _every("ports_per_node", f"{level.name} ports", "per node", level.ports_per_node, _ports(number))
    memory = job.cluster.accelerator.memory_bytes
    yield _continuous(
        "memory",
        "accelerator memory",
        "bytes",
        memory,
        lambda each, value: variations.with_memory(each, value / memory),
    )
    workload = job.workload
    yield _whole(
        "global_batch", "global batch", "sequences", workload.global_batch,
        lambda each, value: variations.with_batch(each, int(value)), unit=batch_unit,
    )  # fmt: skip
    yield _whole(
        "seq_len", "sequence length", "tokens", workload.seq_len,
        lambda each, value: variations.with_seq_len(each, int(value)), most=job.model.max_positions,
    )  # fmt: skip


def _continuous(name: str, title: str, unit: str, now: float, apply: Callable[[Job, float], Job]) -> Quantity:
    steps = range(1, FARTHEST.bit_length() * STEPS_PER_DOUBLING - STEPS_PER_DOUBLING + 1)
    up = tuple(_rounded(now * 2 ** (step / STEPS_PER_DOUBLING)) for step in steps)
    down = tuple(_rounded(now / 2 ** (step / STEPS_PER_DOUBLING)) for step in steps)
    return Quantity(name, title, unit, now, down, up, apply)


def _every(name: str, title: str, unit: str, now: int, apply: Callable[[Job, float], Job]) -> Quantity:
    """Every whole value."""
    down, up = range(now - 1, max(now // FARTHEST, 1) - 1, -1), range(now + 1, now * FARTHEST + 1)
    return Quantity(name, title, unit, now, tuple(down), tuple(up), apply)


def _whole(
    name: str,
    title: str,
    unit_name: str,
    now: int,
    apply: Callable[[Job, float], Job],
    most: int = 0,
    unit: int = 1,
) -> Quantity:
    """Whole values: doublings and halvings, and the quarters between them, as far as they are multiples of `unit` or
    less than it."""
    up, down = (
        tuple(value for value in whole_steps(now, way) if value % unit == 0 or value < unit) for way in (True, False)
    )
    capped = tuple(value for value in up if not most or value <= most)
    return Quantity(name, title, unit_name, now, down, capped, apply, few=True)


def whole_steps(now: int, up: bool, farthest: int = FARTHEST) -> tuple[int, ...]:
    """Whole values from `now` outward, up to `farthest` times as much or as little: four steps to a doubling where
    those are whole."""
    found = []
    factor = 1
    while factor < farthest:
        for quarter in (5, 6, 7, 8):
            numerator, denominator = (now * factor * quarter, 4) if up else (now * (12 - quarter), 8 * factor)
            if numerator % denominator == 0:
                found.append(numerator // denominator)
        factor *= 2
    return tuple(found)


def _link_speed(number: int, now: float) -> Callable[[Job, float], Job]:
    return lambda job, value: variations.with_link_speed(job, number, value / now)


def _ports(number: int) -> Callable[[Job, float], Job]:
    return lambda job, value: variations.with_ports(job, number, int(value))


def _rounded(value: float) -> float:
    """Three digits are enough for a threshold."""
    return float(f"{value:.3g}")


# -- the answer at one value


def layout_of(plan: Plan) -> Layout:
    return plan.tp, plan.cp, plan.ep, plan.dp, plan.pp


class _Pool:
    """Plans that some search kept."""

    def __init__(self) -> None:
        self.plans: dict[str, Plan] = {}

    def take(self, candidates: Sequence[Candidate]) -> None:
        self.plans.update((str(each.plan), each.plan) for each in candidates)

    def best(self, job: Job, objective: str) -> tuple[float, Plan] | None:
        """(score, plan) of the best of the plans that are legal and fit, each on as many accelerators as it uses."""
        winner: tuple[float, Plan] | None = None
        for size in {plan.world_size for plan in self.plans.values()}:
            plans = [plan for plan in self.plans.values() if plan.world_size == size]
            part = variations.on_part(job, size)
            seconds, memory, legal = priced(part, table_of(plans))
            fits = legal & (memory <= part.cluster.accelerator.memory_bytes)
            scores = np.where(fits, score(objective, seconds, memory, size), np.inf)
            at = int(np.argmin(scores))
            if np.isfinite(scores[at]) and (winner is None or scores[at] < winner[0]):
                winner = float(scores[at]), plans[at]
        return winner


@dataclass
class _Asked:
    """One quantity of a job, and what is known of the best plan at its values."""

    job: Job
    pins: Fixed
    objective: str
    quantity: Quantity
    pool: _Pool
    thorough: bool
    searched: dict[float, Candidate | None] = field(default_factory=dict)

    def search(self, value: float) -> Candidate | None:
        """The best plan at a value, by a whole search."""
        if value not in self.searched:
            changed = self.quantity.apply(self.job, value)
            known = self.pool.best(changed, self.objective)
            whole = known is not None and known[1].world_size == changed.cluster.accelerators
            reached = known[0] * (1 + _ROUNDING) if known is not None and whole else np.inf
            _, found = search_sizes(changed, self.pins, self.objective, 1, _WITHIN, reached)
            self.pool.take(found.by_layout)
            self.searched[value] = found.ranked[0] if found.ranked else None
        return self.searched[value]

    def layout(self, value: float) -> Layout | None:
        best = self.search(value)
        return None if best is None else best.layout

    def likely_layout(self, value: float) -> Layout | None:
        """The same, among the plans that were kept."""
        if value in self.searched:
            return self.layout(value)
        known = self.pool.best(self.quantity.apply(self.job, value), self.objective)
        return None if known is None else layout_of(known[1])


def _threshold(asked: _Asked, base: Layout, values: Sequence[float]) -> tuple[float, float | None]:
    """(the last value that keeps the choice, the first one that doesn't); the second is None where the choice stands to
    the end."""
    doublings = list(range(len(values))) if asked.quantity.few else _doublings(values)
    if asked.thorough:
        for at in doublings[1:]:
            if asked.layout(values[at]) != base:
                break
    while True:
        flipped = (pair for pair in pairwise(doublings) if asked.likely_layout(values[pair[1]]) != base)
        low, high = next(flipped, (0, 0))
        if not high:
            if asked.layout(values[-1]) == base:
                return values[-1], None
            continue
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if asked.likely_layout(values[middle]) != base else (middle, high)
        # a search that finds something better than was kept sends us round again, wiser
        if asked.layout(values[high]) == base:
            doublings = sorted({*doublings, high})
            continue
        if low and asked.layout(values[low]) != base:
            doublings = sorted({*doublings, low})
            continue
        return values[low], values[high]


def _doublings(values: Sequence[float]) -> list[int]:
    """Positions of the values nearest to doublings (or halvings) of the first, and of the last value."""
    wanted, found = 2.0, [0]
    for position, value in enumerate(values):
        if max(value / values[0], values[0] / value) >= wanted * 0.99:
            found.append(position)
            wanted *= 2
    return sorted({*found, len(values) - 1})


def _thorough(found: Found, objective: str) -> bool:
    """Plans of other sizes can't be compared by pricing them again, so where sizes differ every doubling is
    searched."""
    return found.considered < _SMALL_SPACE or objective in ("cost", "fewest")


def _side(asked: _Asked, value: float) -> Side:
    best = asked.search(value)
    return Side(value, None, None) if best is None else _known(value, best)


def _known(value: float, best: Candidate) -> Side:
    degrees = {axis: best.fields[axis] for axis in ("tp", "cp", "ep", "dp", "pp")}
    return Side(value, degrees, best.step_time_s)
