"""Predictions judged by measurements: the whole answer to `meshwright validate`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from meshwright.measure import sweeps as sweep_figures
from meshwright.measure.comparison import Comparison
from meshwright.measure.data_checks import check_data
from meshwright.measure.errors import Errors, errors, errors_by, grouped, mean_over, peaks, step_times, worst
from meshwright.measure.finding import Finding
from meshwright.measure.groups import errors_by_group
from meshwright.measure.memory_table import MemoryCalls, memory_calls
from meshwright.measure.sweeps import Choices, Sweep
from meshwright.spec.errors import InputError, UnknownName, near_names

POOLED, MEAN = "all rows", "mean over sources"


@dataclass(frozen=True, repr=False)
class Validation:
    """Measured rows beside their predictions, and what follows from them. Errors are shares: 0.05 is 5 %."""

    files: tuple[str, ...]
    comparisons: tuple[Comparison, ...]

    def __repr__(self) -> str:
        pooled = self.step_time
        median = "no step time" if pooled.median is None else f"median error {pooled.median:.1%}"
        return f"<Validation of {', '.join(self.files)}: {pooled.covered} of {pooled.rows} rows, {median}>"

    # -- step time

    @cached_property
    def step_time(self) -> Errors:
        """All rows together: a source with many rows counts as often."""
        return errors(POOLED, step_times(self.comparisons))

    @cached_property
    def step_time_by_source(self) -> tuple[Errors, ...]:
        return errors_by(step_times(self.comparisons), _source)

    @cached_property
    def step_time_over_sources(self) -> Errors:
        """Each source counted once; the bias is the mean of its size."""
        return mean_over(MEAN, self.step_time_by_source)

    @cached_property
    def step_time_by_group(self) -> dict[str, tuple[Errors, ...]]:
        """By accelerator, dtype, kind of layout, sequence and size of the model."""
        return errors_by_group(step_times(self.comparisons))

    # -- the peak of memory

    @cached_property
    def peak(self) -> Errors:
        return errors(POOLED, peaks(self.comparisons))

    @cached_property
    def peak_by_source(self) -> tuple[Errors, ...]:
        return errors_by(peaks(self.comparisons), _source)

    @cached_property
    def peak_over_sources(self) -> Errors:
        return mean_over(MEAN, self.peak_by_source)

    @cached_property
    def memory_calls(self) -> MemoryCalls:
        """Runs that ran or were out of memory, by whether they are called possible."""
        return memory_calls(POOLED, self.comparisons)

    @cached_property
    def memory_calls_by_source(self) -> tuple[MemoryCalls, ...]:
        groups = grouped(self.comparisons, _source).items()
        found = (memory_calls(source, members) for source, members in groups)
        return tuple(each for each in found if each.ran or each.out_of_memory)

    # -- choices between layouts

    @cached_property
    def sweeps(self) -> tuple[Sweep, ...]:
        return sweep_figures.sweeps(self.comparisons)

    @cached_property
    def choices(self) -> Choices:
        return sweep_figures.choices("all sweeps", self.sweeps)

    @cached_property
    def choices_by_source(self) -> tuple[Choices, ...]:
        return sweep_figures.choices_by_source(self.sweeps)

    @cached_property
    def choices_over_sources(self) -> Choices:
        """Each source counted once."""
        return sweep_figures.mean_over(MEAN, self.choices_by_source)

    # -- rows

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """Warnings about the data."""
        return check_data(self.comparisons)

    @cached_property
    def reasons(self) -> tuple[tuple[str, int], ...]:
        """Why values have no prediction, with how many of them, the most frequent first."""
        counted = Counter(each.reason for each in self.comparisons if each.predicted is None and each.reason)
        return tuple(counted.most_common())

    @cached_property
    def assumed(self) -> tuple[tuple[str, int], ...]:
        """Settings that rows don't state, with how many predictions assume them, the most frequent first."""
        counted = Counter(each for one in self.comparisons if one.predicted is not None for each in one.assumed)
        return tuple(counted.most_common())

    def worst(self, most: int, of_each: int | None = None) -> tuple[Comparison, ...]:
        """The step times that are furthest off; at most `of_each` of one source."""
        return worst(step_times(self.comparisons), most, of_each)


def judged(comparisons: Sequence[Comparison], files: Sequence[str], source: str | None = None) -> Validation:
    """The judgement of what was read from the files; only of rows of `source` if that is given. Raises InputError where
    no row can be predicted, and where a file is named twice."""
    where = ", ".join(files)
    twice = next((name for name in files if files.count(name) > 1), None)
    if twice is not None:
        raise InputError("is named twice: its rows would count double", twice, "name it once")
    found = list(comparisons) if source is None else _of_source(comparisons, source, where)
    if not any(each.predicted is not None for each in found):
        raise _nothing(found, where)
    return Validation(tuple(files), tuple(found))


def _of_source(comparisons: Iterable[Comparison], source: str, where: str) -> list[Comparison]:
    members = grouped(comparisons, _source)
    if source not in members:
        fix = "" if near_names(source, members) else f"the sources are {', '.join(members)}"
        raise UnknownName("source", source, members, where, fix)
    return members[source]


def _nothing(found: Sequence[Comparison], where: str) -> InputError:
    reasons = Counter(each.reason for each in found if each.reason).most_common(1)
    if not reasons:
        return InputError("there is no measurement in it", where, "a row needs a job, a layout and a measured value")
    reason, count = reasons[0]
    return InputError(f"none of its {len(found):,} values can be predicted; {count:,} of them: {reason}", where)


def _source(each: Comparison) -> str:
    return each.row.source
