"""The guide, "When more is slower": more accelerators at a fixed batch."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import pytest

import meshwright as mw

NODES = (1, 2, 4, 8, 16, 32, 64)
BATCH, TOKENS = 64, 4096


@cache
def best(nodes: int) -> mw.Estimate:
    """Llama 2 7B, 64 sequences a step whatever the number of DGX H100 nodes."""
    found = mw.choose("llama-2-7b", f"{nodes}xdgx-h100", mw.Training(BATCH, TOKENS), top=1).best
    assert found is not None
    return found


def waiting(found: mw.Estimate) -> float:
    """Share of the step in which an accelerator waits for others: exposed communication and the bubble."""
    return found.communication_share + found.time_s["pipeline_bubble"] / found.step_time_s


def test_the_time_spent_waiting_rises_with_the_accelerators() -> None:
    shares = [waiting(best(nodes)) for nodes in NODES]
    # the plan changes its kind on the way, which may bring a share down a little
    assert all(after > before - 0.02 for before, after in pairwise(shares))
    assert shares[0] < 0.05
    assert shares[-1] > 0.4


def test_the_throughput_of_each_accelerator_collapses() -> None:
    """64 sequences are at most one for each of 64 accelerators; beyond, a sequence itself must be divided, by tensor,
    context or pipeline parallel. At 512 the computation is 6 x 6.7e9 x 262,144 / (512 x 989e12) = 21 ms at the peak."""
    rates = [best(nodes).tokens_per_s_per_gpu for nodes in NODES]
    assert all(after < before * 1.01 for before, after in pairwise(rates))
    assert rates[1] > 0.9 * rates[0]
    assert rates[-1] < 0.5 * rates[0]
    # each doubling loses more than the one before the first that loses a tenth
    losses = [1 - after / before for before, after in pairwise(rates)]
    assert max(losses[:2]) < 0.1 < max(losses[3:])


def test_with_data_parallel_alone_the_computation_is_divided_and_the_traffic_is_not() -> None:
    """Each rank reduces 4 bytes and gathers 2 of each of 6.74e9 parameters, however many ranks there are: 40 GB less a
    rank's own part, while its share of the 64 sequences falls from 8 to 1."""
    plan = mw.Plan(sharding="optimizer", recompute="selective")
    rates = {}
    for ranks in (8, 16, 32, 64):
        job = mw.Training(BATCH, TOKENS)
        found = mw.estimate("llama-2-7b", f"{ranks // 8}xdgx-h100", job, plan.with_(dp=ranks))
        sent = sum(call.wire_bytes_per_step for call in found.traffic if call.axis == "dp")
        assert sent == pytest.approx((2 + 4) * (ranks - 1) / ranks * 6.738e9, rel=0.01)
        rates[ranks] = found.tokens_per_s_per_gpu, found.time_s["compute"]
    for ranks in (16, 32, 64):
        assert rates[ranks][1] == pytest.approx(rates[8][1] * 8 / ranks, rel=0.15)
        assert rates[ranks][0] < rates[ranks // 2][0]
