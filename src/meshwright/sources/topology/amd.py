"""The tables of rocm-smi and amd-smi: which section holds the kinds of links, and the NUMA nodes beside it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from meshwright.sources.topology.cells import is_bus_address

_TITLES = {
    "weight": ("weight between", "weight table"),
    "hops": ("hops between", "hops table"),
    "link type": ("link type between", "link type table"),
    "other": (
        "numa nodes", "numa bw table", "access table", "end of rocm", "cache coherency table", "atomics table",
        "dma table", "bi-directional table", "link status table", "rocm system management", "accessibility between",
    ),
}  # fmt: skip
_ANY_TITLE = re.compile(
    "|".join(f"({'|'.join(titles)})".replace(" ", r"\s+") for titles in _TITLES.values()), re.IGNORECASE
)
_NUMA = re.compile(r"GPU\[(\d+)\][\s:]*\(Topology\)\s+Numa\s+Node[\s:]*(\d+)", re.IGNORECASE)


@dataclass
class Sections:
    """What the tools print one below the other. `titles` names the tables that were found."""

    titles: tuple[str, ...]
    link_types: list[str]
    numa: dict[int, str]


def sections(lines: list[str]) -> Sections | None:
    """The sections of an AMD printout; None for anything else."""
    text = "\n".join(lines)
    matches = list(_ANY_TITLE.finditer(text))
    found = [list(_TITLES)[match.lastindex - 1] for match in matches if match.lastindex]
    if not {"weight", "hops", "link type"} & set(found):
        return None
    ends = [*(match.start() for match in matches[1:]), len(text)]
    link_types = [
        line
        for title, match, end in zip(found, matches, ends, strict=True)
        if title == "link type"
        for line in text[match.end() : end].split("\n")
    ]
    numa = {int(match[1]): match[2] for match in _NUMA.finditer(text)}
    return Sections(tuple(dict.fromkeys(found)), _plain(link_types), numa)


def _plain(lines: list[str]) -> list[str]:
    """With GPUs by number, where they are named by bus address, and X on the diagonal, where 0 stands for it."""
    addresses = list(dict.fromkeys(token for line in lines for token in line.split() if is_bus_address(token)))
    numbers = {address: f"GPU{number}" for number, address in enumerate(addresses)}
    plain = []
    for line in lines:
        tokens = [numbers.get(token, token) for token in line.split() if token.strip("=")]
        plain.append(" ".join("X" if token == "0" else token for token in tokens))
    return plain
