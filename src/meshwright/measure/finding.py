"""What a check of the data finds, and how checks read a row's cells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from meshwright.measure.cells import number as cells_number
from meshwright.measure.comparison import Comparison, Row
from meshwright.spec.errors import InputError

NAMING = frozenset({"row_id", "source_id", "source", "notes", "verified", "verify_note", "linked_training_row"})
"""Columns that say which row it is and where it was read, and nothing about the run."""

VALUES = (
    "step_time_s", "derived_step_time_s", "tokens_per_s_per_gpu", "samples_per_s", "tflops_per_gpu", "mfu_pct",
    "hfu_pct", "mem_per_gpu", "mem_value", "mem_gib",
)  # fmt: skip
"""Columns with what was measured."""

_SMALLEST = 1e-12
"""Nothing that is measured is smaller; quotients stay finite."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A warning about some rows of one source. It never keeps a row from being predicted or counted."""

    kind: str
    source: str
    rows: tuple[str, ...]
    """Names of the rows."""
    message: str


def rows_of(comparisons: Iterable[Comparison]) -> tuple[Row, ...]:
    """Each row once, in the order of the file; a row may have several metrics."""
    return tuple({id(each.row): each.row for each in comparisons}.values())


def number(cells: Mapping[str, str], column: str) -> float | None:
    """The cell as a number above 0; None where it is empty or no such number."""
    try:
        value = cells_number(cells, column)
    except InputError:
        return None
    return value if value is not None and value > _SMALLEST else None


def numbers(cells: Mapping[str, str], *columns: str) -> tuple[float, ...] | None:
    """The cells as numbers above 0; None where one of them isn't."""
    found = [number(cells, column) for column in columns]
    known = tuple(value for value in found if value is not None)
    return known if len(known) == len(columns) else None


def published_times_s(cells: Mapping[str, str]) -> dict[str, float]:
    """Step times by the column that states them, or from which the batch makes them; the most direct one first."""
    times: dict[str, float] = {}
    step = number(cells, "step_time_s")
    if step is not None:
        times["step_time_s"] = step
    job = numbers(cells, "global_batch_seqs", "seq_len", "gpus_total", "tokens_per_s_per_gpu")
    if job is not None:
        batch, tokens, accelerators, rate = job
        times["tokens_per_s_per_gpu"] = batch * tokens / (accelerators * rate)
    whole = numbers(cells, "global_batch_seqs", "samples_per_s")
    if whole is not None:
        times["samples_per_s"] = whole[0] / whole[1]
    return times
