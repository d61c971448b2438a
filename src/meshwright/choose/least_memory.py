"""The plan that needs the least memory, whatever the accelerators have."""

from __future__ import annotations

from dataclasses import replace

from meshwright.choose.keeper import Candidate
from meshwright.choose.search import search
from meshwright.choose.space import Fixed
from meshwright.spec.rules import Job

_NO_LIMIT_BYTES = 1e18


def least_memory(job: Job, pins: Fixed) -> Candidate | None:
    """The legal plan on all accelerators that needs the fewest bytes of each; None where none is legal."""
    groups = tuple(
        replace(group, accelerator=replace(group.accelerator, memory_bytes=_NO_LIMIT_BYTES))
        for group in job.cluster.groups
    )
    roomy = replace(job, cluster=replace(job.cluster, groups=groups))
    found = search(roomy, job.cluster.accelerators, pins, "memory", top=1, within=1.0)
    return found.ranked[0] if found.ranked else None
