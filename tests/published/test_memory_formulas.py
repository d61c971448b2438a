"""Memory formulas of the papers, from the numbers they print."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import meshwright as mw
from meshwright.cost import training
from meshwright.cost.activations import layer_activation_bytes
from meshwright.cost.layer import Setting
from meshwright.cost.states import states
from meshwright.spec.layers import MLP, Attention, Layer
from meshwright.spec.model import Model
from meshwright.spec.plan import RECOMPUTE, Plan
from meshwright.spec.workload import Training

MIB = 2**20
S, B, H, A = 2048, 4, 12288, 96  # GPT-3 175B in Korthikanti et al. 2022, table 3
UNFUSED = ("megatron-2021", "megatron-deepspeed-2022")


def gpt_layer(hidden: int, heads: int) -> Layer:
    return Layer(
        Attention(heads, heads, hidden // heads, qkv_bias=True, out_bias=True),
        MLP(4 * hidden, gated=False, bias=True),
        norm_parameters=4 * hidden,
    )


def gpt(layers: int = 8) -> Model:
    return Model("gpt", H, 51200, (gpt_layer(H, A),) * layers, norm="layer", position="learned", dropout=True)


def setting(model: Model, plan: Plan, software: str, seq_len: int = S, dtype: str = "bf16") -> Setting:
    cluster = mw.load_cluster("16xdgx-a100-80g").part(plan.world_size)
    workload = Training(plan.dp * plan.micro_batch, seq_len, dtype)
    return training.settle(model, cluster, mw.load_software(software), workload, plan.table())


def per_layer(software: str, recompute: str = "none", **plan: Any) -> float:
    here = setting(gpt(), Plan(micro_batch=B, recompute=recompute, **plan), software)
    return float(layer_activation_bytes(here, gpt_layer(H, A), RECOMPUTE.index(recompute)))


# -- activations: Korthikanti et al. 2022 (arXiv 2205.05198), equations 1 to 6


@pytest.mark.parametrize("software", UNFUSED)
def test_activations_of_a_layer(software: str) -> None:
    """Equation 1: s b h (34 + 5 a s / h)."""
    assert per_layer(software) == pytest.approx(S * B * H * (34 + 5 * A * S / H))


@pytest.mark.parametrize("software", UNFUSED)
@pytest.mark.parametrize("t", [2, 4, 8])
def test_activations_under_tensor_parallelism(software: str, t: int) -> None:
    """Equation 2: s b h (10 + 24 / t + 5 a s / (h t))."""
    assert per_layer(software, tp=t) == pytest.approx(S * B * H * (10 + 24 / t + 5 * A * S / (H * t)))


@pytest.mark.parametrize("software", UNFUSED)
@pytest.mark.parametrize("t", [2, 4, 8])
def test_activations_under_sequence_parallelism(software: str, t: int) -> None:
    """Equation 4: s b h / t (34 + 5 a s / h)."""
    assert per_layer(software, tp=t, sequence_parallel=True) == pytest.approx(S * B * H / t * (34 + 5 * A * S / H))


@pytest.mark.parametrize("software", UNFUSED)
@pytest.mark.parametrize("t", [1, 8])
def test_activations_under_selective_recompute(software: str, t: int) -> None:
    """Equation 6: 34 s b h / t."""
    found = per_layer(software, "selective", tp=t, sequence_parallel=t > 1)
    assert found == pytest.approx(34 * S * B * H / t)


@pytest.mark.parametrize("software", [*UNFUSED, "current"])
def test_activations_under_full_recompute(software: str) -> None:
    """Section 5: 2 s b h, the layer's input."""
    assert per_layer(software, "full") == pytest.approx(2 * S * B * H)


@pytest.mark.parametrize(("name", "h", "a", "share"), [("gpt-3", 12288, 96, 0.70), ("mt-nlg", 20480, 128, 0.65)])
def test_selective_recompute_saves_what_the_paper_says(name: str, h: int, a: int, share: float) -> None:
    """Section 5: selective recompute saves 70 % (GPT-3) and 65 % (MT-NLG) of the activations."""
    shape = Model(name, h, 51200, (gpt_layer(h, a),) * 2, norm="layer", position="learned", dropout=True)
    here = setting(shape, Plan(tp=8, sequence_parallel=True), "megatron-2021")
    kept, whole = (
        float(layer_activation_bytes(here, shape.layers[0], RECOMPUTE.index(mode))) for mode in ("selective", "none")
    )
    assert 1 - kept / whole == pytest.approx(share, abs=0.01)


