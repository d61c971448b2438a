"""How many accelerators to use: the search run on one number of them after another."""

from __future__ import annotations

from dataclasses import replace

from meshwright.choose.keeper import SHOWN_TIMES
from meshwright.choose.objective import sizes
from meshwright.choose.search import Found, fillable, search
from meshwright.choose.space import Fixed
from meshwright.spec.cluster import Cluster
from meshwright.spec.rules import Job


def search_sizes(
    job: Job, pins: Fixed, objective: str, top: int, within: float = SHOWN_TIMES, reached: float = float("inf")
) -> tuple[int, Found]:
    """(accelerators used, what was found there). All accelerators, unless the batch can't fill them, few are wanted, or
    money counts and fewer are cheaper. `within` and `reached` are those of `search`; what is reached must be so on all
    accelerators."""
    pinned = _pinned_size(job.cluster, pins)
    candidates = [pinned] if pinned else sizes(objective, job)
    best: tuple[int, Found] | None = None
    considered = 0
    for size in candidates:
        if len(candidates) > 1 and not fillable(job, size, pins):
            continue
        whole = size == job.cluster.accelerators
        found = search(job, size, pins, objective, top, within, reached if whole else float("inf"))
        considered += found.considered
        if found.ranked and objective != "cost":
            return size, replace(found, considered=considered)
        if best is None or _better(found, best[1]):
            best = size, found
        # where the accelerators can be filled, that nothing fits is the answer: fewer would not fit either
        if (found.considered or found.too_large) and objective not in ("cost", "fewest"):
            break
    if best is None:
        return job.cluster.accelerators, Found([], [], [], 0)
    return best[0], replace(best[1], considered=considered)


def _better(found: Found, than: Found) -> bool:
    if found.ranked and than.ranked:
        return found.ranked[0].score < than.ranked[0].score
    if found.ranked or than.ranked:
        return bool(found.ranked)
    return bool(found.too_large)


def _pinned_size(cluster: Cluster, pins: Fixed) -> int:
    """Accelerators of a plan whose degrees are all pinned, or all where so many aren't a part of the cluster; 0 if some
    degree is free."""
    size = 1
    for axis in ("tp", "cp", "dp", "pp"):
        if not isinstance(pins.get(axis), int):
            return 0
        size *= int(pins[axis])
    try:
        return cluster.part(size).accelerators
    except ValueError:
        return cluster.accelerators
