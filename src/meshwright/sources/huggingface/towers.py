"""What stands beside the text stack of a multimodal model, counted: the vision tower and the projector into the stack.

One function per kind of tower; it reads the vision_config with the defaults of its class in transformers 5.24.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from meshwright.sources import checks
from meshwright.spec.errors import UnsupportedModel


@dataclass(frozen=True)
class Tower:
    """The vision_config of one model, and the config around it."""

    vision: Mapping[str, Any]
    outer: Mapping[str, Any]
    where: str
    hidden: int
    """Width of the text stack."""

    def size(self, key: str, default: int) -> int:
        value = self.vision.get(key)
        return default if value is None else checks.whole(self.where, f"vision_config.{key}", value)

    def flag(self, key: str, default: bool) -> bool:
        value = self.vision.get(key)
        return default if value is None else checks.flag(self.where, f"vision_config.{key}", value)

    def around(self, key: str, default: int) -> int:
        value = self.outer.get(key)
        return default if value is None else checks.whole(self.where, key, value)


def clip_with_projector(tower: Tower) -> int:
    """LLaVA 1.5: CLIP with its class token, and a projector of two matrices."""
    bias = checks.flag(tower.where, "multimodal_projector_bias", tower.outer.get("multimodal_projector_bias", True))
    features = tower.outer.get("vision_feature_layer")
    width = tower.size("hidden_size", 1024) * (len(features) if isinstance(features, list) else 1)
    return _clip(tower) + _linear(width, tower.hidden, bias) + _linear(tower.hidden, tower.hidden, bias)


def phi3_vision(tower: Tower) -> int:
    """Phi-3-vision: CLIP-L of 336 pixels, two learned separators and two matrices from four merged patches."""
    image = checks.mapping(tower.where, "img_processor", tower.outer.get("img_processor") or {})
    layer = checks.mapping(tower.where, "embd_layer", tower.outer.get("embd_layer") or {})
    known = {"name": "clip_vision_model", "model_name": "openai/clip-vit-large-patch14-336", "image_dim_out": 1024}
    merging = {"projection_cls": "mlp", "use_hd_transform": True, "with_learnable_separator": True}
    odd = [f"img_processor.{key}" for key, value in known.items() if image.get(key) != value]
    odd += [f"embd_layer.{key}" for key, value in merging.items() if layer.get(key) != value]
    if odd:
        facts = [f"what {key} builds where it isn't Phi-3-vision's" for key in odd]
        raise UnsupportedModel("Phi3VForCausalLM", facts, tower.where)
    merged = 4 * 1024
    return _clip(tower) + 2 * merged + _linear(merged, tower.hidden) + _linear(tower.hidden, tower.hidden)


def _clip(tower: Tower) -> int:
    width, ffn = tower.size("hidden_size", 1024), tower.size("intermediate_size", 4096)
    patch, image = tower.size("patch_size", 14), tower.size("image_size", 336)
    embeddings = width + _patches(tower, width, patch) + ((image // patch) ** 2 + 1) * width
    return embeddings + tower.size("num_hidden_layers", 24) * _block(width, ffn) + 2 * _norm(width)


def siglip_with_projector(tower: Tower) -> int:
    """Gemma 3: SigLIP, with or without its pooling head, and one matrix after a norm."""
    width, ffn = tower.size("hidden_size", 768), tower.size("intermediate_size", 3072)
    patch, image = tower.size("patch_size", 16), tower.size("image_size", 224)
    embeddings = _patches(tower, width, patch) + width + (image // patch) ** 2 * width
    stack = tower.size("num_hidden_layers", 12) * _block(width, ffn) + _norm(width)
    head = width + _block(width, ffn) - _norm(width) if tower.flag("vision_use_head", True) else 0
    return embeddings + stack + head + width * tower.hidden + width


def llama4_tower(tower: Tower) -> int:
    """Llama 4: a class token, positions, an adapter after pixel shuffle, and one matrix into the stack."""
    width, ffn = tower.size("hidden_size", 768), tower.size("intermediate_size", 5632)
    patch, image = tower.size("patch_size", 14), tower.size("image_size", 448)
    embeddings = width + ((image // patch) ** 2 + 1) * width + _patches(tower, width, patch)
    stack = tower.size("num_hidden_layers", 34) * _block(width, ffn) + 2 * _norm(width)
    middle, out = tower.size("projector_input_dim", 4096), tower.size("projector_output_dim", 4096)
    adapter = ffn * middle + out**2
    return embeddings + stack + adapter + tower.size("vision_output_dim", 7680) * tower.hidden


def pixtral_with_projector(tower: Tower) -> int:
    """Mistral 3: Pixtral (gated, without biases), a patch merger and two matrices."""
    width, ffn = tower.size("hidden_size", 1024), tower.size("intermediate_size", 4096)
    head = tower.size("head_dim", width // tower.size("num_attention_heads", 16))
    inner = head * tower.size("num_attention_heads", 16)
    block = 4 * width * inner + 3 * width * ffn + 2 * width
    stack = _patches(tower, width, tower.size("patch_size", 14)) + width
    stack += tower.size("num_hidden_layers", 24) * block
    bias = checks.flag(tower.where, "multimodal_projector_bias", tower.outer.get("multimodal_projector_bias", False))
    merger = width + tower.around("spatial_merge_size", 2) ** 2 * width**2
    return stack + merger + _linear(width, tower.hidden, bias) + _linear(tower.hidden, tower.hidden, bias)


def qwen3_tower(tower: Tower) -> int:
    """Qwen3-VL: the tower of Qwen3.5, and further mergers that feed early layers of the stack."""
    width = tower.size("hidden_size", 1152)
    merged = width * tower.size("spatial_merge_size", 2) ** 2
    deep = tower.vision.get("deepstack_visual_indexes", [8, 16, 24])
    count = len(checks.listed(tower.where, "vision_config.deepstack_visual_indexes", deep))
    merger = _linear(merged, merged) + _linear(merged, tower.size("out_hidden_size", 3584))
    return qwen3_5_tower(tower) + count * (_norm(merged) + merger)


def qwen3_5_tower(tower: Tower) -> int:
    """Qwen3.5: positions, a stack of plain blocks, and a merger of two matrices."""
    width, ffn = tower.size("hidden_size", 1152), tower.size("intermediate_size", 4304)
    temporal, out = tower.size("temporal_patch_size", 2), tower.size("out_hidden_size", 3584)
    embeddings = _patches(tower, width, tower.size("patch_size", 16), "in_channels") * temporal + width
    embeddings += tower.size("num_position_embeddings", 2304) * width
    merged = width * tower.size("spatial_merge_size", 2) ** 2
    merger = _linear(merged, merged) + _linear(merged, out)
    stack = tower.size("depth", 27) * _block(width, ffn)
    return embeddings + stack + _norm(width) + merger


def qwen2_5_tower(tower: Tower) -> int:
    """Qwen2.5-VL: gated blocks with biases and RMS norms, and one merger."""
    width, ffn = tower.size("hidden_size", 3584), tower.size("intermediate_size", 3420)
    channels = "in_chans" if "in_chans" in tower.vision else "in_channels"
    temporal, out = tower.size("temporal_patch_size", 2), tower.size("out_hidden_size", 3584)
    embeddings = _patches(tower, width, tower.size("patch_size", 14), channels) * temporal
    block = 4 * _linear(width, width) + 2 * _linear(width, ffn) + _linear(ffn, width) + 2 * width
    merged = width * tower.size("spatial_merge_size", 2) ** 2
    return embeddings + tower.size("depth", 32) * block + width + _linear(merged, merged) + _linear(merged, out)


def _linear(width: int, out: int, bias: bool = True) -> int:
    return width * out + (out if bias else 0)


def _norm(width: int) -> int:
    return 2 * width


def _block(width: int, ffn: int) -> int:
    """A plain transformer block with biases everywhere and two layer norms."""
    return 4 * _linear(width, width) + _linear(width, ffn) + _linear(ffn, width) + 2 * _norm(width)


def _patches(tower: Tower, width: int, patch: int, channels: str = "num_channels") -> int:
    return width * tower.size(channels, 3) * patch**2


@dataclass(frozen=True)
class Wrapper:
    """A multimodal class: the row of its text stack where text_config names none, its tower, whether it ties its
    embeddings by default, and whether the text stack decides that alone."""

    text: str
    count: Callable[[Tower], int]
    tied: bool = False
    text_ties: bool = False


WRAPPERS: dict[str, Wrapper] = {
    "llava": Wrapper("llama", clip_with_projector),
    "phi3_v": Wrapper("phi3", phi3_vision),
    "gemma3": Wrapper("gemma3_text", siglip_with_projector, tied=True),
    "llama4": Wrapper("llama4_text", llama4_tower, text_ties=True),
    "mistral3": Wrapper("mistral", pixtral_with_projector, tied=True),
    "qwen3_vl": Wrapper("qwen3_vl_text", qwen3_tower),
    "qwen3_vl_moe": Wrapper("qwen3_vl_moe_text", qwen3_tower),
    "qwen3_5": Wrapper("qwen3_5_text", qwen3_5_tower),
    "qwen3_5_moe": Wrapper("qwen3_5_moe_text", qwen3_5_tower),
    "qwen2_5_vl": Wrapper("qwen2_5_vl_text", qwen2_5_tower),
}
"""Multimodal model_types whose towers are counted."""
