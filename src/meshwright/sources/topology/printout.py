"""A printout, whichever tool it is of, as a matrix of paths."""

from __future__ import annotations

from dataclasses import replace

from meshwright.sources.topology.amd import sections
from meshwright.sources.topology.cells import NODE, SYS, Path, gpu_of
from meshwright.sources.topology.matrix import Matrix, read_matrix
from meshwright.sources.topology.paste import clean_lines
from meshwright.sources.topology.rows import read_rows
from meshwright.sources.topology.wrong_text import PASTE, no_table
from meshwright.spec.errors import InputError


def read_printout(text: str, where: str) -> Matrix:
    """What `nvidia-smi topo -m`, `rocm-smi --showtopo` or `amd-smi topology` printed. Raises InputError that says which
    row, or what the text is instead."""
    lines = clean_lines(text)
    amd = sections(lines)
    if amd is not None and "link type" not in amd.titles:
        held = " and ".join(title for title in amd.titles if title in ("weight", "hops"))
        raise InputError(
            f"holds the {held} of links, not their kinds", where, "paste the output of `rocm-smi --showtopotype`, too"
        )
    table = read_rows(lines if amd is None else amd.link_types)
    if not any(gpu_of(row.label) is not None for row in table.rows):
        if table.peer_tables:
            raise InputError("looks like nvidia-smi topo -p2p: it says who may copy, not over which path", where, PASTE)
        named = [name for name in table.header if gpu_of(name) is not None]
        if named:
            raise InputError(f"names {named[0]} to {named[-1]} in its header, but has no row that can be read", where)
        raise no_table(lines, where)
    matrix = read_matrix(table, where)
    if amd is None:
        return matrix
    return replace(matrix, paths=_near(matrix, amd.numa), numa=amd.numa, has_numa=bool(amd.numa), amd=True)


def _near(matrix: Matrix, numa: dict[int, str]) -> dict[tuple[int, int], Path]:
    """PCIe paths taken to stay in the NUMA node where both ends do; AMD's tables don't tell more."""

    def inside(pair: tuple[int, int]) -> bool:
        one, other = numa.get(pair[0]), numa.get(pair[1])
        return one is not None and one == other

    return {pair: Path(NODE) if path.reach == SYS and inside(pair) else path for pair, path in matrix.paths.items()}
