"""The step: parts add up, tables equal plans, the closed form equals the replay, the fullest rank is the fullest."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import small_jobs as small
from small_jobs import FIELDS, SOFTWARE, job, priced, random_plans, table_of

from meshwright.cost import training
from meshwright.cost.activations import kept_bytes, layer_activation_bytes
from meshwright.cost.estimate import estimate
from meshwright.cost.layer import PieceTime, Setting
from meshwright.cost.stages import StageClass
from meshwright.cost.states import states
from meshwright.program.schedules import operations, rank_of_stage
from meshwright.simulate.pipeline import replay, stage_durations
from meshwright.spec.attention_kernel import UNFUSED
from meshwright.spec.plan import RECOMPUTE, Plan
from meshwright.spec.rules import Job

JOBS = {
    "dense": job(cluster=small.switches(2, 4)),
    "tied": job(small.TIED, small.switches(2, 4, host_memory=3e8)),
    "experts": job(small.EXPERTS, small.switches(4, 2)),
    "dense first, then experts": job(small.DENSE_THEN_EXPERTS, small.switches(2, 4)),
    "sliding windows": job(small.WINDOWS, small.torus(4, 2)),
    "pairs": job(small.DENSE_7, small.pcie_pairs(), batch=12),
    "gathered context": job(
        cluster=small.switches(2, 4),
        software=replace(SOFTWARE, context_parallel="gather", scattered_pipeline_transfers=True, data_overlap=False),
    ),
}


def settled(of_job: Job, plan: Plan) -> Setting:
    return training.settle(of_job.model, of_job.cluster, of_job.software, of_job.workload, plan.table())


def exactly(value: Any) -> Any:
    return pytest.approx(value, rel=1e-12)


def test_slow_hosts_take_that_much_longer_to_launch() -> None:
    """A layer that waits for its launches, and the step's own overhead, take as many times longer as the hosts do."""
    quick = job(cluster=small.switches(2, 4), software=replace(SOFTWARE, launch_s_per_layer=1.0, step_overhead_s=0.5))
    groups = tuple(replace(group, host_overhead_factor=3.0) for group in quick.cluster.groups)
    slow = replace(quick, cluster=replace(quick.cluster, groups=groups))
    plan = Plan(dp=8)
    launches, slower = (
        estimate(each.model, each.cluster, each.workload, plan, each.software) for each in (quick, slow)
    )
    assert slower.time_s["compute"] == exactly(launches.time_s["compute"])
    launch_s = _launch_s(quick, launches.num_micro_batches)
    assert slower.time_s["overhead"] - launches.time_s["overhead"] == exactly(2 * launch_s + 2 * 0.5)


def _launch_s(of_job: Job, micro_batches: int) -> float:
    software = of_job.software
    passes = 1 + software.launch_backward_ratio
    return micro_batches * of_job.model.num_layers * software.launch_s_per_layer * passes


# -- one cost code, scalar and vector


@pytest.mark.parametrize("name", JOBS)
def test_a_table_costs_what_its_plans_cost(name: str) -> None:
    of_job = JOBS[name]
    plans = random_plans(of_job, 40, seed=11)
    rows = np.array([[int(plan.table().arrays()[field]) for field in FIELDS] for plan in plans])
    seconds, memory = priced(of_job, table_of(rows))
    for row, plan in enumerate(plans):
        alone = estimate(of_job.model, of_job.cluster, of_job.workload, plan, of_job.software)
        assert seconds[row] == exactly(alone.step_time_s), plan
        assert memory[row] == exactly(alone.memory_total_bytes), plan


