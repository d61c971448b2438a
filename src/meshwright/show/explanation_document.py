"""An explanation as JSON. The field names are a contract: SI units, with the unit in the name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from meshwright.show.document import Document, clean_mapping, estimate_document
from meshwright.sources.plans import plan_values
from meshwright.spec.estimate import Estimate

if TYPE_CHECKING:
    from meshwright.choose.explain import Explanation
    from meshwright.choose.explain.facts import Alternative, Bubble, Change, Flip, Move, Rung, Side


def explanation_document(said: Explanation) -> Document:
    """Everything that an explanation says. `plan` is the explained one's estimate, null where nothing fits; `flips` and
    `to_fit` are null where they were not searched for."""
    document = {
        "plan": None if said.estimate is None else estimate_document(said.estimate),
        "best": None if said.best is None else estimate_document(said.best),
        "is_best": said.estimate is not None and said.best is not None and said.gap is None,
        "objective": said.objective,
        "accelerators_used": said.accelerators_used,
        "layouts_ahead": said.layouts_ahead,
        "against_best": _optional(said.gap),
        "pinned": dict(said.pins),
        "without_pins": _optional(said.unpinned),
        "no_plan": list(said.no_plan),
        "memory": [_rung(each) for each in said.memory],
        "links": [
            {
                "axis": each.axis,
                "level": each.level,
                "wire_bytes_per_step": each.wire_bytes_per_step,
                "seconds": each.seconds,
                "hidden_s": each.hidden_s,
                "exposed_s": each.exposed_s,
            }
            for each in said.links
        ],
        "moves": [_move(each) for each in said.moves],
        "bubble": None if said.bubble is None else _bubble(said.bubble),
        "binding": _binding(said),
        "runner_up": _optional(said.runner_up),
        "families": [_alternative(each) for each in said.families],
        "slogan": _optional(said.slogan),
        "flips": None if said.flips is None else [_flip(each) for each in said.flips],
        "to_fit": None if said.to_fit is None else [_change(each) for each in said.to_fit],
        "text": list(said.text),
    }
    return clean_mapping(document)


def _optional(each: Alternative | None) -> Document | None:
    return None if each is None else _alternative(each)


def _alternative(each: Alternative) -> Document:
    return {
        "name": each.name,
        "title": each.title,
        "verdict": each.verdict,
        "given": each.given,
        **_plan(each.estimate),
        "behind": None if each.estimate is None else each.behind,
        "differences": [
            {"part": one.part, "seconds": one.seconds, "levels": list(one.levels)} for one in each.differences
        ],
        "reason": each.reason,
    }


def _plan(estimate: Estimate | None) -> Document:
    if estimate is None:
        return {"plan": None, "step_time_s": None, "memory_bytes": None}
    return {
        "plan": plan_values(estimate.plan, estimate.workload.global_batch),
        "step_time_s": estimate.step_time_s,
        "memory_bytes": estimate.memory_total_bytes,
    }


def _rung(each: Rung) -> Document:
    memory = {**each.memory_bytes, "total": each.total_bytes, "capacity": each.capacity_bytes}
    return {"change": each.change, "memory_bytes": memory, "fits": each.fits}


def _move(each: Move) -> Document:
    possible = bool(each.order)
    return {
        "axis": each.axis,
        "direction": each.direction,
        "level": each.level,
        "to_level": each.to_level,
        "possible": possible,
        "order": list(each.order) if possible else None,
        "seconds": each.seconds if possible else None,
        "exposed_s": each.exposed_s if possible else None,
        "step_time_s": each.step_time_s if possible else None,
        "reason": each.reason,
    }


def _bubble(each: Bubble) -> Document:
    return {
        "schedule": each.schedule,
        "stages": each.stages,
        "virtual_stages": each.virtual_stages,
        "num_micro_batches": each.num_micro_batches,
        "efficiency": each.efficiency,
        "efficiency_1f1b": each.efficiency_1f1b,
        "idle_s": each.idle_s,
        "transfer_s": each.transfer_s,
    }


def _binding(said: Explanation) -> Document | None:
    if said.binding is None:
        return None
    return {
        "part": said.binding.part,
        "share": said.binding.share,
        "memory_share": said.binding.memory_share,
        "twice_as_fast": [{"name": each.name, "step_time_s": each.step_time_s} for each in said.binding.twice_as_fast],
    }


def _flip(each: Flip) -> Document:
    return {
        "name": each.name,
        "title": each.title,
        "unit": each.unit,
        "now": each.now,
        "direction": each.direction,
        "keeps": _side(each.keeps),
        "flips": None if each.flips is None else _side(each.flips),
    }


def _side(each: Side) -> Document:
    plan = None if each.plan is None else dict(each.plan)
    return {"value": each.value, "plan": plan, "step_time_s": each.step_time_s}


def _change(each: Change) -> Document:
    value: Any = each.value
    return {
        "kind": each.kind,
        "title": each.title,
        "unit": each.unit,
        "now": each.now,
        "value": value,
        **_plan(each.estimate),
    }
