"""Rewrites multimodal_counts.json: small configs of every multimodal class, and of stacks with layers of their
own, counted by their classes on the meta device.

Needs torch and transformers, so it is no test:  python tests/sources/multimodal_counts.py [variants per class]
Sizes and switches vary with a fixed seed, and keys are left out at random, so that defaults are held as well.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

from huggingface_counts import count, small_config

from meshwright.sources.huggingface.table import TABLE
from meshwright.sources.huggingface.wrappers import WRAPPERS

TARGET = Path(__file__).with_suffix(".json")
TEXT_STACKS = {
    "llava": ["llama", "qwen2", "gemma2"],
    "llava_onevision": ["qwen2", "llama"],
    "paligemma": ["gemma", "gemma2"],
    "internvl": ["qwen2", "qwen3", "llama"],
    "idefics3": ["llama", "qwen2"],
    "ovis2": ["qwen2", "llama"],
    "mistral3": ["mistral", "ministral3"],
    "glm46v": ["glm4v_text", "glm4v_moe_text"],
}
"""Text stacks that a class is tried with; its own alone where it is not here."""
ANY_TOWER = {
    "llava": ["clip_vision_model", "siglip_vision_model", "pixtral"],
    "llava_next": ["clip_vision_model", "siglip_vision_model"],
}
SWITCHES: dict[str, list[Any]] = {
    "clip_vision_model": [{"image_size": 28, "patch_size": 14}, {"image_size": 64, "patch_size": 16}, {}],
    "siglip_vision_model": [{"image_size": 32, "vision_use_head": False}, {"image_size": 64}, {"patch_size": 14}],
    "pixtral": [{"patch_size": 14}, {}],
    "internvl_vision": [
        {"image_size": [28, 56], "patch_size": [14, 14]},
        {"image_size": 28, "patch_size": 14, "attention_bias": True, "use_qk_norm": True},
        {"norm_type": "rms_norm", "use_mean_pooling": False, "use_mask_token": True},
        {"use_absolute_position_embeddings": False},
    ],
    "idefics2_vision": [{"image_size": 64}, {"patch_size": 14}],
    "idefics3_vision": [{"image_size": 64}, {"patch_size": 14}],
    "smolvlm_vision": [{"image_size": 64}, {"patch_size": 16}],
    "ovis2_vision": [
        {"vocab_size": 64, "image_size": 28},
        {"vocab_size": 64, "qkv_bias": True, "mlp_bias": True, "num_visual_indicator_tokens": 4},
        {"vocab_size": 64, "hidden_stride": 2},
    ],
    "mllama_vision_model": [
        {"image_size": 28, "vision_output_dim": 192, "num_global_layers": 2, "intermediate_layers_indices": [0, 1]},
        {"image_size": 56, "patch_size": 14, "max_num_tiles": 2, "supported_aspect_ratios": [[1, 1], [1, 2]]},
    ],
    "llama4_vision_model": [
        {"image_size": 28, "patch_size": 14, "projector_input_dim": 20, "projector_output_dim": 24},
        {"image_size": 56, "vision_output_dim": 24},
    ],
    "qwen2_vl_vision": [{"patch_size": 8}, {"mlp_ratio": 2, "temporal_patch_size": 1}, {"spatial_merge_size": 1}],
    "qwen2_5_vl_vision": [{"fullatt_block_indexes": [1]}, {"patch_size": 8, "temporal_patch_size": 1}],
    "exaone4_5_vision": [{"num_key_value_heads": 2}, {"num_key_value_heads": 4, "patch_size": 8}],
    "qwen3_vl_vision": [
        {"deepstack_visual_indexes": [], "num_position_embeddings": 16},
        {"deepstack_visual_indexes": [0, 1], "num_position_embeddings": 64, "patch_size": 8},
    ],
    "qwen3_5_vision": [{"num_position_embeddings": 16}, {"num_position_embeddings": 64, "patch_size": 8}],
    "glm4v_vision": [{"image_size": 28}, {"attention_bias": True, "patch_size": 8}, {"spatial_merge_size": 1}],
    "kimi_k25_vision": [{"pos_emb_height": 4, "pos_emb_width": 6}, {"patch_size": 8}],
    "gemma4_vision": [
        {"position_embedding_size": 64, "head_dim": 8},
        {"num_key_value_heads": 2, "position_embedding_size": 32, "patch_size": 8},
    ],
}
OUTER: dict[str, list[dict[str, Any]]] = {
    "llava": [{}, {"multimodal_projector_bias": False}, {"vision_feature_layer": [0, 1]}],
    "llava_next": [{}, {"multimodal_projector_bias": False}, {"vision_feature_layer": [0, -1]}],
    "vipllava": [{}, {"vision_feature_layer": [-1, -2]}],
    "idefics3": [{}, {"scale_factor": 3}],
    "smolvlm": [{}, {"scale_factor": 4}],
    "internvl": [{}, {"downsample_ratio": 0.25}],
    "aya_vision": [{}, {"alignment_intermediate_size": 48, "downsample_factor": 1}],
    "cohere2_vision": [{"alignment_intermediate_size": 48}, {"downsample_factor": 1}],
    "mistral3": [{}, {"multimodal_projector_bias": True, "spatial_merge_size": 1}],
    "lighton_ocr": [{}, {"spatial_merge_size": 1}],
}
PERCEIVER = {"hidden_size": 32, "resampler_n_latents": 6, "resampler_depth": 2, "resampler_n_heads": 4}


def small_wrapper(model_type: str, pick: random.Random) -> dict[str, Any]:
    """A tiny multimodal config; what its towers leave out is the default of their class."""
    wrapper = WRAPPERS[model_type]
    text_type = pick.choice(TEXT_STACKS.get(model_type, [wrapper.text]))
    text = {"model_type": text_type, **small_config(text_type, pick), **peculiar_text(text_type, pick)}
    text.pop("tie_word_embeddings", None)
    if pick.random() < 0.5:
        text["tie_word_embeddings"] = pick.random() < 0.5
    tower = pick.choice(ANY_TOWER.get(model_type, [wrapper.tower]))
    config: dict[str, Any] = {"text_config": text} | pick.choice(OUTER.get(model_type, [{}]))
    config["vision_config"] = small_tower(tower, text["hidden_size"], pick)
    if model_type == "paligemma":
        config["projection_dim"] = text["hidden_size"]
    if model_type == "ovis2":
        config |= {"hidden_size": text["hidden_size"], "vocab_size": text["vocab_size"]}
    if model_type == "kimi_k25":
        config["projection_hidden_size"] = 32
    if model_type == "idefics2":
        config["perceiver_config"] = PERCEIVER | {"hidden_size": text["hidden_size"]}
        text["intermediate_size"] = text.get("intermediate_size", 48)
    if model_type == "gemma4":
        if pick.random() < 0.5:
            config["audio_config"] = {
                **{"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4},
                **pick.choice(
                    [{}, {"output_proj_dims": 20, "conv_kernel_size": 3, "subsampling_conv_channels": [8, 4]}]
                ),
            }
        if pick.random() < 0.3:
            del config["vision_config"]
    if pick.random() < 0.6 and model_type != "mllama":
        config["tie_word_embeddings"] = pick.random() < 0.5
    return config


def small_tower(tower: str, hidden: int, pick: random.Random) -> dict[str, Any]:
    depth = "depth" if tower.startswith(("qwen", "glm4v", "exaone")) else "num_hidden_layers"
    heads = {"mllama_vision_model": "attention_heads"}.get(
        tower, "num_heads" if depth == "depth" else "num_attention_heads"
    )
    vision = {"model_type": tower, "hidden_size": 32, depth: 2, heads: 4, "intermediate_size": pick.choice([40, 48])}
    vision |= pick.choice(SWITCHES[tower])
    if tower == "qwen2_vl_vision":
        vision |= {"embed_dim": 32, "hidden_size": hidden}
        del vision["intermediate_size"]
    elif depth == "depth":
        vision["out_hidden_size"] = hidden
    if tower == "llama4_vision_model":
        vision["intermediate_size"] = 128
    if tower == "gemma4_vision":
        vision.setdefault("num_key_value_heads", 4)
    if tower.startswith("qwen2_5") or tower.startswith("exaone"):
        vision.setdefault("fullatt_block_indexes", [1])
    return vision


def peculiar_text(model_type: str, pick: random.Random) -> dict[str, Any]:
    """What stacks with layers of their own are made of."""
    every = [True, False]
    if model_type == "gemma4_text":
        sparse = {"enable_moe_block": True, "num_experts": 4, "top_k_experts": 2, "moe_intermediate_size": 12}
        return {
            "num_hidden_layers": 6,
            "layer_types": pick.choice([None, ["sliding_attention", "full_attention"] * 3]),
            "hidden_size_per_layer_input": pick.choice([0, 8]),
            "vocab_size_per_layer_input": 40,
            "global_head_dim": 16,
            "num_global_key_value_heads": pick.choice([None, 1]),
            "attention_k_eq_v": pick.choice(every),
            "use_double_wide_mlp": pick.choice(every),
            **pick.choice(
                [
                    {"num_kv_shared_layers": 0},
                    {"layer_types": ["sliding_attention", "full_attention"] * 3, "num_kv_shared_layers": 2},
                ]
            ),
            **pick.choice([sparse, {}]),
        }
    if model_type == "gemma3n_text":
        return {
            "num_hidden_layers": 6,
            "num_kv_shared_layers": pick.choice([0, 2]),
            "layer_types": ["sliding_attention", "full_attention"] * 3,
            "hidden_size_per_layer_input": 8,
            "vocab_size_per_layer_input": 40,
            "laurel_rank": pick.choice([4, 64]),
            "altup_num_inputs": pick.choice([2, 4]),
            "altup_correct_scale": True,
        }
    if model_type == "mllama_text_model":
        return {"cross_attention_layers": pick.choice([[0], [1, 2], []])}
    if model_type == "deepseek_v4":
        kinds = ["sliding_attention", "compressed_sparse_attention", "heavily_compressed_attention"]
        return {
            **{"num_hidden_layers": 3, "num_attention_heads": 4, "head_dim": 16, "num_key_value_heads": 1},
            **{"q_lora_rank": 24, "o_lora_rank": 12, "index_n_heads": 2, "index_head_dim": 8, "index_topk": 4},
            **{"qk_rope_head_dim": 4, "hc_mult": pick.choice([2, 4]), "o_groups": pick.choice([2, 4])},
            **pick.choice([{"layer_types": kinds}, {"compress_ratios": [0, 4, 128]}, {"compress_rate_csa": 8}, {}]),
        }
    return {}


def main(variants: int) -> None:
    rows = []
    alone = ["gemma3n_text", "gemma4_text", "deepseek_v4"]
    for model_type in [*sorted(WRAPPERS), *alone]:
        if model_type in WRAPPERS and WRAPPERS[model_type].text not in TABLE:
            continue
        for seed in range(variants):
            pick = random.Random(f"{model_type}{seed}")
            if model_type in WRAPPERS:
                config = small_wrapper(model_type, pick)
            else:
                config = small_config(model_type, pick) | peculiar_text(model_type, pick)
            try:
                rows.append({"parameters": count(model_type, config), "config": {"model_type": model_type, **config}})
            except (ValueError, RuntimeError, TypeError) as error:
                print(f"{model_type}: {error}: {config}", file=sys.stderr)
    TARGET.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
