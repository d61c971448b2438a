"""Checks of a file of measurements. They warn; they never withhold a prediction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from meshwright.measure.comparison import Comparison, Row
from meshwright.measure.errors import peaks
from meshwright.measure.finding import NAMING, VALUES, Finding, number, numbers, rows_of
from meshwright.measure.linear_times import too_linear
from meshwright.measure.published_values import contradictions, impossible_speeds

KINDS = {
    "duplicate": "the same job with the same values, twice",
    "degrees": "the parallel degrees do not multiply to the accelerators",
    "batch": "the global batch is not replicas × micro-batch × accumulation steps",
    "impossible-mfu": "faster than the accelerator's peak",
    "suspicious-mfu": "nearer to the accelerator's peak than training runs come",
    "contradiction": "published values of one row contradict each other",
    "too-linear": "times that look computed",
    "memory": "more memory than the accelerator has",
    "flagged": "flagged in the file",
}
"""What each kind of finding says."""
_ROUNDED = 1.005
"""Published sizes of memory are rounded."""


def check_data(comparisons: Sequence[Comparison]) -> tuple[Finding, ...]:
    """Everything that the checks find, by kind in the order of KINDS."""
    rows = rows_of(comparisons)
    found = [
        *duplicates(rows),
        *degrees(rows),
        *batches(rows),
        *impossible_speeds(comparisons),
        *contradictions(comparisons),
        *too_linear(rows),
        *too_much_memory(comparisons),
        *flagged(rows),
    ]
    order = list(KINDS)
    return tuple(sorted(found, key=lambda each: order.index(each.kind)))


def duplicates(rows: Iterable[Row]) -> Iterator[Finding]:
    """Rows equal in every cell that says what was run and what came out. The same job with other values is a repeat."""
    members: dict[frozenset[tuple[str, str]], list[Row]] = {}
    for row in rows:
        if any(column in row.cells for column in VALUES):
            said = frozenset((column, text) for column, text in row.cells.items() if column not in NAMING)
            members.setdefault(said, []).append(row)
    for same in members.values():
        if len(same) > 1:
            names = tuple(row.row_id for row in same)
            yield Finding("duplicate", same[0].source, names, f"{len(same)} rows are equal in job and values")


def degrees(rows: Iterable[Row]) -> Iterator[Finding]:
    """tp × cp × pp × dp against gpus_total, also where dp is said to count the context-parallel ranks."""
    for row in rows:
        stated = numbers(row.cells, "tp", "pp", "dp", "gpus_total")
        if stated is None:
            continue
        tp, pp, dp, total = stated
        cp = number(row.cells, "cp") or 1.0
        if total not in (tp * pp * dp * cp, tp * pp * dp):
            with_cp = f" × cp {cp:g}" if cp > 1 else ""
            text = f"tp {tp:g}{with_cp} × pp {pp:g} × dp {dp:g} is {tp * pp * dp * cp:g}, gpus_total is {total:g}"
            yield Finding("degrees", row.source, (row.row_id,), text)


def batches(rows: Iterable[Row]) -> Iterator[Finding]:
    """dp × micro_batch × grad_accum against global_batch_seqs."""
    for row in rows:
        stated = numbers(row.cells, "dp", "micro_batch", "grad_accum", "global_batch_seqs")
        if stated is None:
            continue
        dp, micro_batch, steps, batch = stated
        if dp * micro_batch * steps != batch:
            text = (
                f"dp {dp:g} × micro_batch {micro_batch:g} × grad_accum {steps:g} is {dp * micro_batch * steps:g}, "
                f"global_batch_seqs is {batch:g}"
            )
            yield Finding("batch", row.source, (row.row_id,), text)


def too_much_memory(comparisons: Iterable[Comparison]) -> Iterator[Finding]:
    """Measured peaks above the accelerator's memory, as the row states it or as the catalog has it."""
    for each in peaks(comparisons):
        stated = number(each.row.cells, "gpu_mem_gb")
        known = None if each.estimate is None else each.estimate.cluster.accelerator.memory_bytes / 2**30
        memory = max((size for size in (stated, known) if size is not None), default=None)
        if memory is not None and each.measured is not None and each.measured > memory * _ROUNDED:
            text = f"the peak is {each.measured:.4g} GiB, the accelerator has {memory:.4g}"
            yield Finding("memory", each.row.source, (each.row.row_id,), text)


def flagged(rows: Iterable[Row]) -> Iterator[Finding]:
    """Rows with something in a column `flags`: one finding for each source and text."""
    members: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if "flags" in row.cells:
            members.setdefault((row.source, row.cells["flags"]), []).append(row.row_id)
    for (source, flag), names in members.items():
        yield Finding("flagged", source, tuple(names), flag)
