"""Network fabrics, and the level that one makes of many nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast

from meshwright.sources.catalog import CATALOG, load_entry
from meshwright.sources.fields import Fields
from meshwright.sources.levels import SLOWEST_S
from meshwright.spec.cluster import Level
from meshwright.spec.errors import InputError

KEYS = (
    "name", "title", "port_bits_per_s", "node_ports", "default_ports", "latency_s", "efficiency",
    "sqrt_s_per_sqrt_byte", "in_switch_reduction", "source", "fitted",
)  # fmt: skip
MOST_PORTS = 1024
"""No host has more network ports."""


@dataclass(frozen=True)
class Fabric:
    """A network that joins hosts. The rate is per port and direction; `node_ports` above 0 says that every host has
    exactly so many (a cloud's fabric, sold per node). Otherwise a host has one port or one per adapter."""

    name: str
    port_bytes_per_s: float
    latency_s: float
    efficiency: float
    default_ports: Literal["one", "adapters"] = "adapters"
    node_ports: int = 0
    sqrt_s_per_sqrt_byte: float = 0.0
    in_switch_reduction: bool = False
    title: str = ""
    source: str = ""

    def ports(self, adapters: int) -> int:
        """Ports of a host with so many adapters."""
        if self.node_ports:
            return self.node_ports
        return max(1, adapters) if self.default_ports == "adapters" else 1

    def level(
        self, nodes: int, accelerators_per_node: int, ports_per_node: int, oversubscription: float = 1.0
    ) -> Level:
        """The level that joins the nodes: the ports of a node are shared evenly by its accelerators."""
        node_bytes_per_s = ports_per_node * self.port_bytes_per_s
        return Level(
            name=self.name,
            kind="fabric",
            size=nodes * accelerators_per_node,
            bytes_per_s=node_bytes_per_s / accelerators_per_node / oversubscription,
            latency_s=self.latency_s,
            ports_per_node=ports_per_node,
            port_bytes_per_s=self.port_bytes_per_s,
            oversubscription=oversubscription,
            in_switch_reduction=self.in_switch_reduction,
            efficiency=self.efficiency,
            sqrt_s_per_sqrt_byte=self.sqrt_s_per_sqrt_byte,
            source=self.source,
        )


def load_fabric(name: str) -> Fabric:
    """The catalog's fabric `name` (`infiniband-ndr`). Raises UnknownName, with near names, where there is none."""
    content = load_entry("fabrics", name)
    return fabric_from(Fields(str(CATALOG / "fabrics" / f"{name.strip().lower()}.yaml"), content, KEYS))


def fabric_from(fields: Fields) -> Fabric:
    """The fabric that a file writes out."""
    if "node_ports" in fields and "default_ports" in fields:
        raise InputError(f"{fields.key('node_ports')} and default_ports are both given", fields.where, "keep one")
    rule = fields.choice("default_ports", ("one", "adapters"), "adapters")
    return Fabric(
        name=fields.text("name"),
        port_bytes_per_s=fields.positive("port_bits_per_s") / 8,
        latency_s=fields.not_negative("latency_s", most=SLOWEST_S),
        efficiency=fields.share("efficiency"),
        default_ports=cast(Literal["one", "adapters"], rule),
        node_ports=fields.whole("node_ports", 0, 1, MOST_PORTS),
        sqrt_s_per_sqrt_byte=fields.not_negative("sqrt_s_per_sqrt_byte", 0.0, most=1.0),
        in_switch_reduction=fields.flag("in_switch_reduction", False),
        title=fields.text("title", ""),
        source=fields.text("source", ""),
    )
