"""A scaling sweep as text: the table, the curve, and in words where more stops paying."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.text import Text

from meshwright.choose.words import degrees
from meshwright.show import units
from meshwright.show.console import write
from meshwright.show.header import header
from meshwright.show.plot import log_plot
from meshwright.show.sheet import LEFT, RIGHT, Column, Sheet, fitted
from meshwright.show.terminal import INDENT, section, sentences, warnings_of

if TYPE_CHECKING:
    from meshwright.choose.scaling import Point, Scaling

_HEIGHT = 12
_WIDEST = 100
_SHORT = {"efficiency": "effic.", "communication": "comm.", "per B tokens": "per B", "run costs": "costs"}
_LESS_NEEDED = ("step", "bubble", "per GPU", "layout", "used", "batch")
"""Columns that go where there is no room, the first one first."""


def show_scaling(scaling: Scaling, console: Console) -> None:
    """The whole answer."""
    write(scaling_view(scaling, console.width), console)


def scaling_view(scaling: Scaling, width: int) -> Group:
    cluster = scaling.cluster
    asked = (scaling.model, cluster, scaling.workload, scaling.software)
    parts: list[RenderableType] = [
        header(*asked, warnings_of_sweep(scaling), batch_per_replica=scaling.batch_per_replica)
    ]
    inner = width - INDENT
    if not scaling.found:
        return Group(*parts, *section("No plan", sentences(_not_found(scaling))))
    parts += section("Where more stops paying", sentences(findings(scaling)))
    parts += section("The best plan on each number of accelerators", table(scaling, inner))
    if len(scaling.found) > 1:
        parts += section("Tokens per second; dots: in proportion to the accelerators", curve(scaling, inner))
    return Group(*parts)


def warnings_of_sweep(scaling: Scaling) -> list[str]:
    """What a reader must know beside the answer. Idle accelerators have a column of their own."""
    last = scaling.found[-1] if scaling.found else None
    return warnings_of(scaling.cluster, scaling.cluster.accelerators, last.estimate if last else None)


# -- the table


def table(scaling: Scaling, width: int) -> RenderableType:
    """One row per count; counts on which nothing fits share one."""
    with_idle = any(point.accelerators_used != point.accelerators for point in scaling.found)
    with_batch = bool(scaling.batch_per_replica)
    with_price = any(point.cost_per_token for point in scaling.found)
    with_days = any(point.days for point in scaling.found)
    titles = [
        ("GPUs", RIGHT, True),
        ("used", RIGHT, with_idle),
        ("batch", RIGHT, with_batch),
        ("layout", LEFT, True),
        ("step", RIGHT, True),
        ("tokens/s", RIGHT, True),
        ("per GPU", RIGHT, True),
        ("efficiency", RIGHT, True),
        ("communication", RIGHT, True),
        ("bubble", RIGHT, True),
        ("per B tokens", RIGHT, with_price),
        ("days", RIGHT, with_days),
        ("run costs", RIGHT, with_price and with_days),
        ("", LEFT, any(marks(scaling, point) for point in scaling.found)),
    ]
    rows = [_cells(scaling, point) for point in scaling.found]
    kept = [position for position, (_, _, wanted) in enumerate(titles) if wanted]
    columns = [Column(titles[position][0], titles[position][1]) for position in kept]
    strong = scaling.found.index(scaling.before_knee) if scaling.before_knee else -1
    sheet = Sheet(columns, [[row[position] for position in kept] for row in rows], strong=strong)
    short = [replace(column, title=_SHORT.get(column.title, column.title)) for column in columns]
    variants = [sheet, replace(sheet, columns=short)]
    for title in _LESS_NEEDED:
        variants.append(variants[-1].without(title))
    drawn = fitted(width, variants)
    lines = _unfit(scaling)
    return Group(*(Text(line, "bright_black") for line in lines), *([""] if lines else []), drawn)


def _cells(scaling: Scaling, point: Point) -> list[str]:
    estimate = point.estimate
    assert estimate is not None
    return [
        units.whole(point.accelerators),
        units.whole(point.accelerators_used),
        units.whole(estimate.workload.global_batch),
        degrees(estimate.plan),
        units.seconds(estimate.step_time_s),
        units.count(point.tokens_per_s),
        units.count(point.tokens_per_s_per_accelerator),
        units.percent(scaling.efficiency(point)),
        units.percent(point.communication_share),
        units.percent(point.bubble_share),
        units.digits(1e9 * point.cost_per_token),
        units.digits(point.days),
        units.whole(point.cost_total),
        ", ".join(marks(scaling, point)),
    ]


def marks(scaling: Scaling, point: Point) -> list[str]:
    """What the point is the first or the best of."""
    named = [
        ("cheapest", scaling.cheapest),
        ("knee", scaling.knee),
        ("dearer", scaling.dearer_from),
        ("slower", scaling.slower_from),
        ("fastest", scaling.fastest),
    ]
    return [name for name, marked in named if marked is point]


def _unfit(scaling: Scaling) -> list[str]:
    """Counts without a plan, those with the same reason and no plan between them on one line."""
    runs: list[tuple[str, list[int]]] = []
    previous = None
    for point in scaling.points:
        if point.estimate is None:
            if previous is None or previous.estimate is not None or runs[-1][0] != point.reason:
                runs.append((point.reason, []))
            runs[-1][1].append(point.accelerators)
        previous = point
    return [f"{_span(counts)}: {reason}" for reason, counts in runs]


def _span(counts: Sequence[int]) -> str:
    return f"{counts[0]:,}" if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,}"


# -- in words


def findings(scaling: Scaling) -> list[str]:
    """Where tokens are cheapest, the knee, and what lies beyond it."""
    found, cheapest = scaling.found, scaling.cheapest
    assert cheapest is not None
    if len(found) == 1:
        why = "nothing else was tried" if len(scaling.points) == 1 else "nothing fits on the others"
        if any(level.kind == "torus" for level in scaling.cluster.levels) or len(scaling.cluster.groups) > 1:
            why = "a torus, or a cluster of unequal nodes, is not cut into parts"
        return [f"Only {_gpus(cheapest)} can be judged: {why}.", *_idle(scaling)]
    first, last = found[0], found[-1]
    said = [
        f"From {first.accelerators:,} to {_gpus(last)}, {last.accelerators / first.accelerators:,.3g} times as many, "
        f"throughput grows {scaling.speedup(last):,.3g}-fold.",
        f"A token takes the least accelerator time on {_gpus(cheapest)}{_price(cheapest)}: efficiency is held against "
        f"that.",
        _knee(scaling),
    ]
    dearer, slower = scaling.dearer_from, scaling.slower_from
    if dearer is not None:
        more = 1 / scaling.efficiency(dearer) - 1
        said.append(f"On {_gpus(dearer)} a token costs {units.percent(more)} more than on {cheapest.accelerators:,}.")
    if slower is not None:
        best = max(found[: found.index(slower)], key=lambda each: each.tokens_per_s)
        less = 1 - slower.tokens_per_s / best.tokens_per_s
        said.append(
            f"More is slower: {_gpus(slower)} train {units.percent(less)} fewer tokens per second than "
            f"{best.accelerators:,}."
        )
    return [*said, *_idle(scaling)]


def _knee(scaling: Scaling) -> str:
    knee, before = scaling.knee, scaling.before_knee
    if knee is None or before is None:
        return _no_knee(scaling)
    shares = [
        ("exposed communication", before.communication_share, knee.communication_share),
        ("the pipeline's bubble", before.bubble_share, knee.bubble_share),
        ("all that is not computing", before.waiting_share, knee.waiting_share),
    ]
    grown = [
        f"{name} goes from {units.percent(was)} to {units.percent(now)}"
        for name, was, now in shares
        if max(was, now) > 0.001
    ]
    said = (
        f"The knee is at {_gpus(knee)}, where efficiency is {units.percent(scaling.efficiency(knee))}, below "
        f"{units.percent(scaling.threshold)}: {knee.accelerators / before.accelerators:.3g} times the "
        f"{before.accelerators:,} before it for {knee.tokens_per_s / before.tokens_per_s:.3g} times their tokens per "
        f"second."
    )
    return f"{said} Of the step, {_listed(grown)}." if grown else said


def _no_knee(scaling: Scaling) -> str:
    """Only counts past the cheapest can be the knee: smaller ones may well be below the threshold."""
    cheapest, last = scaling.cheapest, scaling.found[-1]
    assert cheapest is not None
    if cheapest is last:
        return "No knee: the largest count is the cheapest."
    least = units.percent(scaling.threshold)
    return f"No knee from {cheapest.accelerators:,} to {_gpus(last)}: efficiency is nowhere below {least}."


def _listed(clauses: list[str]) -> str:
    return ", and ".join(part for part in (", ".join(clauses[:-1]), clauses[-1]) if part)


def _idle(scaling: Scaling) -> list[str]:
    idle = [point for point in scaling.found if point.accelerators_used < point.accelerators]
    if not idle:
        return []
    first = idle[0]
    used = f"{first.accelerators_used:,} {'are' if first.accelerators_used > 1 else 'is'} used"
    return [f"No legal plan fills {_gpus(first)}: {used}. Those that stay idle count as paid for."]


def _price(point: Point) -> str:
    return f", {units.digits(1e9 * point.cost_per_token)} per billion" if point.cost_per_token else ""


def _gpus(point: Point) -> str:
    return f"{point.accelerators:,} accelerator{'s' if point.accelerators > 1 else ''}"


def _not_found(scaling: Scaling) -> list[str]:
    return ["On no number of accelerators that was tried there is a plan that fits.", *_unfit(scaling)]


# -- the curve


def curve(scaling: Scaling, width: int) -> RenderableType:
    base = scaling.cheapest or scaling.found[0]
    points = [(float(point.accelerators), point.tokens_per_s) for point in scaling.found]
    marked = frozenset(float(point.accelerators) for point in (scaling.knee,) if point)
    return log_plot(
        points,
        lambda count: base.tokens_per_s_per_accelerator * count,
        min(width, _WIDEST),
        _HEIGHT,
        units.count,
        lambda count: f"{count:,.0f}",
        marked,
    )
