"""Predictions judged by measurements, as text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from meshwright.choose.words import degrees
from meshwright.measure.comparison import STEP_TIME, Comparison
from meshwright.measure.data_checks import KINDS
from meshwright.measure.errors import Errors, ratio
from meshwright.measure.finding import Finding, rows_of
from meshwright.measure.memory_table import MemoryCalls
from meshwright.measure.sweeps import Choices
from meshwright.show import units
from meshwright.show.breakdown import name
from meshwright.show.console import write
from meshwright.show.header import labelled
from meshwright.show.sheet import LEFT, RIGHT, Column, Sheet, fitted
from meshwright.show.terminal import INDENT, section, sentences

if TYPE_CHECKING:
    from meshwright.measure.report import Validation

WORST_SHOWN = 10
OF_EACH_SOURCE = 2
"""Rows of one noisy source would hide the others."""
_REASONS_SHOWN = 6
_ROWS_SHOWN = 3
_LONGEST_TEXT = 240
_NONE = "-"
_CLEAR_GAP = 2
"""Blanks between columns that keep titles of two words apart."""


_ERROR = (
    "An error is a share of the measured step time; bias is the median one with its sign, + where predictions are too "
    "slow; in range are the rows between the prediction's low and high end."
)
_CHOICE = (
    "How much longer the layout takes that is predicted to be fastest than the one that was. Pairs are of layouts "
    "measured more than a tenth apart."
)


def show_validation(validation: Validation, console: Console) -> None:
    """The whole judgement."""
    write(validation_view(validation, console.width), console)


def validation_view(validation: Validation, width: int) -> Group:
    inner = width - INDENT
    parts: list[RenderableType] = [_header(validation)]
    if validation.step_time.rows:
        groups = validation.step_time_by_source
        overall = (validation.step_time, validation.step_time_over_sources)
        parts += section(
            "Step time, predicted against measured", errors_table(groups, overall, inner), *_said_of(_ERROR)
        )
    if validation.sweeps:
        chosen = (validation.choices, validation.choices_over_sources)
        table = choices_table(validation.choices_by_source, chosen, inner)
        parts += section("Choices between layouts of one job", table, *_said_of(_CHOICE))
    if validation.peak.rows:
        overall = (validation.peak, validation.peak_over_sources)
        parts += section("Peak memory", errors_table(validation.peak_by_source, overall, inner))
    if validation.memory_calls_by_source:
        calls = calls_table(validation.memory_calls_by_source, validation.memory_calls, inner)
        parts += section("Does it fit, by the prediction?", calls)
    several = len(validation.step_time_by_source) > 1
    worst = validation.worst(WORST_SHOWN, OF_EACH_SOURCE if several else None)
    if worst:
        title = f"Furthest off{f', at most {OF_EACH_SOURCE} of a source' if several else ''}"
        parts += section(title, worst_table(worst, inner))
    if validation.reasons:
        parts += section("Not predicted", sentences(_counted(validation.reasons, "value")))
    if validation.assumed:
        parts += section("Assumed where a row doesn't say", sentences(_counted(validation.assumed, "prediction")))
    if validation.findings:
        parts += section("Warnings about the data", findings_table(validation.findings))
    return Group(*parts)


def _said_of(text: str) -> list[RenderableType]:
    return ["", Text(text, "bright_black")]


def _header(validation: Validation) -> Table:
    comparisons = validation.comparisons
    predicted = sum(each.predicted is not None for each in comparisons)
    sources = {each.row.source for each in comparisons}
    table = labelled()
    table.add_row("Files", Text(", ".join(validation.files), "bold"))
    rows = f"{plural(len(rows_of(comparisons)), 'row')} of {plural(len(sources), 'source')}"
    table.add_row("Rows", f"{rows}: {plural(len(comparisons), 'value')}, {predicted:,} predicted")
    return table


# -- tables of figures

Titles = Sequence[tuple[str, str]]
"""The titles of columns, written out and short."""

_ERRORS = (
    ("rows", "rows"), ("predicted", "pred."), ("median error", "median"), ("mean", "mean"), ("90% below", "90%"),
    ("bias", "bias"), ("in range", "range"),
)  # fmt: skip
_CHOICES = (
    ("jobs", "jobs"), ("choice slower by", "slower"), ("90% below", "90%"), ("at most", "most"),
    ("best found", "best"), ("pairs", "pairs"), ("in order", "in order"),
)  # fmt: skip
_CALLS = (
    ("ran", "ran"), ("called possible", "possible"), ("share", "share"), ("out of memory", "OOM"),
    ("called impossible", "impossible"), ("share", "share"),
)  # fmt: skip


def errors_table(groups: Sequence[Errors], overall: Sequence[Errors], width: int, title: str = "source") -> Table:
    """A row for each group, then those for all of them. The bias of a mean over groups is the mean of its size."""
    shown = [*groups, *(overall if len(groups) > 1 else ())]
    rows = [
        (
            each.name,
            units.whole(each.rows),
            units.whole(each.covered),
            _share(each.median),
            _share(each.mean),
            _share(each.p90),
            f"±{_share(each.bias)}" if each is overall[-1] and each.bias is not None else signed(each.bias),
            _share(each.within_range),
        )
        for each in shown
    ]
    return _figures(title, _ERRORS, rows, width, summed=len(shown) > len(groups))


def choices_table(groups: Sequence[Choices], overall: Sequence[Choices], width: int) -> Table:
    """How much slower the layouts are that are predicted to be fastest than those that were measured fastest."""
    shown = [*groups, *(overall if len(groups) > 1 else ())]
    rows = [
        (
            each.name,
            units.whole(each.sweeps),
            _slower(each.mean_regret),
            _slower(each.p90_regret),
            _slower(each.max_regret),
            _share(each.best_found),
            units.whole(each.pairs),
            _share(each.pairs_in_order),
        )
        for each in shown
    ]
    return _figures("source", _CHOICES, rows, width, summed=len(shown) > len(groups))


def calls_table(groups: Sequence[MemoryCalls], overall: MemoryCalls, width: int) -> Table:
    """Runs that ran, and runs that were out of memory, if there are any, by what is said of them."""
    shown = [*groups, *((overall,) if len(groups) > 1 else ())]
    stopped = overall.out_of_memory > 0
    rows = [
        (
            each.name,
            units.whole(each.ran),
            units.whole(each.ran_possible),
            _share(each.ran_called_possible),
            units.whole(each.out_of_memory) if stopped else _NONE,
            units.whole(each.oom_impossible) if stopped else _NONE,
            _share(each.oom_called_impossible),
        )
        for each in shown
    ]
    return _figures("source", _CALLS, rows, width, summed=len(shown) > len(groups))


def _figures(first: str, titles: Titles, rows: Sequence[Sequence[str]], width: int, summed: bool) -> Table:
    """A column of names and columns of numbers, those left out that have none. Titles are written out where that leaves
    room between them."""
    kept = [number for number in range(len(titles)) if any(row[number + 1] != _NONE for row in rows)]
    cells = [(row[0], *(row[number + 1] for number in kept)) for row in rows]
    strong = len(rows) - 1 if summed else -1
    roomy, short = (
        Sheet([Column(first), *(Column(titles[number][length], RIGHT) for number in kept)], cells, strong)
        for length in (0, 1)
    )
    if roomy.width(_CLEAR_GAP) <= width:
        return fitted(width, [roomy])
    return fitted(width, [short, short.wrapping(first)])


# -- rows


def worst_table(comparisons: Sequence[Comparison], width: int) -> Table:
    """Rows with their values, and the largest part of the predicted time."""
    columns = [Column("row"), Column("source"), Column("model"), Column("layout")]
    columns += [Column(title, RIGHT) for title in ("measured", "predicted", "off by")]
    columns.append(Column("largest part", LEFT))
    rows = [_worst_cells(each) for each in comparisons]
    sheet = Sheet(columns, rows)
    sheets = [sheet]
    for title in ("model", "source"):
        sheets.append(sheets[-1].without(title))
    roomy = [each for each in sheets if each.width(_CLEAR_GAP) <= width]
    return fitted(width, [*roomy, sheets[-1].wrapping("layout")])


def _worst_cells(each: Comparison) -> tuple[str, ...]:
    assert each.measured is not None
    assert each.predicted is not None
    found = ratio(each)
    estimate = each.estimate
    return (
        each.row.row_id,
        each.row.source,
        estimate.model.name if estimate else "",
        degrees(estimate.plan) if estimate else "",
        _value(each.metric)(each.measured),
        _value(each.metric)(each.predicted),
        signed(None if found is None else found - 1),
        name(each.dominating),
    )


def findings_table(findings: Iterable[Finding]) -> Table:
    """One line for each kind of finding and source: how many rows, and what is said of the first."""
    together: dict[tuple[str, str], list[Finding]] = {}
    for each in findings:
        together.setdefault((each.kind, each.source), []).append(each)
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(no_wrap=True, style="bright_black")
    table.add_column()
    kind = ""
    for (found, source), members in together.items():
        if found != kind:
            kind = found
            table.add_row("•", Text(KINDS[kind], "yellow"))
        table.add_row("", Text.assemble((source, "bold"), f": {_said(members)}"))
    return table


def _said(members: Sequence[Finding]) -> str:
    first = members[0]
    rows = list(dict.fromkeys(row for each in members for row in each.rows))
    names = ", ".join(first.rows[:_ROWS_SHOWN]) + (", …" if len(first.rows) > _ROWS_SHOWN else "")
    more = len(rows) - len(first.rows)
    also = f"; and {plural(more, 'more row')}" if more else ""
    counted = f"{plural(len(first.rows), 'row')}, " if len(first.rows) > _ROWS_SHOWN else ""
    return f"{_brief(first.message)} ({counted}{names}){also}"


def _counted(counts: Sequence[tuple[str, int]], noun: str) -> list[str]:
    lines = [f"{text}: {plural(count, noun)}" for text, count in counts[:_REASONS_SHOWN]]
    left = counts[_REASONS_SHOWN:]
    if left:
        total = sum(count for _, count in left)
        lines.append(f"and {len(left):,} more, {plural(total, noun)} in all: --json and --out have them")
    return lines


# -- values


def _brief(text: str) -> str:
    """A text from a file, which may be of any length."""
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}…"


def signed(share: float | None) -> str:
    """A share with its sign."""
    return _NONE if share is None else f"{'+' if share >= 0 else '-'}{units.percent(abs(share))}"


def _share(value: float | None) -> str:
    return _NONE if value is None else units.percent(value)


def _slower(regret: float | None) -> str:
    return _NONE if regret is None else units.percent(regret - 1)


def _value(metric: str) -> Callable[[float], str]:
    if metric == STEP_TIME:
        return units.seconds
    return lambda rate: f"{units.count(rate)} tok/s"


def plural(count: int, noun: str, several: str = "") -> str:
    """1 row, 2 rows; `several` where the plural isn't the noun and an s."""
    return f"{count:,} {noun if count == 1 else several or noun + 's'}"
