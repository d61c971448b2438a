"""Changes that make a job fit: applied, something fits; a little less of it, and nothing does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import small_jobs as small
from small_jobs import everything, job

import meshwright as mw
from meshwright.choose import choose
from meshwright.choose.explain import explain
from meshwright.choose.explain.facts import Change
from meshwright.spec.rules import Job

TOO_LARGE = job(small.TIED, small.switches(2, 2, memory_mb=12, host_bytes_per_s=0), seq_len=512, batch=16)


def changes(of_job: Job, **options: Any) -> dict[str, Change]:
    said = explain(of_job.model, of_job.cluster, of_job.workload, of_job.software, **options)
    assert said.best is None
    assert said.to_fit is not None
    return {change.kind: change for change in said.to_fit}


def fits(of_job: Job, **options: Any) -> bool:
    return choose(of_job.model, of_job.cluster, of_job.workload, of_job.software, top=1, **options).best is not None


def test_the_memory_needed_is_the_least_of_any_plan() -> None:
    change = changes(TOO_LARGE)["memory"]
    assert change.now == TOO_LARGE.cluster.accelerator.memory_bytes
    assert change.value == pytest.approx(everything(TOO_LARGE).bytes.min(), rel=1e-9)
    mb = change.value / small.MB
    assert fits(replace(TOO_LARGE, cluster=small.switches(2, 2, memory_mb=mb * 1.000001, host_bytes_per_s=0)))
    assert not fits(replace(TOO_LARGE, cluster=small.switches(2, 2, memory_mb=mb * 0.999, host_bytes_per_s=0)))


def test_the_nodes_needed_are_the_fewest() -> None:
    change = changes(TOO_LARGE)["nodes"]
    assert change.now == 2
    assert fits(replace(TOO_LARGE, cluster=small.switches(change.value, 2, memory_mb=12, host_bytes_per_s=0)))
    assert not fits(replace(TOO_LARGE, cluster=small.switches(change.value - 1, 2, memory_mb=12, host_bytes_per_s=0)))


def test_a_pinned_number_of_micro_batches_says_what_it_becomes() -> None:
    of_job = job(small.TIED, small.switches(2, 2, memory_mb=200, host_bytes_per_s=0), seq_len=512, batch=16)
    pins = {"dp": 4, "num_micro_batches": 1, "recompute": "none"}
    said = explain(of_job.model, of_job.cluster, of_job.workload, of_job.software, fixed=pins)
    change = next(each for each in said.to_fit or () if each.title.startswith("num_micro_batches"))
    assert change.estimate is not None
    assert change.value == 16 // (4 * change.estimate.plan.micro_batch) > change.now == 1
    assert not any("None" in line for line in said.text)


def test_a_shorter_sequence_is_the_longest_that_fits() -> None:
    of_job = job(small.DENSE, small.switches(2, 2, memory_mb=24, host_bytes_per_s=0), seq_len=8192, batch=8)
    change = changes(of_job)["seq_len"]
    assert change.value < change.now == 8192

    def at(seq_len: int) -> Job:
        return replace(of_job, workload=replace(of_job.workload, seq_len=seq_len))

    assert fits(at(change.value))
    next_longer = min(value for value in (8192, 7168, 6144, 5120, 4096, 3584, 3072, 2560, 2048) if value > change.value)
    assert not fits(at(next_longer))


def test_a_leaner_optimizer_has_the_most_states_of_those_that_fit() -> None:
    """Bytes a parameter beside weight and gradient: adamw 12, lion 8, adamw-8bit 6 (Rajbhandari et al. 2020; Chen et
    al. 2023; Dettmers et al. 2022)."""
    of_job = job(small.DENSE, small.switches(1, 1, memory_mb=64, host_bytes_per_s=0), batch=2, seq_len=16)
    assert not fits(of_job)
    change = changes(of_job)["optimizer"]
    lean = {name: fits(replace(of_job, workload=replace(of_job.workload, optimizer=name))) for name in ("lion", "sgd")}
    assert lean["sgd"]
    assert change.value in ("lion", "muon", "sgd-momentum") if lean["lion"] else change.value not in ("lion", "muon")


def test_a_pin_that_is_in_the_way_is_named() -> None:
    of_job = job(cluster=small.switches(2, 2, memory_mb=30, host_bytes_per_s=0))
    pins = {"dp": 4, "sharding": "none", "recompute": "none"}
    assert not fits(of_job, fixed=pins)
    found = [
        each
        for each in explain(of_job.model, of_job.cluster, of_job.workload, of_job.software, fixed=pins).to_fit or ()
        if each.kind == "pin"
    ]
    for name in pins:
        others = {other: value for other, value in pins.items() if other != name}
        assert fits(of_job, fixed=others) == any(each.title == f"{name} not pinned" for each in found)
    assert found


def test_a_large_model_on_one_small_server_fits_on_the_nodes_that_are_named() -> None:
    said = mw.explain("llama-2-7b", "1x4090-pcie", mw.Training(global_batch=8, seq_len=4096))
    assert said.to_fit is not None
    nodes = next(change for change in said.to_fit if change.kind == "nodes").value
    assert mw.choose("llama-2-7b", f"{nodes}x4090-pcie", mw.Training(8, 4096), top=1).best is not None
    assert mw.choose("llama-2-7b", f"{nodes - 1}x4090-pcie", mw.Training(8, 4096), top=1).best is None


def test_a_job_that_breaks_a_rule_says_so_instead() -> None:
    of_job = job(small.model(*[small.dense_layer()] * 4, max_positions=64))
    said = explain(of_job.model, of_job.cluster, of_job.workload, of_job.software)
    assert any("learned positions" in sentence for sentence in said.no_plan)
    assert {change.kind for change in said.to_fit or ()} == {"seq_len"}


def test_a_batch_that_no_plan_divides_is_not_said_to_lack_memory() -> None:
    of_job = job(small.TIED, small.switches(2, 2, memory_mb=600, host_bytes_per_s=0), seq_len=64, batch=16)
    pins = {"dp": 4, "num_micro_batches": 4}
    said = explain(of_job.model, of_job.cluster, of_job.workload, of_job.software, fixed=pins)
    flip = next(each for each in said.flips or () if (each.name, each.direction) == ("global_batch", "down"))
    assert flip.flips is not None
    assert flip.flips.value % 16  # 4 replicas of 4 micro-batches
    assert flip.flips.plan is None
    assert not any("nothing fits" in line for line in said.text)
    assert any("at 14 sequences there is no plan" in line for line in said.text)
