"""An encoder's config as a Model: a stack whose tokens see each other both ways, and the head that its class adds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from meshwright.sources import checks
from meshwright.sources.huggingface.encoders import ENCODERS, Encoder
from meshwright.sources.huggingface.sizes import MAX_LAYERS, Sizes, linear
from meshwright.spec.errors import UnsupportedModel
from meshwright.spec.layers import MLP, Attention, Layer
from meshwright.spec.model import Model

HIDDEN, LAYERS, HEADS, FFN = (
    "hidden_size dim",
    "num_hidden_layers n_layers",
    "num_attention_heads n_heads",
    "intermediate_size hidden_dim",
)
DROPOUTS = "hidden_dropout_prob attention_probs_dropout_prob dropout attention_dropout mlp_dropout embedding_dropout"
BERT_LIKE = ("hidden_size", "num_attention_heads", "num_hidden_layers", "intermediate_size", "type_vocab_size")
"""What a config without model_type and class must hold to be read as BERT; the first published ones look like this."""


def encoder_row(values: Mapping[str, Any], model_type: str, architecture: str) -> str:
    """The row of ENCODERS that a config belongs to: its class says so before its model_type does; empty: none."""
    for row, family in ENCODERS.items():
        if architecture.startswith(family.prefix) and architecture[len(family.prefix) :] in family.heads:
            return row
    if not model_type and not architecture and all(values.get(key) is not None for key in BERT_LIKE):
        return "bert"
    return model_type if model_type in ENCODERS else ""


def encoder(values: Mapping[str, Any], where: str, row: str, architecture: str, name: str) -> Model:
    """The model of an encoder's config, counted as its class (the masked-language model where it names none).

    Raises InputError for impossible values, UnsupportedModel for missing facts or a class whose head isn't known.
    """
    family = ENCODERS[row]
    named = architecture if architecture != row else ""
    architecture = named or f"{family.prefix}ForMaskedLM"
    pieces = family.heads.get(architecture.removeprefix(family.prefix))
    if pieces is None or not architecture.startswith(family.prefix):
        raise UnsupportedModel(architecture, ("the head that its class adds to the encoder",), where)
    sizes = Sizes(values, where, architecture)
    if sizes.flag("add_cross_attention", False):
        raise sizes.refuse("its cross-attention to an encoder")
    hidden, vocab = sizes.need(HIDDEN), sizes.need("vocab_size")
    width = sizes.size(family.embedding_key, family.embedding_default) if family.embedding_key else hidden
    if row.startswith("deberta"):
        width = sizes.size("embedding_size", hidden) if values.get("embedding_size") is not None else hidden
    norm = 2 if family.norm_bias or sizes.flag("norm_bias", False) else 1
    layers, shared = _layers(sizes, family, row, hidden, norm)
    in_vocabulary = "vocabulary" in pieces.split()
    tied = _tied(sizes, row)
    notes = (f"counted as {architecture}, " + _includes(pieces),)
    return Model(
        name=name or architecture,
        hidden=hidden,
        vocab=vocab,
        layers=layers,
        tied_embeddings=tied,
        norm=family.norm,
        position=_position(sizes, family, row),
        max_positions=_rows(sizes, family, row),
        context_length=sizes.size("max_position_embeddings", family.positions),
        embedding_dim=0 if width == hidden else width,
        position_parameters=_positions(sizes, family, row, width),
        embedding_norm_parameters=_after_embedding(sizes, family, row, hidden, width, norm),
        final_norm_parameters=_vectors(sizes, row, pieces, hidden, width, norm, tied)
        + (norm * hidden if family.norm_first else 0),
        head_bias=in_vocabulary and _head_bias(sizes, row),
        head_transform_parameters=_matrices(sizes, row, pieces, hidden, width),
        vocabulary_head=in_vocabulary,
        dropout=sizes.dropout(DROPOUTS, family.dropout),
        extra_parameters=_beside(sizes, row, hidden),
        shared_parameters=shared,
        architecture=architecture,
        notes=(*notes, *sizes.notes()),
        not_planned=family.unplanned or ("" if in_vocabulary else _NO_VOCABULARY.format(architecture, family.prefix)),
    )


_NO_VOCABULARY = "the head of a {} predicts no vocabulary; the class that is trained on one is {}ForMaskedLM"
_WORDS = {
    "vocabulary": "its prediction head",
    "pooler": "a pooler",
    "dense": "a dense layer",
    "labels": "a classifier",
    "pair": "a choice of two",
    "one": "a score",
}


def _includes(pieces: str) -> str:
    return "with " + ", ".join(_WORDS[piece] for piece in pieces.split()) if pieces else "without a head"


def _layers(sizes: Sizes, family: Encoder, row: str, hidden: int, norm: int) -> tuple[tuple[Layer, ...], int]:
    """All layers as they are computed, and how many of their parameters are copies of others'."""
    count = sizes.need(LAYERS, MAX_LAYERS)
    windows = _windows(sizes, count) if row == "modernbert" else (0,) * count
    mlp = MLP(
        width=sizes.need(FFN),
        gated=family.gated,
        bias=family.bias or sizes.flag("mlp_bias", False),
    )
    made: dict[tuple[int, bool], Layer] = {}
    for index, window in enumerate(windows):
        bare = row == "modernbert" and index == 0  # the norm after its embedding serves the first layer
        if (window, bare) not in made:
            norms = 1 if bare else 2
            attention = _attention(sizes, family, row, hidden, window)
            made[window, bare] = Layer(attention, mlp, norms, norms * norm * hidden)
    layers = tuple(made[window, row == "modernbert" and index == 0] for index, window in enumerate(windows))
    if row != "albert":
        return layers, 0
    groups, inner = sizes.size("num_hidden_groups", 1), sizes.size("inner_group_num", 1)
    if count * inner > MAX_LAYERS:
        raise checks.wrong(sizes.where, "inner_group_num", inner, f"at most {MAX_LAYERS // count}", MAX_LAYERS // count)
    return layers * inner, (count - groups) * inner * layers[0].num_parameters(hidden)


def _windows(sizes: Sizes, count: int) -> tuple[int, ...]:
    """ModernBERT: every third layer sees all, the others half of `local_attention` to each side, themselves between."""
    window = sizes.size("local_attention", 128, least=0) // 2 * 2 + 1
    kinds = sizes.values.get("layer_types")
    if kinds is None:
        step = sizes.size("global_attn_every_n_layers", 3)
        return tuple(0 if index % step == 0 else window for index in range(count))
    kinds = checks.listed(sizes.where, "layer_types", kinds)
    if len(kinds) != count:
        raise checks.wrong(sizes.where, "layer_types", kinds, f"a list of num_hidden_layers ({count}) kinds")
    options = ("full_attention", "sliding_attention")
    return tuple(
        0 if checks.choice(sizes.where, "layer_types", kind, options) == "full_attention" else window for kind in kinds
    )


def _attention(sizes: Sizes, family: Encoder, row: str, hidden: int, window: int) -> Attention:
    heads = sizes.need(HEADS)
    given = sizes.values.get("head_dim") if row in ("nomic_bert", "eurobert") else None
    if given is not None:
        width = checks.whole(sizes.where, "head_dim", given)
    else:
        width = sizes.head_dim(hidden, HEADS, sizes.key(HIDDEN))
    kv_heads = heads
    if row == "eurobert" and sizes.values.get("num_key_value_heads") is not None:
        kv_heads = sizes.need("num_key_value_heads")
        if heads % kv_heads:
            rule = f"a divisor of num_attention_heads ({heads})"
            near = checks.nearest_divisor(heads, kv_heads)
            raise checks.wrong(sizes.where, "num_key_value_heads", kv_heads, rule, near)
    bias = family.bias or sizes.flag("attention_bias", False)
    return Attention(
        heads=heads,
        kv_heads=kv_heads,
        head_dim=width,
        window=window,
        qkv_bias=bias,
        out_bias=bias,
        extra_parameters=_disentangled(sizes, row, hidden, heads),
        causal=sizes.flag("is_decoder", False),
    )


def _disentangled(sizes: Sizes, row: str, hidden: int, heads: int) -> int:
    """What DeBERTa's attention holds beside its four projections; the first version has no bias on its keys."""
    if not row.startswith("deberta"):
        return 0
    kinds = sizes.values.get("pos_att_type") or []
    kinds = kinds.lower().split("|") if isinstance(kinds, str) else checks.listed(sizes.where, "pos_att_type", kinds)
    kinds = [checks.text(sizes.where, "pos_att_type", kind).strip() for kind in kinds]
    relative = sizes.flag("relative_attention", False)
    if row == "deberta":
        talking = 2 * heads**2 if sizes.flag("talking_head", False) else 0
        of_keys = linear(hidden, hidden, bias=False) if relative and "c2p" in kinds else 0
        of_queries = linear(hidden, hidden) if relative and "p2c" in kinds else 0
        return talking + of_keys + of_queries - hidden
    if not relative or sizes.flag("share_att_key", False):
        return 0
    return linear(hidden, hidden) * (("c2p" in kinds) + ("p2c" in kinds))


def _beside(sizes: Sizes, row: str, hidden: int) -> int:
    """Tables and convolutions that belong to no layer."""
    if row == "mpnet":
        return sizes.size("relative_attention_num_buckets", 32) * sizes.need(HEADS)
    if row == "esm":  # predicts contacts from all attention maps
        return sizes.need(LAYERS, MAX_LAYERS) * sizes.need(HEADS) + 1
    if not row.startswith("deberta"):
        return 0
    total = 0
    if sizes.flag("relative_attention", False):
        reach = sizes.size("max_relative_positions", -1, least=-1)
        reach = sizes.size("max_position_embeddings", 512) if reach < 1 else reach
        buckets = sizes.size("position_buckets", -1, least=-1) if row == "deberta-v2" else 0
        total += 2 * (buckets if buckets > 0 else reach) * hidden
    normed = sizes.values.get("norm_rel_ebd")
    if normed is not None and "layer_norm" in checks.text(sizes.where, "norm_rel_ebd", normed).lower().split("|"):
        total += 2 * hidden if row == "deberta-v2" or sizes.flag("relative_attention", False) else 0
    kernel = sizes.size("conv_kernel_size", 0, least=0) if row == "deberta-v2" else 0
    if kernel:
        groups = sizes.size("conv_groups", 1)
        if hidden % groups:
            rule = f"a divisor of hidden_size ({hidden})"
            raise checks.wrong(sizes.where, "conv_groups", groups, rule, checks.nearest_divisor(hidden, groups))
        total += hidden * (hidden // groups) * kernel + hidden + 2 * hidden
    return total


def _position(sizes: Sizes, family: Encoder, row: str) -> Any:
    if row == "esm" and sizes.values.get("position_embedding_type") == "rotary":
        return "rope"
    return family.position


def _rows(sizes: Sizes, family: Encoder, row: str) -> int:
    """Rows of the table of learned positions."""
    if _position(sizes, family, row) == "rope":
        return 0
    if row.startswith("deberta") and not sizes.flag("position_biased_input", True):
        return 0
    return sizes.size("max_position_embeddings", family.positions)


def _positions(sizes: Sizes, family: Encoder, row: str, width: int) -> int:
    """Tables of positions and of kinds of tokens."""
    rows = _rows(sizes, family, row)
    if family.types is not None:
        rows += sizes.size("type_vocab_size", family.types, least=0)
    if row == "ernie" and sizes.flag("use_task_id", False):
        rows += sizes.size("task_type_vocab_size", 3)
    return rows * width


def _after_embedding(sizes: Sizes, family: Encoder, row: str, hidden: int, width: int, norm: int) -> int:
    """The norm after the embedding, and what its projection into the stack has beside a matrix of unequal sides."""
    normed = family.embedding_norm or (row == "esm" and sizes.flag("emb_layer_norm_before", False))
    across = hidden if row.startswith("deberta") else width
    projected = 0
    if row in ("albert", "rembert") or (row == "electra" and width != hidden):
        projected = hidden + (width * hidden if width == hidden else 0)
    return (norm * across if normed else 0) + projected


def _tied(sizes: Sizes, row: str) -> bool:
    if row == "rembert":
        return True  # the two tables differ; the one at the end is counted with the head
    if row.startswith("deberta") and not sizes.flag("legacy", True):
        return True
    return sizes.flag("tie_word_embeddings", row != "eurobert")


def _head_bias(sizes: Sizes, row: str) -> bool:
    if row == "modernbert":
        return sizes.flag("decoder_bias", True)
    return sizes.flag("mlp_bias", False) if row == "eurobert" else True


def _matrices(sizes: Sizes, row: str, pieces: str, hidden: int, width: int) -> int:
    """Weights of the head's matrices, but those between the stack and an embedding of another width."""
    total = 0
    for piece in pieces.split():
        if piece == "vocabulary" and row == "rembert":
            out = sizes.size("output_embedding_size", 1664)
            total += hidden * out + out * sizes.need("vocab_size") - (width * hidden if width != hidden else 0)
        elif piece == "vocabulary":
            total += hidden**2 if width == hidden and row != "eurobert" else 0
        elif piece in ("pooler", "dense"):
            total += hidden**2
        else:
            total += hidden * _choices(sizes, piece)
    return total


def _vectors(sizes: Sizes, row: str, pieces: str, hidden: int, width: int, norm: int, tied: bool) -> int:
    """Biases and norms of the head; the bias over the vocabulary is counted with it."""
    total = 0
    for piece in pieces.split():
        if piece == "vocabulary":
            out = sizes.size("output_embedding_size", 1664) if row == "rembert" else width
            bias = row != "modernbert" or sizes.flag("classifier_bias", False)
            total += (bias + norm) * out if row != "eurobert" else 0
            single = ("electra", "distilbert", "modernbert", "esm", "eurobert", "rembert")
            # the head's bias and the bias of its matrix are one tensor only where the matrix is tied
            total += sizes.need("vocab_size") if not tied and row not in single else 0
        elif piece == "dense" and row == "modernbert":
            total += (sizes.flag("classifier_bias", False) + norm) * hidden
        elif piece in ("pooler", "dense"):
            total += hidden
        else:
            total += _choices(sizes, piece)
    return total


def _choices(sizes: Sizes, piece: str) -> int:
    return sizes.labels() if piece == "labels" else {"pair": 2, "one": 1}[piece]
