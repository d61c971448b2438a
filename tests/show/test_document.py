"""Answers as JSON: the fields that others rely on."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from meshwright.show.document import estimate_document, ranking_document, to_json
from meshwright.sources.clusters import load_cluster
from meshwright.sources.models import load_model
from meshwright.sources.software import load_software
from meshwright.spec.estimate import COMMUNICATION_PARTS, Estimate, Problem, Traffic
from meshwright.spec.plan import Plan
from meshwright.spec.workload import Training

MEMORY = {
    "weights": 4e9, "gradients": 8e9, "optimizer": 3e9, "activations": 30e9, "logits": 1e9, "kv_cache": 0.0,
    "communication": 0.5e9, "runtime": 3.5e9,
}  # fmt: skip
TIME = {
    "compute": 9.0, "recompute": 0.0, "tensor_parallel": 2.0, "context_parallel": 0.0, "expert_parallel": 0.0,
    "pipeline_bubble": 0.5, "pipeline_transfer": 0.25, "data_parallel": 0.25, "optimizer": 0.0, "offload": 0.0,
    "overhead": 0.0,
}  # fmt: skip
MADE = Estimate(
    model=load_model("llama-3.1-70b"),
    cluster=load_cluster("32xdgx-a100-80g"),
    software=load_software(),
    workload=Training(global_batch=1024, seq_len=4096),
    plan=Plan(tp=8, pp=4, dp=8, layers_per_stage=(20, 20, 20, 20), sharding="optimizer"),
    num_micro_batches=128,
    memory_bytes=MEMORY,
    capacity_bytes=80e9,
    worst_rank=64,
    worst_stage=1,
    time_s=TIME,
    pipeline_efficiency=0.977,
    traffic=(Traffic("tp", "all_gather", "nvlink", 8, 67108864.0, 40960.0, 2.4e12, 2.0, 2.0),),
    problems=(Problem("batch", "what is wrong", "what mends it"),),
    range_factors=(0.9, 1.2),
)


@dataclass(frozen=True)
class Ruled:
    plan: dict[str, Any]
    reason: str


@dataclass(frozen=True)
class Ranked:
    ranked: tuple[Estimate, ...]
    by_layout: tuple[Estimate, ...] = ()
    rejected: tuple[Ruled, ...] = (Ruled({"tp": 16}, "why not"),)
    considered: int = 1000
    seconds: float = 0.5
    reasons: tuple[str, ...] = ("because",)
    objective: str = "throughput"
    accelerators_used: int = 256
    idle_accelerators: int = 0

    @property
    def best(self) -> Estimate | None:
        return self.ranked[0] if self.ranked else None


def test_an_estimate_has_the_fields_of_the_contract() -> None:
    document = estimate_document(MADE)
    assert list(document) == [
        "model", "cluster", "plan", "valid", "fits", "problems", "memory_bytes", "worst_rank", "step_time_s",
        "step_time_low_s", "step_time_high_s", "time_s", "communication_share", "traffic", "pipeline_efficiency",
        "tokens_per_s", "tokens_per_s_per_gpu", "model_flops_per_s_per_gpu", "mfu", "binding",
    ]  # fmt: skip
    assert document["model"] == "llama-3.1-70b"
    assert set(document["cluster"]) == {"name", "accelerators", "levels", "devices", "warnings"}
    assert document["cluster"]["accelerators"] == 256
    nvlink = {"name": "nvlink", "kind": "switch", "size": 8, "bytes_per_s": 300e9}
    assert document["cluster"]["levels"][0] == nvlink | {"latency_s": MADE.cluster.levels[0].latency_s}
    assert document["plan"] == {
        "tp": 8, "cp": 1, "ep": 1, "dp": 8, "pp": 4, "order": ["tp", "cp", "dp", "pp"], "micro_batch": 1,
        "num_micro_batches": 128, "virtual_stages": 1, "schedule": "1f1b", "layers_per_stage": [20, 20, 20, 20],
        "recompute": "none", "sharding": "optimizer", "shard_group": 8, "sequence_parallel": False, "offload": "none",
    }  # fmt: skip
    assert document["valid"] is False
    assert document["fits"] is True
    assert document["problems"] == [{"rule": "batch", "message": "what is wrong", "fix": "what mends it"}]
    assert document["worst_rank"] == {"rank": 64, "stage": 1}
    assert document["binding"] == "compute"
    assert document["traffic"][0] == {
        "axis": "tp", "collective": "all_gather", "level": "nvlink", "group_size": 8,
        "payload_bytes_per_call": 67108864.0,
        "calls_per_step": 40960.0, "wire_bytes_per_step": 2.4e12, "seconds": 2.0, "exposed_s": 2.0, "hidden_s": 0.0,
    }  # fmt: skip


def test_parts_add_up_to_totals() -> None:
    document = estimate_document(MADE)
    memory = document["memory_bytes"]
    assert memory["total"] == 50e9
    assert memory["capacity"] == 80e9
    assert sum(value for part, value in memory.items() if part not in ("total", "capacity")) == memory["total"]
    assert document["step_time_s"] == sum(document["time_s"].values()) == 12.0
    assert document["communication_share"] == sum(document["time_s"][part] for part in COMMUNICATION_PARTS) / 12
    assert document["step_time_low_s"] < 12 < document["step_time_high_s"]


def test_rates_follow_from_the_step_time() -> None:
    document = estimate_document(MADE)
    assert document["tokens_per_s"] == pytest.approx(1024 * 4096 / 12)
    assert document["tokens_per_s_per_gpu"] == pytest.approx(1024 * 4096 / 12 / 256)
    assert document["mfu"] == pytest.approx(document["model_flops_per_s_per_gpu"] / 312e12)  # A100, dense bf16


def test_a_ranking_has_the_fields_of_the_contract() -> None:
    document = ranking_document(Ranked((MADE,), (MADE,)))
    assert set(document) == {
        "best", "ranked", "rejected", "considered", "seconds", "reasons", "by_layout", "objective", "accelerators_used",
        "idle_accelerators",
    }  # fmt: skip
    assert document["best"] == document["ranked"][0] == estimate_document(MADE)
    assert document["rejected"] == [{"plan": {"tp": 16}, "reason": "why not"}]


def test_without_a_plan_best_is_null() -> None:
    document = json.loads(to_json(ranking_document(Ranked(()))))
    assert document["best"] is None
    assert document["ranked"] == []


def test_numbers_that_json_has_no_word_for_become_null() -> None:
    text = to_json(
        {"a": math.nan, "b": [math.inf, np.float64(1.5)], "c": (np.int64(3), np.bool_(True)), "d": {"e": -math.inf}}
    )
    assert json.loads(text) == {"a": None, "b": [None, 1.5], "c": [3, True], "d": {"e": None}}
