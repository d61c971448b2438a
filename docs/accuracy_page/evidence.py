"""What the page is made from: every row predicted, the fit to them, and each source predicted without it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from meshwright.measure.catalog_fit import NOISY, TRAINING, CatalogFit, fit_comparisons, profiled_steps
from meshwright.measure.comparison import TOKENS_PER_S, Comparison
from meshwright.measure.finding import NAMING, VALUES
from meshwright.measure.peaks import COMPONENTS
from meshwright.measure.predict import Given, compare, compare_rows
from meshwright.measure.ranges_fit import Left, coverage, regimes_of
from meshwright.sources.clusters import load_cluster
from meshwright.spec.plan import Array

MEMORY, ABOUT = "memory.csv", "README.md"
LONGEST = 8192
"""Tokens of a sequence up to which most training is done."""
UNUSUAL = frozenset({"8-bit matmuls", "long sequences", "widths that fill no tile", "Blackwell"})
"""Regimes that are counted apart."""
LAYOUT = frozenset({"tp", "pp", "micro_batch", "global_batch", "recompute"})
"""What a row must state, by JSON names, for its prediction to follow from the row."""
ANY_CLUSTER = "dgx-a100-80g"
OF_A_RANK = NAMING | set(VALUES) | {"mem_def"}
"""Columns in which rows of several ranks of one run differ."""


@dataclass(frozen=True)
class Evidence:
    """All rows beside their predictions. Arrays of `fit` follow its `comparisons`."""

    training: tuple[Comparison, ...]
    """Of training.csv, as the catalog predicts them now."""
    memory: tuple[Comparison, ...]
    """Of memory.csv."""
    fit: CatalogFit
    about: str = ""
    """What the data folder says of its sources."""

    @cached_property
    def taught(self) -> tuple[Comparison, ...]:
        """The rows that the fit counts, as the catalog predicts them now: in-sample."""
        return self.fit.comparisons

    @cached_property
    def left_out(self) -> tuple[Comparison, ...]:
        """The same rows, each predicted by constants that were fitted without its source."""
        return shifted(self.fit.comparisons, self.fit.folds.left_out)

    @cached_property
    def profiled(self) -> tuple[Comparison, ...]:
        """Rows of sources whose times look computed: no constant was fitted to them."""
        return profiled_steps(self.training)

    @cached_property
    def left(self) -> Left:
        return Left(self.fit.comparisons, self.fit.folds.left_out, self.profiled)

    @cached_property
    def inside(self) -> dict[str, float]:
        """Share of the left-out rows in ranges that were fitted without their source, by source and of `all`."""
        return dict(coverage(self.left))

    @cached_property
    def components(self) -> tuple[Comparison, ...]:
        """Parts of memory."""
        return component_rows(self.memory)

    @cached_property
    def noisy(self) -> tuple[str, ...]:
        return tuple(source for source in dict.fromkeys(each.row.source for each in self.training) if source in NOISY)


def collect(folder: Path, progress: Callable[[str], None]) -> Evidence:
    """Everything from a folder of measurements. Takes some minutes. Raises InputError for a file that is missing or
    wrong."""
    progress("predicting the rows of training.csv")
    training = compare(folder / TRAINING)
    progress("predicting the rows of memory.csv")
    memory = compare(folder / MEMORY)
    fit = fit_comparisons(training, progress)
    return Evidence(tuple(training), tuple(memory), fit, (folder / ABOUT).read_text(encoding="utf-8"))


def shifted(comparisons: Sequence[Comparison], log_ratios: Array) -> tuple[Comparison, ...]:
    """The comparisons with other predictions: ln(predicted / measured) of the step time as given."""
    return tuple(_shifted(each, float(ratio)) for each, ratio in zip(comparisons, log_ratios, strict=True))


def _shifted(each: Comparison, log_ratio: float) -> Comparison:
    if each.log_ratio is None or each.predicted is None or each.estimate is None:
        raise ValueError(f"{each.row.where} has no prediction")
    longer = math.exp(log_ratio - each.log_ratio)
    factor = 1 / longer if each.metric == TOKENS_PER_S else longer
    return replace(
        each,
        predicted=each.predicted * factor,
        low=None if each.low is None else each.low * factor,
        high=None if each.high is None else each.high * factor,
        estimate=replace(
            each.estimate, time_s={part: seconds * longer for part, seconds in each.estimate.time_s.items()}
        ),
    )


def usual(each: Comparison) -> bool:
    """Whether a job is of the kind that most are: 16-bit, on widths that fill tiles, up to LONGEST tokens."""
    found = each.estimate
    return found is not None and found.workload.seq_len <= LONGEST and not UNUSUAL & set(regimes_of(each))


def full_layout(each: Comparison) -> bool:
    """Whether the row states all of LAYOUT."""
    return each.estimate is not None and not LAYOUT & {assumed.partition("=")[0] for assumed in each.assumed}


def component_rows(memory: Iterable[Comparison]) -> tuple[Comparison, ...]:
    """Rows of parts of memory, of the rank where the part is largest. A part doesn't depend on the accelerator, so all
    are predicted on ANY_CLUSTER, whether they name theirs or not."""
    cluster = Given(cluster=load_cluster(ANY_CLUSTER))
    rows = [
        replace(each.row, cells={column: text for column, text in each.row.cells.items() if column != "gpu"})
        for each in memory
        if each.row.cells.get("mem_component", "") in COMPONENTS
    ]
    largest: dict[Hashable, Comparison] = {}
    for each in compare_rows(rows, given=cluster):
        if each.measured is not None:
            key = frozenset(item for item in each.row.cells.items() if item[0] not in OF_A_RANK)
            known = largest.setdefault(key, each)
            if each.measured > (known.measured or 0.0):
                largest[key] = each
    return tuple(largest.values())


def noise_floors(about: str) -> dict[str, tuple[str, str]]:
    """(typical, largest) difference between repeats of one configuration, by source, as the folder's README states
    them: `name [median] 1.8%, max 10%`."""
    _, _, section = about.partition("## Noise floors")
    flat = " ".join(section.partition("\n## ")[0].split())
    found = re.findall(r"([a-z][\w-]+) (?:median )?([\d.]+(?:-[\d.]+)?)%, max ([\d.]+)%", flat)
    return {source: (typical.replace("-", "–"), most) for source, typical, most in found}
