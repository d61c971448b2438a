"""Tables of memory: peaks by counter, parts of memory, and runs that ran or ran out of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from meshwright.measure.comparison import PEAK, Comparison
from meshwright.measure.errors import Errors, errors, grouped, mean_over, peaks
from meshwright.measure.memory_table import MemoryCalls, memory_calls
from meshwright.measure.peaks import COMPONENTS

from .markdown import percent, signed, table, whole_percent

COUNTERS = (("allocated", "allocated"), ("reserved", "reserved"), ("active", "reserved"), ("actual", "reserved"))
TITLES = {metric: name for name, (metric, _) in COMPONENTS.items()}


def training_peaks(comparisons: Iterable[Comparison]) -> tuple[Comparison, ...]:
    """Measured peaks of training runs that are predicted and not flagged by their source as impossible."""
    return tuple(each for each in peaks(comparisons) if "inference" not in each.row.cells.get("kind", ""))


def counter(each: Comparison) -> str:
    """What the peak was read from."""
    said = each.row.cells.get("mem_def", "").lower()
    found = next((title for word, title in COUNTERS if word in said), "")
    return found or ("nvidia-smi" if "nvidia-smi" in said else "not stated")


def peaks_by_source(comparisons: Iterable[Comparison]) -> tuple[tuple[Errors, ...], Errors]:
    """(of each source and counter, the mean over them)."""
    groups = grouped(training_peaks(comparisons), lambda each: f"{each.row.source} | {counter(each)}")
    found = tuple(each for name, members in groups.items() if (each := errors(name, members)).rows)
    return found, mean_over("mean over sources |", found)


def peak_table(comparisons: Iterable[Comparison]) -> str:
    by_source, mean = peaks_by_source(comparisons)
    rows = [
        [*each.name.split(" | "), *_figures(each)] if " | " in each.name else [each.name.rstrip(" |"), "", *_figures(each)]
        for each in (*by_source, mean)
    ]
    header = ["source", "counter", "rows", "predicted", "median error", "90th percentile", "bias"]
    return table(header, rows, numbers_from=2)


def component_table(comparisons: Iterable[Comparison]) -> str:
    """Parts of memory, by source."""
    parts = [each for each in comparisons if each.metric in TITLES and each.measured]
    groups = grouped(parts, lambda each: f"{each.row.source} | {TITLES[each.metric]}")
    rows = [[*name.split(" | "), *_figures(_component_errors(name, members))] for name, members in groups.items()]
    return table(
        ["source", "part", "rows", "predicted", "median error", "90th percentile", "bias"], rows, numbers_from=2
    )


def call_table(groups: Iterable[MemoryCalls]) -> str:
    """Runs by what happened and what is said."""
    rows = [
        [
            each.name, str(each.ran_possible), str(each.ran_impossible), whole_percent(each.ran_called_possible),
            str(each.oom_possible), str(each.oom_impossible), whole_percent(each.oom_called_impossible),
        ]
        for each in groups
    ]  # fmt: skip
    header = [
        "source", "ran, called possible", "ran, called impossible", "right", "out of memory, called possible",
        "out of memory, called impossible", "right",
    ]  # fmt: skip
    return table(header, rows)


def calls(comparisons: Sequence[Comparison]) -> tuple[tuple[MemoryCalls, ...], MemoryCalls]:
    """(of each source that measured memory, of all of them)."""
    measured = [
        each for each in comparisons if each.metric == PEAK and "inference" not in each.row.cells.get("kind", "")
    ]
    groups = grouped(measured, lambda each: each.row.source).items()
    by_source = [memory_calls(source, members) for source, members in groups]
    return tuple(each for each in by_source if each.ran or each.out_of_memory), memory_calls("all runs", measured)


def _component_errors(name: str, members: Sequence[Comparison]) -> Errors:
    """As of peaks: components are bytes too, not times."""
    from dataclasses import replace

    return errors(name, [replace(each, metric=PEAK) for each in members])


def _figures(each: Errors) -> list[str]:
    return [f"{each.rows:,}", f"{each.covered:,}", percent(each.median), percent(each.p90), signed(each.bias)]
