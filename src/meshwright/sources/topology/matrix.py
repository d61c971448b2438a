"""Rows → which path joins each two GPUs, and what could not be read of it.

A cell that is missing or unreadable is taken from its mirror image. What is left open stays open: `hierarchy` decides
whether anything depends on it.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from itertools import combinations

from meshwright.sources.topology.cells import NVLINK, Path, gpu_of, is_affinity, is_not_given, is_self, path_of
from meshwright.sources.topology.columns import Columns
from meshwright.sources.topology.rows import Row, Table
from meshwright.spec.errors import InputError

_NODE = re.compile(r"\d+(-\d+)?")
Pair = tuple[int, int]
"""Two GPUs, the lower number first."""


@dataclass(frozen=True)
class Open:
    """A cell that is not known: why, and between which paths where two cells contradict each other."""

    reason: str
    between: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Matrix:
    """What a printout says. `paths` has one entry per pair of GPUs, or one in `open`."""

    gpus: tuple[int, ...]
    paths: dict[Pair, Path]
    open: dict[Pair, Open] = field(default_factory=dict)
    nics: tuple[str, ...] = ()
    nic_paths: dict[tuple[int, int], Path] = field(default_factory=dict)
    """(GPU, position of the adapter in `nics`) → path."""
    nic_pairs: tuple[Path, ...] = ()
    """Paths from adapter to adapter."""
    numa: dict[int, str] = field(default_factory=dict)
    """NUMA node of each GPU, as far as it is given."""
    has_numa: bool = False
    amd: bool = False
    peers_refused: bool = False
    notes: tuple[str, ...] = ()
    """What a reader of the printout should know about how it was read."""


def read_matrix(table: Table, where: str) -> Matrix:
    """The paths of the table. Raises InputError where rows contradict one another as a whole."""
    rows = _by_gpu(table, where)
    columns = Columns.of(table, rows, where)
    usual = _usual_width(columns, rows)
    last = list(rows)[-1]
    said = {gpu: _read_row(gpu, row, columns, usual, gpu == last) for gpu, row in rows.items()}
    paths, unknown = _merged(columns.gpus, said)
    nic_paths = {
        (gpu, position): path
        for gpu, row in rows.items()
        if _diagonal(row.cells) == [columns.position(gpu)]
        for position in range(len(columns.nics))
        if (path := _cell(row.cells, len(columns.gpus) + position)) is not None
    }
    return Matrix(
        gpus=columns.gpus,
        paths=paths,
        open=unknown,
        nics=tuple(table.nic_names.get(name.upper(), name) for name in columns.nics),
        nic_paths=nic_paths,
        nic_pairs=_nic_pairs(table, columns),
        numa={gpu: node for gpu, row in rows.items() if (node := _numa_node(row.tail))},
        has_numa=table.has_numa,
        peers_refused=table.peers_refused,
        notes=columns.notes,
    )


def name(gpu: int) -> str:
    """As the printout calls it."""
    return f"GPU{gpu}"


def _by_gpu(table: Table, where: str) -> dict[int, Row]:
    rows: dict[int, Row] = {}
    for row in table.rows:
        gpu = gpu_of(row.label)
        if gpu is None:
            continue
        if gpu in rows and rows[gpu].cells != row.cells:
            raise InputError(
                f"row {row.label} stands there twice, with {' '.join(rows[gpu].cells)} and with {' '.join(row.cells)}",
                where,
                "paste the output of one node",
            )
        rows.setdefault(gpu, row)
    return rows


def _usual_width(columns: Columns, rows: dict[int, Row]) -> int:
    """Cells that a whole row has."""
    counts = Counter(len(row.cells) for row in rows.values())
    most = max(counts.values(), default=0)
    common = max((width for width, count in counts.items() if count == most), default=0)
    return max(common, len(columns.gpus))


def _read_row(gpu: int, row: Row, columns: Columns, usual: int, last: bool) -> dict[int, Path | str]:
    """What the row says of each other GPU: a path, or why it can't be told. A row that was cut off on the right is
    trusted as far as it goes; one that lost a cell somewhere, up to its X."""
    cells, own = row.cells, columns.position(gpu)
    others = [other for other in columns.gpus if other != gpu]
    diagonal = _diagonal(cells)
    cut = not row.tail and len(cells) < usual
    if diagonal != [own] and not (not diagonal and cut and len(cells) <= own):
        found = f"its X in column {diagonal[0] + 1} instead of {own + 1}" if len(diagonal) == 1 else "no X of its own"
        return dict.fromkeys(others, f"row {name(gpu)} has {found}, so a cell before it is missing or unreadable")
    trusted = len(cells)
    if len(cells) != usual and not (cut and (last or columns.all_cut)):
        trusted = own + 1
    if cut and cells and (bonded := path_of(cells[-1])) is not None and bonded.links:
        trusted = min(trusted, len(cells) - 1)  # NV1 may be what is left of NV12
    said: dict[int, Path | str] = {}
    for other in others:
        position = columns.position(other)
        if position >= trusted:
            holds = "1 cell" if len(cells) == 1 else f"{len(cells)} cells"
            said[other] = f"row {name(gpu)} holds {holds}, not {usual}"
        else:
            token = cells[position]
            said[other] = path_of(token) or f"row {name(gpu)} reads {token!r} in column {name(other)}"
    return said


def _merged(gpus: tuple[int, ...], said: dict[int, dict[int, Path | str]]) -> tuple[dict[Pair, Path], dict[Pair, Open]]:
    """One entry per pair from the two rows that speak of it."""
    paths: dict[Pair, Path] = {}
    unknown: dict[Pair, Open] = {}
    for one, other in combinations(gpus, 2):
        here, mirror = (
            said[a][b] if a in said else f"row {name(a)} is not there" for a, b in ((one, other), (other, one))
        )
        if isinstance(here, Path) and isinstance(mirror, Path) and here != mirror:
            contradiction = (
                f"row {name(one)} reads {here.text} for {name(other)}, row {name(other)} reads {mirror.text} for "
                f"{name(one)}"
            )
            unknown[one, other] = Open(contradiction, (here, mirror))
        elif isinstance(here, Path):
            paths[one, other] = here
        elif isinstance(mirror, Path):
            paths[one, other] = mirror
        else:
            unknown[one, other] = Open(", ".join(dict.fromkeys((here, mirror))))
    return paths, unknown


def _diagonal(cells: list[str]) -> list[int]:
    return [position for position, token in enumerate(cells) if is_self(token)]


def _cell(cells: list[str], position: int) -> Path | None:
    return path_of(cells[position]) if position < len(cells) else None


def _nic_pairs(table: Table, columns: Columns) -> tuple[Path, ...]:
    found = []
    for row in table.rows:
        if gpu_of(row.label) is None:
            between = row.cells[len(columns.gpus) :]
            found += [path for token in between if (path := path_of(token)) is not None and path.reach != NVLINK]
    return tuple(found)


def _numa_node(tail: list[str]) -> str:
    """The NUMA node behind the list of processors."""
    given = list(tail)
    while given and is_not_given(given[-1]):
        given.pop()
    return given[-1] if len(given) > 1 and _NODE.fullmatch(given[-1]) and is_affinity(given[-2]) else ""
