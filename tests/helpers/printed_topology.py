"""Writes topology tables as nvidia-smi does, and does to them what mail, chats and terminals do."""

from __future__ import annotations

import html
import json
import textwrap
from collections.abc import Callable, Sequence

LEGEND = """
Legend:

  X    = Self
  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)
  NODE = Connection traversing PCIe as well as the interconnect between PCIe Host Bridges within a NUMA node
  PHB  = Connection traversing PCIe as well as a PCIe Host Bridge (typically the CPU)
  PXB  = Connection traversing multiple PCIe bridges (without traversing the PCIe Host Bridge)
  PIX  = Connection traversing at most a single PCIe bridge
  NV#  = Connection traversing a bonded set of # NVLinks
"""
NEAREST_FIRST = ("PIX", "PXB", "PHB", "NODE", "SYS")
"""Classes of paths over PCIe, as the legend orders them from its end."""


def table(
    cells: Sequence[Sequence[str]],
    adapters: Sequence[Sequence[str]] = (),
    affinity: bool = True,
    header: bool = True,
) -> str:
    """The printout for GPUs joined by `cells`; `adapters` holds one row of cells to the GPUs for each."""
    gpus = [f"GPU{number}" for number in range(len(cells))]
    nics = [f"NIC{number}" for number in range(len(adapters))]
    lines = []
    if header:
        titles = ["CPU Affinity", "NUMA Affinity", "GPU NUMA ID"] if affinity else []
        lines.append("\t".join(["", *gpus, *nics, *titles]))
    for number, row in enumerate(cells):
        shown = [" X " if other == number else cell for other, cell in enumerate(row)]
        near = [column[number] for column in adapters]
        lines.append("\t".join([gpus[number], *shown, *near, *(["0-63,128-191", "0", "", "N/A"] if affinity else [])]))
    for number, row in enumerate(adapters):
        others = [" X " if other == number else "NODE" for other in range(len(adapters))]
        lines.append("\t".join([nics[number], *row, *others]))
    return "\n".join(lines) + "\n"


def nested(factors: Sequence[int], classes: Sequence[str]) -> list[list[str]]:
    """Cells of GPUs in nested domains, innermost first: two GPUs read the class of the smallest domain that holds
    both."""
    count = 1
    for factor in factors:
        count *= factor
    cells = [["X"] * count for _ in range(count)]
    for one in range(count):
        for other in range(count):
            size = 1
            for factor, each in zip(factors, classes, strict=True):
                size *= factor
                if one != other and one // size == other // size:
                    cells[one][other] = each
                    break
    return cells


def renumbered(cells: Sequence[Sequence[str]], order: Sequence[int]) -> list[list[str]]:
    """The same GPUs under other numbers."""
    return [[cells[one][other] for other in order] for one in order]


def hard_wrapped(text: str, width: int) -> str:
    """As a terminal of that width breaks lines, in the middle of a word where it comes to that."""
    lines = [line.expandtabs(8) for line in text.split("\n")]
    return "\n".join(line[start : start + width] for line in lines for start in range(0, max(len(line), 1), width))


def word_wrapped(text: str, width: int) -> str:
    """As a mail program breaks lines."""
    lines = [" ".join(line.split()) for line in text.split("\n")]
    return "\n".join("\n".join(textwrap.wrap(line, width)) for line in lines)


MANGLES: dict[str, Callable[[str], str]] = {
    "as printed": lambda text: text,
    "tabs as blanks": lambda text: text.expandtabs(8),
    "tabs collapsed": lambda text: "\n".join(" ".join(line.split()) for line in text.split("\n")),
    "windows": lambda text: text.replace("\n", "\r\n"),
    "quoted": lambda text: "".join(f"> {line}\n" for line in text.split("\n")),
    "quoted twice": lambda text: "".join(f"> > {line}\n" for line in text.split("\n")),
    "barred": lambda text: "".join(f"| {line}\n" for line in text.split("\n")),
    "indented": lambda text: textwrap.indent(text, "        "),
    "fenced": lambda text: f"Here it is:\n\n```text\n$ nvidia-smi topo -m\n{text}```\nThanks, GPU0 is fine.\n",
    "coloured": lambda text: "\x1b[4m" + text.replace("\n", "\x1b[0m\n", 1).replace("NV", "\x1b[32mNV\x1b[0m"[:7]),
    "colours without escape": lambda text: "[4m" + text.replace("\n", "[0m\n", 1),
    "no-break spaces": lambda text: text.expandtabs(8).replace(" ", "\u00a0"),
    "double spaced": lambda text: text.replace("\n", "\n\n"),
    "legend after": lambda text: text + LEGEND,
    "legend before": lambda text: LEGEND + "\n" + text,
    "by a launcher": lambda text: "".join(f"[1,0]<stdout>:{line}\n" for line in text.split("\n")),
    "by workers": lambda text: "".join(f"(Worker pid=31) {line}\n" for line in text.split("\n")),
    "in a log": lambda text: json.dumps(text),
    "as a web page": lambda text: html.escape("".join(f"> {line}\n" for line in text.split("\n"))),
    "as a table": lambda text: "".join(f"| {' | '.join(line.split())} |\n" for line in text.split("\n")),
    "between commands": lambda text: (
        f"root@node:~# nvidia-smi -L\nGPU 0: A (UUID: GPU-1)\nroot@node:~# x\n{text}root#\n"
    ),
    "twice": lambda text: text + "\n" + text,
    "wrapped at 80": lambda text: hard_wrapped(text, 80),
    "wrapped at 61": lambda text: hard_wrapped(text, 61),
    "wrapped at words": lambda text: word_wrapped(text, 50),
    "wrapped and quoted": lambda text: "".join(f"> {line}\n" for line in word_wrapped(text, 44).split("\n")),
    "wrapped, windows, quoted": lambda text: "".join(f">> {line}\r\n" for line in hard_wrapped(text, 77).split("\n")),
    "one line": lambda text: " ".join(text.split()),
}
"""What becomes of a table on its way."""
