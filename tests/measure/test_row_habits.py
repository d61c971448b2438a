"""The software of a row: the framework's profile of its year, and the switches that the row names."""

from __future__ import annotations

import pytest

from meshwright.measure.comparison import Row
from meshwright.measure.habits import profile_of, software_of
from meshwright.sources.software import load_software
from meshwright.spec.software import Software


def of(**cells: str) -> Software:
    return software_of(Row("runs.csv:2", "training", cells))[0]


@pytest.mark.parametrize(
    ("framework", "when", "name"),
    [
        ("Composer/llm-foundry FSDP", 2024, "llm-foundry-2023"),
        ("Megatron-DeepSpeed style (per paper; not stated in repo)", 2023, "megatron-deepspeed-2022"),
        ("Megatron-LM", 2021, "megatron-2021"),
        ("TorchTitan", 2024, "torchtitan-2024"),
        ("Galvatron", None, "fsdp-2024"),
        ("Hugging Face accelerate", 2025, "fsdp-2024"),
        ("megatron-core-2024", None, "megatron-core-2024"),
    ],
)
def test_the_profile_of_a_framework(framework: str, when: int | None, name: str) -> None:
    assert profile_of(framework.lower(), when) == (load_software(name), ())


def test_of_a_framework_the_newest_profile_that_is_not_younger_counts() -> None:
    old, new = load_software("megatron-2021"), load_software("megatron-core-2024")
    assert old.year < new.year
    assert profile_of("megatron-lm", old.year)[0] == old
    assert profile_of("megatron-lm", 2019)[0] == old, "older than every profile: the oldest"


def test_an_unknown_framework_is_current_practice_and_assumed() -> None:
    assert profile_of("in-house", 2024) == (load_software("current"), ("software=current",))


@pytest.mark.parametrize(
    ("framework", "kernel", "fused"),
    [("TorchTitan", "eager", False), ("TorchTitan", "SDPA (flash)", True), ("Megatron-LM", "flash-attention", True),
     ("Megatron-LM", "megatron fused softmax (non-flash)", False), ("Megatron-LM", "TE/cuDNN fused attention", True)],
)  # fmt: skip
def test_the_attention_kernel_that_the_row_names(framework: str, kernel: str, fused: bool) -> None:
    found = of(framework=framework, date="2021", attn_kernel=kernel)
    assert bool(found.attention.efficiency) is fused


def test_compile_is_a_switch_of_torchtitan_and_off_unless_named() -> None:
    compiled, eager = of(framework="TorchTitan", extra="torch.compile+float8"), of(framework="TorchTitan")
    assert compiled.elementwise_factor == load_software("torchtitan-2024").elementwise_factor
    assert eager.elementwise_factor == load_software("fsdp-2024").elementwise_factor > compiled.elementwise_factor
    assert of(framework="Megatron-LM", date="2021") == load_software("megatron-2021"), "no switch there"


def test_async_tp_overlaps_where_the_profile_does_not() -> None:
    assert of(framework="TorchTitan", extra="torch.compile+AsyncTP").tensor_overlap > 0
    assert of(framework="TorchTitan", extra="torch.compile vanilla TP").tensor_overlap == 0


def test_fp8_recipes() -> None:
    plain = of(framework="TorchTitan", dtype="float8 tensorwise")
    rowwise = of(framework="TorchTitan", dtype="float8 rowwise")
    gathered = of(framework="TorchTitan", dtype="float8 (linear, fp8 all-gather)")
    assert rowwise.fp8_cast_bytes_per_element > plain.fp8_cast_bytes_per_element
    assert (gathered.parameter_gather_bytes, plain.parameter_gather_bytes) == (1, 2)
