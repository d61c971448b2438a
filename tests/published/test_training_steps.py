"""Published step times of real training runs, against the prediction for the same model, layout and machine.

Each row gives what its source printed; a step is either stated or follows from the printed tokens per second or FLOP/s
by the source's own formula. The tolerance is what these rows leave with today's constants, and less than any part that
makes up an eighth of its step: a lost or doubled term fails.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

import meshwright as mw
from meshwright.spec.layers import MLP, Attention, Layer
from meshwright.spec.model import Model
from meshwright.spec.plan import Plan
from meshwright.spec.workload import Training

TOLERANCE = 0.12


@dataclass(frozen=True)
class Row:
    name: str
    source: str
    software: str
    model: str | Model
    cluster: str
    plan: Plan
    workload: Training
    step_s: float

    def predicted_s(self) -> float:
        return mw.estimate(self.model, self.cluster, self.workload, self.plan, self.software).step_time_s


def gpt(layers: int, hidden: int, heads: int, vocab: int) -> Model:
    """The GPT of Megatron-LM: four times as wide inside, biases, tied embeddings, dropout."""
    width = hidden // heads
    layer = Layer(
        Attention(heads, heads, width, qkv_bias=True, out_bias=True),
        MLP(4 * hidden, gated=False, bias=True),
        2,
        4 * hidden,
    )
    return Model(
        "gpt", hidden, vocab, (layer,) * layers, tied_embeddings=True, norm="layer", position="learned", dropout=True,
        position_parameters=2048 * hidden, final_norm_parameters=2 * hidden,
    )  # fmt: skip


def megatron_step_s(layers: int, hidden: int, batch: int, gpus: int, tflops: float) -> float:
    """Narayanan et al. 2021, equation 3: F = 96 B s l h² (1 + s / 6h + V / 16 l h), recompute included."""
    s, vocab = 2048, 51200
    flops = 96 * batch * s * layers * hidden**2 * (1 + s / (6 * hidden) + vocab / (16 * layers * hidden))
    return flops / (tflops * 1e12 * gpus)


def from_tokens(batch: int, seq_len: int, gpus: int, tokens_per_s_per_gpu: float) -> float:
    return batch * seq_len / gpus / tokens_per_s_per_gpu


SC21 = "Narayanan et al. 2021 (SC21, arXiv 2104.04473), table 1"
BLOOM = "github.com/bigscience-workshop/bigscience, train/tr11-176B-ml"
MPT = "github.com/mosaicml/llm-foundry, scripts/train/benchmarking/README.md"
TITAN = "github.com/pytorch/torchtitan"
NEMO = "github.com/NVIDIA/NeMo, docs/source/performance"
A100_ROCE, H100_SLOW, SELENE = "oci-a100", "hgx-h100-96g", "dgx-a100-80g"

ROWS = [
    Row(
        "gpt-1.7b, data parallel only", f"{SC21}, row 1: 137 TFLOP/s", "megatron-2021", "megatron-1.7b", f"4x{SELENE}",
        Plan(dp=32, micro_batch=16, recompute="full"),
        Training(512, 2048, "fp16"), megatron_step_s(24, 2304, 512, 32, 137),
    ),
    Row(
        "gpt-145b, tp 8 pp 8", f"{SC21}, row 7: 148 TFLOP/s; virtual stages assumed", "megatron-2021", "megatron-145b",
        f"192x{SELENE}",
        Plan(tp=8, pp=8, dp=24, micro_batch=2, virtual_stages=2, schedule="interleaved", recompute="full"),
        Training(2304, 2048, "fp16"), megatron_step_s(80, 12288, 2304, 1536, 148),
    ),
    Row(
        "gpt-1t, tp 8 pp 64", f"{SC21}, row 10: 163 TFLOP/s; virtual stages assumed", "megatron-2021", "megatron-1t",
        f"384x{SELENE}",
        Plan(tp=8, pp=64, dp=6, micro_batch=1, virtual_stages=2, schedule="interleaved", recompute="full"),
        Training(3072, 2048, "fp16"), megatron_step_s(128, 25600, 3072, 3072, 163),
    ),
    Row(
        "bloom-176b as trained", f"{BLOOM}/chronicles.md: 105.16 s per iteration", "megatron-deepspeed-2022",
        "bloom-176b", "48xjean-zay-a100",
        Plan(
            tp=4, pp=12, dp=8, micro_batch=2, recompute="full", sharding="optimizer",
            layers_per_stage=(5, *[6] * 10, 5),
        ),
        Training(2048, 2048), 105.16,
    ),
    Row(
        "181b, tp 8 pp 6", f"{BLOOM}/chronicles-prequel.md, final round: 120.85 s", "megatron-deepspeed-2022",
        gpt(72, 14336, 64, 250112), "48xjean-zay-a100",
        Plan(tp=8, pp=6, dp=8, micro_batch=4, recompute="full", sharding="optimizer"),
        Training(2048, 2048, "fp16"), 120.85,
    ),
    Row(
        "mpt-7b, 32 a100", f"{MPT} (2023): 3697 tokens/s per GPU", "llm-foundry-2023", "mpt-7b", f"4x{A100_ROCE}",
        Plan(dp=32, micro_batch=32, recompute="full", sharding="parameters"),
        Training(1024, 2048), from_tokens(1024, 2048, 32, 3697.2),
    ),
    Row(
        "mpt-7b, 8 h100 without recompute", f"{MPT} (2024): 10643 tokens/s per GPU", "llm-foundry-2023",
        "mpt-7b", "dgx-h100",
        Plan(dp=8, micro_batch=6, sharding="parameters"),
        Training(48, 2048), from_tokens(48, 2048, 8, 10643),
    ),
    Row(
        "mpt-30b, 32 h100", f"{MPT} (2024): 2308 tokens/s per GPU", "llm-foundry-2023", "mpt-30b", "4xdgx-h100",
        Plan(dp=32, micro_batch=14, recompute="full", sharding="parameters"),
        Training(1344, 2048), from_tokens(1344, 2048, 32, 2308.1),
    ),
    Row(
        "llama-2-13b, 64 a100, no recompute", f"{TITAN}, docs/performance.md (2024): 2162 tokens/s per GPU",
        "torchtitan-2024", "llama-2-13b", f"8x{SELENE}",
        Plan(dp=64, micro_batch=2, sharding="parameters"),
        Training(128, 4096), from_tokens(128, 4096, 64, 2162),
    ),
    Row(
        "llama-2-13b, 64 a100, selective recompute", f"{TITAN}, docs/performance.md (2024): 1904 tokens/s per GPU",
        "torchtitan-2024", "llama-2-13b", f"8x{SELENE}",
        Plan(dp=64, micro_batch=2, sharding="parameters", recompute="selective"),
        Training(128, 4096), from_tokens(128, 4096, 64, 1904),
    ),
    Row(
        "llama-3-8b, 128 h100", f"{TITAN}, benchmarks/llama3_h100_202412, table 3: 6514 tokens/s per GPU",
        "torchtitan-2024", "llama-3.1-8b", f"16x{H100_SLOW}",
        Plan(dp=128, micro_batch=2, sharding="parameters", recompute="selective"),
        Training(256, 8192), from_tokens(256, 8192, 128, 6514),
    ),
    Row(
        "llama-3-70b, tp 8 over 256 h100", f"{TITAN}, benchmarks/asyncTP_llama3_h100_2025-06: 597.3 tokens/s per GPU",
        "torchtitan-2024", "llama-3.1-70b", f"32x{H100_SLOW}",
        Plan(tp=8, dp=32, micro_batch=16, sharding="parameters", recompute="full", sequence_parallel=True),
        Training(512, 8192), from_tokens(512, 8192, 256, 597.3),
    ),
    Row(
        "llama-3-405b, tp 8 pp 8 cp 2, float8", f"{TITAN}, benchmarks/llama3_h100_202412, table 6: 47 tokens/s per GPU",
        "torchtitan-2024", "llama-3.1-405b", f"64x{H100_SLOW}",
        Plan(tp=8, pp=8, dp=4, cp=2, micro_batch=1, sharding="parameters", recompute="full", sequence_parallel=True),
        Training(32, 65536, "fp8"), from_tokens(32, 65536, 512, 47),
    ),
    Row(
        "llama-2-70b, tp 4 pp 4, fp8", f"{NEMO}/performance_summary.md (24.07): 1728 tokens/s per GPU",
        "megatron-core-2024", "llama-2-70b", "8xdgx-h100",
        Plan(
            tp=4, pp=4, dp=4, micro_batch=1, virtual_stages=20, schedule="interleaved", sharding="optimizer",
            sequence_parallel=True,
        ),
        Training(128, 4096, "fp8"), from_tokens(128, 4096, 64, 1728),
    ),
    Row(
        "gpt3-175b, tp 4 pp 8, fp8", f"{NEMO}/performance_summary.md (24.07): 825 tokens/s per GPU",
        "megatron-core-2024", "gpt3-175b", "64xdgx-h100",
        Plan(
            tp=4, pp=8, dp=16, micro_batch=2, virtual_stages=6, schedule="interleaved", sharding="optimizer",
            sequence_parallel=True,
        ),
        Training(2048, 2048, "fp8"), from_tokens(2048, 2048, 512, 825),
    ),
]  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_step_time_is_near_the_published_one(row: Row) -> None:
    assert row.predicted_s() == pytest.approx(row.step_s, rel=TOLERANCE), row.source


def test_the_stated_ranges_hold_four_of_five_published_steps() -> None:
    found = [(row, mw.estimate(row.model, row.cluster, row.workload, row.plan, row.software)) for row in ROWS]
    inside = [each.step_time_low_s <= row.step_s <= each.step_time_high_s for row, each in found]
    assert sum(inside) >= 0.8 * len(ROWS)


def test_the_rows_are_not_missed_to_one_side() -> None:
    ratios = sorted(row.predicted_s() / row.step_s for row in ROWS)
    assert ratios[len(ratios) // 2] == pytest.approx(1, abs=0.05)


def test_recompute_of_every_second_matmul_costs_what_was_measured() -> None:
    """The same run with and without selective recompute: 2162 / 1904 = 1.14 in time."""
    without, selective = (
        next(row for row in ROWS if row.name.endswith(end)) for end in ("no recompute", "selective recompute")
    )
    assert selective.predicted_s() / without.predicted_s() == pytest.approx(2162 / 1904, abs=0.04)
