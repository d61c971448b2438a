"""Attention kernels are entries of their own; a software profile names one, or writes one out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from meshwright.sources.attention_kernels import attention_kernel_content, load_attention_kernel
from meshwright.sources.catalog import entry_names
from meshwright.sources.software import load_software, software_from
from meshwright.spec.errors import InputError, UnknownName


@pytest.mark.parametrize("name", entry_names("attention"))
def test_every_entry_loads_and_says_where_it_is_from(name: str) -> None:
    kernel = load_attention_kernel(name)
    assert kernel.name == name
    assert kernel.title
    assert len(kernel.source) > 40
    assert 2020 < kernel.year < 2030
    assert all(0.1 < share <= 1 for share in (kernel.efficiency or {}).values())


@pytest.mark.parametrize("name", entry_names("software"))
def test_every_profile_names_a_kernel_of_the_catalog(name: str) -> None:
    kernel = load_software(name).attention
    assert attention_kernel_content(kernel) == kernel.name


def test_what_published_systems_run() -> None:
    assert not load_software("megatron-2021").attention.fused  # Narayanan et al. 2021, section 4.2: fused softmax only
    assert not load_software("megatron-deepspeed-2022").attention.fused
    assert load_software("torchtitan-2024").attention.name == "flash2"  # through SDPA, TorchTitan 2024, section 3
    assert load_software("megatron-core-2024").attention.name == "cudnn"  # NeMo performance documents, 2024


def test_backward_recomputes_scores() -> None:
    # FlashAttention-2 (Dao 2023, section 4.1): "the backward pass has 2.5x the FLOPs of the forward pass"
    assert load_attention_kernel("flash2").backward_ratio == 2.5


def profile(tmp_path: Path, text: str) -> Any:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    return load_software(str(path))


def test_shares_inside_a_profile_change_its_kernel(tmp_path: Path) -> None:
    found = profile(tmp_path, "base: current\nattention_efficiency: {hopper: 0.5, '': 0.2}\n").attention
    assert (found.name, found.share("hopper"), found.share("ampere")) == ("cudnn", 0.5, 0.2)
    other = profile(tmp_path, "attention: our-kernel\nattention_efficiency: {'': 0.2}\nattention_backward_ratio: 2\n")
    assert (other.attention.name, other.attention.share("tpu"), other.attention.backward_ratio) == (
        "our-kernel",
        0.2,
        2,
    )
    unfused = profile(tmp_path, "base: megatron-2021\nunfused_traffic_factor: 1.5\n").attention
    assert (unfused.fused, unfused.traffic_factor) == (False, 1.5)


def test_a_profile_without_a_kernel_is_priced_as_unfused(tmp_path: Path) -> None:
    assert not profile(tmp_path, "year: 2024\n").attention.fused


def test_a_kernel_can_be_written_out(tmp_path: Path) -> None:
    found = profile(tmp_path, "attention: {name: ours, efficiency: {'': 0.4}, notes: [measured]}\n").attention
    again = software_from(
        {"name": "x", "attention": yaml.safe_load(yaml.safe_dump(attention_kernel_content(found)))}, ""
    )
    assert again.attention == found
    assert found.share("hopper") == 0.4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("attention: cudnnn\n", r"mine\.yaml: attention is 'cudnnn'.*cudnn"),
        ("attention: 3\n", "attention is 3"),
        ("attention_efficiency: {hopper: 0.5}\n", "attention_efficiency must be a mapping .* with '' for any other"),
        ("attention_efficiency: {hopper: 50, '': 0.5}\n", r"attention_efficiency\.hopper is 50"),
        ("attention_efficiency: 0.5\n", "attention_efficiency must be a mapping"),
        ("attention_backward_ratio: -2\n", "attention_backward_ratio is -2"),
        ("attention: {name: ours, efficiencies: {'': 0.4}}\n", "efficiencies.*did you mean efficiency"),
        ("attention: {efficiency: {'': 0.4}}\n", r"attention\.name is missing"),
    ],
)
def test_a_wrong_kernel_is_named_with_its_rule(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        profile(tmp_path, text)


def test_a_wrong_name_brings_near_names() -> None:
    with pytest.raises(UnknownName, match=r"flash-2.*flash2"):
        load_attention_kernel("flash-2")
