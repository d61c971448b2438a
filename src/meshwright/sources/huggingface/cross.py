"""Text stacks with layers that attend to an image (Llama 3.2 Vision)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from meshwright.sources import checks
from meshwright.sources.blueprint import Blueprint
from meshwright.sources.huggingface.keys import Keys

DEFAULT_LAYERS = [3, 8, 13, 18, 23, 28, 33, 38]
IMAGE_ROWS = 8
"""Rows of the embedding beyond the vocabulary, for the image token and what surrounds it."""


def with_cross_attention(keys: Keys, facts: Blueprint) -> Blueprint:
    """Layers of `cross_attention_layers` take keys and values from the image, normed per head, and enter the residual
    through two learned gates."""
    given = keys.raw("cross_attention_layers")
    name = "cross_attention_layers"
    layers = checks.listed(keys.where, name, DEFAULT_LAYERS if given is None else given)
    crossing = {checks.whole(keys.where, name, index, 0) for index in layers} & set(range(facts.layers))
    changes: dict[str, Any] = {"qk_norm": "head", "attention_extra": 2}
    reason = f"{len(crossing)} of its layers attend to an image, and the workload doesn't say how many tokens that has"
    return replace(
        facts,
        overrides=dict.fromkeys(sorted(crossing), changes),
        embedding_extra=IMAGE_ROWS * facts.hidden,
        not_planned=reason if crossing else "",
    )
