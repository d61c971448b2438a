"""Selective state spaces: Mamba (Gu & Dao 2023, arXiv 2312.00752) and Mamba-2 (Dao & Gu 2024, arXiv 2405.21060)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from meshwright.spec.linear import Linear
from meshwright.spec.mixers.base import Mixer

SCAN_FLOPS = 7.0
"""FLOPs per token and element of the state, as Megatron-LM counts them (megatron/training, `mamba_layer_flops`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mamba(Mixer):
    """Mamba: each of `inner` channels has a state of `state` numbers; step sizes come through a rank of `dt_rank`.

    `normed`: step size, B and C have norms (Jamba). Its kernel is the fused scan of section 3.3.2, which keeps no
    states and runs on the vector units.
    """

    inner: int
    state: int
    dt_rank: int
    bias: bool = False
    normed: bool = False

    @property
    def title(self) -> str:
        return "state space (Mamba)"

    def linears(self, hidden: int) -> tuple[Linear, ...]:
        selected = self.dt_rank + 2 * self.state
        return (
            Linear("state_in", hidden, 2 * self.inner, "column", self.heads, self.bias),
            Linear("state_select", self.inner, selected, "row", self.heads),
            Linear("state_step", self.dt_rank, self.inner, "column", self.heads, bias=True),
            Linear("state_out", self.inner, hidden, "row", self.heads, self.bias),
        )

    @property
    def split_parameters(self) -> int:
        return self.inner * (self.conv + int(self.conv_bias) + self.state + 1)

    @property
    def whole_parameters(self) -> int:
        return self.dt_rank + 2 * self.state if self.normed else 0

    @property
    def state_elements(self) -> int:
        return self.inner * (self.state + self.conv - 1)

    @property
    def recurrent_flops(self) -> float:
        return SCAN_FLOPS * self.inner * self.state

    @property
    def core_elements(self) -> float:
        # reads x, the step size and the gate, writes y
        return 4.0 * self.inner

    @property
    def kept_elements(self) -> float:
        # x and gate, x after the convolution, step size, y
        return 5.0 * self.inner

    @property
    def kept_whole_elements(self) -> float:
        return self.dt_rank + 2.0 * self.state

    @property
    def pointwise_traffic(self) -> float:
        return 2.0 * self.inner

    def summed_elements(self, tp: Any) -> Any:
        # what selects the state is computed from all channels
        return 0.0 * tp + self.dt_rank + 2 * self.state


@dataclass(frozen=True, slots=True, kw_only=True)
class Mamba2(Mixer):
    """Mamba-2: `heads` heads of `head_dim` channels with a state of `head_dim` × `state`; B and C are shared by the
    heads of a group. `normed`: a gated norm before the last matrix. Its kernel works in chunks of `chunk` tokens (state
    space duality, section 6): inside a chunk like attention, from chunk to chunk through the state.

    Tensor parallelism cuts the heads, and with them the groups (Megatron-LM, `mamba_mixer.py`).
    """

    head_dim: int
    state: int
    bias: bool = False
    out_bias: bool = False
    normed: bool = True
    chunk: int = 256

    @property
    def title(self) -> str:
        return "state space (Mamba-2)"

    @property
    def inner(self) -> int:
        return self.heads * self.head_dim

    @property
    def shared(self) -> int:
        """Width of B and C together."""
        return 2 * (self.groups or self.heads) * self.state

    def linears(self, hidden: int) -> tuple[Linear, ...]:
        groups = self.groups or self.heads
        return (
            # per head: x, the gate and the step size
            Linear("state_in", hidden, 2 * self.inner + self.heads, "column", self.heads, self.bias),
            Linear("state_in_shared", hidden, self.shared, "column", groups, self.bias),
            Linear("state_out", self.inner, hidden, "row", self.heads, self.out_bias),
        )

    @property
    def split_parameters(self) -> int:
        conv = (self.inner + self.shared) * (self.conv + int(self.conv_bias))
        return conv + 3 * self.heads + (self.inner if self.normed else 0)

    @property
    def state_elements(self) -> int:
        return self.inner * self.state + (self.inner + self.shared) * (self.conv - 1)

    @property
    def recurrent_flops(self) -> float:
        return SCAN_FLOPS * self.inner * self.state

    @property
    def core_flops(self) -> float:
        # section 6.3: C Bᵀ and its product with x inside the chunk; states from B and x; outputs from C and states;
        # one step of the recurrence per chunk
        inside = 2.0 * self.chunk * (self.shared / 2 + self.inner)
        return inside + 4.0 * self.inner * self.state + 2.0 * self.inner * self.state / self.chunk

    @property
    def on_matrix_units(self) -> bool:
        return True

    @property
    def core_elements(self) -> float:
        # x, B, C and step sizes in, y out; each chunk's state (32 bits) once out and once in
        return 2.0 * self.inner + self.shared + self.heads + 4.0 * self.inner * self.state / self.chunk

    @property
    def kept_elements(self) -> float:
        return 3.0 * self.inner + self.shared + self.heads

    @property
    def pointwise_elements(self) -> float:
        return 2.0 * self.inner + self.shared

    @property
    def pointwise_traffic(self) -> float:
        # the convolution reads and writes x, B and C; the gated norm reads y and the gate and writes
        return 2.0 * (self.inner + self.shared) + 3.0 * self.inner

    def summed_elements(self, tp: Any) -> Any:
        # a group's norm that lies on several ranks needs the sum of their squares
        return (tp > (self.groups or self.heads)) * (1.0 if self.normed else 0.0)
