"""Calls and bytes against what the papers count.

Payloads are whole buffers (the nccl-tests convention); a micro-batch is b sequences of s tokens of h values in 2 bytes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import small_jobs as small
from small_jobs import SOFTWARE, job

from meshwright.cost.estimate import estimate
from meshwright.cost.layer import layer_parameters
from meshwright.program import traffic
from meshwright.program.traffic import Call
from meshwright.spec.estimate import Traffic
from meshwright.spec.linear import Linear
from meshwright.spec.plan import Plan
from meshwright.spec.rules import Job
from meshwright.spec.software import Software

B, SEQ, H, LAYERS = 2, 128, small.HIDDEN, 4
STREAM = B * SEQ * H * 2
JOB = job(cluster=small.switches(2, 8, memory_mb=1000))
WORKLOAD = JOB.workload
DENSE, EXPERT = small.dense_layer(), small.expert_layer()


def counted(calls: tuple[Call, ...], **wanted: Any) -> list[tuple[float, float]]:
    """(times per layer or step, payload) of the calls that happen and match."""
    return [
        (float(call.count), float(call.payload_bytes))
        for call in calls
        if float(call.count) and all(getattr(call, name) == value for name, value in wanted.items())
    ]


def total(calls: tuple[Call, ...], **wanted: Any) -> float:
    return sum(count for count, _ in counted(calls, **wanted))


def rows(plan: Plan, of_job: Job = JOB, software: Software | None = None, **wanted: Any) -> list[Traffic]:
    """The communication of an estimate."""
    found = estimate(of_job.model, of_job.cluster, of_job.workload, plan, software or of_job.software)
    assert found.problems == ()
    return [row for row in found.traffic if all(getattr(row, name) == value for name, value in wanted.items())]


def calls_per_step(plan: Plan, of_job: Job = JOB, software: Software | None = None, **wanted: Any) -> float:
    return sum(row.calls_per_step for row in rows(plan, of_job, software, **wanted))


def wire(plan: Plan, of_job: Job = JOB, software: Software | None = None, **wanted: Any) -> float:
    return sum(row.wire_bytes_per_step for row in rows(plan, of_job, software, **wanted))


# -- tensor parallel


def test_a_layer_sums_its_activations_twice_forward_and_twice_backward() -> None:
    # Shoeybi et al. 2019 (Megatron-LM), section 3 and figure 4: four all-reduces of b s h a layer
    calls = traffic.tensor_calls(JOB.model, DENSE, WORKLOAD, Plan(tp=4, micro_batch=B).table())
    assert counted(calls) == [(2, STREAM), (2, STREAM)]
    assert total(calls, collective="all_reduce", phase="forward") == 2
    assert total(calls, collective="all_reduce", phase="backward") == 2
    assert sum(count * payload for count, payload in counted(calls)) == 8 * B * SEQ * H


def test_with_sequence_parallelism_each_sum_is_a_scatter_and_a_gather() -> None:
    # Korthikanti et al. 2022, section 4.2.2: four all-gathers and four reduce-scatters, no more bytes than before
    plan = Plan(tp=4, micro_batch=B, sequence_parallel=True)
    calls = traffic.tensor_calls(JOB.model, DENSE, WORKLOAD, plan.table())
    assert total(calls, collective="all_gather") == 4
    assert total(calls, collective="reduce_scatter") == 4
    assert total(calls, collective="all_reduce") == 0
    whole_step = wire(Plan(tp=4, micro_batch=B, dp=2), axis="tp")
    loss = 3 * 2 * 3 / 4 * 4 * B * SEQ * 2  # three values per token, summed over the shards of the vocabulary
    split_step = wire(Plan(tp=4, micro_batch=B, dp=2, sequence_parallel=True), axis="tp")
    blocks = 4 * LAYERS
    # beside the blocks: the embedding's sum and the head's input gradient; split, the gathers of their counterparts too
    assert whole_step - loss == pytest.approx(2 * 2 * 3 / 4 * STREAM * (blocks + 2))
    assert split_step - loss == pytest.approx(2 * 3 / 4 * STREAM * (2 * blocks + 4))


def test_a_layer_whose_blocks_run_side_by_side_sums_once() -> None:
    # GPT-J and PaLM: y = x + MLP(LN(x)) + Attention(LN(x)) (Chowdhery et al. 2022, section 2)
    calls = traffic.tensor_calls(JOB.model, replace(DENSE, parallel=True), WORKLOAD, Plan(tp=2).table())
    assert total(calls, phase="forward") == 1


def test_full_recompute_runs_the_forward_collectives_again() -> None:
    plan = Plan(tp=4, micro_batch=B, dp=2)
    again = calls_per_step(plan.with_(recompute="full"), axis="tp") - calls_per_step(plan, axis="tp")
    assert again == 2 * LAYERS * 2  # two a layer, two micro-batches


# -- context and expert parallel


def test_keys_and_values_go_once_round_the_ring_and_come_back_with_their_gradients() -> None:
    # Liu et al. 2023 (ring attention), section 3: cp - 1 sends of one rank's keys and values
    calls = traffic.context_calls(DENSE, WORKLOAD, SOFTWARE, Plan(cp=4, micro_batch=B).table())
    chunk = B * SEQ / 4 * 4 * (32 + 32) * 2  # tokens of a rank, kv heads, key and value, bytes
    assert counted(calls, phase="forward") == [(3, chunk)]
    assert counted(calls, phase="backward") == [(3, 2 * chunk)]


def test_tensor_parallel_ranks_send_their_own_key_value_heads_only() -> None:
    one, split, more = (
        traffic.context_calls(DENSE, WORKLOAD, SOFTWARE, Plan(cp=4, tp=tp).table())[0].payload_bytes for tp in (1, 4, 8)
    )
    assert one == 4 * split
    assert more == split  # a rank holds at least one whole head


def test_gathered_context_moves_the_whole_sequence() -> None:
    # Llama 3 (Grattafiori et al. 2024), section 3.3.2: all-gather based context parallelism
    software = replace(SOFTWARE, context_parallel="gather")
    calls = traffic.context_calls(DENSE, WORKLOAD, software, Plan(cp=4, micro_batch=B).table())
    whole = B * SEQ * 4 * (32 + 32) * 2
    assert counted(calls, collective="all_gather", phase="forward") == [(1, whole)]
    assert counted(calls, collective="reduce_scatter", phase="backward") == [(1, whole)]


def test_tokens_go_to_their_experts_and_back_forward_and_backward() -> None:
    # Lepikhin et al. 2020 (GShard), section 3.2: two all-to-alls forward; their gradients two backward
    calls = traffic.expert_calls(small.EXPERTS, EXPERT, WORKLOAD, SOFTWARE, Plan(dp=4, ep=4, micro_batch=B).table())
    assert total(calls, collective="all_to_all") == 4
    assert {payload for _, payload in counted(calls)} == {2 * STREAM * SOFTWARE.expert_imbalance}  # top-2
    assert traffic.expert_calls(JOB.model, DENSE, WORKLOAD, SOFTWARE, Plan().table()) == ()


def test_experts_cost_four_all_to_alls_a_layer_and_micro_batch() -> None:
    experts = job(small.EXPERTS, small.switches(2, 8, memory_mb=1000))
    plan = Plan(dp=4, ep=4)
    assert calls_per_step(plan, experts, axis="ep") == 4 * 4 * 2
    even = replace(SOFTWARE, expert_imbalance=1.0)
    assert wire(plan, experts, even, axis="ep") == pytest.approx(4 * 4 * 2 * 3 / 4 * SEQ * H * 2 * 2)


def test_the_busiest_rank_sends_more_than_the_mean() -> None:
    plan = Plan(dp=4, ep=4, micro_batch=B).table()
    skewed = replace(SOFTWARE, expert_imbalance=1.5)
    calls = traffic.expert_calls(small.EXPERTS, EXPERT, WORKLOAD, skewed, plan)
    assert counted(calls) == [(1, 1.5 * 2 * STREAM)] * 4


def test_experts_split_over_tensor_ranks_move_all_dispatched_tokens_at_once() -> None:
    def moved(split: bool, **mlp: int) -> tuple[Call, ...]:
        layer = replace(EXPERT, mlp=replace(EXPERT.mlp, **mlp))
        plan = Plan(tp=4, micro_batch=B, sequence_parallel=split)
        return traffic.tensor_calls(small.EXPERTS, layer, WORKLOAD, plan.table())

    one, top_2 = (1, STREAM), (1, 2 * STREAM)
    assert counted(moved(False)) == [one, one, top_2, top_2]  # attention and experts, forward and backward
    for collective in ("all_gather", "reduce_scatter"):
        assert counted(moved(True), collective=collective, phase="forward") == [one, top_2]
        assert counted(moved(True), collective=collective, phase="backward") == [one, top_2]
    # a shared expert is a dense block
    assert counted(moved(False, shared_width=256), phase="forward") == [(2, STREAM), top_2]


def test_dispatched_tokens_may_travel_in_8_bits() -> None:
    software = replace(SOFTWARE, expert_dispatch_bytes=1.0, expert_imbalance=1.0)
    calls = traffic.expert_calls(small.EXPERTS, EXPERT, WORKLOAD, software, Plan(dp=4, ep=4, micro_batch=B).table())
    assert counted(calls, what="dispatch") == [(1, STREAM)] * 2
    assert counted(calls, what="combine") == [(1, 2 * STREAM)] * 2


# -- pipeline


@pytest.mark.parametrize(("schedule", "v"), [("1f1b", 1), ("interleaved", 2), ("zero-bubble-v", 2)])
def test_a_rank_sends_on_and_back_once_per_virtual_stage_and_micro_batch(schedule: str, v: int) -> None:
    # Narayanan et al. 2021 (SC21), section 2.2.2: interleaving sends v times as much
    plan = Plan(pp=2, dp=4, schedule=schedule, virtual_stages=v)
    assert calls_per_step(plan, axis="pp", collective="send") == 2 * v * 2
    assert {row.payload_bytes_per_call for row in rows(plan, axis="pp")} == {SEQ * H * 2}


def test_stages_send_the_parts_of_sequence_parallel_ranks() -> None:
    plan = Plan(pp=2, tp=4, sequence_parallel=True)
    assert {row.payload_bytes_per_call for row in rows(plan, axis="pp")} == {SEQ * H * 2 / 4}


def test_scattered_transfers_send_a_share_and_gather_it_again() -> None:
    # Narayanan et al. 2021 (SC21), section 4.1
    software = replace(SOFTWARE, scattered_pipeline_transfers=True)
    calls = traffic.pipeline_calls(JOB.model, WORKLOAD, software, Plan(pp=2, tp=4, micro_batch=B).table())
    assert {payload for _, payload in counted(calls, axis="pp")} == {STREAM / 4}
    assert counted(calls, axis="tp", collective="all_gather") == [(1, STREAM)] * 2


def test_both_ends_of_a_pipeline_sum_a_tied_embedding_once_a_step() -> None:
    tied = job(small.TIED, small.switches(2, 8, memory_mb=1000))
    table = 8192 * H * SOFTWARE.gradient_reduce_bytes
    apart = rows(Plan(pp=4, dp=2), tied, axis="pp", collective="all_reduce")
    assert [(row.calls_per_step, row.payload_bytes_per_call, row.group_size) for row in apart] == [(1, table, 2)]
    assert rows(Plan(pp=4, tp=2), tied, axis="pp", collective="all_reduce")[0].payload_bytes_per_call == table / 2
    together = Plan(pp=2, dp=2, schedule="zero-bubble-v", virtual_stages=2)  # a V puts both ends on one rank
    assert rows(together, tied, axis="pp", collective="all_reduce") == []
    assert rows(Plan(pp=4, dp=2), JOB, axis="pp", collective="all_reduce") == []


def test_a_tied_embedding_narrower_than_the_stack_is_summed_in_its_own_width() -> None:
    # OPT-350m: a table of 512 under a stack of 1024 (Zhang et al. 2022)
    narrow = replace(small.TIED, embedding_dim=64)
    (call,) = traffic.tied_embedding_call(narrow, WORKLOAD, SOFTWARE, Plan(pp=2).table())
    assert float(call.payload_bytes) == 8192 * 64 * SOFTWARE.gradient_reduce_bytes


def test_fp32_gradients_travel_in_4_bytes_even_where_the_profile_reduces_in_16_bits() -> None:
    software, table = replace(SOFTWARE, gradient_reduce_bytes=2.0), Plan(dp=4, pp=2).table()
    for dtype, size in (("bf16", 2), ("fp32", 4)):
        workload = replace(WORKLOAD, dtype=dtype)
        (call,) = traffic.tied_embedding_call(small.TIED, workload, software, table)
        assert float(call.payload_bytes) == size * 8192 * H
        calls = traffic.data_calls(software, workload, table, np.asarray(PARAMETERS), np.asarray(0.0))
        assert counted(calls) == [(1, size * PARAMETERS)]


# -- data parallel

PARAMETERS = 1_000_000.0


def data_calls(plan: Plan, **habits: Any) -> tuple[Call, ...]:
    software = replace(SOFTWARE, **habits)
    return traffic.data_calls(software, WORKLOAD, plan.table(), np.asarray(PARAMETERS), np.asarray(0.0))


def test_replicas_sum_their_gradients_once_a_step() -> None:
    calls = data_calls(Plan(dp=4))
    assert counted(calls) == [(1, 4 * PARAMETERS)]
    assert total(calls, collective="all_reduce", group="data") == 1


@pytest.mark.parametrize("sharding", ["optimizer", "gradients"])
def test_zero_1_and_2_scatter_gradients_and_gather_weights_once_a_step(sharding: str) -> None:
    # Rajbhandari et al. 2020 (ZeRO), section 7.1: as much as an all-reduce
    calls = data_calls(Plan(dp=4, sharding=sharding), reduces_per_micro_batch=False)
    assert counted(calls, collective="reduce_scatter") == [(1, 4 * PARAMETERS)]
    assert counted(calls, collective="all_gather") == [(1, 2 * PARAMETERS)]


def test_an_optimizer_that_sums_all_gradients_scatters_none() -> None:
    # DeepSpeed 0.6, BF16_Optimizer: all-reduced fp32 sums, weights gathered as in ZeRO-1
    calls = data_calls(Plan(dp=4, sharding="optimizer"), gradients_all_reduced=True)
    assert counted(calls, collective="all_reduce") == [(1, 4 * PARAMETERS)]
    assert total(calls, collective="reduce_scatter") == 0
    assert counted(calls, collective="all_gather") == [(1, 2 * PARAMETERS)]
    # shards across groups are part of the sum
    grouped = data_calls(Plan(dp=8, sharding="optimizer", shard_group=4), gradients_all_reduced=True)
    assert counted(grouped, collective="all_reduce") == [(1, 4 * PARAMETERS)]
    stage_2 = data_calls(Plan(dp=4, sharding="gradients"), gradients_all_reduced=True)
    assert total(stage_2, collective="all_reduce", group="data") == 0


def test_owners_of_whole_tensors_get_each_gradient_and_send_each_weight() -> None:
    # InternEvo's hybrid ZeRO: a reduction to the owner and a broadcast from it for every matrix
    software = replace(SOFTWARE, shards_whole_tensors=True)
    arguments = (np.asarray(PARAMETERS), np.asarray(0.0))
    table = Plan(dp=4, sharding="optimizer").table()
    calls = traffic.data_calls(software, WORKLOAD, table, *arguments, tensors=5)
    assert counted(calls, collective="reduce") == [(5, 4 * PARAMETERS / 5)]
    assert counted(calls, collective="broadcast") == [(5, 2 * PARAMETERS / 5)]
    assert total(calls, collective="reduce_scatter") == total(calls, collective="all_gather") == 0
    # fully sharded parameters are flat buffers all the same
    whole = Plan(dp=4, sharding="parameters").table()
    assert total(traffic.data_calls(software, WORKLOAD, whole, *arguments, tensors=5), collective="broadcast") == 0


def test_gradients_that_stay_sharded_are_scattered_after_every_micro_batch() -> None:
    plan = Plan(dp=4, sharding="gradients")
    assert total(data_calls(plan), collective="reduce_scatter") == plan.num_micro_batches(8) == 2
    assert total(data_calls(plan), collective="all_gather") == 1


def test_fully_sharded_layers_are_gathered_twice_and_scattered_once_per_micro_batch() -> None:
    # Zhao et al. 2023 (FSDP), section 3.2: all-gather before forward and before backward, reduce-scatter after
    plan = Plan(dp=4, sharding="parameters")
    m = plan.num_micro_batches(8)
    assert counted(data_calls(plan), collective="all_gather") == [(2 * m, 2 * PARAMETERS)]
    assert counted(data_calls(plan), collective="reduce_scatter") == [(m, 4 * PARAMETERS)]
    kept = data_calls(plan, reshard_after_forward=False)
    assert total(kept, collective="all_gather") == m
    once = data_calls(plan, gathers_per_micro_batch=False, reduces_per_micro_batch=False)
    assert total(once, collective="all_gather") == 2
    assert total(once, collective="reduce_scatter") == 1


def test_fully_sharded_traffic_is_one_and_a_half_times_that_of_replicas() -> None:
    # Rajbhandari et al. 2020 (ZeRO), section 7.2: 3 Ψ instead of 2 Ψ, with one micro-batch and 16 bits on the wire
    software = replace(SOFTWARE, gradient_reduce_bytes=2.0)
    replicas = wire(Plan(dp=8), software=software, axis="dp")
    sharded = wire(Plan(dp=8, sharding="parameters"), software=software, axis="dp")
    assert sharded == pytest.approx(1.5 * replicas, rel=1e-12)


def test_shards_of_a_smaller_group_are_summed_across_the_groups() -> None:
    # Zhao et al. 2023 (FSDP), section 3.2.2, hybrid sharding
    calls = data_calls(Plan(dp=8, sharding="parameters", shard_group=4))
    assert counted(calls, group="replicate", collective="all_reduce") == [(1, 4 * PARAMETERS / 4)]
    assert total(calls, group="shard", collective="reduce_scatter") == 1
    plan = Plan(dp=8, sharding="parameters", shard_group=4)
    assert {row.group_size for row in rows(plan, axis="dp", collective="all_reduce")} == {2}
    assert {row.group_size for row in rows(plan, axis="dp", collective="all_gather")} == {4}


@pytest.mark.parametrize("dp", [2, 4, 8])
def test_a_step_sends_twice_the_gradients_but_one_share_of_them(dp: int) -> None:
    # Patarasuk and Yuan 2009: 2 (n-1)/n of the buffer, whatever the algorithm that is bandwidth-optimal
    gradients = small.DENSE.num_parameters * SOFTWARE.gradient_reduce_bytes
    assert wire(Plan(dp=dp), axis="dp") == pytest.approx(2 * (dp - 1) / dp * gradients, rel=1e-12)


def test_context_ranks_sum_gradients_too() -> None:
    assert wire(Plan(dp=2, cp=4), axis="dp") == pytest.approx(wire(Plan(dp=8), axis="dp"), rel=1e-12)


def test_experts_are_summed_over_the_ranks_that_hold_the_same_ones() -> None:
    experts = job(small.EXPERTS, small.switches(2, 8, memory_mb=1000))
    plan = Plan(dp=8, ep=4)
    dense, expert = (float(count) for count in layer_parameters(small.EXPERTS, EXPERT, plan.table()))
    assert expert == pytest.approx(3 * H * 256 * 4 / 4)  # gate, up and down of one of four experts
    whole = small.EXPERTS.num_parameters - 4 * 3 * H * 256 * 4
    expected = 4.0 * (2 * 7 / 8 * whole + 2 * 1 / 2 * 4 * expert)
    assert wire(plan, experts, axis="dp") == pytest.approx(expected, rel=1e-12)


def test_what_a_rank_holds_adds_up_to_the_model() -> None:
    tensor = Plan(tp=4).table()
    dense, expert = layer_parameters(JOB.model, DENSE, tensor)
    norms = 2 * H
    assert expert == 0
    assert 4 * (float(dense) - norms) + norms == DENSE.num_parameters(H)


# -- shards


@pytest.mark.parametrize(("tp", "heads"), [(1, 8), (2, 4), (4, 2), (8, 1), (16, 1)])
def test_shards_hold_whole_heads(tp: int, heads: int) -> None:
    query = Linear("q", 256, 8 * 32, "column", 8)
    assert traffic.shard_width(query, tp) == (256, heads * 32)
    out = Linear("out", 8 * 32, 256, "row", 8)
    assert traffic.shard_width(out, tp) == (heads * 32, 256)
    assert traffic.shard_width(Linear("router", 256, 4, "replicated"), tp) == (256, 4)


@pytest.mark.parametrize(
    ("vocab", "multiple", "tp", "padded"), [(50257, 128, 8, 51200), (50257, 128, 1, 50304), (32000, 1, 3, 32001)]
)
def test_the_vocabulary_is_padded_to_a_multiple_of_the_tensor_ranks(
    vocab: int, multiple: int, tp: int, padded: int
) -> None:
    # Megatron-LM, make-vocab-size-divisible-by 128: GPT-2's 50257 become 50304, and 51200 over 8 ranks
    model = replace(small.DENSE, vocab=vocab)
    assert int(traffic.padded_vocab(model, replace(SOFTWARE, vocab_multiple=multiple), tp)) == padded
