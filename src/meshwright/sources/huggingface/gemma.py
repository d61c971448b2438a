"""Gemma 3n and Gemma 4: full layers of another shape, keys that serve as values or come from an earlier layer, an input
for each layer, and (3n) several streams side by side."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from meshwright.sources import checks
from meshwright.sources.blueprint import Blueprint
from meshwright.sources.huggingface.keys import Keys
from meshwright.sources.huggingface.windows import FULL, per_layer
from meshwright.spec.layers import Attention
from meshwright.spec.linear import Linear


def with_gemma4_layers(keys: Keys, facts: Blueprint) -> Blueprint:
    """Gemma 4: full layers have wider heads, in some models fewer, whose keys are their values.

    A mixture of experts stands beside the dense MLP of a layer, each with norms of its own.
    """
    full = _full_layers(keys, facts)
    values_are_keys = _flag(keys, "attention_k_eq_v")
    own_kv = _size(keys, "num_global_key_value_heads", facts.kv_heads) if values_are_keys else facts.kv_heads
    shared = _sharing(keys, facts, full)
    global_dim = _size(keys, "global_head_dim", 512)
    overrides: dict[int, dict[str, Any]] = {}
    for index in range(facts.layers):
        changes: dict[str, Any] = {"head_dim": global_dim, "kv_heads": own_kv} if index in full else {}
        reused = index in shared
        if reused or (values_are_keys and index in full):
            changes |= _projections(replace(facts, **changes), ("q", "attn_out") if reused else ("q", "k", "attn_out"))
        if reused and _flag(keys, "use_double_wide_mlp"):
            changes["ffn"] = 2 * facts.ffn
        if changes:
            overrides[index] = changes
    windows = tuple(0 if index in full else keys.need("window") for index in range(facts.layers))
    facts = replace(facts, overrides=overrides, windows=windows if any(windows) else ())
    experts = facts.experts
    if experts is None and _flag(keys, "enable_moe_block"):
        raise keys.refuse("num_experts")
    if experts is not None:
        # the router scales its input and each expert's output
        scales = replace(experts, extra=facts.hidden + experts.count, own_extra=1)
        facts = replace(facts, experts=scales, dense_beside_experts=True, norms=7)
    return _with_layer_inputs(keys, _counted_only(facts, shared))


def with_gemma3n_layers(keys: Keys, facts: Blueprint) -> Blueprint:
    """Gemma 3n: AltUp (Baykal et al. 2023, arXiv 2301.13310) keeps several streams and predicts all but one, LAuReL
    (Menghani et al. 2024, arXiv 2411.07501) adds a low-rank residual."""
    full = _full_layers(keys, facts, forced_last=False)
    shared = _sharing(keys, facts, full)
    overrides = {index: _projections(facts, ("q", "attn_out")) for index in sorted(shared)}
    streams, rank, hidden = _size(keys, "altup_num_inputs", 4), _size(keys, "laurel_rank", 64), facts.hidden
    scaled = checks.flag(keys.where, "altup_correct_scale", keys.values.get("altup_correct_scale", True))
    further = (
        Linear("altup_router", hidden, streams, "replicated"),
        Linear("altup_predict", streams, streams**2, "replicated"),
        Linear("altup_correct", streams, streams, "replicated"),
        Linear("laurel_down", hidden, rank, "replicated"),
        Linear("laurel_up", rank, hidden, "replicated"),
    )
    # norms of the router's input and of the low-rank residual, and the scale of the correction
    facts = replace(facts, overrides=overrides, further=further, norms=6, mlp_extra=hidden if scaled else 0)
    projections = (streams - 1) * hidden**2
    facts = _with_layer_inputs(keys, _counted_only(facts, shared))
    reason = f"it keeps {streams} streams of activations (AltUp), which the memory and time of a layer don't know"
    return replace(
        facts, embedding_extra=facts.embedding_extra + projections, head_extra=projections, not_planned=reason
    )


def _full_layers(keys: Keys, facts: Blueprint, forced_last: bool = True) -> frozenset[int]:
    """Layers that see everything; Gemma 4's class makes the last layer one of them, whatever the file says."""
    given = keys.raw("layer_types")
    if given is not None:
        kinds = per_layer(keys, "layer_types", given, facts.layers)
        full = {index for index, kind in enumerate(kinds) if kind in FULL}
    else:
        every = keys.need("window_pattern")
        full = {index for index in range(facts.layers) if (index + 1) % every == 0}
    return frozenset(full | ({facts.layers - 1} if forced_last else set()))


def _sharing(keys: Keys, facts: Blueprint, full: frozenset[int]) -> frozenset[int]:
    """The last layers, which take the keys and values of an earlier layer of their kind."""
    default = 0 if keys.defaults.get("window_pattern") == 6 else 15
    given = keys.values.get("num_kv_shared_layers", default)
    count = checks.whole(keys.where, "num_kv_shared_layers", given, 0, facts.layers - 1)
    return frozenset(range(facts.layers - count, facts.layers))


def _projections(facts: Blueprint, names: tuple[str, ...]) -> dict[str, Any]:
    """A layer that has only the projections of these names. Without keys of its own, it has no norm over keys."""
    whole = Attention(
        facts.heads, facts.kv_heads, facts.head_dim, qkv_bias=facts.qkv_bias, out_bias=facts.out_bias
    ).linears(facts.hidden)
    changes: dict[str, Any] = {"projections": tuple(linear for linear in whole if linear.name in names)}
    if "k" not in names:
        changes |= {"qk_norm": "none", "attention_extra": facts.head_dim}
    return changes


def _counted_only(facts: Blueprint, shared: frozenset[int]) -> Blueprint:
    if not shared:
        return facts
    reason = f"its last {len(shared)} layers take keys and values of earlier ones, across whatever stages lie between"
    return replace(facts, not_planned=reason)


def _with_layer_inputs(keys: Keys, facts: Blueprint) -> Blueprint:
    """A second, wide embedding holds an input for each layer, which enters after the MLP through a gate."""
    width = _size(keys, "hidden_size_per_layer_input", 256)
    if not width:
        return facts
    rows = _size(keys, "vocab_size_per_layer_input", 262_144)
    whole = facts.layers * width
    gates = (
        Linear("layer_input_gate", facts.hidden, width, "replicated"),
        Linear("layer_input_up", width, facts.hidden, "replicated"),
    )
    reason = "each layer takes an input of its own from a second embedding, which travels along the stages"
    return replace(
        facts,
        further=(*facts.further, *gates),
        norms=facts.norms + 1,
        embedding_extra=facts.embedding_extra + rows * whole + facts.hidden * whole + width,
        not_planned=facts.not_planned or reason,
    )


def _size(keys: Keys, key: str, default: int) -> int:
    given = keys.raw(key)
    return default if given is None else checks.whole(keys.where, key, given, least=0)


def _flag(keys: Keys, key: str) -> bool:
    given = keys.raw(key)
    return False if given is None else checks.flag(keys.where, key, given)
