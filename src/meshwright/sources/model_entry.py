"""A model in the catalog's own form: a flat mapping of facts, the same for our entries and for files that people write.

    name: mixtral-8x7b
    hub: [mistralai/Mixtral-8x7B-v0.1]
    hidden: 4096        # width of the residual stream
    layers: 32
    heads: 32
    kv_heads: 8         # heads where left out
    head_dim: 128       # hidden / heads where left out
    ffn: 14336          # inner width of the MLP
    vocab: 32000
    context: 32768
    moe: {experts: 8, top_k: 2}

What is left out is as in Llama: gated MLP, RMS norms, rotary positions, no biases, untied embeddings. A structure that
these facts have no words for (recurrent layers, towers) is given by the keys of its config.json under `config`; see
`models`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from meshwright.sources import checks
from meshwright.sources.blueprint import MAX_LAYERS, Blueprint, Experts, Latent, QKNorm, check, head_dim_of
from meshwright.spec.errors import InputError
from meshwright.spec.model import NormKind, PositionKind

BIASES = ("qkv", "out", "mlp", "head", "norm")
WINDOW_KINDS = ("full", "sliding", "chunked")
KEYS = (
    *("name", "hub", "architecture", "source", "parameters", "notes"),
    *("hidden", "layers", "heads", "kv_heads", "head_dim", "value_dim", "ffn", "vocab", "context"),
    *("gated", "tied", "bias", "norm", "norm_weights", "norms", "final_norm", "qk_norm", "position", "position_rows"),
    *("parallel", "fused_qkv", "dropout", "embedding_dim", "embedding_norm", "sinks", "moe", "mla", "window"),
)
MOE_KEYS = (
    *("experts", "top_k", "width", "shared_width", "shared_gate", "bias", "router_bias"),
    *("first_dense", "every", "dense_beside", "balance_bias"),
)
MLA_KEYS = ("q_rank", "kv_rank", "nope_dim", "rope_dim", "value_dim")
WINDOW_KEYS = ("size", "pattern")


def blueprint_from_entry(entry: Mapping[str, Any], where: str) -> Blueprint:
    """The facts of one entry. Raises InputError, naming `where`, for unknown keys, wrong values and broken rules."""
    checks.known_keys(where, entry, KEYS)
    read = _Entry(entry, where)
    hidden, heads, layers = read.need("hidden"), read.need("heads"), read.need("layers", MAX_LAYERS)
    biases = read.choices("bias", BIASES)
    latent = _latent(read, entry.get("mla"))
    ffn = read.count("ffn", least=0)
    experts, sparse, beside = _experts(read, entry.get("moe"), ffn, layers)
    windows, chunked = _windows(read, entry.get("window"), layers)
    position = cast(PositionKind, read.choice("position", ("rope", "learned", "alibi", "none")))
    context = read.count("context", least=0)
    facts = Blueprint(
        name=read.text("name"),
        hidden=hidden,
        layers=layers,
        heads=heads,
        vocab=read.need("vocab"),
        ffn=ffn,
        kv_heads=heads if latent else read.count("kv_heads", 1, heads),
        head_dim=latent.nope_dim + latent.rope_dim if latent else _head_dim(read, hidden, heads),
        value_dim=read.count("value_dim", least=0),
        gated=read.flag("gated", True),
        tied=read.flag("tied"),
        norm=cast(NormKind, read.choice("norm", ("rms", "layer"))),
        norm_bias="norm" in biases,
        norm_weights=read.flag("norm_weights", True),
        norms=read.count("norms", 0, 2),
        final_norm=read.flag("final_norm", True),
        position=position,
        position_rows=read.count("position_rows", 1, context) if position == "learned" else 0,
        context=context,
        qkv_bias="qkv" in biases,
        out_bias="out" in biases,
        mlp_bias="mlp" in biases,
        head_bias="head" in biases,
        qk_norm=cast(QKNorm, read.choice("qk_norm", ("none", "head", "width"))),
        fused_qkv=read.flag("fused_qkv"),
        parallel=read.flag("parallel"),
        dropout=read.flag("dropout"),
        embedding_dim=read.count("embedding_dim", least=0),
        embedding_norm=read.flag("embedding_norm"),
        sinks=read.flag("sinks"),
        latent=latent,
        experts=experts,
        sparse_layers=sparse,
        dense_beside_experts=beside,
        windows=windows,
        chunked=chunked,
        hub_ids=tuple(read.texts("hub")),
        architecture=read.text("architecture"),
        source=read.text("source"),
        notes=tuple(read.texts("notes")),
    )
    check(facts, where, {"experts": "moe.experts", "top_k": "moe.top_k"})
    return facts


class _Entry:
    """Typed values of a mapping, with defaults. `prefix` names the mapping in errors."""

    def __init__(self, entry: Mapping[str, Any], where: str, prefix: str = "") -> None:
        self.entry, self.where, self.prefix = entry, where, prefix

    def need(self, key: str, most: int = checks.MOST) -> int:
        if self.entry.get(key) is None:
            raise InputError(f"{self.prefix}{key} is missing", self.where, f"add {self.prefix}{key}: a whole number")
        return self.count(key, most=most)

    def count(self, key: str, least: int = 1, default: int = 0, most: int = checks.MOST) -> int:
        value = self.entry.get(key)
        return default if value is None else checks.whole(self.where, self.prefix + key, value, least, most)

    def flag(self, key: str, default: bool = False) -> bool:
        value = self.entry.get(key)
        return default if value is None else checks.flag(self.where, self.prefix + key, value)

    def text(self, key: str) -> str:
        value = self.entry.get(key)
        return "" if value is None else checks.text(self.where, self.prefix + key, value)

    def texts(self, key: str) -> list[str]:
        values = checks.listed(self.where, self.prefix + key, self.entry.get(key) or [])
        return [checks.text(self.where, self.prefix + key, value) for value in values]

    def choice(self, key: str, options: tuple[str, ...]) -> str:
        """One of the options, the first where the key is missing."""
        value = self.entry.get(key)
        return options[0] if value is None else checks.choice(self.where, self.prefix + key, value, options)

    def choices(self, key: str, options: tuple[str, ...]) -> list[str]:
        values = checks.listed(self.where, self.prefix + key, self.entry.get(key) or [])
        return [checks.choice(self.where, self.prefix + key, value, options) for value in values]

    def inside(self, key: str, value: Any, known: tuple[str, ...]) -> _Entry:
        entry = checks.mapping(self.where, key, value)
        checks.known_keys(f"{self.where}: {key}", entry, known)
        return _Entry(entry, self.where, f"{key}.")


def _head_dim(read: _Entry, hidden: int, heads: int) -> int:
    return read.count("head_dim") or head_dim_of(hidden, heads, read.where, ("hidden", "heads"))


def _latent(read: _Entry, value: Any) -> Latent | None:
    if value is None:
        return None
    mla = read.inside("mla", value, MLA_KEYS)
    return Latent(
        q_rank=mla.count("q_rank", least=0),
        kv_rank=mla.need("kv_rank"),
        nope_dim=mla.need("nope_dim"),
        rope_dim=mla.need("rope_dim"),
        value_dim=mla.need("value_dim"),
    )


def _experts(read: _Entry, value: Any, ffn: int, layers: int) -> tuple[Experts | None, frozenset[int], bool]:
    """The mixture, its layers, and whether a dense MLP stands beside it. `every: 2` is every second layer, the last of
    each pair; `first_dense: 3` leaves the first three dense."""
    if value is None:
        return None, frozenset(), False
    moe = read.inside("moe", value, MOE_KEYS)
    every, first = moe.count("every", 1, 1), moe.count("first_dense", 0, 0, layers)
    count = moe.need("experts")
    experts = Experts(
        count=count,
        top_k=moe.need("top_k"),
        width=moe.count("width", 1, ffn),
        shared_width=moe.count("shared_width", 0),
        shared_gate=moe.flag("shared_gate"),
        bias=moe.flag("bias"),
        router_bias=moe.flag("router_bias"),
        extra=count if moe.flag("balance_bias") else 0,
    )
    if not experts.width:
        raise InputError("moe.width is missing", read.where, "add the inner width of one expert, or ffn")
    sparse = frozenset(index for index in range(first, layers) if (index + 1) % every == 0)
    return experts, sparse, moe.flag("dense_beside")


def _windows(read: _Entry, value: Any, layers: int) -> tuple[tuple[int, ...], bool]:
    """`pattern` repeats over the layers; without it, every layer slides."""
    if value is None:
        return (), False
    window = read.inside("window", value, WINDOW_KEYS)
    size = window.need("size")
    pattern = window.choices("pattern", WINDOW_KINDS) or ["sliding"]
    kinds = [pattern[index % len(pattern)] for index in range(layers)]
    return tuple(0 if kind == "full" else size for kind in kinds), "chunked" in pattern
