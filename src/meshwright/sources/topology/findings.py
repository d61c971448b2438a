"""What a person should know about the GPUs of a printout, each with what to do about it."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

from meshwright.sources.presets import load_preset, with_accelerator
from meshwright.sources.topology.cells import NVLINK, PIX, PXB, SYS
from meshwright.sources.topology.domains import Uneven, is_switched, link_weights
from meshwright.sources.topology.hierarchy import Hierarchy, peer_to_peer
from meshwright.sources.topology.matrix import Matrix, name
from meshwright.sources.topology.nvlink import is_known_box
from meshwright.sources.topology.wording import gpu_list, listed, shortened, visible
from meshwright.spec.cluster import Accelerator

_SHARED = {PIX: "a PCIe switch", PXB: "PCIe switches"}


def gpu_findings(matrix: Matrix, accelerator: Accelerator, built: Hierarchy) -> list[str]:
    """Warnings, the most important first."""
    found = [
        *_no_nvlink(matrix, accelerator),
        *_without_nvlink(matrix, built),
        *_uneven(matrix, built),
        *_link_counts(matrix, accelerator, built),
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


def _linked(matrix: Matrix) -> dict[int, set[int]]:
    """The peers that each GPU reaches over NVLink."""
    peers: dict[int, set[int]] = {gpu: set() for gpu in matrix.gpus}
    for (one, other), path in matrix.paths.items():
        if path.reach == NVLINK:
            peers[one].add(other)
            peers[other].add(one)
    return peers


def _no_nvlink(matrix: Matrix, accelerator: Accelerator) -> list[str]:
    """None at all, on an accelerator whose boxes have it (cards that may be bridged often have none)."""
    if not accelerator.link_bytes_per_s or any(path.reach == NVLINK for path in matrix.paths.values()):
        return []
    kinds = {level.kind for each in with_accelerator(accelerator.name) for level in load_preset(each).levels}
    if len(matrix.gpus) < 2 or not kinds & {"switch", "mesh"}:
        return []
    links = "XGMI" if matrix.amd else "NVLink"
    check = "the driver's log" if matrix.amd else "`nvidia-smi nvlink -s` and whether nvidia-fabricmanager runs"
    return [
        f"no {links} in the table, although {accelerator.name} has it: planned over PCIe. Look at {check}; if these "
        "are PCIe cards, name that accelerator"
    ]


def _without_nvlink(matrix: Matrix, built: Hierarchy) -> list[str]:
    peers = _linked(matrix)
    alone = [gpu for gpu in matrix.gpus if not peers[gpu]]
    linked = [gpu for gpu in matrix.gpus if peers[gpu]]
    if not alone or not linked:  # all or none: see _no_nvlink
        return []
    usual = Counter(path.text for path in matrix.paths.values() if path.reach == NVLINK).most_common(1)[0][0]
    read = {path.text: path for pair, path in matrix.paths.items() if set(pair) & set(alone)}
    cells = listed([path.text for path in sorted(read.values())])
    levels = built.levels[0].name if built.levels else "the host"
    rest = _consequence(alone, levels)
    keep = f"{visible(linked)} keeps the linked ones; delete the rows and columns of {gpu_list(alone)} to plan for them"
    if len(linked) > 2 and all(len(peers[gpu]) >= len(linked) - 1 - len(matrix.open) for gpu in linked):
        check = f"`nvidia-smi nvlink -s -i {alone[0]}` shows its links"
        return [
            f"NVLink of {gpu_list(alone)} is down: {_its(alone)} cells read {cells} where those of the other "
            f"{len(linked)} read {usual}. {rest} {check}. Or leave {_it(alone)} out: {keep}"
        ]
    return [f"{gpu_list(alone)} {_has(alone)} no NVLink, {gpu_list(linked)} have ({usual}). {rest} {keep}"]


def _uneven(matrix: Matrix, built: Hierarchy) -> list[str]:
    found = []
    for uneven in built.domains.uneven:
        sizes = listed([str(len(group)) for group in uneven.groups])
        if uneven.reach == NVLINK:
            if any(len(group) == 1 for group in uneven.groups):
                continue  # said by _without_nvlink
            found.append(_uneven_nvlink(matrix, built, uneven, sizes))
            continue
        smallest = min(len(group) for group in uneven.groups)
        shared = _SHARED.get(uneven.reach, "a NUMA node or host bridge")
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


def _uneven_nvlink(matrix: Matrix, built: Hierarchy, uneven: Uneven, sizes: str) -> str:
    if len({len(group) for group in uneven.groups}) > 1:
        planned = len(built.domains.nvlink[0]) if built.domains.nvlink else 1
        how = f"groups of {planned}" if planned > 1 else "single GPUs"
        members = "; ".join(gpu_list(group) for group in uneven.groups)
        return f"NVLink joins groups of {sizes} ({members}): ranks fill equal domains only, so {how} are planned"
    missing = [
        f"{name(a)}-{name(b)}"
        for group in uneven.groups
        for a, b in combinations(sorted(group), 2)
        if (path := matrix.paths.get((a, b))) is not None and path.reach != NVLINK
    ]
    return (
        f"no NVLink between {shortened(missing)}, so no ring over NVLink passes all GPUs that it joins: no NVLink "
        f"level is planned for {gpu_list([gpu for group in uneven.groups for gpu in group])}. If links are down, mend "
        "them (`nvidia-smi nvlink -s`)"
    )


def _link_counts(matrix: Matrix, accelerator: Accelerator, built: Hierarchy) -> list[str]:
    groups = built.domains.nvlink
    if not groups or matrix.amd:
        return []
    pairs = [
        (path, one, other)
        for group in groups
        for one, other in combinations(sorted(group), 2)
        if (path := matrix.paths.get((one, other))) is not None and path.reach == NVLINK
    ]
    if not pairs:
        return []
    fewest, most = min(path.links for path, _, _ in pairs), max(path.links for path, _, _ in pairs)
    even = fewest == most
    complete = not any(pair in matrix.open for group in groups for pair in combinations(sorted(group), 2))
    weights = [link_weights(group, matrix.paths) for group in groups] if complete else []
    switched = any(is_switched(each, accelerator.links) for each in weights)
    found = []
    if not even and (switched or len(groups[0]) == 2):
        slow = [f"{name(one)}-{name(other)}" for path, one, other in pairs if path.links == fewest]
        usual = listed(sorted({path.text for path, _, _ in pairs if path.links != fewest}))
        found.append(
            f"{shortened(slow)} {'has' if len(slow) == 1 else 'have'} NV{fewest} where others have {usual}: all are "
            f"planned at NV{fewest}, since a step waits for the slowest. `nvidia-smi nvlink -s` shows links that are "
            "down"
        )
    used = most if switched or not weights else max(sum(row) for each in weights for row in each)
    if used < accelerator.links:
        links = "1 of the" if used == 1 else f"{used} of the"
        found.append(
            f"the table shows {links} {accelerator.links} NVLinks of {accelerator.name}: the others are down or lead "
            "to GPUs that are not in it, or the box holds another accelerator"
        )
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
    shared = listed([f"{gpu_list(gpus)} NUMA node {node}" for node, gpus in together.items()])
    return [f"{text}, although {shared} share; keep small groups within a node"]


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


def _consequence(alone: list[int], level: str) -> str:
    what = "a group with it" if len(alone) == 1 else "a group with one of them"
    return f"Ranks fill equal domains, and {what} runs over PCIe, so all are planned over PCIe ({level})."


def _its(gpus: list[int]) -> str:
    return "its" if len(gpus) == 1 else "their"


def _it(gpus: list[int]) -> str:
    return "it" if len(gpus) == 1 else "them"


def _has(gpus: list[int]) -> str:
    return "has" if len(gpus) == 1 else "have"
