"""The kernel that computes softmax(QKᵀ)V: what it reaches, whatever framework calls it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

REFERENCE_WIDTH = 128.0
"""Width of the heads for which efficiencies are stated."""


@dataclass(frozen=True)
class AttentionKernel:
    """An attention kernel. Every number is a catalog entry with its source; none is a constant in code."""

    name: str
    title: str = ""
    year: int = 0
    efficiency: Mapping[str, float] | None = None
    """Share of the dense 16-bit peak that a fused kernel's forward arithmetic reaches on the pairs it must compute with
    heads of 128, by accelerator family ("" for any other). None: the kernel is unfused and bound by memory."""
    backward_ratio: float = 2.5
    """Seconds of backward over those of forward. By FLOPs 2.5 where scores are recomputed and 2 where kept; more where
    the backward kernel is the poorer one."""
    operand_traffic: float = 0.0
    """Fused only: memory traffic beside the arithmetic, over one reading of queries, keys and values and one writing of
    the output. It makes short sequences less efficient than long ones."""
    softmax_width: Mapping[str, float] = field(default_factory=dict)
    """By accelerator family, the width of a head for which the softmax's exponentials take as long as its products:
    narrower heads are bound by them. Families left out: heads of any width are alike."""
    forward_bytes_per_score: float = 13.0
    """Unfused only: memory traffic per score, as the sequence of its elementwise kernels adds up to."""
    backward_bytes_per_score: float = 19.0
    traffic_factor: float = 0.793
    """Unfused only: measured traffic over that sum (caches keep some of it)."""
    source: str = ""
    notes: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()
    """Names of its implementations in tables of kernel measurements."""
    fitted: str = ""
    """What its efficiency in training rests on; written by the calibration."""
    measured: str = ""
    """What the shape was fitted on, with the residual; written by the fit."""

    @property
    def fused(self) -> bool:
        """Whether scores stay on chip."""
        return self.efficiency is not None

    def share(self, family: str, width: float = REFERENCE_WIDTH) -> float:
        """Share of the peak that a fused kernel reaches on an accelerator family with heads of `width` (the mean of
        head_dim and value_dim). Raises ValueError for an unfused one."""
        if self.efficiency is None:
            raise ValueError(f"attention kernel {self.name} is unfused and has no efficiency")
        return self.efficiency.get(family, self.efficiency[""]) * width_factor(
            self.softmax_width.get(family, 0.0), width
        )


def width_factor(softmax_width: float, width: float) -> float:
    """Efficiency with heads of `width` over that with heads of 128.

    Per score, products take time in proportion to the width and exponentials take what products take at
    `softmax_width`; the two run beside one another, so their fourth powers add up (a smooth maximum).
    """
    wide, narrow = (softmax_width / REFERENCE_WIDTH) ** 4, (softmax_width / width) ** 4
    return float(((1 + wide) / (1 + narrow)) ** 0.25)


UNFUSED = AttentionKernel("unfused")
"""Scores written to memory and read again by every kernel of softmax and dropout."""
