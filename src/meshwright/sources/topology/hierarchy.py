"""A matrix of paths as levels of a cluster, where nothing that could not be read changes them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import product
from math import prod

from meshwright.sources.topology.cells import NVLINK, PIX, SYS, Path
from meshwright.sources.topology.domains import Domains, find_domains
from meshwright.sources.topology.matrix import Matrix, Open, Pair, name
from meshwright.sources.topology.nvlink import nvlink_levels
from meshwright.sources.topology.paths import host_level
from meshwright.spec.cluster import Accelerator, Level
from meshwright.spec.errors import InputError

MOST_TRIED = 400
"""Ways to fill the cells that are not known; where there are more, too much of the table is missing."""


@dataclass(frozen=True)
class Hierarchy:
    levels: tuple[Level, ...]
    domains: Domains

    @property
    def rank_order(self) -> tuple[int, ...]:
        return self.domains.rank_order


def build_hierarchy(matrix: Matrix, accelerator: Accelerator, where: str) -> Hierarchy:
    """The levels. Cells that are not known are filled in every way: one answer for all of them is the answer, else
    InputError names the cells."""
    if len(matrix.gpus) == 1:
        return Hierarchy((), Domains((), (), matrix.gpus))
    choices = [_choices(cell, matrix, accelerator) for cell in matrix.open.values()]
    if prod(map(len, choices)) > MOST_TRIED:
        raise _undecided(matrix.open, where)
    found: Hierarchy | None = None
    for filling in product(*choices):
        filled = matrix.paths | dict(zip(matrix.open, filling, strict=True))
        built = _build(matrix, filled, accelerator)
        if found is not None and (built.levels, built.rank_order) != (found.levels, found.rank_order):
            raise _undecided(matrix.open, where)
        found = found or built
    assert found is not None
    return found


def peer_to_peer(matrix: Matrix, accelerator: Accelerator) -> bool:
    """Whether cards copy to one another over PCIe."""
    return accelerator.peer_to_peer and not matrix.peers_refused


def _build(matrix: Matrix, paths: dict[Pair, Path], accelerator: Accelerator) -> Hierarchy:
    domains = find_domains(matrix.gpus, paths, accelerator.links)
    levels = nvlink_levels(accelerator, domains.nvlink, paths, matrix.amd) if domains.nvlink else ()
    inner = levels[-1].size if levels else 1
    direct = peer_to_peer(matrix, accelerator)
    for host in domains.host:
        together = max(inner, _on_one_node(matrix)) if host.reach == SYS else inner
        levels = (*levels, host_level(accelerator, host.reach, host.size, together, direct))
        inner = host.size
    return Hierarchy(levels, domains)


def _on_one_node(matrix: Matrix) -> int:
    """GPUs of the fullest NUMA node, which share its link to the others; 1 where no others are known."""
    nodes = Counter(matrix.numa.values())
    return max(nodes.values()) if len(nodes) > 1 else 1


def _choices(cell: Open, matrix: Matrix, accelerator: Accelerator) -> tuple[Path, ...]:
    if cell.between:
        return cell.between
    bonded = {path for path in matrix.paths.values() if path.reach == NVLINK}
    if accelerator.links:
        bonded |= {Path(NVLINK, 1), Path(NVLINK, accelerator.links)}
    return (*sorted(bonded), *(Path(reach) for reach in range(PIX, SYS + 1)))


def _undecided(unknown: dict[Pair, Open], where: str) -> InputError:
    pairs = list(unknown)
    texts = [f"{name(one)} and {name(other)} ({unknown[one, other].reason})" for one, other in pairs[:3]]
    more = f" and {len(pairs) - 3} more" if len(pairs) > 3 else ""
    return InputError(
        f"the path between {'; '.join(texts)}{more} can't be told, and the hierarchy depends on it",
        where,
        "paste the table again with every row whole",
    )
