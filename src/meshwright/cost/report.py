"""The communication of one plan, call by call: what crosses which level, how often, how long, and how much of it
shows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from meshwright.cost.layer import Setting, end_parameters, layer_parameters
from meshwright.cost.training import Base
from meshwright.program import traffic
from meshwright.program.traffic import Call
from meshwright.spec.estimate import Traffic
from meshwright.spec.plan import RECOMPUTE_FULL

_ROUNDS = {"all_reduce": 2, "all_gather": 1, "reduce_scatter": 1, "all_to_all": 1}
"""How often the whole buffer but a rank's own share passes through the rank."""

_PART = {"tp": "tensor_parallel", "cp": "context_parallel", "ep": "expert_parallel", "dp": "data_parallel"}


@dataclass(frozen=True, slots=True)
class _Counted:
    call: Call
    calls_per_step: float
    part: str


def traffic_of(
    setting: Setting, step: Base, time_s: dict[str, float], hidden_s: Mapping[str, float]
) -> tuple[Traffic, ...]:
    """Communication of the slowest rank (data parallel: of the first pipeline rank) per step, the longest first.

    Exposed and hidden seconds of a part are spread over its calls in proportion to their work.
    """
    merged: dict[tuple[Any, ...], list[Any]] = {}
    for counted in _calls(setting, step):
        call = counted.call
        group = getattr(setting.placement, call.group)
        size = int(group.degree)
        payload = float(call.payload_bytes)
        if size < 2 or counted.calls_per_step <= 0 or payload <= 0 or not setting.network.levels:
            continue
        seconds = counted.calls_per_step * float(setting.call_s(call))
        key = (call.axis, call.collective, int(setting.network.outermost(group)), size, payload, counted.part)
        entry = merged.setdefault(key, [0.0, 0.0])
        entry[0] += counted.calls_per_step
        entry[1] += seconds
    work: dict[str, float] = {}
    for key, (_, seconds) in merged.items():
        work[key[5]] = work.get(key[5], 0.0) + seconds
    rows = []
    for (axis, collective, level, size, payload, part), (calls, seconds) in merged.items():
        share = seconds / work[part] if work[part] else 0.0
        rows.append(
            Traffic(
                axis=axis,
                collective=collective,
                level=setting.network.levels[level].name,
                group_size=size,
                payload_bytes_per_call=payload,
                calls_per_step=calls,
                wire_bytes_per_step=calls * _wire_bytes(collective, payload, size),
                seconds=seconds,
                exposed_s=share * time_s[part],
                # what of a pipeline transfer doesn't show runs beside the computation
                hidden_s=share * hidden_s[part] if part in hidden_s else max(0.0, seconds - share * time_s[part]),
            )
        )
    return tuple(sorted(rows, key=lambda row: -row.seconds))


def _wire_bytes(collective: str, payload_bytes: float, group_size: int) -> float:
    """Bytes that a rank sends for one call."""
    if collective in ("send", "reduce", "broadcast"):
        return payload_bytes
    return _ROUNDS[collective] * (group_size - 1) / group_size * payload_bytes


def _calls(setting: Setting, step: Base) -> Iterator[_Counted]:
    model, software, workload, plans = setting.model, setting.software, setting.workload, setting.plans
    m = float(setting.micro_batches)
    again = 1.0 + float(plans.recompute == RECOMPUTE_FULL)
    for layer, layers in zip(model.kinds, step.slowest.layers, strict=True):
        inside = (
            *traffic.tensor_calls(model, layer, workload, plans),
            *traffic.context_calls(layer, workload, software, plans),
            *traffic.expert_calls(model, layer, workload, software, plans),
        )
        for call in inside:
            passes = again if call.phase == "forward" else 1.0
            yield _Counted(call, m * float(layers) * float(call.count) * passes, _PART[call.axis])
    ends = (
        (step.slowest.embedding, traffic.embedding_calls(model, workload, plans)),
        (step.slowest.head, traffic.head_calls(model, workload, plans)),
    )
    for held, calls in ends:
        for call in calls:
            yield _Counted(call, m * float(held) * float(call.count), _PART[call.axis])
    if int(plans.pp) > 1:
        for call in traffic.pipeline_calls(model, workload, software, plans):
            part = "pipeline_transfer" if call.axis == "pp" else _PART[call.axis]
            yield _Counted(call, m * float(call.count), part)
    for call in traffic.tied_embedding_call(model, workload, software, plans):
        yield _Counted(call, float(call.count), "data_parallel")
    yield from _data_calls(setting, step)


def _data_calls(setting: Setting, step: Base) -> Iterator[_Counted]:
    model, plans = setting.model, setting.plans
    first = step.classes[0]
    embedding, head, table = (float(count) for count in end_parameters(model, setting.software, plans))
    both = model.tied_embeddings and float(np.asarray(first.embedding) * first.head) > 0
    pieces: list[tuple[float, float, float, int]] = []
    for layer, layers in zip(model.kinds, first.layers, strict=True):
        dense_count, expert_count = layer_parameters(model, layer, plans)
        tensors = len(layer.linears(model.hidden))
        pieces.append((float(layers), float(dense_count), float(expert_count), tensors))
    head -= table if both else 0.0
    pieces += [(float(first.embedding), embedding, 0.0, 1), (float(first.head), head, 0.0, 1)]
    for held, dense, expert, tensors in pieces:
        yield from _counted(
            traffic.data_calls(
                setting.software, setting.workload, plans, np.asarray(dense), np.asarray(expert), tensors=tensors
            ),
            held,
        )


def _counted(calls: Iterable[Call], held: float) -> Iterator[_Counted]:
    for call in calls:
        yield _Counted(call, held * float(call.count), "data_parallel")
