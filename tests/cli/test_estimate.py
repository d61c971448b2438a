"""`meshwright estimate`."""

from __future__ import annotations

from pathlib import Path

import pytest

JOB = "--cluster 4xdgx-a100-80g --global-batch 64 --seq-len 4096"
LLAMA = f"estimate llama-3.1-70b {JOB}"
FIELDS = {
    "model", "cluster", "plan", "valid", "fits", "problems", "memory_bytes", "worst_rank", "step_time_s",
    "step_time_low_s", "step_time_high_s", "time_s", "communication_share", "traffic", "pipeline_efficiency",
    "tokens_per_s", "tokens_per_s_per_gpu", "model_flops_per_s_per_gpu", "mfu", "binding",
}  # fmt: skip


def test_a_plan_that_fits_is_answered_with_exit_code_0(answer) -> None:
    document = answer(f"{LLAMA} --tp 8 --pp 4 --dp 1")
    assert document["valid"]
    assert document["fits"]
    assert document["problems"] == []
    assert set(document) == FIELDS
    assert sum(document["plan"]["layers_per_stage"]) == 80  # Llama 3 herd of models, table 3


def test_a_missing_option_is_chosen_as_the_planner_would(answer) -> None:
    pins = "--tp 8 --pp 4 --sharding none"
    best = answer(f"plan llama-3.1-70b {JOB} {pins}")["best"]
    assert answer(f"{LLAMA} {pins}")["plan"] == best["plan"]


def test_a_plan_that_does_not_fit_has_every_field_all_the_same(answer) -> None:
    document = answer(f"{LLAMA} --tp 1 --pp 1 --dp 32 --micro-batch 1 --sharding none --recompute none", exit_code=1)
    assert set(document) == FIELDS
    assert not document["fits"]
    assert document["valid"]
    assert [problem["rule"] for problem in document["problems"]] == ["memory"]
    assert all(problem["message"] and problem["fix"] for problem in document["problems"])
    # 70.6 B parameters need at least 2 bytes of weight, 2 of gradient and 12 of state each (ZeRO, section 3.1)
    assert document["memory_bytes"]["total"] > 16 * 70.5e9
    parts = {name: value for name, value in document["memory_bytes"].items() if name not in ("total", "capacity")}
    assert sum(parts.values()) == pytest.approx(document["memory_bytes"]["total"])


@pytest.mark.parametrize(
    ("pins", "rule"),
    [
        ("--tp 3 --pp 2", "attention-heads"),
        ("--tp 8 --pp 64 --dp 1", "world-size"),
        ("--tp 8 --pp 4 --dp 1 --ep 2", "experts"),
        ("--tp 8 --pp 4 --dp 1 --layers-per-stage 40,40", "layers-per-stage"),
        ("--tp 8 --pp 4 --dp 1 --layers-per-stage 20,20,20,21 --schedule 1f1b", "layers-per-stage"),
        ("--tp 8 --pp 2 --dp 2 --micro-batch 5", "batch"),
        ("--tp 8 --pp 4 --dp 1 --schedule 1f1b --virtual-stages 2", "one-stage-schedule"),
        ("--tp 8 --pp 4 --dp 1 --schedule interleaved --virtual-stages 1", "interleaved-rounds"),
        ("--tp 8 --pp 1 --dp 4 --schedule zero-bubble-v --virtual-stages 2", "pipeline-schedule"),
        ("--tp 8 --pp 2 --dp 2 --shard-group 3 --sharding optimizer", "shard-group"),
        ("--tp 1 --pp 81 --dp 1", "stages"),
    ],
)
def test_a_plan_that_breaks_a_rule_is_shown_with_the_rule_and_exit_code_1(answer, run, pins: str, rule: str) -> None:
    document = answer(f"{LLAMA} {pins}", exit_code=1)
    assert set(document) == FIELDS
    assert not document["valid"]
    assert rule in [problem["rule"] for problem in document["problems"]]
    assert all(problem["fix"] for problem in document["problems"])
    text = run(f"{LLAMA} {pins}")
    assert text.exit_code == 1
    assert rule in text.stdout


def test_every_way_to_pin_a_plan_reaches_the_estimate(answer) -> None:
    plan = answer(
        "estimate mixtral-8x7b --cluster 4xdgx-h100 --global-batch 64 --seq-len 1024 "
        "--tp 2 --cp 2 --ep 2 --pp 2 --dp 4 --micro-batch 2 --virtual-stages 2 --schedule interleaved "
        "--recompute selective --sharding gradients --shard-group 4 --sequence-parallel --order tp,dp,cp,pp "
        "--layers-per-stage 8,8,8,8 --offload none"
    )["plan"]
    assert plan == {
        "tp": 2, "cp": 2, "ep": 2, "dp": 4, "pp": 2, "order": ["tp", "dp", "cp", "pp"], "micro_batch": 2,
        "num_micro_batches": 8, "virtual_stages": 2, "schedule": "interleaved", "layers_per_stage": [8, 8, 8, 8],
        "recompute": "selective", "sharding": "gradients", "shard_group": 4, "sequence_parallel": True,
        "offload": "none",
    }  # fmt: skip


def test_options_change_a_plan_file_before_it_is_priced(answer, run, tmp_path: Path) -> None:
    file = tmp_path / "plan.yaml"
    llama = f"estimate llama-3-8b {JOB} --tp 8 --pp 4 --dp 1 --schedule 1f1b --virtual-stages 1"
    before = answer(f"{llama} --save {file}")
    changed = answer(f"estimate {file} --recompute full --pp 2 --dp 2")
    assert changed["plan"]["recompute"] == "full"
    assert len(changed["plan"]["layers_per_stage"]) == 2
    assert changed["plan"]["tp"] == before["plan"]["tp"]
    assert changed["time_s"]["recompute"] > 0
    assert answer(f"estimate {file} --seq-len 2048")["step_time_s"] < before["step_time_s"]
    assert answer(f"plan {file} --tp 4")["best"]["plan"]["tp"] == 4
    assert run(f"estimate {file} --cluster 2xdgx-a100-80g").exit_code == 1  # half of the accelerators that it needs


@pytest.mark.parametrize("width", [80, 100, 140])
def test_text_fits_the_width(run, width: int) -> None:
    done = run(
        "estimate mixtral-8x7b --cluster 4xdgx-h100 --global-batch 64 --seq-len 8192 --tp 2 --ep 4 --pp 2", width
    )
    assert done.exit_code == 0, done.stderr
    assert max(map(len, done.stdout.splitlines())) <= width
    for part in ("Plan", "Time of a step", "Memory of", "Communication", "Calls of the slowest rank"):
        assert part in done.stdout
    assert "…" not in done.stdout.replace("0, 1 … ", "").replace(" … ", "")  # nothing is cut off


def test_text_of_one_accelerator_has_no_communication(run) -> None:
    done = run("estimate gpt2 --cluster 1x4090-pcie --global-batch 8 --seq-len 1024")
    assert done.exit_code == 0, done.stderr
    assert "Communication" not in done.stdout


def test_fp32_is_held_against_the_tf32_unit_that_runs_it(answer, run) -> None:
    command = "estimate gpt2 --cluster 1xdgx-a100-80g --global-batch 64 --seq-len 1024 --dtype fp32"
    document = answer(command)
    assert document["mfu"] * 156e12 == pytest.approx(document["model_flops_per_s_per_gpu"])  # NVIDIA A100 data sheet
    assert "156 TFLOP/s tf32" in run(command).stdout
