"""Clusters from what people type: `NxPRESET[@FABRIC[:PORTS]]`, a preset's name, a YAML file or `topo:FILE`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from meshwright.sources import checks
from meshwright.sources.cluster_files import library_of, read_cluster, save_cluster
from meshwright.sources.fabrics import MOST_PORTS, Fabric, load_fabric
from meshwright.sources.levels import MOST_ACCELERATORS
from meshwright.sources.presets import Preset, load_preset
from meshwright.sources.topology.cluster import Pasted, topology_cluster
from meshwright.spec.cluster import Cluster, NodeGroup
from meshwright.spec.errors import InputError

__all__ = ["load_cluster", "save_cluster"]

FORMS = (
    "write NxPRESET[@FABRIC[:PORTS]], such as 4xdgx-h100@infiniband-ndr:8, or name a YAML file or topo:FILE with an "
    "accelerator"
)
_TOPOLOGY = re.compile(r"\s*(?:([-+.0-9][-+._0-9e]*)x)?topo:(.*)", re.IGNORECASE | re.DOTALL)
_LONGEST = 200


@dataclass(frozen=True)
class _Spec:
    nodes: int
    preset: str
    fabric: str = ""
    ports: int = 0


def load_cluster(text: str | Path, *, accelerator: str = "", nics: str | Path = "") -> Cluster:
    """The cluster that `text` describes.

    `32xdgx-a100-80g` is 32 nodes of a preset with its own fabric; `2xdgx-a100-80g@ethernet-100g` joins them by another,
    with that fabric's default number of ports; `@ethernet-100g:8` says how many ports a node has. A name that ends in
    .yaml, .yml or .json, or holds a slash, is a file. `topo:FILE` is one node as `nvidia-smi topo -m` or
    `rocm-smi --showtopo` printed it (`topo:-` reads standard input), with the catalog's `accelerator`;
    `4xtopo:FILE@infiniband-ndr` is four of them, and `nics` names a file with the output of `ibstat`, which says the
    fabric instead. Raises InputError (UnknownName for a name that isn't there).
    """
    pasted = _TOPOLOGY.fullmatch(text) if isinstance(text, str) else None
    if pasted is not None:
        return topology_cluster(_pasted(str(text), pasted[1], pasted[2].strip()), accelerator, str(nics))
    for what, value in (("an accelerator", accelerator), ("a file of network ports", nics)):
        if value:
            raise InputError(
                f"{what} ({checks.shown(str(value))}) is given, but {checks.shown(str(text))} says what it holds",
                "",
                "leave it out, or name a topology printout: topo:FILE",
            )
    if isinstance(text, Path) or _is_file_name(text):
        if "\0" in str(text):
            raise InputError(f"{checks.shown(str(text))} can't be the name of a file", "", FORMS)
        return read_cluster(Path(text).expanduser())
    spec = _parse(text)
    preset = load_preset(spec.preset)
    total = spec.nodes * preset.accelerators_per_node
    if total > MOST_ACCELERATORS:
        most = MOST_ACCELERATORS // preset.accelerators_per_node
        raise InputError(
            f"{checks.shown(text)} has more accelerators than the {MOST_ACCELERATORS:,} that are planned for",
            "",
            f"the nearest that works is {most}x{spec.preset}",
        )
    fabric = load_fabric(spec.fabric or preset.fabric)
    ports = _ports_per_node(spec, preset, fabric)
    levels = preset.levels
    warnings = preset.warnings
    if spec.nodes > 1:
        levels = (*levels, fabric.level(spec.nodes, preset.accelerators_per_node, ports))
    elif spec.fabric:
        warnings = (*warnings, f"one node only: {fabric.name} is not used")
    return Cluster(
        name=_canonical(spec),
        groups=(NodeGroup(preset.accelerator, spec.nodes, preset.accelerators_per_node, preset.host_memory_bytes),),
        levels=levels,
        warnings=warnings,
        price_per_accelerator_hour=preset.price_per_accelerator_hour,
        sources=tuple(source for source in (preset.source, fabric.source if spec.nodes > 1 else "") if source),
        extra={"title": preset.title} if preset.title else {},
        library=library_of(preset.accelerator),
    )


def _pasted(text: str, number: str | None, rest: str) -> Pasted:
    """What follows `topo:`. An @ belongs to the file's name where there is such a file."""
    nodes = _count(text, number) if number else 1
    file, at, joined_by = rest.rpartition("@")
    if not at or _exists(rest):
        return Pasted(_named(text, rest), nodes)
    fabric, colon, ports = joined_by.lower().partition(":")
    file = _named(text, file if fabric and (ports or not colon) else "")
    return Pasted(file, nodes, fabric, _port_count(text, ports) if colon else 0)


def _named(text: str, file: str) -> str:
    if not file:
        raise InputError(
            f"{checks.shown(text)} can't be understood as a topology",
            "",
            "write topo:FILE or Nxtopo:FILE@FABRIC[:PORTS], such as 4xtopo:node.txt@infiniband-ndr:8",
        )
    return file


def _exists(file: str) -> bool:
    try:
        return Path(file).expanduser().exists()
    except (OSError, ValueError, RuntimeError):
        return False


def _is_file_name(text: str) -> bool:
    return text.lower().endswith((".yaml", ".yml", ".json")) or "/" in text or "\\" in text


def _parse(text: str) -> _Spec:
    plain = text.strip().lower()
    if not plain or len(plain) > _LONGEST or not re.fullmatch(r"[a-z0-9@:._+\-]+", plain):
        raise InputError(f"{checks.shown(text)} can't be understood as a cluster", "", FORMS)
    head, at, tail = plain.partition("@")
    fabric, colon, ports = tail.partition(":")
    if ":" in head or "@" in tail or (at and not fabric) or (colon and not ports):
        raise InputError(f"{checks.shown(text)} can't be understood as a cluster", "", FORMS)
    counted = re.match(r"([-+.0-9][-+._0-9e]*)x(.*)", head)
    nodes, preset = (_count(text, counted[1]), counted[2]) if counted else (1, head)
    if not preset:
        raise InputError(f"{checks.shown(text)} names no preset", "", FORMS)
    return _Spec(nodes, preset, fabric, _port_count(text, ports) if colon else 0)


def _count(text: str, number: str) -> int:
    if re.fullmatch(r"[0-9]+", number) and int(number) >= 1:
        return int(number)
    rest = text.strip()[len(number) + 1 :]
    raise InputError(
        f"{checks.shown(text)} has {number} nodes, but it must be a whole number of at least 1",
        "",
        f"the nearest that works is {_nearest(number, MOST_ACCELERATORS)}x{rest}",
    )


def _port_count(text: str, number: str) -> int:
    if re.fullmatch(r"[0-9]{1,18}", number) and 1 <= int(number) <= MOST_PORTS:
        return int(number)
    raise InputError(
        f"{checks.shown(text)} has {number} ports per node, but it must be a whole number from 1 to {MOST_PORTS}",
        "",
        f"the nearest that works is :{_nearest(number, MOST_PORTS)}",
    )


def _nearest(number: str, most: int) -> int:
    try:
        value = float(number)
    except ValueError:
        return 1
    return int(min(max(round(min(value, most)), 1), most))


def _ports_per_node(spec: _Spec, preset: Preset, fabric: Fabric) -> int:
    usual = fabric.ports(preset.adapters) * preset.hosts
    if not spec.ports:
        return usual
    if preset.hosts > 1:
        raise InputError(
            f"{preset.name} is made of {preset.hosts} hosts, so ports per node can't be counted for it",
            "",
            f"leave out :{spec.ports} (all hosts together have {usual} ports), or describe the cluster in a YAML file",
        )
    if fabric.node_ports:
        raise InputError(
            f"{fabric.name} is a rate per node ({fabric.node_ports} ports), so ports can't be chosen for it",
            "",
            f"leave out :{spec.ports}",
        )
    return spec.ports


def _canonical(spec: _Spec) -> str:
    count = f"{spec.nodes}x" if spec.nodes > 1 else ""
    fabric = f"@{spec.fabric}" if spec.fabric else ""
    ports = f":{spec.ports}" if spec.ports else ""
    return f"{count}{spec.preset}{fabric}{ports}"
