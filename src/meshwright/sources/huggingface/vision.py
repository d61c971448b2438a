"""Vision and audio towers, counted: one function per kind of tower, with its class's defaults in transformers 5.24.

A function takes the tower's part of the config and says how many parameters it holds.
"""

from __future__ import annotations

from collections.abc import Callable

from meshwright.sources import checks
from meshwright.sources.huggingface.parts import Part, block, gated, grid, linear, norm, patches


def clip(part: Part) -> int:
    """CLIP: a class token, learned positions, a norm before and after the stack."""
    width, ffn = part.size("hidden_size", 768), part.size("intermediate_size", 3072)
    embeddings = width + patches(part, width, 32) + (grid(part, 224, 32) + 1) * width
    return embeddings + part.size("num_hidden_layers", 12) * block(width, ffn) + 2 * norm(width)


def siglip(part: Part) -> int:
    """SigLIP: no class token; with or without a head that pools by attention."""
    width, ffn = part.size("hidden_size", 768), part.size("intermediate_size", 3072)
    head = width + block(width, ffn) - norm(width) if part.flag("vision_use_head", True) else 0
    return _siglip_stack(part, width, ffn, 16) + head


def idefics2(part: Part) -> int:
    """Idefics 2: SigLIP for images of any shape, without a head."""
    return _siglip_stack(part, part.size("hidden_size", 768), part.size("intermediate_size", 3072), 32)


def idefics3(part: Part) -> int:
    """Idefics 3 and SmolVLM: as Idefics 2, wider by default."""
    return _siglip_stack(part, part.size("hidden_size", 1152), part.size("intermediate_size", 3072), 32)


def _siglip_stack(part: Part, width: int, ffn: int, patch: int) -> int:
    embeddings = patches(part, width, patch) + width + grid(part, 224, patch) * width
    return embeddings + part.size("num_hidden_layers", 12) * block(width, ffn) + norm(width)


def pixtral(part: Part) -> int:
    """Pixtral: gated MLPs, RMS norms, no biases, rotary positions."""
    width, ffn = part.size("hidden_size", 1024), part.size("intermediate_size", 4096)
    each = 4 * width * width + gated(width, ffn) + 2 * width
    return patches(part, width, 16) + width + part.size("num_hidden_layers", 24) * each


def internvl(part: Part) -> int:
    """InternViT: a class token, learned positions, a scale per channel after attention and MLP."""
    width, ffn = part.size("hidden_size", 1024), part.size("intermediate_size", 4096)
    layer_norms = checks.choice(
        part.where, part.key("norm_type"), part.values.get("norm_type", "layer_norm"), ("layer_norm", "rms_norm")
    )
    bias, normed = part.flag("attention_bias", False), part.flag("use_qk_norm", False)
    attention = 3 * linear(width, width, bias) + linear(width, width) + (2 * width if normed else 0)
    norms = 2 * width * (2 if layer_norms == "layer_norm" else 1)
    each = attention + linear(width, ffn) + linear(ffn, width) + norms + 2 * width
    positions = (grid(part, 448, 14) + 1) * width if part.flag("use_absolute_position_embeddings", True) else 0
    token = width if part.flag("use_mask_token", False) else 0
    last = 0 if part.flag("use_mean_pooling", True) else norm(width)
    embeddings = width + token + patches(part, width, 14) + width + positions
    return embeddings + part.size("num_hidden_layers", 24) * each + last


def qwen2_vl(part: Part) -> int:
    """Qwen2-VL: patches over two frames, and a merger of two matrices to `hidden_size`."""
    width, out = part.size("embed_dim", 1280), part.size("hidden_size", 3584)
    ffn = width * part.size("mlp_ratio", 4)
    stack = part.size("depth", 32) * block(width, ffn)
    merged = width * part.size("spatial_merge_size", 2) ** 2
    return _frames(part, width, 14) + stack + norm(width) + linear(merged, merged) + linear(merged, out)


def qwen2_5_vl(part: Part) -> int:
    """Qwen2.5-VL: gated blocks with biases and RMS norms, and one merger."""
    return _qwen2_5(part, part.size("num_heads", 16))


def exaone4_5(part: Part) -> int:
    """EXAONE 4.5: as Qwen2.5-VL, with fewer key/value heads than query heads."""
    return _qwen2_5(part, part.size("num_key_value_heads", 8))


