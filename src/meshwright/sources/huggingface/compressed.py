"""DeepSeek-V4: keys compressed along the sequence, a grouped output projection, and hyper-connections.

The class in transformers names the sections of the report it follows (2.2 hyper-connections, 2.3 attention).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from meshwright.sources import checks
from meshwright.sources.blueprint import Blueprint
from meshwright.sources.huggingface.keys import Keys
from meshwright.sources.huggingface.windows import per_layer
from meshwright.spec.linear import Linear

SLIDING, SPARSE, HEAVY = "sliding_attention", "compressed_sparse_attention", "heavily_compressed_attention"
KIND_OF_RATIO = {0: SLIDING, 4: SPARSE, 128: HEAVY}
DEFAULT_RATES = {SPARSE: 4, HEAVY: 128}
OLD_RATES = {SPARSE: "compress_rate_csa", HEAVY: "compress_rate_hca"}


@dataclass(frozen=True)
class _Sizes:
    hidden: int
    heads: int
    head_dim: int
    q_rank: int
    groups: int
    out_rank: int
    index_heads: int
    index_head_dim: int


def with_compressed_attention(keys: Keys, facts: Blueprint) -> Blueprint:
    """The facts with every layer's own projections, and the hyper-connections around attention and MLP."""
    sizes = _Sizes(
        hidden=facts.hidden,
        heads=facts.heads,
        head_dim=facts.head_dim,
        q_rank=keys.need("q_rank"),
        groups=_size(keys, "o_groups", 8),
        out_rank=_size(keys, "o_lora_rank", 1024),
        index_heads=keys.need("index_heads"),
        index_head_dim=keys.need("index_head_dim"),
    )
    if sizes.heads * sizes.head_dim % sizes.groups:
        rule = f"a divisor of {sizes.heads} heads of width {sizes.head_dim}"
        nearest = checks.nearest_divisor(sizes.heads * sizes.head_dim, sizes.groups)
        raise checks.wrong(keys.where, "o_groups", sizes.groups, rule, nearest)
    rates = _rates(keys)
    made = {kind: _layer(sizes, kind, rates.get(kind, 0)) for kind in KIND_OF_RATIO.values()}
    streams = _size(keys, "hc_mult", 4)
    mixed = streams * (2 + streams)
    window = keys.need("window")
    experts = facts.experts
    reason = (
        f"its keys are compressed along the sequence and its residual is {streams} streams (hyper-connections), "
        "which the memory and time of a layer don't know"
    )
    return replace(
        facts,
        # one shared expert of the routed width, however many the file says
        experts=None if experts is None else replace(experts, shared_width=experts.width),
        overrides={index: made[kind] for index, kind in enumerate(_kinds(keys, facts.layers))},
        windows=(window,) * facts.layers,
        further=tuple(
            Linear(f"hyper_connection_{part}", streams * facts.hidden, mixed, "replicated", bias=True)
            for part in ("attention", "mlp")
        ),
        mlp_extra=facts.mlp_extra + 2 * 3,  # a scale for each of the three mixings of both hyper-connections
        head_extra=streams * streams * facts.hidden + streams + 1,
        not_planned=reason,
    )


def _kinds(keys: Keys, layers: int) -> list[str]:
    """`layer_types`, or the compression ratio of each layer as the published files give it, or the class's own rule."""
    given = keys.raw("layer_types")
    if given is not None:
        kinds = per_layer(keys, "layer_types", given, layers)
        return [checks.choice(keys.where, "layer_types", kind, tuple(KIND_OF_RATIO.values())) for kind in kinds]
    ratios = keys.raw("compress_ratios")
    if ratios is None:
        return [SPARSE if index > 1 and index % 2 else HEAVY for index in range(layers)]
    found = []
    for ratio in per_layer(keys, "compress_ratios", ratios, layers):
        if isinstance(ratio, bool) or not isinstance(ratio, int) or ratio not in KIND_OF_RATIO:
            raise checks.wrong(keys.where, "compress_ratios", ratio, "0, 4 or 128 for each layer")
        found.append(KIND_OF_RATIO[ratio])
    return found


def _rates(keys: Keys) -> dict[str, int]:
    """Tokens that become one key, by kind of layer."""
    given = checks.mapping(keys.where, "compress_rates", keys.raw("compress_rates") or {})
    rates = DEFAULT_RATES | {kind: given[kind] for kind in DEFAULT_RATES if given.get(kind) is not None}
    rates |= {kind: keys.values[old] for kind, old in OLD_RATES.items() if keys.raw(old) is not None}
    return {kind: checks.whole(keys.where, f"compress_rates.{kind}", rate) for kind, rate in rates.items()}


def _layer(sizes: _Sizes, kind: str, rate: int) -> dict[str, Any]:
    hidden, dim = sizes.hidden, sizes.head_dim
    width = sizes.heads * dim
    projections = [
        Linear("q_down", hidden, sizes.q_rank, "replicated"),
        Linear("q_up", sizes.q_rank, width, "column", sizes.heads),
        Linear("kv", hidden, dim, "replicated"),
    ]
    extra = sizes.q_rank + dim  # norms of the queries' latent and of the keys
    if kind == SPARSE:
        # two overlapping series of entries, and an indexer that compresses keys of its own
        projections += _compressor("compress", hidden, 2 * dim)
        projections += _compressor("index_compress", hidden, 2 * sizes.index_head_dim)
        projections += [
            Linear("index_q", sizes.q_rank, sizes.index_heads * sizes.index_head_dim, "replicated"),
            Linear("index_weights", hidden, sizes.index_heads, "replicated"),
        ]
        extra += (2 * rate + 1) * (dim + sizes.index_head_dim)
    elif kind == HEAVY:
        projections += _compressor("compress", hidden, dim)
        extra += (rate + 1) * dim
    projections += [
        Linear("out_down", width // sizes.groups, sizes.groups * sizes.out_rank, "column", sizes.groups),
        Linear("attn_out", sizes.groups * sizes.out_rank, hidden, "row", sizes.groups),
    ]
    return {"projections": tuple(projections), "attention_extra": extra}


def _compressor(name: str, hidden: int, width: int) -> list[Linear]:
    return [
        Linear(f"{name}_kv", hidden, width, "replicated"),
        Linear(f"{name}_gate", hidden, width, "replicated"),
    ]


def _size(keys: Keys, key: str, default: int) -> int:
    given = keys.raw(key)
    return default if given is None else checks.whole(keys.where, key, given)
