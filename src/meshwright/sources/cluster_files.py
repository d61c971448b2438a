"""Clusters in YAML files, written by people or by `save_cluster`.

    name: our-lab
    accelerator: a100-80g        # a name from the catalog, or an accelerator written out (see accelerators.py)
    nodes: 4
    accelerators_per_node: 8
    host_memory_gib: 1024        # optional, of one node
    host_overhead_factor: 1      # optional: its time to launch kernels over a usual server's (`meshwright calibrate`)
    levels:                      # inside a node, innermost first (see levels.py)
      - {name: nvlink, kind: switch, size: 8, bytes_per_s: 300e9, latency_s: 1e-6, efficiency: 0.77}
    fabric: infiniband-hdr       # between nodes: a name from the catalog, or a fabric written out (see fabrics.py)
    ports_per_node: 8            # optional; by default one for Ethernet, one per accelerator otherwise
    oversubscription: 1          # optional
    library: nccl                # optional; none: an ideal collective library
    devices: [0, 2, 1, 3, 4, 6, 5, 7]                     # optional: a node's devices in the order of its ranks
    price_per_accelerator_hour: 2.0                       # optional, as are warnings, sources and extra

Levels that already span all nodes need no fabric. Nodes of several kinds are listed under `groups`, each with
accelerator, nodes, accelerators_per_node, host_memory_gib and host_overhead_factor; their levels must span the whole
cluster.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from meshwright.sources import checks, collectives, fabrics, levels
from meshwright.sources.accelerators import GIB, accelerator_content, accelerator_from, load_accelerator
from meshwright.sources.accelerators import KEYS as ACCELERATOR_KEYS
from meshwright.sources.catalog import read_yaml, yaml_text
from meshwright.sources.fields import Fields
from meshwright.sources.levels import MOST_ACCELERATORS, level_content, levels_from
from meshwright.sources.whole_files import write_whole
from meshwright.spec.cluster import Accelerator, Cluster, Level, NodeGroup
from meshwright.spec.collectives import CollectiveLibrary
from meshwright.spec.errors import InputError, UnknownName

GROUP_KEYS = (
    "accelerator",
    "nodes",
    "accelerators_per_node",
    "host_memory_gib",
    "host_memory_bytes",
    "host_overhead_factor",
)
KEYS = (
    "name", *GROUP_KEYS, "groups", "levels", "fabric", "ports_per_node", "oversubscription", "library",
    "devices", "price_per_accelerator_hour", "warnings", "sources", "extra",
)  # fmt: skip
NO_LIBRARY = "none"
LEAST_OVERHEAD_FACTOR, MOST_OVERHEAD_FACTOR = 0.1, 100.0
"""No host is so much quicker or slower than a usual server."""


def read_cluster(path: Path) -> Cluster:
    """The cluster that a file describes. Raises InputError with file, key, value, rule and the nearest that works."""
    return cluster_from(read_yaml(path), str(path))


def cluster_from(content: dict[str, Any], where: str) -> Cluster:
    """The cluster that the content of a file describes; `where` names the file in errors."""
    fields = Fields(where, content, KEYS)
    groups = _groups(fields)
    total = sum(group.accelerators for group in groups)
    if total > MOST_ACCELERATORS:
        raise InputError(f"describes {total:,} accelerators; at most {MOST_ACCELERATORS:,} are planned for", where)
    listed = fields.items("levels", levels.KEYS)
    warnings = fields.texts("warnings") + tuple(
        f"{level.key('efficiency')} is not given: collectives are taken to reach all of bytes_per_s"
        for level in listed
        if "efficiency" not in level and "link" not in level
    )
    names = list(dict.fromkeys(group.accelerator.name for group in groups))
    if len(names) > 1:
        warnings += (f"{' and '.join(names)} are priced as the weakest of each figure: a step waits for the slowest",)
    return Cluster(
        name=fields.text("name", Path(where).stem),
        groups=groups,
        levels=_spanning(fields, groups, levels_from(listed)),
        warnings=tuple(dict.fromkeys(warnings)),
        price_per_accelerator_hour=fields.not_negative("price_per_accelerator_hour", 0.0),
        sources=fields.texts("sources"),
        extra=fields.labels("extra"),
        library=_library(fields, groups[0].accelerator),
        devices=_devices(fields, groups[0].accelerators_per_node),
    )


def save_cluster(cluster: Cluster, path: str | Path) -> None:
    """Write the cluster where `load_cluster` reads it back unchanged. The file is complete or not there at all: it is
    written beside its place and moved into it. Raises InputError where that can't be done."""
    write_whole(path, yaml_text(cluster_content(cluster)))


def cluster_content(cluster: Cluster) -> dict[str, Any]:
    """The cluster as its file holds it."""
    groups = [_group_content(group) for group in cluster.groups]
    content: dict[str, Any] = {"name": cluster.name}
    content |= groups[0] if len(groups) == 1 else {"groups": groups}
    content["levels"] = [level_content(level) for level in cluster.levels]
    content["library"] = _library_content(cluster.library)
    optional = {
        "devices": list(cluster.devices),
        "price_per_accelerator_hour": cluster.price_per_accelerator_hour,
        "warnings": list(cluster.warnings),
        "sources": list(cluster.sources),
        "extra": dict(cluster.extra),
    }
    return content | {key: value for key, value in optional.items() if value}


def library_of(accelerator: Accelerator) -> CollectiveLibrary | None:
    """The catalog's library that drives the accelerator's links."""
    return collectives.load_library(accelerator.library) if accelerator.library else None


# -- nodes


