"""Idle time, exposed transfers and held activations of a pipeline schedule, in closed form.

Every argument is a scalar or an array and they broadcast. ``forward_s``, ``input_grad_s`` and ``weight_grad_s`` are
what one rank spends on one micro-batch, its virtual stages together; recompute belongs to ``input_grad_s``.
``transfer_s`` is one crossing from a stage to the next: asynchronous, so that only the receiver waits.

A step takes ``num_micro_batches * (forward_s + input_grad_s + weight_grad_s) + bubble_s + transfer_exposed_s``.
Stages are balanced here except in ``step_s_uneven``. Each formula is the longest path through the order of
``program.schedules``, found by replaying it on symbols; ``simulate.pipeline.replay`` is what it must equal.
Arguments that break a schedule's rules (``program.schedules.check``) give numbers without meaning.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from meshwright.cost.v_schedules import Array, Count, count, dualpipe_v, seconds, zero_bubble_v
from meshwright.spec.plan import DUALPIPE_V, INTERLEAVED, ZERO_BUBBLE_V


def bubble_s(
    schedule_code: ArrayLike,
    pp: ArrayLike,
    num_micro_batches: ArrayLike,
    virtual_stages: ArrayLike,
    forward_s: ArrayLike,
    input_grad_s: ArrayLike,
    weight_grad_s: ArrayLike,
    transfer_s: ArrayLike = 0.0,
) -> Array:
    """Seconds per step that a rank is idle if transfers take no time (``transfer_s`` is there for symmetry only).

    With p ranks, v stages each, F, I, W the seconds above and f, i, w = F/v, I/v, W/v:

    - gpipe, 1f1b: (p - 1) (F + I + W). Huang et al. 2019; Narayanan et al. 2021 (SC21), sec. 2.2.1.
    - interleaved: (p - 1) (F + I + W) / v. Narayanan et al. 2021 (SC21), sec. 2.2.2.
    - zero-bubble-v from m = 2p - 1 on, with n = p - 1 > 0: the largest of n i; 2n (i - w); (2n - 1) f - (n - 1) i;
      i + (n - 1) w; f + (n - 1) w; 2n f - n i - w; 2n f - (2n + 1) w; (2n - 1) f + i - 2n w.
      See ``v_schedules.zero_bubble_v``.
    - dualpipe-v, n = p - 1: the largest of n f; n (f + i - w); 2n i - n w - f; n i - f; 2n (f - w); n (2f - i - w).

    The step is measured from its start to the end of the last rank. Zero-bubble papers measure each rank from its own
    first operation to its last, and so leave n i out.

    All are exact, for any durations, except zero-bubble-v with m < 2p - 1: exact for 0.8 F <= I <= 3 F and
    0.5 F <= W <= 1.2 F, otherwise too short by up to 7 % of the step (durations up to 12 times apart).
    """
    return _idle_s(schedule_code, pp, num_micro_batches, virtual_stages, forward_s, input_grad_s, weight_grad_s, 0.0)


def transfer_exposed_s(
    schedule_code: ArrayLike,
    pp: ArrayLike,
    num_micro_batches: ArrayLike,
    virtual_stages: ArrayLike,
    forward_s: ArrayLike,
    input_grad_s: ArrayLike,
    weight_grad_s: ArrayLike,
    transfer_s: ArrayLike,
) -> Array:
    """Seconds per step by which transfers lengthen the step beyond ``bubble_s``; t is one crossing.

    - gpipe: 2 (p - 1) t, exact: they show in fill and drain only.
    - 1f1b: 2 (N - floor(N / p)) t with N = m + p - 2, exact: about 2 t (p - 1) / p per micro-batch, because in the
      steady state every rank waits for its neighbours' answer.
    - interleaved: 2 (p v - 1) t, however many micro-batches, exact up to t = F / v. Beyond, a crossing outlasts the
      forward that hides it and some is exposed for each micro-batch: too short by up to 3 % of the step at t = 3 F / v.
    - zero-bubble-v and dualpipe-v: the t of the longest path, about 3 to 6 (p - 1) t, however many micro-batches, until
      a crossing outlasts f + w or i + w (zero-bubble-v), f (dualpipe-v). Exact up to t = 3 F / v for durations as
      above, except zero-bubble-v with p < m < 2p - 1: too short by up to 0.5 % of the step.
    """
    arguments = (schedule_code, pp, num_micro_batches, virtual_stages, forward_s, input_grad_s, weight_grad_s)
    return waits_s(*arguments, transfer_s)[1]


def waits_s(
    schedule_code: ArrayLike,
    pp: ArrayLike,
    num_micro_batches: ArrayLike,
    virtual_stages: ArrayLike,
    forward_s: ArrayLike,
    input_grad_s: ArrayLike,
    weight_grad_s: ArrayLike,
    transfer_s: ArrayLike,
) -> tuple[Array, Array]:
    """(``bubble_s``, ``transfer_exposed_s``) in one go."""
    arguments = (schedule_code, pp, num_micro_batches, virtual_stages, forward_s, input_grad_s, weight_grad_s)
    bubble = _idle_s(*arguments, 0.0)
    return bubble, _idle_s(*arguments, transfer_s) - bubble


def step_s_uneven(
    schedule_code: ArrayLike,
    pp: ArrayLike,
    num_micro_batches: ArrayLike,
    virtual_stages: ArrayLike,
    forward_s: ArrayLike,
    input_grad_s: ArrayLike,
    weight_grad_s: ArrayLike,
    transfer_s: ArrayLike,
    mean_s: ArrayLike,
) -> Array:
    """Seconds per step if ranks are unequal.

    forward_s, input_grad_s, weight_grad_s: of the slowest rank, per micro-batch; mean_s: all three together, averaged
    over the ranks.

    m slowest + max(bubble - p (slowest - mean) / rounds, 0) + transfers, where bubble and transfers are those of p
    ranks like the slowest, and rounds is v for interleaved, else 1. For gpipe and 1f1b that is the sum over all stages
    plus (m - 1) times the slowest. Exact with equal ranks, for gpipe with stages whose three times are in proportion,
    and for 1f1b if the last stage is the slowest as well. Error against replay (1,250 steps per schedule; 2 to 12
    ranks; stages varied by 10 or 30 %, or one heavier by 10 to 30 %), 5th, 50th, 95th percentile: 1f1b 0, +0.7, +5.1 %
    (never too short); interleaved -1.9, +0.1, +4.2 %; zero-bubble-v -2.0, +0.1, +2.4 %; dualpipe-v -1.7, +0.8, +3.1 %.
    """
    arguments = (schedule_code, pp, num_micro_batches, virtual_stages, forward_s, input_grad_s, weight_grad_s)
    slowest_s = seconds(forward_s) + seconds(input_grad_s) + seconds(weight_grad_s)
    idle_s = idle_uneven_s(schedule_code, pp, virtual_stages, bubble_s(*arguments), slowest_s, mean_s)
    return np.asarray(count(num_micro_batches) * slowest_s + idle_s + transfer_exposed_s(*arguments, transfer_s))


def idle_uneven_s(
    schedule_code: ArrayLike,
    pp: ArrayLike,
    virtual_stages: ArrayLike,
    balanced_s: ArrayLike,
    slowest_s: ArrayLike,
    mean_s: ArrayLike,
) -> Array:
    """The idle time of ``step_s_uneven``: ``balanced_s`` is the bubble of ranks that are all like the slowest."""
    rounds = np.where(np.asarray(schedule_code) == INTERLEAVED, virtual_stages, 1)
    return np.asarray(np.maximum(seconds(balanced_s) - count(pp) * (seconds(slowest_s) - seconds(mean_s)) / rounds, 0))


def pipeline_efficiency(
    schedule_code: ArrayLike, pp: ArrayLike, num_micro_batches: ArrayLike, virtual_stages: ArrayLike
) -> Array:
    """Busy share of a rank from the schedule alone, with input and weight gradient as long as the forward.

    m / (m + p - 1) for gpipe and 1f1b, m v / (m v + p - 1) for interleaved (Narayanan et al. 2021, SC21, sec. 2.2),
    6 m / (6 m + p - 1) for the V schedules from m = 2p - 1 on.
    """
    work = 3.0 * count(num_micro_batches)
    idle = bubble_s(schedule_code, pp, num_micro_batches, virtual_stages, 1.0, 1.0, 1.0)
    return np.asarray(work / (work + idle))


def _idle_s(
    schedule_code: ArrayLike,
    pp: ArrayLike,
    num_micro_batches: ArrayLike,
    virtual_stages: ArrayLike,
    forward_s: ArrayLike,
    input_grad_s: ArrayLike,
    weight_grad_s: ArrayLike,
    transfer_s: ArrayLike,
) -> Array:
    p, m, v = count(pp), count(num_micro_batches), count(virtual_stages)
    f, i, w = seconds(forward_s) / v, seconds(input_grad_s) / v, seconds(weight_grad_s) / v
    t = np.where(p > 1, seconds(transfer_s), 0.0)
    turns = m + p - 2
    return _by_schedule(
        schedule_code,
        (p - 1) * (f + i + w + 2 * t),
        (p - 1) * (f + i + w) + 2 * (turns - turns // p) * t,
        _interleaved(p, m, v, f, i + w, t),
        _only(ZERO_BUBBLE_V, schedule_code, zero_bubble_v, p, m, f, i, w, t),
        _only(DUALPIPE_V, schedule_code, dualpipe_v, p, m, f, i, w, t),
    )


def _only(known: int, schedule_code: ArrayLike, paths: Callable[..., Array], *arguments: Array | Count) -> Array:
    """``paths`` where the schedule is ``known``, 0 elsewhere: long formulas aren't evaluated for nothing."""
    mask = np.asarray(schedule_code) == known
    if mask.ndim == 0 or not mask.any():
        return paths(*arguments) if mask.any() else np.zeros(())
    shape = np.broadcast_shapes(mask.shape, *(np.shape(each) for each in arguments))
    mask = np.broadcast_to(mask, shape)
    result = np.zeros(shape)
    result[mask] = paths(*(np.broadcast_to(each, shape)[mask] for each in arguments))
    return result