def test_fused_attention_keeps_no_scores() -> None:
    """Dao et al. 2022 (FlashAttention), theorem 2: memory linear in the sequence length."""
    model = gpt()
    plan = Plan()
    one, four = (
        float(layer_activation_bytes(setting(model, plan, "current", s), model.layers[0], RECOMPUTE.index("none")))
        for s in (1024, 4096)
    )
    assert four == pytest.approx(4 * one)


@pytest.mark.parametrize(("gated", "copies"), [(False, 4), (True, 5)])
def test_every_column_matrix_of_paddle_keeps_its_own_input(gated: bool, copies: int) -> None:
    """PaddlePaddle 2.5, mpu/mp_ops.py: c_identity writes a copy; queries, keys, values, gate and up are
    ColumnParallelLinear layers of their own (PaddleNLP 2.6, llama/modeling.py, gpt/modeling.py), in place of one input
    of each of the two blocks."""
    layer = Layer(Attention(A, A, H // A), MLP(4 * H, gated=gated, bias=False))
    model = Model("layer", H, 51200, (layer,) * 2)
    kept = {}
    for tp in (1, 2):
        here = setting(model, Plan(tp=tp, micro_batch=B), "paddle-2023")
        for habit in ("sharded", "copied"):
            changed = replace(here, software=replace(here.software, column_inputs=habit))
            kept[tp, habit] = float(layer_activation_bytes(changed, layer, RECOMPUTE.index("none")))
    assert kept[1, "copied"] == kept[1, "sharded"]
    assert kept[2, "copied"] - kept[2, "sharded"] == pytest.approx((copies - 2) * 2 * S * B * H)


def test_gathered_inputs_are_kept_whole() -> None:
    """torch.distributed.tensor.parallel, PrepareModuleInput: the matrices read, and autograd keeps, what the
    sequence-parallel shards were gathered into; Megatron keeps the shards (Korthikanti et al. 2022, section 4.2.2)."""
    here = setting(gpt(), Plan(tp=8, micro_batch=B, sequence_parallel=True), "current")
    whole = replace(here, software=replace(here.software, column_inputs="gathered"))
    shards, gathered = (
        float(layer_activation_bytes(each, gpt_layer(H, A), RECOMPUTE.index("none"))) for each in (here, whole)
    )
    assert gathered - shards == pytest.approx(2 * 2 * S * B * H * (1 - 1 / 8))


@pytest.mark.parametrize(("dtype", "kept", "sharded"), [("fp16", 2 + 2, 12 + 4), ("bf16", 2 + 2 + 4 + 2, 12)])
@pytest.mark.parametrize("dp", [1, 8])
def test_deepspeeds_optimizers_of_2022(dtype: str, kept: float, sharded: float, dp: int) -> None:
    """DeepSpeed 0.6: stage_1_and_2.py keeps an fp32 copy of the shard's gradients; bf16_optimizer.py whole fp32 sums,
    and the weights as they were before it flattened them stay in the allocator's cache."""
    found, parameters = state_bytes("megatron-deepspeed-2022", Plan(dp=dp, sharding="optimizer"), dtype)
    assert found == pytest.approx((kept + sharded / dp) * parameters)


# -- model states: Rajbhandari et al. 2020 (ZeRO, arXiv 1910.02054), section 5 and figure 1


def state_bytes(software: str, plan: Plan, dtype: str = "bf16") -> tuple[float, float]:
    """(bytes of weights, gradients and optimizer states of one layer on a rank, parameters of the layer)."""
    model = gpt(1)
    held = states(setting(model, plan, software, dtype=dtype)).layers[0]
    return float(held.bytes), float(gpt_layer(H, A).num_parameters(H))


@pytest.mark.parametrize(
    ("sharding", "bytes_per_parameter"),
    [
        ("none", lambda n: 2 + 2 + 12),
        ("optimizer", lambda n: 2 + 2 + 12 / n),
        ("gradients", lambda n: 2 + (2 + 12) / n),
        ("parameters", lambda n: (2 + 2 + 12) / n),
    ],
)
@pytest.mark.parametrize("n", [4, 64])
def test_zero_stages(sharding: str, bytes_per_parameter: Any, n: int) -> None:
    """2 bytes of weight, 2 of gradient and K = 12 of Adam per parameter, sharded in three stages over N ranks."""
    found, parameters = state_bytes("deepspeed-2023", Plan(dp=n, sharding=sharding))
    assert found == pytest.approx(bytes_per_parameter(n) * parameters)


@pytest.mark.parametrize(
    ("sharding", "gigabytes"), [("none", 120.0), ("optimizer", 31.4), ("gradients", 16.6), ("parameters", 1.9)]
)
def test_zero_figure_1(sharding: str, gigabytes: float) -> None:
    """A model of 7.5 billion parameters over 64 ranks: 120, 31.4, 16.6 and 1.9 GB."""
    found, parameters = state_bytes("deepspeed-2023", Plan(dp=64, sharding=sharding))
    assert found / parameters * 7.5 == pytest.approx(gigabytes, abs=0.06)


@pytest.mark.parametrize("dp", [2, 8, 16])
def test_megatrons_own_estimate(dp: int) -> None:
    """Megatron-LM, training/theoretical_memory_usage.py and docs of the distributed optimizer: 18 bytes per parameter,
    6 + 12 / dp with the distributed optimizer (bf16 weights, fp32 gradients)."""
    plain, parameters = state_bytes("current", Plan(dp=dp))
    sharded, _ = state_bytes("current", Plan(dp=dp, sharding="optimizer"))
    assert plain == pytest.approx(18 * parameters)
    assert sharded == pytest.approx((6 + 12 / dp) * parameters)


@pytest.mark.parametrize("dtype", ["bf16", "fp32"])
@pytest.mark.parametrize("dp", [2, 64])
def test_fsdp2_keeps_16_bytes_per_parameter(dtype: str, dp: int) -> None:
    """FSDP2 (torch.distributed.fsdp.fully_shard, MixedPrecisionPolicy): parameters, gradients and Adam's moments are
    fp32 shards, 4 + 4 + 8 bytes; 16-bit copies exist only while gathered."""
    for software in ("torchtitan-2024", "fsdp-2024"):
        found, parameters = state_bytes(software, Plan(dp=dp, sharding="parameters"), dtype)
        assert found == pytest.approx(16 / dp * parameters)


@pytest.mark.parametrize("software", ["deepspeed-2023", "current", "fsdp-2024"])
def test_fp32_training_keeps_16_bytes_per_parameter(software: str) -> None:
    """Rajbhandari et al. 2020, section 3.1, without mixed precision: weight, gradient and two moments of 4 bytes."""
    found, parameters = state_bytes(software, Plan(dp=2), "fp32")
    assert found == pytest.approx(16 * parameters)


@pytest.mark.parametrize("habit", ["gathers_per_micro_batch", "reshard_after_forward"])
def test_parameters_kept_gathered_hold_the_model(habit: str) -> None:
    """Zhao et al. 2023 (PyTorch FSDP), section 3.2: without resharding after forward (SHARD_GRAD_OP), the unsharded
    parameters stay: 2 bytes of each of Llama 3.1 8B's 8.03 billion."""
    model = mw.load_model("llama-3.1-8b")
    here = setting(model, Plan(dp=64, sharding="parameters"), "fsdp-2024")
    kept = replace(here, software=replace(here.software, **{habit: False}))
    (stage,) = [each for each in training.base(here).classes if each.present]
    resharded, held = (float(states(each).weigh(stage, "weights")) for each in (here, kept))
    assert held - resharded == pytest.approx(2 * model.num_parameters)
    assert held / MIB / 1024 > 15


def test_the_largest_unit_may_be_the_vocabulary_table() -> None:
    """Gemma 3 1B: a table of 262,144 x 1,152, 302 million of its 1.0 billion parameters."""
    model = mw.load_model("gemma-3-1b")
    found = states(setting(model, Plan(dp=8, sharding="parameters"), "fsdp-2024"))
    layer = max(each.num_parameters(model.hidden) for each in model.layers)
    table = 262_144 * 1152
    assert float(found.gathered_bytes) == pytest.approx((layer + table) * (2 + 2), rel=1e-4)
    assert table * (2 + 2) / MIB / 1024 == pytest.approx(1.1, abs=0.05)


@pytest.mark.parametrize("tp", [1, 2, 4, 8])
def test_measured_states_of_a_llama_layer(tp: int) -> None:
    """Galvatron (github.com/PKU-DAIR/Hetu-Galvatron), profiled memory of Llama-2-7B cut to 1 and 2 layers on
    8 GPUs, every layout fully sharded over dp: the second layer adds 388.0 to 388.6 MiB per rank."""
    model = mw.load_model("llama-2-7b")
    plan = Plan(tp=tp, dp=8 // tp, sharding="parameters", sequence_parallel=tp > 1)
    held = states(setting(model, plan, "deepspeed-2023")).layers[0]
    assert float(held.bytes) / MIB == pytest.approx(388.3, rel=0.01)
