"""A cluster calibrated on its own runs, as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from meshwright.measure.calibration import LEAST_JOBS, Calibrated
from meshwright.measure.errors import Errors
from meshwright.show import units
from meshwright.show.console import write
from meshwright.show.header import labelled, named
from meshwright.show.sheet import RIGHT, Column, Sheet, fitted
from meshwright.show.terminal import INDENT, section, sentences
from meshwright.show.validation import plural, signed

if TYPE_CHECKING:
    from meshwright.measure.calibration import Calibration

_REASONS_SHOWN = 6
_ROWS_SHOWN = 3
_NONE = "-"

_CONSTANTS = (
    "± is the standard error. Weight is how much of what the runs alone ask for was taken: the rest is the value "
    "before, so that few or wild runs move little."
)
_ERROR = (
    "An error is a share of the measured step time; bias is the median one with its sign, + where predictions are too "
    "slow."
)


def show_calibration(calibration: Calibration, console: Console) -> None:
    """The constants, the errors before and after, and what was left out."""
    write(calibration_view(calibration, console.width), console)


def calibration_view(calibration: Calibration, width: int) -> Group:
    inner = width - INDENT
    parts: list[RenderableType] = [_header(calibration)]
    table, kept = constants_table(calibration.constants, inner), _why_kept(calibration.constants)
    parts += section("Constants", table, *(["", *kept] if kept else []), "", _said(_CONSTANTS))
    parts += section("Step time, predicted against measured", _errors_table(calibration, inner), "", _said(_ERROR))
    parts += section("So", sentences(verdict(calibration)))
    if calibration.left_out:
        parts += section("Not used", sentences(_counted(calibration.left_out)))
    return Group(*parts)


def verdict(calibration: Calibration) -> list[str]:
    """What the errors of left-out runs say of the calibrated constants."""
    name = calibration.given.name
    if not calibration.changed:
        return [f"The runs tell too little about any constant: {name} stays as it is"]
    if calibration.better is None:
        return [
            f"{plural(calibration.jobs, 'job')} can't be left out one by one ({LEAST_JOBS} can): whether other runs "
            "are predicted better isn't known; the constants stay close to what they were"
        ]
    assert calibration.cross_validated is not None
    before, left = _share(calibration.before.mean), _share(calibration.cross_validated.mean)
    if calibration.better:
        return [f"Runs that the fit hasn't seen are predicted better: their mean error is {left} instead of {before}"]
    return [
        f"Runs that the fit hasn't seen are predicted no better: their mean error is {left}, with {name} as it is "
        f"{before}. Keep it as it is"
    ]


def constants_table(constants: Sequence[Calibrated], width: int) -> Table:
    """A row for each constant."""
    columns = [Column("constant"), *(Column(title, RIGHT) for title in ("before", "now", "change", "±", "weight"))]
    rows = [
        (
            each.name,
            units.digits(each.before),
            units.digits(each.value),
            "kept" if each.kept else signed(each.value / each.before - 1),
            _NONE if each.kept else units.percent(each.standard_error),
            _NONE if each.kept else units.percent(each.trust),
        )
        for each in constants
    ]
    sheet = Sheet(columns, rows)
    return fitted(width, [sheet, sheet.wrapping("constant")])


def _why_kept(constants: Sequence[Calibrated]) -> list[RenderableType]:
    reasons: dict[str, list[str]] = {}
    for each in constants:
        if each.kept:
            reasons.setdefault(each.kept, []).append(each.name)
    return [Text(f"Kept, since {reason}: {', '.join(names)}") for reason, names in reasons.items()]


def _header(calibration: Calibration) -> Table:
    cluster = calibration.given
    table = labelled()
    table.add_row("Files", Text(", ".join(calibration.files), "bold"))
    table.add_row("Cluster", named(cluster.name, [f"{cluster.accelerators:,} × {cluster.accelerator.name}"]))
    runs = plural(len(calibration.comparisons), "run")
    used = f"{runs} of {plural(calibration.jobs, 'job and layout', 'jobs and layouts')}"
    left = f", {plural(len(calibration.left_out), 'row')} not used" if calibration.left_out else ""
    table.add_row("Rows", f"{used}{left}")
    return table


def _errors_table(calibration: Calibration, width: int) -> Table:
    columns = [Column("prediction"), *(Column(title, RIGHT) for title in ("median error", "mean", "90% below", "bias"))]
    listed = [("cluster as given", calibration.before), ("calibrated, the same runs", calibration.after)]
    if calibration.cross_validated is not None:
        part = "each job" if calibration.folds == calibration.jobs else f"1/{calibration.folds} of the jobs"
        listed.append((f"calibrated, {part} left out in turn", calibration.cross_validated))
    sheet = Sheet(columns, [(name, *_figures(each)) for name, each in listed])
    return fitted(width, [sheet, sheet.wrapping("prediction")])


def _figures(each: Errors) -> tuple[str, ...]:
    return _share(each.median), _share(each.mean), _share(each.p90), signed(each.bias)


def _share(value: float | None) -> str:
    return _NONE if value is None else units.percent(value)


def _said(text: str) -> Text:
    return Text(text, "bright_black")


def _counted(left_out: Sequence[tuple[str, str]]) -> list[str]:
    counts = Counter(reason for _, reason in left_out).most_common()
    lines = []
    for reason, count in counts[:_REASONS_SHOWN]:
        rows = [row for row, each in left_out if each == reason]
        names = ", ".join(rows[:_ROWS_SHOWN]) + (", …" if count > _ROWS_SHOWN else "")
        lines.append(f"{reason}: {plural(count, 'row')} ({names})")
    if len(counts) > _REASONS_SHOWN:
        rest = sum(count for _, count in counts[_REASONS_SHOWN:])
        lines.append(f"{plural(rest, 'row')} for {len(counts) - _REASONS_SHOWN:,} other reasons: --json has them")
    return lines
