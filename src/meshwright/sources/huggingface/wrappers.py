"""Multimodal classes: the text stack, towers and projector of each, and who decides that embeddings are tied."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from meshwright.sources.huggingface import projectors
from meshwright.sources.huggingface.projectors import Joint

TieRule = Literal["outer", "either", "text", "never"]
"""Whose `tie_word_embeddings` counts: the wrapper's, that of either, the text stack's, or nobody's."""


@dataclass(frozen=True)
class Wrapper:
    """One class. `text` and `tower` are the model_types of parts that name none; with `fixed_tower` the class builds
    that tower whatever the file calls it. `tower_sizes` are those of a tower that the file leaves out altogether;
    `optional` towers are then not built. `audio` is the tower of `audio_config`."""

    text: str
    tower: str
    projector: Callable[[Joint], int] = projectors.nothing
    tied: bool = False
    ties: TieRule = "outer"
    fixed_tower: bool = True
    tower_sizes: Mapping[str, Any] = field(default_factory=dict)
    optional: bool = False
    audio: str = ""


_CLIP_L = {"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24, "patch_size": 14, "image_size": 336}
_SIGLIP_SO = {
    **{"hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 26, "patch_size": 14, "image_size": 384},
    "vision_use_head": False,
}
_PALIGEMMA = {**_SIGLIP_SO, "intermediate_size": 4096, "num_hidden_layers": 27, "image_size": 224}
_COHERE = {"hidden_size": 1152, "num_hidden_layers": 27, "image_size": 512}
_PIXTRAL = {"patch_size": 14, "image_size": 1540}


def _open(text: str, tower: str, projector: Callable[[Joint], int], **more: Any) -> Wrapper:
    """A class that takes any tower, as its part of the file names it."""
    return Wrapper(text, tower, projector, fixed_tower=False, **more)


WRAPPERS: dict[str, Wrapper] = {
    "llava": _open("llama", "clip_vision_model", projectors.two_matrices, ties="either", tower_sizes=_CLIP_L),
    "llava_next": _open("llama", "clip_vision_model", projectors.two_matrices_and_newline, tower_sizes=_CLIP_L),
    "llava_next_video": _open(
        "llama", "clip_vision_model", projectors.two_matrices_and_newline, ties="either", tower_sizes=_CLIP_L
    ),
    "llava_onevision": _open(
        "qwen2", "siglip_vision_model", projectors.two_matrices_and_newline, ties="either", tower_sizes=_SIGLIP_SO
    ),
    "vipllava": _open("llama", "clip_vision_model", projectors.normed_layers, tower_sizes=_CLIP_L),
    "paligemma": _open("gemma", "siglip_vision_model", projectors.one_matrix, tied=True, tower_sizes=_PALIGEMMA),
    "gemma3": _open("gemma3_text", "siglip_vision_model", projectors.normed_matrix, tied=True),
    "gemma4": Wrapper(
        "gemma4_text", "gemma4_vision", projectors.plain_matrix, tied=True, optional=True, audio="gemma4_audio"
    ),
    "phi3_v": Wrapper("phi3", "clip_vision_model", projectors.phi3_merger, ties="text", tower_sizes=_CLIP_L),
    "idefics2": Wrapper("mistral", "idefics2_vision", projectors.perceiver),
    "idefics3": Wrapper("llama", "idefics3_vision", projectors.shuffled_matrix),
    "smolvlm": Wrapper("llama", "smolvlm_vision", projectors.shuffled_matrix),
    "internvl": _open("qwen2", "internvl_vision", projectors.shuffled_normed_matrices, tied=True),
    "aya_vision": _open("cohere2", "siglip_vision_model", projectors.aya_gated, tied=True, tower_sizes=_SIGLIP_SO),
    "cohere2_vision": _open("cohere2", "siglip_vision_model", projectors.cohere_gated, tied=True, tower_sizes=_COHERE),
    "deepseek_vl": _open("llama", "siglip_vision_model", projectors.two_biased_matrices, tied=True),
    "mistral3": _open("mistral", "pixtral", projectors.merged_matrices, tied=True, tower_sizes=_PIXTRAL),
    "lighton_ocr": _open("qwen3", "pixtral", projectors.merged_matrices, tied=True, tower_sizes=_PIXTRAL),
    "ovis2": Wrapper("qwen2", "ovis2_vision", projectors.ovis_table, tied=True),
    "mllama": Wrapper("mllama_text_model", "mllama_vision_model", projectors.mllama_matrix, ties="never"),
    "llama4": Wrapper("llama4_text", "llama4_vision_model", projectors.llama4_matrix, ties="text"),
    "qwen2_vl": Wrapper("qwen2_vl_text", "qwen2_vl_vision", ties="either"),
    "qwen2_5_vl": Wrapper("qwen2_5_vl_text", "qwen2_5_vl_vision", ties="either"),
    "qwen3_vl": Wrapper("qwen3_vl_text", "qwen3_vl_vision"),
    "qwen3_vl_moe": Wrapper("qwen3_vl_moe_text", "qwen3_vl_vision"),
    "qwen3_5": Wrapper("qwen3_5_text", "qwen3_5_vision"),
    "qwen3_5_moe": Wrapper("qwen3_5_moe_text", "qwen3_5_vision"),
    "exaone4_5": Wrapper("exaone4", "exaone4_5_vision"),
    "glm4v": Wrapper("glm4v_text", "glm4v_vision", ties="either"),
    "glm46v": Wrapper("glm4v_text", "glm4v_vision"),
    "glm4v_moe": Wrapper("glm4v_moe_text", "glm4v_vision", ties="either"),
    "kimi_k25": Wrapper("deepseek_v3", "kimi_k25_vision", projectors.kimi_merger, tied=True),
}
"""Multimodal classes by model_type."""
