"""The order in which every pipeline rank runs its operations, as a table, for each schedule.

A table says only the order on each rank; when an operation starts follows from its inputs (``simulate.pipeline``).
The runtime executes these very tables, and they are the ones ``torch.distributed.pipelining`` builds.
"""

from collections import Counter, deque
from typing import Literal, NamedTuple

from meshwright.spec.plan import SCHEDULES

Kind = Literal["F", "B", "I", "W"]

V_SCHEDULES = ("zero-bubble-v", "dualpipe-v")


class Operation(NamedTuple):
    """One piece of work of one rank.

    kind: ``F`` forward; ``B`` full backward (input and weight gradient in one go); ``I`` input gradient only;
        ``W`` weight gradient only. A micro-batch passes a stage either as F, B or as F, I, W.
    stage: global virtual-stage index, 0 .. pp * virtual_stages - 1, in the order the layers run.
    micro_batch: 0 .. num_micro_batches - 1.
    """

    kind: Kind
    stage: int
    micro_batch: int

    def __str__(self) -> str:
        return f"{self.kind}(stage {self.stage}, micro-batch {self.micro_batch})"


def check(schedule: str, pp: int, num_micro_batches: int, virtual_stages: int) -> None:
    """Raise ``ValueError`` with the value, the rule and the nearest legal value if the schedule can't run like this.

    gpipe and 1f1b have one stage per rank; interleaved has two or more and takes micro-batches in whole rounds of pp
    (Megatron-LM's rule; torch also allows other round sizes); the V schedules have exactly two stages per rank.
    dualpipe-v needs a micro-batch per stage, 2 pp (``torch.distributed.pipelining.ScheduleDualPipeV``). zero-bubble-v
    takes any number, and so does 1f1b (Megatron-LM; torch's own 1F1B class asks for at least pp).
    """
    if schedule not in SCHEDULES:
        raise ValueError(f"schedule {schedule!r} is unknown; it must be one of {', '.join(SCHEDULES)}")
    for name, value in (("pp", pp), ("num_micro_batches", num_micro_batches), ("virtual_stages", virtual_stages)):
        if value < 1:
            raise ValueError(f"{name} is {value}; it must be at least 1")
    if schedule in ("gpipe", "1f1b") and virtual_stages != 1:
        raise ValueError(f"{schedule} runs one stage per rank, but virtual_stages is {virtual_stages}; use 1")
    if schedule in V_SCHEDULES and virtual_stages != 2:
        raise ValueError(f"{schedule} runs two stages per rank, but virtual_stages is {virtual_stages}; use 2")
    if schedule == "interleaved":
        if virtual_stages < 2:
            raise ValueError("interleaved needs at least 2 virtual stages, but virtual_stages is 1; use 2 or 1f1b")
        if num_micro_batches % pp:
            nearest = max(1, round(num_micro_batches / pp)) * pp
            raise ValueError(
                f"interleaved needs num_micro_batches ({num_micro_batches}) divisible by pp ({pp}); nearest: {nearest}"
            )
    if schedule == "dualpipe-v" and num_micro_batches < 2 * pp:
        raise ValueError(
            f"dualpipe-v needs num_micro_batches ({num_micro_batches}) of at least 2 pp; use {2 * pp} or more"
        )


def rank_of_stage(schedule: str, pp: int, virtual_stages: int) -> tuple[int, ...]:
    """Pipeline rank that holds each of the pp * virtual_stages stages, in the order the layers run.

    Round-robin (stage s on rank s mod pp), except the V schedules: rank r holds stages r and 2 pp - 1 - r, so that
    the embedding and the head are both on rank 0.
    """
    if schedule in V_SCHEDULES:
        return (*range(pp), *reversed(range(pp)))
    return tuple(stage % pp for stage in range(pp * virtual_stages))


def operations(schedule: str, pp: int, num_micro_batches: int, virtual_stages: int = 1) -> list[list[Operation]]:
    """The operations of each pipeline rank, in order: ``result[rank]``.

    Raises ``ValueError`` (see ``check``) if the schedule can't run with these numbers.
    """
    check(schedule, pp, num_micro_batches, virtual_stages)
    m = num_micro_batches
    match schedule:
        case "gpipe":
            return [_gpipe(rank, m) for rank in range(pp)]
        case "1f1b":
            return [_one_forward_one_backward(rank, pp, m) for rank in range(pp)]
        case "interleaved":
            return [_interleaved(rank, pp, m, virtual_stages) for rank in range(pp)]
        case "zero-bubble-v":
            return [_zero_bubble_v(rank, pp, m) for rank in range(pp)]
        case _:
            return [_dualpipe_v(rank, pp, m) for rank in range(pp)]


def _gpipe(rank: int, m: int) -> list[Operation]:
    """All forwards, then all backwards, both in micro-batch order.

    Source: Huang et al. 2019, "GPipe" (arXiv:1811.06965), fig. 2; order of ``torch``'s ``ScheduleGPipe``.
    """
    return [Operation("F", rank, k) for k in range(m)] + [Operation("B", rank, k) for k in range(m)]


def _one_forward_one_backward(rank: int, pp: int, m: int) -> list[Operation]:
    """pp - rank - 1 forwards to fill, then one forward and one backward in turn, then the backwards left over.

    Source: PipeDream-Flush, Narayanan et al. 2021, "Memory-Efficient Pipeline-Parallel DNN Training"
    (arXiv:2006.09503), and Narayanan et al. 2021, SC21 (arXiv:2104.04473), sec. 2.2.1; order of ``torch``'s
    ``Schedule1F1B``.
    """
    warm_up = min(m, pp - rank - 1)
    return _alternate([Operation("F", rank, k) for k in range(m)], [Operation("B", rank, k) for k in range(m)], warm_up)


