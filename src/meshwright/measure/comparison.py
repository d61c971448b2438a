"""One measured row beside what is predicted for it: what every table, check and fit of this room reads."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from meshwright.spec.estimate import Estimate

STEP_TIME, TOKENS_PER_S, PEAK = "step_time_s", "tokens_per_s_per_gpu", "peak_gib"


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a file of measurements. `cells` holds its non-empty cells by column name, stripped."""

    where: str
    """File and line, for messages."""
    kind: str
    """training or memory."""
    cells: Mapping[str, str]

    @property
    def row_id(self) -> str:
        """The row's own name, else where it stands."""
        return self.cells.get("row_id") or self.where

    @property
    def source(self) -> str:
        """What the row is counted under; files of one's own runs may have no such column."""
        return self.cells.get("source_id") or self.cells.get("source") or "this file"


@dataclass(frozen=True, slots=True)
class Comparison:
    """A metric of a row, measured and predicted, in the metric's unit."""

    row: Row
    metric: str
    measured: float | None = None
    """None where the row states no value (a run that was out of memory)."""
    how: str = ""
    """Where the measured value comes from: the column, or the column and the convention it was converted with."""
    predicted: float | None = None
    low: float | None = None
    high: float | None = None
    reason: str = ""
    """Why there is no prediction; empty where there is one."""
    assumed: tuple[str, ...] = ()
    """Settings that the row doesn't state, by their JSON names, as chosen: `micro_batch=2`."""
    dominating: str = ""
    """The largest part of the predicted time or memory, by its JSON name."""
    out_of_memory: bool = False
    """Whether the run was stopped for lack of memory."""
    estimate: Estimate | None = field(default=None, repr=False)
    """Model, cluster, workload, plan and software of the prediction are here."""

    @property
    def error(self) -> float | None:
        """predicted / measured - 1; None without both."""
        if self.predicted is None or not self.measured:
            return None
        return self.predicted / self.measured - 1

    @property
    def time_ratio(self) -> float | None:
        """Predicted over measured step time, whichever way round the metric counts."""
        if self.error is None or self.metric == PEAK:
            return None
        ratio = self.error + 1
        return 1 / ratio if self.metric == TOKENS_PER_S and ratio > 0 else ratio

    @property
    def log_ratio(self) -> float | None:
        """ln of `time_ratio`."""
        ratio = self.time_ratio
        return math.log(ratio) if ratio else None
