"""Tables of memory: peaks by counter, parts of memory, and runs that ran or ran out of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from meshwright.measure.comparison import PEAK, Comparison
from meshwright.measure.data_checks import too_much_memory
from meshwright.measure.errors import Errors, errors, errors_by, grouped, mean_over, peaks
from meshwright.measure.memory_table import MemoryCalls, memory_calls
from meshwright.measure.peaks import COMPONENTS

from .evidence import full_layout
from .markdown import NONE, percent, signed, table, whole_percent

COUNTERS = (("allocated", "allocated"), ("reserved", "reserved"), ("active", "reserved"), ("actual", "reserved"))
UNIT = "unit GB"
"""How the flag begins of rows whose GB may be of 1000³ or of 1024³ bytes."""
HEADER = ["rows", "predicted", "median error", "90th percentile", "bias"]


def training_peaks(comparisons: Sequence[Comparison]) -> tuple[Comparison, ...]:
    """Measured peaks of training runs, but those of more memory than the accelerator has."""
    measured = [each for each in peaks(comparisons) if _of_training(each) and each.measured is not None]
    measured = [each for each in measured if each.row.cells.get("mem_component", "") not in COMPONENTS]
    impossible = {row for finding in too_much_memory(measured) for row in finding.rows}
    return tuple(each for each in measured if each.row.row_id not in impossible)


def counter(each: Comparison) -> str:
    """What the peak was read from."""
    said = each.row.cells.get("mem_def", "").lower()
    found = next((title for word, title in COUNTERS if word in said), "")
    return found or ("nvidia-smi" if "nvidia-smi" in said else "not stated")


def peaks_over_sources(comparisons: Sequence[Comparison]) -> Errors:
    """Every source counted once, by its rows that state the whole layout and that it doesn't contradict."""
    sound = [each for each in training_peaks(comparisons) if full_layout(each) and not contradicted(each)]
    return mean_over("mean over sources", errors_by(sound, lambda each: each.row.source))


def contradicted(each: Comparison) -> bool:
    """Whether the data flag more of the row than the unit of its memory."""
    return not each.row.cells.get("flags", UNIT).startswith(UNIT)


def peak_table(comparisons: Sequence[Comparison]) -> str:
    """By source and counter, and the mean over sources."""
    groups = grouped(training_peaks(comparisons), lambda each: (each.row.source, counter(each)))
    rows = []
    for (source, title), members in groups.items():
        sound = any(full_layout(each) and not contradicted(each) for each in members)
        rows.append([source if sound else f"{source} †", title, *_figures(errors("", members))])
    mean = peaks_over_sources(comparisons)
    rows.append([mean.name, "", *_figures(mean)[:-1], NONE if mean.bias is None else f"± {percent(mean.bias)}"])
    return table(["source", "counter", *HEADER], rows, numbers_from=2)


def component_table(components: Sequence[Comparison]) -> str:
    """Parts of memory, by source. Bytes like a peak's, not times."""
    groups = grouped(components, lambda each: (each.row.source, each.row.cells["mem_component"]))
    rows = [
        [*names, *_figures(errors("", [replace(each, metric=PEAK) for each in members]))]
        for names, members in groups.items()
    ]
    return table(["source", "part", *HEADER], rows, numbers_from=2)


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
    measured = [each for each in comparisons if each.metric == PEAK and _of_training(each)]
    by_source = [memory_calls(source, rows) for source, rows in grouped(measured, lambda each: each.row.source).items()]
    return tuple(each for each in by_source if each.ran or each.out_of_memory), memory_calls("all runs", measured)


def _of_training(each: Comparison) -> bool:
    return "inference" not in each.row.cells.get("kind", "")


def _figures(each: Errors) -> list[str]:
    return [f"{each.rows:,}", f"{each.covered:,}", percent(each.median), percent(each.p90), signed(each.bias)]
