"""Configs that are no decoder that can be counted here yet, and which fact is missing to count them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from meshwright.spec.errors import InputError, UnsupportedModel

_REASONS = {
    "a decoder (it is an encoder)": "clip siglip vit",
    "its encoder": "prophetnet encoder-decoder t5gemma",
    "its shared blocks": "zamba zamba2",
    "its extended memory layers": "xlstm",
    "its heads per kind of layer": "step3p5 step3p7",
    "its MobileNet tower": "gemma3n",
    "its mixture of attention heads": "jetmoe",
    "its shortcut-connected double layers": "longcat_flash",
}

REFUSED: dict[str, str] = {
    model_type: reason for reason, model_types in _REASONS.items() for model_type in model_types.split()
}
"""model_type and what is not known about it."""


def refuse_other_kinds(values: Mapping[str, Any], where: str, architecture: str) -> None:
    """Raise for a file that is no model config, or whose model is more than a decoder."""
    refuse_other_files(values, where)
    if "_class_name" in values or "_diffusers_version" in values:
        name = str(values.get("_class_name", "diffusion"))
        raise UnsupportedModel(name, ("a decoder (it is a diffusion model)",), where)
    if values.get("is_encoder_decoder") is True:
        raise UnsupportedModel(architecture, ("its encoder",), where)


def refuse_other_files(values: Mapping[str, Any], where: str) -> None:
    """Raise for a file that is no model config."""
    if "weight_map" in values:
        raise InputError("is an index of weight files, not a config", where, "pass the config.json next to it")
    if "peft_type" in values:
        raise InputError("is the config of an adapter", where, "pass the config.json of its base model")
