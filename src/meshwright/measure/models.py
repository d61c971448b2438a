"""The model of a row: its shape from the columns, its habits from the model that its name says."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache

from meshwright.measure.cells import flag, number, whole, words, year
from meshwright.measure.comparison import Row
from meshwright.sources.hub import catalog_name
from meshwright.sources.models import load_model, model_names
from meshwright.spec.errors import InputError
from meshwright.spec.layers import MLP, Attention, Layer
from meshwright.spec.model import Model, PositionKind

_GPT_MULTIPLE = 4
_DROPOUT_UNTIL = 2022
"""Large models were trained with dropout until about then (GPT-3, BLOOM); those after it without."""


@dataclass(frozen=True)
class _Habits:
    """What the shape columns don't say."""

    position: PositionKind
    bias: bool
    tied: bool
    gated: bool = False
    layer_norm: bool = True


_BY_NAME = (
    (r"\bmpt\b", _Habits("alibi", False, True)),
    (r"\b(bloom|bs)\b", _Habits("alibi", True, True)),
    (r"nemotron", _Habits("rope", False, False)),
    (r"\b(opt|gpt)", _Habits("learned", True, True)),
)
_LLAMA = _Habits("rope", False, False, gated=True, layer_norm=False)


def model_of(row: Row) -> tuple[Model, tuple[str, ...]]:
    """(the model, what was assumed of it). Raises InputError where neither name nor columns describe one."""
    named = _named(row.cells.get("model", ""))
    layers, hidden = whole(row.cells, "layers"), whole(row.cells, "hidden")
    if layers is None or hidden is None:
        if named is None:
            raise InputError(
                f"model {row.cells.get('model', '')!r} is no name of the catalog and layers and hidden are not given"
            )
        return (named if layers is None else _shortened(named, layers)), ()
    if named is not None and named.hidden == hidden and _same_shape(named, row):
        return _shortened(named, layers), ()
    return _shaped(row, layers, hidden)


def _shaped(row: Row, layers: int, hidden: int) -> tuple[Model, tuple[str, ...]]:
    cells = row.cells
    assumed = []
    gated = flag(cells, "gated_mlp")
    habits = next((known for pattern, known in _BY_NAME if re.search(pattern, words(cells, "model"))), None)
    if habits is None or gated:
        habits = _LLAMA if gated or gated is None else _BY_NAME[-1][1]
    if "alibi" in words(cells, "attn_type"):
        habits = replace(habits, position="alibi")
    gated = habits.gated if gated is None else gated
    heads = whole(cells, "heads")
    if heads is None:
        heads = max(1, hidden // (whole(cells, "head_dim") or 128))
        assumed.append(f"heads={heads}")
    kv_heads = whole(cells, "kv_heads") or heads
    head_dim = whole(cells, "head_dim") or max(1, hidden // heads)
    width = whole(cells, "ffn_hidden")
    if width is None:
        width = _GPT_MULTIPLE * hidden if not gated else round(8 * hidden / 3 / 256) * 256 or 256
        assumed.append(f"ffn_hidden={width}")
    vocab = whole(cells, "vocab")
    if vocab is None:
        vocab = 50257 if not gated else 32000
        assumed.append(f"vocab={vocab}")
    attention = Attention(heads, kv_heads, head_dim, qkv_bias=habits.bias, out_bias=habits.bias)
    norms = (4 if habits.bias else 2) * hidden
    dense = Layer(attention, MLP(width, gated, habits.bias), 2, norms)
    experts = whole(cells, "n_experts")
    stack = (dense,) * layers
    if experts and experts > 1:
        inner = whole(cells, "moe_ffn_hidden") or width
        routed = MLP(
            gated=gated, experts=experts, top_k=whole(cells, "moe_topk") or 2, expert_width=inner,
            shared_width=(whole(cells, "shared_experts", 0) or 0) * inner,
        )  # fmt: skip
        first = min(whole(cells, "moe_dense_layers", 0) or 0, layers)
        stack = (dense,) * first + (Layer(attention, routed, 2, norms),) * (layers - first)
    seq_len = whole(cells, "seq_len") or 2048
    old = (year(cells) or _DROPOUT_UNTIL + 1) <= _DROPOUT_UNTIL
    return (
        Model(
            name=cells.get("model", "model"),
            hidden=hidden,
            vocab=vocab,
            layers=stack,
            tied_embeddings=habits.tied,
            norm="layer" if habits.layer_norm else "rms",
            position=habits.position,
            position_parameters=seq_len * hidden if habits.position == "learned" else 0,
            final_norm_parameters=(2 if habits.bias else 1) * hidden,
            dropout=old and not gated,
        ),
        tuple(assumed),
    )


def _same_shape(model: Model, row: Row) -> bool:
    """Whether a catalog model has the row's widths, as far as the row gives them."""
    layer = model.layers[-1]
    mlp, attention = layer.mlp, layer.attention
    pairs = (
        ("heads", attention.heads),
        ("kv_heads", attention.kv_heads),
        ("ffn_hidden", mlp.width or mlp.expert_width),
        ("n_experts", mlp.experts),
    )
    for column, own in pairs:
        given = number(row.cells, column) if row.cells.get(column) not in (None, "0") else None
        if given is not None and given != own:
            return False
    return abs((whole(row.cells, "vocab") or model.vocab) / model.vocab - 1) < 0.01


def _shortened(model: Model, layers: int) -> Model:
    """The model with so many of its layers (truncated models are profiled)."""
    if layers == model.num_layers:
        return model
    repeated = model.layers * -(-layers // model.num_layers)
    return replace(model, name=f"{model.name}-{layers}l", layers=repeated[:layers])


@cache
def _named(text: str) -> Model | None:
    """The catalog's model that a table means by `llama3-8b`, `LLaMA-2 70B`, `gpt3-175b`, `meta-llama/Llama-3.1-8B`."""
    plain = re.sub(r"[^a-z0-9.]+", "", (catalog_name(text) or text).lower())
    if not plain:
        return None
    by_plain = {re.sub(r"[^a-z0-9.]+", "", name): name for name in model_names()}
    # the first llama has no number of its own, and 3.1 is the 3 that a table with 405B means
    for form in (plain, plain.replace("llama1", "llama"), plain.replace("llama3", "llama3.1")):
        if form in by_plain:
            model = load_model(by_plain[form])
            return None if model.not_planned else model
    return None
