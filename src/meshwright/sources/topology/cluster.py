"""A printout and the accelerator it is of → a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from meshwright.sources.accelerators import load_accelerator
from meshwright.sources.cluster_files import library_of
from meshwright.sources.fabrics import Fabric, load_fabric
from meshwright.sources.levels import MOST_ACCELERATORS
from meshwright.sources.topology.adapter_findings import adapter_findings, near_adapters
from meshwright.sources.topology.adapters import Adapters, read_adapters
from meshwright.sources.topology.agreement import check_agreement
from meshwright.sources.topology.findings import gpu_findings
from meshwright.sources.topology.hierarchy import build_hierarchy
from meshwright.sources.topology.matrix import Matrix
from meshwright.sources.topology.paste import STANDARD_INPUT, read_paste
from meshwright.sources.topology.printout import read_printout
from meshwright.spec.cluster import Cluster, NodeGroup
from meshwright.spec.errors import InputError


@dataclass(frozen=True)
class Pasted:
    """What is asked for: so many nodes like the one in the file, joined by the fabric (empty: by what `nics` says)."""

    file: str
    nodes: int = 1
    fabric: str = ""
    ports: int = 0


def topology_cluster(asked: Pasted, accelerator: str, nics: str = "") -> Cluster:
    """The cluster of nodes that look like the printout. Raises InputError that says which row or cell can't be read,
    which option is missing, or which contradict each other."""
    device = load_accelerator(_given(accelerator))
    if nics and asked.fabric:
        raise InputError(f"@{asked.fabric} and the ports of {nics} both say what joins the nodes", "", "keep one")
    if nics == asked.file == STANDARD_INPUT:
        raise InputError("the topology and the ports can't both come from standard input", "", "put one into a file")
    where = _place(asked.file)
    matrix = read_printout(read_paste(asked.file), where)
    check_agreement(matrix, device, where)
    built = build_hierarchy(matrix, device, where)
    count = len(matrix.gpus)
    if asked.nodes * count > MOST_ACCELERATORS:
        raise InputError(
            f"{asked.nodes:,} nodes of {count} have more accelerators than the {MOST_ACCELERATORS:,} that are planned "
            "for",
            "",
            f"the nearest that works is {MOST_ACCELERATORS // count}xtopo:{asked.file}",
        )
    adapters = read_adapters(read_paste(nics), _place(nics)) if nics else None
    warnings = (*gpu_findings(matrix, device, built), *adapter_findings(matrix), *_of_adapters(asked, adapters))
    levels = built.levels
    sources = [f"topology printout {where}"]
    if asked.nodes > 1:
        fabric, ports = _fabric(asked, adapters, matrix)
        levels = (*levels, fabric.level(asked.nodes, count, ports))
        sources += [f"ports of {_place(nics)}"] if nics else [fabric.source]
    return Cluster(
        name=_name(asked),
        groups=(NodeGroup(device, asked.nodes, count),),
        levels=levels,
        warnings=warnings,
        sources=tuple(sources),
        library=library_of(device),
        devices=() if built.rank_order == tuple(range(count)) else built.rank_order,
    )


def _given(accelerator: str) -> str:
    if not accelerator.strip():
        raise InputError(
            "a topology says how GPUs are joined, not which they are: the accelerator is missing",
            "",
            "name it, such as --accelerator a100-80g (`meshwright catalog accelerators` lists them)",
        )
    return accelerator


def _of_adapters(asked: Pasted, adapters: Adapters | None) -> tuple[str, ...]:
    unused: tuple[str, ...] = ()
    if asked.nodes == 1 and (adapters is not None or asked.fabric):
        unused = (f"one node only: {asked.fabric or 'the fabric of the ports'} is not used",)
    return (*(adapters.warnings if adapters is not None else ()), *unused)


def _fabric(asked: Pasted, adapters: Adapters | None, matrix: Matrix) -> tuple[Fabric, int]:
    """What joins the nodes, and the ports of each."""
    if adapters is not None:
        return adapters.fabric, adapters.ports
    if not asked.fabric:
        raise InputError(
            f"nothing says what joins the {asked.nodes} nodes",
            "",
            f"add a fabric, such as {asked.nodes}xtopo:{asked.file}@infiniband-ndr:8, or --nics FILE with the output "
            "of `ibstat`",
        )
    fabric = load_fabric(asked.fabric)
    if asked.ports and fabric.node_ports:
        raise InputError(
            f"{fabric.name} is a rate per node ({fabric.node_ports} ports), so ports can't be chosen for it",
            "",
            f"leave out :{asked.ports}",
        )
    return fabric, asked.ports or fabric.ports(len(near_adapters(matrix)))


def _place(file: str) -> str:
    return "standard input" if file == STANDARD_INPUT else file


def _name(asked: Pasted) -> str:
    count = f"{asked.nodes}x" if asked.nodes > 1 else ""
    fabric = f"@{asked.fabric}" if asked.fabric else ""
    ports = f":{asked.ports}" if asked.ports else ""
    return f"{count}topo:{Path(asked.file).name}{fabric}{ports}"
