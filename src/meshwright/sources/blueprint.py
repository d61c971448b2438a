"""The facts that make a model, before its layers are laid out one by one.

Every description of a model (catalog entry, Hugging Face config, a file that somebody wrote) becomes a `Blueprint`, and
`build` turns it into a `Model`: one place where parameters are counted, whatever the description looks like.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from meshwright.sources import checks
from meshwright.spec.errors import InputError
from meshwright.spec.layers import MLP, Attention, Layer
from meshwright.spec.linear import Linear
from meshwright.spec.mixers import Mixer
from meshwright.spec.model import Model, NormKind, PositionKind
from meshwright.spec.stored import StoredWeights

QKNorm = Literal["none", "head", "width"]
"""Norm over queries and keys: none, one weight per channel of a head (shared by all heads), or one per channel."""

MAX_LAYERS = 10_000


@dataclass(frozen=True)
class Latent:
    """Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1). `q_rank` 0: full queries. With an
    indexer (`index_heads` > 0), a query sees the `index_keys` that it scores best (DeepSeek-V3.2)."""

    q_rank: int
    kv_rank: int
    nope_dim: int
    rope_dim: int
    value_dim: int
    index_heads: int = 0
    index_head_dim: int = 0
    index_keys: int = 0


@dataclass(frozen=True)
class Experts:
    """The mixture of experts of a sparse layer. `extra` counts its further parameters, such as a balancing bias;
    `own_extra` of them belong to each routed expert."""

    count: int
    top_k: int
    width: int
    shared_width: int = 0
    shared_gate: bool = False
    bias: bool = False
    router_bias: bool = False
    extra: int = 0
    latent: int = 0
    own_extra: int = 0


@dataclass(frozen=True)
class Blueprint:
    """A model in facts.

    `windows` holds one window per layer (0: full), or nothing where all see everything. A `mixer` stands beside
    attention, or, with `attention` off, in its place. `overrides` replaces facts of single layers.
    """

    name: str
    hidden: int
    layers: int
    heads: int
    vocab: int
    ffn: int
    kv_heads: int
    head_dim: int
    value_dim: int = 0
    gated: bool = True
    tied: bool = False
    norm: NormKind = "rms"
    norm_bias: bool = False
    norm_weights: bool = True
    norms: int = 2
    final_norm: bool = True
    position: PositionKind = "rope"
    position_rows: int = 0
    context: int = 0
    qkv_bias: bool = False
    out_bias: bool = False
    mlp_bias: bool = False
    head_bias: bool = False
    qk_norm: QKNorm = "none"
    qk_norm_bias: bool = False
    fused_qkv: bool = False
    parallel: bool = False
    dropout: bool = False
    embedding_dim: int = 0
    embedding_norm: bool = False
    sinks: bool = False
    attention: bool = True
    attention_extra: int = 0
    attention_gate: int = 0
    mixer: Mixer | None = None
    projections: tuple[Linear, ...] = ()
    further: tuple[Linear, ...] = ()
    mlp_extra: int = 0
    latent: Latent | None = None
    experts: Experts | None = None
    sparse_layers: frozenset[int] = frozenset()
    dense_beside_experts: bool = False
    windows: tuple[int, ...] = ()
    chunked: bool = False
    overrides: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    extra: int = 0
    embedding_extra: int = 0
    head_extra: int = 0
    not_planned: str = ""
    stored: StoredWeights | None = None
    hub_ids: tuple[str, ...] = ()
    architecture: str = ""
    source: str = ""
    notes: tuple[str, ...] = ()

    @property
    def norm_width(self) -> int:
        """Parameters of one norm over the residual stream."""
        return self.hidden * (int(self.norm_weights) + int(self.norm_bias))


def build(blueprint: Blueprint) -> Model:
    """The model that the facts describe. The facts must have passed `check`."""
    norm = blueprint.norm_width
    embedding = blueprint.embedding_dim or blueprint.hidden
    return Model(
        name=blueprint.name,
        hidden=blueprint.hidden,
        vocab=blueprint.vocab,
        layers=_layers(blueprint),
        tied_embeddings=blueprint.tied,
        norm=blueprint.norm,
        position=blueprint.position,
        max_positions=blueprint.context if blueprint.position_rows else 0,
        context_length=blueprint.context,
        embedding_dim=0 if embedding == blueprint.hidden else embedding,
        position_parameters=blueprint.position_rows * blueprint.hidden,
        embedding_norm_parameters=norm if blueprint.embedding_norm else 0,
        final_norm_parameters=norm if blueprint.final_norm else 0,
        embedding_extra_parameters=blueprint.embedding_extra,
        head_extra_parameters=blueprint.head_extra,
        head_bias=blueprint.head_bias,
        dropout=blueprint.dropout,
        extra_parameters=blueprint.extra,
        not_planned=blueprint.not_planned,
        stored=blueprint.stored,
        hub_ids=blueprint.hub_ids,
        architecture=blueprint.architecture,
        source=blueprint.source,
        notes=blueprint.notes,
    )


def head_dim_of(hidden: int, heads: int, where: str, keys: tuple[str, str]) -> int:
    """Width of a head where none is given: `hidden` over `heads`, which must divide it. `keys` name them in errors."""
    if hidden % heads:
        rule = f"a divisor of {keys[0]} ({hidden}), since no head width is given"
        raise checks.wrong(where, keys[1], heads, rule, checks.nearest_divisor(hidden, heads))
    return hidden // heads


def check(blueprint: Blueprint, where: str, keys: Mapping[str, str]) -> None:
    """Rules between facts. `keys` gives the name that the file `where` uses for a fact. Raises InputError."""
    heads, kv_heads = blueprint.heads, blueprint.kv_heads
    if heads % kv_heads:
        rule = f"a divisor of {keys.get('heads', 'heads')} ({heads})"
        raise checks.wrong(
            where, keys.get("kv_heads", "kv_heads"), kv_heads, rule, checks.nearest_divisor(heads, kv_heads)
        )
    experts = blueprint.experts
    if experts is not None and experts.top_k > experts.count:
        rule = f"at most {keys.get('experts', 'experts')} ({experts.count})"
        raise checks.wrong(where, keys.get("top_k", "top_k"), experts.top_k, rule, experts.count)
    if not blueprint.ffn and len(blueprint.sparse_layers) < blueprint.layers and not blueprint.overrides:
        dense = blueprint.layers - len(blueprint.sparse_layers)
        raise InputError(f"{keys.get('ffn', 'ffn')} is missing, but {dense} layers have a dense MLP", where)


def _layers(blueprint: Blueprint) -> tuple[Layer, ...]:
    """Equal layers are one object, so that hundreds of them cost no more than their kinds."""
    made: dict[tuple[int, bool, int], Layer] = {}
    layers: list[Layer] = []
    for index in range(blueprint.layers):
        window = blueprint.windows[index] if blueprint.windows else 0
        changes = blueprint.overrides.get(index)
        override = -1 if changes is None else id(changes)
        key = (window, index in blueprint.sparse_layers, override)
        if key not in made:
            facts = blueprint if changes is None else replace(blueprint, **changes)
            made[key] = _layer(facts, window, key[1])
        layers.append(made[key])
    return tuple(layers)


def _layer(facts: Blueprint, window: int, sparse: bool) -> Layer:
    return Layer(
        attention=_attention(facts, window),
        mlp=_sparse_mlp(facts) if sparse else _dense_mlp(facts),
        norms=facts.norms,
        norm_parameters=facts.norms * facts.norm_width,
        parallel=facts.parallel,
        mixer=facts.mixer,
        further=facts.further,
    )


def _attention(facts: Blueprint, window: int) -> Attention:
    if not facts.attention:
        return Attention(1, 1, 1, kind="none")
    latent = facts.latent
    extra = facts.attention_extra + (facts.heads if facts.sinks else 0)
    if latent is not None:
        return Attention(
            heads=facts.heads,
            kv_heads=facts.heads,
            head_dim=latent.nope_dim + latent.rope_dim,
            v_head_dim=latent.value_dim,
            kind="mla",
            window=latent.index_keys or window,
            qkv_bias=facts.qkv_bias,
            out_bias=facts.out_bias,
            # norms of the latents, and the layer norm of the indexer's keys
            extra_parameters=extra + latent.q_rank + latent.kv_rank + 2 * latent.index_head_dim,
            q_lora_rank=latent.q_rank,
            kv_lora_rank=latent.kv_rank,
            rope_head_dim=latent.rope_dim,
            index_heads=latent.index_heads,
            index_head_dim=latent.index_head_dim,
            gate_dim=facts.attention_gate,
        )
    normed = {"none": 0, "head": 2, "width": facts.heads + facts.kv_heads}[facts.qk_norm] * facts.head_dim
    return Attention(
        heads=facts.heads,
        kv_heads=facts.kv_heads,
        head_dim=facts.head_dim,
        v_head_dim=0 if facts.value_dim == facts.head_dim else facts.value_dim,
        window=window,
        qkv_bias=facts.qkv_bias,
        out_bias=facts.out_bias,
        fused_qkv=facts.fused_qkv,
        qk_norm=facts.qk_norm != "none",
        extra_parameters=extra + normed * (2 if facts.qk_norm_bias else 1),
        chunked=facts.chunked and window > 0,
        gate_dim=facts.attention_gate,
        projections=facts.projections,
    )


def _dense_mlp(facts: Blueprint) -> MLP:
    return MLP(width=facts.ffn, gated=facts.gated, bias=facts.mlp_bias, extra_parameters=facts.mlp_extra)


def _sparse_mlp(facts: Blueprint) -> MLP:
    experts = facts.experts
    if experts is None:
        raise ValueError("a blueprint with sparse layers needs experts")
    return MLP(
        width=facts.ffn if facts.dense_beside_experts else 0,
        gated=facts.gated,
        bias=facts.mlp_bias,
        experts=experts.count,
        top_k=experts.top_k,
        expert_width=experts.width,
        expert_bias=experts.bias,
        shared_width=experts.shared_width,
        shared_gate=experts.shared_gate,
        router_bias=experts.router_bias,
        extra_parameters=facts.mlp_extra + experts.extra,
        latent=experts.latent,
        expert_extra=experts.own_extra,
    )