@pytest.mark.parametrize("name", JOBS)
def test_an_open_grid_costs_what_its_plans_cost(name: str) -> None:
    of_job = JOBS[name]
    plan = Plan(dp=2, pp=2, tp=1)
    columns = dict(plan.table().arrays())
    columns["micro_batch"] = np.array([1, 2])[:, None, None, None]
    columns["schedule"] = np.array([0, 1, 2, 3])[None, :, None, None]
    columns["virtual_stages"] = np.array([1, 1, 2, 2])[None, :, None, None]
    columns["recompute"] = np.arange(3)[None, None, :, None]
    columns["sharding"] = np.arange(4)[None, None, None, :]
    grid = type(plan.table())(**columns)
    part = replace(
        of_job, cluster=of_job.cluster if of_job.cluster.levels[0].kind == "torus" else of_job.cluster.part(4)
    )
    seconds, memory = priced(part, grid)
    assert seconds.shape == (2, 4, 3, 4)
    for index in ((0, 0, 0, 0), (1, 1, 2, 3), (0, 2, 1, 2), (1, 3, 2, 1), (0, 3, 0, 3)):
        alone = priced(part, grid.take(index).table())
        assert seconds[index] == exactly(float(alone[0]))
        assert memory[index] == exactly(float(alone[1]))


@pytest.mark.parametrize("name", JOBS)
def test_parts_add_up_and_are_never_negative(name: str) -> None:
    of_job = JOBS[name]
    for plan in random_plans(of_job, 40, seed=12):
        setting = settled(of_job, plan)
        step, held = training.base(setting), states(setting)
        parts = training.time_parts(of_job.software, step, held, setting.plans.sharding)
        seconds, memory = priced(of_job, setting.plans)
        assert sum(float(part) for part in parts.values()) == exactly(float(seconds))
        assert all(float(part) >= 0 and np.isfinite(float(part)) for part in parts.values()), (plan, parts)
        totals = []
        for index, stage in enumerate(step.classes):
            bytes_ = training.memory_parts(of_job.software, step, index, held)
            assert all(float(part) >= 0 and np.isfinite(float(part)) for part in bytes_.values()), (plan, bytes_)
            totals.append(sum(float(part) for part in bytes_.values()) if np.all(stage.present) else 0.0)
        assert max(totals) == exactly(float(memory))


@pytest.mark.parametrize("name", JOBS)
def test_the_bound_of_a_row_is_below_every_plan_of_it(name: str) -> None:
    of_job = JOBS[name]
    for plan in random_plans(of_job, 30, seed=13):
        bare = plan.with_(
            recompute="none", schedule="1f1b", virtual_stages=1, sharding="none", shard_group=0, offload="none"
        )
        bound_s = float(training.row_bound_s(settled(of_job, bare)))
        setting = settled(of_job, plan)
        assert bound_s <= float(training.base(setting).lower_bound_s()) * (1 + 1e-12)
        assert float(training.base(setting).lower_bound_s()) <= float(priced(of_job, setting.plans)[0]) * (1 + 1e-12)


# -- the pipeline


