"""What an explanation says, as plain data: all that a terminal or a JSON document shows of it comes from here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from meshwright.spec.estimate import Estimate

Verdict = Literal["chosen", "lost", "too large", "illegal", "excluded"]


@dataclass(frozen=True, slots=True)
class Difference:
    """Exposed seconds of one part of the step, another plan minus the best. `levels` are the links on which the plan
    that spends more of it does so."""

    part: str
    seconds: float
    levels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another way to lay the job out: its best plan that fits, or why it has none.

    `behind` is how much worse that plan is than the best of all by the objective, as a share; `differences` add up to
    the difference of the step times.
    """

    name: str
    title: str
    verdict: Verdict
    estimate: Estimate | None = None
    behind: float = 0.0
    differences: tuple[Difference, ...] = ()
    reason: str = ""
    """Why there is no plan; empty where there is one."""
    given: bool = False
    """Whether the plan that is explained is of this kind."""


@dataclass(frozen=True, slots=True)
class Rung:
    """The fullest rank's memory after one more part of the plan is applied."""

    change: str
    memory_bytes: Mapping[str, float]
    capacity_bytes: float

    @property
    def total_bytes(self) -> float:
        return sum(self.memory_bytes.values())

    @property
    def fits(self) -> bool:
        return self.total_bytes <= self.capacity_bytes


@dataclass(frozen=True, slots=True)
class Link:
    """What one axis moves over one level of links: of the slowest rank, per step."""

    axis: str
    level: str
    wire_bytes_per_step: float
    seconds: float
    hidden_s: float
    exposed_s: float


@dataclass(frozen=True, slots=True)
class Move:
    """An axis one level further in or out, all else of the plan as it is but the order of ranks: the best order that
    puts it there, or none (`order` empty) and why."""

    axis: str
    direction: Literal["in", "out"]
    level: str
    to_level: str
    order: tuple[str, ...] = ()
    seconds: float = 0.0
    exposed_s: float = 0.0
    step_time_s: float = 0.0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Bubble:
    """Idle time of the pipeline. Efficiencies are the schedule's alone: how busy ranks of equal work are."""

    schedule: str
    stages: int
    virtual_stages: int
    num_micro_batches: int
    efficiency: float
    efficiency_1f1b: float
    idle_s: float
    transfer_s: float


@dataclass(frozen=True, slots=True)
class Faster:
    """The same plan where one thing is twice as fast."""

    name: str
    step_time_s: float


@dataclass(frozen=True, slots=True)
class Binding:
    """The largest parts of the step, and what the step would take if one thing were twice as fast."""

    part: str
    share: float
    twice_as_fast: tuple[Faster, ...]
    memory_share: float


@dataclass(frozen=True, slots=True)
class Side:
    """What is best at one value: the degrees of the plan, None where nothing fits or is legal."""

    value: float
    plan: Mapping[str, Any] | None
    step_time_s: float | None


@dataclass(frozen=True, slots=True)
class Flip:
    """Where another layout becomes the best when one quantity changes and all else stays.

    `keeps` and `flips` are the values on the two sides, each found best by a whole search; `flips` is None where the
    choice stands as far as `keeps`, the end of what was searched.
    """

    name: str
    title: str
    unit: str
    now: float
    direction: Literal["down", "up"]
    keeps: Side
    flips: Side | None


@dataclass(frozen=True, slots=True)
class Change:
    """A single change with which something fits. `value` is what it must become: a number in `unit`, or a name."""

    kind: str
    title: str
    unit: str
    now: Any
    value: Any
    estimate: Estimate | None = None
    """The best plan then; None where only memory is counted."""


@dataclass(frozen=True)
class Explanation:
    """Why this plan, why not the others, and what would change the answer. Every number is an estimate's."""

    objective: str
    estimate: Estimate | None
    """The plan that is explained; None where nothing fits."""
    best: Estimate | None
    accelerators_used: int
    layouts_ahead: int
    """Other sets of degrees that are known to have a better plan, among those at most twice as slow as the best: 0 for
    the best plan itself."""
    gap: Alternative | None
    """The explained plan against the best one, where it is another."""
    pins: Mapping[str, Any]
    unpinned: Alternative | None
    """The best plan without the pinned fields, where that is better."""
    no_plan: tuple[str, ...]
    """Why there is no best plan; empty where there is one."""
    memory: tuple[Rung, ...]
    links: tuple[Link, ...]
    moves: tuple[Move, ...]
    bubble: Bubble | None
    binding: Binding | None
    runner_up: Alternative | None
    families: tuple[Alternative, ...]
    slogan: Alternative | None
    flips: tuple[Flip, ...] | None
    """None where they were not searched for."""
    to_fit: tuple[Change, ...] | None
    """None where something fits, or where the changes were not searched for."""
    text: tuple[str, ...] = field(default=())

    def __str__(self) -> str:
        return "\n".join(self.text)

    def __repr__(self) -> str:
        return f"<Explanation of {self.estimate!r}>"
