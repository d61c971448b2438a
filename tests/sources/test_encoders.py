"""Encoders and encoder-decoders count as their classes do, and attention to both sides costs all pairs."""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshwright.cost.estimate import check_planned
from meshwright.sources.huggingface import model_from_config
from meshwright.sources.huggingface.encoder_decoder import PAIRS
from meshwright.sources.huggingface.encoders import ENCODERS
from meshwright.sources.huggingface.refused import REFUSED
from meshwright.sources.huggingface.table import TABLE
from meshwright.spec.errors import InputError, UnsupportedModel
from meshwright.spec.layers import Attention
from meshwright.spec.model import Model

COUNTS = json.loads(Path(__file__).with_name("encoder_counts.json").read_text(encoding="utf-8"))
"""Small configs and what transformers counts for them; made by encoder_counts.py."""

BERT: dict[str, Any] = {
    "model_type": "bert",
    "architectures": ["BertForMaskedLM"],
    "hidden_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 128,
    "vocab_size": 100,
    "max_position_embeddings": 32,
    "type_vocab_size": 2,
}


@pytest.mark.parametrize("row", COUNTS, ids=[f"{row['config']['architectures'][0]}" for row in COUNTS])
def test_every_class_counts_what_transformers_builds(row: dict[str, Any]) -> None:
    assert model_from_config(row["config"]).num_parameters == row["parameters"]


def test_every_class_in_the_table_has_frozen_counts() -> None:
    named = {family.prefix + ending for family in ENCODERS.values() for ending in family.heads}
    named |= {family.architecture for family in PAIRS.values()}
    assert {row["config"]["architectures"][0] for row in COUNTS} == named
    assert not (set(ENCODERS) | set(PAIRS)) & (set(TABLE) | set(REFUSED))


def test_without_a_class_the_masked_language_model_is_counted() -> None:
    bare = {key: value for key, value in BERT.items() if key not in ("architectures", "model_type")}
    models = [model_from_config(config) for config in (BERT, bare, bare | {"model_type": "bert"})]
    assert len({model.num_parameters for model in models}) == 1
    assert models[1].architecture == "BertForMaskedLM"
    assert "counted as BertForMaskedLM" in models[1].notes[0]


@pytest.mark.parametrize(("window", "seq_len"), [(0, 9), (5, 9), (5, 3), (9, 9), (129, 200), (129, 100)])
def test_keys_of_both_sides_are_the_pairs_within_reach(window: int, seq_len: int) -> None:
    attention = Attention(4, 4, 16, window=window, causal=False)
    reach = window // 2 if window else seq_len
    pairs = sum(abs(query - key) <= reach for query in range(seq_len) for key in range(seq_len))
    assert attention.mean_keys(seq_len) == pytest.approx(pairs / seq_len)


def test_attention_to_both_sides_needs_all_pairs() -> None:
    model = model_from_config(BERT)
    assert model.flops_per_token(32, causal=True) == model.flops_per_token(32)
    causal = model_from_config(BERT | {"is_decoder": True})
    assert causal.flops_per_token(32) == model.flops_per_token(32)
    assert causal.flops_per_token(32, causal=True) < model.flops_per_token(32, causal=True)


def test_matmul_flops_of_bert_by_hand() -> None:
    # four projections, two matrices of the MLP, the head's transform and the vocabulary
    weights = 3 * (4 * 64**2 + 2 * 64 * 128) + 64**2 + 64 * 100
    assert model_from_config(BERT).matmul_parameters == weights


def test_modernbert_sees_64_tokens_to_each_side_but_every_third_layer_sees_all() -> None:
    config = {**BERT, "model_type": "modernbert", "architectures": ["ModernBertForMaskedLM"], "local_attention": 128}
    windows = [layer.attention.window for layer in model_from_config(config | {"num_hidden_layers": 7}).layers]
    assert windows == [0, 129, 129, 0, 129, 129, 0]


def test_shared_layers_are_counted_once_and_computed_each_time() -> None:
    albert = {**BERT, "model_type": "albert", "architectures": ["AlbertForMaskedLM"], "embedding_size": 16}
    short, long = model_from_config(albert), model_from_config(albert | {"num_hidden_layers": 6})
    assert short.num_parameters == long.num_parameters
    per_layer = 4 * 64**2 + 2 * 64 * 128
    assert long.matmul_parameters - short.matmul_parameters == 3 * per_layer


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"model_type": "albert", "architectures": None}, "its layers share their weights"),
        ({"model_type": "deberta-v2", "architectures": None}, "disentangled attention"),
        ({"architectures": ["BertForSequenceClassification"]}, "BertForMaskedLM"),
    ],
)
def test_what_has_no_price_says_why(changes: dict[str, Any], reason: str) -> None:
    model = model_from_config(BERT | changes)
    assert model.num_parameters > 0
    with pytest.raises(InputError, match=f"are counted, but it can't be planned: .*{reason}"):
        check_planned(model)
    check_planned(replace(model, not_planned=""))


@pytest.mark.parametrize(
    ("changes", "missing"),
    [
        ({"architectures": ["BertForSomething"]}, "the head that its class adds"),
        ({"add_cross_attention": True}, "cross-attention"),
        ({"hidden_size": None}, "hidden_size"),
    ],
)
def test_a_missing_fact_is_named_with_the_class(changes: dict[str, Any], missing: str) -> None:
    with pytest.raises(UnsupportedModel, match=missing) as caught:
        model_from_config(BERT | changes)
    assert caught.value.architecture.startswith("Bert")


T5: dict[str, Any] = {
    "model_type": "t5",
    "d_model": 64,
    "d_kv": 16,
    "d_ff": 128,
    "num_layers": 2,
    "num_heads": 4,
    "vocab_size": 100,
}


def test_flops_of_a_pair_of_stacks_by_hand() -> None:
    model = model_from_config(T5)
    # two encoder layers of one attention, two decoder layers of two, an MLP each, and the vocabulary
    weights = (2 + 2 * 2) * 4 * 64**2 + 4 * 2 * 64 * 128 + 64 * 100
    assert model.matmul_parameters == weights
    pairs_of_a_query = 2 * 9 + 2 * (5 + 9)  # 9 tokens: both ways, causal, and all of the encoder's
    assert model.flops_per_token(9, causal=True) == 6 * weights + 12 * 64 * pairs_of_a_query


def test_a_pair_of_stacks_is_counted_but_not_planned() -> None:
    with pytest.raises(InputError, match="counted, but not planned: its encoder and decoder"):
        check_planned(model_from_config(T5))


@pytest.mark.parametrize(
    ("changes", "missing"),
    [
        ({"d_ff": None}, "d_ff"),
        ({"architectures": ["T5EncoderModel"]}, "a class other than T5ForConditionalGeneration"),
    ],
)
def test_a_missing_fact_of_a_pair_is_named(changes: dict[str, Any], missing: str) -> None:
    with pytest.raises(UnsupportedModel, match=missing):
        model_from_config(T5 | changes)


ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([-1, 0, 1, 3, 10**18, 1e300, float("nan"), 2.5, "", "64", [], [[1]], [None], {}, {"a": [1]}]),
)


@given(data=st.data())
def test_no_config_ends_in_a_traceback(data: st.DataObject) -> None:
    config = dict(data.draw(st.sampled_from(COUNTS))["config"])
    for key in data.draw(st.lists(st.sampled_from(sorted(config)), min_size=1, max_size=3)):
        config[key] = data.draw(ODD)
    with contextlib.suppress(InputError):
        assert isinstance(model_from_config(config), Model)
