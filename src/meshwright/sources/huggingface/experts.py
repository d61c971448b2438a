"""Which layers are mixtures of experts, and of what size."""

from __future__ import annotations

from meshwright.sources import checks
from meshwright.sources.blueprint import Experts
from meshwright.sources.huggingface.families import Family
from meshwright.sources.huggingface.keys import Keys
from meshwright.sources.huggingface.windows import per_layer


def experts(keys: Keys, family: Family, ffn: int, layers: int) -> tuple[Experts | None, frozenset[int]]:
    """The experts of a sparse layer and the set of sparse layers; None and nothing for a dense model.

    `ffn` is the width of the dense MLP (0 where the config gives none).
    """
    if family.sparse == "none":
        if keys.count("experts", least=0):
            raise keys.refuse("how its experts are laid out")
        return None, frozenset()
    count = keys.count("experts", least=0) if keys.flag(family.sparse_when) else 0
    # with a period, one expert is a dense MLP (Jamba)
    routed = bool(count) and not (family.sparse == "period" and count == 1)
    sparse = sparse_layers(keys, family, layers) if routed else frozenset()
    if not count or not sparse:
        return None, frozenset()
    width = keys.need("expert_ffn") if family.expert_width == "expert_ffn" else ffn
    return Experts(
        count=count,
        top_k=keys.need("top_k"),
        width=width,
        shared_width=_shared_width(keys, family, ffn, width),
        shared_gate=family.shared_gate,
        bias=family.expert_bias,
        router_bias=family.router_bias,
        extra=count if family.balance_bias else 0,
    ), sparse


def sparse_layers(keys: Keys, family: Family, layers: int) -> frozenset[int]:
    """Indices of the layers that are mixtures of experts: what a list in the file says, or the rule of the class."""
    listed = _listed(keys, layers)
    if listed is not None:
        return listed
    if family.sparse == "first_dense":
        return frozenset(range(keys.count("first_dense", least=0) or 0, layers))
    if family.sparse == "step":
        step = keys.count("sparse_step") or 1
        dense = checks.listed(keys.where, "mlp_only_layers", keys.raw("mlp_only_layers") or [])
        excluded = {checks.whole(keys.where, "mlp_only_layers", index, least=0) for index in dense}
        return frozenset(index for index in range(layers) if (index + 1) % step == 0 and index not in excluded)
    if family.sparse == "period":
        period, offset = keys.need("sparse_step"), keys.need("sparse_offset", least=0)
        return frozenset(range(offset, layers, period))
    if family.sparse == "range":
        step, start = keys.count("sparse_step") or 1, keys.count("sparse_start", least=0) or 0
        end = keys.count("sparse_end", least=-1)
        end = layers - 1 if end is None or end == -1 else end
        return frozenset(index for index in range(start, min(end, layers - 1) + 1) if (index + 1) % step == 0)
    return frozenset(range(layers))


def _listed(keys: Keys, layers: int) -> frozenset[int] | None:
    kinds = keys.raw("mlp_layer_types")
    if kinds is not None:
        entries = per_layer(keys, "mlp_layer_types", kinds, layers)
        for kind in entries:
            checks.choice(keys.where, "mlp_layer_types", kind, ("dense", "sparse", "moe", "hash_moe"))
        return frozenset(index for index, kind in enumerate(entries) if kind != "dense")
    marks = keys.raw("moe_layer_freq")
    if isinstance(marks, list):
        entries = per_layer(keys, "moe_layer_freq", marks, layers)
        return frozenset(
            index for index, mark in enumerate(entries) if checks.whole(keys.where, "moe_layer_freq", mark, 0, 1)
        )
    given = keys.raw("moe_layers")
    if isinstance(given, list) and given:
        return frozenset(checks.whole(keys.where, "moe_layers", index, 0, layers - 1) for index in given)
    return None


def _shared_width(keys: Keys, family: Family, ffn: int, width: int) -> int:
    if family.shared == "one":
        return ffn
    if family.shared == "width":
        return keys.count("shared_ffn", least=0) or 0
    if family.shared in ("count", "count_dense"):
        number = keys.count("shared_experts", least=0) or 0
        return number * (width if family.shared == "count" else ffn)
    return 0
