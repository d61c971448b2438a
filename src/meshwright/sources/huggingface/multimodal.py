"""The text stack inside a multimodal config, and what has to be counted beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from meshwright.sources import checks
from meshwright.sources.huggingface.lookup import model_type_of
from meshwright.sources.huggingface.parts import Part
from meshwright.sources.huggingface.projectors import Joint, plain_matrix
from meshwright.sources.huggingface.vision import TOWERS, WIDTHS
from meshwright.sources.huggingface.wrappers import WRAPPERS, Wrapper
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
    if wrapper is not None:
        if "audio_config" in beside and not wrapper.audio:
            raise UnsupportedModel(architecture, ["what audio_config builds beside the text stack"], where)
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


def beside_parameters(parts: Parts, values: Mapping[str, Any], where: str, hidden: int, architecture: str) -> int:
    """Parameters of the towers and projectors around a text stack of width `hidden`.

    Raises UnsupportedModel for a tower of an unknown kind.
    """
    wrapper = parts.wrapper
    if wrapper is None:
        return 0
    outer, total = Part(values, where), 0
    if values.get("vision_config") is not None or not wrapper.optional:
        tower = outer.inside("vision_config", wrapper.tower_sizes)
        kind = wrapper.tower if wrapper.fixed_tower else model_type_of(tower.values, where) or wrapper.tower
        if kind not in TOWERS or (kind not in WIDTHS and not wrapper.fixed_tower):
            raise UnsupportedModel(architecture, [f"its tower of type {checks.shown(kind)}"], where)
        width = tower.size("hidden_size", WIDTHS.get(kind, 1))
        total += TOWERS[kind](tower) + wrapper.projector(Joint(outer, tower, width, hidden))
    if wrapper.audio and values.get("audio_config") is not None:
        audio = outer.inside("audio_config")
        width = audio.size("output_proj_dims", 1536)
        total += TOWERS[wrapper.audio](audio) + plain_matrix(Joint(outer, audio, width, hidden))
    return total


def tied(parts: Parts, values: Mapping[str, Any], where: str, text_ties: bool) -> bool:
    """Whether embeddings are tied, in a text stack that says `text_ties` of itself."""
    wrapper = parts.wrapper
    if wrapper is None or wrapper.ties == "text":
        return text_ties
    outer = Part(values, where).flag("tie_word_embeddings", wrapper.tied)
    if wrapper.ties == "either":
        return outer or text_ties
    return outer and wrapper.ties != "never"


def _wrapper_type(values: Mapping[str, Any], model_type: str, architecture: str) -> str:
    """Ministral 3 gives its text stack's model_type as its own; its class says what it is."""
    if architecture == "Mistral3ForConditionalGeneration":
        return "mistral3"
    return model_type
