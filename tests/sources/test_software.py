"""Software profiles that users write: what differs by number format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import meshwright as mw
from meshwright.sources.software import load_software, software_from
from meshwright.spec.errors import InputError
from meshwright.spec.software import state_bytes
from meshwright.spec.workload import Training


def test_a_number_format_changes_only_what_it_names() -> None:
    entry = {
        "name": "ours",
        "gradient_bytes": 2,
        "shard_gradient_bytes": 4,
        "by_dtype": {"bf16": {"gradient_bytes": 6}},
    }
    software = software_from(entry, "ours.yaml")
    assert software.gradient_habits("bf16")[:3] == (6, software.gradient_reduce_bytes, 4)
    assert software.gradient_habits("fp16")[:3] == (2, software.gradient_reduce_bytes, 4)


def test_a_file_may_start_from_the_catalog(tmp_path: Path) -> None:
    path = tmp_path / "ours.yaml"
    path.write_text("base: megatron-deepspeed-2022\ngradient_bytes: 4\n")
    catalog, ours = load_software("megatron-deepspeed-2022"), load_software(str(path))
    assert ours.gradient_habits("bf16") == catalog.gradient_habits("bf16")
    assert ours.gradient_habits("fp16").gradient_bytes == 4


@pytest.mark.parametrize(
    ("by_dtype", "message"),
    [
        ({"bf17": {"gradient_bytes": 4}}, "by_dtype.*bf17"),
        ({"bf16": {"gradient_byte": 4}}, "gradient_byte"),
        ({"bf16": {"gradient_bytes": -1}}, "gradient_bytes is -1"),
        ({"bf16": {"gradient_bytes": "four"}}, "gradient_bytes is 'four'"),
        ({"bf16": 4}, "bf16"),
        (4, "by_dtype is 4"),
    ],
)
def test_a_wrong_habit_is_refused(by_dtype: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        software_from({"name": "ours", "by_dtype": by_dtype}, "ours.yaml")
    assert "ours.yaml" in str(caught.value)


def test_profiles_share_numbers_that_a_file_may_change() -> None:
    catalog = load_software()
    ours = software_from({"name": "ours"}, "ours.yaml")
    assert ours.misaligned_64_factor == catalog.misaligned_64_factor > 1
    assert software_from({"name": "ours", "misaligned_64_factor": 3}, "ours.yaml").misaligned_64_factor == 3


def test_remainders_take_the_place_of_half_a_master_copy() -> None:
    """apex, DistributedFusedAdam with store_param_remainders: 2 bytes beside a bf16 weight in place of 4."""
    plain = software_from({"name": "ours"}, "ours.yaml")
    kept = software_from({"name": "ours", "master_remainders": True}, "ours.yaml")
    workload = Training(8, 128, "bf16")
    assert state_bytes(plain, workload).master == 4
    assert state_bytes(kept, workload).master == 2
    assert state_bytes(kept, Training(8, 128, "fp16")).master == 4


def test_a_framework_without_sequence_parallelism_is_not_offered_it() -> None:
    job = Training(global_batch=64, seq_len=2048)
    for name, offered in (("megatron-2021", {False}), ("megatron-core-2024", {False, True})):
        ranking = mw.choose("llama-2-7b", "dgx-a100-80g", job, name, fixed={"tp": 8}, top=50)
        assert {each.plan.sequence_parallel for each in ranking.ranked} == offered
