"""A scaling sweep as JSON. The field names are a contract: SI units, with the unit in the name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from meshwright.show.document import Document, cluster_document, estimate_document

if TYPE_CHECKING:
    from meshwright.choose.scaling import Point, Scaling

_BILLION = 1e9


def scaling_document(scaling: Scaling) -> Document:
    """The whole sweep. Marks are numbers of accelerators, null where there is no such point; `days`, `cost_total` and
    `cost_per_billion_tokens` are null where the tokens or the price aren't stated."""
    growing = scaling.batch_per_replica
    value = growing or scaling.workload.global_batch
    return {
        "model": scaling.model.name,
        "cluster": cluster_document(scaling.cluster),
        "seq_len": scaling.workload.seq_len,
        "batch": {"kind": "per_replica" if growing else "fixed", "value": value},
        "threshold": scaling.threshold,
        "points": [_point(scaling, point) for point in scaling.points],
        "knee": _count(scaling.knee),
        "before_knee": _count(scaling.before_knee),
        "slower_from": _count(scaling.slower_from),
        "dearer_from": _count(scaling.dearer_from),
        "cheapest": _count(scaling.cheapest),
        "fastest": _count(scaling.fastest),
    }


def _count(point: Point | None) -> int | None:
    return None if point is None else point.accelerators


def _point(scaling: Scaling, point: Point) -> Document:
    found = point.estimate
    document: Document = {
        "accelerators": point.accelerators,
        "nodes": point.nodes,
        "accelerators_used": point.accelerators_used,
        "global_batch": None if found is None else found.workload.global_batch,
        "reason": point.reason,
        "estimate": None if found is None else estimate_document(found),
    }
    values = {
        "step_time_s": found.step_time_s if found else None,
        "speedup": scaling.speedup(point) if found else None,
        "efficiency": scaling.efficiency(point) if found else None,
        "tokens_per_s": point.tokens_per_s if found else None,
        "tokens_per_s_per_gpu": point.tokens_per_s_per_accelerator if found else None,
        "mfu": found.mfu if found else None,
        "communication_share": point.communication_share if found else None,
        "bubble_share": point.bubble_share if found else None,
        "waiting_share": point.waiting_share if found else None,
        "cost_per_billion_tokens": _BILLION * point.cost_per_token or None,
        "days": point.days or None,
        "cost_total": point.cost_total or None,
    }
    return document | values
