"""The keys of mixers that work channel by channel: short convolutions, gated recurrences, RWKV-4."""

from __future__ import annotations

from meshwright.sources.blueprint import Blueprint
from meshwright.sources.huggingface.keys import Key, Keys
from meshwright.spec.mixers import GatedRecurrence, ShortConvolution, WeightedKeyValue


def short_convolution(keys: Keys, facts: Blueprint) -> ShortConvolution:
    """LFM2: a gated convolution of the whole stream."""
    bias = keys.flag(Key("conv_bias", False))
    width = facts.hidden
    return ShortConvolution(heads=width, width=width, conv=keys.need("conv_width"), conv_bias=bias, bias=bias)


def griffin(keys: Keys, facts: Blueprint) -> GatedRecurrence:
    """RecurrentGemma: as many blocks in its gates as attention has heads."""
    width = keys.count("state_width") or facts.hidden
    return GatedRecurrence(heads=facts.heads, width=width, conv=keys.need("conv_width"), conv_bias=True)


def rwkv(keys: Keys, facts: Blueprint) -> WeightedKeyValue:
    """RWKV-4, as wide as the stream where no width is given."""
    width = keys.count("state_width") or facts.hidden
    return WeightedKeyValue(heads=width, width=width, hidden=facts.hidden)
