"""What a text is that holds no topology table, and what to paste instead."""

from __future__ import annotations

import re

from meshwright.sources import checks
from meshwright.spec.errors import InputError

PASTE = "paste the output of `nvidia-smi topo -m` or `rocm-smi --showtopo`"
_KNOWN: tuple[tuple[str, str, str], ...] = (
    (r"no devices were found|no devices found", "says that there is no GPU", "run it where the GPUs are"),
    (
        r"command not found|not recognized as|no such file or directory|has failed because|failed to initialize nvml"
        r"|couldn't communicate",
        "holds an error message, not a table",
        "run it where the GPUs and their driver are",
    ),
    (r"CA '|CA type:|Link layer:|link_layer:", "looks like ibstat output", "pass that with --nics FILE and " + PASTE),
    (
        r"NUMA node\(s\):|Socket\(s\):|NUMA node\d* CPU|BogoMIPS",
        "looks like lscpu output: it says how processors are joined, not GPUs",
        PASTE,
    ),
    (r"\bNVIDIA-SMI \d", "looks like nvidia-smi without topo -m", PASTE),
    (r"^\s*GPU \d+: .*UUID", "looks like nvidia-smi -L: it names the GPUs, not the links between them", PASTE),
    (r"^\s*(accelerator|levels|groups)\s*:", "looks like a cluster file", "pass it without topo:"),
    (r"^\s*X\s*=\s*Self", "holds the legend of a topology table, but not the table", PASTE),
    (r"^\s*[0-9a-f]{2}:[0-9a-f]{2}\.\d ", "looks like lspci output", PASTE),
    (r"available: \d+ nodes", "looks like numactl output: it says how processors are joined, not GPUs", PASTE),
)


def no_table(lines: list[str], where: str) -> InputError:
    """The error for lines without a row that can be read."""
    text = "\n".join(lines)
    first = next((line.strip() for line in lines if line.strip()), "")
    if not first:
        return InputError("is empty", where, PASTE)
    for pattern, what, fix in _KNOWN:
        if re.search(pattern, text, re.IGNORECASE | re.MULTILINE):
            return InputError(what, where, fix)
    return InputError(
        f"holds no row of a topology table, such as `GPU0 X NV12 …`; its first line is {checks.shown(first)}",
        where,
        PASTE,
    )
