"""Plays a pipeline schedule event by event: when each operation runs, who waits, and what each rank holds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from meshwright.program.schedules import Kind, Operation

Durations = Mapping[tuple[Kind, int], float]


class Event(NamedTuple):
    """One operation as it ran."""

    rank: int
    kind: Kind
    stage: int
    micro_batch: int
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Held:
    """What a rank keeps between forward and backward, at the instant when it keeps the most.

    The unit is one chunk and micro-batch: the activations of one micro-batch in one stage. A forward takes its unit
    when it starts; a full backward frees it when it ends; an input gradient turns it into weight-gradient inputs when
    it ends, and the weight gradient frees those when it ends.

    peak_in_flight: most units whose forward has started and whose backward (B or I) has not ended.
    peak_held_for_weight_grad: weight-gradient inputs at that instant (the largest number, if the peak recurs).
    in_flight_by_stage, held_by_stage: both counts of that instant, per stage of this rank.
    drain_held_for_weight_grad: most weight-gradient inputs at any instant.
    drain_in_flight: units in flight at that instant (the largest number, if it recurs).
    """

    peak_in_flight: int
    peak_held_for_weight_grad: int
    in_flight_by_stage: dict[int, int]
    held_by_stage: dict[int, int]
    drain_held_for_weight_grad: int
    drain_in_flight: int


@dataclass(frozen=True, slots=True)
class Timeline:
    """A replayed step: events by rank and then by time, and per rank the seconds busy, idle, and what it held."""

    events: list[Event]
    makespan_s: float
    busy_s: list[float]
    bubble_s: list[float]
    held: list[Held]


def stage_durations(
    forward_s: Sequence[float], input_grad_s: Sequence[float], weight_grad_s: Sequence[float]
) -> dict[tuple[Kind, int], float]:
    """Seconds of every (kind, stage) from one value per stage; a full backward takes input plus weight gradient."""
    durations: dict[tuple[Kind, int], float] = {}
    for stage, (f, i, w) in enumerate(zip(forward_s, input_grad_s, weight_grad_s, strict=True)):
        durations |= {("F", stage): f, ("I", stage): i, ("W", stage): w, ("B", stage): i + w}
    return durations


def replay(
    operations_per_rank: Sequence[Sequence[Operation]],
    durations: Durations,
    transfer_s: float | Sequence[float] = 0.0,
    *,
    overlap_transfers: bool = True,
) -> Timeline:
    """Run every rank's operations in their order, each as soon as the rank is free and its input is there.

    operations_per_rank: as from ``program.schedules.operations``.
    durations: seconds of each (kind, stage) that occurs.
    transfer_s: seconds for one micro-batch's activations (or their gradient) to cross from a stage to the next (or
        back) if the two are on different ranks: one number, or one per boundary (number of stages - 1).
    overlap_transfers: if true a transfer doesn't occupy the sender, only the receiver waits; if false the sender does
        nothing else until it is through. Transfers don't queue for a link, so one that takes longer than an operation
        can be in flight beside the next.

    Raises ``ValueError`` naming the rank and the operation if the order on the ranks can't proceed.
    """
    rank_of = {op.stage: rank for rank, order in enumerate(operations_per_rank) for op in order}
    last_stage = max(rank_of, default=-1)
    hops = [transfer_s] * last_stage if isinstance(transfer_s, (int, float)) else list(transfer_s)
    if len(hops) != max(last_stage, 0):
        raise ValueError(f"transfer_s has {len(hops)} entries; {last_stage + 1} stages need {max(last_stage, 0)}")
    crossing_s = [hop if rank_of[s] != rank_of[s + 1] else 0.0 for s, hop in enumerate(hops)]

    arrived_s: dict[_Input, float] = {}
    waiting: dict[_Input, int] = {}  # input that a stopped rank waits for -> the rank
    ran: list[list[Event]] = [[] for _ in operations_per_rank]
    free_s = [0.0] * len(operations_per_rank)
    runnable = list(range(len(operations_per_rank)))
    while runnable:
        rank = runnable.pop()
        order, events, now_s = operations_per_rank[rank], ran[rank], free_s[rank]
        for kind, stage, micro_batch in order[len(events) :]:
            if kind != "F" or stage > 0:
                needed = (_INPUT[kind], stage, micro_batch)
                at_s = arrived_s.get(needed)
                if at_s is None:
                    waiting[needed] = rank
                    break
                now_s = max(now_s, at_s)
            end_s = now_s + durations[kind, stage]
            events.append(Event(rank, kind, stage, micro_batch, now_s, end_s))
            now_s = end_s
            for output, receiver, hop_s in _outputs(kind, stage, last_stage, crossing_s):
                delivered = (output, receiver, micro_batch)
                arrived_s[delivered] = end_s + hop_s
                if not overlap_transfers:
                    now_s += hop_s
                if delivered in waiting:
                    runnable.append(waiting.pop(delivered))
        free_s[rank] = now_s
    _raise_if_stuck(operations_per_rank, ran)

    makespan_s = max((events[-1].end_s for events in ran if events), default=0.0)
    busy_s = [sum(event.end_s - event.start_s for event in events) for events in ran]
    return Timeline(
        events=[event for events in ran for event in events],
        makespan_s=makespan_s,
        busy_s=busy_s,
        bubble_s=[makespan_s - busy for busy in busy_s],
        held=[held(order) for order in operations_per_rank],
    )


_Input = tuple[str, int, int]  # (what it enables, stage, micro-batch); what: F, B (either sort of backward) or W
_INPUT: dict[Kind, str] = {"F": "F", "B": "B", "I": "B", "W": "W"}


def _outputs(kind: Kind, stage: int, last_stage: int, crossing_s: list[float]) -> list[tuple[str, int, float]]:
    """What the end of an operation enables: (what, stage, seconds until it is there)."""
    if kind == "F":
        return [("F", stage + 1, crossing_s[stage])] if stage < last_stage else [("B", stage, 0.0)]
    outputs = [("W", stage, 0.0)] if kind == "I" else []
    if kind != "W" and stage > 0:
        outputs.append(("B", stage - 1, crossing_s[stage - 1]))
    return outputs


def _raise_if_stuck(operations_per_rank: Sequence[Sequence[Operation]], ran: list[list[Event]]) -> None:
    stuck = [
        f"rank {rank} waits for the input of {order[len(events)]}"
        for rank, (order, events) in enumerate(zip(operations_per_rank, ran, strict=True))
        if len(events) < len(order)
    ]
    if stuck:
        raise ValueError(f"the schedule can't proceed: {'; '.join(stuck)}")


def held(order: Sequence[Operation]) -> Held:
    """What a rank that runs these operations in this order holds at most; durations don't matter to it."""
    in_flight, waiting = 0, 0
    in_flight_by_stage, waiting_by_stage = ({op.stage: 0 for op in order} for _ in range(2))
    peak, drain = (0, 0), (0, 0)
    at_peak = (dict(in_flight_by_stage), dict(waiting_by_stage))
    for kind, stage, _ in order:
        in_flight += _IN_FLIGHT_CHANGE[kind]
        waiting += _WAITING_CHANGE[kind]
        in_flight_by_stage[stage] += _IN_FLIGHT_CHANGE[kind]
        waiting_by_stage[stage] += _WAITING_CHANGE[kind]
        drain = max(drain, (waiting, in_flight))
        if (in_flight, waiting) > peak:
            peak, at_peak = (in_flight, waiting), (dict(in_flight_by_stage), dict(waiting_by_stage))
    return Held(*peak, *at_peak, *drain)


_IN_FLIGHT_CHANGE: dict[Kind, int] = {"F": 1, "B": -1, "I": -1, "W": 0}
_WAITING_CHANGE: dict[Kind, int] = {"F": 0, "B": 0, "I": 1, "W": -1}
