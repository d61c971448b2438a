"""What a person should know about the GPUs of a printout, each with what to do about it."""

from __future__ import annotations

from meshwright.sources.presets import load_preset, with_accelerator
from meshwright.sources.topology.cells import NVLINK, PIX, PXB, SYS
from meshwright.sources.topology.hierarchy import Hierarchy, peer_to_peer
from meshwright.sources.topology.matrix import Matrix, name
from meshwright.sources.topology.nvlink import is_known_box
from meshwright.sources.topology.nvlink_findings import nvlink_findings
from meshwright.sources.topology.wording import gpu_list, listed, visible
from meshwright.spec.cluster import Accelerator

_SHARED = {PIX: "a PCIe switch", PXB: "PCIe switches"}


def gpu_findings(matrix: Matrix, accelerator: Accelerator, built: Hierarchy) -> list[str]:
    """Warnings, the most important first."""
    found = [
        *nvlink_findings(matrix, accelerator, built),
        *_uneven(built),
        *_peer_copies(matrix, accelerator),
        *_far_apart(matrix),
        *_odd_count(matrix, built),
        *_order(matrix, built),
        *_beyond_the_table(matrix, accelerator),
        *_open_cells(matrix),
        *_numa(matrix),
        *matrix.notes,
    ]
    return list(dict.fromkeys(found))


def _uneven(built: Hierarchy) -> list[str]:
    found = []
    for uneven in built.domains.uneven:
        if uneven.reach == NVLINK:
            continue
        sizes = listed([str(len(group)) for group in uneven.groups])
        smallest = min(len(group) for group in uneven.groups)
        shared = _SHARED.get(uneven.reach, "a host bridge or NUMA node")
        members = "; ".join(gpu_list(group) for group in uneven.groups)
        text = (
            f"the GPUs that share {shared} are {sizes} ({members}): ranks fill domains of equal size only, so that "
            f"level is left out and all are planned at {built.levels[-1].name}"
        )
        if smallest > 1:
            even = sorted(gpu for group in uneven.groups for gpu in sorted(group)[:smallest])
            text += f". {visible(even)} gives domains of {smallest}"
        found.append(text)
    return found


def _peer_copies(matrix: Matrix, accelerator: Accelerator) -> list[str]:
    if peer_to_peer(matrix, accelerator) or not any(path.reach != NVLINK for path in matrix.paths.values()):
        return []
    who = (
        "the peer-to-peer table beside it says that copies between cards are refused"
        if matrix.peers_refused
        else f"no peer-to-peer copies over PCIe: the driver refuses them between {accelerator.name} cards"
    )
    return [
        f"{who}, so traffic between them goes through host memory, which all cards share, and is planned so. "
        "`nvidia-smi topo -p2p r` shows what yours allows"
    ]


def _far_apart(matrix: Matrix) -> list[str]:
    paths = list(matrix.paths.values())
    if matrix.amd or not paths or any(path.reach != SYS for path in paths):
        return []
    nodes: dict[str, list[int]] = {}
    for gpu, node in matrix.numa.items():
        nodes.setdefault(node, []).append(gpu)
    text = "no two GPUs are nearer than SYS: every transfer between them crosses processors"
    together = {node: gpus for node, gpus in nodes.items() if len(gpus) > 1}
    if not together or len(nodes) < 2:
        return [text]
    places = listed([f"{gpu_list(gpus)} on node {node}" for node, gpus in together.items()])
    return [f"{text}, although their NUMA nodes differ ({places}): keep small groups within a node"]


def _odd_count(matrix: Matrix, built: Hierarchy) -> list[str]:
    count = len(matrix.gpus)
    if count < 3 or count % 2 == 0:
        return []
    divisors = [str(d) for d in range(1, count + 1) if count % d == 0]
    text = (
        f"{count} GPUs are in the table, an odd number: if one is missing, look for it in `nvidia-smi -L` and the "
        f"driver's log. Degrees must divide {count} ({listed(divisors)})"
    )
    if not built.domains.uneven:  # else another warning says which to leave out
        text += f"; {visible(matrix.gpus[: count - 1])} leaves {count - 1}"
    return [text]


def _order(matrix: Matrix, built: Hierarchy) -> list[str]:
    if built.rank_order == tuple(range(len(matrix.gpus))):
        return []
    if built.rank_order == tuple(sorted(built.rank_order)):
        return [f"the table leaves out some GPUs of the node: start the job with {visible(built.rank_order)}"]
    return [
        "the GPUs that are nearest to each other are not numbered one after the other, and ranks fill neighbours "
        f"first: start the job with {visible(built.rank_order)}"
    ]


def _beyond_the_table(matrix: Matrix, accelerator: Accelerator) -> list[str]:
    if matrix.amd:
        found = []
        if any(path.reach == NVLINK for path in matrix.paths.values()) and not accelerator.links:
            box = is_known_box(accelerator, len(matrix.gpus))
            taken = f"taken as in {box}" if box else "one link between any two is assumed"
            found.append(f"XGMI cells don't say which {accelerator.name} are direct neighbours: {taken}")
        if any(path.reach == SYS for path in matrix.paths.values()) and not matrix.has_numa:
            found.append(
                "PCIE cells don't say over which path: planned as across processor sockets. NUMA nodes below the table "
                "(`rocm-smi --showtoponuma`) would tell"
            )
        return found
    racks = [rack for each in with_accelerator(accelerator.name) if (rack := load_preset(each)).hosts > 1]
    if racks and any(path.reach == NVLINK for path in matrix.paths.values()):
        return [
            f"the table shows one tray; NVLink of the {accelerator.name} joins all {racks[0].accelerators_per_node} "
            f"of a rack: --cluster {racks[0].name} plans for it"
        ]
    return []


def _open_cells(matrix: Matrix) -> list[str]:
    found = []
    for (one, other), cell in matrix.open.items():
        found.append(
            f"the path between {name(one)} and {name(other)} was not read ({cell.reason}); the hierarchy is the same "
            "whatever it is"
        )
    return found


def _numa(matrix: Matrix) -> list[str]:
    if not matrix.has_numa or matrix.numa or len(matrix.gpus) < 2 or matrix.amd:
        return []
    return [
        "no NUMA node is given for any GPU: there is one only, or a container or virtual machine hides them. If the "
        "host has several, bind each process to the one of its GPU yourself"
    ]
