"""The honest range around a predicted step: as wide as predictions of such jobs were off where that was checked."""

from __future__ import annotations

from collections.abc import Mapping

from meshwright.sources.accuracy import load_accuracy
from meshwright.spec.accuracy import Accuracy
from meshwright.spec.plan import INTERLEAVED, SCHEDULES, Plan
from meshwright.spec.rules import Job

LONG_SEQUENCE = 16384
HOST_BOUND = 3.0
"""Where a layer's kernels take less than this many times as long as the host needs to launch them, the host's speed may
decide, which no data sheet tells."""
ALIGNMENT = 64


def step_range(job: Job, plan: Plan, time_s: Mapping[str, float], micro_batches: int) -> tuple[float, float]:
    """(low, high) factors on the step time."""
    accuracy = load_accuracy()
    return accuracy.range(regimes(job, plan, time_s, micro_batches), unmeasured(accuracy, job, plan))


def regimes(job: Job, plan: Plan, time_s: Mapping[str, float], micro_batches: int) -> tuple[str, ...]:
    """What a job is like, where predictions may be worse than overall."""
    widths = {job.model.hidden, *(kind.mlp.width for kind in job.model.kinds if kind.mlp.width)}
    found = {
        "8-bit matmuls": job.workload.dtype == "fp8",
        "long sequences": job.workload.seq_len > LONG_SEQUENCE,
        "bound by the host": _kernels_s(job, plan, time_s, micro_batches) < HOST_BOUND * _launches_s(job, plan),
        "widths that fill no tile": any(width // plan.tp % ALIGNMENT for width in widths),
        "Blackwell": job.cluster.accelerator.family == "blackwell",
    }
    return tuple(name for name, holds in found.items() if holds)


def unmeasured(accuracy: Accuracy, job: Job, plan: Plan) -> int:
    """Aspects of a job that none of the runs had which the accuracy is known from."""
    aspects = (
        job.cluster.accelerator.name not in accuracy.accelerators,
        job.software.name not in accuracy.profiles,
        any(kind.mlp.is_moe for kind in job.model.kinds),
        any(kind.mixer is not None or not kind.attention.causal for kind in job.model.kinds),
        plan.offload != "none",
        SCHEDULES.index(plan.schedule) > INTERLEAVED,
    )
    return sum(aspects)


def _kernels_s(job: Job, plan: Plan, time_s: Mapping[str, float], micro_batches: int) -> float:
    """Of one layer and micro-batch, forward and backward, about: the busiest stage over its layers."""
    return (time_s["compute"] + time_s["recompute"]) / (micro_batches * job.model.num_layers / plan.pp)


def _launches_s(job: Job, plan: Plan) -> float:
    """Of one layer and micro-batch, on the host."""
    passes = 1 + job.software.launch_backward_ratio + (plan.recompute == "full")
    return job.software.launch_s_per_layer * passes
