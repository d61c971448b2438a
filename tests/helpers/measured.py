"""Rows of measurements beside predictions, made by hand."""

from __future__ import annotations

import csv
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import meshwright as mw
from meshwright.measure.comparison import PEAK, STEP_TIME, TOKENS_PER_S, Comparison, Row
from meshwright.spec.estimate import Estimate


@cache
def gpt2_estimate(
    batch: int = 64, seq_len: int = 1024, dtype: str = "bf16", cluster: str = "1xdgx-a100-80g"
) -> Estimate:
    """GPT-2 on eight accelerators, pure data parallel."""
    return mw.estimate("gpt2", cluster, mw.Training(batch, seq_len, dtype), mw.Plan(dp=8))


def timed(
    measured: float | None,
    predicted_s: float | None = None,
    source: str = "a",
    row_id: str = "",
    plan: dict[str, Any] | None = None,
    estimate: Estimate | None = None,
    **cells: str,
) -> Comparison:
    """A measured and a predicted step time; the range is a tenth to both sides."""
    stated = {} if measured is None else {"step_time_s": repr(measured)}
    row = Row("file.csv:2", "training", {"source_id": source, "row_id": row_id or f"R{measured}", **stated, **cells})
    if predicted_s is None:
        return Comparison(row, STEP_TIME, measured, reason="the layout is not stated")
    base = estimate or gpt2_estimate()
    priced = replace(
        base, plan=base.plan.with_(**(plan or {})), time_s={**dict.fromkeys(base.time_s, 0.0), "compute": predicted_s}
    )
    low, high = predicted_s * 0.9, predicted_s * 1.1
    return Comparison(
        row, STEP_TIME, measured, "step_time_s", predicted_s, low, high, dominating="compute", estimate=priced
    )


def rated(measured: float, predicted: float, **cells: str) -> Comparison:
    """Measured and predicted tokens per second of each accelerator."""
    row = Row("file.csv:3", "training", {"source_id": "a", "row_id": "R", **cells})
    return Comparison(row, TOKENS_PER_S, measured, "", predicted, estimate=gpt2_estimate())


def sized(
    measured_gib: float | None,
    predicted_gib: float,
    capacity_gib: float = 80,
    oom: bool = False,
    source: str = "a",
    **cells: str,
) -> Comparison:
    """A measured and a predicted peak of memory."""
    row = Row("file.csv:4", "memory", {"source_id": source, "row_id": f"M{measured_gib}-{predicted_gib}", **cells})
    priced = replace(
        gpt2_estimate(), memory_bytes={"weights": predicted_gib * 2**30}, capacity_bytes=capacity_gib * 2**30
    )
    return Comparison(
        row, PEAK, measured_gib, "", predicted_gib, dominating="weights", out_of_memory=oom, estimate=priced
    )


def rows_of_file(path: Path) -> list[Row]:
    """The lines of a file as rows, read here without the product's reader."""
    with path.open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    return [
        Row(f"{path.name}:{number}", "training", {name: text.strip() for name, text in line.items() if text.strip()})
        for number, line in enumerate(lines, 2)
    ]
