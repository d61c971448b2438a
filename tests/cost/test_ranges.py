"""The honest range of a step: wider where predictions were worse, wider still where nobody measured."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

import meshwright as mw
from meshwright.cost.ranges import regimes, unmeasured
from meshwright.sources.accuracy import load_accuracy
from meshwright.spec.accuracy import Accuracy, Spread
from meshwright.spec.plan import Plan
from meshwright.spec.rules import Job

JOB = Job(
    mw.load_model("llama-3.1-8b"), mw.load_cluster("dgx-a100-80g"), mw.load_software("torchtitan-2024"),
    mw.Training(global_batch=64, seq_len=4096),
)  # fmt: skip
PLAN = Plan(dp=8, micro_batch=1, sharding="parameters", recompute="full")
BUSY = {"compute": 10.0, "recompute": 3.0, "overhead": 0.0}
KNOWN = Accuracy(
    Spread(0.9, 1.1), {"long sequences": Spread(0.8, 1.05)}, frozenset({"a100-80g"}), frozenset({"torchtitan-2024"})
)


def test_the_widest_regime_counts_on_each_side() -> None:
    assert KNOWN.range(()) == pytest.approx((0.9, 1.1))
    assert KNOWN.range(("long sequences",)) == pytest.approx((0.8, 1.1))


def test_each_unmeasured_aspect_widens_the_logarithm_by_half() -> None:
    low, high = KNOWN.range((), 2)
    assert (math.log(low), math.log(high)) == pytest.approx((2 * math.log(0.9), 2 * math.log(1.1)))


@pytest.mark.parametrize(
    ("change", "aspects"),
    [
        ({}, 0),
        ({"cluster": mw.load_cluster("mi300x-8")}, 1),
        ({"software": mw.load_software("maxtext-2024")}, 1),
        ({"model": mw.load_model("mixtral-8x7b")}, 1),
        ({"model": mw.load_model("mixtral-8x7b"), "cluster": mw.load_cluster("mi300x-8")}, 2),
    ],
)
def test_what_no_run_had_is_counted(change: dict[str, object], aspects: int) -> None:
    assert unmeasured(KNOWN, replace(JOB, **change), PLAN) == aspects


def test_regimes_are_told_from_the_job() -> None:
    assert regimes(JOB, PLAN, BUSY, 8) == ()
    long = replace(JOB, workload=mw.Training(global_batch=8, seq_len=65536, dtype="bf16"))
    assert regimes(long, PLAN, BUSY, 1) == ("long sequences",)
    assert regimes(JOB, PLAN, {name: seconds / 1e4 for name, seconds in BUSY.items()}, 8) == ("bound by the host",)
    # 14336 / 5 = 2867.2: no whole tiles
    assert regimes(JOB, Plan(tp=5), BUSY, 8) == ("widths that fill no tile",)


def test_an_estimate_carries_the_range_of_the_catalog() -> None:
    found = mw.estimate(JOB.model, JOB.cluster, JOB.workload, PLAN, JOB.software)
    low, high = load_accuracy().range(())
    assert found.step_time_low_s == pytest.approx(low * found.step_time_s)
    assert found.step_time_high_s == pytest.approx(high * found.step_time_s)


def test_the_catalogs_ranges_come_from_hundreds_of_runs() -> None:
    accuracy = load_accuracy()
    assert accuracy.overall.rows > 500
    assert accuracy.overall.low < 1 < accuracy.overall.high
