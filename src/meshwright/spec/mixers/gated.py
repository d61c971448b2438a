"""Mixers that work channel by channel: gated recurrences, short convolutions, and RWKV-4's weighted average."""

from __future__ import annotations

from dataclasses import dataclass

from meshwright.spec.linear import Linear
from meshwright.spec.mixers.base import Mixer


@dataclass(frozen=True, slots=True, kw_only=True)
class GatedRecurrence(Mixer):
    """The real-gated linear recurrent unit of Griffin (De et al. 2024, arXiv 2402.19427, section 2.4) on `width`
    channels; its gates are block-diagonal, one block per head."""

    width: int

    @property
    def title(self) -> str:
        return "gated linear recurrence (RG-LRU)"

    def linears(self, hidden: int) -> tuple[Linear, ...]:
        return (
            Linear("recurrent_in", hidden, 2 * self.width, "column", self.heads, bias=True),
            # a block-diagonal pair of gates: every channel sees the channels of its own head
            Linear("recurrent_gates", self.width // self.heads, 2 * self.width, "column", self.heads, bias=True),
            Linear("recurrent_out", self.width, hidden, "row", self.heads, bias=True),
        )

    @property
    def split_parameters(self) -> int:
        return self.width * (self.conv + int(self.conv_bias) + 1)

    @property
    def state_elements(self) -> int:
        return self.width * self.conv

    @property
    def recurrent_flops(self) -> float:
        # equations 3 and 4: a to the power of its gate, the square root of 1 - a², both gates, and the update
        return 9.0 * self.width

    @property
    def core_elements(self) -> float:
        return 4.0 * self.width

    @property
    def kept_elements(self) -> float:
        # both branches, the branch after its convolution, two gates, the state and the product of both branches
        return 7.0 * self.width

    @property
    def pointwise_traffic(self) -> float:
        return 5.0 * self.width


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortConvolution(Mixer):
    """A causal convolution of `conv` tokens between two gates (LFM2, Liquid AI 2025)."""

    width: int
    bias: bool = False

    @property
    def title(self) -> str:
        return "short convolution"

    def linears(self, hidden: int) -> tuple[Linear, ...]:
        return (
            Linear("conv_in", hidden, 3 * self.width, "column", self.heads, self.bias),
            Linear("conv_out", self.width, hidden, "row", self.heads, self.bias),
        )

    @property
    def split_parameters(self) -> int:
        return self.width * (self.conv + int(self.conv_bias))

    @property
    def state_elements(self) -> int:
        return self.width * (self.conv - 1)

    @property
    def recurrent_flops(self) -> float:
        return (2.0 * self.conv + 2.0) * self.width

    @property
    def core_elements(self) -> float:
        # the convolution's input and both gates in, one output
        return 4.0 * self.width

    @property
    def kept_elements(self) -> float:
        return 4.0 * self.width


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedKeyValue(Mixer):
    """Time mixing of RWKV-4 (Peng et al. 2023, arXiv 2305.13048, section 3.1) on `width` channels.

    The layer's mixing vectors and the receptance matrix of its channel mixing belong here, too: a square matrix whose
    output gates the whole residual stream, so that every rank holds it.
    """

    width: int
    hidden: int

    @property
    def title(self) -> str:
        return "RWKV"

    def linears(self, hidden: int) -> tuple[Linear, ...]:
        return (
            Linear("time_in", hidden, 3 * self.width, "column", self.heads),
            Linear("channel_receptance", hidden, hidden, "replicated"),
            Linear("time_out", self.width, hidden, "row", self.heads),
        )

    @property
    def split_parameters(self) -> int:
        return 2 * self.width

    @property
    def whole_parameters(self) -> int:
        return 5 * self.hidden

    @property
    def state_elements(self) -> int:
        # numerator, denominator and running maximum; the last token for the shifts of both mixings
        return 3 * self.width + 2 * self.hidden

    @property
    def recurrent_flops(self) -> float:
        # operations of the authors' CUDA kernel (wkv_cuda.cu, forward), with the receptance that gates its output
        return 25.0 * self.width

    @property
    def core_elements(self) -> float:
        return 4.0 * self.width

    @property
    def kept_elements(self) -> float:
        return 4.0 * self.width

    @property
    def kept_whole_elements(self) -> float:
        # shifted inputs beyond the two that every layer keeps (three and two of them), and the channel receptance
        return 4.0 * self.hidden

    @property
    def pointwise_traffic(self) -> float:
        return self.width
