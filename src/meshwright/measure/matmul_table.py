"""What matmul kernels reach: fits of a table of measured matrix products (columns gpu, dtype, m, n, k, time_us).

    seconds = 2·m·n·k / (peak · share) · (1 + rows/m + depth/k) · last wave + m·k · cast bytes / memory rate + launch

`rows` and `depth` are those of the software profile, since they are alike on all accelerators; the cast of the input
stands in products of 8 and 4 bits only, whose tables time it with the product.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from meshwright.cost.compute import last_wave
from meshwright.measure.kernel_rows import Cells, accelerator_called, numbers, read_rows
from meshwright.measure.least_absolute import Residual, fit_parts, residual
from meshwright.sources.software import load_software
from meshwright.spec.cluster import Accelerator
from meshwright.spec.plan import Array

COLUMNS = ("gpu", "op", "dtype", "m", "n", "k", "time_us")
DTYPES = {"bfloat16": "bf16", "bf16": "bf16", "float16": "fp16", "fp16": "fp16", "fp8": "fp8", "nvfp4": "fp4"}
"""Formats of the table and what they are called here; block-scaled and other recipes aren't fitted."""
OPERAND_BYTES = {"bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "fp4": 0.5}
CAST = ("fp8", "fp4")
LEAST_ROWS = 256
"""Fewest tokens of a product that training would run."""
LEAST_POINTS = 30


@dataclass(frozen=True)
class MatmulFit:
    """What products of one format reach on one accelerator."""

    accelerator: str
    dtype: str
    share: float
    """Of the peak, for large products."""
    cast_bytes: float
    """Memory traffic of casting one element of the input, at the memory rate."""
    launch_s: float
    residual: Residual
    kernels: str = ""
    """What was measured: the library and its version, where the table says so."""


def fit_matmuls(path: Path, memory_shares: Mapping[str, float] | None = None) -> list[MatmulFit]:
    """One fit per accelerator of the catalog and format with at least LEAST_POINTS products that are bound by
    arithmetic, sorted. `memory_shares` are memory efficiencies by accelerator in place of the catalog's."""
    groups: dict[tuple[str, str], list[Cells]] = {}
    for row in read_rows(path, COLUMNS):
        accelerator, dtype = accelerator_called(row["gpu"]), DTYPES.get(row["dtype"])
        if accelerator is None or dtype is None or dtype not in accelerator.peak_flops_per_s or row["op"] != "gemm":
            continue
        groups.setdefault((accelerator.name, dtype), []).append(row)
    fits = []
    for (name, dtype), rows in sorted(groups.items()):
        accelerator = accelerator_called(rows[0]["gpu"])
        assert accelerator is not None
        share = (memory_shares or {}).get(name, accelerator.memory_efficiency)
        m, n, k, microseconds = np.array([numbers(path, row, ("m", "n", "k", "time_us")) for row in rows]).T
        fit = fit_products(accelerator, dtype, m, n, k, microseconds / 1e6, accelerator.memory_bytes_per_s * share)
        if fit is not None:
            fits.append(replace(fit, kernels=_kernels(rows)))
    return fits


def _kernels(rows: list[Cells]) -> str:
    names = {" ".join(filter(None, (row.get("library", ""), row.get("sw_version", "")))) for row in rows}
    return " and ".join(sorted(names - {""})) or "kernels that the table doesn't name"


def fit_products(
    accelerator: Accelerator, dtype: str, m: Array, n: Array, k: Array, seconds: Array, bytes_per_s: float
) -> MatmulFit | None:
    """The fit of products (m, k) @ (k, n), arrays of one length; None where too few of them tell."""
    peak_s = 2 * m * n * k / accelerator.peak(dtype)
    traffic_s = (OPERAND_BYTES[dtype] * (m * k + k * n) + 2 * m * n) / bytes_per_s
    told = (m >= LEAST_ROWS) & (peak_s > traffic_s)
    if told.sum() < LEAST_POINTS:
        return None
    m, n, k, peak_s, seconds = m[told], n[told], k[told], peak_s[told], seconds[told]
    cast_s = m * k / bytes_per_s if dtype in CAST else np.zeros_like(m)
    software = load_software()
    shape = 1 + software.matmul_rows_overhead / m + software.matmul_depth_overhead / k
    shape = shape * last_wave(accelerator.waves, m, n)
    factors, errors = fit_parts(np.stack([peak_s * shape, cast_s, np.ones_like(m)], axis=1), seconds)
    if not 1 <= factors[0] < np.inf:
        return None
    return MatmulFit(
        accelerator.name, dtype, float(1 / factors[0]), float(factors[1]), float(factors[2]), residual(errors)
    )
