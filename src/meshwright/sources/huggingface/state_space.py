"""The keys of Mamba and Mamba-2, as the classes that have them name and fill them in."""

from __future__ import annotations

from meshwright.sources import checks
from meshwright.sources.blueprint import Blueprint
from meshwright.sources.huggingface.keys import Key, Keys
from meshwright.spec.mixers import Mamba, Mamba2


def _biases(keys: Keys, facts: Blueprint) -> tuple[bool, bool]:
    """(of the convolution, of the matrices). Hybrids of attention and an expanded Mamba call theirs `mamba_…`."""
    if facts.attention and "expand" in keys.defaults:
        return keys.flag(Key("mamba_conv_bias", True)), keys.flag(Key("mamba_proj_bias", False))
    return keys.flag(Key("use_conv_bias", True)), keys.flag(Key("use_bias", False))


def mamba(keys: Keys, facts: Blueprint) -> Mamba:
    """Mamba, alone (whose `intermediate_size` is its own width) or in Jamba (which norms what selects the state)."""
    alone = facts.norms == 1
    inner = (keys.count("ffn") if alone else None) or keys.need("expand") * facts.hidden
    conv_bias, bias = _biases(keys, facts)
    return Mamba(
        heads=inner,
        inner=inner,
        state=keys.need("state_size"),
        dt_rank=_unless_auto(keys, "step_rank", -(-facts.hidden // 16)),
        conv=keys.need("conv_width"),
        conv_bias=conv_bias,
        bias=bias,
        normed=not alone,
    )


def mamba2(keys: Keys, facts: Blueprint) -> Mamba2:
    """Mamba-2, alone, in Bamba, Granite 4, Falcon-H1 and Nemotron-H."""
    prefix = "state" if facts.attention else "lone"
    heads = keys.need(f"{prefix}_heads")
    inner = keys.count("state_width") or (keys.count("expand") or 0) * facts.hidden
    head_dim = _unless_auto(keys, f"{prefix}_head_dim", inner // heads)
    if not head_dim:
        key = keys.used[f"{prefix}_heads"]
        raise checks.wrong(keys.where, key, heads, f"at most the width of the mixer ({inner})", max(inner, 1))
    if "expand" in keys.defaults and heads * head_dim != inner:
        key = keys.used[f"{prefix}_heads"]
        rule = f"such that times the width of a head ({head_dim}) it is the width of the mixer ({inner})"
        raise checks.wrong(keys.where, key, heads, rule, max(inner // head_dim, 1))
    groups = keys.need("state_groups")
    if heads % groups:
        nearest = checks.nearest_divisor(heads, groups)
        rule = f"a divisor of {keys.used['state_heads']} ({heads})"
        raise checks.wrong(keys.where, keys.used["state_groups"], groups, rule, nearest)
    conv_bias, bias = _biases(keys, facts)
    return Mamba2(
        heads=heads,
        head_dim=head_dim,
        groups=groups,
        state=keys.need("state_size"),
        conv=keys.need("conv_width"),
        chunk=keys.need("scan_chunk"),
        conv_bias=conv_bias,
        bias=bias,
        out_bias=keys.flag(Key("projectors_bias", bias)),
        normed=keys.flag(Key("mamba_rms_norm", "state_width" not in keys.defaults)),
    )


def _unless_auto(keys: Keys, fact: str, derived: int) -> int:
    """A size that may be given as "auto", or left out, and then follows from others."""
    found = keys.find(fact)
    if found is not None and found[1] == "auto":
        return derived
    return keys.count(fact) or derived
