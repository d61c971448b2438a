"""Whole answers as text, from 80 columns up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from meshwright.show import units
from meshwright.show.breakdown import memory_chart, time_chart
from meshwright.show.console import write
from meshwright.show.header import DOT, header
from meshwright.show.layout import Wrapped, axes_table, flags, layers_text
from meshwright.show.ranking import ranking_table, rejected_table
from meshwright.show.throughput import throughput
from meshwright.show.traffic import traffic_table
from meshwright.spec.cluster import Cluster
from meshwright.spec.estimate import Estimate, Problem
from meshwright.spec.model import Model
from meshwright.spec.software import Software
from meshwright.spec.workload import Training

if TYPE_CHECKING:
    from meshwright.choose import Ranking


class Asked(Protocol):
    """What a ranking answers."""

    @property
    def model(self) -> Model: ...
    @property
    def cluster(self) -> Cluster: ...
    @property
    def workload(self) -> Training: ...
    @property
    def software(self) -> Software: ...


_TWO_CHARTS = 118
"""Columns from which the two charts stand side by side."""
INDENT = 2


def show_ranking(ranking: Ranking, asked: Asked, top: int, console: Console) -> None:
    """The answer to a search: the best plan taken apart, the reasons, the next plans and the rejected ones."""
    write(ranking_view(ranking, asked, top, console.width), console)


def show_estimate(estimate: Estimate, console: Console) -> None:
    """One plan taken apart, with what is wrong with it."""
    write(estimate_view(estimate, console.width), console)


def ranking_view(ranking: Ranking, asked: Asked, top: int, width: int) -> Group:
    best = ranking.best
    warnings = warnings_of(asked.cluster, ranking.accelerators_used, best)
    parts: list[RenderableType] = [header(asked.model, asked.cluster, asked.workload, asked.software, warnings)]
    if best is None:
        parts += section("No plan", sentences(ranking.reasons))
    else:
        parts += section(_title(ranking), *_plan(best), throughput(best))
        if ranking.reasons:
            parts += section("Why", sentences(ranking.reasons))
        parts += _charts(best, width)
        parts += _communication(best, width)
        rows = ranking.by_layout[:top]
        if len(rows) > 1:
            parts += section("Layouts, the best plan of each", ranking_table(rows, width - INDENT))
    if ranking.rejected:
        parts += section("Ruled out" if best is not None else "Tried", rejected_table(ranking.rejected, width))
    return Group(*parts, "", Text(_footer(ranking), "bright_black"))


def estimate_view(estimate: Estimate, width: int) -> Group:
    warnings = warnings_of(estimate.cluster, estimate.plan.world_size, estimate)
    parts: list[RenderableType] = [
        header(estimate.model, estimate.cluster, estimate.workload, estimate.software, warnings)
    ]
    parts += section("Plan", *_plan(estimate), throughput(estimate))
    if estimate.problems:
        parts += section("Problems", problems(estimate.problems))
    parts += _charts(estimate, width)
    parts += _communication(estimate, width)
    if estimate.traffic:
        parts += section("Calls of the slowest rank, per step", traffic_table(estimate, width - INDENT))
    return Group(*parts)


def warnings_of(cluster: Cluster, used: int, best: Estimate | None) -> list[str]:
    """What a reader must know beside the answer."""
    of_model = [] if best is None else _about_model(best)
    return [*(f"{cluster.name}: {warning}" for warning in cluster.warnings), *of_model, *_idle(used, cluster, best)]


def _about_model(best: Estimate) -> list[str]:
    """A sequence longer than the model is made for."""
    model, seq_len = best.model, best.workload.seq_len
    if not 0 < model.context_length < seq_len or model.max_positions:
        return []
    return [f"the sequence of {seq_len:,} tokens exceeds the {model.context_length:,} of {model.name}'s context"]


def _idle(used: int, cluster: Cluster, best: Estimate | None) -> list[str]:
    idle = cluster.accelerators - used
    if idle <= 0 or best is None:
        return []
    return [f"the plan uses {used:,} of {cluster.accelerators:,} accelerators; {idle:,} stay idle"]


def problems(found: Sequence[Problem]) -> Table:
    """Each problem with its fix."""
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(no_wrap=True, style="bold red")
    table.add_column()
    for problem in found:
        table.add_row("✗", Text.assemble((f"{problem.rule}: ", "bold"), problem.message))
        if problem.fix:
            table.add_row("", Text(f"→ {problem.fix}", "green"))
    return table


def sentences(texts: Sequence[str]) -> Table:
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(no_wrap=True, style="bright_black")
    table.add_column()
    for text in texts:
        table.add_row("•", Text(text))
    return table


def section(title: str, *content: RenderableType) -> list[RenderableType]:
    """A blank line, a title on a rule, and what stands below it."""
    rule = Rule(Text(title, "bold"), align="left", style="bright_black")
    return ["", rule, *(Padding(each, (0, 0, 0, INDENT)) for each in content)]


def _title(ranking: Ranking) -> str:
    words = {
        "throughput": "fastest step",
        "latency": "fastest step",
        "cost": "least cost per token",
        "memory": "least memory",
        "fewest": "fewest accelerators",
    }
    return f"Best plan: {words.get(ranking.objective, ranking.objective)}"


def _plan(estimate: Estimate) -> list[RenderableType]:
    layers = estimate.plan.layers_per_stage
    one = estimate.num_micro_batches == 1
    details = ["1 micro-batch" if one else f"{estimate.num_micro_batches:,} micro-batches"]
    if len(layers) > 1:
        details.append(f"layers per stage {layers_text(layers)}")
    if estimate.plan.pp > 1:
        details.append(f"pipeline {units.percent(estimate.pipeline_efficiency)} efficient")
    return [Wrapped(flags(estimate.plan), "bold cyan"), Text(DOT.join(details), "bright_black"), ""]


def _charts(estimate: Estimate, width: int) -> list[RenderableType]:
    time_title = "Time of a step, exposed"
    memory_title = f"Memory of rank {estimate.worst_rank} in stage {estimate.worst_stage}, the fullest"
    if width < _TWO_CHARTS:
        inner = width - INDENT
        return [
            *section(time_title, time_chart(estimate, inner)),
            *section(memory_title, memory_chart(estimate, inner)),
        ]
    half = (width - 3) // 2
    table = Table.grid(padding=(0, 3, 0, 0), expand=False)
    table.add_column(width=half)
    table.add_column(width=half)
    table.add_row(
        Group(*section(time_title, time_chart(estimate, half - INDENT))),
        Group(*section(memory_title, memory_chart(estimate, half - INDENT))),
    )
    return [table]


def _communication(estimate: Estimate, width: int) -> list[RenderableType]:
    if estimate.plan.world_size == 1 or not estimate.cluster.levels:
        return []
    return section("Communication, what crosses which link in a step", axes_table(estimate, width - INDENT))


def _footer(ranking: Ranking) -> str:
    return f"{ranking.considered:,} legal plans considered in {units.seconds(ranking.seconds)}"
