"""One layer as numbers: its attention or recurrent mixer, its MLP, and how tensor parallelism splits every matrix.

The whole cost model reads a model through `Layer.linears` and through the sizes of the attention core; nothing
downstream knows an architecture by name. Recurrent mixers are in `mixers`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from meshwright.spec.linear import Linear
from meshwright.spec.mixers import Mixer

AttentionKind = Literal["full", "mla", "none"]


@dataclass(frozen=True, slots=True)
class Attention:
    """Self-attention of one layer.

    `window` is the number of keys that a query sees (0: all before it); a `chunked` window doesn't slide: a query sees
    its own block of `window` positions up to itself. For MLA, `head_dim` is the query/key width per head (without and
    with rotary part together), `v_head_dim` the value width. `extra_parameters` counts what is not a matrix: q/k norms,
    sinks, relative-position tables; it is replicated over tensor-parallel ranks. An indexer (`index_heads` > 0)
    scores all keys before it and leaves each query its `window` best (DeepSeek-V3.2, section 2.1). Where attention
    isn't `causal` (encoders), a query sees keys to both sides, with a window half of it to each.
    """

    heads: int
    kv_heads: int
    head_dim: int
    v_head_dim: int = 0
    kind: AttentionKind = "full"
    window: int = 0
    qkv_bias: bool = False
    out_bias: bool = False
    fused_qkv: bool = False
    qk_norm: bool = False
    extra_parameters: int = 0
    q_lora_rank: int = 0
    kv_lora_rank: int = 0
    rope_head_dim: int = 0
    chunked: bool = False
    index_heads: int = 0
    index_head_dim: int = 0
    gate_dim: int = 0
    """Width per head of the gate that multiplies the output before its last matrix; 0: there is none."""
    projections: tuple[Linear, ...] = ()
    """The projections where they are not those of the kind (keys that serve as values, compressed keys)."""
    causal: bool = True

    @property
    def value_dim(self) -> int:
        return self.v_head_dim or self.head_dim

    def mean_keys(self, seq_len: int) -> float:
        """Mean number of keys that a query sees in a sequence of `seq_len` tokens."""
        if not self.causal:
            return 2 * mean_keys(seq_len, self.window // 2 + 1 if self.window else 0) - 1
        if self.chunked and 0 < self.window < seq_len:
            return _mean_keys_in_chunks(seq_len, self.window)
        return mean_keys(seq_len, self.window)

    def index_flops(self, seq_len: int) -> float:
        """Forward FLOPs per token of the indexer's scores over all keys before it."""
        return 2.0 * self.index_heads * self.index_head_dim * mean_keys(seq_len, 0)

    def linears(self, hidden: int) -> tuple[Linear, ...]:
        """The projections of one layer; the attention core itself has no weights."""
        if self.kind == "none" or self.projections:
            return self.projections
        out: tuple[Linear, ...] = (
            Linear("attn_out", self.heads * self.value_dim, hidden, "row", self.heads, self.out_bias),
        )
        if self.gate_dim:
            bias = self.qkv_bias and self.kind != "mla"
            gate = Linear("attn_gate", hidden, self.heads * self.gate_dim, "column", self.heads, bias)
            out = (gate, *out)
        if self.kind == "mla":
            nope = self.head_dim - self.rope_head_dim
            query: tuple[Linear, ...]
            if self.q_lora_rank:
                query = (
                    Linear("q_down", hidden, self.q_lora_rank, "replicated", bias=self.qkv_bias),
                    Linear("q_up", self.q_lora_rank, self.heads * self.head_dim, "column", self.heads),
                )
            else:
                query = (Linear("q", hidden, self.heads * self.head_dim, "column", self.heads),)
            return (
                *query,
                *self._indexer(hidden),
                Linear("kv_down", hidden, self.kv_lora_rank + self.rope_head_dim, "replicated", bias=self.qkv_bias),
                Linear("kv_up", self.kv_lora_rank, self.heads * (nope + self.value_dim), "column", self.heads),
                *out,
            )
        return (
            Linear("q", hidden, self.heads * self.head_dim, "column", self.heads, self.qkv_bias),
            Linear("k", hidden, self.kv_heads * self.head_dim, "column", self.kv_heads, self.qkv_bias),
            Linear("v", hidden, self.kv_heads * self.value_dim, "column", self.kv_heads, self.qkv_bias),
            *out,
        )

    def _indexer(self, hidden: int) -> tuple[Linear, ...]:
        """Projections that choose keys, on every tensor-parallel rank alike."""
        if not self.index_heads:
            return ()
        return (
            Linear("index_q", self.q_lora_rank, self.index_heads * self.index_head_dim, "replicated"),
            Linear("index_k", hidden, self.index_head_dim, "replicated"),
            Linear("index_weights", hidden, self.index_heads, "replicated"),
        )


