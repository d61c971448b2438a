"""The search against brute force: every value of every field by plain loops, each legal plan priced as one flat row.

`tests/cost/test_training.py` holds the flat rows to the scalar estimate, `tests/spec/test_rules.py` the legal mask to
the list of problems.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import small_jobs as small
from small_jobs import FIELDS, Everything, everything, job, plan_of

from meshwright.choose.keeper import KEYS
from meshwright.choose.search import Found, search
from meshwright.cost.estimate import estimate
from meshwright.spec.attention_kernel import UNFUSED as UNFUSED_KERNEL
from meshwright.spec.plan import ORDERS, Plan
from meshwright.spec.rules import Job

UNEVEN = small.model(*[small.dense_layer(width) for width in (256, 2048, 256, 2048, 256, 2048, 256)])
UNFUSED = small.replace(
    small.SOFTWARE,
    attention=UNFUSED_KERNEL,
    data_overlap=False,
    transfer_overlap=False,
    selective="attention",
    scattered_pipeline_transfers=True,
    reduces_per_micro_batch=False,
    reshard_after_forward=False,
)
JOBS = {
    "dense": job(cluster=small.switches(2, 2, memory_mb=45)),
    "dense, hardly any fits": job(cluster=small.switches(2, 2, memory_mb=16)),
    "seven layers": job(small.DENSE_7, small.switches(2, 2, memory_mb=40)),
    "tied": job(small.TIED, small.switches(2, 2, memory_mb=50, host_memory=2e8), batch=4),
    "experts": job(small.EXPERTS, small.switches(2, 2, memory_mb=50), batch=4),
    "dense first, then experts": job(small.DENSE_THEN_EXPERTS, small.switches(2, 2, memory_mb=60), batch=4),
    "sliding windows": job(small.WINDOWS, small.switches(2, 2, memory_mb=40)),
    "unequal layers": job(UNEVEN, small.switches(2, 2, memory_mb=60, inner=1e9), batch=6),
    "one card per node": job(small.DENSE, small.switches(4, 1, outer=2e8, memory_mb=30)),
    "three nodes": job(small.TIED, small.switches(3, 2, outer=2e8, memory_mb=50), batch=6),
    "torus": job(cluster=small.torus(2, 2, memory_mb=40)),
    "mesh of two lengths": job(cluster=small.torus(3, 2, wrapped=False, memory_mb=30), batch=6),
    "pairs on one host": job(cluster=small.pcie_pairs(memory_mb=40)),
    "other habits": job(cluster=small.switches(2, 2, memory_mb=40), software=UNFUSED),
}
TOP = 40


@cache
def brute(name: str) -> Everything:
    return everything(JOBS[name])


@cache
def found(name: str) -> Found:
    return search(JOBS[name], JOBS[name].cluster.accelerators, {}, "throughput", TOP)


def exactly(value: Any) -> Any:
    return pytest.approx(value, rel=1e-12)


def scalar_s(of_job: Job, plan: Plan) -> float:
    return estimate(of_job.model, of_job.cluster, of_job.workload, plan, of_job.software).step_time_s


@pytest.mark.parametrize("name", JOBS)
def test_the_best_plan_is_the_fastest_of_all_that_fit(name: str) -> None:
    every = brute(name)
    assert np.count_nonzero(every.fits) > 0
    fastest = every.where(every.fits)
    best = found(name).ranked[0]
    assert best.score == exactly(fastest.seconds.min())
    assert scalar_s(JOBS[name], best.plan) == exactly(best.score)
    assert scalar_s(JOBS[name], plan_of(fastest.rows[fastest.seconds.argmin()])) == exactly(best.score)


def test_some_plans_of_these_jobs_do_not_fit() -> None:
    assert sum(not brute(name).fits.all() for name in JOBS) >= len(JOBS) - 1


@pytest.mark.parametrize("name", JOBS)
def test_the_ranking_lists_the_fastest_plans_in_order(name: str) -> None:
    every = brute(name)
    fitting = every.where(every.fits & ~left_out(JOBS[name], every))
    wanted = distinct(fitting.seconds)
    ranked = [candidate.score for candidate in found(name).ranked]
    assert ranked == sorted(ranked)
    assert len(ranked) == min(TOP, len(fitting.rows))
    ours = distinct(np.array(ranked))
    if len(ranked) == TOP:
        ours = ours[:-1]  # there may be more plans as slow as the last one
    assert ours == exactly(wanted[: len(ours)])
    assert all(candidate.memory_bytes <= every.capacity_bytes for candidate in found(name).ranked)


@pytest.mark.parametrize("name", JOBS)
def test_the_best_of_each_layout_is_its_fastest_that_fits_without_offload(name: str) -> None:
    every = brute(name)
    every = every.where(every.fits & (every.column("offload") == 0))
    layouts, inverse = np.unique(every.rows[:, :5], axis=0, return_inverse=True)
    fastest = np.full(len(layouts), np.inf)
    np.minimum.at(fastest, inverse.reshape(-1), every.seconds)
    limit = 2 * found(name).ranked[0].score
    by_layout = {degrees(candidate.plan): candidate.score for candidate in found(name).by_layout}
    near = {tuple(row): seconds for row, seconds in zip(layouts.tolist(), fastest, strict=True) if seconds <= limit}
    assert set(near) <= set(by_layout)
    for layout, seconds in near.items():
        assert by_layout[layout] <= seconds * (1 + 1e-12)
    for layout, candidate in ((degrees(each.plan), each) for each in found(name).by_layout):
        assert candidate.plan.offload != "none" or candidate.score == exactly(near[layout])


@pytest.mark.parametrize("name", JOBS)
def test_equal_plans_stand_in_the_order_of_the_stated_keys(name: str) -> None:
    ranked = found(name).ranked
    keys = [(candidate.score, *(coded(candidate.plan)[key] for key in KEYS)) for candidate in ranked]
    assert keys == sorted(keys)
    every = brute(name)
    equal = every.where(every.fits & ~left_out(JOBS[name], every) & (every.seconds <= ranked[0].score * (1 + 1e-12)))
    order = np.lexsort([equal.column(key) for key in reversed(KEYS)])
    assert coded(ranked[0].plan) == dict(zip(FIELDS, equal.rows[order[0]].tolist(), strict=True))


@pytest.mark.parametrize("objective", ["memory", "cost", "latency"])
@pytest.mark.parametrize("name", ["dense", "experts", "tied", "torus"])
def test_other_objectives_find_their_best_too(name: str, objective: str) -> None:
    every = brute(name)
    fitting = every.where(every.fits)
    best = search(JOBS[name], JOBS[name].cluster.accelerators, {}, objective, 3).ranked[0]
    if objective == "memory":
        assert best.score == exactly(fitting.bytes.min())
    else:
        assert best.step_time_s == exactly(fitting.seconds.min())


def test_where_nothing_fits_nothing_is_ranked_and_each_layout_is_named_with_what_it_needs() -> None:
    tight = job(cluster=small.switches(2, 2, memory_mb=4))
    every = everything(tight)
    assert not every.fits.any()
    nothing = search(tight, 4, {}, "throughput", 5)
    assert nothing.ranked == []
    assert {degrees(each.plan) for each in nothing.too_large} == {tuple(row) for row in every.rows[:, :5].tolist()}
    bounds = [each.lower_bound_s for each in nothing.too_large]
    assert bounds == sorted(bounds)
    for each in nothing.too_large:
        layout = (every.rows[:, :5] == degrees(each.plan)).all(axis=1)
        assert tight.cluster.accelerator.memory_bytes < each.least_bytes <= every.bytes[layout].min() * (1 + 1e-12)


@pytest.mark.parametrize("memory_mb", [9, 12, 16, 24])
def test_pinned_layers_are_priced_as_estimate_prices_them_offload_included(memory_mb: float) -> None:
    # four entries are four stages, or two ranks with two each: both are in the space at once
    tight = job(cluster=small.switches(2, 2, memory_mb=memory_mb))
    for candidate in search(tight, 4, {"layers_per_stage": (1, 1, 1, 1)}, "throughput", 20).ranked:
        priced = estimate(tight.model, tight.cluster, tight.workload, candidate.plan, tight.software)
        assert priced.problems == ()
        assert candidate.step_time_s == exactly(priced.step_time_s)
        assert candidate.memory_bytes == exactly(priced.memory_total_bytes)


def test_the_number_of_plans_priced_is_at_most_the_number_of_legal_plans() -> None:
    for name in ("dense", "torus"):
        assert TOP <= found(name).considered <= len(brute(name).rows)


# -- each named rule by itself: what it leaves out has a stand-in that is at least as fast and no larger


@pytest.mark.parametrize("name", JOBS)
@pytest.mark.parametrize("rule", ["same-placement", "same-chunk", "single-stage", "single-tensor-rank"])
def test_what_a_rule_leaves_out_has_a_stand_in_that_is_no_worse(name: str, rule: str) -> None:
    every = brute(name)
    mask, stand_ins = STAND_INS[rule](JOBS[name], every)
    position = positions(every, stand_ins)
    assert (every.seconds[position] <= every.seconds[mask] * (1 + 1e-12)).all()
    assert (every.bytes[position] <= every.bytes[mask] * (1 + 1e-12)).all()


@pytest.mark.parametrize("name", JOBS)
def test_offload_makes_no_plan_faster(name: str) -> None:
    every = brute(name)
    mask = every.column("offload") > 0
    bare = every.rows[mask].copy()
    bare[:, FIELDS.index("offload")] = 0
    assert (every.seconds[positions(every, bare)] <= every.seconds[mask] * (1 + 1e-12)).all()


def same_placement(of_job: Job, every: Everything) -> tuple[np.ndarray, np.ndarray]:
    """Orders that give each axis the same stride, axes of one rank aside, are the same placement."""
    stand_in = np.arange(24)
    first: dict[Any, int] = {}
    degrees_of = every.rows[:, [FIELDS.index(name) for name in ("tp", "cp", "dp", "pp")]]
    found_rows = every.rows.copy()
    for row in np.unique(degrees_of, axis=0):
        sizes = dict(zip(("tp", "cp", "dp", "pp"), row.tolist(), strict=True))
        first.clear()
        for code, order in enumerate(ORDERS):
            stand_in[code] = first.setdefault(tuple(axis for axis in order if sizes[axis] > 1), code)
        here = (degrees_of == row).all(axis=1)
        found_rows[here, FIELDS.index("order")] = stand_in[found_rows[here, FIELDS.index("order")]]
    mask = (found_rows != every.rows).any(axis=1)
    return mask, found_rows[mask]


def same_chunk(of_job: Job, every: Everything) -> tuple[np.ndarray, np.ndarray]:
    rows = every.rows.copy()
    rows[:, FIELDS.index("virtual_stages")] = fewest_of_rows(of_job, every)
    mask = (every.column("schedule") == 2) & (rows != every.rows).any(axis=1)
    return mask, rows[mask]


def fewest_stages(of_job: Job, pp: int, v: int) -> int:
    """Fewest virtual stages whose largest chunk is as large; where layers differ every number stands for itself."""
    layers = of_job.model.num_layers
    if v < 2 or len(of_job.model.kinds) > 1:
        return v
    largest = -(-layers // (pp * v))
    return next(fewer for fewer in range(2, v + 1) if -(-layers // (pp * fewer)) == largest)


def fewest_of_rows(of_job: Job, every: Everything) -> np.ndarray:
    sizes = range(of_job.model.num_layers + 1)
    fewest = np.array([[fewest_stages(of_job, max(pp, 1), v) for v in sizes] for pp in sizes])
    return np.asarray(fewest[every.column("pp"), every.column("virtual_stages")])


def single_stage(of_job: Job, every: Everything) -> tuple[np.ndarray, np.ndarray]:
    mask = (every.column("pp") == 1) & (every.column("schedule") != 1)
    rows = every.rows[mask].copy()
    rows[:, FIELDS.index("schedule")] = 1
    return mask, rows


def single_tensor_rank(of_job: Job, every: Everything) -> tuple[np.ndarray, np.ndarray]:
    mask = (every.column("tp") == 1) & (every.column("sequence_parallel") == 1)
    rows = every.rows[mask].copy()
    rows[:, FIELDS.index("sequence_parallel")] = 0
    return mask, rows


STAND_INS = {
    "same-placement": same_placement,
    "same-chunk": same_chunk,
    "single-stage": single_stage,
    "single-tensor-rank": single_tensor_rank,
}


def left_out(of_job: Job, every: Everything) -> np.ndarray:
    """Plans that a rule other than `same-placement` leaves out."""
    schedule = every.column("schedule")
    offloaded = every.column("offload") > 0
    bare = every.rows.copy()
    bare[:, FIELDS.index("offload")] = 0
    needless = offloaded & every.fits[positions(every, bare)]
    return np.asarray(
        ((schedule == 2) & (fewest_of_rows(of_job, every) != every.column("virtual_stages")))
        | ((every.column("pp") == 1) & (schedule != 1))
        | ((every.column("tp") == 1) & (every.column("sequence_parallel") == 1))
        | needless
    )


# -- helpers


def positions(every: Everything, rows: np.ndarray) -> np.ndarray:
    """Where each of `rows` stands among all plans."""
    known = codes(every.rows)
    order = np.argsort(known)
    place = order[np.minimum(np.searchsorted(known[order], codes(rows)), len(known) - 1)]
    assert (every.rows[place] == rows).all()
    return place


def codes(rows: np.ndarray) -> np.ndarray:
    code = np.zeros(len(rows), dtype=np.int64)
    for column in rows.T:
        code = code * 25 + column  # no field of these jobs exceeds 24; 25 ** 14 wraps around without harm
    return code


def distinct(seconds: np.ndarray) -> list[float]:
    """Sorted times, those that differ by rounding only taken as one."""
    ordered = np.sort(seconds)
    return ordered[np.concatenate([[True], np.diff(ordered) > 1e-11 * ordered[1:]])].tolist()


def degrees(plan: Plan) -> tuple[int, ...]:
    return plan.tp, plan.cp, plan.ep, plan.dp, plan.pp


def coded(plan: Plan) -> dict[str, int]:
    return {name: int(array) for name, array in plan.table().arrays().items()}
