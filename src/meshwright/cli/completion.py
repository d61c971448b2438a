"""A plan of which only some fields are given."""

from __future__ import annotations

from typing import Any

import meshwright as mw
from meshwright.cli.request import Request
from meshwright.sources.plan_fields import plan_from


def completed(asked: Request) -> mw.Estimate:
    """The best plan with the given fields; where no such plan is legal and fits, a plain one, so that the answer says
    what is wrong with it."""
    ranking = mw.choose(asked.model, asked.cluster, asked.workload, asked.software, top=1, fixed=asked.pins)
    if ranking.best is not None:
        return ranking.best
    return mw.estimate(asked.model, asked.cluster, asked.workload, plain_plan(asked), asked.software)


def plain_plan(asked: Request) -> mw.Plan:
    """The given fields, and the plainest value for the others."""
    values: dict[str, Any] = dict(asked.pins)
    tp, cp, pp = (values.setdefault(axis, 1) for axis in ("tp", "cp", "pp"))
    dp = values.setdefault("dp", max(1, asked.cluster.accelerators // (tp * cp * pp)))
    if "schedule" not in values and values.get("virtual_stages", 1) > 1:
        values["schedule"] = "interleaved"
    if values.get("schedule", "1f1b") not in ("gpipe", "1f1b"):
        values.setdefault("virtual_stages", 2)
    values.setdefault("sequence_parallel", tp > 1 and asked.workload.seq_len % (tp * cp) == 0)
    values.setdefault("sharding", "optimizer" if dp * cp > 1 else "none")
    return plan_from(values, asked.workload.global_batch)
