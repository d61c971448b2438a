"""Topology printouts and what becomes of them, as a Markdown table.

    python docs/topologies.py ACCELERATOR=FILE …

prints the table for any printouts; `generate.py` writes it for the examples beside this file.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import meshwright as mw
from meshwright.show import units

FOLDER = Path(__file__).resolve().parent / "topologies"
EXAMPLES = {
    "switched": "h100",
    "bridged-pairs": "a6000",
    "crossed-pairs": "a6000",
    "link-down-in-a-mail": "h100",
    "pair-and-one": "a6000",
    "switches-and-sockets": "a100-pcie-80g",
    "no-peer-to-peer": "4090",
    "half-a-cube-mesh": "v100-32g",
    "three-and-two": "t4",
    "two-hives": "mi300x",
    "rows-missing": "a6000",
    "another-tool": "h100",
}
"""Printouts of the folder and the accelerator that each is read with."""


def examples_table() -> str:
    """What becomes of the examples."""
    return topology_table((accelerator, FOLDER / f"{name}.txt") for name, accelerator in EXAMPLES.items())


def topology_table(printouts: Iterable[tuple[str, Path]]) -> str:
    """One row for each printout: its levels from the inside out and its warnings, or the error."""
    lines = ["| printout | read as | levels, innermost first | what is said |", "|---|---|---|---|"]
    for accelerator, path in printouts:
        levels, said = _outcome(accelerator, path)
        lines.append(f"| `{path.stem}` | {accelerator} | {levels} | {_cell(said)} |")
    return "\n".join(lines) + "\n"


def _outcome(accelerator: str, path: Path) -> tuple[str, list[str]]:
    try:
        cluster = mw.load_cluster(f"topo:{path}", accelerator=accelerator)
    except mw.InputError as error:
        return "refused", [str(error).replace(str(path), path.name)]
    levels = [f"{_called(level)} of {level.size}, {units.rate(level.bytes_per_s)}" for level in cluster.levels]
    order = [f"devices {', '.join(map(str, cluster.devices))}"] if cluster.devices else []
    return "<br>".join(levels + order), list(cluster.warnings)


def _called(level: mw.Level) -> str:
    """Its name, with its kind where that says more."""
    return level.name if level.kind in (level.name, "host") else f"{level.name} {level.kind}"


def _cell(said: list[str]) -> str:
    escaped = [text.replace("|", "\\|").replace("<", "\\<").replace("*", "\\*") for text in said]
    return "<br>".join(f"• {text}" for text in escaped)


def main() -> None:
    print(
        topology_table((name, Path(file)) for name, _, file in (each.partition("=") for each in sys.argv[1:])), end=""
    )


if __name__ == "__main__":
    main()
