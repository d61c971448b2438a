"""What a person should know about the network adapters of a printout."""

from __future__ import annotations

from meshwright.sources.topology.cells import PHB, SYS
from meshwright.sources.topology.matrix import Matrix
from meshwright.sources.topology.wording import gpu_list, listed, shortened


def near_adapters(matrix: Matrix) -> tuple[str, ...]:
    """Adapters that some GPU reaches without crossing sockets; all of them where none is so near."""
    near = {adapter for (_, adapter), path in matrix.nic_paths.items() if path.reach < SYS}
    return tuple(matrix.nics[adapter] for adapter in sorted(near)) or matrix.nics


def adapter_findings(matrix: Matrix) -> list[str]:
    """Warnings about where the adapters are."""
    if not matrix.nic_paths:
        return []
    paths = list(matrix.nic_paths.values())
    if len(matrix.nics) > 1 and all(path.reach == PHB for path in (*paths, *matrix.nic_pairs)):
        return [
            f"all {len(matrix.nics)} network adapters read PHB to everything: a virtual machine hides which GPU each "
            "is near. Give NCCL the provider's description of the machine (NCCL_TOPO_FILE)"
        ]
    return [*_far_adapters(matrix), *_far_gpus(matrix)]


def _far_adapters(matrix: Matrix) -> list[str]:
    near = near_adapters(matrix)
    far = [adapter for adapter in matrix.nics if adapter not in near]
    if not far:
        return []
    named = not any(adapter.upper().startswith("NIC") for adapter in near)
    keep = f"NCCL_IB_HCA={','.join(near)}" if named else f"NCCL_IB_HCA with the names of {listed(near)}"
    return [
        f"{shortened(far)} {'is' if len(far) == 1 else 'are'} across the sockets (SYS) from every GPU here: keep "
        f"traffic on {shortened(near)} ({keep})"
    ]


def _far_gpus(matrix: Matrix) -> list[str]:
    nearest: dict[int, int] = {}
    for (gpu, _), path in matrix.nic_paths.items():
        nearest[gpu] = min(path.reach, nearest.get(gpu, SYS))
    far = [gpu for gpu, reach in nearest.items() if reach == SYS]
    if not far:
        return []
    if len(far) == len(nearest):
        adapters = shortened(matrix.nics)
        return [f"no network adapter is near a GPU: all traffic to other nodes crosses the sockets ({adapters})"]
    near = [gpu for gpu in nearest if gpu not in far]
    adapter = matrix.nics[0] if len(matrix.nics) == 1 else "every network adapter"
    return [
        f"{gpu_list(far)} {'reaches' if len(far) == 1 else 'reach'} {adapter} across the sockets only (SYS), which "
        f"slows their traffic to other nodes: move an adapter to their side, or use {gpu_list(near)} alone where they "
        "are enough"
    ]
