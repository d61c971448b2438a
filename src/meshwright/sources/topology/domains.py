"""Paths → nested domains of equal size, innermost first, and the order of GPUs in which each is contiguous.

Domains whose sizes differ can't be one level of a hierarchy, since ranks fill it evenly. They are left out, which
prices their traffic at the next level further out, and kept as `uneven` for a warning.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from math import gcd

from meshwright.sources.topology.cells import NVLINK, PIX, SYS, Path
from meshwright.sources.topology.matrix import Pair
from meshwright.sources.topology.rings import LARGEST, Weights, grouped, ring_links, split

Groups = tuple[tuple[int, ...], ...]
"""GPUs by number, in their domains."""


@dataclass(frozen=True)
class Uneven:
    """Domains of one reach that differ in size."""

    reach: int
    groups: Groups


@dataclass(frozen=True)
class HostLevel:
    """Domains joined by the processor: `reach` is the worst path inside one."""

    reach: int
    size: int


@dataclass(frozen=True)
class Domains:
    """`nvlink` are the domains of NVLink, none where there is no such level. `rank_order` lists the GPUs."""

    nvlink: Groups
    host: tuple[HostLevel, ...]
    rank_order: tuple[int, ...]
    uneven: tuple[Uneven, ...] = ()


def find_domains(gpus: tuple[int, ...], paths: dict[Pair, Path], links: int) -> Domains:
    """The nested domains of the GPUs, each of which has so many NVLinks (0: not known)."""
    uneven: list[Uneven] = []
    nvlink = _nvlink_domains(gpus, paths, links, uneven)
    groups: Groups = nvlink or tuple((gpu,) for gpu in gpus)
    nested = [groups]
    host: list[HostLevel] = []
    for reach in range(PIX, SYS + 1):
        wider = _joined(groups, paths, reach)
        if wider == groups:
            continue
        if len({len(group) for group in wider}) > 1:
            if not uneven:
                uneven.append(Uneven(reach, wider))
            continue
        inside = [paths[_pair(a, b)].reach for group in wider for a, b in combinations(group, 2)]
        host.append(HostLevel(max(inside), len(wider[0])))
        groups = wider
        nested.append(groups)
    return Domains(nvlink, tuple(host), _rank_order(nested), tuple(uneven))


def link_weights(group: tuple[int, ...], paths: dict[Pair, Path]) -> Weights:
    """Links between each two GPUs of the group; a link that isn't counted is one."""
    return tuple(tuple(0 if one == other else _links(paths[_pair(one, other)]) for other in group) for one in group)


def _links(path: Path) -> int:
    return (path.links or 1) if path.reach == NVLINK else 0


def is_switched(weights: Weights, links: int) -> bool:
    """Whether the GPUs hang on a switch: a GPU then reads the same links for each of its peers, so their sum exceeds
    the links that it has."""
    return 0 < links < max(map(sum, weights))


def _nvlink_domains(gpus: tuple[int, ...], paths: dict[Pair, Path], links: int, uneven: list[Uneven]) -> Groups:
    """GPUs that reach one another over NVLink in a ring; groups of equal size, or none."""
    joined = _joined(tuple((gpu,) for gpu in gpus), paths, NVLINK)
    sizes = {len(group) for group in joined}
    if sizes == {1}:
        return ()
    if len(sizes) > 1:
        uneven.append(Uneven(NVLINK, joined))
    size = reduce(gcd, sizes)
    while size > 1:
        groups = [part for group in joined for part in _parts(group, size, paths, links)]
        if all(_has_ring(part, paths, links) for part in groups):
            return tuple(groups)
        size = size // 2 if size % 2 == 0 else 1
    if len(sizes) == 1:
        uneven.append(Uneven(NVLINK, joined))
    return ()


def _parts(group: tuple[int, ...], size: int, paths: dict[Pair, Path], links: int) -> Groups:
    """The component in groups of `size`, each ordered so that its halves are fast, too."""
    weights = link_weights(group, paths)
    positions = tuple(range(len(group)))
    switched = is_switched(weights, links)
    if len(group) == size or switched:
        parts = tuple(positions[start : start + size] for start in range(0, len(group), size))
    elif len(group) > LARGEST:
        return tuple(group[start : start + size] for start in range(0, len(group), size))
    else:
        parts = split(weights, positions, size)
    if not switched and not is_even(weights):
        parts = tuple(grouped(weights, part) for part in parts)
    return tuple(tuple(group[position] for position in part) for part in parts)


def _has_ring(group: tuple[int, ...], paths: dict[Pair, Path], links: int) -> bool:
    weights = link_weights(group, paths)
    if is_complete(weights):
        return True
    return not is_switched(weights, links) and ring_links(weights, tuple(range(len(group)))) > 0


def is_complete(weights: Weights) -> bool:
    """Whether each two GPUs have a link."""
    return all(weights[a][b] for a, b in combinations(range(len(weights)), 2))


def is_even(weights: Weights) -> bool:
    """Whether each two GPUs have the same number of links."""
    return len({weights[a][b] for a, b in combinations(range(len(weights)), 2)}) == 1


def _joined(groups: Groups, paths: dict[Pair, Path], reach: int) -> Groups:
    """The groups, merged wherever a path of at most this reach leads from one to another."""
    merged: list[tuple[int, ...]] = []
    for group in groups:
        touching = [other for other in merged if any(paths[_pair(a, b)].reach <= reach for a in group for b in other)]
        merged = [other for other in merged if other not in touching]
        merged.append(tuple(gpu for part in (*touching, group) for gpu in part))
    return tuple(sorted(merged, key=min))


def _rank_order(nested: list[Groups]) -> tuple[int, ...]:
    """The GPUs so that the domains of every level are contiguous, by their lowest number otherwise."""
    place = {gpu: position for group in nested[0] for position, gpu in enumerate(group)}

    def key(gpu: int) -> tuple[int, ...]:
        return (*(next(min(g) for g in groups if gpu in g) for groups in reversed(nested)), place[gpu])

    return tuple(sorted(place, key=key))


def _pair(one: int, other: int) -> Pair:
    return (one, other) if one < other else (other, one)
