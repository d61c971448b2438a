"""Answers as JSON. The field names are a contract: SI units, with the unit in the name."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from meshwright.sources.plans import plan_values
from meshwright.spec.cluster import Cluster
from meshwright.spec.estimate import MEMORY_PARTS, TIME_PARTS, Estimate, Traffic

if TYPE_CHECKING:
    from meshwright.choose import Ranking

Document = dict[str, Any]


def estimate_document(estimate: Estimate) -> Document:
    """One estimate. The parts of `memory_bytes` add up to its total, those of `time_s` to `step_time_s`."""
    memory = {part: float(estimate.memory_bytes.get(part, 0.0)) for part in MEMORY_PARTS}
    document = {
        "model": estimate.model.name,
        "cluster": cluster_document(estimate.cluster),
        "plan": plan_values(estimate.plan, estimate.workload.global_batch)
        | {"num_micro_batches": estimate.num_micro_batches},
        "valid": estimate.valid,
        "fits": estimate.fits,
        "problems": [
            {"rule": problem.rule, "message": problem.message, "fix": problem.fix} for problem in estimate.problems
        ],
        "memory_bytes": memory | {"total": estimate.memory_total_bytes, "capacity": estimate.capacity_bytes},
        "worst_rank": {"rank": estimate.worst_rank, "stage": estimate.worst_stage},
        "step_time_s": estimate.step_time_s,
        "step_time_low_s": estimate.step_time_low_s,
        "step_time_high_s": estimate.step_time_high_s,
        "time_s": {part: float(estimate.time_s.get(part, 0.0)) for part in TIME_PARTS},
        "communication_share": estimate.communication_share,
        "traffic": [_traffic(each) for each in estimate.traffic],
        "pipeline_efficiency": estimate.pipeline_efficiency,
        "tokens_per_s": estimate.tokens_per_s,
        "tokens_per_s_per_gpu": estimate.tokens_per_s_per_gpu,
        "model_flops_per_s_per_gpu": estimate.model_flops_per_s_per_gpu,
        "mfu": estimate.mfu,
        "binding": estimate.binding,
    }
    return clean_mapping(document)


def cluster_document(cluster: Cluster) -> Document:
    """A cluster as an estimate names it."""
    return {
        "name": cluster.name,
        "accelerators": cluster.accelerators,
        "levels": [
            {
                "name": level.name,
                "kind": level.kind,
                "size": level.size,
                "bytes_per_s": level.bytes_per_s,
                "latency_s": level.latency_s,
            }
            for level in cluster.levels
        ],
        "devices": list(cluster.devices),
        "warnings": list(cluster.warnings),
    }


def ranking_document(ranking: Ranking) -> Document:
    """The answer to a search; `best` is null where nothing fits."""
    document = {
        "best": None if ranking.best is None else estimate_document(ranking.best),
        "ranked": [estimate_document(each) for each in ranking.ranked],
        "by_layout": [estimate_document(each) for each in ranking.by_layout],
        "rejected": [{"plan": dict(each.plan), "reason": each.reason} for each in ranking.rejected],
        "considered": ranking.considered,
        "seconds": ranking.seconds,
        "reasons": list(ranking.reasons),
        "objective": ranking.objective,
        "accelerators_used": ranking.accelerators_used,
        "idle_accelerators": ranking.idle_accelerators,
    }
    return clean_mapping(document)


def to_json(document: Any) -> str:
    """The text of one JSON document; it never holds NaN or Infinity."""
    return json.dumps(_clean(document), indent=2, allow_nan=False)


def _traffic(each: Traffic) -> Document:
    return {
        "axis": each.axis,
        "collective": each.collective,
        "level": each.level,
        "group_size": each.group_size,
        "payload_bytes_per_call": each.payload_bytes_per_call,
        "calls_per_step": each.calls_per_step,
        "wire_bytes_per_step": each.wire_bytes_per_step,
        "seconds": each.seconds,
        "exposed_s": each.exposed_s,
        "hidden_s": each.hidden_s,
    }


def clean_mapping(value: Mapping[str, Any]) -> Document:
    return {str(key): _clean(item) for key, item in value.items()}


def _clean(value: Any) -> Any:
    """Plain JSON values: NumPy scalars unwrapped, numbers that JSON has no word for replaced by null."""
    if isinstance(value, Mapping):
        return clean_mapping(value)
    if isinstance(value, list | tuple):
        return [_clean(item) for item in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
