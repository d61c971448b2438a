"""What a class of model is like where no key of its config says so: one `Family` per model_type, all in `table`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from meshwright.sources.blueprint import QKNorm
from meshwright.sources.huggingface.keys import Flag
from meshwright.spec.model import NormKind, PositionKind

KVRule = Literal["key", "heads", "multi_query", "groups"]
"""Key/value heads: what the key says (or as many as query heads); always as many as query heads; one if `multi_query`
is on (what the key says if `grouped`); what the key says if `multi_query_attention` is on."""

WindowRule = Literal[
    "none",
    "all",
    "from_layer",
    "alternate",
    "pattern",
    "sliding_first",
    "full_first",
    "full_every_sixth",
    "chunks",
    "local",
    "own",
]
"""Which layers have a window where no `layer_types` says so; see `windows`. With "own", the class has layer types of
its own, read by its uneven rule."""

SparseRule = Literal["none", "all", "first_dense", "step", "range", "period"]
"""Which layers are mixtures of experts where no list says so; see `experts`."""

SharedRule = Literal["none", "count", "width", "one", "count_dense"]
"""Width of the shared experts: n of the routed width; a width of its own; one of the dense width; n of those."""


UnevenRule = Literal[
    "none",
    "blocks",
    "sliding_heads",
    "gemma4",
    "gemma3n",
    "cross_attention",
    "deepseek_v4",
    "single_blocks",
]
"""How single layers differ beyond windows and experts; see `uneven`."""

MixerRule = Literal[
    "none", "delta_rule", "kimi_delta_rule", "lightning", "mamba", "mamba2", "short_convolution", "griffin", "rwkv"
]
"""The recurrent mixer in place of attention or beside it; see `mixers`."""

MLPRule = Literal["key", "none", "shared", "rounded"]
"""The dense MLP: as wide as the key says; none; the shared expert where there are no others; two thirds of the key,
rounded up (LFM2)."""


@dataclass(frozen=True)
class Family:
    """Facts of one class; a `Key` leaves the fact to the config.

    `parallel_norms` counts the norms of a layer whose attention and MLP read the same input; `alibi_without` is a key
    whose absence means ALiBi; a class that can't tie its embeddings (`can_tie`) keeps two matrices, whatever the file
    says; `balance_bias` is a parameter per routed expert that steers the router.
    """

    architecture: str
    tied: bool = False
    can_tie: bool = True
    norm: NormKind = "rms"
    norm_bias: Flag = False
    norm_weights: Flag = True
    norms: int = 2
    final_norm: bool = True
    position: PositionKind = "rope"
    position_offset: int = 0
    alibi: Flag = False
    alibi_without: str = ""
    gated: bool = True
    ffn_ratio: int = 0
    ffn_halved: bool = False
    qkv_bias: Flag = False
    out_bias: Flag = False
    mlp_bias: Flag = False
    head_bias: Flag = False
    qk_norm: QKNorm = "none"
    qk_norm_when: Flag = True
    qk_norm_bias: bool = False
    fused_qkv: bool = False
    parallel: Flag = False
    parallel_norms: int = 1
    kv: KVRule = "key"
    grouped: Flag = False
    fixed_head_dim: bool = False
    embedding_norm: bool = False
    sinks: bool = False
    latent: bool = False
    indexer: bool = False
    windows: WindowRule = "none"
    window_gate: Flag = True
    sparse: SparseRule = "none"
    sparse_when: Flag = True
    shared: SharedRule = "none"
    expert_width: Literal["ffn", "expert_ffn"] = "expert_ffn"
    expert_bias: bool = False
    router_bias: bool = False
    shared_gate: bool = False
    balance_bias: bool = False
    mlp_extra: int = 0
    uneven: UnevenRule = "none"
    mixer: MixerRule = "none"
    mlp: MLPRule = "key"
    attention: bool = True
    attention_gate: Literal["none", "channel", "head"] = "none"
    dropout: bool = False

    def like(self, architecture: str, **changes: Any) -> Family:
        """Another class that differs from this one in `changes` only."""
        return replace(self, architecture=architecture, **changes)