@pytest.mark.parametrize(
    ("schedule", "pp", "v"),
    [("gpipe", 4, 1), ("1f1b", 4, 1), ("1f1b", 8, 1), ("interleaved", 4, 2), ("interleaved", 2, 4),
     ("zero-bubble-v", 4, 2), ("dualpipe-v", 4, 2)],
)  # fmt: skip
@pytest.mark.parametrize("recompute", ["none", "full"])
def test_with_equal_stages_the_step_is_the_replayed_one(
    schedule: str, pp: int, v: int, recompute: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # without embedding and head all stages are equal, and the closed form is exact
    monkeypatch.setattr(training, "embedding_time", lambda setting: PieceTime())
    monkeypatch.setattr(training, "head_time", lambda setting: PieceTime())
    of_job = job(small.model(*[small.dense_layer()] * 8), small.switches(2, 4), batch=16)
    plan = Plan(pp=pp, dp=8 // pp, schedule=schedule, virtual_stages=v, recompute=recompute)
    setting = settled(of_job, plan)
    step, held = training.base(setting), states(setting)
    parts = training.time_parts(of_job.software, step, held, setting.plans.sharding)
    m = int(step.micro_batches)
    stage = [float(seconds) / v for seconds in (step.forward_s, step.input_s, step.weight_s)]
    hop_s = float(
        setting.call_s(training.traffic.pipeline_calls(of_job.model, of_job.workload, SOFTWARE, setting.plans)[0])
    )
    assert 0 < hop_s < stage[0]
    durations = stage_durations(*([seconds] * (pp * v) for seconds in stage))
    played = replay(operations(schedule, pp, m, v), durations, hop_s)
    waits = float(parts["pipeline_bubble"]) + float(parts["pipeline_transfer"])
    assert m * sum(stage) * v + waits == pytest.approx(played.makespan_s, rel=1e-9)
    once = float(parts["data_parallel"]) + float(parts["optimizer"]) + of_job.software.step_overhead_s
    assert float(priced(of_job, setting.plans)[0]) - once == pytest.approx(played.makespan_s, rel=1e-9)


def test_a_lone_stage_has_neither_bubble_nor_transfer() -> None:
    parts = estimate(*_arguments(JOBS["dense"], Plan(dp=8))).time_s
    assert parts["pipeline_bubble"] == parts["pipeline_transfer"] == 0


def test_transfers_that_do_not_overlap_cost_every_crossing() -> None:
    of_job = JOBS["dense"]
    plan = Plan(pp=4, dp=2)
    setting = settled(of_job, plan)
    call = training.traffic.pipeline_calls(of_job.model, of_job.workload, SOFTWARE, setting.plans)[0]
    serial = replace(of_job, software=replace(SOFTWARE, transfer_overlap=False))
    expected = 2 * plan.num_micro_batches(8) * float(setting.call_s(call))
    assert estimate(*_arguments(serial, plan)).time_s["pipeline_transfer"] >= expected * (1 - 1e-12)


# -- data parallel


def test_without_overlap_all_data_parallel_communication_shows() -> None:
    of_job = replace(JOBS["dense"], software=replace(SOFTWARE, data_overlap=False))
    for sharding in ("none", "optimizer", "gradients", "parameters"):
        found = estimate(*_arguments(of_job, Plan(dp=8, sharding=sharding)))
        work = sum(row.seconds for row in found.traffic if row.axis == "dp")
        assert found.time_s["data_parallel"] == pytest.approx(work, rel=1e-9)
        assert found.hidden_s["data_parallel"] == 0


def test_overlap_never_hides_more_than_the_computation_beside_it() -> None:
    of_job = JOBS["dense"]
    for sharding in ("none", "optimizer", "gradients", "parameters"):
        for plan in (Plan(dp=8, sharding=sharding), Plan(dp=4, pp=2, sharding=sharding)):
            setting = settled(of_job, plan)
            step = training.base(setting)
            found = estimate(*_arguments(of_job, plan))
            work = sum(row.seconds for row in found.traffic if row.axis == "dp")
            beside = float(step.forward_s + step.input_s + step.weight_s) * plan.num_micro_batches(8)
            hidden = found.hidden_s["data_parallel"]
            assert 0 < hidden <= min(beside, work)
            assert found.time_s["data_parallel"] == pytest.approx(
                work - hidden * (1 - of_job.software.overlap_contention), rel=1e-9
            )


# -- memory


@pytest.mark.parametrize("recompute", RECOMPUTE)
@pytest.mark.parametrize(
    ("schedule", "batch", "v"),
    [("gpipe", 8, 1), ("1f1b", 8, 1), ("1f1b", 3, 1), ("interleaved", 8, 2), ("zero-bubble-v", 3, 2),
     ("zero-bubble-v", 24, 2), ("dualpipe-v", 24, 2)],
)  # fmt: skip
def test_the_fullest_rank_is_the_fullest_of_all(schedule: str, batch: int, v: int, recompute: str) -> None:
    for model in (
        small.model(*[small.dense_layer()] * 16),
        small.model(*[small.dense_layer(), small.dense_layer(window=32)] * 8),
    ):
        of_job = job(model, small.switches(2, 4), batch=batch, seq_len=256)
        plan = Plan(pp=8, schedule=schedule, virtual_stages=v, recompute=recompute)
        setting = settled(of_job, plan)
        found = estimate(*_arguments(of_job, plan))
        held = states(setting)
        ranks = rank_of_stage(schedule, 8, v)
        totals = []
        for rank in range(8):
            layers = [0] * len(model.kinds)
            start = 0
            for stage, count in enumerate(found.plan.layers_per_stage):
                if ranks[stage] == rank:
                    for kind in model.kind_of_layer[start : start + count]:
                        layers[kind] += 1
                start += count
            ends = float(ranks[0] == rank), float(ranks[-1] == rank)
            alone = StageClass(tuple(layers), *ends, np.asarray(rank), True)
            kept = training.add_up(kept_bytes(setting, (alone,))[0].values())
            totals.append(float(training.rank_bytes(of_job.software, kept, alone, held)))
        assert found.memory_total_bytes == pytest.approx(max(totals), rel=1e-9)
        assert totals[found.worst_stage] == pytest.approx(max(totals), rel=1e-9)


def test_a_layer_of_gpt_keeps_34_values_per_token_and_width() -> None:
    # Korthikanti et al. 2022, equation 1: s b h (34 + 5 a s / h) bytes with dropout and 16-bit activations; first
    # without dropout's masks of 1 byte (2 s b h and a s of the scores) and its output (2 a s of the scores)
    gpt = small.Layer(small.Attention(8, 8, 32), small.MLP(4 * small.HIDDEN, gated=False))
    of_job = job(small.model(gpt, gpt), small.switches(1, 8), software=replace(SOFTWARE, attention=UNFUSED))
    setting = settled(of_job, Plan(micro_batch=2))
    sbh, scores = 2 * 128 * small.HIDDEN, 2 * 8 * 128 * 128
    assert float(layer_activation_bytes(setting, gpt, 0)) == (34 - 2) * sbh + (5 - 3) * scores
    dropout = replace(of_job, model=replace(of_job.model, dropout=True))
    assert float(layer_activation_bytes(settled(dropout, Plan(micro_batch=2)), gpt, 0)) == 34 * sbh + 5 * scores


def test_tensor_ranks_keep_10_of_34_values_whole_without_sequence_parallelism() -> None:
    # Korthikanti et al. 2022, equations 2 and 4: s b h (10 + 24/t) and s b h 34/t
    gpt = small.Layer(small.Attention(8, 8, 32), small.MLP(4 * small.HIDDEN, gated=False))
    model = replace(small.model(gpt, gpt), dropout=True)
    of_job = job(model, small.switches(1, 8), software=replace(SOFTWARE, attention=UNFUSED))
    sbh, scores = 128 * small.HIDDEN, 8 * 128 * 128
    whole = float(layer_activation_bytes(settled(of_job, Plan(tp=4)), gpt, 0))
    split = float(layer_activation_bytes(settled(of_job, Plan(tp=4, sequence_parallel=True)), gpt, 0))
    assert whole == (10 + 24 / 4) * sbh + 5 * scores / 4
    assert split == 34 / 4 * sbh + 5 * scores / 4


def test_full_recompute_keeps_the_input_of_a_layer_only() -> None:
    # Korthikanti et al. 2022, section 5: 2 s b h
    setting = settled(JOBS["dense"], Plan(micro_batch=2))
    assert float(layer_activation_bytes(setting, small.dense_layer(), 2)) == 2 * 2 * 128 * small.HIDDEN


def _arguments(of_job: Job, plan: Plan) -> tuple[Any, ...]:
    return of_job.model, of_job.cluster, of_job.workload, plan, of_job.software
