"""Model states on a rank, against the tables of the ZeRO paper and the model's own count."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import small_jobs as small
from small_jobs import SOFTWARE, job

from meshwright.cost import training
from meshwright.cost.stages import StageClass
from meshwright.cost.states import States, end_parameters, map_pieces, states
from meshwright.spec.model import Model
from meshwright.spec.plan import Plan
from meshwright.spec.rules import Job
from meshwright.spec.software import GradientHabits, Software, state_bytes
from meshwright.spec.workload import DTYPES, OPTIMIZERS

ZERO = replace(SOFTWARE, gradient_bytes=2.0, separate_master=True)
"""Mixed precision as in the paper: 2 + 2 + 12 bytes."""


def held(plan: Plan, software: Software = ZERO, of_job: Job | None = None) -> tuple[States, tuple[StageClass, ...]]:
    of_job = of_job or job(cluster=small.switches(8, 8))
    setting = training.settle(of_job.model, of_job.cluster, software, of_job.workload, plan.table())
    return states(setting), training.base(setting).classes


def whole(plan: Plan, name: str, software: Software = ZERO, of_job: Job | None = None) -> float:
    """One field on the first rank."""
    found, classes = held(plan, software, of_job)
    return float(found.weigh(classes[0], name))


def all_bytes(plan: Plan, software: Software = ZERO, of_job: Job | None = None) -> float:
    return sum(whole(plan, name, software, of_job) for name in ("weights", "gradients", "optimizer"))


@pytest.mark.parametrize(
    ("sharding", "sharded", "kept"),
    [("none", 0, 16), ("optimizer", 12, 4), ("gradients", 14, 2), ("parameters", 16, 0)],
)
@pytest.mark.parametrize("dp", [2, 8])
def test_bytes_per_parameter_are_those_of_zero(sharding: str, sharded: float, kept: float, dp: int) -> None:
    # Rajbhandari et al. 2020 (ZeRO), figure 1: 16 Ψ; 4 Ψ + 12 Ψ/N; 2 Ψ + 14 Ψ/N; 16 Ψ/N
    count = small.DENSE.num_parameters
    assert all_bytes(Plan(dp=dp, sharding=sharding)) == pytest.approx((kept + sharded / dp) * count, rel=1e-12)


def test_the_example_of_the_paper_takes_120_and_31_and_17_and_2_gigabytes() -> None:
    # figure 1 of the ZeRO paper: 7.5 billion parameters on 64 ranks: 120, 31.4, 16.6 and 1.9 GB
    count = 7.5e9 / small.DENSE.num_parameters
    big = replace(job(cluster=small.switches(8, 8)), workload=small.Training(64, 128))
    gigabytes = [
        all_bytes(Plan(dp=64, sharding=sharding), of_job=big) * count / 1e9
        for sharding in ("none", "optimizer", "gradients", "parameters")
    ]
    assert gigabytes == pytest.approx([120, 31.4, 16.6, 1.9], abs=0.05)


def test_a_smaller_shard_group_keeps_more() -> None:
    count = small.DENSE.num_parameters
    plan = Plan(dp=8, sharding="parameters", shard_group=2)
    assert all_bytes(plan) == pytest.approx(16 / 2 * count, rel=1e-12)
    assert all_bytes(Plan(dp=4, cp=2, sharding="parameters")) == pytest.approx(16 / 8 * count, rel=1e-12)


@pytest.mark.parametrize(
    "model", [small.DENSE, small.TIED, small.EXPERTS, small.WINDOWS], ids=["dense", "tied", "moe", "mixed"]
)
@pytest.mark.parametrize("pp", [1, 2, 4])
def test_the_stages_hold_the_model_together(model: Model, pp: int) -> None:
    of_job = job(model, small.switches(8, 8))
    found, classes = held(Plan(pp=pp), of_job=of_job)
    present = [stage for stage in classes if np.all(stage.present)]
    ranks = [int(stage.rank) for stage in present]
    layers = [int(stage.total_layers) for stage in present]
    count = model.num_parameters + (model.vocab * small.HIDDEN if model.tied_embeddings and pp > 1 else 0)
    # as many ranks of each class as its layers leave room for
    if len(present) == pp:
        assert sum(float(found.weigh(stage, "parameters")) for stage in present) == pytest.approx(count, rel=1e-12)
    else:
        assert len(set(ranks)) == len(ranks)
        ends = [stage for stage in present if float(stage.embedding) or float(stage.head)]
        inner = next(stage for stage in present if not float(stage.embedding) and not float(stage.head))
        rest = (model.num_layers - sum(int(stage.total_layers) for stage in ends)) / int(inner.total_layers)
        total = sum(float(found.weigh(stage, "parameters")) for stage in ends)
        assert total + rest * float(found.weigh(inner, "parameters")) == pytest.approx(count, rel=1e-12)
    assert min(layers) >= 1


def test_experts_are_sharded_over_the_ranks_that_hold_the_same_ones() -> None:
    of_job = job(small.EXPERTS, small.switches(8, 8))
    experts = 4 * 3 * small.HIDDEN * 256 * 4
    rest = small.EXPERTS.num_parameters - experts
    for group, expert_group in ((8, 2), (4, 1), (2, 1)):
        plan = Plan(dp=8, ep=4, sharding="parameters", shard_group=group)
        expected = 16 * (rest / group + experts / 4 / expert_group)
        assert all_bytes(plan, of_job=of_job) == pytest.approx(expected, rel=1e-12)


def test_an_fp32_weight_is_its_own_master() -> None:
    full = replace(job(cluster=small.switches(8, 8)), workload=small.Training(8, 128, "fp32"))
    software = replace(ZERO, gradient_bytes=4.0)
    assert all_bytes(Plan(), software, full) == pytest.approx(16 * small.DENSE.num_parameters, rel=1e-12)
    fsdp2 = replace(ZERO, gradient_bytes=4.0, separate_master=False)
    assert all_bytes(Plan(), fsdp2) == pytest.approx(16 * small.DENSE.num_parameters, rel=1e-12)


def test_an_offloaded_optimizer_lives_with_the_host_and_is_updated_there() -> None:
    plan = Plan(dp=2, offload="optimizer")
    assert whole(plan, "optimizer") == 0
    assert whole(plan, "offloaded") == pytest.approx(12 * small.DENSE.num_parameters)
    assert whole(plan, "update_s") == 0 < whole(plan, "offload_s")
    assert whole(plan.with_(offload="none"), "offloaded") == 0


def test_what_the_host_has_no_room_for_stays_on_the_device() -> None:
    room = 20e6
    tight = job(cluster=small.switches(8, 8, host_memory=8 * room / SOFTWARE.host_memory_share))
    found, classes = held(Plan(offload="optimizer"), of_job=tight)
    over = 12 * small.DENSE.num_parameters - room
    assert over > 0
    assert float(found.returned_bytes(classes[0])) == pytest.approx(over, rel=1e-9)


def test_gathered_units_take_room_only_where_parameters_are_sharded() -> None:
    sharded, _ = held(Plan(dp=8, sharding="parameters"))
    layer = small.dense_layer().num_parameters(small.HIDDEN)
    per_parameter = ZERO.parameter_gather_bytes + ZERO.gradient_reduce_bytes
    assert layer > small.VOCAB * small.HIDDEN
    assert float(sharded.gathered_bytes) == 2 * layer * per_parameter
    for sharding in ("none", "optimizer"):
        assert float(held(Plan(dp=8, sharding=sharding))[0].gathered_bytes) == 0


def test_sharded_gradients_are_whole_until_they_are_reduced() -> None:
    sharded, _ = held(Plan(dp=8, sharding="gradients"))
    layer = small.dense_layer().num_parameters(small.HIDDEN)
    assert float(sharded.gathered_bytes) == layer * ZERO.gradient_reduce_bytes
    assert float(held(Plan(dp=1, sharding="gradients"))[0].gathered_bytes) == 0


@pytest.mark.parametrize("tied", [True, False])
def test_a_large_vocabulary_is_gathered_beside_a_layer(tied: bool) -> None:
    model = small.model(*[small.dense_layer()] * 4, tied=tied, vocab=8192)
    found, _ = held(Plan(dp=8, sharding="parameters"), of_job=job(model, small.switches(8, 8)))
    layer = small.dense_layer().num_parameters(small.HIDDEN)
    head = 8192 * small.HIDDEN + small.HIDDEN  # with the norm before it
    per_parameter = ZERO.parameter_gather_bytes + ZERO.gradient_reduce_bytes
    assert head > layer
    assert float(found.gathered_bytes) == (layer + head) * per_parameter


KEEPERS: dict[str, dict[str, Any]] = {
    "once-a-step": {"gathers_per_micro_batch": False},
    "forward-to-backward": {"reshard_after_forward": False},
    "both": {"gathers_per_micro_batch": False, "reshard_after_forward": False},
}


@pytest.mark.parametrize("habits", KEEPERS.values(), ids=KEEPERS)
@pytest.mark.parametrize("model", [small.DENSE, small.TIED], ids=["dense", "tied"])
@pytest.mark.parametrize("dp", [2, 8])
def test_parameters_that_stay_gathered_are_held_whole(habits: dict[str, Any], model: Model, dp: int) -> None:
    # FSDP2, fully_shard(reshard_after_forward=False): unsharded parameters stay in memory after forward
    of_job, plan = job(model, small.switches(8, 8)), Plan(dp=dp, sharding="parameters")
    keeper = replace(ZERO, **habits)
    count = model.num_parameters
    assert whole(plan, "weights", keeper, of_job) == pytest.approx((2 / dp + 2) * count, rel=1e-12)
    for name in ("gradients", "optimizer"):
        assert whole(plan, name, keeper, of_job) == whole(plan, name, ZERO, of_job)
    # the two units in use are among them; only their gradients come on top
    gathered, kept = (float(held(plan, each, of_job)[0].gathered_bytes) for each in (ZERO, keeper))
    per_parameter = ZERO.parameter_gather_bytes + ZERO.gradient_reduce_bytes
    assert kept == pytest.approx(gathered * ZERO.gradient_reduce_bytes / per_parameter, rel=1e-12)


@pytest.mark.parametrize("habits", KEEPERS.values(), ids=KEEPERS)
@pytest.mark.parametrize(
    "plan",
    [
        Plan(),
        Plan(dp=8),
        Plan(dp=8, sharding="optimizer"),
        Plan(dp=8, sharding="gradients"),
        Plan(dp=8, sharding="parameters", shard_group=1),
    ],
)
def test_what_was_never_sharded_is_not_gathered(habits: dict[str, Any], plan: Plan) -> None:
    assert all_bytes(plan, replace(ZERO, **habits)) == all_bytes(plan)
    gathered, usual = (float(held(plan, each)[0].gathered_bytes) for each in (replace(ZERO, **habits), ZERO))
    assert gathered == usual
    assert (gathered > 0) == (plan.sharding == "gradients")  # those are whole until they are reduced


def test_stages_that_stay_gathered_hold_whole_gradients_and_one_flat_copy_on_top() -> None:
    stages = replace(ZERO, stages_stay_gathered=True)
    plan = Plan(dp=4, pp=2, sharding="parameters")
    count = whole(plan, "parameters")
    assert whole(plan, "weights", stages) == pytest.approx((2 / 4 + ZERO.parameter_gather_bytes) * count, rel=1e-12)
    assert whole(plan, "gradients", stages) == pytest.approx((2 / 4 + ZERO.gradient_reduce_bytes) * count, rel=1e-12)
    # torch, fully_shard, foreach_reduce: a unit's gradients are copied into the reduce-scatter's input
    layer = small.dense_layer().num_parameters(small.HIDDEN)
    assert float(held(plan, stages)[0].gathered_bytes) == layer * ZERO.gradient_reduce_bytes
    alone = plan.with_(pp=1)
    assert all_bytes(alone, stages) == all_bytes(alone)
    assert float(held(alone, stages)[0].gathered_bytes) == float(held(alone)[0].gathered_bytes) > 0


def test_gradient_habits_of_one_number_format_leave_the_others_alone() -> None:
    """DeepSpeed's two optimizers: fp16 keeps an fp32 copy of the shard's gradients, bf16 whole fp32 sums."""
    habits = GradientHabits(gradient_bytes=6.0, gradient_reduce_bytes=4.0, shard_gradient_bytes=0.0)
    software = replace(ZERO, shard_gradient_bytes=4.0, gradient_reduce_bytes=2.0, by_dtype=(("bf16", habits),))
    plan, count = Plan(dp=4, sharding="optimizer"), small.DENSE.num_parameters
    for dtype, gradients, wire in (("fp16", 2 + 4 / 4, 2.0), ("bf16", 6.0, 4.0)):
        peaks = dict.fromkeys(DTYPES, 1e12)
        cluster = small.switches(8, 8, peak_flops_per_s=peaks)
        of_job = replace(job(cluster=cluster), workload=small.Training(8, 128, dtype))
        assert whole(plan, "gradients", software, of_job) == pytest.approx(gradients * count, rel=1e-12)
        assert state_bytes(software, of_job.workload).reduce == wire


def test_what_an_optimizer_needs_while_it_steps_takes_the_place_of_activations() -> None:
    plan, count = Plan(dp=2, sharding="optimizer"), small.DENSE.num_parameters
    totals = {}
    for step in (0.0, 1e-3, 40.0):
        software = replace(ZERO, optimizer_step_bytes=step)
        found, classes = held(plan, software)
        totals[step] = float(training.rank_bytes(software, 1e6, classes[0], found))
    assert totals[1e-3] == totals[0.0]
    more = (1 + ZERO.fragmentation) * (40 * count / 2 - 1e6)
    assert totals[40.0] - totals[0.0] == pytest.approx(more, rel=1e-9)


HALVES = replace(ZERO, gradient_reduce_bytes=2.0)
FULL = replace(job(cluster=small.switches(8, 8)), workload=small.Training(8, 128, "fp32"))


@pytest.mark.parametrize("separate", [True, False])
@pytest.mark.parametrize("dp", [1, 8])
def test_fp32_ignores_what_the_profile_does_with_16_bit_numbers(separate: bool, dp: int) -> None:
    software = replace(HALVES, separate_master=separate)
    plan = Plan(dp=dp, sharding="parameters" if dp > 1 else "none")
    count = small.DENSE.num_parameters / dp
    assert whole(plan, "weights", software, FULL) == pytest.approx(4 * count, rel=1e-12)
    assert whole(plan, "gradients", software, FULL) == pytest.approx(4 * count, rel=1e-12)
    assert whole(plan, "optimizer", software, FULL) == pytest.approx(8 * count, rel=1e-12)
    gathered, halved = (float(held(plan, software, each)[0].gathered_bytes) for each in (FULL, None))
    assert gathered == 2 * halved
    assert (gathered > 0) == (dp > 1)
    kept = replace(software, reshard_after_forward=False)
    assert whole(plan, "weights", kept, FULL) == pytest.approx((4 + 4 * dp * (dp > 1)) * count, rel=1e-12)


@pytest.mark.parametrize("separate", [True, False])
def test_an_optimizer_without_fp32_copy_leaves_16_bit_weights(separate: bool) -> None:
    of_job = replace(job(cluster=small.switches(8, 8)), workload=small.Training(8, 128, "bf16", "adamw-bf16"))
    software = replace(ZERO, separate_master=separate)
    assert whole(Plan(), "weights", software, of_job) == 2 * small.DENSE.num_parameters
    assert all_bytes(Plan(), software, of_job) == (2 + 2 + 4) * small.DENSE.num_parameters
    full = replace(of_job, workload=small.Training(8, 128, "fp32", "adamw-bf16"))
    assert all_bytes(Plan(), software, full) == (4 + 4 + 4) * small.DENSE.num_parameters


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("separate", [True, False])
def test_bytes_per_parameter_are_written_once(optimizer: str, dtype: str, separate: bool) -> None:
    workload = small.Training(8, 128, dtype, optimizer)
    of_job = replace(job(cluster=small.switches(8, 8, peak_flops_per_s=dict.fromkeys(DTYPES, 1e12))), workload=workload)
    software = replace(ZERO, separate_master=separate)
    expected = state_bytes(software, workload).kept * small.DENSE.num_parameters
    assert all_bytes(Plan(), software, of_job) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("model", [small.DENSE, small.TIED], ids=["dense", "tied"])
@pytest.mark.parametrize("tp", [1, 4])
def test_the_ends_share_the_padded_table(model: Model, tp: int) -> None:
    software = replace(SOFTWARE, vocab_multiple=3000)
    embedding, head, table = (float(each) for each in end_parameters(model, software, Plan(tp=tp).table()))
    assert table == -(-model.vocab // (3000 * tp)) * 3000 * small.HIDDEN
    assert embedding == table
    assert head == table + small.HIDDEN  # the norm before it


def test_joined_states_keep_their_sum() -> None:
    found, classes = held(Plan(dp=4, pp=2, sharding="gradients"), of_job=job(small.TIED, small.switches(8, 8)))

    def same(value: Any) -> Any:
        return value

    joined = map_pieces(found, same, joined=True)
    for stage in classes:
        assert float(joined.weigh(stage, "bytes")) == pytest.approx(float(found.weigh(stage, "bytes")), rel=1e-12)
