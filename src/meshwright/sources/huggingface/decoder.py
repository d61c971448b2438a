"""A decoder's config as a Blueprint: the class's facts from the table, the rest from the keys."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from meshwright.sources import checks
from meshwright.sources.blueprint import Blueprint, Latent, check, head_dim_of
from meshwright.sources.huggingface.experts import experts
from meshwright.sources.huggingface.families import Family
from meshwright.sources.huggingface.keys import ESSENTIAL, LABELS, Key, Keys
from meshwright.sources.huggingface.mixers import with_mixer
from meshwright.sources.huggingface.uneven import with_uneven_layers
from meshwright.sources.huggingface.windows import windows
from meshwright.spec.model import PositionKind

DROPOUTS = (
    *("attn_pdrop", "resid_pdrop", "embd_pdrop", "emb_pdrop", "attention_dropout", "hidden_dropout", "dropout"),
    *("activation_dropout", "residual_dropout", "embedding_dropout", "resid_dropout", "embed_dropout"),
    *("attention_probs_dropout_prob", "hidden_dropout_prob", "attn_dropout_prob", "emb_dropout_prob"),
)


def blueprint(keys: Keys, family: Family, name: str) -> Blueprint:
    """The facts of one decoder. Raises InputError for impossible values, UnsupportedModel for missing facts."""
    _refuse_incomplete(keys, family)
    hidden, layers = keys.need("hidden"), keys.need("layers")
    heads = keys.need("heads") if family.attention else 1
    routed_and_dense = _widths(keys, family, hidden)
    mixture, sparse = experts(keys, family, routed_and_dense[0], layers)
    seen = windows(keys, family, layers)
    latent = _latent(keys, family, hidden, heads) if family.latent else None
    position, rows = _positions(keys, family)
    width = latent.nope_dim + latent.rope_dim if latent else _head_dim(keys, family, hidden, heads)
    facts = Blueprint(
        name=name,
        hidden=hidden,
        layers=layers,
        heads=heads,
        vocab=keys.need("vocab"),
        ffn=routed_and_dense[1],
        kv_heads=heads if latent else _kv_heads(keys, family, heads),
        head_dim=width,
        gated=family.gated,
        tied=_tied(keys, family),
        norm=family.norm,
        norm_bias=keys.flag(family.norm_bias),
        norm_weights=keys.flag(family.norm_weights),
        norms=_norms(keys, family),
        final_norm=family.final_norm and not _norms_after(keys),
        position=position,
        position_rows=rows,
        context=keys.count("context", least=0) or 0,
        qkv_bias=keys.flag(family.qkv_bias),
        out_bias=keys.flag(family.out_bias),
        mlp_bias=keys.flag(family.mlp_bias),
        head_bias=keys.flag(family.head_bias),
        qk_norm=family.qk_norm if keys.flag(family.qk_norm_when) else "none",
        qk_norm_bias=family.qk_norm_bias,
        fused_qkv=family.fused_qkv,
        parallel=_parallel(keys, family),
        dropout=_dropout(keys, family),
        embedding_dim=keys.count("embedding_dim") or 0,
        embedding_norm=family.embedding_norm,
        sinks=family.sinks,
        mlp_extra=family.mlp_extra,
        latent=latent,
        experts=mixture,
        sparse_layers=sparse,
        windows=seen,
        chunked=family.windows == "chunks",
        attention=family.attention,
        attention_gate={"none": 0, "channel": width, "head": 1}[family.attention_gate],
        architecture=keys.architecture,
    )
    facts = with_uneven_layers(keys, family.uneven, facts)
    if family.mixer != "none":
        facts = with_mixer(keys, family.mixer, facts)
    facts = replace(facts, notes=keys.notes())
    check(facts, keys.where, keys.used)
    return facts


def _refuse_incomplete(keys: Keys, family: Family) -> None:
    derived = set() if family.attention else {"heads"}
    no_width = family.uneven in ("blocks", "single_blocks") or family.mlp in ("none", "shared")
    if family.ffn_ratio or family.sparse == "all" or no_width:
        derived.add("ffn")
    missing = [
        LABELS[fact]
        for fact in ESSENTIAL
        if fact not in derived and keys.find(fact) is None and (keys.whole_file or fact not in keys.defaults)
    ]
    if missing:
        raise keys.refuse(*missing)


def _widths(keys: Keys, family: Family, hidden: int) -> tuple[int, int]:
    """Inner width of the MLP as the experts take it, and as the dense layers do."""
    ffn = keys.count("ffn")
    if ffn is None and family.ffn_ratio:
        ffn = hidden * (keys.count("ffn_ratio") or family.ffn_ratio)
    ffn = ffn or 0
    if family.ffn_halved:
        ffn //= 2
    if family.mlp == "none":
        ffn = 0
    if family.mlp == "rounded":
        ffn = _rounded(keys, ffn)
    dense = keys.count("dense_ffn") if "dense_ffn" in keys.defaults else None
    if family.mlp == "shared" and not keys.count("experts", least=0):
        dense = keys.need("shared_ffn")
    return ffn, dense or ffn


def _rounded(keys: Keys, ffn: int) -> int:
    """LFM2 takes two thirds of the width, times a factor, and rounds up, unless a switch says otherwise."""
    if not keys.flag(Key("block_auto_adjust_ff_dim", True)):
        return ffn
    factor = keys.values.get("block_ffn_dim_multiplier", 1.0)
    if factor is not None and (isinstance(factor, bool) or not isinstance(factor, int | float) or not 0 < factor < 100):
        raise checks.wrong(keys.where, "block_ffn_dim_multiplier", factor, "a number above 0")
    multiple = checks.whole(keys.where, "block_multiple_of", keys.values.get("block_multiple_of", 256))
    width = int((1 if factor is None else factor) * int(2 * ffn / 3))
    return width + -width % multiple


def _kv_heads(keys: Keys, family: Family, heads: int) -> int:
    if family.kv == "heads" or not family.attention:
        return heads
    if family.kv == "multi_query" and not keys.flag(family.grouped):
        multi_query = keys.values.get("multi_query", True)
        return 1 if checks.flag(keys.where, "multi_query", multi_query) else heads
    if family.kv == "groups" and keys.values.get("multi_query_attention") is False:
        return heads
    return keys.count("kv_heads") or heads


def _head_dim(keys: Keys, family: Family, hidden: int, heads: int) -> int:
    if not family.attention:
        return 1
    given = None if family.fixed_head_dim else keys.count("head_dim")
    if given is not None:
        return given
    names = (keys.used["hidden"], keys.used["heads"]) if keys.whole_file else ("hidden_size", "num_attention_heads")
    return head_dim_of(hidden, heads, keys.where, names)


def _latent(keys: Keys, family: Family, hidden: int, heads: int) -> Latent:
    q_rank = 0 if keys.values.get("q_lora_rank", 0) is None else keys.count("q_rank", least=0) or 0
    return Latent(
        q_rank=q_rank,
        kv_rank=keys.need("kv_rank"),
        nope_dim=keys.need("nope_dim", least=0),
        rope_dim=keys.need("rope_dim", least=0),
        value_dim=keys.count("value_dim") or hidden // heads,
        index_heads=keys.need("index_heads") if family.indexer else 0,
        index_head_dim=keys.need("index_head_dim") if family.indexer else 0,
        index_keys=keys.need("index_keys") if family.indexer else 0,
    )


def _norms(keys: Keys, family: Family) -> int:
    if not _parallel(keys, family):
        return family.norms
    given = keys.raw("num_ln_in_parallel_attn")
    if given is not None:
        return checks.whole(keys.where, "num_ln_in_parallel_attn", given, most=2)
    return 2 if keys.flag(family.grouped) else family.parallel_norms


def _parallel(keys: Keys, family: Family) -> bool:
    return keys.flag(family.parallel)


def _norms_after(keys: Keys) -> bool:
    """OPT-350m normalises after each block, so its stack ends without a norm of its own."""
    return keys.values.get("do_layer_norm_before") is False or keys.values.get("_remove_final_layer_norm") is True


def _positions(keys: Keys, family: Family) -> tuple[PositionKind, int]:
    if keys.flag(family.alibi) or (family.alibi_without and keys.raw(family.alibi_without) is None):
        return "alibi", 0
    if family.position == "learned":
        return "learned", keys.need("context") + family.position_offset
    return family.position, 0


def _tied(keys: Keys, family: Family) -> bool:
    if not family.can_tie:
        return False
    for name in ("tie_embedding", "tie_word_embeddings"):
        given: Any = keys.values.get(name)
        if given is not None:
            return checks.flag(keys.where, name, given)
    return family.tied


def _dropout(keys: Keys, family: Family) -> bool:
    given = [checks.share(keys.where, key, value) for key in DROPOUTS if (value := keys.raw(key)) is not None]
    return any(given) if given else family.dropout