def _groups(fields: Fields) -> tuple[NodeGroup, ...]:
    if "groups" not in fields:
        return (_group(fields),)
    single = [key for key in GROUP_KEYS if key in fields]
    if single:
        raise InputError(f"{single[0]} and groups are both given", fields.where, f"move {single[0]} into groups[0]")
    groups = tuple(_group(inner) for inner in fields.items("groups", GROUP_KEYS))
    if not groups:
        raise InputError("groups is empty, but a cluster needs at least one group of nodes", fields.where)
    return groups


def _group(fields: Fields) -> NodeGroup:
    if "host_memory_gib" in fields and "host_memory_bytes" in fields:
        raise InputError(
            f"{fields.key('host_memory_gib')} and host_memory_bytes are both given", fields.where, "keep one"
        )
    return NodeGroup(
        accelerator=_accelerator(fields),
        nodes=fields.whole("nodes", 1, 1, MOST_ACCELERATORS),
        accelerators_per_node=fields.whole("accelerators_per_node", most=MOST_ACCELERATORS),
        host_memory_bytes=fields.not_negative("host_memory_bytes", fields.not_negative("host_memory_gib", 0.0) * GIB),
        host_overhead_factor=fields.positive(
            "host_overhead_factor", 1.0, least=LEAST_OVERHEAD_FACTOR, most=MOST_OVERHEAD_FACTOR
        ),
    )


def _accelerator(fields: Fields) -> Accelerator:
    if isinstance(fields.raw("accelerator", "a name from the catalog, such as h100"), dict):
        return accelerator_from(fields.inner("accelerator", ACCELERATOR_KEYS))
    name = fields.text("accelerator")
    try:
        return load_accelerator(name)
    except UnknownName as error:
        raise InputError(f"{fields.key('accelerator')}: {error.message}", fields.where, error.fix) from error


def _group_content(group: NodeGroup) -> dict[str, Any]:
    content: dict[str, Any] = {
        "accelerator": accelerator_content(group.accelerator),
        "nodes": group.nodes,
        "accelerators_per_node": group.accelerators_per_node,
    }
    if group.host_memory_bytes:
        content["host_memory_bytes"] = group.host_memory_bytes
    if group.host_overhead_factor != 1:
        content["host_overhead_factor"] = group.host_overhead_factor
    return content


def _devices(fields: Fields, per_node: int) -> tuple[int, ...]:
    devices = fields.wholes("devices", 0, MOST_ACCELERATORS)
    if devices and (len(devices) != per_node or len(set(devices)) != per_node):
        rule = f"the numbers of the {per_node} accelerators of a node, each once"
        raise checks.wrong(fields.where, "devices", list(devices), rule, list(range(per_node)))
    return devices


# -- links


def _spanning(fields: Fields, groups: tuple[NodeGroup, ...], inner: tuple[Level, ...]) -> tuple[Level, ...]:
    """The levels, with the fabric on top where they don't yet span the cluster."""
    total = sum(group.accelerators for group in groups)
    node = groups[0].accelerators_per_node
    nodes = sum(group.nodes for group in groups)
    spans = inner[-1].size if inner else 1
    if spans > total:
        last = f"levels[{len(inner) - 1}].size"
        raise checks.wrong(fields.where, last, spans, f"at most the {total} accelerators of the cluster", total)
    if spans == total:
        unused = next((key for key in ("fabric", "ports_per_node", "oversubscription") if key in fields), "")
        if unused and nodes > 1:
            raise InputError(
                f"{unused} is given, but levels already span all {total} accelerators", fields.where, "drop one"
            )
        return inner
    if len(groups) > 1 or spans < node or spans % node:
        whole = total if len(groups) > 1 or nodes == 1 else node
        what = "cluster" if whole == total else "node"
        raise InputError(
            f"levels span {spans} accelerators, but the {what} has {whole}",
            fields.where,
            f"add a level with size: {whole}, or change accelerators_per_node",
        )
    fabric = _fabric(fields)
    default = fabric.ports(node)
    ports = fields.whole("ports_per_node", default, 1, fabrics.MOST_PORTS)
    if fabric.node_ports and ports != fabric.node_ports:
        rule = f"{fabric.node_ports}: {fabric.name} is a rate per node"
        raise checks.wrong(fields.where, "ports_per_node", ports, rule, fabric.node_ports)
    return (*inner, fabric.level(nodes, node, ports, fields.positive("oversubscription", 1.0, least=1.0, most=1e6)))


def _fabric(fields: Fields) -> fabrics.Fabric:
    if isinstance(fields.raw("fabric", "what joins the nodes: a name from the catalog, such as infiniband-ndr"), dict):
        return fabrics.fabric_from(fields.inner("fabric", fabrics.KEYS))
    try:
        return fabrics.load_fabric(fields.text("fabric"))
    except UnknownName as error:
        raise InputError(f"{fields.key('fabric')}: {error.message}", fields.where, error.fix) from error


def _library(fields: Fields, accelerator: Accelerator) -> CollectiveLibrary | None:
    if "library" not in fields:
        return library_of(accelerator)
    if isinstance(fields.raw("library", ""), dict):
        return collectives.library_from(fields.inner("library", collectives.KEYS))
    name = fields.text("library")
    return None if name == NO_LIBRARY else collectives.load_library(name, fields.where)


def _library_content(library: CollectiveLibrary | None) -> Any:
    if library is None:
        return NO_LIBRARY
    if library.name in collectives.library_names() and collectives.load_library(library.name) == library:
        return library.name
    return collectives.library_content(library)
