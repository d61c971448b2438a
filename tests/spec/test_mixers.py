"""Recurrent mixers against the formulas of their papers, written out with plain numbers."""

from __future__ import annotations

import pytest

from meshwright.spec.layers import MLP, Attention, Layer
from meshwright.spec.mixers import LinearAttention, Mamba, Mamba2, Mixer
from meshwright.spec.model import Model

HIDDEN = 2560
MAMBA = Mamba(heads=5120, inner=5120, state=16, dt_rank=160, conv=4, conv_bias=True)
MAMBA2 = Mamba2(heads=80, head_dim=64, groups=1, state=128, conv=4, conv_bias=True)
DELTA = LinearAttention(heads=32, groups=16, key_dim=128, value_dim=128, conv=4, delta=True, head_gates=2)


def stack(mixer: Mixer | None, layers: int = 4) -> Model:
    attention = Attention(1, 1, 1, kind="none") if mixer else Attention(20, 20, 128)
    return Model(
        "stack", HIDDEN, 1000, (Layer(attention, MLP(), norms=1, norm_parameters=HIDDEN, mixer=mixer),) * layers
    )


def test_mamba_holds_what_its_paper_draws() -> None:
    # section 3.4: projections in and out (3ED²); then x to (step, B, C), step to channels, A, D and the convolution
    inside = 5120 * (160 + 2 * 16) + (160 * 5120 + 5120) + 5120 * 16 + 5120 + 5120 * (4 + 1)
    held = sum(linear.num_parameters for linear in MAMBA.linears(HIDDEN)) + MAMBA.split_parameters
    assert held == 3 * 2 * HIDDEN**2 + inside


def test_a_scan_multiplies_and_adds_each_element_of_the_state() -> None:
    # equation 2a: h = exp(ΔA)·h + ΔB·x is an exponential, three products and a sum; 2b: y = C·h a product and a sum
    assert MAMBA.recurrent_flops == 7 * 5120 * 16
    assert MAMBA2.recurrent_flops == 7 * 80 * 64 * 128


def test_a_chunk_of_mamba_2_costs_the_products_of_its_section_6() -> None:
    """Dao and Gu 2024, section 6: per chunk of Q tokens, CBᵀ (Q·Q·N per group), times x (Q·Q·P per head), states
    (Q·N·P), outputs from states (Q·N·P), two FLOPs each; and one step from chunk to chunk."""
    q, n, p, heads, groups = 256, 128, 64, 80, 1
    chunk = 2 * (groups * q * q * n + heads * (q * q * p + 2 * q * n * p)) + 2 * heads * n * p
    assert MAMBA2.core_flops == pytest.approx(chunk / q)


def test_a_chunk_of_the_delta_rule_costs_its_matrix_products() -> None:
    """Yang et al. 2024 (2406.06484), equations 8 to 11 per chunk of C tokens and head: KKᵀ and QKᵀ; the inverse of a
    triangle; T times keys and values; the states read for the correction and for the output and written once; and the
    product inside the chunk."""
    c, k, v, heads = 64, 128, 128, 32
    products = 2 * c * c * k + 2 * c * c * k + 2 * c**3 / 3 + 2 * c * c * (k + v) + 2 * c * c * v + 3 * 2 * c * k * v
    assert DELTA.core_flops == pytest.approx(heads * products / c)


def test_a_state_as_wide_as_a_head_is_read_twice_and_written_once_by_the_delta_rule() -> None:
    # S = α(S - β k (kᵀS)) + β k vᵀ, o = qᵀS: decay 1, read 2, write 2, read 2
    assert DELTA.recurrent_flops == 7 * 32 * 128 * 128


@pytest.mark.parametrize("mixer", [MAMBA, MAMBA2, DELTA], ids=lambda mixer: mixer.title)
def test_a_recurrence_costs_the_same_per_token_in_any_sequence_while_attention_costs_more(mixer: Mixer) -> None:
    assert stack(mixer).flops_per_token(1024) == stack(mixer).flops_per_token(65_536)
    plain = stack(None)
    growth = [plain.flops_per_token(length) - plain.flops_per_token(1024) for length in (2048, 4096)]
    assert growth[1] == pytest.approx(3 * growth[0])
    assert growth[0] > 0


def test_what_a_sequence_carries_has_no_length() -> None:
    assert MAMBA2.state_elements == 80 * 64 * 128 + (80 * 64 + 2 * 128) * 3
    assert DELTA.state_elements == 32 * 128 * 128 + (2 * 16 * 128 + 32 * 128) * 3
