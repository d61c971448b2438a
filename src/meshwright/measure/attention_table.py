"""What attention kernels reach: fits of a table of measured prefill and decode calls.

Prefill tells how a kernel's efficiency depends on length and width of the heads,

    seconds = FLOPs of the pairs that the mask leaves / (peak · share(width)) + traffic · operands / memory rate
              + launch

and decode, which reads the whole cache for one token, tells the memory rate. `heads` and `kv_heads` are per rank.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from meshwright.measure.kernel_rows import Cells, accelerator_called, numbers, read_rows
from meshwright.measure.least_absolute import Residual, fit_parts, residual
from meshwright.spec.attention_kernel import width_factor
from meshwright.spec.cluster import Accelerator
from meshwright.spec.plan import Array

COLUMNS = (
    "op", "phase", "gpu", "engine", "kernel", "batch", "q_len", "kv_len", "heads", "kv_heads", "head_dim", "window",
    "attn_dtype", "kv_dtype", "latency_us",
)  # fmt: skip
HALF = {"bfloat16": "bf16", "float16": "fp16", "bf16": "bf16", "fp16": "fp16"}
HALF_BYTES = 2.0
LEAST_LENGTH = 512
"""Shortest sequence that training would run."""
LEAST_CACHE_BYTES = 1e9
"""Smallest cache whose reading takes longer than a decode kernel's other work."""
LEAST_POINTS = 10
LEAST_CALLS = 3
_WIDTHS = (0.0, *np.arange(32.0, 193.0, 2.0))


@dataclass(frozen=True)
class AttentionFit:
    """The shape of one kernel's prefill on one accelerator."""

    accelerator: str
    family: str
    engine: str
    kernel: str
    share: float
    """Of the dense 16-bit peak, forward, for long sequences and heads of 128."""
    operand_traffic: float
    softmax_width: float | None
    """None where all heads of the table are of one width."""
    launch_s: float
    residual: Residual


@dataclass(frozen=True)
class MemoryFit:
    """The share of an accelerator's nominal memory bandwidth that its best decode kernel reaches in the median call."""

    accelerator: str
    share: float
    kernel: str
    calls: int


def fit_prefill(path: Path, memory_shares: Mapping[str, float] | None = None) -> list[AttentionFit]:
    """One fit per accelerator of the catalog, engine and kernel with enough causal 16-bit calls, sorted."""
    groups: dict[tuple[str, str, str], list[Cells]] = {}
    for row in _rows(path, "context"):
        accelerator = accelerator_called(row["gpu"])
        if accelerator is not None:
            groups.setdefault((accelerator.name, row["engine"], row["kernel"]), []).append(row)
    fits = []
    for (name, engine, kernel), rows in sorted(groups.items()):
        accelerator = accelerator_called(rows[0]["gpu"])
        assert accelerator is not None
        keys = ("batch", "q_len", "heads", "kv_heads", "head_dim", "latency_us")
        calls = np.array([numbers(path, row, keys) for row in rows])
        calls = calls[calls[:, 1] >= LEAST_LENGTH]
        if len(calls) < LEAST_POINTS:
            continue
        share = (memory_shares or {}).get(name, accelerator.memory_efficiency)
        fits.append(_fit(accelerator, engine, kernel, HALF[rows[0]["attn_dtype"]], calls, share))
    return fits


def fit_memory(path: Path) -> list[MemoryFit]:
    """One fit per accelerator of the catalog with at least LEAST_CALLS large decode calls of one kernel, sorted."""
    shares: dict[str, dict[str, list[float]]] = {}
    for row in _rows(path, "generation"):
        accelerator = accelerator_called(row["gpu"])
        if accelerator is None:
            continue
        keys = ("batch", "kv_len", "kv_heads", "head_dim", "latency_us")
        batch, length, heads, width, microseconds = numbers(path, row, keys)
        cache_bytes = 2 * HALF_BYTES * batch * length * heads * width
        if cache_bytes >= LEAST_CACHE_BYTES:
            share = cache_bytes / (microseconds / 1e6) / accelerator.memory_bytes_per_s
            name = f"{row['engine']} {row['kernel']}"
            shares.setdefault(accelerator.name, {}).setdefault(name, []).append(share)
    fits = []
    for name, kernels in sorted(shares.items()):
        medians = [
            (float(np.median(calls)), kernel, len(calls))
            for kernel, calls in kernels.items()
            if len(calls) >= LEAST_CALLS
        ]
        if medians and max(medians)[0] <= 1:
            fits.append(MemoryFit(name, *max(medians)))
    return fits


def _rows(path: Path, phase: str) -> list[Cells]:
    return [
        row
        for row in read_rows(path, COLUMNS)
        if row["phase"] == phase
        and row["op"] == "gqa"
        and row["window"] in ("", "0")
        and row["attn_dtype"] in HALF
        and row["kv_dtype"] in HALF
        and not row.get("flag")
    ]


def _fit(
    accelerator: Accelerator, engine: str, kernel: str, dtype: str, calls: Array, memory_share: float
) -> AttentionFit:
    batch, length, heads, kv_heads, width, microseconds = calls.T
    pairs = batch * heads * length * (length + 1) / 2
    peak_s = 4 * pairs * width / accelerator.peak(dtype)
    operand_bytes = 2 * HALF_BYTES * batch * length * width * (heads + kv_heads)
    operand_s = operand_bytes / (accelerator.memory_bytes_per_s * memory_share)
    widths = sorted(set(width))

    def fitted(softmax_width: float) -> tuple[Array, Array]:
        factor = np.array([width_factor(softmax_width, each) for each in width])
        return fit_parts(np.stack([peak_s / factor, operand_s, np.ones_like(peak_s)], axis=1), microseconds / 1e6)

    tried = _WIDTHS if len(widths) > 1 else (0.0,)
    errors = [float(np.abs(fitted(each)[1]).sum()) for each in tried]
    best = tried[int(np.argmin(errors))]
    factors, rest = fitted(best)
    return AttentionFit(
        accelerator.name, accelerator.family, engine, kernel, float(1 / factors[0]), float(factors[1]),
        best if len(widths) > 1 else None, float(factors[2]), residual(rest),
    )  # fmt: skip
