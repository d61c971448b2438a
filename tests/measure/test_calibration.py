"""A cluster calibrated on runs whose times were made on a cluster that a test chose."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import meshwright as mw
from meshwright.measure.calibration import Calibration
from meshwright.sources.cluster_files import cluster_content

GIVEN = "8xdgx-a100-80g"
COLUMNS = (
    "row_id,model,gpus_total,tp,dp,micro_batch,global_batch_seqs,seq_len,recompute,zero_stage,sp,dtype,date,step_time_s"
)
JOBS = (
    (8, 1, 8, 4, 64, "none"), (16, 1, 16, 1, 16, "none"), (32, 1, 32, 2, 64, "none"), (64, 1, 64, 1, 64, "none"),
    (64, 1, 64, 4, 1024, "full"), (64, 8, 8, 4, 64, "none"), (32, 4, 8, 2, 64, "none"), (64, 2, 32, 2, 256, "full"),
)  # fmt: skip


def slower(cluster: mw.Cluster, matmul: float = 1.0, fabric: float = 1.0) -> mw.Cluster:
    """The cluster with slower matmuls and a slower network."""
    group = cluster.groups[0]
    table = {dtype: share * matmul for dtype, share in group.accelerator.matmul_efficiency.items()}
    levels = tuple(
        replace(level, efficiency=level.efficiency * fabric) if level.kind == "fabric" else level
        for level in cluster.levels
    )
    accelerator = replace(group.accelerator, matmul_efficiency=table)
    return replace(cluster, groups=(replace(group, accelerator=accelerator),), levels=levels)


def runs_file(folder: Path, true: mw.Cluster, jobs: Sequence[int] = range(len(JOBS)), noise: float = 0.0) -> Path:
    """A file of runs as they would be measured on `true`."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS.split(","))
    shaken = np.random.default_rng(1).normal(0, noise, len(JOBS)) if noise else np.zeros(len(JOBS))
    for job in jobs:
        gpus, tp, dp, micro, batch, recompute = JOBS[job]
        plan = mw.Plan(tp=tp, dp=dp, micro_batch=micro, recompute=recompute, sharding="none", sequence_parallel=tp > 1)
        found = mw.estimate("gpt3-1.3b", true.part(gpus), mw.Training(batch, 2048), plan)
        seconds = found.step_time_s * float(np.exp(shaken[job]))
        cells = [f"R{job}", "gpt3-1.3b", gpus, tp, dp, micro, batch, 2048, recompute, 0, "yes" if tp > 1 else "no"]
        writer.writerow([*cells, "bf16", "2026-05", repr(seconds)])
    path = folder / "runs.csv"
    path.write_text(text.getvalue())
    return path


def value(found: Calibration, name: str) -> float:
    return next(each.value for each in found.constants if each.name.startswith(name))


@pytest.fixture(scope="module")
def truth() -> mw.Cluster:
    return slower(mw.load_cluster(GIVEN), 0.92, 0.7)


@pytest.fixture(scope="module")
def found(truth: mw.Cluster, tmp_path_factory: pytest.TempPathFactory) -> Calibration:
    return mw.calibrate(runs_file(tmp_path_factory.mktemp("runs"), truth, noise=0.01), GIVEN)


def test_slower_matmuls_and_a_slower_network_are_found(found: Calibration, truth: mw.Cluster) -> None:
    """The prior holds them back a little: they come most of the way, and not further."""
    for name, true in (
        ("matmul_efficiency.bf16", truth.accelerator.matmul_share("bf16")),
        ("levels.infiniband-hdr", truth.levels[-1].efficiency),
    ):
        constant = next(each for each in found.constants if each.name.startswith(name))
        way = (constant.value - constant.before) / (true - constant.before)
        assert 0.5 < way < 1.05, (name, way)
    assert found.cluster.accelerator.matmul_share("bf16") == pytest.approx(value(found, "matmul"), rel=1e-3)
    assert found.cluster.accelerator.matmul_share("fp16") == pytest.approx(value(found, "matmul"), rel=1e-3)
    assert found.cluster.levels[-1].efficiency == pytest.approx(value(found, "levels.infiniband-hdr"), rel=1e-3)


def test_left_out_runs_are_predicted_better(found: Calibration) -> None:
    assert found.better
    assert found.jobs == found.folds == len(JOBS)
    assert found.cross_validated is not None
    assert found.cross_validated.median is not None
    assert found.before.median is not None
    assert found.after.median is not None
    assert found.after.median < found.before.median / 4
    assert found.cross_validated.median < found.before.median / 3


def test_the_saved_cluster_says_where_its_constants_come_from(found: Calibration, tmp_path: Path) -> None:
    mw.save_cluster(found.cluster, tmp_path / "cluster.yaml")
    text = " ".join((tmp_path / "cluster.yaml").read_text().split())
    assert mw.load_cluster(tmp_path / "cluster.yaml") == found.cluster
    assert "8 runs of runs.csv, dated 2026-05: median error" in text
    assert "before; calibrated on 8 runs" in found.cluster.accelerator.notes[-1]
    assert "before; calibrated on 8 runs" in found.cluster.levels[-1].source
    assert found.cluster.name == f"{GIVEN}-calibrated"


def test_the_saved_cluster_predicts_the_runs_as_said(found: Calibration, truth: mw.Cluster, tmp_path: Path) -> None:
    again = mw.calibrate(runs_file(tmp_path, truth, noise=0.01), found.cluster)
    assert again.before.mean == pytest.approx(found.after.mean, abs=0.002)