@dataclass(frozen=True, slots=True)
class MLP:
    """Feed-forward part of one layer: dense, or mixture of experts with optional shared experts.

    `width` is the inner width of the dense MLP (0: there is none), `expert_width` that of one routed expert,
    `shared_width` the summed width of the experts that every token passes through.
    """

    width: int = 0
    gated: bool = True
    bias: bool = False
    experts: int = 0
    top_k: int = 0
    expert_width: int = 0
    expert_bias: bool = False
    shared_width: int = 0
    shared_gate: bool = False
    router_bias: bool = False
    extra_parameters: int = 0
    latent: int = 0
    """Width to which tokens are projected for the routed experts, and back (latent experts); 0: the stream's own."""
    expert_extra: int = 0
    """Of `extra_parameters`, those that belong to one routed expert (its scale)."""

    @property
    def is_moe(self) -> bool:
        return self.experts > 0

    def dispatched_width(self, hidden: int) -> int:
        """Width in which a token travels to its routed experts."""
        return self.latent or hidden

    def linears(self, hidden: int) -> tuple[Linear, ...]:
        parts: list[Linear] = []
        if self.width:
            parts += _feed_forward("mlp", hidden, self.width, self.gated, self.bias)
        if self.is_moe:
            parts.append(Linear("router", hidden, self.experts, "replicated", bias=self.router_bias))
            inside = self.dispatched_width(hidden)
            routed = _feed_forward(
                "expert", inside, self.expert_width, self.gated, self.expert_bias, self.experts, self.top_k
            )
            if self.latent:
                down = Linear("latent_down", hidden, inside, "replicated", bias=self.bias)
                routed = [down, *routed, Linear("latent_up", inside, hidden, "replicated", bias=self.bias)]
            parts += routed
        if self.shared_width:
            parts += _feed_forward("shared_expert", hidden, self.shared_width, self.gated, self.bias)
            if self.shared_gate:
                parts.append(Linear("shared_gate", hidden, 1, "replicated"))
        return tuple(parts)


def _feed_forward(
    name: str, hidden: int, width: int, gated: bool, bias: bool, experts: int = 1, active: int = 1
) -> list[Linear]:
    up = [Linear(f"{name}_up", hidden, width, "column", 0, bias, experts, active)]
    if gated:
        up.append(Linear(f"{name}_gate", hidden, width, "column", 0, bias, experts, active))
    return [*up, Linear(f"{name}_down", width, hidden, "row", 0, bias, experts, active)]


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer. `norm_parameters` sums its norms' weights and biases; `norms` counts the norms over the residual
    stream (2 in most models, 4 with post-norms, 1 where attention and MLP share one). A recurrent `mixer` stands in
    place of attention (whose kind is then "none") or beside it, on the same input; a layer may lack either half."""

    attention: Attention
    mlp: MLP
    norms: int = 2
    norm_parameters: int = 0
    parallel: bool = False
    """Attention and MLP read the same input and are summed into the residual once (GPT-J, Falcon, Cohere)."""
    mixer: Mixer | None = None
    cross: Attention | None = None
    """Attention of a decoder's layer over the encoder's output."""
    further: tuple[Linear, ...] = ()
    """Matrices that belong to neither attention nor MLP (gates of per-layer inputs, hyper-connections)."""

    @property
    def mixes(self) -> bool:
        """Whether tokens see each other here, by attention or by a recurrence."""
        return self.attention.kind != "none" or self.mixer is not None

    @property
    def blocks(self) -> int:
        """Sums into the residual stream."""
        feeds = bool(self.mlp.width or self.mlp.shared_width or self.mlp.is_moe)
        return 1 if self.parallel else int(self.mixes) + int(feeds)

    def linears(self, hidden: int) -> tuple[Linear, ...]:
        cross = () if self.cross is None else self.cross.linears(hidden)
        over = tuple(replace(linear, name=f"cross_{linear.name}") for linear in cross)
        mixer = () if self.mixer is None else self.mixer.linears(hidden)
        return self.attention.linears(hidden) + over + mixer + self.further + self.mlp.linears(hidden)

    def num_parameters(self, hidden: int) -> int:
        return self._vectors() + sum(linear.num_parameters for linear in self.linears(hidden))

    def active_parameters(self, hidden: int) -> int:
        idle = self.mlp.expert_extra * (self.mlp.experts - self.mlp.top_k)
        return self._vectors() - idle + sum(linear.active_parameters for linear in self.linears(hidden))

    def _vectors(self) -> int:
        mixer = 0 if self.mixer is None else self.mixer.split_parameters + self.mixer.whole_parameters
        cross = 0 if self.cross is None else self.cross.extra_parameters
        return self.norm_parameters + self.attention.extra_parameters + cross + mixer + self.mlp.extra_parameters


def mean_keys(seq_len: int, window: int) -> float:
    """Mean number of keys that a causal query sees in a sequence, with an optional sliding window."""
    if window <= 0 or window >= seq_len:
        return (seq_len + 1) / 2
    return window - window * (window - 1) / (2 * seq_len)


def _mean_keys_in_chunks(seq_len: int, chunk: int) -> float:
    whole, rest = divmod(seq_len, chunk)
    return (whole * chunk * (chunk + 1) + rest * (rest + 1)) / (2 * seq_len)
