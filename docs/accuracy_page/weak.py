"""Where predictions are poor: the bars that are missed, the worst kinds of jobs and rows, and what each term helps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from meshwright.measure.catalog_fit import CatalogFit
from meshwright.measure.comparison import Comparison
from meshwright.measure.errors import Errors, errors, grouped, worst
from meshwright.measure.groups import GROUPS

from .ablation import Ablation, errors_without, moved_by_source
from .markdown import NONE, cell, names, percent, signed, table

LEAST_ROWS = 8
"""A smaller group is a few rows, not a kind of job."""
MOST = 10
SHARED = 0.6
"""Kinds of jobs that share more of their rows are one weak spot."""


@dataclass(frozen=True)
class Bar:
    """What is asked of the predictions, and what they reach."""

    what: str
    asked: str
    reached: str
    held: bool


def bar(
    what: str, reached: float | None, limit: float, shown: Callable[[float | None], str], least: bool = False
) -> Bar:
    """`least`: the figure must be the limit or more; otherwise the limit or less."""
    held = reached is not None and (reached >= limit if least else reached <= limit)
    return Bar(what, f"{'at least' if least else 'at most'} {shown(limit)}", shown(reached), held)


def bar_table(bars: Sequence[Bar]) -> str:
    rows = [[each.what, each.asked, each.reached, "held" if each.held else "**missed**"] for each in bars]
    return table(["figure", "asked", "reached", ""], rows)


@dataclass(frozen=True)
class Slice:
    """The rows of one source that are of one kind."""

    name: str
    rows: tuple[Comparison, ...]
    errors: Errors

    @property
    def mostly(self) -> str:
        """What dominates their predicted time."""
        return Counter(each.dominating for each in self.rows).most_common(1)[0][0].replace("_", " ")

    @property
    def assumed(self) -> str:
        """What at least half of them don't state."""
        counts = Counter(each.split("=")[0] for row in self.rows for each in row.assumed)
        often = [name for name, count in counts.most_common(3) if 2 * count >= len(self.rows)]
        return names(f"`{name}`" for name in often) if often else NONE


def slices(comparisons: Sequence[Comparison]) -> list[Slice]:
    """Kinds of jobs with enough rows, the worst median first; none that is mostly the rows of one before it."""
    found = []
    for group, kind in GROUPS.items():
        priced = [each for each in comparisons if each.estimate is not None]
        members = grouped(priced, lambda each, group=group, kind=kind: (each.row.source, kind(each.estimate)))
        for (source, title), rows in members.items():
            if len(rows) >= LEAST_ROWS:
                name = f"{source}: {group.replace('_', ' ')} {title}"
                found.append(Slice(name, tuple(rows), errors(name, rows)))
    found.sort(key=lambda each: -(each.errors.median or 0.0))
    kept: list[Slice] = []
    for each in found:
        if not any(_mostly_same(each, other) for other in kept):
            kept.append(each)
    return kept


def _mostly_same(one: Slice, other: Slice) -> bool:
    rows, others = set(map(id, one.rows)), set(map(id, other.rows))
    return len(rows & others) > SHARED * min(len(rows), len(others))


def slice_table(comparisons: Sequence[Comparison]) -> str:
    rows = [
        [
            each.name, f"{len(each.rows):,}", percent(each.errors.median), percent(each.errors.p90),
            signed(each.errors.bias), each.mostly, each.assumed,
        ]
        for each in slices(comparisons)[:MOST]
    ]  # fmt: skip
    header = ["kind of job", "rows", "median error", "90th percentile", "bias", "mostly", "not stated by most rows"]
    return table(header, rows)


def worst_table(comparisons: Sequence[Comparison]) -> str:
    """The rows that are furthest off, at most two of a source."""
    rows = []
    for each in worst(comparisons, MOST, of_each=2):
        found = each.estimate
        if found is not None and each.time_ratio is not None:
            plan = found.plan
            layout = " ".join(
                f"{axis}&nbsp;{getattr(plan, axis)}" for axis in ("tp", "cp", "pp", "dp") if getattr(plan, axis) > 1
            )
            rows.append([
                each.row.row_id, each.row.source, cell(each.row.cells.get("model", found.model.name)), layout or "one",
                found.cluster.accelerator.name, signed(each.time_ratio - 1), each.dominating.replace("_", " "),
            ])  # fmt: skip
    return table(["row", "source", "model", "layout", "accelerator", "off by", "mostly"], rows, numbers_from=7)


def ablation_table(found: CatalogFit, base: dict[str, Errors], ablations: Sequence[Ablation]) -> str:
    """Left-out median error by source: with every term, and without each."""
    without = [errors_without(found, each) for each in ablations]
    moved = [moved_by_source(found, each) for each in ablations]
    header = ["source", "every term", *(f"without {each.term.title}" for each in ablations)]
    rows = [
        [source or "mean over sources", percent(base[source].median)]
        + [
            percent(errors[source].median) if not source or touched[source] else NONE
            for errors, touched in zip(without, moved, strict=True)
        ]
        for source in base
    ]
    return table(header, rows)


def verdict_table(found: CatalogFit, base: dict[str, Errors], ablations: Sequence[Ablation]) -> str:
    """In words: which sources a term helps and which it doesn't, by the mean error with and without it."""
    rows = []
    for each in ablations:
        without, moved = errors_without(found, each), moved_by_source(found, each)
        helped = [name for name in base if name and moved[name] and _change(base, without, name) > NOTABLE]
        hurt = [name for name in base if name and moved[name] and _change(base, without, name) < -NOTABLE]
        rows.append([
            each.term.title, each.term.meaning, each.term.origin, f"{int(each.moved.sum()):,}",
            signed(_change(base, without, "")), names(helped), names(hurt),
        ])  # fmt: skip
    header = [
        "term", "what it says", "where it comes from", "runs it moves", "mean error changes without it", "helps",
        "makes worse",
    ]  # fmt: skip
    return table(header, rows, numbers_from=7)


NOTABLE = 0.002
"""A smaller change of a source's mean error is none."""


def _change(base: dict[str, Errors], without: dict[str, Errors], name: str) -> float:
    """How much larger the mean error is without a term."""
    return (without[name].mean or 0.0) - (base[name].mean or 0.0)
