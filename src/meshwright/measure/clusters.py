"""The cluster of a row: its GPU and links, matched with the catalog's accelerators, presets and fabrics."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from meshwright.measure.cells import number, stated, whole
from meshwright.measure.comparison import Row
from meshwright.sources.catalog import entry_names
from meshwright.sources.cluster_files import library_of
from meshwright.sources.fabrics import Fabric, load_fabric
from meshwright.sources.presets import Preset, load_preset, with_accelerator
from meshwright.spec.cluster import Cluster, NodeGroup
from meshwright.spec.errors import InputError

_FABRIC_WORDS = (
    ("omni", "omni-path"), ("slingshot", "slingshot"), ("efa", "efa"), ("roce", "roce"), ("rdma", "roce"),
    ("cx-", "infiniband"), ("ib", "infiniband"), ("infiniband", "infiniband"), ("hdr", "infiniband"),
    ("ndr", "infiniband"), ("edr", "infiniband"), ("ethernet", "ethernet"), ("tcp", "ethernet"),
)  # fmt: skip
_USUAL_GPUS_PER_NODE = 8
_USUAL_ACCELERATOR = "a100-80g"
"""Of a row of memory that doesn't tell its GPU; what a plan needs hardly depends on it, unlike its time."""


def cluster_of(row: Row, accelerators: int, given: Cluster | None = None) -> tuple[Cluster, tuple[str, ...]]:
    """(the cluster of `accelerators` that the row describes, what was assumed of it). The stated network rate is kept,
    whatever the preset has. With a `given` cluster the row ran on a part of that, whatever it says of links. Raises
    InputError where no catalog accelerator is meant, or not the given cluster's."""
    cells = row.cells
    if given is not None:
        return _part_of(given, cells, accelerators), ()
    gpu = stated(cells, "gpu")
    if not gpu and row.kind != "memory":
        raise InputError("gpu is not stated")
    name = accelerator_name(gpu, number(cells, "gpu_mem_gb")) if gpu else _USUAL_ACCELERATOR
    per_node = whole(cells, "gpus_per_node")
    gbps = number(cells, "inter_node_gbps_per_gpu")
    cluster, assumed = _cluster(name, accelerators, per_node, gbps, stated(cells, "inter_node_link").lower())
    return cluster, assumed if gpu else (f"gpu={name}", *assumed)


def _part_of(cluster: Cluster, cells: Mapping[str, str], accelerators: int) -> Cluster:
    names = [group.accelerator.name for group in cluster.groups]
    gpu = stated(cells, "gpu")
    if gpu and gpu.lower() not in names:
        name = accelerator_name(gpu, number(cells, "gpu_mem_gb"))
        if name not in names:
            raise InputError(f"it ran on {name}; {cluster.name} has {' and '.join(dict.fromkeys(names))}")
    if accelerators > cluster.accelerators:
        raise InputError(f"it ran on {accelerators:,} accelerators; {cluster.name} has {cluster.accelerators:,}")
    try:
        return cluster.part(accelerators)
    except ValueError as error:
        raise InputError(str(error)) from None


@cache
def _cluster(
    name: str, accelerators: int, per_node: int | None, gbps: float | None, link: str
) -> tuple[Cluster, tuple[str, ...]]:
    preset = _preset(name, per_node, accelerators, link)
    assumed = [] if per_node else [f"gpus_per_node={preset.accelerators_per_node}"]
    size = preset.accelerators_per_node
    nodes = -(-accelerators // size)
    levels = preset.levels
    if nodes > 1:
        fabric = _fabric(preset, link)
        ports = fabric.ports(preset.adapters) * preset.hosts
        if gbps is not None:
            ports = max(1, round(gbps * size / (fabric.port_bytes_per_s * 8e-9)))
            fabric = replace(fabric, port_bytes_per_s=gbps * 1e9 / 8 * size / ports)
        else:
            assumed.append(f"fabric={fabric.name}")
        levels = (*levels, fabric.level(nodes, size, ports))
    whole_cluster = Cluster(
        name=f"{nodes}x{preset.name}",
        groups=(NodeGroup(preset.accelerator, nodes, size, preset.host_memory_bytes),),
        levels=levels,
        library=library_of(preset.accelerator),
    )
    try:
        return whole_cluster.part(accelerators), tuple(assumed)
    except ValueError:
        return whole_cluster, (*assumed, f"accelerators={whole_cluster.accelerators}")


@cache
def accelerator_name(text: str, memory_gb: float | None) -> str:
    """The catalog's accelerator that `H100-SXM-80GB` means. Form factor and memory decide between variants; a memory
    that no variant has picks the nearest. Raises InputError where no name of the catalog is in the text."""
    said = re.sub(r"\(.*?\)", "", text.lower())
    tokens = set(re.findall(r"[a-z0-9]+", re.sub(r"(\d+)\s*gb?\b", r" \1g ", said)))
    numbers = [float(match) for match in re.findall(r"(\d+)\s*gb?\b", said)]
    memory = memory_gb or (numbers[0] if numbers else None)
    found = []
    for name in entry_names("accelerators"):
        parts = name.split("-")
        if parts[0] not in tokens and not any(token.startswith(parts[0]) for token in tokens if len(parts[0]) > 3):
            continue
        forms = {part for part in parts[1:] if not re.fullmatch(r"\d+g", part)}
        sizes = [float(part[:-1]) for part in parts[1:] if re.fullmatch(r"\d+g", part)]
        strangers = len(forms - tokens) + len(({"pcie", "nvl", "ti", "ada", "pro"} & tokens) - forms)
        from_size = abs(sizes[0] - memory) if sizes and memory else 0.0 if not sizes else 1.0
        odd = bool(memory and not sizes and _other_size(name, memory))
        found.append((strangers, odd, from_size, len(name), name))
    if not found:
        raise InputError(f"gpu is {text!r}, which is no accelerator of the catalog")
    return min(found)[-1]


def _other_size(name: str, memory_gb: float) -> bool:
    """Whether another entry says the memory in its name: h100 beside h100-96g."""
    return f"{name}-{memory_gb:.0f}g" in entry_names("accelerators")


def _preset(name: str, per_node: int | None, accelerators: int, link: str) -> Preset:
    """The preset whose node is like the row's: the number of accelerators first, then the network."""
    names = with_accelerator(name)
    if not names:
        raise InputError(f"gpu is {name}, of which the catalog has no cluster")
    presets = [load_preset(each) for each in names]
    wanted = per_node or min(_USUAL_GPUS_PER_NODE, max(accelerators, 1))

    def unlike(preset: Preset) -> tuple[bool, int, bool, bool, int]:
        kind = _kind(link)
        size = preset.accelerators_per_node
        other = bool(kind) and not preset.fabric.startswith(kind)
        usual = not preset.name.startswith(("dgx", "hgx"))
        return size < min(wanted, accelerators), abs(size - wanted), other, usual, len(preset.name)

    return min(presets, key=unlike)


def _kind(link: str) -> str:
    tokens = re.findall(r"[a-z]+-?", link)
    for word, kind in _FABRIC_WORDS:
        if any(token.startswith(word) for token in tokens):
            return kind
    return ""


def _fabric(preset: Preset, link: str) -> Fabric:
    """The preset's network, or one of the kind that the row names."""
    kind = _kind(link)
    own = load_fabric(preset.fabric)
    if not kind or own.name.startswith(kind):
        return own
    same = [load_fabric(name) for name in entry_names("fabrics") if name.startswith(kind)]
    return min(same, key=lambda fabric: abs(fabric.port_bytes_per_s - own.port_bytes_per_s))
