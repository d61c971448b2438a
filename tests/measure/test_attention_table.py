"""Known constants come back from tables of attention calls made with them."""

from __future__ import annotations

import csv
from itertools import product
from pathlib import Path

import pytest

from meshwright.measure.attention_table import COLUMNS, fit_memory, fit_prefill
from meshwright.sources.accelerators import load_accelerator
from meshwright.spec.attention_kernel import width_factor

MEASURED = Path(__file__).parents[3] / "shared" / "data" / "measured"
H100 = load_accelerator("h100")


def write(path: Path, rows: list[dict[str, object]]) -> Path:
    plain = {"op": "gqa", "gpu": "H100-SXM-80GB", "engine": "vllm", "kernel": "fa9", "window": 0}
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, (*COLUMNS, "flag"))
        writer.writeheader()
        writer.writerows([plain | {"attn_dtype": "bfloat16", "kv_dtype": "bfloat16"} | row for row in rows])
    return path


def prefill(share: float, traffic: float, softmax_width: float, launch_s: float) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    shapes = product((1, 4, 16), (128, 512, 2048, 8192, 16384), ((32, 8), (8, 1), (32, 32)), (64, 128, 256))
    for batch, length, (heads, kv_heads), width in shapes:
        pairs = batch * heads * length * (length + 1) / 2
        seconds = 4 * pairs * width / (989.4e12 * share * width_factor(softmax_width, width))
        seconds += traffic * 4 * batch * length * width * (heads + kv_heads) / (3.35e12 * 0.9) + launch_s
        rows.append(
            {"phase": "context", "batch": batch, "q_len": length, "kv_len": length, "heads": heads}
            | {"kv_heads": kv_heads, "head_dim": width, "latency_us": seconds * 1e6}
        )
    return rows


def test_the_shape_of_a_kernel_is_recovered(tmp_path: Path) -> None:
    path = write(tmp_path / "attention.csv", prefill(0.62, 1.7, 90.0, 8e-6))
    (fit,) = fit_prefill(path, {"h100": 0.9})
    assert (fit.accelerator, fit.family, fit.kernel) == ("h100", "hopper", "fa9")
    assert fit.share == pytest.approx(0.62, rel=5e-3)
    assert fit.operand_traffic == pytest.approx(1.7, rel=0.02)
    assert fit.softmax_width == pytest.approx(90, abs=2)
    assert fit.launch_s == pytest.approx(8e-6, rel=0.05)


def test_heads_of_one_width_tell_nothing_of_others(tmp_path: Path) -> None:
    rows = [row for row in prefill(0.62, 1.7, 90.0, 8e-6) if row["head_dim"] == 128]
    (fit,) = fit_prefill(write(tmp_path / "attention.csv", rows), {"h100": 0.9})
    assert fit.softmax_width is None
    assert fit.share == pytest.approx(0.62, rel=1e-6)


def test_rows_of_other_formats_windows_and_warnings_are_left_out(tmp_path: Path) -> None:
    good = prefill(0.62, 1.7, 90.0, 8e-6)
    odd = [row | {"latency_us": 1.0} for row in good]
    bad = [row | change for change in ({"window": 128}, {"attn_dtype": "fp8"}, {"flag": "x"}) for row in odd]
    (fit,) = fit_prefill(write(tmp_path / "attention.csv", good + bad), {"h100": 0.9})
    assert fit.share == pytest.approx(0.62, rel=5e-3)


def decode(share: float, batch: int, kernel: str) -> dict[str, object]:
    cache_bytes = 2 * 2 * batch * 32768 * 8 * 128
    seconds = cache_bytes / (3.35e12 * share)
    return {"phase": "generation", "batch": batch, "q_len": 1, "kv_len": 32768, "heads": 32, "kv_heads": 8} | {
        "head_dim": 128, "latency_us": seconds * 1e6, "kernel": kernel,
    }  # fmt: skip


def test_memory_is_as_fast_as_the_best_kernel_reads_it(tmp_path: Path) -> None:
    rows = [decode(0.9, batch, "good") for batch in (16, 32, 64)] + [
        decode(0.5, batch, "poor") for batch in (16, 32, 64)
    ]
    small = [decode(1.4, 1, "cached") for _ in range(5)]  # fits into the cache on chip
    (fit,) = fit_memory(write(tmp_path / "attention.csv", rows + small))
    assert fit.share == pytest.approx(0.9)
    assert (fit.kernel, fit.calls) == ("vllm good", 3)


@pytest.mark.skipif(not MEASURED.is_dir(), reason="the table of published kernel times isn't here")
def test_published_kernels_reach_what_their_authors_say() -> None:
    fits = {(fit.accelerator, fit.kernel): fit for fit in fit_prefill(MEASURED / "attention.csv")}
    # FlashAttention-3 (Shah et al. 2024, figure 5): 600 to 650 TFLOP/s forward, causal, heads of 128, 16k tokens, H100
    assert fits["h100", "vllm_flash_attn_fa3"].share == pytest.approx(625 / 989.4, rel=0.12)
    # FlashAttention-2 (Dao 2023, figure 5): 180 to 190 TFLOP/s forward, causal, heads of 128, 16k tokens, A100
    assert fits["a100-80g", "vllm_flash_attn"].share == pytest.approx(185 / 312, rel=0.1)
    memory = {fit.accelerator: fit.share for fit in fit_memory(MEASURED / "attention.csv")}
    assert memory["h100"] == pytest.approx(0.91, abs=0.03)  # the table's own check: 89 to 93% of 3.35 TB/s
    assert all(0.75 < share < 1 for share in memory.values())