def _qwen2_5(part: Part, kv_heads: int) -> int:
    width, ffn = part.size("hidden_size", 3584), part.size("intermediate_size", 3420)
    out = part.size("out_hidden_size", 3584)
    kv = width // part.size("num_heads", 16) * kv_heads
    each = 2 * linear(width, width) + 2 * linear(width, kv) + gated(width, ffn, True) + 2 * width
    merged = width * part.size("spatial_merge_size", 2) ** 2
    merger = width + linear(merged, merged) + linear(merged, out)
    return _frames(part, width, 14) + part.size("depth", 32) * each + merger


def qwen3_vl(part: Part) -> int:
    """Qwen3-VL: learned positions, and further mergers that feed early layers of the text stack."""
    return _qwen3(part, len(part.listed("deepstack_visual_indexes", [8, 16, 24])))


def qwen3_5(part: Part) -> int:
    """Qwen3.5: as Qwen3-VL, with one merger."""
    return _qwen3(part, 0)


def _qwen3(part: Part, more: int) -> int:
    width, ffn = part.size("hidden_size", 1152), part.size("intermediate_size", 4304)
    embeddings = _frames(part, width, 16) + width + part.size("num_position_embeddings", 2304) * width
    merged = width * part.size("spatial_merge_size", 2) ** 2
    merger = linear(merged, merged) + linear(merged, part.size("out_hidden_size", 3584))
    stack = part.size("depth", 27) * block(width, ffn)
    return embeddings + stack + norm(width) + merger + more * (norm(merged) + merger)


def _frames(part: Part, width: int, patch: int) -> int:
    """Patches over `temporal_patch_size` frames; the first Qwen2-VL files call the colour channels `in_chans`."""
    channels = "in_chans" if "in_chans" in part.values and "in_channels" not in part.values else "in_channels"
    return patches(part, width, patch, channels) * part.size("temporal_patch_size", 2)


def glm4v(part: Part) -> int:
    """GLM-4V: gated blocks of width `out_hidden_size`, a convolution that halves both sides, a gated merger."""
    width, out = part.size("hidden_size", 1536), part.size("out_hidden_size", 4096)
    merge = part.size("spatial_merge_size", 2)
    attention = 3 * linear(width, width, part.flag("attention_bias", False)) + width**2
    each = attention + gated(width, out) + 2 * width
    embeddings = _frames(part, width, 14) + width + grid(part, 336, 14) * width
    merger = out**2 + norm(out) + gated(out, part.size("intermediate_size", 13696))
    return embeddings + part.size("depth", 24) * each + 2 * width + linear(width * merge**2, out) + merger


def kimi_k25(part: Part) -> int:
    """MoonViT: learned positions on a grid, plain blocks."""
    width, ffn = part.size("hidden_size", 1152), part.size("intermediate_size", 4304)
    positions = part.size("pos_emb_height", 64) * part.size("pos_emb_width", 64) * width
    stack = part.size("num_hidden_layers", 27) * block(width, ffn)
    return patches(part, width, 14) + width + positions + stack + norm(width)


def ovis2(part: Part) -> int:
    """Ovis 2: gated blocks with RMS norms, and a head over a vocabulary of visual tokens."""
    width, ffn = part.size("hidden_size", 1024), part.size("intermediate_size", 2816)
    attention = 4 * linear(width, width, part.flag("qkv_bias", False))
    each = attention + gated(width, ffn, part.flag("mlp_bias", False)) + 2 * width
    embeddings = patches(part, width, 14) + width + grid(part, 224, 14) * width + width
    words = part.size("vocab_size", 16384) - part.size("num_visual_indicator_tokens", 5, 0)
    merged = width * part.size("hidden_stride", 1) ** 2
    return embeddings + part.size("num_hidden_layers", 24) * each + width + merged * words + norm(words)


