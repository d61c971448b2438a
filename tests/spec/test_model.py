"""A model counts its parameters and its FLOPs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshwright.spec.layers import MLP, Attention, Layer, mean_keys
from meshwright.spec.linear import Linear
from meshwright.spec.model import Model

HIDDEN = 64


def model(layers: tuple[Layer, ...], **facts: object) -> Model:
    return Model(name="small", hidden=HIDDEN, vocab=100, layers=layers, **facts)  # type: ignore[arg-type]


def dense(window: int = 0) -> Layer:
    return Layer(Attention(4, 2, 16, window=window), MLP(width=128), norm_parameters=2 * HIDDEN)


def test_a_linear_counts_its_matrix_and_its_bias() -> None:
    assert Linear("up", 8, 32, "column").num_parameters == 256
    assert Linear("up", 8, 32, "column", bias=True).num_parameters == 288


def test_a_token_passes_through_its_share_of_the_experts() -> None:
    experts = Linear("expert_up", 8, 32, "column", bias=True, experts=6, active=2)
    assert experts.num_parameters == 6 * 288
    assert experts.active_parameters == 2 * 288


def test_grouped_query_attention_has_narrow_keys_and_values() -> None:
    q, k, v, out = Attention(heads=8, kv_heads=2, head_dim=16).linears(HIDDEN)
    assert (q.out_features, k.out_features, v.out_features, out.in_features) == (128, 32, 32, 128)
    assert (q.units, k.units) == (8, 2)


def test_latent_attention_follows_the_shapes_of_deepseek_v2() -> None:
    core = Attention(8, 8, 24, v_head_dim=12, kind="mla", q_lora_rank=32, kv_lora_rank=20, rope_head_dim=8)
    shapes = {linear.name: (linear.in_features, linear.out_features) for linear in core.linears(HIDDEN)}
    assert shapes == {
        "q_down": (64, 32),
        "q_up": (32, 8 * 24),
        "kv_down": (64, 20 + 8),
        "kv_up": (20, 8 * (16 + 12)),
        "attn_out": (8 * 12, 64),
    }


def test_a_layer_without_attention_has_only_its_mlp() -> None:
    layer = Layer(Attention(1, 1, 1, kind="none"), MLP(width=128), norms=1, norm_parameters=HIDDEN)
    assert layer.num_parameters(HIDDEN) == 3 * HIDDEN * 128 + HIDDEN


def test_a_mixture_counts_router_experts_and_shared_experts() -> None:
    mlp = MLP(experts=8, top_k=2, expert_width=16, shared_width=32, shared_gate=True)
    layer = Layer(Attention(1, 1, 1, kind="none"), mlp)
    routed, shared = 3 * HIDDEN * 16, 3 * HIDDEN * 32
    assert layer.num_parameters(HIDDEN) == 8 * HIDDEN + 8 * routed + shared + HIDDEN
    assert layer.active_parameters(HIDDEN) == 8 * HIDDEN + 2 * routed + shared + HIDDEN


def test_tied_embeddings_count_once() -> None:
    untied, tied = model((dense(),)), model((dense(),), tied_embeddings=True)
    assert untied.num_parameters - tied.num_parameters == 100 * HIDDEN


def test_embeddings_of_another_width_are_projected_in_and_out() -> None:
    narrow = model((dense(),), embedding_dim=16, tied_embeddings=True)
    plain = model((dense(),), tied_embeddings=True)
    assert narrow.num_parameters - plain.num_parameters == 100 * (16 - HIDDEN) + 2 * 16 * HIDDEN


def test_equal_layers_are_one_kind() -> None:
    mixed = model((dense(), dense(8), dense(), dense(8)))
    assert len(mixed.kinds) == 2
    assert mixed.kind_of_layer == (0, 1, 0, 1)


def test_extra_parameters_are_counted_and_not_planned() -> None:
    plain, with_tower = model((dense(),)), model((dense(),), extra_parameters=1000)
    assert with_tower.num_parameters == plain.num_parameters + 1000
    assert with_tower.matmul_parameters == plain.matmul_parameters


def test_flops_per_token_are_six_per_matmul_weight_and_twelve_per_head_width_and_key() -> None:
    one = model((dense(),))
    weights = sum(linear.matrix_parameters for linear in dense().linears(HIDDEN)) + 100 * HIDDEN
    assert one.flops_per_token(32) == 6 * weights + 12 * 4 * 16 * 32


@given(length=st.integers(1, 60), window=st.integers(0, 70))
def test_mean_keys_is_the_mean_over_all_queries(length: int, window: int) -> None:
    seen = [min(position, window) if window else position for position in range(1, length + 1)]
    assert mean_keys(length, window) == pytest.approx(sum(seen) / length)


@given(length=st.integers(1, 60), chunk=st.integers(1, 70))
def test_a_query_of_chunked_attention_sees_its_own_chunk(length: int, chunk: int) -> None:
    core = Attention(1, 1, 1, window=chunk, chunked=True)
    seen = [position % chunk + 1 for position in range(length)]
    assert core.mean_keys(length) == pytest.approx(sum(seen) / length)


def test_an_indexer_scores_all_keys_and_leaves_each_query_its_best() -> None:
    # DeepSeek-V3.2, section 2.1: one query at position t scores t keys and attends to at most the chosen ones
    sparse = Attention(
        4, 4, 24, 16, kind="mla", window=8, q_lora_rank=32, kv_lora_rank=16, rope_head_dim=8, index_heads=2,
        index_head_dim=12,
    )  # fmt: skip
    seq_len = 20
    assert sparse.mean_keys(seq_len) == pytest.approx(sum(min(t, 8) for t in range(1, seq_len + 1)) / seq_len)
    assert sparse.index_flops(seq_len) == pytest.approx(sum(2 * 2 * 12 * t for t in range(1, seq_len + 1)) / seq_len)
    indexed = {linear.name: linear.matrix_parameters for linear in sparse.linears(64) if "index" in linear.name}
    assert indexed == {"index_q": 32 * 24, "index_k": 64 * 12, "index_weights": 64 * 2}
