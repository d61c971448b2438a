"""The tables of rocm-smi and amd-smi: which section holds the kinds of links, and the NUMA nodes beside it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from meshwright.sources.topology.cells import is_bus_address

_TITLES = {
    "weight": re.compile(r"weight between|weight table", re.IGNORECASE),
    "hops": re.compile(r"hops between|hops table", re.IGNORECASE),
    "link type": re.compile(r"link type between|link type table", re.IGNORECASE),
    "other": re.compile(
        r"numa nodes|numa bw table|access table|end of rocm|cache coherency|atomics table|dma table"
        r"|bi-directional table|link status|topology information|system management interface|accessibility between",
        re.IGNORECASE,
    ),
}
_NUMA = re.compile(r"GPU\[(\d+)\].*Numa Node\s*:\s*(\d+)", re.IGNORECASE)


@dataclass
class Sections:
    """What the tools print one below the other. `titles` names the tables that were found."""

    titles: tuple[str, ...]
    link_types: list[str]
    numa: dict[int, str]


def sections(lines: list[str]) -> Sections | None:
    """The sections of an AMD printout; None for anything else."""
    found: list[str] = []
    link_types: list[str] = []
    current = ""
    for line in lines:
        title = next((name for name, pattern in _TITLES.items() if pattern.search(line)), "")
        if title:
            current = title
            found.append(title)
        elif current == "link type":
            link_types.append(line)
    if not {"weight", "hops", "link type"} & set(found):
        return None
    numa = {int(match[1]): match[2] for match in map(_NUMA.search, lines) if match}
    return Sections(tuple(dict.fromkeys(found)), _plain(link_types), numa)


def _plain(lines: list[str]) -> list[str]:
    """With GPUs by number, where they are named by bus address, and X on the diagonal, where 0 stands for it."""
    addresses = list(dict.fromkeys(token for line in lines for token in line.split() if is_bus_address(token)))
    numbers = {address: f"GPU{number}" for number, address in enumerate(addresses)}
    plain = []
    for line in lines:
        tokens = [numbers.get(token, token) for token in line.split()]
        plain.append(" ".join("X" if token == "0" else token for token in tokens))
    return plain
