"""An encoder-decoder's config as a Model: its encoder's layers, then its decoder's with their cross-attention.

Counted, not planned: the two stacks read sequences of their own. Held against transformers 5.24.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from meshwright.sources import checks
from meshwright.sources.huggingface.sizes import MAX_LAYERS, Sizes, linear
from meshwright.spec.errors import UnsupportedModel
from meshwright.spec.layers import MLP, Attention, Layer
from meshwright.spec.model import Model

NOT_PLANNED = "its encoder and decoder read two sequences, and cross-attention between them has no price yet"


@dataclass(frozen=True)
class Pair:
    """Facts of one class. `positions`: learned tables with two spare rows or none, fixed tables that the class holds as
    parameters, or none that count. `tables` is the number of vocabulary tables where they aren't tied."""

    architecture: str
    kind: Literal["bart", "t5"] = "bart"
    positions: Literal["spare", "plain", "fixed", "none"] = "none"
    rows: int = 1024
    embedding_norm: bool = False
    final_norm: bool = True
    tables: int = 4
    dropout: bool = True


PAIRS: dict[str, Pair] = {
    "bart": Pair("BartForConditionalGeneration", positions="spare", embedding_norm=True, final_norm=False),
    "mbart": Pair("MBartForConditionalGeneration", positions="spare", embedding_norm=True),
    "pegasus": Pair("PegasusForConditionalGeneration", positions="fixed"),
    "marian": Pair("MarianMTModel", positions="fixed", final_norm=False),
    "blenderbot": Pair("BlenderbotForConditionalGeneration", positions="plain", rows=128),
    "m2m_100": Pair("M2M100ForConditionalGeneration"),
    "nllb-moe": Pair("NllbMoeForConditionalGeneration"),
    "whisper": Pair("WhisperForConditionalGeneration", tables=2, dropout=False),
    "t5": Pair("T5ForConditionalGeneration", kind="t5"),
    "mt5": Pair("MT5ForConditionalGeneration", kind="t5"),
    "umt5": Pair("UMT5ForConditionalGeneration", kind="t5"),
    "longt5": Pair("LongT5ForConditionalGeneration", kind="t5"),
    "switch_transformers": Pair("SwitchTransformersForConditionalGeneration", kind="t5"),
}
"""Encoder-decoders by model_type."""


def pair_row(model_type: str, architecture: str) -> str:
    """The row of PAIRS that a config belongs to, empty where there is none."""
    by_class = {family.architecture: row for row, family in PAIRS.items()}
    return by_class.get(architecture, model_type if model_type in PAIRS else "")


def encoder_decoder(values: Mapping[str, Any], where: str, row: str, architecture: str, name: str) -> Model:
    """The model of an encoder-decoder's config, counted as its class for conditional generation.

    Raises InputError for impossible values, UnsupportedModel for missing facts or another class.
    """
    family = PAIRS[row]
    if architecture not in ("", row, family.architecture):
        raise UnsupportedModel(architecture, (f"a class other than {family.architecture}",), where)
    sizes = Sizes(values, where, family.architecture)
    hidden, vocab = sizes.need("d_model"), sizes.need("vocab_size")
    layers = _t5_layers(sizes, row, hidden) if family.kind == "t5" else _bart_layers(sizes, row, hidden)
    forced = row in ("t5", "mt5", "umt5", "longt5")  # their classes tie the tables whatever the file says
    tied = forced or sizes.flag("tie_word_embeddings", True)
    norm = hidden if family.kind == "t5" else 2 * hidden
    rows, fixed = _rows(sizes, family, row)
    extra = 0 if tied else (family.tables - 2) * vocab * hidden
    if row == "marian":
        extra += _marian_tables(sizes, hidden, vocab, tied)
    if row == "whisper":
        mels = sizes.size("num_mel_bins", 80)
        extra += linear(3 * mels, hidden) + linear(3 * hidden, hidden)
    included = f", {fixed * hidden:,} of fixed positions included" if fixed else ""
    notes = (f"counted as {family.architecture}, encoder and decoder together{included}",)
    return Model(
        name=name or family.architecture,
        hidden=hidden,
        vocab=vocab,
        layers=layers,
        tied_embeddings=tied,
        norm="rms" if family.kind == "t5" else "layer",
        position="learned" if rows else "none",
        position_parameters=rows * hidden,
        embedding_norm_parameters=2 * norm if family.embedding_norm else 0,
        final_norm_parameters=2 * norm if family.final_norm else 0,
        dropout=sizes.dropout("dropout attention_dropout dropout_rate", family.dropout),
        extra_parameters=extra,
        architecture=family.architecture,
        notes=(*notes, *sizes.notes()),
        not_planned=NOT_PLANNED,
    )


