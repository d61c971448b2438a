"""What a person should know about the NVLinks of a printout."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

from meshwright.sources.presets import load_preset, with_accelerator
from meshwright.sources.topology.cells import NVLINK
from meshwright.sources.topology.domains import Uneven, is_switched, link_weights
from meshwright.sources.topology.hierarchy import Hierarchy
from meshwright.sources.topology.matrix import Matrix, name
from meshwright.sources.topology.rings import Weights
from meshwright.sources.topology.wording import gpu_list, listed, shortened, visible
from meshwright.spec.cluster import Accelerator


def nvlink_findings(matrix: Matrix, accelerator: Accelerator, built: Hierarchy) -> list[str]:
    """Warnings, the most important first."""
    return [
        *_no_nvlink(matrix, accelerator),
        *_without_nvlink(matrix, built),
        *_uneven(matrix, built),
        *_link_counts(matrix, accelerator, built),
    ]


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
    return [
        _uneven_groups(matrix, built, uneven)
        for uneven in built.domains.uneven
        if uneven.reach == NVLINK and all(len(group) > 1 for group in uneven.groups)  # else see _without_nvlink
    ]


def _uneven_groups(matrix: Matrix, built: Hierarchy, uneven: Uneven) -> str:
    sizes = listed([str(len(group)) for group in uneven.groups])
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
    elif weights:
        found += _unused(accelerator, [gpu for group in groups for gpu in group], weights, switched)
    return found


def _unused(accelerator: Accelerator, gpus: list[int], weights: list[Weights], switched: bool) -> list[str]:
    """Links that a GPU has and the table doesn't show."""
    shown = [max(row) if switched else sum(row) for each in weights for row in each]
    fewer = sorted({count for count in shown if count < accelerator.links})
    if not fewer:
        return []
    whose = [gpu_list([gpu for gpu, has in zip(gpus, shown, strict=True) if has == count]) for count in fewer]
    counts = [f"{count} for {who}" for count, who in zip(fewer, whose, strict=True)]
    what = str(fewer[0]) if len(set(shown)) == 1 else listed(counts)
    return [
        f"of the {accelerator.links} NVLinks of {accelerator.name}, the table shows {what}: the others are down or "
        "lead to GPUs that are not in it, or the box holds another accelerator"
    ]


def _linked(matrix: Matrix) -> dict[int, set[int]]:
    """The peers that each GPU reaches over NVLink."""
    peers: dict[int, set[int]] = {gpu: set() for gpu in matrix.gpus}
    for (one, other), path in matrix.paths.items():
        if path.reach == NVLINK:
            peers[one].add(other)
            peers[other].add(one)
    return peers


def _consequence(alone: list[int], level: str) -> str:
    what = "a group with it" if len(alone) == 1 else "a group with one of them"
    return f"Ranks fill equal domains, and {what} runs over PCIe, so all are planned over PCIe ({level})."


def _its(gpus: list[int]) -> str:
    return "its" if len(gpus) == 1 else "their"


def _it(gpus: list[int]) -> str:
    return "it" if len(gpus) == 1 else "them"


def _has(gpus: list[int]) -> str:
    return "has" if len(gpus) == 1 else "have"
