"""Whether the printout can be of the accelerator that was named."""

from __future__ import annotations

from meshwright.sources.accelerators import load_accelerator
from meshwright.sources.catalog import entry_names
from meshwright.sources.topology.cells import NVLINK
from meshwright.sources.topology.matrix import Matrix, name
from meshwright.spec.cluster import Accelerator
from meshwright.spec.errors import InputError


def check_agreement(matrix: Matrix, accelerator: Accelerator, where: str) -> None:
    """Raises InputError where the table shows links that the accelerator doesn't have."""
    vendor = "amd" if matrix.amd else "nvidia"
    if accelerator.vendor and accelerator.vendor != vendor:
        tool = "rocm-smi" if matrix.amd else "nvidia-smi"
        raise InputError(
            f"is a table of {tool}, but the accelerator is {accelerator.name}, of another vendor", where, _name_it()
        )
    for (one, other), path in matrix.paths.items():
        if path.reach != NVLINK:
            continue
        cell = f"{name(one)} and {name(other)} are joined by {path.text}"
        if not accelerator.link_bytes_per_s:
            raise InputError(f"{cell}, but {accelerator.name} has no such links", where, _name_it(path.links))
        if path.links > accelerator.links and not matrix.amd:
            raise InputError(
                f"{cell}, but {accelerator.name} has {accelerator.links} links", where, _name_it(path.links)
            )


def _name_it(links: int = 0) -> str:
    if not links:
        return "name the accelerator of this box"
    fitting = [each for each in map(load_accelerator, entry_names("accelerators")) if each.links >= links]
    fewest = min((each.links for each in fitting), default=0)
    near = [each.name for each in fitting if each.links == fewest]
    return "name the accelerator of this box" + (f", such as {', '.join(near)}" if near else "")