def _interleaved(rank: int, pp: int, m: int, v: int) -> list[Operation]:
    """1F1B over v stages per rank: micro-batches go in rounds of pp through stage 1, then 2, … of the rank.

    The warm-up is (v - 1) pp + 2 (pp - rank - 1) chunk forwards. Source: Narayanan et al. 2021, SC21
    (arXiv:2104.04473), sec. 2.2.2; order of Megatron-LM's ``forward_backward_pipelining_with_interleaving`` and of
    ``torch``'s ``ScheduleInterleaved1F1B``.
    """
    rounds = [range(first, first + pp) for first in range(0, m, pp)]
    forwards = [Operation("F", c * pp + rank, k) for group in rounds for c in range(v) for k in group]
    backwards = [Operation("B", c * pp + rank, k) for group in rounds for c in reversed(range(v)) for k in group]
    return _alternate(forwards, backwards, min(m * v, (v - 1) * pp + 2 * (pp - rank - 1)))


def _alternate(forwards: list[Operation], backwards: list[Operation], warm_up: int) -> list[Operation]:
    steady = len(forwards) - warm_up
    pairs = zip(forwards[warm_up:], backwards[:steady], strict=True)
    return forwards[:warm_up] + [operation for pair in pairs for operation in pair] + backwards[steady:]


def _zero_bubble_v(rank: int, pp: int, m: int) -> list[Operation]:
    """Two stages per rank in a V; the weight gradients of the last backwards are put off to fill the drain.

    With m < 2 pp - 1 it is the order for 2 pp - 1 micro-batches with those that don't exist left out.
    Source: Qi et al. 2024, "Pipeline Parallelism with Controllable Memory" (arXiv:2405.15362), V-ZB, and Qi et al.
    2023, "Zero Bubble Pipeline Parallelism" (arXiv:2401.10241), sec. 6; order of ``torch``'s ``ScheduleZBVZeroBubble``.
    """
    total = max(m, 2 * pp - 1)
    down, up = rank, 2 * pp - 1 - rank  # the two stages: on the way to the tip of the V, and on the way back
    take = _NextMicroBatch()
    order = [take("F", down) for _ in range(2 * (pp - rank) - 1)]
    for _ in range(rank):
        order += [take("F", up), take("F", down)]
    for _ in range(pp - rank):
        order += [take("F", up), take("I", up), take("W", up)]
    for steady in range(total - pp):  # every micro-batch but the pp whose two backwards are left to the drain
        if 2 * pp - rank - 1 + steady < total:
            order.append(take("F", down))
        order += [take("I", down), take("W", down), take("F", up), take("I", up), take("W", up)]
    for _ in range(rank):
        order += [take("I", down), take("I", up)]
    for _ in range(pp - rank):
        order += [take("I", down), take("W", down)]
    order += [take("W", up) for _ in range(rank)]
    order += [take("W", down) for _ in range(rank)]
    return [operation for operation in order if operation.micro_batch < m]


def _dualpipe_v(rank: int, pp: int, m: int) -> list[Operation]:
    """Two stages per rank in a V; in the steady state each forward is paired with the backward of the other stage.

    The pairs are meant to run overlapped (the collectives of one under the arithmetic of the other). Here, as in
    ``torch``'s runtime, a pair is the forward and then the backward in sequence: what overlap saves belongs to the
    durations, not to the order. Source: DeepSeek-AI 2024, "DeepSeek-V3" (arXiv:2412.19437), sec. 3.2.1, cut in half
    to a V by Qi et al. (Sea AI Lab); order of github.com/deepseek-ai/DualPipe and ``torch``'s ``ScheduleDualPipeV``.
    """
    down, up = rank, 2 * pp - 1 - rank
    take = _NextMicroBatch()
    pending: deque[Operation] = deque()  # weight gradients put off, oldest first
    order: list[Operation] = []

    def backward(stage: int, put_off_weight: bool = False) -> None:
        operation = take("B", stage)
        if put_off_weight:
            pending.append(operation._replace(kind="W"))
            operation = operation._replace(kind="I")
        order.append(operation)

    def weight() -> None:
        if pending:
            order.append(pending.popleft())

    order += [take("F", down) for _ in range(2 * (pp - rank - 1))]
    for _ in range(rank + 1):
        order += [take("F", down), take("F", up)]
    for _ in range(pp - rank - 1):
        backward(up, put_off_weight=True)
        weight()
        order.append(take("F", up))
    for _ in range(m - 2 * pp + rank + 1):  # the steady state
        order.append(take("F", down))
        backward(up)
        order.append(take("F", up))
        backward(down)
    for _ in range(pp - rank - 1):
        backward(up)
        order.append(take("F", up))
        backward(down)
    # The drain: the second half of these backwards, counted one stage at a time, puts off its weight gradients.
    for turn in range(2 * (rank + 1)):
        backward(down if turn % 2 else up, put_off_weight=turn > rank)
    for _ in range(pp - rank - 1):
        weight()
        backward(down, put_off_weight=True)
    for _ in range(rank + 1):
        weight()
    return order


class _NextMicroBatch:
    """Hands out operations; each kind counts its own micro-batches on each stage."""

    def __init__(self) -> None:
        self._taken: Counter[tuple[Kind, int]] = Counter()

    def __call__(self, kind: Kind, stage: int) -> Operation:
        micro_batch = self._taken[kind, stage]
        self._taken[kind, stage] += 1
        return Operation(kind, stage, micro_batch)
