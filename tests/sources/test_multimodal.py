"""Multimodal configs, and stacks with layers of their own, count what transformers builds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import meshwright as mw
from meshwright.sources.huggingface import model_from_config
from meshwright.sources.huggingface.table import TABLE
from meshwright.sources.huggingface.vision import TOWERS, WIDTHS
from meshwright.sources.huggingface.wrappers import WRAPPERS
from meshwright.spec.errors import InputError, UnsupportedModel

COUNTS = json.loads(Path(__file__).with_name("multimodal_counts.json").read_text(encoding="utf-8"))
"""Small configs and what transformers counts for them; made by multimodal_counts.py."""

TEXT = {
    **{"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4},
    **{"intermediate_size": 96, "vocab_size": 100},
}
TOWER = {"model_type": "clip_vision_model", "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2}


@pytest.mark.parametrize(
    "row", COUNTS, ids=[f"{row['config']['model_type']}-{index % 5}" for index, row in enumerate(COUNTS)]
)
def test_every_class_counts_what_transformers_builds(row: dict[str, Any]) -> None:
    assert model_from_config(row["config"]).num_parameters == row["parameters"]


def test_every_class_has_frozen_counts_and_known_parts() -> None:
    counted = {row["config"]["model_type"] for row in COUNTS}
    # phi3_v has no class in transformers: the field tests hold its count against its model card
    assert {name for name, wrapper in WRAPPERS.items() if wrapper.text in TABLE} <= counted | {"phi3_v"}
    for wrapper in WRAPPERS.values():
        assert {wrapper.tower, wrapper.audio or wrapper.tower} <= set(TOWERS)
        assert wrapper.fixed_tower or wrapper.tower in WIDTHS


def test_a_class_takes_any_known_tower_by_its_model_type() -> None:
    def beside(tower: dict[str, Any]) -> int:
        return model_from_config({"model_type": "llava", "text_config": TEXT, "vision_config": tower}).extra_parameters

    clip, siglip = beside(TOWER | {"patch_size": 16}), beside(TOWER | {"model_type": "siglip_vision_model"})
    # CLIP: class token, its position, a first norm; SigLIP: a bias per patch, and a head with a probe
    block = 4 * (32 * 32 + 32) + 2 * 32 * 48 + 48 + 32
    assert clip - siglip == (2 * 32 + 64) - (32 + 32 + block + 64)


def test_a_tower_of_an_unknown_kind_is_refused_by_name() -> None:
    config = {"architectures": ["LlavaForConditionalGeneration"], "model_type": "llava", "text_config": TEXT}
    with pytest.raises(UnsupportedModel, match="LlavaForConditionalGeneration") as caught:
        model_from_config(config | {"vision_config": TOWER | {"model_type": "odd_vision"}})
    assert caught.value.missing == ("its tower of type 'odd_vision'",)


def test_an_unknown_text_stack_is_refused_under_the_name_of_the_whole_class() -> None:
    config = {"architectures": ["LlavaForConditionalGeneration"], "model_type": "llava", "vision_config": TOWER}
    with pytest.raises(UnsupportedModel, match="LlavaForConditionalGeneration"):
        model_from_config(config | {"text_config": TEXT | {"model_type": "jetmoe"}})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"patch_size": [14, 14, 14]}, "vision_config.patch_size is [14, 14, 14]"),
        ({"image_size": "336"}, "vision_config.image_size is '336'"),
        ({"hidden_size": -1}, "vision_config.hidden_size is -1"),
        ({"model_type": 7}, "model_type is 7"),
    ],
)
def test_a_wrong_value_of_a_tower_is_named_with_its_part(change: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError) as caught:
        model_from_config({"model_type": "llava", "text_config": TEXT, "vision_config": TOWER | change})
    assert words in str(caught.value)


def test_a_model_that_is_counted_only_says_why_it_is_not_planned() -> None:
    row = next(row for row in COUNTS if row["config"]["model_type"] == "deepseek_v4")
    model = model_from_config(row["config"], name="small-v4")
    job, plan = mw.Training(global_batch=8, seq_len=32), mw.Plan(dp=8)
    for ask in (
        lambda: mw.choose(model, "1xdgx-a100-80g", job),
        lambda: mw.estimate(model, "1xdgx-a100-80g", job, plan),
    ):
        with pytest.raises(InputError, match="can't be planned") as caught:
            ask()
        assert "small-v4" in str(caught.value)
        assert f"{row['parameters']:,} parameters are counted" in str(caught.value)
        assert "hyper-connections" in str(caught.value)


def test_experts_beside_a_dense_mlp_are_planned_with_keys_that_serve_as_values() -> None:
    config = {
        **{"model_type": "gemma4_text", "hidden_size": 64, "num_hidden_layers": 6, "num_attention_heads": 4},
        **{"num_key_value_heads": 2, "head_dim": 16, "global_head_dim": 32, "num_global_key_value_heads": 1},
        **{"intermediate_size": 96, "vocab_size": 128, "attention_k_eq_v": True, "hidden_size_per_layer_input": 0},
        **{"enable_moe_block": True, "num_experts": 8, "top_k_experts": 2, "moe_intermediate_size": 48},
    }
    model = model_from_config(config)
    sliding, full = model.layers[0], model.layers[5]
    assert (sliding.attention.head_dim, full.attention.head_dim) == (16, 32)
    assert [linear.name for linear in full.attention.linears(64)] == ["q", "k", "attn_out"]
    # a token passes through 2 of 8 experts, and through the scales of those alone
    assert sliding.num_parameters(64) - sliding.active_parameters(64) == 6 * (3 * 64 * 48 + 1)
    job = mw.Training(global_batch=8, seq_len=64)
    assert mw.estimate(model, "1xdgx-a100-80g", job, mw.Plan(dp=8)).step_time_s > 0