def _rows(sizes: Sizes, family: Pair, row: str) -> tuple[int, int]:
    """Rows of the position tables of both stacks, and how many of them are fixed."""
    if row == "whisper":
        fixed = sizes.size("max_source_positions", 1500)
        return fixed + sizes.size("max_target_positions", 448), fixed
    if family.positions == "none":
        return 0, 0
    rows = 2 * (sizes.size("max_position_embeddings", family.rows) + (2 if family.positions == "spare" else 0))
    return rows, rows if family.positions == "fixed" else 0


def _marian_tables(sizes: Sizes, hidden: int, vocab: int, tied: bool) -> int:
    """Marian may keep a vocabulary per language: then the source's table stands beside the target's."""
    if sizes.flag("share_encoder_decoder_embeddings", True):
        return 0
    target = sizes.size("decoder_vocab_size", vocab)
    own = vocab + target * (1 if tied else 2)
    return (own - vocab * (1 if tied else 4)) * hidden


def _bart_layers(sizes: Sizes, row: str, hidden: int) -> tuple[Layer, ...]:
    made: list[Layer] = []
    for side in ("encoder", "decoder"):
        count = sizes.need(f"{side}_layers", MAX_LAYERS)
        heads = sizes.need(f"{side}_attention_heads")
        width = sizes.head_dim(hidden, f"{side}_attention_heads", "d_model")
        # the keys of Whisper have no bias
        bare = -hidden if row == "whisper" else 0
        own = Attention(
            heads, heads, width, qkv_bias=True, out_bias=True, extra_parameters=bare, causal=side == "decoder"
        )
        cross = Attention(heads, heads, width, qkv_bias=True, out_bias=True, extra_parameters=bare, causal=False)
        ffn = sizes.need(f"{side}_ffn_dim")
        norms = 3 if side == "decoder" else 2
        dense = Layer(own, MLP(width=ffn, gated=False, bias=True), norms, 2 * norms * hidden)
        if side == "decoder":
            dense = Layer(own, dense.mlp, norms, dense.norm_parameters, cross=cross)
        step = sizes.size(f"{side}_sparse_step", 4, least=0) if row == "nllb-moe" else 0
        sparse = dense
        if step:
            experts = sizes.size("num_experts", 128, least=2)
            mlp = MLP(
                gated=False,
                experts=experts,
                top_k=2,
                expert_width=ffn,
                expert_bias=True,
                router_bias=sizes.flag("router_bias", False),
            )
            sparse = Layer(own, mlp, norms, dense.norm_parameters, cross=dense.cross)
        made += [sparse if step and (index + 1) % step == 0 else dense for index in range(count)]
    return tuple(made)


def _t5_layers(sizes: Sizes, row: str, hidden: int) -> tuple[Layer, ...]:
    heads, width, ffn = sizes.need("num_heads"), sizes.size("d_kv", 64), sizes.need("d_ff")
    table = sizes.size("relative_attention_num_buckets", 32) * heads
    encoder = sizes.need("num_layers", MAX_LAYERS)
    counts = {"encoder": encoder, "decoder": encoder}
    if sizes.values.get("num_decoder_layers") is not None:
        counts["decoder"] = sizes.need("num_decoder_layers", MAX_LAYERS)
    elif row == "switch_transformers" and "num_decoder_layers" not in sizes.values:
        counts["decoder"] = sizes.size("num_decoder_layers", 12)
    mlp = MLP(width=ffn, gated=_gated(sizes, row))
    transient = row == "longt5" and _encoder_attention(sizes) == "transient-global"
    made: list[Layer] = []
    for side, count in counts.items():
        step, sparse = 0, mlp
        if row == "switch_transformers":
            wanted = sizes.size(f"num_sparse_{side}_layers", 3, least=0)
            step = count // wanted if wanted else count
            experts = sizes.size("num_experts", 8, least=2)
            router_bias = sizes.flag("router_bias", False)
            sparse = MLP(gated=False, experts=experts, top_k=1, expert_width=ffn, router_bias=router_bias)
        wide = transient and side == "encoder"
        norms = 3 if side == "decoder" or wide else 2
        cross = Attention(heads, heads, width, causal=False) if side == "decoder" else None
        for index in range(count):
            # only the first layer holds the table of relative positions; in UMT5 each has its own
            tables = (2 if wide else 1) * table if index == 0 or row == "umt5" else 0
            own = Attention(heads, heads, width, extra_parameters=tables, causal=side == "decoder")
            chosen = sparse if step == 1 or (step and index % step == 1) else mlp
            made.append(Layer(own, chosen, norms, norms * hidden, cross=cross))
    return tuple(made)


def _gated(sizes: Sizes, row: str) -> bool:
    if row == "switch_transformers":
        return False
    given = sizes.values.get("feed_forward_proj")
    if given is None:
        return row in ("mt5", "umt5")
    return checks.text(sizes.where, "feed_forward_proj", given).split("-")[0] == "gated"


def _encoder_attention(sizes: Sizes) -> str:
    given = sizes.values.get("encoder_attention_type")
    options = ("local", "transient-global")
    return "local" if given is None else checks.choice(sizes.where, "encoder_attention_type", given, options)
