"""A table of measured collectives: its rows, and what the network model says for them.

Columns as in nccl-tests: `message_bytes` is the whole buffer, `time_us` the time of one call.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from meshwright.cost.network import Collective, Network, Route
from meshwright.program.placement import Group, placement
from meshwright.spec.cluster import Level
from meshwright.spec.collectives import CollectiveLibrary
from meshwright.spec.errors import InputError
from meshwright.spec.plan import Array, Plan

NEEDED = ("gpu", "gpus_total", "collective", "message_bytes", "time_us")
_COLLECTIVES: dict[str, Collective] = {
    "all_reduce": "all_reduce",
    "all_gather": "all_gather",
    "reduce_scatter": "reduce_scatter",
    "alltoall": "all_to_all",
    "all_to_all": "all_to_all",
}
MIB = 2.0**20


@dataclass(frozen=True, slots=True)
class Call:
    """One measured call of a collective among `ranks` accelerators of one node."""

    source: str
    gpu: str
    collective: Collective
    ranks: int
    payload_bytes: float
    seconds: float


@dataclass(frozen=True)
class Series:
    """Calls that differ in size only; sizes rise, repeated measurements of one size are one (their geometric mean)."""

    gpu: str
    collective: Collective
    ranks: int
    payload_bytes: Array
    seconds: Array


def group_of(levels: tuple[Level, ...], ranks: int) -> Group:
    """The first `ranks` accelerators of the levels, as one group."""
    return placement(levels, Plan(dp=ranks).table()).data


def predicted_s(series: Series, levels: tuple[Level, ...], group: Group, library: CollectiveLibrary) -> Array:
    """Seconds that the model says for each call of the series, made by the group on the levels."""
    return Network(levels, library).collective_s(series.collective, series.payload_bytes, Route(levels, group))


def series_of(calls: Iterable[Call]) -> tuple[Series, ...]:
    """The calls by accelerator, collective and ranks."""
    sizes: dict[tuple[str, Collective, int], dict[float, list[float]]] = {}
    for call in calls:
        by_size = sizes.setdefault((call.gpu, call.collective, call.ranks), {})
        by_size.setdefault(call.payload_bytes, []).append(np.log(call.seconds))
    return tuple(
        Series(*key, np.array(sorted(found)), np.exp([np.mean(found[size]) for size in sorted(found)]))
        for key, found in sizes.items()
    )


def read_calls(path: Path) -> tuple[Call, ...]:
    """The calls of the table on one node, in its order; other rows (several nodes, transfers, dispatch of experts, no
    size or time) are left out. Raises InputError where the file isn't such a table or a number in it isn't one."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            missing = [name for name in NEEDED if name not in (reader.fieldnames or ())]
            if missing:
                raise InputError(f"is no table of collectives: it has no column {missing[0]}", str(path))
            rows = [(reader.line_num, row) for row in reader]
    except OSError as error:
        raise InputError(f"can't be read ({error.strerror})", str(path)) from error
    except UnicodeDecodeError as error:
        raise InputError(f"is not UTF-8 text (byte {error.start})", str(path)) from error
    calls = (_call(row, f"{path}:{line}") for line, row in rows)
    return tuple(call for call in calls if call is not None)


def _call(row: Mapping[str, str], where: str) -> Call | None:
    collective = _COLLECTIVES.get(row["collective"])
    if collective is None or (row.get("nodes") or "1") != "1":
        return None
    ranks, payload = _number(row, "gpus_total", where), _number(row, "message_bytes", where)
    seconds = _number(row, "time_us", where) / 1e6
    if ranks < 2 or not payload or not seconds:
        return None
    return Call(row.get("source_id", ""), row["gpu"], collective, int(ranks), payload, seconds)


def _number(row: Mapping[str, str], column: str, where: str) -> float:
    text = row[column] or "0"
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < np.inf:
        raise InputError(f"{column} is {text!r}, but it must be a number of at least 0, or empty", where)
    return value
