"""Peak memory of a row, measured and predicted by the counter that the row names."""

from __future__ import annotations

from collections.abc import Callable

from meshwright.measure.cells import flag, number, words
from meshwright.measure.comparison import PEAK, Comparison, Row
from meshwright.spec.errors import InputError
from meshwright.spec.estimate import Estimate

_GIB = 2**30
_TO_GIB = {"gib": 1.0, "gb": 1.0, "mib": 1 / 1024, "mb": 1 / 1024, "bytes": 1 / _GIB, "b": 1 / _GIB}
"""Most published GB are MiB / 1024 of nvidia-smi; the file's own `mem_gib` counts them so too."""
COMPONENTS = {
    "model states": "model_states_gib",
    "activations retained": "activations_gib",
    "activations peak": "activations_peak_gib",
}
"""Metric of each `mem_component` that isn't the total."""


def memory_comparisons(
    row: Row, predicted: Callable[[], tuple[Estimate, bool, tuple[str, ...]]], must: bool = True
) -> list[Comparison]:
    """The peak of a row, or the component that it measured; nothing where it states neither a peak nor a lack of
    memory, unless it `must` (a file of peaks)."""
    try:
        measured = peak_gib(row)
        stopped = bool(flag(row.cells, "oom"))
    except InputError as error:
        return [Comparison(row, PEAK, reason=str(error))] if must else []
    if measured is None and not stopped:
        return [Comparison(row, PEAK, reason="the row states no memory")] if must else []
    if "inference" in words(row.cells, "kind", "task"):
        return [Comparison(row, PEAK, measured, reason="serving is not predicted", out_of_memory=stopped)]
    try:
        found, _, assumed = predicted()
    except InputError as error:
        return [Comparison(row, PEAK, measured, reason=str(error), out_of_memory=stopped)]
    metric = COMPONENTS.get(words(row.cells, "mem_component"), PEAK)
    counted = counted_bytes(found, words(row.cells, "mem_def")) if metric == PEAK else component_bytes(found, metric)
    gib = counted / _GIB
    part = max(found.memory_bytes, key=lambda name: found.memory_bytes[name])
    how = "oom" if measured is None else "mem_gib" if "mem_gib" in row.cells else "mem_per_gpu"
    return [
        Comparison(
            row, metric, measured, how, gib, assumed=assumed, dominating=part, out_of_memory=stopped,
            estimate=found,
        )
    ]  # fmt: skip


def peak_gib(row: Row) -> float | None:
    """The measured memory in GiB; None where the row states none."""
    given = number(row.cells, "mem_gib")
    if given is not None:
        return given
    for value, unit in (("mem_value", "mem_unit"), ("mem_per_gpu", "mem_unit")):
        stated = number(row.cells, value)
        if stated is None:
            continue
        name = words(row.cells, unit).split(" ")[0] or "gib"
        if name == "%":
            return None
        if name not in _TO_GIB:
            raise InputError(f"{unit} is {row.cells.get(unit)!r}, but it must be one of {', '.join(_TO_GIB)}")
        return stated * _TO_GIB[name]
    return None


def component_bytes(found: Estimate, metric: str) -> float:
    """Bytes of a part of the peak: model states; what forward keeps for backward, logits included (the
    loss's part is split by what the profile says of each logit); or the most that forward and backward hold of both."""
    held, software = found.memory_bytes, found.software
    if metric == "model_states_gib":
        return held["weights"] + held["gradients"] + held["optimizer"]
    if metric == "activations_peak_gib":
        return held["activations"] + held["logits"]
    both = software.logit_saved_bytes + software.logit_peak_bytes
    return held["activations"] + (held["logits"] * software.logit_saved_bytes / both if both else 0.0)


def counted_bytes(found: Estimate, counter: str) -> float:
    """Bytes of the predicted peak that a counter sees: torch's allocated leaves out the driver, the libraries and what
    the allocator keeps unused, its reserved the driver and libraries only; nvidia-smi, like any other figure of the
    driver's, sees everything."""
    software = found.software
    total = found.memory_total_bytes
    if "allocated" in counter or "xla" in counter:
        return (total - software.runtime_bytes) / (1 + software.fragmentation)
    if "reserved" in counter or "active" in counter:
        return total - software.runtime_bytes
    return total
