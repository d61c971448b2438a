"""What a group reaches on a torus: links to both neighbours of each dimension."""

from __future__ import annotations

from typing import Any

import numpy as np

from meshwright.program.placement import Group
from meshwright.spec.cluster import Level
from meshwright.spec.plan import Array


def _parts(level: Level, group: Group) -> list[tuple[int, Array]]:
    """(length, part of it that the group covers) for each dimension of the torus."""
    parts = []
    start = 1
    for length in level.dims:
        end = start * length
        covered: Any = 1
        for stride, degree in group.factors:
            low = np.maximum(stride, start)
            high = np.minimum(stride * degree, end)
            covered = covered * np.maximum(high // low, 1)
        parts.append((length, np.minimum(covered, length)))
        start = end
    return parts


def torus_ring(level: Level, group: Group) -> Array:
    """A whole wrapped dimension gives a ring with links in both directions, a partial one a line that uses one; the
    dimensions work on different shares of the data at once (Jouppi et al. 2023, TPU v4)."""
    total: Any = 0.0
    for length, part in _parts(level, group):
        whole = (part == length) & level.wrapped & (length > 2)
        total = total + np.where(part > 1, np.where(whole, 2, 1) * level.link_bytes_per_s, 0.0)
    return np.asarray(np.maximum(total, level.link_bytes_per_s))


def torus_all_to_all(level: Level, group: Group, members: Array) -> Array:
    """The busiest link sets the pace. Routed one dimension after the other, all data that a rank sends (B, its own part
    included) goes to evenly spread positions of each dimension, and the dimensions work at once.

    A line of k: across the middle link every rank of one side sends B/k to each of the other: k²//4 · B/k. A ring:
    from each rank k²//4 hops to all others, over two links per rank: half of that."""
    per_byte: Any = 0.0
    for length, part in _parts(level, group):
        whole = (part == length) & level.wrapped & (length > 2)
        load = part * part // 4 / part / np.where(whole, 2, 1)
        per_byte = np.maximum(per_byte, load / level.link_bytes_per_s)
    per_byte_to_others = per_byte * members / np.maximum(members - 1, 1)
    return np.asarray(level.efficiency / np.maximum(per_byte_to_others, 1 / level.bytes_per_s))


def torus_hops(level: Level, group: Group) -> Any:
    """Links that a send to the next rank of the group passes in the dimension where it goes furthest, which is also how
    many ranks share each of them when all send: s positions or back by the rest, min(s, length - s). Else one."""
    hops: Any = 1
    start = 1
    for length in level.dims if level.kind == "torus" else ():
        for stride, degree in group.factors:
            step = stride // start % length
            hops = np.maximum(hops, np.where(degree > 1, np.minimum(step, length - step), 1))
        start *= length
    return hops
