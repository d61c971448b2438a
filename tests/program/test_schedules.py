from collections import Counter
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meshwright.program.schedules import Operation, check, operations, rank_of_stage
from meshwright.spec.plan import SCHEDULES


@st.composite
def settings_of_a_schedule(draw: st.DrawFn) -> tuple[str, int, int, int]:
    schedule = draw(st.sampled_from(SCHEDULES))
    pp = draw(st.integers(1, 8))
    virtual_stages = {"gpipe": 1, "1f1b": 1, "interleaved": draw(st.integers(2, 4))}.get(schedule, 2)
    m = draw(st.integers(1, 5 * pp))
    m = {"interleaved": -(-m // pp) * pp, "dualpipe-v": m + 2 * pp}.get(schedule, m)
    return schedule, pp, m, virtual_stages


@given(settings_of_a_schedule())
@settings(max_examples=100, deadline=None)
def test_every_stage_runs_every_micro_batch_forward_once_and_backward_once(chosen):
    _, pp, m, virtual_stages = chosen
    done = Counter(operation for order in operations(*chosen) for operation in order)
    assert set(done.values()) == {1}
    for stage in range(pp * virtual_stages):
        for k in range(m):
            kinds = {kind for kind in "FBIW" if done[Operation(kind, stage, k)]}
            assert kinds in ({"F", "B"}, {"F", "I", "W"})
    assert sum(done.values()) == sum(2 + (op.kind == "I") for op in done if op.kind in "BI")


@given(settings_of_a_schedule())
@settings(max_examples=100, deadline=None)
def test_operations_run_on_the_rank_that_holds_the_stage_and_in_a_possible_order(chosen):
    schedule, pp, _, virtual_stages = chosen
    holder = rank_of_stage(schedule, pp, virtual_stages)
    for rank, order in enumerate(operations(*chosen)):
        at = {operation: place for place, operation in enumerate(order)}
        assert {holder[op.stage] for op in order} == {rank}
        for op in order:
            if op.kind in "BI":
                assert at[op] > at[op._replace(kind="F")]
            if op.kind == "W":
                assert at[op] > at[op._replace(kind="I")]


def test_1f1b_of_4_stages_and_8_micro_batches_is_the_one_in_the_paper():
    # Narayanan et al. 2021, SC21, figure 4 (top): device 1 and device 4.
    first, *_, last = operations("1f1b", 4, 8, 1)
    assert spelled(first) == "F0 F1 F2 F3 B0 F4 B1 F5 B2 F6 B3 F7 B4 B5 B6 B7"
    assert spelled(last) == "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 F6 B6 F7 B7"


def test_interleaved_of_4_ranks_and_2_chunks_is_the_one_in_the_paper():
    # Narayanan et al. 2021, SC21, figure 4 (bottom), device 1: ten chunk forwards, then in turn.
    order = operations("interleaved", 4, 8, 2)[0]
    assert [(op.kind, op.stage) for op in order[:12]] == [("F", 0)] * 4 + [("F", 4)] * 4 + [("F", 0)] * 3 + [("B", 4)]
    assert [op.micro_batch for op in order[:12]] == [0, 1, 2, 3, 0, 1, 2, 3, 4, 5, 6, 0]


def test_in_a_v_the_first_rank_holds_the_first_and_the_last_stage():
    # Qi et al. 2024 (arXiv:2405.15362), section 3: the V-shape building block.
    assert rank_of_stage("zero-bubble-v", 4, 2) == (0, 1, 2, 3, 3, 2, 1, 0)
    assert rank_of_stage("dualpipe-v", 2, 2) == (0, 1, 1, 0)
    assert rank_of_stage("interleaved", 2, 3) == (0, 1, 0, 1, 0, 1)


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        (("2f2b", 4, 8, 1), "'2f2b' is unknown; it must be one of gpipe"),
        (("1f1b", 0, 8, 1), "pp is 0; it must be at least 1"),
        (("1f1b", 4, 8, 2), "virtual_stages is 2; use 1"),
        (("zero-bubble-v", 4, 8, 1), "virtual_stages is 1; use 2"),
        (("interleaved", 4, 8, 1), "virtual_stages is 1; use 2"),
        (("interleaved", 4, 10, 2), r"\(10\) divisible by pp \(4\); nearest: 8"),
        (("interleaved", 4, 1, 2), "nearest: 4"),
        (("dualpipe-v", 4, 7, 2), "at least 2 pp; use 8 or more"),
    ],
)
def test_an_impossible_schedule_is_refused_with_the_value_the_rule_and_what_works(chosen, said):
    with pytest.raises(ValueError, match=said):
        check(*chosen)
    with pytest.raises(ValueError, match=said):
        operations(*chosen)


