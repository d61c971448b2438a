"""Models whose layers differ in more than their window and their experts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from meshwright.sources import checks
from meshwright.sources.blueprint import Blueprint
from meshwright.sources.huggingface.compressed import with_compressed_attention
from meshwright.sources.huggingface.cross import with_cross_attention
from meshwright.sources.huggingface.families import UnevenRule
from meshwright.sources.huggingface.gemma import with_gemma3n_layers, with_gemma4_layers
from meshwright.sources.huggingface.keys import Keys
from meshwright.sources.huggingface.mixers import with_single_blocks
from meshwright.sources.huggingface.windows import per_layer


def with_uneven_layers(keys: Keys, rule: UnevenRule, facts: Blueprint) -> Blueprint:
    """The facts with what the config says about single layers."""
    rules: dict[UnevenRule, Callable[[Keys, Blueprint], Blueprint]] = {
        "blocks": _blocks,
        "sliding_heads": _sliding_heads,
        "single_blocks": with_single_blocks,
        "gemma4": with_gemma4_layers,
        "gemma3n": with_gemma3n_layers,
        "cross_attention": with_cross_attention,
        "deepseek_v4": with_compressed_attention,
    }
    return rules[rule](keys, facts) if rule in rules else facts


def _blocks(keys: Keys, facts: Blueprint) -> Blueprint:
    """`block_configs` of searched architectures (Puzzle, Bercovich et al. 2024, arXiv 2411.19146).

    Each layer has its own number of query heads per key/value head and its own MLP width, or lacks one of the two.
    """
    given = keys.raw("block_configs")
    if given is None:
        raise keys.refuse("block_configs")
    blocks = per_layer(keys, "block_configs", given, facts.layers)
    overrides = {index: _block(keys, facts, index, block) for index, block in enumerate(blocks)}
    windows = tuple(override.pop("window", 0) for override in overrides.values())
    return replace(facts, overrides=overrides, windows=windows if any(windows) else ())


def _block(keys: Keys, facts: Blueprint, index: int, block: Any) -> dict[str, Any]:
    name = f"block_configs[{index}]"
    block = checks.mapping(keys.where, name, block)
    attention = checks.mapping(keys.where, f"{name}.attention", block.get("attention"))
    ffn = checks.mapping(keys.where, f"{name}.ffn", block.get("ffn"))
    if attention.get("replace_with_linear") or ffn.get("replace_with_linear"):
        raise keys.refuse(f"the linear layer that stands in for {name}")
    has_attention, has_mlp = not attention.get("no_op"), not ffn.get("no_op")
    changes: dict[str, Any] = {"attention": has_attention, "norms": int(has_attention) + int(has_mlp), "ffn": 0}
    if has_attention:
        group = checks.whole(keys.where, f"{name}.attention.n_heads_in_group", attention.get("n_heads_in_group"))
        if facts.heads % group:
            rule, nearest = f"a divisor of {facts.heads} heads", checks.nearest_divisor(facts.heads, group)
            raise checks.wrong(keys.where, f"{name}.attention.n_heads_in_group", group, rule, nearest)
        changes |= {"kv_heads": facts.heads // group, "window": attention.get("window_length") or 0}
    if has_mlp:
        ratio = ffn.get("ffn_mult")
        if isinstance(ratio, bool) or not isinstance(ratio, int | float) or not 0 < ratio < 100:
            raise checks.wrong(keys.where, f"{name}.ffn.ffn_mult", ratio, "a number above 0")
        changes["ffn"] = _multiple_of_256(int(2 * ratio * facts.hidden / 3))
    return changes


def _multiple_of_256(width: int) -> int:
    return width + -width % 256


def _sliding_heads(keys: Keys, facts: Blueprint) -> Blueprint:
    """MiMo-V2: sliding layers have heads of their own, and attention sinks.

    Where the file doesn't say, they have twice the key/value heads, as the class in transformers fixes it.
    """
    pattern = keys.raw("hybrid_layer_pattern")
    if pattern is not None:
        entries = per_layer(keys, "hybrid_layer_pattern", pattern, facts.layers)
        kinds = [checks.whole(keys.where, "hybrid_layer_pattern", kind, 0, 1) for kind in entries]
    else:
        kinds = [int(window > 0) for window in facts.windows] or [0] * facts.layers
    window = keys.need("window")
    sliding: dict[str, Any] = {
        "heads": _own(keys, "swa_num_attention_heads", facts.heads),
        "kv_heads": _own(keys, "swa_num_key_value_heads", 2 * facts.kv_heads),
        "head_dim": _own(keys, "swa_head_dim", facts.head_dim),
        "value_dim": _own(keys, "swa_v_head_dim", keys.need("value_dim")),
        "sinks": keys.values.get("add_swa_attention_sink_bias") is not False,
    }
    return replace(
        facts,
        value_dim=keys.need("value_dim"),
        sinks=keys.values.get("add_full_attention_sink_bias") is True,
        windows=tuple(window * kind for kind in kinds),
        overrides={index: sliding for index, kind in enumerate(kinds) if kind},
    )


def _own(keys: Keys, key: str, otherwise: int) -> int:
    value = keys.raw(key)
    return otherwise if value is None else checks.whole(keys.where, key, value)
