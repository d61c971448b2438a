"""A Hugging Face config.json becomes a model with exactly the parameters of its class, or an error that says why."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshwright.sources.huggingface import model_from_config, read_config
from meshwright.sources.huggingface.defaults import DEFAULTS
from meshwright.sources.huggingface.keys import NAMES
from meshwright.sources.huggingface.refused import REFUSED
from meshwright.sources.huggingface.table import TABLE
from meshwright.sources.huggingface.wrappers import WRAPPERS
from meshwright.spec.errors import InputError, UnsupportedModel
from meshwright.spec.model import Model

COUNTS = json.loads(Path(__file__).with_name("huggingface_counts.json").read_text(encoding="utf-8"))
"""Small configs and what transformers counts for them; made by huggingface_counts.py."""

LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "intermediate_size": 96,
    "vocab_size": 100,
    "max_position_embeddings": 128,
    "tie_word_embeddings": False,
}


def llama(**changes: Any) -> Model:
    return model_from_config({key: value for key, value in (LLAMA | changes).items() if value != "absent"})


# Counts


@pytest.mark.parametrize(
    "row", COUNTS, ids=[f"{row['config']['model_type']}-{index % 3}" for index, row in enumerate(COUNTS)]
)
def test_every_class_counts_what_transformers_builds(row: dict[str, Any]) -> None:
    assert model_from_config(row["config"]).num_parameters == row["parameters"]


def test_every_class_of_transformers_in_the_table_has_frozen_counts_and_defaults() -> None:
    more = json.loads(Path(__file__).with_name("multimodal_counts.json").read_text(encoding="utf-8"))
    counted = {row["config"]["model_type"] for row in COUNTS + more} | {wrapper.text for wrapper in WRAPPERS.values()}
    assert set(DEFAULTS) <= counted
    assert set(DEFAULTS) <= set(TABLE)
    assert not set(TABLE) & set(REFUSED)


def test_defaults_are_known_facts() -> None:
    assert {fact for row in DEFAULTS.values() for fact in row} <= set(NAMES)


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        ({"tie_word_embeddings": True}, -100 * 64),
        ({"attention_bias": True}, 3 * (64 + 2 * 16 + 64)),
        ({"mlp_bias": True}, 3 * (2 * 96 + 64)),
        ({"num_key_value_heads": 8}, 3 * 2 * 64 * 48),
        ({"num_key_value_heads": "absent"}, 3 * 2 * 64 * 48),
        ({"num_key_value_heads": 1}, -3 * 2 * 64 * 8),
        ({"head_dim": 16}, 3 * 64 * 8 * (8 + 8 + 2 + 2)),
        ({"intermediate_size": 97}, 3 * 3 * 64),
        ({"vocab_size": 101}, 2 * 64),
        ({"num_hidden_layers": 4}, 64 * (64 + 16 + 16 + 64) + 3 * 64 * 96 + 2 * 64),
        ({"quantization_config": {"quant_method": "gptq", "bits": 4}}, 0),
        ({"torch_dtype": "bfloat16", "rope_scaling": {"type": "yarn", "factor": 4}}, 0),
    ],
)
def test_changing_one_key_changes_the_count_by_what_it_adds(change: dict[str, Any], difference: int) -> None:
    assert llama(**change).num_parameters - llama().num_parameters == difference


def test_old_key_names_mean_the_same_as_new_ones() -> None:
    old = {"n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 32, "n_ctx": 32, "vocab_size": 100}
    new = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 32}
    assert model_from_config({"model_type": "gpt2", **old}) == model_from_config(
        {"model_type": "gpt2", "vocab_size": 100, **new}
    )


def test_opt_has_two_more_rows_of_positions_than_positions() -> None:
    sizes = {"hidden_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4, "ffn_dim": 96, "vocab_size": 100}
    model = model_from_config({"model_type": "opt", "max_position_embeddings": 32, **sizes})
    assert model.position_parameters == 34 * 64
    assert model.max_positions == 32


def test_falcon_40b_under_its_old_name_has_the_shape_of_the_new_one() -> None:
    sizes = {"hidden_size": 64, "n_head": 8, "n_layer": 2, "vocab_size": 100}
    old = model_from_config({"model_type": "RefinedWeb", "n_head_kv": 2, "alibi": False, **sizes})
    new = model_from_config({"model_type": "falcon", "num_kv_heads": 2, "new_decoder_architecture": True, **sizes})
    assert old.layers == new.layers
    assert old.layers[0].norms == 2
    seven = model_from_config({"model_type": "RefinedWebModel", "multi_query": True, "parallel_attn": True, **sizes})
    assert (seven.layers[0].attention.kv_heads, seven.layers[0].norms) == (1, 1)


def test_mosaic_gpt_without_alibi_learns_its_positions() -> None:
    sizes = {"d_model": 64, "n_heads": 4, "n_layers": 1, "mlp_ratio": 4, "vocab_size": 100, "max_seq_len": 32}
    learned = model_from_config({"model_type": "mosaic_gpt", "no_bias": True, "alibi": False, **sizes})
    alibi = model_from_config({"model_type": "mosaic_gpt", "no_bias": True, "alibi": True, **sizes})
    assert learned.num_parameters - alibi.num_parameters == 32 * 64
    assert (learned.position, alibi.position) == ("learned", "alibi")


def test_mpt_reads_alibi_from_its_nested_attention_config() -> None:
    sizes = {"d_model": 64, "n_heads": 4, "n_layers": 1, "expansion_ratio": 2, "vocab_size": 100}
    model = model_from_config({"model_type": "mpt", "attn_config": {"alibi": True, "qk_ln": False}, **sizes})
    assert (model.position, model.layers[0].mlp.width) == ("alibi", 128)


def test_qwen_1_gives_its_mlp_width_doubled() -> None:
    sizes = {"hidden_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4, "intermediate_size": 200}
    model = model_from_config({"model_type": "qwen", "vocab_size": 100, "no_bias": True, **sizes})
    assert model.layers[0].mlp.width == 100


def test_prediction_layers_are_left_out() -> None:
    row = next(row for row in COUNTS if row["config"]["model_type"] == "deepseek_v3")
    with_prediction = model_from_config(row["config"] | {"num_nextn_predict_layers": 1})
    assert with_prediction.num_parameters == row["parameters"]


def test_searched_architectures_differ_layer_by_layer() -> None:
    attention, mlp = {"n_heads_in_group": 4, "no_op": False}, {"ffn_mult": 2.625, "no_op": False}
    blocks = [
        {"attention": attention, "ffn": mlp},
        {"attention": {"no_op": True, "n_heads_in_group": None}, "ffn": mlp},
        {"attention": attention, "ffn": {"no_op": True, "ffn_mult": None}},
    ]
    changes = {"model_type": "nemotron-nas", "architectures": ["DeciLMForCausalLM"], "block_configs": blocks}
    model = llama(**changes, intermediate_size=None, num_key_value_heads=None)
    assert [layer.attention.kind for layer in model.layers] == ["full", "none", "full"]
    assert [layer.mlp.width for layer in model.layers] == [256, 256, 0]
    assert [layer.norms for layer in model.layers] == [2, 1, 1]
    assert model.layers[0].attention.kv_heads == 2


# Towers beside the text stack


def test_gemma_3_counts_its_tower_and_fills_its_text_config_from_the_class() -> None:
    text = {"model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34}
    vision = {"hidden_size": 1152, "image_size": 896, "intermediate_size": 4304, "num_hidden_layers": 27}
    vision |= {"patch_size": 14, "vision_use_head": False}
    model = model_from_config({"model_type": "gemma3", "text_config": text, "vision_config": vision})
    assert model.num_parameters == 4_300_079_472  # the published checkpoint of gemma-3-4b
    assert model.extra_parameters == 419_816_304
    assert model.notes[0] == "419,816,304 parameters beside the text stack are counted, but not planned"
    assert "num_attention_heads 8" in model.notes[1]


def test_qwen_2_5_vl_is_read_with_its_text_keys_at_the_top() -> None:
    vision = {"depth": 32, "hidden_size": 1280, "intermediate_size": 3420, "out_hidden_size": 3584, "patch_size": 14}
    sizes = {"hidden_size": 3584, "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4}
    sizes |= {"intermediate_size": 18944, "vocab_size": 152064}
    model = model_from_config({"model_type": "qwen2_5_vl", "vision_config": vision | {"in_chans": 3}, **sizes})
    assert model.num_parameters == 8_292_166_656  # the published checkpoint of Qwen2.5-VL-7B


def test_a_tower_that_is_not_known_is_refused() -> None:
    with pytest.raises(UnsupportedModel, match="OddForConditionalGeneration") as caught:
        model_from_config(
            {"architectures": ["OddForConditionalGeneration"], "text_config": LLAMA, "vision_config": {"depth": 2}}
        )
    assert caught.value.missing == ("what vision_config builds beside the text stack",)
    with pytest.raises(UnsupportedModel, match="what audio_config builds"):
        model_from_config({"model_type": "gemma3", "text_config": {}, "audio_config": {"depth": 2}})


def test_a_text_stack_in_a_wrapper_of_nothing_else_is_read() -> None:
    model = model_from_config({"model_type": "wrapped", "text_config": LLAMA})
    assert model.num_parameters == llama().num_parameters


# Windows and experts, layer by layer


def windows(config: dict[str, Any]) -> list[int]:
    return [layer.attention.window for layer in model_from_config(config).layers]


def qwen2(**changes: Any) -> dict[str, Any]:
    return (
        LLAMA | {"model_type": "qwen2", "num_hidden_layers": 4, "sliding_window": 32, "max_window_layers": 2} | changes
    )


def test_a_window_counts_only_where_it_is_switched_on() -> None:
    assert windows(qwen2(use_sliding_window=False)) == [0, 0, 0, 0]
    assert windows(qwen2()) == [0, 0, 0, 0]
    assert windows(qwen2(use_sliding_window=True)) == [0, 0, 32, 32]


def test_mistral_slides_everywhere_unless_the_window_is_null() -> None:
    mistral = LLAMA | {"model_type": "mistral"}
    assert windows(mistral | {"sliding_window": 16}) == [16, 16, 16]
    assert windows(mistral | {"sliding_window": None}) == [0, 0, 0]
    assert windows(mistral) == [4096, 4096, 4096]


@pytest.mark.parametrize(
    ("model_type", "changes", "expected"),
    [
        ("gemma2", {}, [8, 0, 8, 0, 8, 0]),
        ("gemma3_text", {"sliding_window_pattern": 3}, [8, 8, 0, 8, 8, 0]),
        ("gemma3_text", {}, [8, 8, 8, 8, 8, 0]),
        ("cohere2", {}, [8, 8, 8, 0, 8, 8]),
        ("exaone4", {"sliding_window_pattern": "LLG"}, [8, 8, 0, 8, 8, 0]),
        ("gpt_oss", {"num_local_experts": 4, "num_experts_per_tok": 2}, [8, 0, 8, 0, 8, 0]),
        ("olmo3", {}, [8, 8, 8, 0, 8, 8]),
        ("llama", {"layer_types": ["sliding_attention", "full_attention"] * 3}, [8, 0, 8, 0, 8, 0]),
        ("llama", {}, [0] * 6),
    ],
)
def test_each_class_has_its_pattern_of_windows(model_type: str, changes: dict[str, Any], expected: list[int]) -> None:
    assert (
        windows(LLAMA | {"model_type": model_type, "num_hidden_layers": 6, "sliding_window": 8} | changes) == expected
    )


def test_llama_4_sees_chunks_in_layers_with_rotary_positions() -> None:
    config = LLAMA | {"model_type": "llama4_text", "num_hidden_layers": 4, "attention_chunk_size": 16}
    model = model_from_config(
        config | {"num_local_experts": 4, "interleave_moe_layer_step": 2, "intermediate_size_mlp": 7}
    )
    assert [layer.attention.window for layer in model.layers] == [16, 16, 16, 0]
    assert [layer.attention.chunked for layer in model.layers] == [True, True, True, False]
    assert [layer.mlp.width for layer in model.layers] == [7, 0, 7, 0]


def sparse(config: dict[str, Any]) -> list[int]:
    return [index for index, layer in enumerate(model_from_config(config).layers) if layer.mlp.is_moe]


MOE = LLAMA | {"num_hidden_layers": 6, "moe_intermediate_size": 16, "num_experts_per_tok": 2}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"model_type": "qwen3_moe", "num_experts": 4}, [0, 1, 2, 3, 4, 5]),
        ({"model_type": "qwen3_moe", "num_experts": 4, "decoder_sparse_step": 2}, [1, 3, 5]),
        ({"model_type": "qwen3_moe", "num_experts": 4, "mlp_only_layers": [0, 3]}, [1, 2, 4, 5]),
        ({"model_type": "qwen3_moe", "num_experts": 0}, []),
        ({"model_type": "glm4_moe", "n_routed_experts": 4, "first_k_dense_replace": 2}, [2, 3, 4, 5]),
        ({"model_type": "glm4_moe", "n_routed_experts": 4, "first_k_dense_replace": 9}, []),
        ({"model_type": "glm4_moe", "n_routed_experts": 4, "mlp_layer_types": ["dense", "sparse"] * 3}, [1, 3, 5]),
        ({"model_type": "glm4_moe", "n_routed_experts": 4, "moe_layer_freq": [0, 0, 0, 1, 1, 0]}, [3, 4]),
        ({"model_type": "ernie4_5_moe", "moe_num_experts": 4, "moe_layer_start_index": 3}, [3, 4, 5]),
        ({"model_type": "mixtral", "num_local_experts": 4, "sliding_window": None}, [0, 1, 2, 3, 4, 5]),
    ],
)
def test_each_class_has_its_rule_for_sparse_layers(changes: dict[str, Any], expected: list[int]) -> None:
    assert sparse(MOE | changes) == expected


# Which class a config belongs to


def test_a_config_without_model_type_and_with_llamas_keys_is_read_as_llama_and_says_so() -> None:
    model = llama(model_type="absent", architectures="absent", rms_norm_eps=1e-6)
    assert model.num_parameters == llama().num_parameters
    assert "no model_type" in model.notes[0]


def test_a_config_without_model_type_and_with_other_keys_is_refused() -> None:
    for odd in (
        {"rms_norm_eps": "absent"},
        {"rms_norm_eps": 1e-6, "num_experts": 8},
        {"rms_norm_eps": 1e-6, "kv_lora_rank": 8},
    ):
        with pytest.raises(UnsupportedModel, match="model_type"):
            llama(model_type="absent", architectures="absent", **odd)


def test_an_unknown_model_type_of_a_known_class_is_that_class() -> None:
    model = llama(model_type="my-llama")
    assert model.num_parameters == llama().num_parameters
    assert "model_type 'my-llama' is not known here, but its class LlamaForCausalLM is" in model.notes


STATED = {
    "model_type": "novel",
    "architectures": ["NovelForCausalLM"],
    "attention_bias": False,
    "mlp_bias": False,
    "use_qk_norm": False,
    "rms_norm_eps": 1e-6,
    "hidden_act": "silu",
}


def test_an_unknown_class_is_read_where_its_keys_state_every_fact() -> None:
    model = llama(**STATED)
    assert model.num_parameters == llama().num_parameters
    assert any("NovelForCausalLM is not known here" in note for note in model.notes)


@pytest.mark.parametrize(
    ("change", "missing"),
    [
        ({"attention_bias": "absent"}, "whether its attention projections have biases"),
        ({"attention_bias": True}, "what exactly attention_bias adds"),
        ({"use_qk_norm": "absent"}, "whether queries and keys are normed"),
        ({"rms_norm_eps": "absent"}, "the kind of its norms"),
        ({"hidden_act": "gelu"}, "whether its MLP is gated"),
        ({"tie_word_embeddings": "absent"}, "whether the embeddings are tied"),
        ({"num_experts": 4}, "what num_experts builds"),
        ({"kv_lora_rank": 4}, "what kv_lora_rank builds"),
    ],
)
def test_an_unknown_class_is_refused_with_the_facts_that_are_missing(change: dict[str, Any], missing: str) -> None:
    with pytest.raises(UnsupportedModel, match="NovelForCausalLM") as caught:
        llama(**STATED | change)
    assert missing in caught.value.missing


@pytest.mark.parametrize("model_type", ["prophetnet", "zamba2", "xlstm", "jetmoe"])
def test_kinds_that_are_no_plain_decoder_are_refused_by_name(model_type: str) -> None:
    with pytest.raises(UnsupportedModel, match=model_type) as caught:
        llama(model_type=model_type, architectures="absent")
    assert caught.value.missing


@pytest.mark.parametrize("model_type", ["qwen3_next", "granitemoehybrid", "lfm2", "minimax", "kimi_linear"])
def test_layers_of_an_unknown_type_in_a_hybrid_are_refused(model_type: str) -> None:
    config = next(row["config"] for row in COUNTS if row["config"]["model_type"] == model_type)
    kinds = ["full_attention", *["novel_mixing"] * (config["num_hidden_layers"] - 1)]
    with pytest.raises(UnsupportedModel, match=r"layers of type 'novel_mixing'"):
        model_from_config({**config, "layer_types": kinds})


def test_sizes_of_a_mixer_that_the_class_fills_in_are_noted() -> None:
    config = next(row["config"] for row in COUNTS if row["config"]["model_type"] == "mamba")
    (note,) = model_from_config({key: value for key, value in config.items() if key != "state_size"}).notes
    assert note.endswith("size of the state 16, width of the convolution 4")


def test_layers_of_an_unknown_type_are_refused() -> None:
    with pytest.raises(UnsupportedModel, match=r"layers of type 'linear_attention' \(1 of 3\)"):
        llama(layer_types=["full_attention", "linear_attention", "full_attention"])


@pytest.mark.parametrize(
    "key", ["hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size"]
)
def test_a_config_that_lacks_a_size_is_refused_with_its_name(key: str) -> None:
    with pytest.raises(UnsupportedModel, match=key):
        llama(**{key: "absent"})


def test_what_the_class_fills_in_is_noted() -> None:
    model = model_from_config(LLAMA | {"model_type": "mistral", "num_key_value_heads": None, "sliding_window": None})
    assert model.layers[0].attention.kv_heads == 8
    assert model.notes == ("not in the file, so the class's default: num_key_value_heads 8",)


def test_a_quantised_checkpoint_is_counted_unpacked_and_noted() -> None:
    model = llama(quantization_config={"quant_method": "awq", "bits": 4})
    [note] = model.notes
    assert note.startswith("weights are stored as awq w4g128 (4.156 bits each with their scales)")


# Wrong values


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"hidden_size": 0},
            "hidden_size is 0, but it must be a whole number of at least 1; the nearest value that works is 1",
        ),
        ({"hidden_size": -4096}, "hidden_size is -4096, but it must be a whole number of at least 1"),
        ({"hidden_size": "4096"}, "hidden_size is '4096', but it must be .*; the nearest value that works is 4096"),
        (
            {"hidden_size": 64.5},
            "hidden_size is 64.5, but it must be a whole number .*; the nearest value that works is 64",
        ),
        ({"hidden_size": [64, 64.5]}, r"hidden_size is \[64, 64.5\], but it must be a whole number"),
        ({"hidden_size": True}, "hidden_size is true, but it must be a whole number"),
        ({"hidden_size": float("nan")}, "hidden_size is nan, but it must be a whole number"),
        ({"hidden_size": float("inf")}, "hidden_size is inf, but it must be a whole number"),
        ({"num_hidden_layers": 10**9}, "num_hidden_layers is 1000000000, but .* from 1 to 10,000; .* works is 10000"),
        (
            {"num_attention_heads": 7},
            r"num_attention_heads is 7, but it must be a divisor of hidden_size \(64\).* works is 8",
        ),
        (
            {"num_key_value_heads": 3},
            r"num_key_value_heads is 3, .* divisor of num_attention_heads \(8\); .* works is 2",
        ),
        ({"num_key_value_heads": 0}, "num_key_value_heads is 0"),
        (
            {"tie_word_embeddings": "yes"},
            "tie_word_embeddings is 'yes', but it must be true or false; .* works is true",
        ),
        (
            {"attention_bias": 0},
            "attention_bias is 0, but it must be true or false; the nearest value that works is false",
        ),
        ({"attention_dropout": 7}, "attention_dropout is 7, but it must be a number from 0 to 1"),
        ({"n_embd": 128}, "hidden_size is 64, but n_embd is 128: they mean the same; keep one of them"),
        ({"model_type": 5}, "model_type is 5, but it must be text"),
        ({"architectures": "LlamaForCausalLM"}, "architectures is 'LlamaForCausalLM', but it must be a list"),
        (
            {"layer_types": ["full_attention"]},
            "layer_types is '1 entries long', but it must be a list with one entry for each of",
        ),
        ({"quantization_config": "awq"}, "quantization_config is 'awq', but it must be a mapping"),
    ],
)
def test_a_wrong_value_names_file_key_value_rule_and_remedy(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        llama(**change)
    assert str(caught.value).startswith("config.json: ")


def test_more_active_experts_than_experts_are_refused() -> None:
    config = MOE | {"model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 8}
    with pytest.raises(InputError, match=r"num_experts_per_tok is 8, but it must be at most num_local_experts \(4\)"):
        model_from_config(config)


# Files


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ('{"hidden_size": 64,\n "layers" 2}', r"line 2, column 11: not valid JSON"),
        ('{"hidden_size": 64', "line 1, column 19: not valid JSON"),
        ("[1]", "must hold one JSON object, but holds a list"),
        ('"text"', "must hold one JSON object, but holds a str"),
        ('{"a": 1, "a": 2}', "a is given twice: 1 and 2; keep one of them"),
        ('{"a": ' + "1" * 5000 + "}", "holds a number that can't be read"),
        ("[" * 200_000, "is nested too deeply"),
        ('{"weight_map": {}}', "is an index of weight files, not a config"),
        ('{"peft_type": "LORA"}', "is the config of an adapter"),
        ('{"_class_name": "UNet2DModel"}', "UNet2DModel"),
        ("{}", "model_type"),
    ],
)
def test_a_bad_file_says_where_it_goes_wrong(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        read_config(path)
    assert str(path) in str(caught.value)


def test_a_file_that_is_no_config_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"the folder holds no config\.json"):
        read_config(tmp_path)
    with pytest.raises(InputError, match="there is no such file"):
        read_config(tmp_path / "none.json")
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(b"\xff" * 100)
    with pytest.raises(InputError, match=r"is not UTF-8 text \(byte 0\)"):
        read_config(weights)
    weights.write_bytes(b" " * 10_000_001)
    with pytest.raises(InputError, match="holds more than 10 MB"):
        read_config(weights)


def test_a_key_given_twice_with_one_value_is_no_contradiction(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA)[:-1] + ', "vocab_size": 100}')
    assert read_config(path).num_parameters == llama().num_parameters


def test_infinity_where_nobody_looks_does_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA | {"time_step_limit": [0.0, float("inf")]}))
    assert read_config(path).num_parameters == llama().num_parameters


def test_more_heads_of_a_state_space_than_its_width_holds_are_refused() -> None:
    # the defaults of Bamba beside a hidden size of 64: 128 heads in a mixer of 128 hold one each; in 16 hold none
    config = LLAMA | {"model_type": "bamba", "hidden_size": 8}
    with pytest.raises(InputError, match=r"is 128, .*at most the width of the mixer \(16\)"):
        model_from_config(config)


JUNK = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.lists(st.integers(0, 9), max_size=4),
    st.dictionaries(st.text(max_size=4), st.integers(), max_size=2),
)  # fmt: skip


@given(
    model_type=st.sampled_from(sorted(TABLE)),
    key=st.sampled_from(
        sorted({name for names in NAMES.values() for name in names} | {"layer_types", "block_configs"})
    ),
    value=JUNK,
)
def test_no_value_of_any_key_makes_a_traceback(model_type: str, key: str, value: Any) -> None:
    config = LLAMA | {"model_type": model_type, key: value}
    with contextlib.suppress(InputError):
        assert model_from_config(config).num_parameters > 0