@pytest.mark.parametrize("pp", [1, 2, 3, 4, 7])
def test_tables_are_those_of_torch(pp):
    torch_schedules = pytest.importorskip("torch.distributed.pipelining.schedules")
    classes = {
        "interleaved": torch_schedules.ScheduleInterleaved1F1B,
        "zero-bubble-v": torch_schedules.ScheduleZBVZeroBubble,
        "dualpipe-v": torch_schedules.ScheduleDualPipeV,
    }
    kinds = {"FORWARD": "F", "FULL_BACKWARD": "B", "BACKWARD_INPUT": "I", "BACKWARD_WEIGHT": "W"}
    for schedule, torch_class in classes.items():
        for m in (m for m in range(1, 4 * pp + 2) if is_legal(schedule, pp, m)):
            schedule_like = SimpleNamespace(
                pp_group_size=pp, num_stages=2 * pp, n_local_stages=2, _n_microbatches=m, microbatches_per_round=pp
            )
            for rank, order in enumerate(operations(schedule, pp, m, 2)):
                actions = torch_class._calculate_single_rank_operations(schedule_like, rank)
                flat = [part for action in actions if action for part in (action.sub_actions or (action,))]
                theirs = [(kinds[a.computation_type.name], a.stage_index, a.microbatch_index) for a in flat]
                assert theirs == order, (schedule, m, rank)


@pytest.mark.parametrize("pp", [1, 2, 3, 4, 7])
def test_gpipe_and_1f1b_run_as_torch_runs_them(pp):
    torch_schedules = pytest.importorskip("torch.distributed.pipelining.schedules")
    classes = {"gpipe": torch_schedules.ScheduleGPipe, "1f1b": torch_schedules.Schedule1F1B}
    for schedule, torch_class in classes.items():
        for m in range(1, 3 * pp + 1):
            for rank, order in enumerate(operations(schedule, pp, m, 1)):
                stage = RecordingStage(rank)
                schedule_like = SimpleNamespace(
                    _stage=stage,
                    _num_stages=pp,
                    _n_microbatches=m,
                    scale_grads=True,
                    _check_inputs=lambda *_, m=m: ([()] * m, [{}] * m),
                    _initialize_stage=lambda *_: None,
                    _maybe_compute_loss=lambda *_: None,
                    _maybe_get_loss=lambda *_: None,
                    _update_losses=lambda *_: None,
                )
                torch_class._step_microbatches(schedule_like)
                assert stage.ran == order, (schedule, m, rank)


class RecordingStage:
    """Stands in for torch's pipeline stage: nothing to send or receive, and it notes what it is asked to run."""

    def __init__(self, rank):
        self.stage_index = rank
        self.ran = []

    def forward_one_chunk(self, micro_batch, *_, **__):
        self.ran.append(("F", self.stage_index, micro_batch))

    def backward_one_chunk(self, micro_batch, **_):
        self.ran.append(("B", self.stage_index, micro_batch))

    def perform_reduce_grad(self, _):
        pass

    def _nothing(self, _):
        return []

    get_fwd_recv_ops = get_fwd_send_ops = get_bwd_recv_ops = get_bwd_send_ops = _nothing


def is_legal(schedule, pp, m):
    return {"interleaved": m % pp == 0, "dualpipe-v": m >= 2 * pp}.get(schedule, True)


def spelled(order):
    return " ".join(f"{op.kind}{op.micro_batch}" for op in order)
