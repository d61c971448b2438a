"""GPUs and adapters in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from meshwright.sources.topology.matrix import name


def gpu_list(gpus: Sequence[int]) -> str:
    """GPU0 to GPU3 and GPU7."""
    parts: list[str] = []
    for run in _runs(sorted(gpus)):
        parts += [f"{name(run[0])} to {name(run[-1])}"] if len(run) > 2 else [name(gpu) for gpu in run]
    return listed(parts)


def visible(gpus: Sequence[int]) -> str:
    """The variable that leaves all other GPUs out."""
    return f"CUDA_VISIBLE_DEVICES={','.join(map(str, gpus))}"


def listed(parts: Sequence[str]) -> str:
    """A, B and C."""
    return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))


def shortened(parts: Sequence[str], most: int = 4) -> str:
    """The same, with the rest counted where there are more."""
    if len(parts) <= most:
        return listed(parts)
    return f"{', '.join(parts[:most])} and {len(parts) - most} more"


def _runs(numbers: Sequence[int]) -> list[list[int]]:
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return runs
