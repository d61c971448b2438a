"""Where the ranks of each group sit: how many members of a group share each bandwidth domain.

Ranks are numbered along the plan's order, innermost axis first, and fill the cluster's domains in that order. Two plans
whose groups have the same members on every level communicate alike, whatever their order is called.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import mul

import numpy as np

from meshwright.spec.cluster import Level
from meshwright.spec.plan import AXES, ORDERS, Array, PlanTable

# position of each axis in each order: _POSITION[order, axis]
_POSITION = np.array([[order.index(axis) for axis in AXES] for order in ORDERS])


@dataclass(frozen=True, slots=True)
class Group:
    """Ranks that communicate with one another. `members[l]` is how many of them one domain of level l holds (the last
    level holds all); `factors` are the (stride, degree) pairs that the group is the product of."""

    degree: Array
    members: tuple[Array, ...]
    factors: tuple[tuple[Array, Array], ...]


@dataclass(frozen=True, slots=True)
class Placement:
    """The groups of a plan. `data` is dp × cp (ranks with the same weights); `shard` are its innermost ranks that share
    one sharded copy and `replicate` the ranks that hold the same shard; the expert groups split `data` likewise."""

    tensor: Group
    context: Group
    pipeline: Group
    ends: Group
    """The first and the last pipeline stage."""
    data: Group
    expert: Group
    shard: Group
    replicate: Group
    expert_data: Group
    expert_shard: Group
    expert_replicate: Group


def placement(levels: tuple[Level, ...], plans: PlanTable) -> Placement:
    """Groups of every plan in the table on the hierarchy `levels` (innermost first)."""
    strides = _strides(plans)
    degree = {"tp": plans.tp, "cp": plans.cp, "dp": plans.dp, "pp": plans.pp}
    axis = {name: _axis_group(levels, strides[name], degree[name]) for name in AXES}
    data = _product(axis["cp"], axis["dp"])
    expert = _inner(data, plans.ep)
    expert_data = _outer(data, expert)
    shard = _inner(data, plans.shard_group)
    expert_shard = _inner(expert_data, expert_shard_group(plans))
    return Placement(
        tensor=axis["tp"],
        context=axis["cp"],
        pipeline=axis["pp"],
        ends=_ends(axis["pp"]),
        data=data,
        expert=expert,
        shard=shard,
        replicate=_outer(data, shard),
        expert_data=expert_data,
        expert_shard=expert_shard,
        expert_replicate=_outer(expert_data, expert_shard),
    )


def expert_shard_group(plans: PlanTable) -> Array:
    """Ranks that share one sharded copy of the experts: those of the shard group that hold the same ones."""
    return np.asarray(np.maximum(1, plans.shard_group // plans.ep))


def signature(levels: tuple[Level, ...], plans: PlanTable) -> Array:
    """One row per plan of everything about its placement that a cost depends on; equal rows cost the same."""
    strides = _strides(plans)
    degree = {"tp": plans.tp, "cp": plans.cp, "dp": plans.dp, "pp": plans.pp}
    parts: list[Array] = []
    for name in AXES:
        group = _axis_group(levels, strides[name], degree[name])
        parts.extend(group.members)
        # the stride tells nothing more where there are switches only, except that an accelerator alone has no levels
        # at all
        torus = any(level.kind == "torus" for level in levels)
        parts.append(np.where(degree[name] > 1, strides[name], 0) if torus else np.zeros_like(strides[name]))
    return np.stack([np.broadcast_to(part, plans.shape) for part in parts], axis=-1)


def _strides(plans: PlanTable) -> dict[str, Array]:
    position = _POSITION[plans.order]
    degrees = (plans.tp, plans.cp, plans.dp, plans.pp)
    return {
        name: reduce(
            mul,
            (np.where(position[..., other] < position[..., index], degrees[other], 1) for other in range(len(AXES))),
        )
        for index, name in enumerate(AXES)
    }


def _axis_group(levels: tuple[Level, ...], stride: Array, degree: Array) -> Group:
    members = []
    for level in levels[:-1]:
        # a group that straddles domains unevenly is paced by its worst member: count only what every domain is sure
        # to hold
        inside = np.where(level.size % stride == 0, np.gcd(degree, np.maximum(1, level.size // stride)), 1)
        members.append(inside)
    if levels:
        members.append(np.asarray(degree))
    return Group(np.asarray(degree), tuple(members), ((stride, np.asarray(degree)),))


def _product(one: Group, other: Group) -> Group:
    """The ranks of two axes together, in the order of their rank numbers."""
    members = tuple(a * b for a, b in zip(one.members, other.members, strict=True))
    (one_stride, one_degree), (other_stride, other_degree) = one.factors[0], other.factors[0]
    first = one_stride <= other_stride
    inner = np.where(first, one_stride, other_stride), np.where(first, one_degree, other_degree)
    outer = np.where(first, other_stride, one_stride), np.where(first, other_degree, one_degree)
    return Group(one.degree * other.degree, members, (inner, outer))


def _inner(group: Group, degree: Array) -> Group:
    """The innermost `degree` ranks of a group."""
    members = tuple(np.gcd(count, degree) for count in group.members)
    factors = []
    left = np.asarray(degree)
    for stride, size in group.factors:
        part = np.gcd(left, size)
        factors.append((stride, part))
        left = left // part
    return Group(np.asarray(degree), members, tuple(factors))


def _outer(group: Group, inner: Group) -> Group:
    """The ranks of `group` that hold the same position in their `inner` group."""
    # where inner groups don't fill a domain evenly, none of it is sure to hold two ranks of the same position
    members = tuple(np.where(whole % inner.degree == 0, whole // inner.degree, 1) for whole in group.members)
    factors = tuple(
        (stride * part, size // part) for (stride, size), (_, part) in zip(group.factors, inner.factors, strict=True)
    )
    return Group(group.degree // inner.degree, members, factors)


def _ends(pipeline: Group) -> Group:
    degree = np.minimum(pipeline.degree, 2)
    members = tuple(np.where(count == pipeline.degree, degree, 1) for count in pipeline.members)
    ((stride, whole),) = pipeline.factors
    return Group(degree, members, ((stride * np.maximum(whole - 1, 1), degree),))
