"""The constants of our own catalog that training runs inform, each with what was known of it before any run was seen.

A prior is a value from a kernel table, a paper or a data sheet, with the spread (standard deviation of its logarithm)
that such a value deserves. Fitted without a source, a constant that only that source informs falls back on its prior,
so that leave-one-source-out errors are honest.
"""

from __future__ import annotations

from dataclasses import dataclass

from meshwright.measure.constants import Constant, Place
from meshwright.measure.places import (
    AcceleratorNumber,
    AttentionEfficiency,
    AttentionNumber,
    LevelNumber,
    Only,
    SoftwareNumber,
    Tied,
)

EAGER = (
    "llm-foundry-2023",
    "deepspeed-2023",
    "internevo-2023",
    "paddle-2023",
    "megatron-deepspeed-2022",
    "fsdp-2024",
    "meshwright",
)
COMPILED = ("torchtitan-2024", "torchtitan-2025")
FUSED = ("megatron-2021", "megatron-core-2024", "nemo-2024", *COMPILED, "current")
MEGATRON = ("megatron-2021", "megatron-deepspeed-2022")
OLDER_FABRICS = ("infiniband-hdr", "infiniband-edr", "omni-path-100g", "roce-100g", "roce-200g")
NEWER_FABRICS = ("infiniband-ndr", "roce-400g", "infiniband-xdr", "roce-800g")


@dataclass(frozen=True)
class Known:
    """A constant and its prior."""

    name: str
    place: Place
    prior: float
    spread: float
    meaning: str
    source: str
    high: float = 1.0
    reference: str = ""
    """The accelerator whose entry says the value; others keep their proportion to it."""


def _sustained(family: str, names: tuple[str, ...]) -> Known:
    return Known(
        f"sustained.{family}",
        AcceleratorNumber("sustained", Only.of(names)),
        0.8,
        0.1,
        "share of a single matmul's rate that a training step keeps: power and clocks",
        "between the 0.75 and 0.85 of single kernels that tuned runs report",
        reference=names[0],
    )


CONSTANTS = (
    _sustained("ampere", ("a100-80g", "a100-40g", "a100-pcie-80g", "a100-pcie-40g", "a800")),
    _sustained("hopper", ("h100", "h100-96g", "h100-nvl", "h100-pcie", "h200", "h800", "gh200", "h20")),
    _sustained("blackwell", ("b200", "gb200", "b300", "gb300")),
    Known(
        "attention.flash",
        Tied(
            tuple(
                AttentionEfficiency(kernel, family)
                for kernel in ("flash2", "triton")
                for family in ("ampere", "hopper")
            )
        ),
        0.45,
        0.3,
        "FlashAttention 1 and 2 in training, as the A100's share with FlashAttention 2",
        "0.58 of the peak in the kernel table (forward only) and in Dao 2023, figure 4, less what 16-bit products lose",
        reference="a100-80g",
    ),
    Known(
        "attention.cudnn",
        Tied(tuple(AttentionEfficiency("cudnn", family) for family in ("hopper", "blackwell"))),
        0.45,
        0.3,
        "cuDNN 9 in training, as the H100's share",
        "0.55 to 0.6 forward and backward in Shah et al. 2024 (FlashAttention-3), less what 16-bit products lose",
        reference="h100",
    ),
    Known(
        "attention.unfused",
        AttentionNumber("traffic_factor", "unfused"),
        1.0,
        0.25,
        "traffic of unfused attention over the sum of its kernels' reads and writes",
        "1: every kernel reads and writes all of it",
        high=2.0,
    ),
    Known(
        "elementwise.eager",
        Tied(
            (
                SoftwareNumber(("elementwise_factor",), frozenset(EAGER)),
                SoftwareNumber(("eager_elementwise_factor",), frozenset(COMPILED)),
            )
        ),
        2.0,
        0.25,
        "memory traffic of norms, activations and residuals over the least, one kernel an operation",
        "each of about two operations reads and writes what a fused kernel would once",
        high=4.0,
    ),
    Known(
        "elementwise.fused",
        SoftwareNumber(("elementwise_factor",), frozenset(FUSED)),
        1.2,
        0.25,
        "the same with fused or compiled kernels",
        "1 would be perfect fusion",
        high=4.0,
    ),
    Known(
        "tensor collectives",
        SoftwareNumber(("tensor_collective_factor",), frozenset((*MEGATRON, "megatron-core-2024", "nemo-2024"))),
        1.2,
        0.2,
        "a collective between two kernels of a step over the same in a benchmark loop",
        "launch and stragglers: about a fifth",
        high=3.0,
    ),
    Known(
        "fabric.older",
        LevelNumber("efficiency", names=frozenset(OLDER_FABRICS)),
        0.65,
        0.25,
        "share of the network's rate that collectives of a step reach, adapters of up to 200 Gb/s",
        "nccl-tests over several nodes of A100 reach 0.6 to 0.9 of the rate",
    ),
    Known(
        "fabric.newer",
        LevelNumber("efficiency", names=frozenset(NEWER_FABRICS)),
        0.8,
        0.25,
        "the same for adapters of 400 Gb/s",
        "nccl-tests over several nodes of H100",
    ),
    Known(
        "misaligned by 64",
        SoftwareNumber(("misaligned_64_factor",)),
        1.3,
        0.2,
        "time factor of a matmul with a width that is no multiple of 64",
        "NVIDIA, Matrix Multiplication Background (2023), figures on alignment",
        high=4.0,
    ),
)


def constant(known: Known) -> Constant:
    """As the fit takes it, around its prior."""
    return Constant(known.name, known.place, known.prior, known.spread, 0.0, known.high)