def test_runs_that_are_predicted_well_leave_the_cluster_as_it_is(tmp_path: Path) -> None:
    """Noise alone is nothing to calibrate on: the left-out runs say so, or the constants hardly move."""
    found = mw.calibrate(runs_file(tmp_path, mw.load_cluster(GIVEN), noise=0.02), GIVEN)
    moved = [abs(np.log(each.value / each.before)) for each in found.constants]
    assert found.better is False or max(moved) < 0.05


def test_a_single_run_moves_little_and_is_not_judged(truth: mw.Cluster, tmp_path: Path) -> None:
    found = mw.calibrate(runs_file(tmp_path, truth, [4]), GIVEN)
    assert found.better is None
    assert found.cross_validated is None
    asked = abs(np.log(0.92))
    assert all(abs(np.log(each.value / each.before)) < asked for each in found.constants)
    others = mw.calibrate(runs_file(tmp_path, truth, [0, 1, 2, 3, 5, 6, 7]), found.cluster)
    plain = mw.calibrate(runs_file(tmp_path, truth, [0, 1, 2, 3, 5, 6, 7]), GIVEN)
    assert others.before.mean is not None
    assert plain.before.mean is not None
    assert others.before.mean <= plain.before.mean


def test_the_order_of_the_rows_does_not_matter(truth: mw.Cluster, tmp_path: Path, found: Calibration) -> None:
    backward = mw.calibrate(runs_file(tmp_path, truth, range(len(JOBS))[::-1], noise=0.01), GIVEN)
    assert backward.constants == found.constants
    assert backward.cross_validated == found.cross_validated


def test_runs_given_twice_count_once(truth: mw.Cluster, tmp_path: Path) -> None:
    one = mw.calibrate(runs_file(tmp_path, truth, [0, 3, 4]), GIVEN)
    two = mw.calibrate(runs_file(tmp_path, truth, [0, 3, 4, 0, 3, 4, 4]), GIVEN)
    assert two.jobs == one.jobs == 3
    for first, second in zip(one.constants, two.constants, strict=True):
        assert second.value == pytest.approx(first.value, rel=1e-3)


def test_what_no_run_depends_on_stays_and_says_so(truth: mw.Cluster, tmp_path: Path) -> None:
    found = mw.calibrate(runs_file(tmp_path, truth, [0]), GIVEN)  # one node: nothing crosses the network
    network = next(each for each in found.constants if each.name.startswith("levels.infiniband"))
    assert network.kept == "no run depends on it"
    assert network.value == network.before
    given = mw.load_cluster(GIVEN)
    assert found.cluster.levels[-1] == given.levels[-1]


def test_rows_of_another_accelerator_or_of_more_are_left_out_with_the_reason(truth: mw.Cluster, tmp_path: Path) -> None:
    path = runs_file(tmp_path, truth, [0, 4])
    lines = path.read_text().splitlines()
    lines = [lines[0] + ",gpu", lines[1] + ",A100-SXM-80GB", lines[2] + ",H100-SXM-80GB"]
    large = lines[1].replace("R0,gpt3-1.3b,8,1,8", "R9,gpt3-1.3b,512,1,512").replace(",64,2048,", ",2048,2048,")
    path.write_text("\n".join([*lines, large]) + "\n")
    found = mw.calibrate(path, GIVEN)
    assert [each.row.row_id for each in found.comparisons] == ["R0"]
    assert dict(found.left_out) == {
        "R4": f"it ran on h100; {GIVEN} has a100-80g",
        "R9": f"it ran on 512 accelerators; {GIVEN} has 64",
    }


def test_nothing_that_can_be_predicted_is_an_error_that_says_why(truth: mw.Cluster, tmp_path: Path) -> None:
    path = runs_file(tmp_path, truth, [4])
    header, row = path.read_text().splitlines()
    path.write_text(f"{header},gpu\n{row},A100-SXM-80GB\n")
    with pytest.raises(mw.InputError, match="its one row can't be predicted on 8xdgx-h100: it ran on a100-80g"):
        mw.calibrate(path, "8xdgx-h100")


def test_a_source_that_is_not_there_is_named(truth: mw.Cluster, tmp_path: Path) -> None:
    with pytest.raises(mw.InputError, match="no source is called 'mine'"):
        mw.calibrate(runs_file(tmp_path, truth, [0]), GIVEN, source="mine")


def test_hosts_that_launch_slowly_are_found_and_kept_in_the_file(tmp_path: Path) -> None:
    """A model too small for the device waits for its host."""
    given = mw.load_cluster("1xdgx-h100")
    true = replace(given, groups=(replace(given.groups[0], host_overhead_factor=2.0),))
    lines = ["row_id,model,gpus_total,dp,micro_batch,global_batch_seqs,seq_len,step_time_s"]
    for number, (batch, seq_len) in enumerate([(8, 256), (16, 256), (32, 256), (64, 256), (64, 512), (128, 512)]):
        found = mw.estimate("gpt2", true, mw.Training(batch, seq_len), mw.Plan(dp=8, sharding="none"))
        lines.append(f"R{number},gpt2,8,8,1,{batch},{seq_len},{found.step_time_s!r}")
    path = tmp_path / "small.csv"
    path.write_text("\n".join(lines) + "\n")
    calibrated = mw.calibrate(path, given)
    factor = calibrated.cluster.groups[0].host_overhead_factor
    assert factor == pytest.approx(2.0, rel=0.1)
    assert cluster_content(calibrated.cluster)["host_overhead_factor"] == factor
