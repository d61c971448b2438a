"""`ibstat` (or `ibstatus`) text → the fabric between nodes: which ports are up, and what they carry together."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace

from meshwright.sources.catalog import entry_names
from meshwright.sources.fabrics import Fabric, load_fabric
from meshwright.sources.topology.paste import clean_lines
from meshwright.sources.topology.wording import listed, shortened
from meshwright.spec.errors import InputError

PASTE = "paste the output of `ibstat`"
_ADAPTER = re.compile(r"\s*(?:CA|Infiniband device) '([^']+)'(?: port (\d+) status)?", re.IGNORECASE)
_UNNAMED_ADAPTER = re.compile(r"\s*CA type:", re.IGNORECASE)
_PORT = re.compile(r"\s*Port (\d+):\s*$", re.IGNORECASE)
_FIELD = re.compile(r"\s*(state|physical state|phys state|rate|link[ _]layer):\s*(.*\S)", re.IGNORECASE)
_STEMS = {"infiniband": "infiniband", "ethernet": "roce"}
"""How the catalog's fabrics of a link layer are called."""


@dataclass(eq=False)
class Port:
    """One port as it was printed. The rate is in Gb/s, 0 where it can't be read."""

    name: str
    state: str = ""
    physical: str = ""
    gigabits: float = 0.0
    layer: str = ""

    @property
    def active(self) -> bool:
        up = "linkup" in self.physical.replace(" ", "").lower() or not self.physical
        return "active" in self.state.lower() and up


@dataclass(frozen=True)
class Adapters:
    """The fabric that the ports make, how many of them one node uses, and what a person should know."""

    fabric: Fabric
    ports: int
    warnings: tuple[str, ...]


def read_adapters(text: str, where: str) -> Adapters:
    """The fabric of the ports that are up. Raises InputError where the text is not of ibstat or no port is up."""
    ports = _ports(clean_lines(text))
    if not ports:
        raise InputError("holds no port of ibstat", where, PASTE)
    for port in ports:
        if port.active and not port.gigabits:
            raise InputError(f"port {port.name} is active, but its rate can't be read", where, PASTE)
    warnings = [
        f"port {port.name} is {port.state or 'in an unknown state'}"
        f"{f' ({port.physical})' if port.physical else ''} and left out: check cable, switch and subnet manager"
        for port in ports
        if not port.active
    ]
    active = [port for port in ports if port.active]
    if not active:
        states = listed([f"{port.name} is {port.state or 'unknown'}" for port in ports])
        raise InputError(f"no port is active: {states}", where, "bring one up, or name the fabric with @FABRIC")
    layer, rate, used, notes = _used(active)
    fabric, note = _fabric(layer, rate)
    return Adapters(fabric, used, tuple(warnings + notes + note))


def _ports(lines: list[str]) -> list[Port]:
    ports: list[Port] = []
    adapter, unnamed = "", 0
    for line in lines:
        named, numbered, field = _ADAPTER.match(line), _PORT.match(line), _FIELD.match(line)
        if named:
            adapter = named[1]
            if named[2]:
                ports.append(Port(f"{adapter}:{named[2]}"))
        elif _UNNAMED_ADAPTER.match(line):
            unnamed += 1
            if not adapter or any(port.name.startswith(f"{adapter}:") for port in ports):
                adapter = f"adapter {unnamed}"
        elif numbered:
            ports.append(Port(f"{adapter or 'adapter 1'}:{numbered[1]}"))
        elif field and ports:
            _set(ports[-1], field[1].lower().replace("_", " "), field[2])
    return ports


def _set(port: Port, key: str, value: str) -> None:
    plain = re.sub(r"^\d+:\s*", "", value)
    if key == "state":
        port.state = plain
    elif key in ("physical state", "phys state"):
        port.physical = plain
    elif key == "rate":
        number = re.match(r"\d+(\.\d+)?", value)
        port.gigabits = float(number[0]) if number else 0.0
    else:
        port.layer = plain.lower()


def _used(active: list[Port]) -> tuple[str, float, int, list[str]]:
    """(link layer, Gb/s of each port used, how many) that carry the most: collectives share data evenly over the ports
    they use, so the slowest sets the pace of all."""
    options = [
        (sum(port.gigabits >= rate for port in active if port.layer == layer) * rate, rate, layer)
        for layer, rate in {(port.layer, port.gigabits) for port in active}
    ]
    _, rate, layer = max(options)
    used = [port for port in active if port.layer == layer and port.gigabits >= rate]
    left = [port for port in active if port not in used]
    notes = []
    if len({port.gigabits for port in used}) > 1:
        rates = Counter(port.gigabits for port in used)
        each = listed([f"{count} of {gigabits:g}" for gigabits, count in sorted(rates.items(), reverse=True)])
        notes.append(
            f"ports of unequal rate ({each} Gb/s): collectives share data evenly over them, so {len(used)} × {rate:g} "
            "Gb/s are planned; make them equal to use the faster"
        )
    if left:
        names = shortened([f"{port.name} ({port.gigabits:g} Gb/s, {port.layer or 'no link layer'})" for port in left])
        notes.append(f"left out of the fabric: {names}; they would slow the faster ports or speak another protocol")
    return layer, rate, len(used), notes


def _fabric(layer: str, gigabits: float) -> tuple[Fabric, list[str]]:
    """The catalog's fabric of that link layer and rate; where there is none, the nearest one's figures at that rate,
    and a note that says so."""
    stem = next((stem for key, stem in _STEMS.items() if key in layer), "infiniband")
    known = [load_fabric(each) for each in entry_names("fabrics") if each.startswith(f"{stem}-")]
    rate = gigabits * 1e9 / 8
    near = min(known, key=lambda fabric: (abs(fabric.port_bytes_per_s - rate), fabric.name))
    if near.port_bytes_per_s == rate:
        return near, []
    note = f"no fabric of {gigabits:g} Gb/s is in the catalog: latency and efficiency are those of {near.name}"
    return replace(near, name=f"{stem}-{gigabits:g}g", title="", port_bytes_per_s=rate), [note]
