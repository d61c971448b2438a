"""The catalog's hardware as plain rows: what `meshwright catalog` lists."""

from __future__ import annotations

from typing import Any

from meshwright.sources.accelerators import DTYPES, GIB, load_accelerator
from meshwright.sources.catalog import entry_names, load_entry
from meshwright.sources.fabrics import load_fabric
from meshwright.sources.presets import load_preset
from meshwright.spec.errors import UnknownName

KINDS = ("accelerators", "clusters", "fabrics")


def catalog_rows(kind: str) -> list[dict[str, Any]]:
    """One row of plain facts per entry of `kind` (accelerators, clusters, fabrics), sorted by name. All rows of a kind
    have the same keys; None where an entry has no such unit."""
    if kind not in KINDS:
        raise UnknownName("kind of hardware", kind, KINDS)
    make = {"accelerators": _accelerator_row, "clusters": _cluster_row, "fabrics": _fabric_row}[kind]
    return [make(name) for name in entry_names(kind)]


def _accelerator_row(name: str) -> dict[str, Any]:
    accelerator = load_accelerator(name)
    return {
        "name": accelerator.name,
        "title": accelerator.title,
        "vendor": accelerator.vendor,
        "family": accelerator.family,
        "year": accelerator.year,
        "memory_gib": accelerator.memory_bytes / GIB,
        "memory_bytes_per_s": accelerator.memory_bytes_per_s,
        **{f"{dtype}_flops_per_s": accelerator.peak_flops_per_s.get(dtype) for dtype in DTYPES},
        "source": accelerator.source,
    }


def _cluster_row(name: str) -> dict[str, Any]:
    content = load_entry("clusters", name)
    row: dict[str, Any] = {
        "name": content.get("pattern", name),
        "title": content.get("title", ""),
        "accelerator": str(content["accelerator"]),
        "accelerators_per_node": None,
        "link": None,
        "bytes_per_s": None,
        "levels": None,
        "fabric": content["fabric"],
        "node_fabric_bytes_per_s": None,
        "source": content.get("source", ""),
    }
    if "pattern" in content:
        return row
    preset = load_preset(name)
    fabric = load_fabric(preset.fabric)
    row["accelerators_per_node"] = preset.accelerators_per_node
    row["node_fabric_bytes_per_s"] = fabric.ports(preset.adapters) * preset.hosts * fabric.port_bytes_per_s
    row["levels"] = [
        {"name": level.name, "kind": level.kind, "size": level.size, "bytes_per_s": level.bytes_per_s}
        for level in preset.levels
    ]
    if preset.levels:
        row["link"] = preset.levels[0].name
        row["bytes_per_s"] = preset.levels[0].bytes_per_s
    return row


def _fabric_row(name: str) -> dict[str, Any]:
    fabric = load_fabric(name)
    return {
        "name": fabric.name,
        "title": fabric.title,
        "port_bytes_per_s": fabric.port_bytes_per_s,
        "ports_per_node": fabric.node_ports or ("one" if fabric.default_ports == "one" else "one per adapter"),
        "efficiency": fabric.efficiency,
        "latency_s": fabric.latency_s,
        "source": fabric.source,
    }
