"""What is asked of the model: a training job."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from meshwright.spec.errors import InputError

DTYPES = ("bf16", "fp16", "fp8", "fp32")


class OptimizerState(NamedTuple):
    """Bytes that one trained parameter needs beside its low-precision weight and its gradient."""

    master_bytes: float
    """fp32 copy of the weight; 0 where the weight itself is fp32."""
    moment_bytes: float


OPTIMIZERS = MappingProxyType(
    {
        "adamw": OptimizerState(4, 8),  # Rajbhandari et al. 2020 (ZeRO), section 3.1: K = 12
        "adamw-8bit": OptimizerState(4, 2),  # Dettmers et al. 2022: both moments in one byte
        "adamw-bf16": OptimizerState(0, 4),  # no fp32 copy, both moments in bf16
        "lion": OptimizerState(4, 4),  # Chen et al. 2023: one moment
        "muon": OptimizerState(4, 4),  # Jordan et al. 2024: one moment
        "adafactor": OptimizerState(4, 0),  # Shazeer & Stern 2018: rows and columns only
        "sgd": OptimizerState(4, 0),
        "sgd-momentum": OptimizerState(4, 4),
    }
)
"""Mixed-precision training states by optimizer, bytes per parameter."""


@dataclass(frozen=True, slots=True)
class Training:
    """One training step over `global_batch` sequences of `seq_len` tokens."""

    global_batch: int
    seq_len: int
    dtype: str = "bf16"
    optimizer: str = "adamw"
    tokens: float = 0.0
    """Tokens to train on in total; 0: not stated."""

    def __post_init__(self) -> None:
        for name, value in (("global_batch", self.global_batch), ("seq_len", self.seq_len)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InputError(f"{name} is {value!r}; it must be a whole number of at least 1")
        if self.dtype not in DTYPES:
            raise InputError(f"dtype is {self.dtype!r}; it must be one of {', '.join(DTYPES)}")
        if self.optimizer not in OPTIMIZERS:
            raise InputError(f"optimizer is {self.optimizer!r}; it must be one of {', '.join(OPTIMIZERS)}")
        if not self.tokens >= 0:
            raise InputError(f"tokens is {self.tokens!r}; it must not be negative")

    @property
    def tokens_per_step(self) -> int:
        return self.global_batch * self.seq_len

    @property
    def weight_bytes(self) -> int:
        """Bytes of one weight as the matmuls read it from storage (fp8 recipes keep bf16 weights and cast)."""
        return 4 if self.dtype == "fp32" else 2

    @property
    def activation_bytes(self) -> int:
        return 4 if self.dtype == "fp32" else 2
