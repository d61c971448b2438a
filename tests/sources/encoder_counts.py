"""Rewrites encoder_counts.json: small encoders and encoder-decoders, counted by their classes on the meta device.

Needs torch and transformers, so it is no test:  python tests/sources/encoder_counts.py [variants per model_type]
"""

from __future__ import annotations

import dataclasses
import json
import random
import sys
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from meshwright.sources.huggingface.encoder_decoder import PAIRS
from meshwright.sources.huggingface.encoders import ENCODERS

TARGET = Path(__file__).with_suffix(".json")
CHOICES: dict[str, list[Any]] = {
    "vocab_size": [96, 130],
    "max_position_embeddings": [24, 40],
    "type_vocab_size": [0, 1, 2],
    "embedding_size": [20, 32, 64],
    "input_embedding_size": [20, 24],
    "output_embedding_size": [28, 36],
    "num_hidden_groups": [1, 2],
    "inner_group_num": [1, 2],
    "max_relative_positions": [-1, 16],
    "pos_att_type": [None, "c2p", "p2c|c2p", ["p2c"]],
    "layer_types": [None],
    "emb_layer_norm_before": [True, False, None],
    "position_embedding_type": ["absolute", "rotary"],
    "relative_attention_num_buckets": [8, 16],
    "head_dim": [None, 6, 16],
    "num_key_value_heads": [1, 2, 4],
    "task_type_vocab_size": [3, 5],
    "use_task_id": [True, False],
    "norm_bias": [True, False],
    "attention_bias": [True, False],
    "mlp_bias": [True, False],
    "decoder_bias": [True, False],
    "classifier_bias": [True, False],
    "relative_attention": [True, False],
    "position_biased_input": [True, False],
    "legacy": [True, False],
    "tie_word_embeddings": [True, False],
    "local_attention": [8, 16],
}
ALWAYS = ("vocab_size",)
LATER = {
    "deberta-v2": {
        "position_buckets": [-1, 8],
        "norm_rel_ebd": ["none", "layer_norm"],
        "conv_kernel_size": [0, 3],
        "conv_groups": [1, 4],
        "share_att_key": [True, False],
    },
    "deberta": {"talking_head": [True, False]},
    "modernbert": {"global_attn_every_n_layers": [2, 3]},
}
"""Keys that the classes read without declaring them."""


def small_encoder(model_type: str, ending: str, pick: random.Random) -> dict[str, Any]:
    """A tiny config; keys that a class has a default for are left out at random."""
    fields = {field.name for field in dataclasses.fields(CONFIG_MAPPING[model_type])}
    heads = 4
    sizes = {
        "hidden_size dim": heads * pick.choice([8, 16]),
        "num_hidden_layers n_layers": pick.choice([2, 4, 5]),
        "num_attention_heads n_heads": heads,
        "intermediate_size hidden_dim": pick.choice([48, 100]),
    }
    config: dict[str, Any] = {next(name for name in names.split() if name in fields): n for names, n in sizes.items()}
    choices = {key: options for key, options in CHOICES.items() if key in fields} | LATER.get(model_type, {})
    config |= {key: pick.choice(of) for key, of in choices.items() if key in ALWAYS or pick.random() < 0.7}
    if model_type == "albert":
        config["num_hidden_groups"] = pick.choice([1, 2])
    if model_type == "nomic_bert":
        config.pop("head_dim", None)
    if ending not in ("Model", "ForMaskedLM") and pick.random() < 0.5:
        config["id2label"] = {str(label): f"label {label}" for label in range(pick.choice([2, 3, 7]))}
    return config | {"architectures": [ENCODERS[model_type].prefix + ending], "pad_token_id": 0}


PAIR_CHOICES: dict[str, list[Any]] = {
    "encoder_ffn_dim": [48, 100],
    "decoder_ffn_dim": [48, 60],
    "encoder_layers": [2, 3],
    "decoder_layers": [2, 4],
    "encoder_attention_heads": [4],
    "decoder_attention_heads": [2, 4],
    "num_layers": [2, 4],
    "num_heads": [2, 4],
    "d_ff": [48, 100],
    "vocab_size": [96, 130],
}
PAIR_SWITCHES: dict[str, list[Any]] = {
    "max_position_embeddings": [24, 40],
    "max_source_positions": [20],
    "max_target_positions": [24],
    "num_mel_bins": [8, 80],
    "num_decoder_layers": [None, 3],
    "d_kv": [8, 16],
    "feed_forward_proj": ["relu", "gated-gelu"],
    "relative_attention_num_buckets": [8],
    "encoder_attention_type": ["local", "transient-global"],
    "num_experts": [4],
    "router_bias": [True, False],
    "num_sparse_encoder_layers": [0, 1, 2],
    "num_sparse_decoder_layers": [0, 1],
    "encoder_sparse_step": [0, 1, 2],
    "decoder_sparse_step": [0, 2],
    "tie_word_embeddings": [True, False],
    "share_encoder_decoder_embeddings": [True, False],
    "decoder_vocab_size": [None, 70],
}


def small_pair(model_type: str, pick: random.Random) -> dict[str, Any]:
    """A tiny encoder-decoder; keys that its class has a default for are left out at random."""
    fields = {field.name for field in dataclasses.fields(CONFIG_MAPPING[model_type])}
    config: dict[str, Any] = {"d_model": pick.choice([32, 64])}
    config |= {key: pick.choice(of) for key, of in PAIR_CHOICES.items() if key in fields}
    config |= {key: pick.choice(of) for key, of in PAIR_SWITCHES.items() if key in fields and pick.random() < 0.7}
    return config | {"architectures": [PAIRS[model_type].architecture], "pad_token_id": 0}


def count(model_type: str, config: dict[str, Any]) -> int:
    """What the named class holds, tied tensors once."""
    built = CONFIG_MAPPING[model_type](**json.loads(json.dumps(config)))
    with torch.device("meta"):
        model = getattr(transformers, config["architectures"][0])(built)
        model.tie_weights()
    return sum(parameter.numel() for parameter in model.parameters())


def main(variants: int) -> None:
    rows = []
    for model_type, family in ENCODERS.items():
        for ending in family.heads:
            for seed in range(variants + 2 if ending == "ForMaskedLM" else variants - 1):
                config = small_encoder(model_type, ending, random.Random(f"{model_type}{ending}{seed}"))
                rows.append({"parameters": count(model_type, config), "config": {"model_type": model_type, **config}})
    for model_type in PAIRS:
        for seed in range(2 * variants):
            config = small_pair(model_type, random.Random(f"{model_type}{seed}"))
            rows.append({"parameters": count(model_type, config), "config": {"model_type": model_type, **config}})
    TARGET.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
