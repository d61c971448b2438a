"""How a checkpoint stores its weights, where that is in fewer bits than training keeps them in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from meshwright.spec.model import Model

PLAIN_BYTES = 2
"""Bytes of a weight that is not quantised (bf16)."""


@dataclass(frozen=True)
class StoredWeights:
    """`bits` per weight, and `scale_bits` (with zero points) for each group of `group_size` weights; `group_size` 0 is
    one group per tensor, whose scale weighs nothing. `covers` says which matrices are stored so: those of all layers
    but the routers, or those of routed experts alone."""

    format: str
    bits: int
    group_size: int = 0
    scale_bits: float = 0.0
    covers: Literal["layers", "experts"] = "layers"

    @property
    def bits_per_weight(self) -> float:
        """Bits of one weight with its share of the scale."""
        return self.bits + (self.scale_bits / self.group_size if self.group_size else 0.0)


def stored_bytes(model: Model) -> float:
    """Bytes of the model's weights as its checkpoint stores them. What is not quantised takes 2 bytes a parameter."""
    stored = model.stored
    if stored is None:
        return float(model.num_parameters * PLAIN_BYTES)
    per_kind = {
        kind: sum(
            linear.matrix_parameters
            for linear in kind.linears(model.hidden)
            if linear.is_expert or (stored.covers == "layers" and linear.name != "router")
        )
        for kind in model.kinds
    }
    packed = sum(per_kind[layer] for layer in model.layers)
    return packed * stored.bits_per_weight / 8 + (model.num_parameters - packed) * PLAIN_BYTES
