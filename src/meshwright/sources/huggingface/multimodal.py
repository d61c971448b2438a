"""The text stack inside a multimodal config, and what has to be counted beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from meshwright.sources import checks
from meshwright.sources.huggingface.towers import WRAPPERS, Tower, Wrapper
from meshwright.spec.errors import UnsupportedModel

TEXT_KEYS = ("text_config", "language_config", "llm_config", "thinker_config")
BESIDE_KEYS = ("vision_config", "audio_config", "vision_tower", "img_processor", "mm_vision_tower", "visual", "encoder")
"""Keys that say that something stands beside the text stack."""


@dataclass(frozen=True)
class Parts:
    """The config of the text stack; whether it is the whole file (a nested one holds only what differs from its class);
    the model_type it has where it names none; and the wrapper around it (None for a plain decoder)."""

    text: Mapping[str, Any]
    whole: bool = True
    model_type: str = ""
    wrapper: Wrapper | None = None


def parts_of(values: Mapping[str, Any], where: str, model_type: str, architecture: str) -> Parts:
    """The parts of a config. Raises UnsupportedModel where something beside the text stack can't be counted."""
    inside = next((key for key in TEXT_KEYS if values.get(key) is not None), "")
    beside = [key for key in BESIDE_KEYS if values.get(key) not in (None, {}, [])]
    wrapper = WRAPPERS.get(_wrapper_type(values, model_type, architecture))
    if wrapper is not None and "audio_config" not in beside:
        if not inside:
            return Parts(values, True, wrapper.text, wrapper)
        text = checks.mapping(where, inside, values[inside])
        return Parts(text, False, wrapper.text, wrapper)
    if beside or (inside and architecture.endswith("ForConditionalGeneration")):
        facts = [f"what {key} builds beside the text stack" for key in beside]
        raise UnsupportedModel(architecture, facts or ["the towers beside its text stack"], where)
    if inside:
        text = checks.mapping(where, inside, values[inside])
        return Parts(text, False)
    return Parts(values)


def beside_parameters(parts: Parts, values: Mapping[str, Any], where: str, hidden: int) -> int:
    """Parameters of the towers and projectors around a text stack of width `hidden`."""
    if parts.wrapper is None:
        return 0
    vision = checks.mapping(where, "vision_config", values.get("vision_config") or {})
    return parts.wrapper.count(Tower(vision, values, where, hidden))


def tied(parts: Parts, values: Mapping[str, Any], where: str) -> bool | None:
    """Whether a wrapper ties its embeddings; None for a plain decoder, which says so itself."""
    if parts.wrapper is None:
        return None
    for config in (parts.text,) if parts.wrapper.text_ties else (values, parts.text):
        given = config.get("tie_word_embeddings")
        if given is not None:
            return checks.flag(where, "tie_word_embeddings", given)
    return parts.wrapper.tied


def _wrapper_type(values: Mapping[str, Any], model_type: str, architecture: str) -> str:
    """Ministral 3 gives its text stack's model_type as its own; its class says what it is."""
    if architecture == "Mistral3ForConditionalGeneration":
        return "mistral3"
    return model_type
