"""The honest range around a predicted step: as wide as predictions of such jobs were off where that was checked."""

from __future__ import annotations

from collections.abc import Mapping

from meshwright.sources.accuracy import load_accuracy
from meshwright.spec.accuracy import Accuracy
from meshwright.spec.plan import INTERLEAVED, SCHEDULES, Plan
from meshwright.spec.rules import Job

LONG_SEQUENCE = 16384
OVERHEAD_SHARE = 0.02
"""From here on the host's speed decides, which no data sheet tells."""
ALIGNMENT = 64


def step_range(job: Job, plan: Plan, time_s: Mapping[str, float]) -> tuple[float, float]:
    """(low, high) factors on the step time."""
    accuracy = load_accuracy()
    return accuracy.range(regimes(job, plan, time_s), unmeasured(accuracy, job, plan))


def regimes(job: Job, plan: Plan, time_s: Mapping[str, float]) -> tuple[str, ...]:
    """What a job is like, where predictions may be worse than overall."""
    widths = {job.model.hidden, *(kind.mlp.width for kind in job.model.kinds if kind.mlp.width)}
    found = {
        "8-bit matmuls": job.workload.dtype == "fp8",
        "long sequences": job.workload.seq_len > LONG_SEQUENCE,
        "bound by the host": time_s["overhead"] > OVERHEAD_SHARE * sum(time_s.values()),
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
