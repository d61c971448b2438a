"""The words of a topology table: what stands in a cell, and what names a row or a column."""

from __future__ import annotations

import re
from typing import NamedTuple

NVLINK, PIX, PXB, PHB, NODE, SYS = range(6)
"""Classes of a path between two devices, nearest first (nvidia-smi's legend). NVLINK stands for AMD's XGMI, too."""

_CLASSES = {
    "PIX": PIX,
    "PXB": PXB,
    "PSB": PXB,
    "PHB": PHB,
    "NODE": NODE,
    "SYS": SYS,
    "SOC": SYS,  # what drivers before 384 called SYS
    "PCIE": SYS,  # rocm-smi tells PCIe from XGMI and nothing more
}
_SELF = ("X", "SELF")
_NOT_GIVEN = ("N/A", "UNKNOWN", "?")
_GPU = re.compile(r"GPU\[?(\d{1,4})\]?", re.IGNORECASE)
_BUS = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]", re.IGNORECASE)
_NV = re.compile(r"NV(\d{1,3})", re.IGNORECASE)
_AFFINITY = re.compile(r"[\d,\-]+,?|N/A|None", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z][\w.\-]*")
_TAIL_WORDS = ("CPU", "NUMA", "AFFINITY", "ID")


class Path(NamedTuple):
    """How two devices reach each other; `links` counts bonded NVLinks, 0 where the table doesn't count them."""

    reach: int
    links: int = 0

    @property
    def text(self) -> str:
        """As the table prints it."""
        if self.reach == NVLINK:
            return f"NV{self.links}" if self.links else "XGMI"
        return ("", "PIX", "PXB", "PHB", "NODE", "SYS")[self.reach]


def path_of(token: str) -> Path | None:
    """The path that a cell says; None for the diagonal, and for anything else."""
    word = token.upper()
    if word == "XGMI":
        return Path(NVLINK)
    bonded = _NV.fullmatch(word)
    if bonded and int(bonded[1]):
        return Path(NVLINK, int(bonded[1]))
    return Path(_CLASSES[word]) if word in _CLASSES else None


def is_self(token: str) -> bool:
    """Whether the cell is on the diagonal."""
    return token.upper() in _SELF


def is_cell(token: str) -> bool:
    """Whether the token can only be a cell."""
    return is_self(token) or path_of(token) is not None


def is_not_given(token: str) -> bool:
    """Whether the cell says that it holds nothing."""
    return token.upper() in _NOT_GIVEN


def is_affinity(token: str) -> bool:
    """Whether the token is a list of processors or a NUMA node."""
    return _AFFINITY.fullmatch(token) is not None


def is_tail_word(token: str) -> bool:
    """Whether the token belongs to the titles of the columns behind the table (CPU Affinity, GPU NUMA ID)."""
    return token.upper() in _TAIL_WORDS


def gpu_of(token: str) -> int | None:
    """The number in `GPU3`; None for any other token."""
    found = _GPU.fullmatch(token)
    return int(found[1]) if found else None


def is_bus_address(token: str) -> bool:
    """Whether the token is a PCI address, amd-smi's name of a GPU."""
    return _BUS.fullmatch(token) is not None


def is_name(token: str) -> bool:
    """Whether the token can name a network adapter (NIC0, mlx5_bond_0, ibp24s0)."""
    return _NAME.fullmatch(token) is not None and not is_cell(token) and not is_tail_word(token) and token != "GPU"
