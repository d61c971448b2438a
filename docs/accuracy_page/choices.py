"""Tables of choices: how much longer the layout takes that is predicted to be fastest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from meshwright.measure.comparison import Comparison
from meshwright.measure.sweeps import Choices, Sweep, choices, choices_by_source, mean_over, sweeps

from .markdown import cell, regret, table, whole_percent

LONE = "T01977"
"""A row of a sweep over shapes: one snapshot of a second iteration, slower than all its neighbours."""
HEADER = ["", "sweeps", "mean regret", "90th percentile", "largest", "best one found", "pairs", "in order"]


def without_lone(comparisons: Iterable[Comparison]) -> list[Comparison]:
    return [each for each in comparisons if each.row.row_id != LONE]


def source_choices(comparisons: Sequence[Comparison]) -> tuple[tuple[Choices, ...], Choices]:
    """(of each source, the mean over sources)."""
    by_source = choices_by_source(sweeps(comparisons))
    return by_source, mean_over("mean over sources", by_source)


def choice_table(comparisons: Sequence[Comparison]) -> str:
    """By source, the mean over sources, and all sweeps together; then all of them with the lone row."""
    kept = without_lone(comparisons)
    by_source, mean = source_choices(kept)
    every = [*by_source, mean, choices("all sweeps", sweeps(kept)), choices(f"with {LONE}", sweeps(comparisons))]
    return table(["source", *HEADER[1:]], [_row(each) for each in every])


def sweep_table(comparisons: Sequence[Comparison]) -> str:
    """Every sweep: what was measured fastest, and what was chosen."""
    header = ["source", "job", "layouts", "fastest", "chosen", "regret", "pairs", "in order"]
    return table(header, [_sweep_row(each) for each in sweeps(without_lone(comparisons))], numbers_from=5)


def _sweep_row(sweep: Sweep) -> list[str]:
    pairs, in_order = sweep.pairs
    chosen = "the same" if sweep.regret == 1 else sweep.chosen.row_ids[0]
    return [
        sweep.source, cell(sweep.job), str(len(sweep.tried)), sweep.best.row_ids[0], chosen, regret(sweep.regret),
        str(pairs), str(in_order),
    ]  # fmt: skip


def _row(each: Choices) -> list[str]:
    return [
        each.name, str(each.sweeps), regret(each.mean_regret), regret(each.p90_regret), regret(each.max_regret),
        whole_percent(each.best_found), f"{each.pairs:,}", whole_percent(each.pairs_in_order),
    ]  # fmt: skip
