"""What rings reach on point-to-point links, and how to group the GPUs of such a mesh.

A ring of NCCL runs over links that no other ring uses. Each link carries data both ways, so a cycle makes two rings,
one in either direction: the bandwidth of a group is twice the number of cycles through all its members that share no
link. Between two GPUs, all links that join them count.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import combinations

import numpy as np

LARGEST = 8
"""Groups up to this size are searched; larger meshes of bare links haven't been built."""
_MOST_STEPS = 20_000

Weights = tuple[tuple[int, ...], ...]
"""Links between each two GPUs of a mesh."""
Members = tuple[int, ...]


@cache
def ring_links(weights: Weights, members: Members) -> int:
    """Links per GPU and direction that rings through exactly these members can use at once; 0 where no ring exists."""
    if len(members) == 2:
        return weights[members[0]][members[1]]
    if len(members) > LARGEST:
        return 0
    cycles = [_edges(cycle) for cycle in _cycles(weights, members)]
    left = {(a, b): weights[a][b] for a, b in combinations(sorted(members), 2)}
    most = min(sum(weights[a][b] for b in members) for a in members) // 2
    return 2 * _packed(cycles, left, most)


def pair_share(weights: Weights) -> float:
    """Links that each pair has to itself when all GPUs of the mesh send to all others: the tightest cut decides."""
    matrix = np.array(weights)
    count = len(weights)
    tightest = float("inf")
    for code in range(1, 2 ** (count - 1)):
        inside = np.array([code >> position & 1 for position in range(count)], dtype=bool)
        across = matrix[inside][:, ~inside].sum() / (inside.sum() * (~inside).sum())
        tightest = min(tightest, float(across))
    return tightest


def split(weights: Weights, members: Members, size: int) -> tuple[Members, ...]:
    """The members in groups of `size`, so that the worst group's ring is as fast as can be; the first such split in
    the order of the numbers, so that groups of neighbours win a tie."""
    return max(_splits(members, size), key=lambda groups: min(ring_links(weights, group) for group in groups))


def grouped(weights: Weights, members: Members) -> Members:
    """The members in an order in which halves, quarters and so on are the fastest groups of their size."""
    if len(members) < 4 or len(members) % 2 or len(members) > LARGEST:
        return members
    halves = split(weights, members, len(members) // 2)
    return tuple(member for half in halves for member in grouped(weights, half))


def _splits(members: Members, size: int) -> Iterator[tuple[Members, ...]]:
    if not members:
        yield ()
        return
    first, rest = members[0], members[1:]
    for others in combinations(rest, size - 1):
        remaining = tuple(member for member in rest if member not in others)
        for groups in _splits(remaining, size):
            yield ((first, *others), *groups)


def _cycles(weights: Weights, members: Members) -> list[Members]:
    """Cycles through all members, each once whichever way it runs."""
    start = members[0]
    found: list[Members] = []

    def extend(path: Members) -> None:
        if len(path) == len(members):
            if weights[path[-1]][start] and path[1] < path[-1]:
                found.append(path)
            return
        for after in members:
            if after not in path and weights[path[-1]][after]:
                extend((*path, after))

    extend((start,))
    return found


def _edges(cycle: Members) -> tuple[tuple[int, int], ...]:
    around = zip(cycle, (*cycle[1:], cycle[0]), strict=True)
    return tuple((min(a, b), max(a, b)) for a, b in around)


def _packed(cycles: list[tuple[tuple[int, int], ...]], left: dict[tuple[int, int], int], most: int) -> int:
    """The largest number of cycles that share no link, at most `most`; what was found, where the search is cut off."""
    best = steps = 0

    def add(first: int, taken: int) -> None:
        nonlocal best, steps
        best = max(best, taken)
        for position in range(first, len(cycles)):
            steps += 1
            if best >= most or steps > _MOST_STEPS:
                return
            edges = cycles[position]
            if all(left[edge] for edge in edges):
                for edge in edges:
                    left[edge] -= 1
                add(position, taken + 1)
                for edge in edges:
                    left[edge] += 1

    add(0, 0)
    return best