def mllama(part: Part) -> int:
    """Llama 3.2 Vision: positions per tile and aspect ratio behind gates, then further gated, global layers."""
    width, ffn = part.size("hidden_size", 1280), part.size("intermediate_size", 5120)
    tiles = part.size("max_num_tiles", 4)
    ratios = len(part.listed("supported_aspect_ratios", [[]] * 8)) + 1
    seen = grid(part, 448, 14) + 1
    positions = seen * width + ratios * tiles * seen * width + 2 * ratios * tiles * width + 3
    each = 4 * width**2 + linear(width, ffn) + linear(ffn, width) + 2 * norm(width)
    plain, gates = part.size("num_hidden_layers", 32), part.size("num_global_layers", 8)
    return width + patches(part, width, 14) + positions + 2 * norm(width) + plain * each + gates * (each + 2)


def llama4(part: Part) -> int:
    """Llama 4: a class token, a pixel shuffle with an adapter of two matrices."""
    width, ffn = part.size("hidden_size", 768), part.size("intermediate_size", 5632)
    embeddings = width + patches(part, width, 14) + (grid(part, 448, 14) + 1) * width
    stack = part.size("num_hidden_layers", 34) * block(width, ffn) + 2 * norm(width)
    middle, out = part.size("projector_input_dim", 4096), part.size("projector_output_dim", 4096)
    return embeddings + stack + ffn * middle + out**2


def gemma4_vision(part: Part) -> int:
    """Gemma 4: positions per axis, gated blocks with four RMS norms, normed queries and keys."""
    width, ffn, head = part.size("hidden_size", 768), part.size("intermediate_size", 3072), part.size("head_dim", 64)
    heads = part.size("num_attention_heads", 12)
    kv_heads = part.size("num_key_value_heads", 12)
    each = 2 * width * head * (heads + kv_heads) + 2 * head + gated(width, ffn) + 4 * width
    high, wide = part.sides("patch_size", 16)
    embeddings = 2 * part.size("position_embedding_size", 10_240) * width + 3 * high * wide * width
    return embeddings + part.size("num_hidden_layers", 16) * each


def gemma4_audio(part: Part) -> int:
    """Gemma 4: a Conformer behind two convolutions that halve time and frequency."""
    width, heads = part.size("hidden_size", 1024), part.size("num_attention_heads", 8)
    first, second = (
        checks.whole(part.where, part.key("subsampling_conv_channels"), channels)
        for channels in _two(part, "subsampling_conv_channels", [128, 32])
    )
    start = 9 * first + first + 9 * first * second + second + first // 4 * second * width
    feed_forward = 2 * 4 * width**2 + 2 * width
    attention = 5 * width**2 + width // heads
    convolution = 3 * width**2 + part.size("conv_kernel_size", 5) * width + 2 * width
    each = 2 * feed_forward + attention + convolution + 3 * width
    return start + part.size("num_hidden_layers", 12) * each + linear(width, part.size("output_proj_dims", 1536))


def _two(part: Part, key: str, default: list[int]) -> list[object]:
    given = part.listed(key, default)
    if len(given) != 2:
        raise checks.wrong(part.where, part.key(key), given, "a list of two numbers of channels")
    return given


TOWERS: dict[str, Callable[[Part], int]] = {
    "clip_vision_model": clip,
    "siglip_vision_model": siglip,
    "idefics2_vision": idefics2,
    "idefics3_vision": idefics3,
    "smolvlm_vision": idefics3,
    "pixtral": pixtral,
    "internvl_vision": internvl,
    "qwen2_vl_vision": qwen2_vl,
    "qwen2_5_vl_vision": qwen2_5_vl,
    "qwen3_vl_vision": qwen3_vl,
    "qwen3_5_vision": qwen3_5,
    "exaone4_5_vision": exaone4_5,
    "glm4v_vision": glm4v,
    "kimi_k25_vision": kimi_k25,
    "ovis2_vision": ovis2,
    "mllama_vision_model": mllama,
    "llama4_vision_model": llama4,
    "gemma4_vision": gemma4_vision,
    "gemma4_audio": gemma4_audio,
}
"""Towers by their own model_type."""

WIDTHS: dict[str, int] = {
    "clip_vision_model": 768,
    "siglip_vision_model": 768,
    "idefics2_vision": 768,
    "gemma4_vision": 768,
    "idefics3_vision": 1152,
    "smolvlm_vision": 1152,
    "kimi_k25_vision": 1152,
    "pixtral": 1024,
    "internvl_vision": 1024,
}
"""`hidden_size` of the towers that projectors read, where a file leaves it out."""
