"""Every measured value beside its prediction, as CSV. The columns are a contract."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from meshwright.measure.report import Validation

COLUMNS = ("row_id", "metric", "predicted", "low", "high", "measured", "error", "reason", "assumed", "dominating")


def rows_csv(validation: Validation) -> str:
    """One line for each row and metric, in the metric's unit. `error` is predicted / measured - 1; `reason` says why
    there is no prediction; `assumed` lists settings that the row doesn't state, `dominating` names the largest part."""
    written = io.StringIO()
    lines = csv.writer(written, lineterminator="\n")
    lines.writerow(COLUMNS)
    for each in validation.comparisons:
        values = (each.predicted, each.low, each.high, each.measured, each.error)
        texts = ("" if value is None else f"{value:.9g}" for value in values)
        lines.writerow((each.row.row_id, each.metric, *texts, each.reason, " ".join(each.assumed), each.dominating))
    return written.getvalue()
