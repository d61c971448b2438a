"""Token mixers that carry a state along the sequence, in place of attention or beside it."""

from meshwright.spec.mixers.base import Mixer
from meshwright.spec.mixers.gated import GatedRecurrence, ShortConvolution, WeightedKeyValue
from meshwright.spec.mixers.linear_attention import LinearAttention
from meshwright.spec.mixers.state_space import Mamba, Mamba2

__all__ = [
    "GatedRecurrence",
    "LinearAttention",
    "Mamba",
    "Mamba2",
    "Mixer",
    "ShortConvolution",
    "WeightedKeyValue",
]
