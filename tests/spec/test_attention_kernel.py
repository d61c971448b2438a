"""Shares of fused attention kernels by accelerator family and width of the heads."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshwright.spec.attention_kernel import UNFUSED, AttentionKernel, width_factor

KERNEL = AttentionKernel("k", efficiency={"hopper": 0.6, "": 0.3}, softmax_width={"hopper": 90.0})


def test_shares_are_stated_for_heads_of_128() -> None:
    assert KERNEL.share("hopper") == KERNEL.share("hopper", 128) == 0.6
    assert KERNEL.share("ada", 64) == 0.3  # nothing is known of its softmax


@given(st.floats(1, 300), st.floats(16, 512), st.floats(16, 512))
def test_wider_heads_are_never_less_efficient(softmax_width: float, width: float, other: float) -> None:
    narrow, wide = sorted((width, other))
    assert width_factor(softmax_width, narrow) <= width_factor(softmax_width, wide) * (1 + 1e-12)


@pytest.mark.parametrize(
    ("softmax_width", "narrow"),
    # measured forward kernels of 64-wide heads over 128-wide ones at 16k tokens (aiconfigurator, 2025): H100 49 / 62%
    # of the peak (fa3), B200 34 / 56% (trtllm_mha)
    [(86.0, 49 / 62), (135.0, 34 / 56)],
)
def test_narrow_heads_are_bound_by_the_softmax(softmax_width: float, narrow: float) -> None:
    assert width_factor(softmax_width, 64) == pytest.approx(narrow, rel=0.1)


def test_an_unfused_kernel_has_no_share() -> None:
    assert not UNFUSED.fused
    with pytest.raises(ValueError, match="unfused"):
        UNFUSED.share("hopper")
