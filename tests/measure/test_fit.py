"""Constants fitted to step times that were made with known ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from runs_made import made_runs, measured_with

import meshwright as mw
from meshwright.measure.constants import Constant
from meshwright.measure.fit import derivatives, fit, source_weights
from meshwright.measure.folds import by_group, by_number, cross_validate
from meshwright.measure.places import AttentionEfficiency, HostOverhead, LinkEfficiency, MatmulEfficiency
from meshwright.measure.repricing import log_ratios

MATMUL = Constant("matmul", MatmulEfficiency(("bf16", "fp16")), 0.748, 0.1, 0.0, 1.0)
FABRIC = Constant("fabric", LinkEfficiency("infiniband-hdr"), 0.533, 0.3, 0.0, 1.0)
HOST = Constant("host", HostOverhead(), 1.0, 0.5, 0.1, 100.0)
THREE = (MATMUL, FABRIC, HOST)
ELSEWHERE = Constant("elsewhere", LinkEfficiency("no such level"), 0.5, 0.3, 0.0, 1.0)
TRUE = [0.9, 0.7, 1.6]


def test_a_run_is_priced_as_estimate_prices_it() -> None:
    np.testing.assert_allclose(log_ratios(made_runs()), 0.0, atol=1e-12)


def test_known_constants_are_found_again() -> None:
    runs = measured_with(made_runs(), THREE, TRUE)
    found = fit(runs, [replace(each, spread=10.0) for each in THREE], weights=np.ones(len(runs)))
    assert found.settled
    np.testing.assert_allclose(found.factors, TRUE, rtol=0.01)
    np.testing.assert_allclose(found.after, 0.0, atol=0.005)
    assert np.max(np.abs(found.before)) > 0.1


def test_noise_and_wild_rows_move_them_little() -> None:
    """Four noisy measurements of each job; two of all rows are five times too long and half as long."""
    runs = tuple(run for seed in range(4) for run in measured_with(made_runs(), THREE, TRUE, 0.03, seed))
    wild = tuple(
        replace(run, measured_s=run.measured_s * (5.0 if number == 3 else 0.5 if number == 20 else 1.0))
        for number, run in enumerate(runs)
    )
    found = fit(wild, THREE, weights=np.ones(len(wild)))
    np.testing.assert_allclose(found.factors[0], TRUE[0], rtol=0.03)
    np.testing.assert_allclose(found.factors[1], TRUE[1], rtol=0.12)
    # least squares without the robust loss would be drawn away by the wild rows
    assert np.median(np.abs(found.after)) < 0.03


def test_a_constant_that_no_run_informs_does_not_move() -> None:
    runs = measured_with(made_runs(), THREE, TRUE)
    found = fit(runs, (*THREE, ELSEWHERE), weights=np.ones(len(runs)))
    assert found.factors[3] == 1.0
    assert not found.informed[3]
    assert found.standard_errors[3] == pytest.approx(ELSEWHERE.spread)
    assert found.trust[3] == pytest.approx(0.0, abs=1e-9)
    alone = fit(runs, THREE, weights=np.ones(len(runs)))
    np.testing.assert_allclose(found.factors[:3], alone.factors, rtol=1e-6)


@pytest.mark.parametrize(("share", "bound"), [(1.6, 1.0), (0.3, 0.6)])
def test_no_constant_passes_its_bounds(share: float, bound: float) -> None:
    """Runs that ask for 120% of the peak, or for less than the least."""
    tight = replace(MATMUL, spread=10.0, low=0.6)
    runs = tuple(replace(run, measured_s=run.measured_s / share) for run in made_runs())
    found = fit(runs, (tight,), weights=np.ones(len(runs)))
    read = MATMUL.place.read(runs[0].cluster, runs[0].software)
    assert read is not None
    assert read * found.factors[0] == pytest.approx(bound, rel=1e-6)


def test_the_order_of_the_rows_does_not_matter() -> None:
    runs = measured_with(made_runs(), THREE, TRUE, 0.05)
    forward, backward = fit(runs, THREE), fit(runs[::-1], THREE)
    np.testing.assert_allclose(forward.factors, backward.factors, rtol=1e-6)
    folds = cross_validate(runs, forward, by_number(runs, 4))
    other = cross_validate(runs[::-1], backward, by_number(runs[::-1], 4))
    np.testing.assert_allclose(folds.left_out, other.left_out[::-1], atol=1e-5)


def test_rows_given_twice_move_the_same_way_and_no_less() -> None:
    runs = measured_with(made_runs(), THREE, TRUE, 0.02)
    once = np.log(fit(runs, THREE, weights=np.ones(12)).factors)
    twice = np.log(fit(runs * 2, THREE, weights=np.ones(24)).factors)
    assert np.array_equal(np.sign(once), np.sign(twice))
    assert abs(twice[0]) >= abs(once[0]) - 1e-3


def test_one_row_moves_a_constant_by_part_of_what_it_asks_for() -> None:
    """With one row the step is spread² s² / (spread² s² + noise²) of the whole, s the slope: the normal posterior."""
    run = made_runs()[1]
    off = 0.1
    measured = replace(run, measured_s=run.measured_s * np.exp(off))
    slope = derivatives([run], (MATMUL,), np.ones(1))[0, 0]
    found = fit([measured], (MATMUL,), weights=np.ones(1))
    part = (MATMUL.spread * slope) ** 2 / ((MATMUL.spread * slope) ** 2 + found.noise**2)
    assert slope * np.log(found.factors[0]) == pytest.approx(part * off, rel=0.03)
    assert found.trust[0] == pytest.approx(part, abs=0.02)


def test_slopes_are_those_of_central_differences() -> None:
    runs = made_runs()
    slopes = derivatives(runs, THREE, np.ones(3))
    for column in range(3):
        factors = np.ones((2, 3))
        factors[:, column] = np.exp([0.01, -0.01])
        central = (log_ratios(runs, THREE, factors[0]) - log_ratios(runs, THREE, factors[1])) / 0.02
        np.testing.assert_allclose(slopes[:, column], central, atol=0.02)
    assert np.all(slopes[:, 0] <= 0)  # better matmuls, shorter steps


@pytest.mark.parametrize(("constants", "quick"), [(THREE, False), (THREE[:2], True)])
def test_leaving_a_group_out_is_a_fit_without_it(constants: tuple[Constant, ...], quick: bool) -> None:
    runs = measured_with(made_runs(), THREE, TRUE, 0.03)
    runs = tuple(replace(run, group=f"g{number % 3}") for number, run in enumerate(runs))
    weights = np.ones(len(runs))
    full = fit(runs, constants, weights=weights)
    found = cross_validate(runs, full, by_group(runs), quick=quick)
    for group in ("g0", "g1", "g2"):
        kept = tuple(run for run in runs if run.group != group)
        refit = fit(kept, constants, weights=np.ones(len(kept)))
        np.testing.assert_allclose(found.factors[group], refit.factors, rtol=0.01)
        out = [number for number, run in enumerate(runs) if run.group == group]
        expected = log_ratios([runs[number] for number in out], constants, refit.factors)
        np.testing.assert_allclose(found.left_out[out], expected, atol=0.01)


def test_folds_are_dealt_evenly_whatever_the_order() -> None:
    runs = made_runs()
    keys = by_number(runs, 5)
    assert sorted(keys.count(key) for key in set(keys)) == [2, 2, 2, 3, 3]
    assert by_number(runs[::-1], 5) == keys[::-1]


def test_a_source_of_n_rows_counts_as_the_root_of_n() -> None:
    runs = tuple(replace(run, group="many" if number else "one") for number, run in enumerate(made_runs()))
    weights = source_weights(runs)
    assert weights[0] == 1.0
    assert weights[1:].sum() == pytest.approx(np.sqrt(11))


def test_an_attention_kernel_moves_only_the_rows_that_use_it() -> None:
    a100, h100 = mw.load_cluster("dgx-a100-80g"), mw.load_cluster("dgx-h100")
    software = mw.load_software("torchtitan-2024")
    place = AttentionEfficiency(software.attention.name, "hopper")
    assert place.read(a100, software) is None
    before = place.read(h100, software)
    _, changed = place.scaled(h100, software, 1.1)
    assert before is not None
    assert place.read(h100, changed) == pytest.approx(1.1 * before)
    assert changed.attention.share("ampere") == software.attention.share("ampere")


def test_matmuls_above_the_table_take_from_what_is_not_sustained() -> None:
    """A table holds shares up to 1: what training reaches beyond it raises the share sustained, other dtypes stay."""
    cluster = mw.load_cluster("dgx-h100")
    software = mw.load_software()
    old = cluster.accelerator
    changed, _ = MatmulEfficiency(("bf16", "fp16")).scaled(cluster, software, 1.5)
    new = changed.accelerator
    assert new.matmul_share("bf16") == pytest.approx(1.5 * old.matmul_share("bf16"))
    assert new.matmul_share("fp8") == pytest.approx(old.matmul_share("fp8"))
    assert max(new.matmul_efficiency.values()) <= 1.0 + 1e-12
    assert new.sustained <= 1.0


def test_a_link_that_reduces_in_its_switch_moves_with_both_figures() -> None:
    cluster, software = mw.load_cluster("dgx-h100"), mw.load_software()
    place = LinkEfficiency("nvlink")
    before = place.read(cluster, software)
    changed, _ = place.scaled(cluster, software, 0.9)
    assert before is not None
    assert place.read(changed, software) == pytest.approx(0.9 * before)
    level, new = cluster.levels[0], changed.levels[0]
    assert new.efficiency == pytest.approx(0.9 * level.efficiency)
    assert new.in_switch_bandwidth_share == pytest.approx(0.9 * level.in_switch_bandwidth_share)
