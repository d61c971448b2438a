"""Times too regular to have been measured one by one.

A simulator, or a table put together from profiles of single layers, gives step times that are exactly linear in the
number of layers and of micro-batches. Timings of separate runs repeat to one or a few percent. Rows of such a source
are no independent evidence.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from meshwright.measure.comparison import Row
from meshwright.measure.finding import Finding, number, published_times_s

SAME = (
    "hidden", "heads", "kv_heads", "head_dim", "ffn_hidden", "gated_mlp", "vocab", "attn_type", "n_experts", "moe_topk",
    "seq_len", "task", "gpu", "gpus_total", "gpus_per_node", "tp", "pp", "vpp", "dp", "cp", "ep", "etp", "sp",
    "zero_stage", "fsdp", "micro_batch", "recompute", "dtype", "attn_kernel", "schedule", "framework", "sw_version",
    "extra", "date",
)  # fmt: skip
"""Columns that rows of one group have in common: all that describes a job but its layers and micro-batches."""
LEAST_SPARE = 12
"""Rows that no constant was fitted to, below which regularity may be chance."""
MEDIAN, P90 = 5e-5, 2e-3
"""Relative errors below which times are called computed: a hundredth or less of what separate runs repeat to."""

Point = tuple[float, float, float]
"""Layers, micro-batches, seconds."""


@dataclass(frozen=True, slots=True)
class Regularity:
    """How well t = a + b·layers + c·micro-batches + d·layers·micro-batches, fitted to the corners of each group of rows
    equal in all else, predicts the other rows."""

    source: str
    rows: tuple[str, ...]
    groups: int
    spare: int
    """Rows that were predicted and not fitted."""
    median: float
    p90: float
    largest: float

    @property
    def too_linear(self) -> bool:
        return self.spare >= LEAST_SPARE and self.median <= MEDIAN and self.p90 <= P90


def regularities(rows: Iterable[Row]) -> tuple[Regularity, ...]:
    """One for each source that has rows to spare."""
    members: dict[str, dict[tuple[str, ...], list[tuple[Row, Point]]]] = {}
    for row in rows:
        point = _point(row)
        if point is not None:
            key = tuple(row.cells.get(column, "") for column in SAME)
            members.setdefault(row.source, {}).setdefault(key, []).append((row, point))
    found = (_regularity(source, list(groups.values())) for source, groups in members.items())
    return tuple(each for each in found if each is not None)


def too_linear(rows: Iterable[Row]) -> tuple[Finding, ...]:
    """A finding for each source whose times were computed rather than timed."""
    return tuple(
        Finding(
            "too-linear",
            each.source,
            each.rows,
            f"step times are linear in layers and micro-batches to {each.median * 1e6:.3g} parts per million (median "
            f"of {each.spare:,} rows that were not fitted, in {each.groups:,} groups; 90 % within {each.p90 * 1e6:.3g})"
            f", where separate runs repeat to 1 % or worse: they look computed, not timed one by one",
        )
        for each in regularities(rows)
        if each.too_linear
    )


def spare_errors(points: Sequence[Point]) -> list[float] | None:
    """Relative errors of the points that are no corners, with the plane through the corners; None without corners."""
    layers, micro_batches, seconds = np.array(points).T
    corner = np.isin(layers, (layers.min(), layers.max())) & np.isin(micro_batches, _ends(micro_batches))
    terms = [np.ones_like(layers)]
    if layers.min() < layers.max():
        terms.append(layers / layers.max())
    if micro_batches.min() < micro_batches.max():
        terms += [term * micro_batches / micro_batches.max() for term in terms]
    matrix = np.stack(terms, axis=1)
    if len(terms) == 1 or corner.all() or np.linalg.matrix_rank(matrix[corner]) < len(terms):
        return None
    constants = np.linalg.lstsq(matrix[corner], seconds[corner], rcond=None)[0]
    spare = ~corner
    return [float(error) for error in np.abs(matrix[spare] @ constants / seconds[spare] - 1)]


def _regularity(source: str, groups: list[list[tuple[Row, Point]]]) -> Regularity | None:
    errors: list[float] = []
    rows: list[str] = []
    used = 0
    for group in groups:
        found = spare_errors([point for _, point in group])
        if found is not None:
            errors += found
            rows += [row.row_id for row, _ in group]
            used += 1
    if not errors:
        return None
    p90 = float(np.quantile(errors, 0.9))
    return Regularity(source, tuple(rows), used, len(errors), float(np.median(errors)), p90, max(errors))


def _point(row: Row) -> Point | None:
    """Layers, micro-batches of a step, and the published step time."""
    times = published_times_s(row.cells)
    layers, micro_batches = number(row.cells, "layers"), _micro_batches(row)
    if not times or layers is None or micro_batches is None:
        return None
    return layers, micro_batches, next(iter(times.values()))


def _micro_batches(row: Row) -> float | None:
    stated = number(row.cells, "grad_accum")
    if stated is not None:
        return stated
    batch, replicas, size = (number(row.cells, name) for name in ("global_batch_seqs", "dp", "micro_batch"))
    return batch / (replicas * size) if batch and replicas and size else None


def _ends(values: np.ndarray) -> tuple[float, float]:
    return float(values.min()), float(values.max())
