"""Quantised checkpoints: how their weights are stored, against published sizes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from meshwright.sources.huggingface import model_from_config, read_config
from meshwright.spec.errors import InputError
from meshwright.spec.stored import stored_bytes

LLAMA: dict[str, Any] = {
    **{"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 8},
    **{"intermediate_size": 96, "vocab_size": 100},
}


def quantised(**block: Any) -> Any:
    return model_from_config(LLAMA | {"quantization_config": block})


@pytest.mark.parametrize(
    ("block", "bits"),
    [
        ({"quant_method": "awq", "bits": 4, "group_size": 128}, 4 + (16 + 4) / 128),
        ({"quant_method": "gptq", "bits": 8, "group_size": 32}, 8 + (16 + 8) / 32),
        ({"quant_method": "gptq", "bits": 4, "group_size": -1}, 4),
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, 8 + 32 / 128**2),
        # OCP microscaling formats 1.0: 32 elements and a shared 8-bit exponent
        ({"quant_method": "mxfp4"}, 4.25),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, 4.5),
        # QLoRA (arXiv 2305.14314), section 3: double quantisation takes 0.5 bits a weight down to 0.127
        ({"load_in_4bit": True}, 4.5),
        ({"load_in_4bit": True, "bnb_4bit_use_double_quant": True}, 4.127),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"group_0": {"weights": {"num_bits": 4, "type": "int", "group_size": 128}}},
            },
            4 + 16 / 128,
        ),
    ],
)
def test_a_weight_takes_its_bits_and_its_share_of_the_scale(block: dict[str, Any], bits: float) -> None:
    model = quantised(**block)
    assert model.stored.bits_per_weight == pytest.approx(bits, abs=1e-4)
    assert model.num_parameters == model_from_config(LLAMA).num_parameters
    assert any("counted unpacked" in note for note in model.notes)


def test_what_is_not_in_a_layer_stays_in_sixteen_bits() -> None:
    model = quantised(quant_method="fp8")
    matrices = 3 * (4 * 64 * 64 + 3 * 64 * 96)
    assert stored_bytes(model) == matrices + 2 * (model.num_parameters - matrices)
    assert stored_bytes(model_from_config(LLAMA)) == 2 * model.num_parameters


def test_a_method_that_is_not_known_is_said_and_counted_unpacked() -> None:
    model = quantised(quant_method="vptq")
    assert model.stored is None
    assert "quantised (vptq)" in model.notes[-1]
    # DeepSeek-V4 stores its experts in fp4 beside fp8
    assert quantised(quant_method="fp8", expert_dtype="fp4").stored is None


@pytest.mark.parametrize(
    ("block", "words"),
    [
        ({"quant_method": "awq", "bits": "four"}, "quantization_config.bits is 'four'"),
        ({"quant_method": "gptq", "group_size": 0}, "quantization_config.group_size is 0"),
        ({"quant_method": "fp8", "weight_block_size": [128]}, "quantization_config.weight_block_size is [128]"),
        ({"quant_method": 4}, "quantization_config.quant_method is 4"),
        ({"load_in_4bit": True, "load_in_8bit": True}, "both on"),
        ({"quant_method": "compressed-tensors", "config_groups": [1]}, "config_groups is [1]"),
    ],
)
def test_a_malformed_block_is_named(block: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError) as caught:
        quantised(**block)
    assert words in str(caught.value)


def test_gpt_oss_120b_stores_as_many_bytes_as_its_model_card_says(shared: Path) -> None:
    path = shared / "data" / "field" / "configs" / "openai__gpt-oss-120b.json"
    if not path.is_file():
        pytest.skip(f"field config not found: {path}")
    # gpt-oss model card (OpenAI 2025, arXiv 2508.10925), table 1: checkpoint of 60.8 GiB
    assert stored_bytes(read_config(path)) / 2**30 == pytest.approx(60.8, abs=0.05)
