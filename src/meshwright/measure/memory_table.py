"""Whether what is called possible is possible: runs that ran or ran out of memory against what is said of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from meshwright.measure.comparison import Comparison


@dataclass(frozen=True, slots=True)
class MemoryCalls:
    """Runs of one group by what happened and what is said: possible where the estimate fits the accelerators."""

    name: str
    ran_possible: int = 0
    ran_impossible: int = 0
    oom_possible: int = 0
    oom_impossible: int = 0

    @property
    def ran(self) -> int:
        return self.ran_possible + self.ran_impossible

    @property
    def out_of_memory(self) -> int:
        return self.oom_possible + self.oom_impossible

    @property
    def ran_called_possible(self) -> float | None:
        """Share of the runs that ran."""
        return self.ran_possible / self.ran if self.ran else None

    @property
    def oom_called_impossible(self) -> float | None:
        """Share of the runs that were out of memory."""
        return self.oom_impossible / self.out_of_memory if self.out_of_memory else None


def memory_calls(name: str, comparisons: Iterable[Comparison]) -> MemoryCalls:
    """The four counts. A run counts once, however many of its metrics are compared, and once where a row of memory
    names the row of training that it belongs to."""
    counts = {(ran, possible): 0 for ran in (True, False) for possible in (True, False)}
    for each in runs(comparisons):
        assert each.estimate is not None
        counts[not each.out_of_memory, each.estimate.fits] += 1
    return MemoryCalls(name, counts[True, True], counts[True, False], counts[False, True], counts[False, False])


def runs(comparisons: Iterable[Comparison]) -> tuple[Comparison, ...]:
    """One comparison for each run that ran or was out of memory, as far as it has an estimate."""
    by_run: dict[tuple[str, str], Comparison] = {}
    for each in comparisons:
        if each.estimate is not None and (each.measured is not None or each.out_of_memory):
            name = each.row.cells.get("linked_training_row") or each.row.row_id
            known = by_run.setdefault((each.row.source, name), each)
            if each.out_of_memory and not known.out_of_memory:
                by_run[each.row.source, name] = each
    return tuple(by_run.values())


def wrong_calls(comparisons: Iterable[Comparison]) -> tuple[Comparison, ...]:
    """Runs that ran although they are called impossible, and those out of memory although called possible."""
    return tuple(each for each in runs(comparisons) if each.estimate and each.estimate.fits == each.out_of_memory)
