"""What rules judge a plan against, what a rule is, and the numbers that rules ask about."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import gcd
from typing import Any

import numpy as np

from meshwright.spec.cluster import Cluster
from meshwright.spec.model import Model
from meshwright.spec.plan import Plan, PlanTable
from meshwright.spec.software import Software
from meshwright.spec.workload import Training


@dataclass(frozen=True, slots=True)
class Job:
    """What the rules judge a plan against."""

    model: Model
    cluster: Cluster
    software: Software
    workload: Training


@dataclass(frozen=True, slots=True)
class Rule:
    name: str
    broken: Callable[[Job, PlanTable], Any]
    explain: Callable[[Job, Plan], tuple[str, str]]
    """(what is wrong with the values, the smallest change that mends it)."""


def nearest(value: int, legal_values: Iterable[int]) -> int | None:
    """The legal value nearest to `value`, the smaller of two."""
    candidates = sorted(set(legal_values))
    return min(candidates, key=lambda candidate: (abs(candidate - value), candidate)) if candidates else None


def divisors(number: int) -> list[int]:
    small = [value for value in range(1, int(number**0.5) + 1) if number % value == 0]
    return sorted({*small, *(number // value for value in small)})


def head_counts(job: Job) -> list[tuple[int, int]]:
    """(heads, heads that share keys and values) of attention, and of recurrent mixers with their groups."""
    kinds = job.model.kinds
    counts = {(kind.attention.heads, kind.attention.kv_heads) for kind in kinds if kind.attention.kind != "none"}
    mixers = [kind.mixer for kind in kinds if kind.mixer is not None]
    return sorted(counts | {(mixer.heads, mixer.groups or mixer.heads) for mixer in mixers})


def mlp_widths(job: Job) -> list[int]:
    widths = set()
    for kind in job.model.kinds:
        widths |= {kind.mlp.width, kind.mlp.shared_width, kind.mlp.expert_width if kind.mlp.is_moe else 0}
    return sorted(widths - {0})


def expert_counts(job: Job) -> list[int]:
    return sorted({kind.mlp.experts for kind in job.model.kinds if kind.mlp.is_moe})


def legal_tensor_degrees(job: Job) -> list[int]:
    """Tensor-parallel degrees that the model's heads and widths allow."""
    counts = [heads for heads, _ in head_counts(job)] + mlp_widths(job)
    if not counts:
        return [1]
    common = gcd(*counts)
    return [tp for tp in divisors(common) if _kv_legal(job, tp)]


def legal_expert_degrees(job: Job, plan: Plan) -> list[int]:
    """Expert-parallel degrees that the model's experts and the plan's data-parallel ranks allow."""
    return divisors(gcd(plan.data_ranks, *expert_counts(job))) if expert_counts(job) else [1]


def _kv_legal(job: Job, tp: int) -> bool:
    return all(kv % tp == 0 or tp % kv == 0 for _, kv in head_counts(job) if kv)


def any_of(parts: Iterable[Any]) -> Any:
    result: Any = np.False_
    for part in parts:
        result = result | part
    return result
