"""Rewrites huggingface_counts.json: small configs of every model_type, counted by their classes on the meta device.

Needs torch and transformers, so it is no test:  python tests/sources/huggingface_counts.py [variants per model_type]
Sizes and switches vary with a fixed seed, and keys are left out at random, so that defaults are held as well.
"""

from __future__ import annotations

import dataclasses
import json
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoModelForImageTextToText
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from meshwright.sources.huggingface.table import TABLE
from meshwright.sources.huggingface.wrappers import WRAPPERS

TARGET = Path(__file__).with_suffix(".json")
LATENT_QUERIES = ("minicpm3", "deepseek_v32", "glm_moe_dsa")
"""Classes whose queries always pass through a latent."""
COUNTED_ELSEWHERE = (
    *("gemma3n_text", "gemma4_text", "mllama_text_model", "deepseek_v4", "glm4v_text", "glm4v_moe_text"),
    *("qwen2_vl_text", "qwen2_5_vl_text", "qwen3_vl_text", "qwen3_vl_moe_text"),
)
"""Text stacks of multimodal classes, and stacks with layers of their own: see multimodal_counts.py."""
SWITCHES = (
    *(
        "attention_bias",
        "mlp_bias",
        "use_bias",
        "bias",
        "qkv_bias",
        "use_qkv_bias",
        "attention_out_bias",
        "enable_bias",
    ),
    *("tie_word_embeddings", "lm_head_bias", "qk_layernorm", "use_qk_norm", "layer_norm_elementwise_affine"),
    *("parallel_attn", "use_parallel_residual", "multi_query", "new_decoder_architecture", "do_layer_norm_before"),
    *("use_sliding_window", "alibi"),
)
CHOICES: dict[str, list[Any]] = {
    "vocab_size": [96, 128, 130],
    "max_position_embeddings": [64],
    "n_positions": [32],
    "num_local_experts": [4, 6],
    "num_experts": [4, 6],
    "n_routed_experts": [4, 6],
    "moe_num_experts": [4, 6],
    "num_experts_per_tok": [2],
    "moe_k": [2],
    "moe_topk": [2],
    "moe_intermediate_size": [12, 20],
    "shared_expert_intermediate_size": [12, 20],
    "shared_intermediate_size": [0, 20],
    "n_shared_experts": [1, 2],
    "num_shared_experts": [1, 2],
    "moe_num_shared_experts": [1, 2],
    "num_shared_expert": [1, 2],
    "first_k_dense_replace": [0, 1, 2],
    "decoder_sparse_step": [1, 2],
    "interleave_moe_layer_step": [1, 2],
    "intermediate_size_mlp": [70],
    "moe_layer_interval": [1, 2],
    "moe_layer_start_index": [0, 1],
    "moe_layer_end_index": [-1],
    "num_ln_in_parallel_attn": [None, 1, 2],
    "pad_token_id": [0],
}


