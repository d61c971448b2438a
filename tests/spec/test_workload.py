"""What a training job may ask for."""

from __future__ import annotations

from typing import Any

import pytest

from meshwright.spec.errors import InputError
from meshwright.spec.workload import OPTIMIZERS, Training


def test_a_step_sees_batch_times_sequence_tokens() -> None:
    assert (
        Training(1024, 4096).tokens_per_step == 4_194_304
    )  # the 4M tokens of Llama 2 (Touvron et al. 2023, section 2)


@pytest.mark.parametrize(
    ("wrong", "rule"),
    [
        ({"global_batch": 0}, "global_batch is 0; it must be a whole number of at least 1"),
        ({"seq_len": -1}, "seq_len is -1"),
        ({"seq_len": 1.5}, "seq_len is 1.5"),
        ({"global_batch": True}, "global_batch is True"),
        ({"dtype": "int8"}, "must be one of bf16, fp16, fp8, fp32"),
        ({"optimizer": "adam"}, "must be one of adamw"),
        ({"tokens": -1.0}, "must not be negative"),
        ({"tokens": float("nan")}, "must not be negative"),
    ],
)
def test_a_value_that_no_job_can_have_is_refused_with_the_rule(wrong: dict[str, Any], rule: str) -> None:
    with pytest.raises(InputError, match=rule):
        Training(**{"global_batch": 8, "seq_len": 128, **wrong})


def test_states_of_mixed_precision_adam_take_16_bytes_with_16_bit_gradients() -> None:
    # Rajbhandari et al. 2020 (ZeRO), section 3.1: 2 for weights, 2 for gradients and K = 12 per parameter
    state = OPTIMIZERS["adamw"]
    assert Training(8, 128).weight_bytes + 2 + state.master_bytes + state.moment_bytes == 16
    assert state.master_bytes + state.moment_bytes == 12


@pytest.mark.parametrize(
    ("dtype", "weight", "activation"), [("bf16", 2, 2), ("fp16", 2, 2), ("fp8", 2, 2), ("fp32", 4, 4)]
)
def test_bytes_follow_the_dtype(dtype: str, weight: int, activation: int) -> None:
    workload = Training(8, 128, dtype)
    assert (workload.weight_bytes, workload.activation_bytes) == (weight, activation)


def test_eight_bit_moments_take_a_quarter_of_full_ones() -> None:
    # Dettmers et al. 2022: both moments in 8 bits instead of 32
    assert OPTIMIZERS["adamw-8bit"].moment_bytes * 4 == OPTIMIZERS["adamw"].moment_bytes
