"""What joins a tower to the text stack, counted: one function per rule, by the classes in transformers 5.24."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Any

from meshwright.sources import checks
from meshwright.sources.huggingface.parts import Part, gated, linear, norm
from meshwright.spec.errors import UnsupportedModel


@dataclass(frozen=True)
class Joint:
    """A tower's part and output `width`, the config around it, and the width of the text stack."""

    outer: Part
    tower: Part
    width: int
    hidden: int


def nothing(joint: Joint) -> int:
    """The tower ends in the width of the text stack."""
    return 0


def two_matrices(joint: Joint) -> int:
    """LLaVA: from one or several layers of the tower."""
    bias = joint.outer.flag("multimodal_projector_bias", True)
    return _two(joint, _layers(joint, 1) * joint.width, bias)


def two_matrices_and_newline(joint: Joint) -> int:
    """LLaVA-NeXT and OneVision: a learned vector ends each row of patches."""
    return two_matrices(joint) + joint.hidden


def normed_layers(joint: Joint) -> int:
    """ViP-LLaVA: five layers of the tower, normed together."""
    width = _layers(joint, 5) * joint.width
    return norm(width) + _two(joint, width, True)


def two_biased_matrices(joint: Joint) -> int:
    """DeepSeek-VL."""
    return _two(joint, joint.width, True)


def one_matrix(joint: Joint) -> int:
    """PaliGemma: to `projection_dim`, which must be the width of the text stack."""
    return linear(joint.width, joint.outer.size("projection_dim", 2048))


def normed_matrix(joint: Joint) -> int:
    """Gemma 3: one matrix after an RMS norm."""
    return joint.width * joint.hidden + joint.width


def plain_matrix(joint: Joint) -> int:
    """Gemma 4: one matrix after a norm without weights."""
    return joint.width * joint.hidden


def shuffled_matrix(joint: Joint) -> int:
    """Idefics 3: one matrix for the patches of a square."""
    return joint.outer.size("scale_factor", 2) ** 2 * joint.width * joint.hidden


def shuffled_normed_matrices(joint: Joint) -> int:
    """InternVL: the patches of a square, normed."""
    ratio: Any = joint.outer.values.get("downsample_ratio", 0.5)
    if isinstance(ratio, bool) or not isinstance(ratio, int | float) or not (isfinite(ratio) and 0.001 < ratio <= 1):
        raise checks.wrong(joint.outer.where, "downsample_ratio", ratio, "a number from 0.001 to 1")
    width = joint.width * int(1 / ratio) ** 2
    return norm(width) + _two(joint, width, True)


def aya_gated(joint: Joint) -> int:
    """Aya Vision: normed patches of a square through a gated MLP."""
    width = joint.width * joint.outer.size("downsample_factor", 2) ** 2
    inner = joint.outer.size("alignment_intermediate_size", joint.hidden)
    return norm(width) + linear(width, inner) + linear(inner // 2, joint.hidden)


def cohere_gated(joint: Joint) -> int:
    """Command A Vision: as Aya Vision, without the norm."""
    width = joint.width * joint.outer.size("downsample_factor", 2) ** 2
    inner = joint.outer.size("alignment_intermediate_size", 36_864)
    return linear(width, inner) + linear(inner // 2, joint.hidden)


def merged_matrices(joint: Joint) -> int:
    """Mistral 3 and LightOn OCR: a norm, a matrix that merges patches, two matrices."""
    bias = joint.outer.flag("multimodal_projector_bias", False)
    merger = joint.width + joint.outer.size("spatial_merge_size", 2) ** 2 * joint.width**2
    return merger + _two(joint, joint.width, bias)


def kimi_merger(joint: Joint) -> int:
    """Kimi K2.5: a norm, then two matrices over the patches of a rectangle."""
    high, wide = joint.tower.sides("merge_kernel_size", 2)
    width = joint.width * high * wide
    normed = norm(joint.outer.size("projection_hidden_size", 1152))
    return normed + linear(width, width) + linear(width, joint.hidden)


def llama4_matrix(joint: Joint) -> int:
    return joint.tower.size("vision_output_dim", 7680) * joint.hidden


def mllama_matrix(joint: Joint) -> int:
    return linear(joint.tower.size("vision_output_dim", 7680), joint.hidden)


def ovis_table(joint: Joint) -> int:
    """Ovis 2: an embedding of visual words, of the width that the file gives beside the text stack's own."""
    outer, text = joint.outer, joint.outer.inside("text_config")
    width, rows = outer.size("hidden_size", 1536), outer.size("vocab_size", 151_643)
    if width != joint.hidden:
        raise checks.wrong(outer.where, "hidden_size", width, "the width of the text stack", joint.hidden)
    if not outer.flag("tie_word_embeddings", True) and rows != text.size("vocab_size", rows):
        raise checks.wrong(outer.where, "vocab_size", rows, "that of the text stack", text.size("vocab_size", rows))
    return joint.tower.size("vocab_size", 16_384) * width


def perceiver(joint: Joint) -> int:
    """Idefics 2: a gated MLP into the text width, then layers that read the patches into a few latents."""
    part = joint.outer.inside("perceiver_config")
    width, head = part.size("hidden_size", 4096), part.size("resampler_head_dim", 96)
    heads, kv_heads = part.size("resampler_n_heads", 16), part.size("num_key_value_heads", 4)
    text = joint.outer.inside("text_config")
    ffn = text.size("intermediate_size", 14_336)
    projection = 2 * joint.width * ffn + ffn * joint.hidden
    attention = 2 * width * head * (heads + kv_heads)
    each = 3 * width + attention + gated(width, 4 * width)
    return projection + part.size("resampler_n_latents", 64) * width + part.size("resampler_depth", 3) * each + width


def _two(joint: Joint, width: int, bias: bool) -> int:
    return linear(width, joint.hidden, bias) + linear(joint.hidden, joint.hidden, bias)


def _layers(joint: Joint, default: int) -> int:
    """Layers of the tower whose outputs are read side by side."""
    given = joint.outer.values.get("vision_feature_layer")
    if given is None:
        return default
    return len(given) or 1 if isinstance(given, list) else 1


def phi3_merger(joint: Joint) -> int:
    """Phi-3-vision: two learned separators, and two matrices from four merged patches of a CLIP-L of 336 pixels.

    No class in transformers: counted after the model card's 4.15 B. Raises UnsupportedModel for any other part.
    """
    image, layer = joint.outer.inside("img_processor"), joint.outer.inside("embd_layer")
    known = {"name": "clip_vision_model", "model_name": "openai/clip-vit-large-patch14-336", "image_dim_out": 1024}
    merging = {"projection_cls": "mlp", "use_hd_transform": True, "with_learnable_separator": True}
    odd = [image.key(key) for key, value in known.items() if image.values.get(key) != value]
    odd += [layer.key(key) for key, value in merging.items() if layer.values.get(key) != value]
    if odd:
        facts = [f"what {key} builds where it isn't Phi-3-vision's" for key in odd]
        raise UnsupportedModel("Phi3VForCausalLM", facts, joint.outer.where)
    merged = 4 * joint.width
    return 2 * merged + _two(joint, merged, True)
