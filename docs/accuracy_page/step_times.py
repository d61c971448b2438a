"""Tables of step times: the headline, the sources, kinds of jobs and what is counted apart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from meshwright.cost.ranges import LONG_SEQUENCE
from meshwright.measure.catalog_fit import NOISY
from meshwright.measure.comparison import Comparison
from meshwright.measure.errors import Errors, errors, errors_by, grouped, mean_over, step_times
from meshwright.measure.groups import errors_by_group

from .evidence import Evidence, full_layout, noise_floors, usual
from .markdown import NONE, percent, signed, table, whole_percent

MEAN = "mean over sources"
TITLES = {
    "model_size": "by size of the model",
    "layout": "by kind of layout",
    "accelerator": "by accelerator",
    "sequence": "by length of the sequence",
    "dtype": "by number format",
}
"""Of the groups that have a table and a picture."""


@dataclass(frozen=True)
class Headline:
    """Left-out errors of the usual jobs."""

    mean: Errors
    """Each source counted once."""
    sources: tuple[Errors, ...]
    same: Errors
    """Of the same rows, in-sample."""
    every: Errors
    """Of every counted row, the unusual and the partly stated ones too."""
    every_source: int

    @property
    def worst_bias(self) -> Errors:
        return max(self.sources, key=lambda each: abs(each.bias or 0.0))


def by_source(comparisons: Iterable[Comparison]) -> tuple[Errors, ...]:
    return errors_by(comparisons, lambda each: each.row.source)


def headline(left_out: Sequence[Comparison], in_sample: Sequence[Comparison]) -> Headline:
    """Of the usual jobs among them whose rows state the whole layout."""

    def chosen(rows: Sequence[Comparison]) -> tuple[Errors, ...]:
        return by_source(each for each in rows if usual(each) and full_layout(each))

    sources = chosen(left_out)
    return Headline(
        mean_over(MEAN, sources), sources, mean_over(MEAN, chosen(in_sample)), mean_over(MEAN, by_source(left_out)),
        len(by_source(left_out)),
    )  # fmt: skip


def headline_table(found: Headline) -> str:
    """The mean over sources, left out and in-sample, and of everything that is counted."""
    rows = [
        [name, f"{each.covered:,}", str(sources), *_figures(each), percent(each.bias)]
        for name, each, sources in (
            ("left out", found.mean, len(found.sources)),
            ("the same rows in-sample", found.same, len(found.sources)),
            ("left out, every counted row of every source", found.every, found.every_source),
        )
    ]
    header = ["mean over sources", "rows", "sources", "median error", "mean", "90th percentile", "size of the bias"]
    return table(header, rows)


def headline_source_table(found: Headline) -> str:
    rows = [[each.name, f"{each.covered:,}", *_figures(each), signed(each.bias)] for each in found.sources]
    return table(["source", "rows", "median error", "mean", "90th percentile", "bias"], rows)


def source_table(found: Evidence) -> str:
    """Every source of the file: what of it is predicted, counted, and how far off."""
    floors = noise_floors(found.about)
    left = {each.name: each for each in by_source(found.left_out)}
    inside = {each.name: each for each in by_source(found.taught)}
    rows = []
    for source, members in grouped(step_times(found.training), lambda each: each.row.source).items():
        whole = errors(source, members)
        mark = "" if any(map(full_layout, members)) else " †"
        typical, _ = floors.get(source, (NONE, NONE))
        out, fitted = left.get(source), inside.get(source)
        counts = [f"{whole.rows:,}", whole_percent(whole.coverage), f"{out.covered if out else 0:,}"]
        figures = [*_figures(out), signed(out.bias), whole_percent(found.inside[source])] if out else [NONE] * 5
        rows.append([
            f"{source}{mark}", *counts, *figures, percent(fitted.median if fitted else None),
            percent(fitted.p90 if fitted else None), signed(fitted.bias if fitted else None),
            NONE if typical == NONE else f"{typical} %",
        ])  # fmt: skip
    header = [
        "source", "rows", "predicted", "counted", "median error", "mean", "90th percentile", "bias", "in range",
        "in-sample: median", "90th percentile", "bias", "repeats differ by",
    ]  # fmt: skip
    return table(header, rows)


def group_table(comparisons: Sequence[Comparison], name: str) -> str:
    """Errors of one of GROUPS."""
    header = [name.replace("_", " "), "rows", "median error", "90th percentile", "bias"]
    rows = [
        [each.name, f"{each.covered:,}", percent(each.median), percent(each.p90), signed(each.bias)]
        for each in errors_by_group(comparisons)[name]
    ]
    return table(header, rows)


APART: dict[str, Callable[[Comparison], bool]] = {
    "8-bit matmuls (fp8)": lambda each: each.estimate is not None and each.estimate.workload.dtype == "fp8",
    f"sequences above {LONG_SEQUENCE:,} tokens": lambda each: (
        each.estimate is not None and each.estimate.workload.seq_len > LONG_SEQUENCE
    ),
    "mixture of experts": lambda each: each.estimate is not None and each.estimate.model.is_moe,
    "Blackwell": lambda each: each.estimate is not None and each.estimate.cluster.accelerator.family == "blackwell",
}


def apart_table(found: Evidence) -> str:
    """What is not in the headline: left-out errors of rows that the fit counts, and how many others there are."""
    times = [each for each in step_times(found.training) if each.row.source not in NOISY]
    rows = []
    for name, holds in APART.items():
        counted = [each for each in found.left_out if holds(each)]
        others = sum(holds(each) for each in times) - len(counted)
        rows.append(_apart_row(name, counted, others))
    lora = [each for each in times if "lora" in each.row.cells.get("task", "").lower()]
    rows.append(["LoRA", "0", NONE, NONE, NONE, NONE, f"{len(lora):,} runs, not predicted" if lora else "no run"])
    header = ["kind of job", "counted rows", "sources", "median error", "90th percentile", "bias", "beside them"]
    return table(header, rows)


def _apart_row(name: str, counted: Sequence[Comparison], others: int) -> list[str]:
    each = errors(name, counted)
    sources = len({row.row.source for row in counted})
    beside = f"{others:,} not counted" if others else ("nothing" if counted else "no run")
    return [
        name, f"{len(counted):,}", str(sources) if sources else NONE, percent(each.median), percent(each.p90),
        signed(each.bias), beside,
    ]  # fmt: skip


def _figures(each: Errors) -> list[str]:
    return [percent(each.median), percent(each.mean), percent(each.p90)]
