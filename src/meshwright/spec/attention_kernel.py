"""The kernel that computes softmax(QKᵀ)V: what it reaches, whatever framework calls it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class AttentionKernel:
    """An attention kernel. Every number is a catalog entry with its source; none is a constant in code."""

    name: str
    title: str = ""
    year: int = 0
    efficiency: Mapping[str, float] | None = None
    """Share of the dense 16-bit peak that a fused kernel reaches on the pairs it must compute, by accelerator family
    ("" for any other). None: the kernel is unfused and bound by memory."""
    backward_ratio: float = 2.5
    """Backward FLOPs over forward ones (2.5 where scores are recomputed, 2 where kept)."""
    forward_bytes_per_score: float = 13.0
    """Unfused only: memory traffic per score, as the sequence of its elementwise kernels adds up to."""
    backward_bytes_per_score: float = 19.0
    traffic_factor: float = 0.793
    """Unfused only: measured traffic over that sum (caches keep some of it)."""
    source: str = ""
    notes: tuple[str, ...] = ()

    @property
    def fused(self) -> bool:
        """Whether scores stay on chip."""
        return self.efficiency is not None

    def share(self, family: str) -> float:
        """Efficiency of a fused kernel on an accelerator family. Raises ValueError for an unfused one."""
        if self.efficiency is None:
            raise ValueError(f"attention kernel {self.name} is unfused and has no efficiency")
        return self.efficiency.get(family, self.efficiency[""])


UNFUSED = AttentionKernel("unfused")
"""Scores written to memory and read again by every kernel of softmax and dropout."""
