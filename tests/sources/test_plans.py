"""Plan files: written, read back, refused."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from meshwright.sources.attention_kernels import load_attention_kernel
from meshwright.sources.clusters import load_cluster
from meshwright.sources.models import load_model
from meshwright.sources.plans import is_plan_file, load_plan, save_plan
from meshwright.sources.software import load_software
from meshwright.spec.cluster import Cluster
from meshwright.spec.errors import InputError
from meshwright.spec.estimate import MEMORY_PARTS, TIME_PARTS, Estimate
from meshwright.spec.plan import Plan
from meshwright.spec.workload import Training

PLANS = [
    Plan(tp=8, pp=4, dp=8, layers_per_stage=(20, 20, 20, 20)),
    Plan(
        tp=2, cp=2, dp=8, pp=8, order=("cp", "tp", "pp", "dp"), micro_batch=2, virtual_stages=2,
        schedule="zero-bubble-v", recompute="selective",
        sharding="parameters", shard_group=4, sequence_parallel=True, offload="optimizer",
    ),
]  # fmt: skip
CONFIG = """{"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
"num_key_value_heads": 2, "intermediate_size": 128, "vocab_size": 256, "max_position_embeddings": 128,
"rms_norm_eps": 1e-5, "tie_word_embeddings": false, "architectures": ["LlamaForCausalLM"]}"""


def made(plan: Plan = PLANS[0], cluster: str = "32xdgx-a100-80g", model: str = "llama-3.1-70b") -> Estimate:
    machines = load_cluster(cluster)
    return Estimate(
        model=load_model(model),
        cluster=machines,
        software=load_software(),
        workload=Training(1024, 4096, tokens=15e12),
        plan=plan,
        num_micro_batches=plan.num_micro_batches(1024),
        memory_bytes=dict.fromkeys(MEMORY_PARTS, 1e9),
        capacity_bytes=machines.accelerator.memory_bytes,
        worst_rank=0,
        worst_stage=0,
        time_s=dict.fromkeys(TIME_PARTS, 1.0),
        pipeline_efficiency=1.0,
    )


def described(estimate: Estimate) -> tuple[object, ...]:
    return estimate.model, estimate.cluster, estimate.software, estimate.workload, estimate.plan


@pytest.mark.parametrize("plan", PLANS, ids=["plain", "every field"])
def test_a_plan_file_is_read_back_unchanged(tmp_path: Path, plan: Plan) -> None:
    estimate = made(plan)
    save_plan(estimate, tmp_path / "plan.yaml")
    found = load_plan(tmp_path / "plan.yaml")
    assert (found.model, found.cluster, found.software, found.workload, found.plan) == described(estimate)
    assert (found.model_text, found.cluster_text, found.software_text) == (
        "llama-3.1-70b", "32xdgx-a100-80g", "current"
    )  # fmt: skip
    assert found.prediction["step_time_s"] == 11.0  # eleven parts of one second
    assert found.prediction["memory_bytes"] == 8e9
    assert found.version


def test_the_file_is_plain_yaml_with_references_and_the_exact_parameter_count(tmp_path: Path) -> None:
    save_plan(made(), tmp_path / "plan.yaml", model_text="meta-llama/Llama-3.1-70B")
    content = yaml.safe_load((tmp_path / "plan.yaml").read_text())
    assert content["model"] == {"reference": "meta-llama/Llama-3.1-70B", "parameters": 70_553_706_496}
    assert content["cluster"] == "32xdgx-a100-80g"
    assert content["plan"]["shard_group"] == 8  # all of dp × cp, as a number of ranks
    assert content["plan"]["num_micro_batches"] == 128
    assert content["plan"]["order"] == ["tp", "cp", "dp", "pp"]
    assert list(content) == ["version", "model", "cluster", "software", "workload", "plan", "prediction"]


def test_a_cluster_of_ones_own_is_written_out(tmp_path: Path) -> None:
    own = replace(load_cluster("2xdgx-h100@ethernet-100g:2"), name="our-lab", price_per_accelerator_hour=1.5)
    estimate = replace(made(), cluster=own)
    save_plan(estimate, tmp_path / "plan.yaml")
    found = load_plan(tmp_path / "plan.yaml")
    assert found.cluster == own
    assert found.cluster_text == ""


def test_a_price_that_differs_from_the_catalogs_is_kept(tmp_path: Path) -> None:
    priced: Cluster = replace(load_cluster("32xdgx-a100-80g"), price_per_accelerator_hour=2.25)
    save_plan(replace(made(), cluster=priced), tmp_path / "plan.yaml")
    assert load_plan(tmp_path / "plan.yaml").cluster == priced


def test_software_of_ones_own_is_written_out(tmp_path: Path) -> None:
    own = replace(load_software("fsdp-2024"), name="ours", tensor_overlap=0.5, notes=("measured",))
    save_plan(replace(made(), software=own), tmp_path / "plan.yaml")
    assert load_plan(tmp_path / "plan.yaml").software == own


def test_habits_of_single_number_formats_are_written_out(tmp_path: Path) -> None:
    own = replace(load_software("megatron-deepspeed-2022"), name="ours")
    assert own.gradient_habits("bf16") != own.gradient_habits("fp16")
    save_plan(replace(made(), software=own), tmp_path / "plan.yaml")
    assert load_plan(tmp_path / "plan.yaml").software == own


def test_a_kernel_of_ones_own_is_written_out_with_its_software(tmp_path: Path) -> None:
    kernel = replace(load_attention_kernel("cudnn"), efficiency={"hopper": 0.5, "": 0.3}, notes=("measured",))
    own = replace(load_software("fsdp-2024"), name="ours", attention=kernel)
    save_plan(replace(made(), software=own), tmp_path / "plan.yaml")
    assert load_plan(tmp_path / "plan.yaml").software == own


def test_a_model_file_is_found_from_the_folder_of_the_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config.json").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    save_plan(made(PLANS[0].with_(layers_per_stage=()), model="config.json"), "plan.yaml", model_text="config.json")
    monkeypatch.chdir("/")
    assert load_plan(tmp_path / "plan.yaml").model.hidden == 64


def test_a_model_that_cannot_be_found_again_is_not_saved(tmp_path: Path) -> None:
    estimate = replace(made(), model=replace(load_model("gpt2"), name="mine"))
    with pytest.raises(InputError, match="can't be found again.*pass model_text"):
        save_plan(estimate, tmp_path / "plan.yaml")
    with pytest.raises(InputError, match="124,439,808"):
        save_plan(made(), tmp_path / "plan.yaml", model_text="gpt2")
    assert list(tmp_path.iterdir()) == []


def test_writing_replaces_a_file_at_once_and_leaves_nothing_behind(tmp_path: Path) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text("old")
    os.chmod(file, 0o640)
    save_plan(made(), file)
    assert file.stat().st_mode & 0o777 == 0o640
    assert [path.name for path in tmp_path.iterdir()] == ["plan.yaml"]
    with pytest.raises(InputError, match="can't be written"):
        save_plan(made(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["plan.yaml"]


def test_a_number_of_micro_batches_stands_for_the_micro_batch(tmp_path: Path) -> None:
    file = tmp_path / "plan.yaml"
    save_plan(made(), file)
    content = yaml.safe_load(file.read_text())
    content["plan"] = {"tp": 8, "dp": 8, "pp": 4, "num_micro_batches": 32}
    file.write_text(yaml.safe_dump(content))
    assert load_plan(file).plan.micro_batch == 4  # 1024 / (8 × 32)
    content["plan"]["micro_batch"] = 2
    file.write_text(yaml.safe_dump(content))
    with pytest.raises(InputError, match="512 sequences, but the global batch has 1,024"):
        load_plan(file)


def test_only_a_yaml_file_with_a_plan_is_a_plan_file(tmp_path: Path) -> None:
    save_plan(made(), tmp_path / "plan.yaml")
    (tmp_path / "model.yaml").write_text("hidden: 64\n")
    assert is_plan_file(str(tmp_path / "plan.yaml"))
    assert not is_plan_file(str(tmp_path / "model.yaml"))
    assert not is_plan_file("llama-3.1-70b")
    assert not is_plan_file("absent.yaml")
