"""Linear attention with and without decay and the delta rule: a state of keys × values in place of a list of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from meshwright.spec.linear import Linear
from meshwright.spec.mixers.base import Mixer

Projection = int | None
"""A projection to all heads: None (there is none), 0 (one matrix), or the rank that two matrices go through."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearAttention(Mixer):
    """Linear attention of `heads` value heads; `groups` counts the heads of queries and keys.

    With `delta`, a token first takes out of the state what its key reads there (gated delta rule, Yang et al. 2024,
    arXiv 2412.06464; its channel-wise form is Kimi Delta Attention); without, it adds (lightning attention, Qin et al.
    2024, arXiv 2401.04658; mLSTM, Beck et al. 2024, arXiv 2405.04517). `head_gates` projections give one number a head
    (strength of the write, decay), `decay` one per key channel, `gate` one per value channel for the output.
    `head_vectors` counts further parameters of a head. The `norm` of the output has one weight per value channel,
    shared by the heads or one for each; or it is taken jointly over all heads.
    """

    key_dim: int
    value_dim: int
    delta: bool = False
    head_gates: int = 0
    head_gate_bias: bool = False
    decay: Projection = None
    gate: Projection = 0
    head_vectors: int = 0
    norm: Literal["shared", "each", "joint"] = "shared"
    norm_bias: bool = False
    bias: bool = False
    chunk: int = 64

    @property
    def title(self) -> str:
        return "linear attention (gated delta rule)" if self.delta else "linear attention"

    @property
    def keys(self) -> int:
        """Width of the keys; queries have the same."""
        return (self.groups or self.heads) * self.key_dim

    @property
    def values(self) -> int:
        return self.heads * self.value_dim

    @property
    def state(self) -> int:
        return self.heads * self.key_dim * self.value_dim

    def linears(self, hidden: int) -> tuple[Linear, ...]:
        per_head = self.value_dim + (self.value_dim if self.gate == 0 else 0) + (self.key_dim if self.decay == 0 else 0)
        parts = [Linear("linear_qk", hidden, 2 * self.keys, "column", self.groups or self.heads, self.bias)]
        if self.head_gate_bias == self.bias:
            per_head += self.head_gates
        elif self.head_gates:
            gates = self.head_gates * self.heads
            parts.append(Linear("linear_gates", hidden, gates, "column", self.heads, self.head_gate_bias))
        parts.append(Linear("linear_v", hidden, self.heads * per_head, "column", self.heads, self.bias))
        for name, rank, width in (("gate", self.gate, self.values), ("decay", self.decay, self.heads * self.key_dim)):
            if rank:
                parts.append(Linear(f"linear_{name}_down", hidden, rank, "replicated"))
                parts.append(Linear(f"linear_{name}_up", rank, width, "column", self.heads))
        return (*parts, Linear("linear_out", self.values, hidden, "row", self.heads, self.bias))

    @property
    def split_parameters(self) -> int:
        conv = (2 * self.keys + self.values) * (self.conv + int(self.conv_bias))
        norm = 0 if self.norm == "shared" else self.values * (2 if self.norm_bias else 1)
        return conv + self.heads * self.head_vectors + norm

    @property
    def whole_parameters(self) -> int:
        return self.value_dim * (2 if self.norm_bias else 1) if self.norm == "shared" else 0

    @property
    def state_elements(self) -> int:
        return self.state + (2 * self.keys + self.values) * max(self.conv - 1, 0)

    @property
    def recurrent_flops(self) -> float:
        # per element of the state: decay 1, write 2, read 2; the delta rule reads once more before it writes
        return (7.0 if self.delta else 5.0) * self.state

    @property
    def core_flops(self) -> float:
        # inside a chunk Q Kᵀ and its product with the values; the state is written and read once. The delta rule adds
        # K Kᵀ, its triangular inverse and that times keys and values (UT transform, Yang et al. 2024, arXiv
        # 2406.06484, section 3.2), and reads the state once more
        chunk, products = 2.0 * self.chunk, self.heads * (self.key_dim + self.value_dim)
        plain = chunk * products + 4.0 * self.state
        if not self.delta:
            return plain
        inverse = 2.0 / 3.0 * self.chunk**2 * self.heads
        return plain + chunk * (products + self.heads * self.key_dim) + inverse + 2.0 * self.state

    @property
    def on_matrix_units(self) -> bool:
        return True

    @property
    def core_elements(self) -> float:
        decays = self.heads * self.key_dim if self.decay is not None else 0
        streams = 2.0 * self.keys + 2.0 * self.values + self.head_gates * self.heads + decays
        # each chunk's state (32 bits) once out and once in
        return streams + 4.0 * self.state / self.chunk

    @property
    def kept_elements(self) -> float:
        gates = self.values if self.gate is not None else 0
        decays = self.heads * self.key_dim if self.decay is not None else 0
        return 2.0 * self.keys + 2.0 * self.values + gates + decays + self.head_gates * self.heads

    @property
    def kept_whole_elements(self) -> float:
        return float((self.gate or 0) + (self.decay or 0))

    @property
    def kernel_kept_elements(self) -> float:
        # the triangular inverse of each chunk
        return float(self.chunk * self.heads) if self.delta else 0.0

    @property
    def pointwise_elements(self) -> float:
        convolved = 2.0 * self.keys + self.values if self.conv else 0.0
        return convolved + self.values

    @property
    def pointwise_traffic(self) -> float:
        convolved = 2.0 * (2 * self.keys + self.values) if self.conv else 0.0
        return convolved + (3.0 if self.gate is not None else 2.0) * self.values

    def summed_elements(self, tp: Any) -> Any:
        return (tp > 1) * (1.0 if self.norm == "joint" else 0.0)
