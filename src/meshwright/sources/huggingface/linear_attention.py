"""The keys of linear attention: the gated delta rule, Kimi Delta Attention, lightning attention."""

from __future__ import annotations

from meshwright.sources import checks
from meshwright.sources.blueprint import Blueprint
from meshwright.sources.huggingface.keys import Keys
from meshwright.spec.mixers import LinearAttention


def delta_rule(keys: Keys, facts: Blueprint) -> LinearAttention:
    """Qwen3-Next, Qwen3.5, OLMo hybrid. Where a class has no sizes of its own, they follow from those of attention."""
    heads = keys.count("linear_heads") or facts.heads
    groups = keys.count("linear_groups") or facts.heads
    if heads % groups:
        nearest = checks.nearest_divisor(heads, groups)
        name = keys.used.get("linear_heads", "the number of value heads")
        rule = f"a divisor of {name} ({heads})"
        raise checks.wrong(keys.where, keys.used.get("linear_groups", "linear_num_key_heads"), groups, rule, nearest)
    # OLMo hybrid: three quarters of the stream for the keys, twice that for the values
    key_dim = keys.count("linear_key_dim") or int(0.75 * facts.hidden / groups)
    return LinearAttention(
        heads=heads,
        groups=groups,
        key_dim=key_dim,
        value_dim=keys.count("linear_value_dim") or 2 * key_dim,
        conv=keys.need("conv_width"),
        delta=True,
        head_gates=2,
        head_vectors=2,
    )


def kimi_delta_rule(keys: Keys, facts: Blueprint) -> LinearAttention:
    """Kimi Delta Attention (Kimi Team 2025, arXiv 2510.26692): a decay per key channel. Kimi Linear computes decay and
    output gate through the rank of a head, Bailing's hybrid by full matrices."""
    width = keys.count("lone_head_dim") if "linear_heads" not in keys.defaults else None
    width = width or keys.need("linear_key_dim")
    rank = width if "linear_heads" in keys.defaults else 0
    return LinearAttention(
        heads=keys.count("linear_heads") or facts.heads,
        key_dim=width,
        value_dim=width,
        conv=keys.need("conv_width"),
        delta=True,
        head_gates=1,
        decay=rank,
        gate=rank,
        # the scale of the decay, and its offset in every key channel
        head_vectors=1 + width,
    )


def lightning(keys: Keys, facts: Blueprint) -> LinearAttention:
    """Lightning attention of MiniMax-01 (2025, arXiv 2501.08313), with a gate and a norm over all heads."""
    return LinearAttention(
        heads=facts.heads,
        key_dim=facts.head_dim,
        value_dim=facts.head_dim,
        norm="joint",
        chunk=keys.need("scan_chunk"),
    )
