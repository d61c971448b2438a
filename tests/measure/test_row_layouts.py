"""The plan of a row: stated settings are kept, contradictions give way, and what is open is chosen and named."""

from __future__ import annotations

from typing import Any

import pytest

from meshwright.measure.comparison import PEAK, STEP_TIME, TOKENS_PER_S, Comparison, Row
from meshwright.measure.predict import compare_rows
from meshwright.spec.estimate import Estimate

RUN = {"model": "gpt", "layers": "24", "hidden": "2048", "heads": "16", "ffn_hidden": "8192", "gated_mlp": "no",
       "vocab": "51200", "seq_len": "2048", "gpu": "A100-SXM-80GB", "gpus_total": "16", "gpus_per_node": "8", "tp": "2",
       "pp": "2", "vpp": "1", "dp": "4", "cp": "1", "ep": "1", "sp": "no", "zero_stage": "1", "micro_batch": "2",
       "global_batch_seqs": "64", "recompute": "full", "dtype": "bf16", "framework": "Megatron-LM", "schedule": "1F1B",
       "date": "2021", "inter_node_gbps_per_gpu": "200", "step_time_s": "1.0"}  # fmt: skip


def compared(**changes: str | None) -> Comparison:
    cells = {name: text for name, text in (RUN | changes).items() if text}
    found = compare_rows([Row("runs.csv:2", "training", cells)])
    assert len(found) == 1
    return found[0]


def priced(**changes: str | None) -> Estimate:
    found = compared(**changes).estimate
    assert found is not None
    return found


def test_a_row_that_states_everything_assumes_nothing() -> None:
    found = compared()
    assert found.assumed == ()
    assert (found.metric, found.measured, found.how) == (STEP_TIME, 1.0, "step_time_s")
    assert found.estimate is not None
    plan = found.estimate.plan
    assert (plan.tp, plan.pp, plan.dp, plan.cp, plan.micro_batch, plan.recompute, plan.sharding) == (
        2, 2, 4, 1, 2, "full", "optimizer",
    )  # fmt: skip
    assert (plan.schedule, plan.sequence_parallel, plan.layers_per_stage) == ("1f1b", False, (12, 12))
    assert found.predicted == found.estimate.step_time_s
    assert found.low is not None
    assert found.high is not None
    assert found.low < found.predicted < found.high


@pytest.mark.parametrize(
    "left_out",
    [{"micro_batch": None, "grad_accum": "8"}, {"global_batch_seqs": None, "grad_accum": "8"}, {"grad_accum": "8"}],
)
def test_two_of_the_three_batch_sizes_give_the_third(left_out: dict[str, str | None]) -> None:
    found = compared(**left_out)
    assert found.estimate is not None
    assert (found.estimate.workload.global_batch, found.estimate.plan.micro_batch) == (64, 2)
    assert (found.assumed, found.metric) == ((), STEP_TIME)


def test_a_batch_that_nothing_states_makes_tokens_the_metric() -> None:
    """About 4 million tokens a step, a whole number of micro-batches."""
    found = compared(global_batch_seqs=None, step_time_s=None, tokens_per_s_per_gpu="5000")
    assert found.estimate is not None
    batch = found.estimate.workload.global_batch
    assert batch % (4 * 2) == 0
    assert batch * 2048 == pytest.approx(2**22, rel=0.1)
    assert (found.metric, found.measured) == (TOKENS_PER_S, pytest.approx(5000))
    assert found.predicted == pytest.approx(found.estimate.tokens_per_s_per_gpu)
    assert f"global_batch={batch}" in found.assumed


@pytest.mark.parametrize(
    ("zero", "fsdp", "sharding"),
    [("0", "", "none"), ("1", "", "optimizer"), ("2", "", "gradients"), ("3", "", "parameters"),
     ("1 (global)", "", "optimizer"), ("ZeRO-3", "", "parameters"), ("", "FULL_SHARD", "parameters"),
     ("", "SHARD_GRAD_OP", "gradients"), ("", "FSDP2", "parameters")],
)  # fmt: skip
def test_words_for_sharding(zero: str, fsdp: str, sharding: str) -> None:
    assert priced(zero_stage=zero, fsdp=fsdp).plan.sharding == sharding


def test_sharding_within_a_group() -> None:
    assert priced(zero_stage="1 (within 2)").plan.shard_group == 2
    assert priced(zero_stage="1 (within 4)").plan.shard_group == 0, "all four replicas"


def test_frameworks_that_shard_unless_told() -> None:
    assert priced(zero_stage=None, framework="TorchTitan", date="2025").plan.sharding == "parameters"


