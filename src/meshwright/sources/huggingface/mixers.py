"""Which layers of a hybrid have a recurrent mixer, and those whose layers are a single block each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from meshwright.sources import checks
from meshwright.sources.blueprint import Blueprint
from meshwright.sources.huggingface.gated import griffin, rwkv, short_convolution
from meshwright.sources.huggingface.keys import Keys
from meshwright.sources.huggingface.linear_attention import delta_rule, kimi_delta_rule, lightning
from meshwright.sources.huggingface.state_space import mamba, mamba2
from meshwright.sources.huggingface.windows import FULL, per_layer
from meshwright.spec.mixers import Mixer

RECURRENT = ("linear_attention", "mamba", "conv", "recurrent")
"""What `layer_types` calls a layer whose mixer stands in place of attention."""

LETTERS = {"M": "linear_attention", "E": "moe", "*": "full_attention", "-": "mlp"}

MIXERS: dict[str, Callable[[Keys, Blueprint], Mixer]] = {
    "delta_rule": delta_rule,
    "kimi_delta_rule": kimi_delta_rule,
    "lightning": lightning,
    "mamba": mamba,
    "mamba2": mamba2,
    "short_convolution": short_convolution,
    "griffin": griffin,
    "rwkv": rwkv,
}
"""Rules of `Family.mixer`, and what makes of the keys the mixer of a layer."""


def with_mixer(keys: Keys, rule: str, facts: Blueprint) -> Blueprint:
    """The facts with the mixer in the layers that have it: in place of attention, or in all of them beside it."""
    mixer = MIXERS[rule](keys, facts)
    if rule == "mamba2" and keys.raw("mamba_d_ssm") is not None:
        return replace(facts, mixer=mixer)
    changes: dict[str, Any] = {"attention": False, "mixer": mixer}
    recurrent = [index for index, kind in enumerate(layer_kinds(keys, facts.layers)) if kind in RECURRENT]
    windows = tuple(0 if index in recurrent else window for index, window in enumerate(facts.windows))
    return replace(facts, windows=windows, overrides=dict.fromkeys(recurrent, changes))


def layer_kinds(keys: Keys, layers: int) -> list[str]:
    """The kind of each layer: from a list, from a cycle, from indices, or from a period."""
    for name in ("layer_types", "layers_block_type"):
        if keys.raw(name) is not None:
            return _known(keys, per_layer(keys, name, keys.raw(name), layers))
    cycle = keys.raw("block_types")
    if cycle is not None:
        entries = _known(keys, checks.listed(keys.where, "block_types", cycle))
        if not entries:
            raise checks.wrong(keys.where, "block_types", cycle, "at least one kind of layer", ["recurrent"])
        return [entries[index % len(entries)] for index in range(layers)]
    for name, first in (("attn_layer_indices", 0), ("full_attn_idxs", 0), ("linear_attn_config.full_attn_layers", 1)):
        given = keys.raw(name)
        if given is not None:
            entries = checks.listed(keys.where, name, given)
            full = {checks.whole(keys.where, name, index, 0) - first for index in entries}
            return ["attention" if index in full else "recurrent" for index in range(layers)]
    return _periodic(keys, layers)


def _periodic(keys: Keys, layers: int) -> list[str]:
    if keys.defaults.get("full_every") == 0:
        return ["recurrent"] * layers
    period = keys.count("full_every")
    if period is None:
        raise keys.refuse("layer_types")
    offset = keys.count("full_offset", least=0)
    offset = period - 1 if offset is None else offset
    if offset >= period and keys.find("full_offset"):
        key, below = keys.used["full_offset"], keys.used["full_every"]
        raise checks.wrong(keys.where, key, offset, f"below {below} ({period})", period - 1)
    full = range(offset, layers, period)
    return ["attention" if index in full else "recurrent" for index in range(layers)]


def _known(keys: Keys, kinds: list[Any]) -> list[str]:
    known = (*RECURRENT, *FULL, "sliding_attention")
    odd = [kind for kind in kinds if kind not in known]
    if odd:
        raise keys.refuse(f"layers of type {checks.shown(odd[0])} ({len(odd)} of {len(kinds)})")
    return kinds


def with_single_blocks(keys: Keys, facts: Blueprint) -> Blueprint:
    """Nemotron-H: each layer is one of Mamba-2, attention, MLP or experts, with one norm before it."""
    mixer = mamba2(keys, facts)
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
        rule = f"at least 1, since {len(sparse)} layers are mixtures of experts"
        raise checks.wrong(keys.where, keys.used["experts"], 0, rule, 1)
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