def _by_schedule(schedule_code: ArrayLike, *values: ArrayLike) -> Array:
    code = np.asarray(schedule_code)
    result: ArrayLike = np.nan
    for known, value in enumerate(values):
        chosen = code == known
        if chosen.all():
            return np.broadcast_to(value, np.broadcast_shapes(code.shape, *(np.shape(each) for each in values)))
        if chosen.any():
            result = np.where(chosen, value, result)
    return np.asarray(result)


def _interleaved(p: Count, m: Count, v: Count, f: Array, b: Array, t: Array) -> Array:
    rounds = m // p
    slower_turns = (rounds * (p - 1) - (rounds == 1)) // 2
    return np.asarray(
        (p - 1) * (f + b)
        + 2 * (p * v - 1) * t
        + (m - p) * (v - 1) * np.maximum(t - np.minimum(f, b), 0)
        + slower_turns * np.maximum(2 * t - f - b, 0)
    )


def in_flight(
    schedule_code: ArrayLike, pp: ArrayLike, num_micro_batches: ArrayLike, virtual_stages: ArrayLike, rank: ArrayLike
) -> Count:
    """Most chunk-micro-batches whose activations a rank holds at once; a chunk is 1 / virtual_stages of its layers.

    gpipe m; 1f1b min(m, p - rank); interleaved min(m v, 2 (p - rank - 1) + (v - 1) p + 1) (Narayanan et al. 2021,
    SC21, sec. 2.2); zero-bubble-v min(2 p, m + min(m, rank + 1)); dualpipe-v 2 p + 1. All exact.
    """
    p, m, v, r = count(pp), count(num_micro_batches), count(virtual_stages), count(rank)
    return _by_schedule(
        schedule_code,
        m,
        np.minimum(m, p - r),
        np.minimum(m * v, 2 * (p - r - 1) + (v - 1) * p + 1),
        np.minimum(2 * p, m + np.minimum(m, r + 1)),
        2 * p + 1,
    ).astype(np.int64)