def small_config(model_type: str, pick: random.Random) -> dict[str, Any]:
    """A tiny config of a model_type, in the key names of its class."""
    fields = {field.name: field.default for field in dataclasses.fields(CONFIG_MAPPING[model_type])}
    heads = pick.choice([4, 8])
    hidden, layers = heads * pick.choice([4, 8, 10]), pick.choice([2, 3, 5, 7])
    config: dict[str, Any] = {}

    def put(names: str, value: Any) -> None:
        for name in names.split():
            if name in fields:
                config[name] = value
                return

    put("hidden_size n_embd d_model", hidden)
    put("num_hidden_layers n_layer n_layers num_layers", layers)
    put("num_attention_heads n_head n_heads num_heads attention_heads", heads)
    if isinstance(fields.get("num_key_value_heads"), int) or pick.random() < 0.8:
        put("num_key_value_heads num_kv_heads", pick.choice([1, 2, 4, heads]))
    if isinstance(fields.get("intermediate_size", fields.get("ffn_dim")), int) or pick.random() < 0.8:
        put("intermediate_size ffn_dim n_inner ffn_hidden_size", pick.choice([48, 100]))
    if "head_dim" in fields and pick.random() < 0.5:
        config["head_dim"] = pick.choice([4, 6, 16])
    config |= {name: pick.choice(values) for name, values in CHOICES.items() if name in fields}
    config |= {name: pick.random() < 0.5 for name in SWITCHES if name in fields and pick.random() < 0.6}
    if "word_embed_proj_dim" in fields and pick.random() < 0.5:
        config["word_embed_proj_dim"] = 20
    if "kv_lora_rank" in fields:
        config |= {"kv_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4, "v_head_dim": pick.choice([6, 8])}
        config |= {"q_lora_rank": 24 if model_type in LATENT_QUERIES else pick.choice([None, 24])}
        config |= {"num_key_value_heads": heads}
        config.pop("head_dim", None)
    return config | peculiar(model_type, config, heads, hidden, layers)


def peculiar(model_type: str, config: dict[str, Any], heads: int, hidden: int, layers: int) -> dict[str, Any]:
    """What single classes insist on."""
    if model_type == "dbrx":
        experts = {"ffn_hidden_size": 40, "moe_num_experts": 4, "moe_top_k": 2}
        rope = {"rope_theta": 1e4}
        attention = {"kv_n_heads": heads // 2, **rope}
        return {"attn_config": attention, "ffn_config": experts, "tie_word_embeddings": False, **rope}
    if model_type == "gpt_neo":
        return {"attention_types": [[["global", "local"], 1]] + [[["global"], layers - 2]] * (layers > 2)}
    if model_type in ("ministral", "hunyuan_v1_dense", "hunyuan_v1_moe", "nemotron"):
        return {"head_dim": config.get("head_dim", 16), "num_key_value_heads": config.get("num_key_value_heads", heads)}
    if model_type in ("qwen3_next", "qwen3_5_text", "qwen3_5_moe_text"):
        groups = [1, 2, 4][layers % 3]
        sizes = {"linear_num_key_heads": groups, "linear_num_value_heads": 2 * groups, "linear_key_head_dim": 6}
        sizes |= {"linear_value_head_dim": 10} if heads == 4 else {}
        kinds = ["full_attention" if index % 2 else "linear_attention" for index in range(layers)]
        return sizes | ({"layer_types": kinds} if layers % 2 else {"full_attention_interval": 2})
    if model_type == "nemotron_h":
        pattern = "M*E-MEM*"[: layers + 1]
        sizes = {"mamba_num_heads": 4, "mamba_head_dim": 6, "n_groups": [1, 2, 4][layers % 3], "ssm_state_size": 10}
        switches = {"use_bias": heads == 4, "use_conv_bias": layers != 3, "moe_shared_expert_intermediate_size": 14}
        return {"hybrid_override_pattern": pattern, "num_hidden_layers": len(pattern), **sizes, **switches}
    if model_type in HYBRIDS:
        return HYBRIDS[model_type](config, heads, hidden, layers)
    if model_type == "helium":
        return {"head_dim": hidden // heads}
    if model_type == "mimo_v2_flash":
        return {"head_dim": 6, "v_head_dim": 4, "num_key_value_heads": 2}
    if model_type == "internlm3":
        biases = bool(config.get("bias"))
        return {"qkv_bias": biases, "bias": biases, "attention_bias": biases, "mlp_bias": biases}
    if model_type in ("gptj", "codegen"):
        return {"rotary_dim": 4, "n_head": 8, "n_embd": 64}
    return {"norm_topk_prob": True} if model_type == "dots1" else {}


def state_space(config: dict[str, Any], heads: int, hidden: int, layers: int) -> dict[str, Any]:
    """Mamba: an own width of its mixer in some files, the step's rank in others."""
    sizes = {"state_size": 6, "use_bias": heads == 4, "use_conv_bias": layers != 3}
    ranks = {"time_step_rank": 5} if layers == 5 else {}
    return sizes | ranks | ({"intermediate_size": 3 * hidden} if layers == 2 else {"expand": 3})


def state_space_2(config: dict[str, Any], heads: int, hidden: int, layers: int) -> dict[str, Any]:
    sizes = {"num_heads": heads, "head_dim": 2 * hidden // heads, "n_groups": 2, "state_size": 6, "chunk_size": 8}
    return sizes | {"use_bias": heads == 4, "use_conv_bias": layers != 3}


def mamba_keys(config: dict[str, Any], heads: int, hidden: int, layers: int) -> dict[str, Any]:
    """The mixers of Bamba, Granite 4 and Falcon-H1."""
    sizes = {"mamba_n_heads": heads, "mamba_n_groups": 2, "mamba_d_state": 6, "mamba_d_head": 2 * hidden // heads}
    return sizes | {"mamba_proj_bias": heads == 4, "mamba_conv_bias": layers != 3}


def jamba(config: dict[str, Any], heads: int, hidden: int, layers: int) -> dict[str, Any]:
    experts = {"num_experts": 1 if layers == 3 else 4, "expert_layer_period": 2, "expert_layer_offset": layers % 2}
    periods = {"attn_layer_period": 3, "attn_layer_offset": layers % 3} if layers > 2 else {}
    sizes = {"mamba_d_state": 6, "mamba_proj_bias": heads == 4} | ({"mamba_dt_rank": 5} if layers == 5 else {})
    return experts | periods | sizes | {"use_mamba_kernels": False}


def bamba(config: dict[str, Any], heads: int, hidden: int, layers: int) -> dict[str, Any]:
    return mamba_keys(config, heads, hidden, layers) | {"attn_layer_indices": [1, layers - 1] if layers > 2 else None}


def granite_hybrid(config: dict[str, Any], heads: int, hidden: int, layers: int) -> dict[str, Any]:
    kinds = ["attention" if index % 3 == 1 else "mamba" for index in range(layers)]
    experts = {"num_local_experts": 0 if layers == 3 else 4, "shared_intermediate_size": 20}
    return mamba_keys(config, heads, hidden, layers) | experts | ({"layer_types": kinds} if layers != 2 else {})


def falcon_h1(config: dict[str, Any], heads: int, hidden: int, layers: int) -> dict[str, Any]:
    sizes = {"mamba_d_ssm": 3 * hidden, "mamba_d_head": 3 * hidden // heads, "mamba_rms_norm": layers != 2}
    return mamba_keys(config, heads, hidden, layers) | sizes | {"projectors_bias": layers == 3}


def lfm2(config: dict[str, Any], heads: int, hidden: int, layers: int) -> dict[str, Any]:
    kinds = ["full_attention" if index % 3 == 1 else "conv" for index in range(layers)]
    adjusted = {"block_multiple_of": 16, "block_auto_adjust_ff_dim": layers != 2, "block_ffn_dim_multiplier": 1.3}
    own = {} if "num_experts" in config else adjusted
    listed = {"full_attn_idxs": [1]} if layers == 3 and own else {"layer_types": kinds}
    return own | listed | {"conv_bias": heads == 4, "conv_L_cache": 4}


def minimax(config: dict[str, Any], heads: int, hidden: int, layers: int) -> dict[str, Any]:
    kinds = ["full_attention" if index % 3 == 1 else "linear_attention" for index in range(layers)]
    return {"layer_types": kinds} if layers == 5 else {}


def griffin(config: dict[str, Any], heads: int, hidden: int, layers: int) -> dict[str, Any]:
    return {"attention_window_size": 16, "lru_width": 2 * hidden} if layers == 3 else {"conv1d_width": 3}


def rwkv(config: dict[str, Any], heads: int, hidden: int, layers: int) -> dict[str, Any]:
    return {"attention_hidden_size": 2 * hidden} if layers != 2 else {"context_length": 64}


def olmo_hybrid(config: dict[str, Any], heads: int, hidden: int, layers: int) -> dict[str, Any]:
    sizes = {"linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 6}
    if layers == 2:
        return {"layer_types": ["linear_attention", "full_attention"]}
    return sizes | {"layer_types": ["full_attention", *["linear_attention"] * (layers - 1)]}


def kimi_linear(config: dict[str, Any], heads: int, hidden: int, layers: int) -> dict[str, Any]:
    if layers == 3:
        nested = {"kda_layers": [1, 3], "full_attn_layers": [2], "head_dim": 6, "num_heads": 4}
        return {"linear_attn_config": nested | {"short_conv_kernel_size": 3}, "first_k_dense_replace": 2}
    return {"linear_head_dim": 6, "linear_num_heads": 4, "linear_conv_kernel_dim": 3}


def bailing_hybrid(config: dict[str, Any], heads: int, hidden: int, layers: int) -> dict[str, Any]:
    return {"head_dim": 6, "layer_group_size": 2, "n_group": 1, "topk_group": 1}


HYBRIDS: dict[str, Callable[[dict[str, Any], int, int, int], dict[str, Any]]] = {
    "mamba": state_space,
    "falcon_mamba": state_space,
    "mamba2": state_space_2,
    "jamba": jamba,
    "bamba": bamba,
    "granitemoehybrid": granite_hybrid,
    "falcon_h1": falcon_h1,
    "lfm2": lfm2,
    "lfm2_moe": lfm2,
    "minimax": minimax,
    "recurrent_gemma": griffin,
    "rwkv": rwkv,
    "olmo_hybrid": olmo_hybrid,
    "kimi_linear": kimi_linear,
    "bailing_hybrid": bailing_hybrid,
}
"""What classes with recurrent mixers get beside the common keys."""


def count(model_type: str, config: dict[str, Any]) -> int:
    """What the class holds, tied tensors once."""
    built = CONFIG_MAPPING[model_type](**json.loads(json.dumps(config)))
    with torch.device("meta"):
        auto = AutoModelForImageTextToText if model_type in WRAPPERS else AutoModelForCausalLM
        model = auto.from_config(built)
    return sum(parameter.numel() for parameter in model.parameters())


def main(variants: int) -> None:
    rows = []
    for model_type in sorted(set(TABLE) & set(CONFIG_MAPPING) - set(COUNTED_ELSEWHERE)):
        for seed in range(variants):
            config = small_config(model_type, random.Random(f"{model_type}{seed}"))
            rows.append({"parameters": count(model_type, config), "config": {"model_type": model_type, **config}})
    TARGET.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
