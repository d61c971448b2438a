"""Published peaks of memory: layouts of BLOOM's trials, PaddlePaddle, InternEvo and TorchTitan."""

from __future__ import annotations

from typing import Any

import pytest

from meshwright.measure.comparison import PEAK, Row
from meshwright.measure.predict import compare_rows

BLOOM = {
    "framework": "Megatron-DeepSpeed", "gpu": "A100-SXM-80GB", "gpus_per_node": 8, "gated_mlp": "no", "vocab": 250112,
    "seq_len": 2048, "recompute": "full", "zero_stage": 1, "sp": "no", "global_batch_seqs": 2048, "date": "2022-02",
    "mem_def": "nvidia-smi",
}  # fmt: skip
V100 = {**BLOOM, "gpu": "V100-SXM2-32GB", "gpus_per_node": 4, "vocab": 50304, "global_batch_seqs": 512,
        "date": "2021-12"}  # fmt: skip
PADDLE = {
    "framework": "PaddlePaddle 2.5.1", "gpu": "A100-SXM-80GB", "gated_mlp": "yes", "vocab": 32000, "seq_len": 2048,
    "attn_kernel": "flash-attention", "dtype": "fp16 O2", "global_batch_seqs": 2048, "mem_def": "memory(actual)",
    "date": "2023-10", "schedule": "1F1B",
}  # fmt: skip
INTERNEVO = {
    "framework": "InternEvo", "gpu": "A800-SXM-80GB", "gated_mlp": "yes", "vocab": 103168, "seq_len": 2048,
    "attn_kernel": "flash-attention", "dtype": "bf16", "recompute": "full", "micro_batch": 1, "grad_accum": 4,
    "mem_def": "nvidia-smi",
}  # fmt: skip
TITAN = {
    "framework": "TorchTitan", "gated_mlp": "yes", "kv_heads": 8, "vocab": 128256, "zero_stage": 3,
    "attn_kernel": "SDPA (flash)", "mem_def": "peak reserved", "date": "2024-12", "extra": "torch.compile",
}  # fmt: skip
H100 = {"gpu": "H100-SXM-96GB(HBM2e,500W)"}


def shape(layers: int, hidden: int, heads: int, ffn: int) -> dict[str, Any]:
    return {"layers": layers, "hidden": hidden, "heads": heads, "ffn_hidden": ffn}


def laid_out(tp: int, pp: int, dp: int, micro_batch: int, **more: Any) -> dict[str, Any]:
    cp = more.get("cp", 1)
    return {"tp": tp, "pp": pp, "dp": dp, "cp": cp, "gpus_total": tp * pp * dp * cp, "micro_batch": micro_batch, **more}


