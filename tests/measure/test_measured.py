"""What a row measured: the order of its columns, and FLOP/s by each convention against the formula of its paper."""

from __future__ import annotations

import pytest

import meshwright as mw
from meshwright.measure.comparison import Row
from meshwright.measure.measured import step_flops, step_time

GPT = mw.load_model("megatron-1.7b")
BATCH, SEQ, GPUS = 512, 2048, 32
JOB = mw.Training(BATCH, SEQ)
TOKENS = BATCH * SEQ
H, L, V = GPT.hidden, GPT.num_layers, GPT.vocab


def seconds(**cells: str) -> tuple[float, str]:
    found = step_time(Row("r:2", "training", cells), GPT, mw.load_cluster("4xdgx-a100-80g"), JOB, GPUS)
    assert found is not None
    return found


def test_the_columns_count_in_their_order() -> None:
    cells = {"step_time_s": "1", "tokens_per_s_per_gpu": "16384", "samples_per_s": "128", "derived_step_time_s": "9"}
    expected = [1.0, TOKENS / (16384 * GPUS), BATCH / 128, 9.0]
    for value in expected:
        first = next(iter(cells))
        assert seconds(**cells) == (pytest.approx(value), first)
        del cells[first]
    assert step_time(Row("r:2", "training", cells), GPT, mw.load_cluster("4xdgx-a100-80g"), JOB, GPUS) is None


def test_hardware_flops_are_those_of_megatron() -> None:
    """Narayanan et al. 2021, equation 3, for full recompute: F = 96 B s l h² (1 + s / 6h + V / 16 l h)."""
    flops, convention = step_flops("hardware flops incl. full recompute: 96bslh^2(1+s/6h+v/16lh)", "full", GPT, JOB)
    assert flops == pytest.approx(96 * BATCH * SEQ * L * H**2 * (1 + SEQ / (6 * H) + V / (16 * L * H)), rel=1e-9)
    assert convention.startswith("hardware")


def test_hardware_flops_without_recompute_are_the_models() -> None:
    model, _ = step_flops("model tflop/s (6n + full non-causal attention)", "full", GPT, JOB)
    assert step_flops("hardware flops (megatron formula)", "none", GPT, JOB)[0] == model


def test_model_flops_are_those_of_palm() -> None:
    """Chowdhery et al. 2022, appendix B: 6 N + 12 L H Q T per token, N the matrices with the head."""
    flops, convention = step_flops("model tflop/s (6n + full non-causal attention)", "full", GPT, JOB)
    assert flops == pytest.approx(TOKENS * (6 * (12 * L * H**2 + V * H) + 12 * L * H * SEQ), rel=1e-9)
    assert convention == "model FLOPs, full attention"


def test_causal_attention_counts_half_of_the_pairs() -> None:
    full, half = (step_flops(text, "", GPT, JOB)[0] for text in ("model", "model flops, causal attention"))
    assert full - half == pytest.approx(TOKENS * 12 * L * H * (SEQ - (SEQ + 1) / 2), rel=1e-9)


def test_all_parameters_where_the_words_say_so() -> None:
    """Untied embeddings are parameters that no token is multiplied with."""
    llama = mw.load_model("llama-3-8b")
    flops, _ = step_flops(
        "model flops incl. full (non-causal) attention, 6n+12lds; n includes embeddings", "", llama, JOB
    )
    assert flops == pytest.approx(TOKENS * (6 * llama.num_parameters + 12 * 32 * 4096 * SEQ), rel=1e-9)


@pytest.mark.parametrize(
    ("words", "per"), [("hardware, approx 8*n*tokens", 8), ("hardware approx 8n", 8), ("model approx 6n", 6)]
)
def test_approximate_flops(words: str, per: int) -> None:
    assert step_flops(words, "full", GPT, JOB)[0] == pytest.approx(per * GPT.num_parameters * TOKENS)


def test_tflops_and_mfu_give_the_same_step() -> None:
    """100 of 312 dense TFLOP/s."""
    by_flops, _ = seconds(tflops_per_gpu="100", tflops_def="model")
    by_share, how = seconds(mfu_pct=str(100 * 100 / 312))
    assert by_share == pytest.approx(by_flops)
    assert how.startswith("mfu_pct")
