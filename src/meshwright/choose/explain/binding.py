"""What the step waits for now: its largest part, the pipeline's bubble, and what twice the speed of one thing would
save."""

from __future__ import annotations

from meshwright.choose.explain import variations
from meshwright.choose.explain.facts import Binding, Bubble, Faster
from meshwright.cost.estimate import price
from meshwright.cost.pipeline import pipeline_efficiency
from meshwright.spec.estimate import Estimate
from meshwright.spec.plan import ONE_F_ONE_B, Plan
from meshwright.spec.rules import Job


def binding(job: Job, estimate: Estimate, plan: Plan) -> Binding:
    """The same plan priced with one thing twice as fast after another, the most rewarding first."""
    faster = [
        ("matmuls", variations.with_matmul_speed(job, 2.0)),
        ("accelerator memory", variations.with_memory_speed(job, 2.0)),
        *(
            (level.name, variations.with_link_speed(job, number, 2.0))
            for number, level in enumerate(job.cluster.levels)
        ),
    ]
    found = [Faster(name, price(changed, plan).step_time_s) for name, changed in faster]
    part = estimate.binding
    return Binding(
        part=part,
        share=estimate.time_s[part] / estimate.step_time_s,
        twice_as_fast=tuple(sorted(found, key=lambda each: each.step_time_s)),
        memory_share=estimate.memory_total_bytes / estimate.capacity_bytes,
    )


def bubble(estimate: Estimate) -> Bubble | None:
    """The pipeline's idle time; None without a pipeline."""
    plan, m = estimate.plan, estimate.num_micro_batches
    if plan.pp < 2:
        return None
    return Bubble(
        schedule=plan.schedule,
        stages=plan.pp,
        virtual_stages=plan.virtual_stages,
        num_micro_batches=m,
        efficiency=estimate.pipeline_efficiency,
        efficiency_1f1b=float(pipeline_efficiency(ONE_F_ONE_B, plan.pp, m, 1)),
        idle_s=estimate.time_s["pipeline_bubble"],
        transfer_s=estimate.time_s["pipeline_transfer"],
    )
