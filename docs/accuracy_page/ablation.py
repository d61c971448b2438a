"""What each term of the cost model helps: predictions without it, with all constants fitted again, each source left
out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace

import numpy as np

from meshwright.measure.catalog_fit import CatalogFit
from meshwright.measure.comparison import Comparison
from meshwright.measure.errors import Errors, errors_by, mean_over
from meshwright.measure.fit import Problem, descend
from meshwright.measure.folds import by_group, cross_validate
from meshwright.measure.places import with_accelerators
from meshwright.measure.repricing import Run, log_ratios
from meshwright.spec.plan import Array
from meshwright.spec.software import Software

from .evidence import full_layout, shifted

Change = Callable[[Run], Run]


@dataclass(frozen=True)
class Term:
    """A term that can be switched off."""

    title: str
    without: Change
    meaning: str
    origin: str
    """Where it comes from, so that it can be asked whether it helps elsewhere."""


def no_waves(run: Run) -> Run:
    accelerators = [replace(group.accelerator, waves=None) for group in run.cluster.groups]
    return replace(run, cluster=with_accelerators(run.cluster, accelerators))


def no_attention_shape(run: Run) -> Run:
    kernel = replace(run.software.attention, operand_traffic=0.0, softmax_width={})
    return replace(run, software=replace(run.software, attention=kernel))


def no_square_root(run: Run) -> Run:
    levels = tuple(replace(level, sqrt_s_per_sqrt_byte=0.0) for level in run.cluster.levels)
    return replace(run, cluster=replace(run.cluster, levels=levels))


@dataclass(frozen=True)
class Habit:
    """A run under a software profile with other values of some fields."""

    fields: tuple[tuple[str, float | bool], ...]

    def __call__(self, run: Run) -> Run:
        software: Software = replace(run.software, **dict(self.fields))
        return replace(run, software=software)


TERMS = (
    Term(
        "last wave of tiles",
        no_waves,
        "the last wave of a matmul's tiles leaves multiprocessors idle",
        "the A100's table of single matmuls; no training run",
    ),
    Term(
        "small matmuls",
        Habit((("matmul_rows_overhead", 0.0), ("matmul_depth_overhead", 0.0))),
        "matmuls of few rows or a short sum are slower",
        "kernel tables of A100 and H100; no training run",
    ),
    Term(
        "shape of attention",
        no_attention_shape,
        "short sequences and narrow heads take longer for their arithmetic",
        "the tables of attention kernels; no training run",
    ),
    Term(
        "root of bytes",
        no_square_root,
        "collectives of middling size reach less than large ones",
        "curves of collectives within a node; no training run",
    ),
    Term(
        "owners of whole tensors",
        Habit((("shards_whole_tensors", False),)),
        "gradients are reduced to one rank a tensor, and its weights broadcast from there",
        "the code of the frameworks that do so; others shard flat buffers, so that it can help no source of theirs",
    ),
    Term(
        "stopping early",
        Habit((("checkpoint_stops_early", False),)),
        "full recompute leaves out a layer's last matmul",
        "torch.utils.checkpoint without re-entry",
    ),
)


@dataclass(frozen=True)
class Ablation:
    """One term: how many runs it moves, and the runs' left-out errors without it, as ln(predicted / measured)."""

    term: Term
    moved: Array
    """Whether a run's prediction depends on the term, before any constant is fitted again."""
    left_out: Array


def ablate(found: CatalogFit, term: Term, steps: int = 4) -> Ablation:
    """All constants fitted again without the term, from where they are and with the derivatives known, and each source
    predicted without it."""
    runs = tuple(term.without(run) for run in found.runs)
    full = found.full
    before = log_ratios(runs, full.constants, full.factors)
    moved = np.abs(before - full.after) > 1e-4
    if not moved.any():
        return Ablation(term, moved, found.folds.left_out)
    problem = Problem(runs, full.constants, full.weights, full.noise)
    reached = descend(problem, np.log(full.factors), before, full.slopes, steps)
    refitted = replace(full, factors=np.exp(reached.theta), after=reached.residuals)
    return Ablation(term, moved, cross_validate(runs, refitted, by_group(runs)).left_out)


def errors_without(found: CatalogFit, ablation: Ablation) -> dict[str, Errors]:
    """Left-out errors without a term, as `errors_by_source` gives them."""
    return errors_by_source(shifted(found.comparisons, ablation.left_out))


def errors_by_source(comparisons: Sequence[Comparison]) -> dict[str, Errors]:
    """Errors of each source and, under the empty name, the mean over those with rows that state their whole layout."""
    by_source = errors_by(comparisons, lambda each: each.row.source)
    whole = {each.row.source for each in comparisons if full_layout(each)}
    mean = mean_over("", [each for each in by_source if each.name in whole])
    return {**{each.name: each for each in by_source}, "": mean}


def moved_by_source(found: CatalogFit, ablation: Ablation) -> dict[str, int]:
    """How many runs of each source a term moves."""
    counts: dict[str, int] = dict.fromkeys((run.group for run in found.runs), 0)
    for run, moved in zip(found.runs, ablation.moved, strict=True):
        counts[run.group] += bool(moved)
    return counts


def ablate_all(
    found: CatalogFit, progress: Callable[[str], None], workers: int, terms: Sequence[Term] = TERMS
) -> tuple[Ablation, ...]:
    """Every term, in `workers` processes. Takes a minute or two each."""
    progress(f"fitting again without each of {len(terms)} terms, in {workers} processes")
    with ProcessPoolExecutor(workers) as pool:
        waiting = [pool.submit(ablate, found, term) for term in terms]
        done = []
        for term, each in zip(terms, waiting, strict=True):
            done.append(each.result())
            progress(f"without {term.title}: done")
    return tuple(done)
