"""On a box whose links differ inside the node, the plan follows them."""

from __future__ import annotations

from pathlib import Path

import pytest
from printed_topology import nested, renumbered, table

import meshwright as mw

JOBS = [("llama-2-13b", 64, 4096), ("llama-2-13b", 4, 4096), ("llama-2-7b", 8, 4096), ("llama-3-8b", 2, 32768)]
"""Models that one RTX A6000 can't train alone."""


def pairs(tmp_path: Path, order: list[int] | None = None) -> mw.Cluster:
    """Eight RTX A6000 with NVLink bridges between pairs, four on each socket."""
    cells = nested([2, 2, 2], ["NV4", "NODE", "SYS"])
    (tmp_path / "box.txt").write_text(table(renumbered(cells, order) if order else cells))
    return mw.load_cluster(f"topo:{tmp_path / 'box.txt'}", accelerator="a6000")


def test_one_accelerator_is_too_small_for_these_jobs(tmp_path: Path) -> None:
    for model, batch, seq_len in JOBS:
        alone = mw.estimate(model, pairs(tmp_path), mw.Training(batch, seq_len), mw.Plan(dp=2 if batch == 2 else 4))
        assert not alone.fits


@pytest.mark.parametrize(("model", "batch", "seq_len"), JOBS)
def test_tensor_parallel_stays_in_the_bridged_pairs_and_pipeline_or_data_cross_the_sockets(
    tmp_path: Path, model: str, batch: int, seq_len: int
) -> None:
    best = mw.choose(model, pairs(tmp_path), mw.Training(batch, seq_len), top=1).best
    assert best is not None
    assert best.plan.tp <= 2
    assert {each.level for each in best.traffic if each.axis == "tp"} <= {"bridge"}
    assert {each.axis for each in best.traffic if each.level == "host"} & {"pp", "dp"}


def test_tensor_parallel_over_two_pairs_is_priced_over_the_host_and_costs_more(tmp_path: Path) -> None:
    cluster, job = pairs(tmp_path), mw.Training(64, 4096)
    inside, across, all_eight = (
        mw.choose("llama-2-13b", cluster, job, top=1, fixed={"tp": tp}).best for tp in (2, 4, 8)
    )
    assert inside is not None
    assert across is not None
    assert all_eight is not None
    assert {each.level for each in inside.traffic if each.axis == "tp"} == {"bridge"}
    assert {each.level for each in across.traffic if each.axis == "tp"} == {"socket"}
    assert {each.level for each in all_eight.traffic if each.axis == "tp"} == {"host"}
    assert inside.step_time_s < across.step_time_s < all_eight.step_time_s


def test_the_same_box_numbered_otherwise_gives_the_same_plan_and_the_order_of_its_devices(tmp_path: Path) -> None:
    order = [0, 4, 1, 5, 2, 6, 3, 7]  # GPU0 is bridged with GPU2, GPU1 with GPU3; even numbers are on one socket
    shuffled, plain = pairs(tmp_path, order), pairs(tmp_path)
    assert shuffled.levels != ()
    assert [level.size for level in shuffled.levels] == [level.size for level in plain.levels]
    assert shuffled.devices == (0, 2, 4, 6, 1, 3, 5, 7)
    job = mw.Training(64, 4096)
    one, other = (mw.choose("llama-2-13b", each, job, top=1).best for each in (shuffled, plain))
    assert one is not None
    assert other is not None
    assert one.plan == other.plan
    assert one.step_time_s == other.step_time_s


def test_a_part_of_the_box_keeps_the_order_of_its_devices(tmp_path: Path) -> None:
    assert pairs(tmp_path, [0, 4, 1, 5, 2, 6, 3, 7]).part(4).devices == (0, 2, 4, 6)
