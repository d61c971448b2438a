"""Which family a config belongs to: by its model_type, by the name of its class, or by its keys alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from meshwright.sources import checks
from meshwright.sources.huggingface.refused import REFUSED
from meshwright.sources.huggingface.table import BY_ARCHITECTURE, TABLE
from meshwright.spec.errors import UnsupportedModel

LLAMA_LIKE = ("hidden_size", "num_attention_heads", "num_hidden_layers", "intermediate_size", "rms_norm_eps")
"""What a config without model_type must hold to be read as Llama; the original LLaMA conversions look like this."""

OTHER_STRUCTURE = (
    *("kv_lora_rank", "layer_types", "block_configs", "hybrid_override_pattern", "ssm_state_size"),
    *("num_experts", "num_local_experts", "n_routed_experts", "moe_intermediate_size"),
)
"""Keys that say that a model is not simply Llama-like."""

NEEDED = {
    "whether its attention projections have biases": ("attention_bias", "use_qkv_bias", "qkv_bias", "use_bias", "bias"),
    "whether its MLP has biases": ("mlp_bias", "use_bias", "bias"),
    "whether queries and keys are normed": ("use_qk_norm", "qk_layernorm", "qk_norm"),
    "whether the embeddings are tied": ("tie_word_embeddings",),
    "the kind of its norms": ("rms_norm_eps",),
    "whether its MLP is gated": ("hidden_act",),
}
"""Facts that a config of an unknown class must state, and the keys that state them."""


def model_type_of(values: Mapping[str, Any], where: str) -> str:
    """The model_type, empty where there is none."""
    given = values.get("model_type")
    return "" if given is None else checks.text(where, "model_type", given)


def architecture_of(values: Mapping[str, Any], where: str) -> str:
    """The first of `architectures`, empty where there is none."""
    given = values.get("architectures") or []
    names = checks.listed(where, "architectures", given)
    return checks.text(where, "architectures", names[0]) if names else ""


def row_of(values: Mapping[str, Any], where: str, around: str = "") -> tuple[str, tuple[str, ...]]:
    """The row of the table that a config belongs to, and what has to be said about how it was found.

    `around` is the class of the config that holds this one; a refusal names it.
    """
    model_type, architecture = model_type_of(values, where), architecture_of(values, where)
    if model_type in TABLE:
        return model_type, ()
    if model_type in REFUSED:
        raise UnsupportedModel(around or architecture or model_type, (REFUSED[model_type],), where)
    if architecture in BY_ARCHITECTURE:
        note = f"model_type {model_type!r} is not known here, but its class {architecture} is"
        return BY_ARCHITECTURE[architecture], (note,)
    odd = [key for key in OTHER_STRUCTURE if values.get(key) is not None]
    if not model_type and not architecture:
        if all(values.get(key) is not None for key in LLAMA_LIKE) and not odd:
            return "llama", ("the config has no model_type; its keys are Llama's, so it is read as Llama",)
        raise UnsupportedModel("nameless", ("model_type",), where, 'add the key, such as "model_type": "llama"')
    missing = [f"what {key} builds" for key in odd] + _unstated(values, where)
    if missing:
        raise UnsupportedModel(around or architecture or model_type, missing, where)
    note = f"{architecture or model_type} is not known here; its keys say that it is like Llama, with two norms a layer"
    return "llama", (note,)


def _unstated(values: Mapping[str, Any], where: str) -> list[str]:
    """Facts that matter and that no key states plainly: a switch that is on leaves open what exactly it adds."""
    missing = []
    for fact, keys in NEEDED.items():
        given = {key: values[key] for key in keys if values.get(key) is not None}
        on = [key for key, value in given.items() if isinstance(value, bool) and value and key != "tie_word_embeddings"]
        if not given:
            missing.append(fact)
        elif on:
            missing.append(f"what exactly {on[0]} adds")
    if values.get("hidden_act") not in (None, "silu", "swish"):
        missing.append("whether its MLP is gated")
    return missing