def drain(
    schedule_code: ArrayLike, pp: ArrayLike, num_micro_batches: ArrayLike, virtual_stages: ArrayLike, rank: ArrayLike
) -> tuple[Count, Count]:
    """(in flight, waiting for their weight gradient) of a rank when most wait for their weight gradient.

    zero-bubble-v (p - 1 - rank, 2 rank + 1), dualpipe-v (p - 1 - rank, rank + 1), others (``in_flight``, 0); if only
    one waits, which is so on rank 0, then amid the steady state. A rank holds most here, not at its ``in_flight``, only
    if a unit keeps more for its weight gradient than between forward and backward, as under recompute.
    Exact, except zero-bubble-v with p < m < 2p - 1, where neither number is too small.
    """
    p, m, r = count(pp), count(num_micro_batches), count(rank)
    peak = in_flight(schedule_code, pp, num_micro_batches, virtual_stages, rank)
    turned = np.minimum(r, np.maximum(m - p, 0))
    waiting = _by_schedule(schedule_code, 0, 0, 0, 2 * turned + 1, r + 1).astype(np.int64)
    steady = _by_schedule(schedule_code, m, m, m, peak - 1, np.where(p > 1, 2 * p - 1, 0)).astype(np.int64)
    return np.select([waiting == 0, waiting == 1], [peak, steady], p - 1 - r), waiting
