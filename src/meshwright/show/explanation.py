"""An explanation as text: tables of what fits, what crosses which link, what the other layouts lose by."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from meshwright.choose.explain import text
from meshwright.choose.explain.flips import FARTHEST, STEPS_PER_DOUBLING
from meshwright.choose.words import degrees, pin
from meshwright.show import units
from meshwright.show.console import write
from meshwright.show.header import header
from meshwright.show.layout import AXIS_NAMES, Wrapped, flags
from meshwright.show.sheet import PROSE, RIGHT, Column, Sheet, fitted
from meshwright.show.terminal import INDENT, Asked, problems, section, sentences, warnings_of
from meshwright.show.throughput import throughput
from meshwright.spec.estimate import Estimate

if TYPE_CHECKING:
    from meshwright.choose.explain import Explanation
    from meshwright.choose.explain.facts import Alternative, Change, Flip, Link, Move, Rung

_STEP = units.percent(2 ** (1 / STEPS_PER_DOUBLING) - 1)
_WIDE = 118
"""Columns from which reasons stand beside the numbers, not below them."""


def show_explanation(said: Explanation, asked: Asked, console: Console) -> None:
    """The explanation of a plan file or of the best plan, with what was asked above it."""
    write(explanation_view(said, asked, console.width), console)


def show_sections(said: Explanation, console: Console) -> None:
    """The explanation below a ranking that shows the plan already."""
    write(Group(*explanation_sections(said, console.width)), console)


def explanation_view(said: Explanation, asked: Asked, width: int) -> Group:
    best = said.estimate
    used = said.accelerators_used if best is None else best.plan.world_size
    parts: list[RenderableType] = [
        header(asked.model, asked.cluster, asked.workload, asked.software, warnings_of(asked.cluster, used, best))
    ]
    parts += section(_title(said), *_plan(best), sentences(list(text.headline(said))))
    if best is not None and best.problems:
        parts += section("Problems", problems(best.problems))
    return Group(*parts, *explanation_sections(said, width))


def explanation_sections(said: Explanation, width: int) -> list[RenderableType]:
    """What is said beside the plan itself."""
    inner = width - INDENT
    parts: list[RenderableType] = []
    parts += section(
        "What fits, and what forced a split", sentences(list(text.memory(said))), "", _ladder(said.memory, inner)
    )
    if said.links:
        parts += section("What crosses which link, per step", _links(said, inner))
    timed = [*text.time(said), *text.runner_up(said)]
    if timed:
        parts += section("What binds, and what comes next", sentences(timed))
    rows = [*said.families, *([said.slogan] if said.slogan is not None else [])]
    if rows:
        parts += section("Other kinds of layout, the best plan of each", *_others(said, rows, inner))
        if said.slogan is not None:
            parts += ["", Padding(Text(f"the slogan: {said.slogan.title}", "bright_black"), (0, 0, 0, INDENT))]
    if said.flips:
        parts += section("What would flip the choice", *_flips(said.flips, inner))
    if said.to_fit is not None:
        content = _fits(said.to_fit, inner) if said.to_fit else sentences(list(text.changes(said)))
        parts += section("Smallest changes that make it fit, each alone", content)
    return parts


def _title(said: Explanation) -> str:
    if said.estimate is None:
        return "No plan"
    return "Why this plan" if said.gap is None else "This plan, and the best"


def _plan(estimate: Estimate | None) -> list[RenderableType]:
    if estimate is None:
        return []
    return [Wrapped(flags(estimate.plan), "bold cyan"), "", throughput(estimate), ""]


# -- memory


def _ladder(rungs: Sequence[Rung], width: int) -> RenderableType:
    columns = [Column("the fullest rank, with", PROSE)]
    columns += [Column(title, RIGHT) for title in ("states", "activations", "other", "total", "of one")]
    rows = []
    for rung in rungs:
        part = rung.memory_bytes
        states = sum(part[name] for name in ("weights", "gradients", "optimizer"))
        kept = part["activations"] + part["logits"]
        total = rung.total_bytes
        share = units.percent(total / rung.capacity_bytes)
        rows.append(
            (
                rung.change,
                *map(units.gib, (states, kept, total - states - kept, total)),
                share if rung.fits else f"{share} !",
            )
        )
    return fitted(width, [Sheet(columns, rows, strong=len(rows) - 1)])


# -- links


def _links(said: Explanation, width: int) -> RenderableType:
    assert said.estimate is not None
    titles = ("sends", "takes", "hidden", "exposed", "further in", "further out")
    columns = [Column("parallel"), Column("", style="bold"), Column("over", style="cyan")]
    columns += [Column(title, RIGHT) for title in titles]
    shown: set[str] = set()
    rows = []
    for link in said.links:
        moved = ("", "") if link.axis in shown else _moved(link, said)
        shown.add(link.axis)
        rows.append((*_name(link, said.estimate), link.level, *_amounts(link), *moved))
    whole = Sheet(columns, rows)
    table = fitted(width, [whole, whole.without("takes"), whole.without("takes").wrapping("over")])
    if not said.moves:
        return table
    note = (
        "further in, further out: what the step would take more or less with that axis one level of links further "
        "in or out by another order of ranks; - where no order puts it there"
    )
    return Group(table, "", Text(note, "bright_black"))


def _name(link: Link, estimate: Estimate) -> tuple[str, str]:
    plan = estimate.plan
    beside = f" × cp {plan.cp}" if link.axis == "dp" and plan.cp > 1 else ""
    return AXIS_NAMES[link.axis], f"{link.axis} {getattr(plan, link.axis)}{beside}"


def _amounts(link: Link) -> tuple[str, ...]:
    return (units.traffic(link.wire_bytes_per_step), *map(units.seconds, (link.seconds, link.hidden_s, link.exposed_s)))


def _moved(link: Link, said: Explanation) -> tuple[str, str]:
    found = {move.direction: move for move in said.moves if move.axis == link.axis}
    return _step_change(found.get("in"), said), _step_change(found.get("out"), said)


def _step_change(move: Move | None, said: Explanation) -> str:
    if move is None or not move.order or said.estimate is None:
        return "-"
    change = move.step_time_s - said.estimate.step_time_s
    return f"{'+' if change >= 0 else '-'}{units.seconds(abs(change))}"


# -- the others


def _others(said: Explanation, rows: Sequence[Alternative], width: int) -> Iterable[RenderableType]:
    columns = [Column("family", style="bold"), Column("best plan"), Column("step", RIGHT), Column("vs best", RIGHT)]
    cells = [_cells(said, each) for each in rows]
    strong = next((number for number, each in enumerate(rows) if each.verdict == "chosen"), -1)
    if width >= _WIDE:
        reasons = [*columns, Column("why not", PROSE)]
        yield fitted(
            width, [Sheet(reasons, [(*cell, _why(said, each)) for cell, each in zip(cells, rows, strict=True)], strong)]
        )
        return
    if any(each.estimate is not None for each in rows):
        yield fitted(width, [Sheet(columns, cells, strong)])
        yield ""
    pairs = [(_family(each), _why(said, each)) for each in rows if each.verdict != "chosen"]
    yield fitted(width, [Sheet([Column("family", style="bold"), Column("why not", PROSE)], pairs)])


def _cells(said: Explanation, each: Alternative) -> tuple[str, ...]:
    name = _family(each) + (" (given)" if each.given and said.gap is not None else "")
    if each.estimate is None:
        return name, "none", "-", "-"
    behind = (
        "best" if each.verdict == "chosen" else f"{'+' if each.behind >= 0 else '-'}{units.percent(abs(each.behind))}"
    )
    return name, degrees(each.estimate.plan), units.seconds(each.estimate.step_time_s), behind


def _family(each: Alternative) -> str:
    return "the slogan" if each.name == "slogan" else each.title


def _why(said: Explanation, each: Alternative) -> str:
    if each.verdict == "chosen":
        return ""
    return each.reason or text.reasons(said, each)


# -- what would change the answer


def _flips(found: Sequence[Flip], width: int) -> Iterable[RenderableType]:
    columns = [Column("if this changes", style="bold"), Column("now", RIGHT), Column("stands to", RIGHT)]
    columns += [Column("flips at", RIGHT), Column("to"), Column("step", RIGHT)]
    rows = [_flip_row(each) for each in found]
    whole = Sheet(columns, rows)
    yield fitted(width, [whole, whole.without("step"), whole.without("step").wrapping("if this changes")])
    note = (
        f"each alone, up to {FARTHEST} times as much and as little; the values on both sides of a flip are {_STEP} "
        "apart, those of batch and sequence a quarter of a doubling"
    )
    yield ""
    yield Text(note, "bright_black")


def _flip_row(each: Flip) -> tuple[str, ...]:
    now, kept = units.quantity(each.now, each.unit), units.quantity(each.keeps.value, each.unit)
    row = (f"{each.title} {each.direction}", now, kept)
    then = each.flips
    if then is None:
        return (*row, "-", "", "")
    value = units.quantity(then.value, each.unit)
    if then.plan is None or then.step_time_s is None:
        return (*row, value, "no plan", "-")
    return (*row, value, degrees(then.plan), units.seconds(then.step_time_s))


def _fits(found: Sequence[Change], width: int) -> RenderableType:
    columns = [Column("change", style="bold"), Column("now", RIGHT), Column("needed", RIGHT), Column("best plan then")]
    columns += [Column("step", RIGHT), Column("memory", RIGHT)]
    rows = []
    for each in found:
        now, value = (units.quantity(side, each.unit) if each.unit else pin(side) for side in (each.now, each.value))
        then = ("", "", "")
        if each.estimate is not None:
            memory = units.gib(each.estimate.memory_total_bytes)
            then = (degrees(each.estimate.plan), units.seconds(each.estimate.step_time_s), memory)
        rows.append((each.title, now, value, *then))
    whole = Sheet(columns, rows)
    return fitted(width, [whole, whole.without("memory"), whole.without("memory").wrapping("change")])