@pytest.mark.parametrize(
    ("text", "mode"),
    [("full", "full"), ("none", "none"), ("selective (per-op)", "selective"), ("no", "none"), ("yes", "full"),
     ("core_attn, mlp", "selective")],
)  # fmt: skip
def test_words_for_recompute(text: str, mode: str) -> None:
    assert priced(recompute=text).plan.recompute == mode


@pytest.mark.parametrize(
    ("dtype", "name"),
    [("amp_bf16/mp=DEFAULT", "bf16"), ("fp16 O2", "fp16"), ("fp16 mixed", "fp16"), ("tf32", "fp32")],
)
def test_words_for_the_format(dtype: str, name: str) -> None:
    assert priced(dtype=dtype).workload.dtype == name


def test_a_format_without_a_unit_is_a_reason_not_an_error() -> None:
    found = compared(dtype="fp8 (TE)")
    assert found.predicted is None
    assert "fp8 matmuls don't run on a100-80g" in found.reason


def test_layers_that_divide_only_with_the_ends_counted() -> None:
    """BLOOM: 70 layers and the two ends over 12 stages, pp-partition type:transformer|embedding (Scao et al. 2022)."""
    plan = priced(layers="70", pp="12", tp="1", dp="1", gpus_total="12").plan
    assert plan.layers_per_stage == (5, *[6] * 10, 5)


@pytest.mark.parametrize(
    ("changes", "world"),
    [
        ({"dp": "2"}, 16),  # fewer replicas than the count leaves room for
        ({"dp": "8"}, 16),  # more
        ({"dp": None}, 16),
        ({"gpus_total": None}, 16),
        ({"gpus_total": "2", "dp": "4"}, 16),  # the model-parallel degrees alone are more
    ],
)
def test_degrees_that_do_not_multiply_still_get_a_prediction(changes: dict[str, str | None], world: int) -> None:
    found = compared(**changes)
    assert found.estimate is not None
    plan = found.estimate.plan
    assert (plan.tp, plan.pp, plan.world_size) == (2, 2, world)
    if changes != {"gpus_total": None}:
        assert any(each.startswith(("dp=", "accelerators=")) for each in found.assumed)


def test_an_open_layout_is_the_planners_and_says_what_it_took() -> None:
    left_out = ("tp", "pp", "dp", "cp", "vpp", "sp", "zero_stage", "micro_batch", "recompute", "schedule")
    open_: dict[str, Any] = dict.fromkeys(left_out)
    found = compared(**open_, framework="Megatron-Core", date="2024")
    assert found.estimate is not None
    plan = found.estimate.plan
    assert plan.world_size == 16
    assert found.estimate.fits
    assert {f"tp={plan.tp}", f"pp={plan.pp}", f"micro_batch={plan.micro_batch}", f"recompute={plan.recompute}"} <= set(
        found.assumed
    )
    fastest = found.estimate.step_time_s
    assert fastest <= priced(framework="Megatron-Core", date="2024").step_time_s * (1 + 1e-9)


def test_a_plan_that_breaks_a_rule_is_predicted_all_the_same() -> None:
    """Interleaved stages with micro-batches that the stages don't divide."""
    found = compared(pp="4", tp="1", vpp="2", schedule="interleaved 1F1B", global_batch_seqs="24", micro_batch="1")
    assert found.estimate is not None
    assert {problem.rule for problem in found.estimate.problems} & {"interleaved-rounds"}
    assert found.predicted is not None
    assert found.predicted > 0


@pytest.mark.parametrize(
    ("column", "text"), [("tp", "x"), ("seq_len", None), ("layers", "1e12"), ("gpu", "Foo9000"), ("sp", "5")]
)
def test_a_bad_cell_costs_its_row_alone(column: str, text: str | None) -> None:
    bad = {name: value for name, value in (RUN | {column: text}).items() if value}
    first, second = compare_rows([Row("r:2", "training", bad), Row("r:3", "training", RUN)])
    assert first.predicted is None
    assert column in first.reason
    assert second.predicted is not None


def test_lora_is_refused_with_its_reason() -> None:
    assert "LoRA" in compared(task="lora").reason


def test_a_training_file_gives_its_memory_too() -> None:
    cells = RUN | {"mem_per_gpu": "10240", "mem_unit": "MiB", "mem_def": "torch max allocated"}
    time, memory = compare_rows([Row("r:2", "training", cells)])
    assert (time.metric, memory.metric, memory.measured) == (STEP_TIME, PEAK, 10.0)
    assert memory.estimate is time.estimate


def test_a_run_out_of_memory_has_a_peak_and_no_time() -> None:
    cells = {name: text for name, text in RUN.items() if name != "step_time_s"} | {"oom": "yes"}
    (found,) = compare_rows([Row("r:2", "training", cells)])
    assert (found.metric, found.measured, found.out_of_memory) == (PEAK, None, True)
    assert found.predicted is not None