SUMS = "bf16 (fp32 grad accum)"
LLAMA_7B, LLAMA_8B = shape(32, 4096, 32, 11008), shape(32, 4096, 32, 14336)
ROWS = {
    # github.com/bigscience-workshop/bigscience, train/tr11-176B-ml/chronicles-prequel.md
    "fp16, one replica": ({**BLOOM, **shape(8, 14400, 32, 57600), **laid_out(8, 1, 1, 1, dtype="fp16")}, 67.0, 0.07),
    "fp16, large micro-batches": (
        {**BLOOM, **shape(78, 14400, 32, 57600), **laid_out(8, 6, 8, 8, dtype="fp16")}, 75.0, 0.07,
    ),
    "fp16, two stages": (
        {**BLOOM, **shape(72, 14336, 64, 57344), **laid_out(8, 2, 24, 1, dtype="fp16", global_batch_seqs=2016)},
        65.0, 0.07,
    ),
    "fp16, 48 stages": ({**BLOOM, **shape(96, 12288, 64, 49152), **laid_out(1, 48, 8, 1, dtype="fp16")}, 58.0, 0.1),
    "bf16, 6 stages": ({**BLOOM, **shape(100, 12288, 64, 49152), **laid_out(8, 6, 8, 4, dtype=SUMS)}, 72.0, 0.07),
    "bf16, BLOOM itself": ({**BLOOM, **shape(70, 14336, 64, 57344), **laid_out(8, 12, 4, 2, dtype=SUMS)}, 40.0, 0.08),
    # the same, experiments/tr3m-1B3.md
    "V100": ({**V100, **shape(24, 2048, 16, 8192), **laid_out(1, 1, 8, 2, dtype="fp16")}, 17.0, 0.07),
    "V100, two stages": ({**V100, **shape(24, 2048, 16, 8192), **laid_out(1, 2, 4, 4, dtype="fp16")}, 13.0, 0.1),
    # github.com/FlagOpen/FlagPerf, training/nvidia/llama1_7B-paddle/README.md
    "PaddlePaddle, copied inputs": (
        {**PADDLE, **LLAMA_7B, **laid_out(2, 1, 4, 4, recompute="none", zero_stage=1)}, 58.73, 0.05,
    ),
    "PaddlePaddle, four stages": (
        {**PADDLE, **LLAMA_7B, **laid_out(2, 4, 1, 4, recompute="none", zero_stage=1)}, 46.8, 0.05,
    ),
    "PaddlePaddle, 13B": (
        {**PADDLE, **shape(40, 5120, 40, 13824), **laid_out(2, 1, 4, 2, recompute="full", zero_stage=1)}, 52.27, 0.05,
    ),
    # github.com/InternLM/InternEvo, doc/en/train_performance.md
    "InternEvo, fully sharded": ({**INTERNEVO, **LLAMA_7B, **laid_out(4, 1, 1, 1, zero_stage=3)}, 52.0, 0.08),
    "InternEvo, ZeRO-1": ({**INTERNEVO, **LLAMA_7B, **laid_out(4, 1, 1, 1, zero_stage=1)}, 61.0, 0.12),
    # github.com/pytorch/torchtitan, benchmarks and docs/performance.md
    "TorchTitan, long sequences": (
        {**TITAN, **H100, **LLAMA_8B, "seq_len": 32768, "dtype": "float8",
         **laid_out(1, 1, 8, 1, recompute="full", global_batch_seqs=8)}, 83.9, 0.05,
    ),
    "TorchTitan, stages that stay gathered": (
        {**TITAN, **H100, **shape(126, 16384, 128, 53248), "seq_len": 65536, "dtype": "float8", "sp": "yes",
         **laid_out(8, 8, 4, 1, cp=2, recompute="full", global_batch_seqs=32)}, 75.9, 0.1,
    ),
    "TorchTitan, compiled loss": (
        {**TITAN, **LLAMA_8B, "gpu": "H200-SXM-141GB", "seq_len": 8192, "dtype": "float8", "date": "2025-06",
         **laid_out(1, 1, 32, 2, recompute="selective", global_batch_seqs=64)}, 47.96, 0.05,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_published_peak(name: str) -> None:
    cells, gib, tolerance = ROWS[name]
    row = Row(name, "memory", {key: str(value) for key, value in {**cells, "mem_gib": gib}.items()})
    (found,) = [each for each in compare_rows([row]) if each.metric == PEAK]
    assert found.predicted is not None, found.reason
    assert found.predicted == pytest.approx(gib, rel=tolerance)


@pytest.mark.parametrize("change", [{}, {"micro_batch": 6}, {"dtype": "fp16"}])
def test_what_did_not_fit_is_not_said_to(change: dict[str, Any]) -> None:
    """Chronicles, rebalancing layers: 100 layers of 12,288 in bf16 over tp 4, pp 6 and dp 16 ran out of 80 GB; in fp16
    the smaller sums fit (72 layers of 14,336: 57 GB)."""
    cells = {**BLOOM, **shape(100, 12288, 64, 49152), **laid_out(4, 6, 16, 2, dtype=SUMS), **change, "oom": "yes"}
    row = Row("oom", "memory", {key: str(value) for key, value in cells.items()})
    (found,) = [each for each in compare_rows([row]) if each.metric == PEAK]
    assert found.estimate is not None
    assert found.estimate.fits is (change.get("dtype") == "fp16")
