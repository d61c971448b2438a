"""The recurrent mixers of a hybrid model, and which of its layers have them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from meshwright.sources import checks
from meshwright.sources.blueprint import Blueprint
from meshwright.sources.huggingface.keys import Keys
from meshwright.sources.huggingface.windows import per_layer
from meshwright.spec.mixers import LinearAttention, Mamba2

RECURRENT = ("linear_attention",)
LETTERS = {"M": "linear_attention", "E": "moe", "*": "full_attention", "-": "mlp"}


def with_delta_rule(keys: Keys, facts: Blueprint) -> Blueprint:
    """Qwen3-Next and Qwen3.5: the gated delta rule in the layers that `layer_types` (or every layer but the n-th) says,
    and a gate on the output of attention. The defaults are those of the classes in transformers 5.24."""
    mixer = LinearAttention(
        heads=_size(keys, "linear_num_value_heads", 32),
        groups=_size(keys, "linear_num_key_heads", 16),
        key_dim=_size(keys, "linear_key_head_dim", 128),
        value_dim=_size(keys, "linear_value_head_dim", 128),
        conv=_size(keys, "linear_conv_kernel_dim", 4),
        delta=True,
        head_gates=2,
        head_vectors=2,
    )
    given = keys.raw("layer_types")
    if given is None:
        every = _size(keys, "full_attention_interval", 4)
        kinds = ["linear_attention" if (index + 1) % every else "full" for index in range(facts.layers)]
    else:
        kinds = per_layer(keys, "layer_types", given, facts.layers)
    changes: dict[str, Any] = {"attention": False, "mixer": mixer}
    recurrent = {index: changes for index, kind in enumerate(kinds) if kind in RECURRENT}
    return replace(facts, attention_gate=facts.head_dim, overrides=recurrent)


def with_single_blocks(keys: Keys, facts: Blueprint) -> Blueprint:
    """Nemotron-H: each layer is one of Mamba-2, attention, MLP or experts, with one norm before it. The defaults are
    those of the class in transformers 5.24."""
    bias, conv_bias = _flag(keys, "use_bias", False), _flag(keys, "use_conv_bias", True)
    mixer = Mamba2(
        heads=_size(keys, "mamba_num_heads", 128),
        head_dim=_size(keys, "mamba_head_dim", 64),
        groups=_size(keys, "n_groups", 8),
        state=_size(keys, "ssm_state_size", 128),
        conv=_size(keys, "conv_kernel", 4),
        chunk=_size(keys, "chunk_size", 128),
        conv_bias=conv_bias,
        bias=bias,
        out_bias=bias,
    )
    alone: dict[str, dict[str, Any]] = {
        "linear_attention": {"attention": False, "mixer": mixer, "ffn": 0},
        "mamba": {"attention": False, "mixer": mixer, "ffn": 0},
        "full_attention": {"ffn": 0},
        "attention": {"ffn": 0},
        "mlp": {"attention": False},
        "moe": {"attention": False, "ffn": 0},
    }
    if keys.raw("moe_latent_size") is not None:
        raise keys.refuse("what moe_latent_size builds")
    kinds = block_kinds(keys)
    odd = [kind for kind in kinds if kind not in alone]
    if odd:
        raise keys.refuse(f"layers of type {checks.shown(odd[0])} ({len(odd)} of {len(kinds)})")
    sparse = frozenset(index for index, kind in enumerate(kinds) if kind == "moe")
    if sparse and facts.experts is None:
        rule = f"at least 1, as {len(sparse)} of the {len(kinds)} layers are mixtures of experts"
        raise checks.wrong(keys.where, "n_routed_experts", keys.raw("n_routed_experts"), rule)
    return replace(
        facts,
        layers=len(kinds),
        norms=1,
        sparse_layers=sparse,
        overrides={index: alone[kind] for index, kind in enumerate(kinds)},
    )


def block_kinds(keys: Keys) -> list[Any]:
    """What each layer of a stack of single blocks is: a list, or a pattern of letters."""
    for name in ("layers_block_type", "layer_types"):
        if keys.raw(name) is not None:
            return checks.listed(keys.where, name, keys.raw(name))
    pattern = keys.raw("hybrid_override_pattern")
    if pattern is None:
        raise keys.refuse("hybrid_override_pattern")
    text = checks.text(keys.where, "hybrid_override_pattern", pattern)
    if not text or set(text) - set(LETTERS):
        rule = "letters M (Mamba-2), * (attention), - (MLP) and E (experts)"
        raise checks.wrong(keys.where, "hybrid_override_pattern", text, rule, "M-M*")
    return [LETTERS[letter] for letter in text]


def _size(keys: Keys, name: str, default: int) -> int:
    value = keys.raw(name)
    return default if value is None else checks.whole(keys.where, name, value)


def _flag(keys: Keys, name: str, default: bool) -> bool:
    value = keys.raw(name)
    return default if value is None else checks.flag(keys.where, name, value)
