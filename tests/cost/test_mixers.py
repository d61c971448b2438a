"""Hybrids: ranks share what a mixer holds, more ranks need less memory, and layers of attention cost what they did."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import small_jobs as small

from meshwright import choose, load_model
from meshwright.cost.estimate import estimate
from meshwright.cost.layer import layer_parameters
from meshwright.sources.huggingface import model_from_config
from meshwright.spec import rules
from meshwright.spec.layers import MLP, Attention, Layer
from meshwright.spec.mixers import LinearAttention, Mamba, Mamba2, Mixer
from meshwright.spec.model import Model
from meshwright.spec.plan import Plan
from meshwright.spec.workload import Training

MAMBA = Mamba(heads=512, inner=512, state=16, dt_rank=16, conv=4)
MAMBA2 = Mamba2(heads=8, head_dim=64, groups=8, state=32, conv=4)
DELTA = LinearAttention(heads=8, groups=8, key_dim=32, value_dim=32, conv=4, delta=True, head_gates=2)
MIXERS = pytest.mark.parametrize("mixer", [MAMBA, MAMBA2, DELTA], ids=lambda mixer: mixer.title)
HYBRIDS = ("qwen3-next-80b-a3b", "qwen3.5-27b", "qwen3.5-35b-a3b", "nemotron-3-nano-30b-a3b")
FILES = {
    "qwen3-next-80b-a3b": "Qwen__Qwen3-Next-80B-A3B-Instruct-FP8",
    "qwen3.5-27b": "Qwen__Qwen3.5-27B",
    "qwen3.5-35b-a3b": "Qwen__Qwen3.5-35B-A3B",
    "nemotron-3-nano-30b-a3b": "nvidia__NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
}


def hybrid(mixer: Mixer) -> Model:
    recurrent = Layer(Attention(1, 1, 1, kind="none"), small.dense_layer().mlp, 2, 2 * small.HIDDEN, mixer=mixer)
    return small.model(recurrent, small.dense_layer(), recurrent, small.dense_layer())


@MIXERS
@pytest.mark.parametrize("tp", [2, 4, 8])
def test_the_shares_of_tensor_parallel_ranks_add_up_to_the_layer(mixer: Mixer, tp: int) -> None:
    model = hybrid(mixer)
    layer = model.layers[0]
    held = float(layer_parameters(model, layer, Plan(tp=tp).table())[0])
    # what every rank holds: norms, the biases of row-parallel matrices, and what the mixer leaves whole
    biases = sum(linear.out_features for linear in layer.linears(model.hidden) if linear.split == "row" and linear.bias)
    whole = layer.norm_parameters + mixer.whole_parameters + biases
    assert tp * (held - whole) + whole == pytest.approx(layer.num_parameters(model.hidden))


@MIXERS
def test_memory_falls_as_more_ranks_share_a_mixer(mixer: Mixer) -> None:
    cluster, workload = small.switches(1, 8, memory_mb=10_000.0), Training(8, 512)
    memory = [
        estimate(hybrid(mixer), cluster, workload, Plan(tp=tp, dp=8 // tp), small.SOFTWARE).memory_total_bytes
        for tp in (1, 2, 4, 8)
    ]
    assert memory == sorted(memory, reverse=True)
    assert memory[-1] < memory[0] / 2


@pytest.mark.parametrize(
    ("mixer", "nearest"),
    [
        (replace(MAMBA2, heads=12, groups=6), 3),
        (replace(DELTA, heads=12, groups=6), 3),
        (replace(MAMBA2, heads=10, groups=10), 2),
    ],
)
def test_a_degree_that_does_not_divide_heads_and_groups_is_refused_with_the_nearest(mixer: Mixer, nearest: int) -> None:
    model = hybrid(mixer)
    recurrent = [replace(layer, mlp=MLP(768)) for layer in model.layers if layer.mixer]
    of_job = small.job(replace(model, layers=tuple(recurrent)), small.switches(8, 8), batch=64)
    problem = rules.problems(of_job, Plan(tp=4, dp=16))[0]
    assert "tp 4" in problem.message
    assert mixer.title in problem.message or "key/value" in problem.message
    assert f"nearest legal tp is {nearest}" in problem.fix


def test_a_hybrid_whose_layers_are_all_attention_is_the_plain_model() -> None:
    shape = {"hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8}
    shape |= {"num_key_value_heads": 4, "vocab_size": 2048, "max_position_embeddings": 512}
    hybrid = model_from_config({"model_type": "bamba", **shape, "attn_layer_indices": [0, 1, 2, 3]}, name="same")
    plain = model_from_config({"model_type": "llama", **shape}, name="same")
    assert hybrid.layers == plain.layers
    cluster, workload, plan = small.switches(1, 8), Training(8, 512), Plan(tp=2, dp=4)
    found = [estimate(model, cluster, workload, plan, small.SOFTWARE) for model in (hybrid, plain)]
    assert found[0].time_s == found[1].time_s
    assert found[0].memory_bytes == found[1].memory_bytes


@pytest.mark.parametrize("name", HYBRIDS)
def test_hybrids_of_the_catalog_get_a_plan_that_fits(name: str) -> None:
    best = choose(name, "8xdgx-h100", Training(256, 4096), top=1).best
    assert best.estimate.problems == ()
    assert best.estimate.memory_total_bytes <= best.estimate.capacity_bytes
    assert best.plan.cp == 1


@pytest.mark.parametrize("name", HYBRIDS)
def test_entries_hold_what_the_published_configs_say(name: str, shared: Path) -> None:
    path = shared / "data" / "field" / "configs" / f"{FILES[name]}.json"
    if not path.is_file():
        pytest.skip(f"field config not found: {path}")
    published = model_from_config(json.loads(path.read_text()))
    assert load_model(name).layers == published.layers
    assert load_model(name).num_parameters == published.num_parameters
