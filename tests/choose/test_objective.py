"""What is best, and on how many accelerators."""

from __future__ import annotations

import pytest
import small_jobs as small
from small_jobs import everything, job

from meshwright.choose import Ranking, choose
from meshwright.choose.objective import cluster_sizes, score, sizes
from meshwright.spec.cluster import Cluster
from meshwright.spec.rules import Job


def ranked(of_job: Job, objective: str) -> Ranking:
    return choose(of_job.model, of_job.cluster, of_job.workload, of_job.software, objective=objective, top=3)


@pytest.mark.parametrize(
    ("cluster", "counts"),
    [
        (small.switches(2, 4), [1, 2, 3, 4, 8]), (small.switches(1, 6), [1, 2, 3, 4, 5, 6]),
        (small.switches(3, 2), [1, 2, 4, 6]),
        (small.switches(1, 1), [1]), (small.torus(2, 2), [4]), (small.pcie_pairs(), [1, 2, 4]),
    ],
)  # fmt: skip
def test_parts_of_a_cluster_are_shares_of_a_node_and_whole_nodes(cluster: Cluster, counts: list[int]) -> None:
    assert cluster_sizes(cluster) == counts
    assert [cluster.part(count).accelerators for count in counts] == counts
    assert sizes("throughput", job(cluster=cluster)) == counts[::-1]


def test_fewest_starts_where_weights_and_gradients_can_fit() -> None:
    roomy, tight = (job(cluster=small.switches(4, 2, memory_mb=mb)) for mb in (1000, 4))
    copy_mb = 4 * roomy.model.num_parameters / 1e6
    assert sizes("fewest", roomy) == [1, 2, 4, 6, 8]
    assert sizes("fewest", tight) == [size for size in (1, 2, 4, 6, 8) if 4 * size >= copy_mb] != [1, 2, 4, 6, 8]


def test_a_batch_that_can_not_fill_the_cluster_leaves_as_few_idle_as_it_can() -> None:
    of_job = job(cluster=small.switches(5, 2, memory_mb=1000), batch=8)
    found = choose(of_job.model, of_job.cluster, of_job.workload, of_job.software, fixed={"pp": 1, "tp": 1, "cp": 1})
    assert found.accelerators_used == 8


def test_scores_are_seconds_bytes_or_accelerator_seconds() -> None:
    assert score("throughput", 2.0, 5.0, 8) == score("latency", 2.0, 5.0, 8) == score("fewest", 2.0, 5.0, 8) == 2.0
    assert score("memory", 2.0, 5.0, 8) == 5.0
    assert score("cost", 2.0, 5.0, 8) == 16.0


@pytest.mark.parametrize("memory_mb", [12, 20, 40, 120])
def test_fewest_is_the_smallest_part_on_which_some_plan_fits(memory_mb: float) -> None:
    of_job = job(cluster=small.switches(2, 2, memory_mb=memory_mb))
    fitting = [count for count in (1, 2, 4) if everything(of_job, count, order=[0]).fits.any()]
    found = ranked(of_job, "fewest")
    if fitting:
        assert found.accelerators_used == fitting[0]
        assert found.idle_accelerators == 4 - fitting[0]
        assert found.best is not None
        assert found.best.plan.world_size == fitting[0]
    else:
        assert found.best is None


def test_some_of_these_need_one_some_two_some_four_accelerators() -> None:
    used = {ranked(job(cluster=small.switches(2, 2, memory_mb=mb)), "fewest").accelerators_used for mb in (20, 40, 120)}
    assert len(used) >= 2


@pytest.mark.parametrize("outer", [5e8, 1e7])
def test_cost_is_the_fewest_accelerator_seconds_over_all_parts(outer: float) -> None:
    of_job = job(cluster=small.switches(2, 2, memory_mb=40, outer=outer))
    costs = {}
    for count in (1, 2, 4):
        every = everything(of_job, count, order=[0, 6, 23])
        if every.fits.any():
            costs[count] = count * every.seconds[every.fits].min()
    found = ranked(of_job, "cost")
    assert found.best is not None
    assert found.accelerators_used * found.best.step_time_s == pytest.approx(min(costs.values()), rel=1e-12)
    assert found.accelerators_used == min(costs, key=costs.__getitem__)


def test_cost_leaves_accelerators_idle_where_they_do_not_pay() -> None:
    slow = job(cluster=small.switches(2, 2, memory_mb=60, outer=1e6, inner=1e6))
    assert ranked(slow, "cost").accelerators_used < 4
    assert ranked(slow, "throughput").accelerators_used == 4


def test_memory_leaves_the_most_headroom() -> None:
    of_job = job(cluster=small.switches(2, 2, memory_mb=60))
    best, fastest = ranked(of_job, "memory").best, ranked(of_job, "throughput").best
    assert best is not None
    assert fastest is not None
    every = everything(of_job)
    assert best.memory_total_bytes == pytest.approx(every.bytes.min(), rel=1e-12)
    assert best.memory_total_bytes < fastest.memory_total_bytes
    assert best.step_time_s > fastest.step_time_s


def test_latency_is_throughput_for_training() -> None:
    of_job = job(cluster=small.switches(2, 2, memory_mb=45))
    one, other = ranked(of_job, "latency"), ranked(of_job, "throughput")
    assert [each.plan for each in one.ranked] == [each.plan for each in other.ranked]
