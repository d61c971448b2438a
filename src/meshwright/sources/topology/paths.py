"""What a path through the processor carries: the level that domains of one reach make."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from meshwright.sources.catalog import CATALOG, load_entry
from meshwright.sources.fields import Fields
from meshwright.sources.levels import KEYS as LEVEL_KEYS
from meshwright.sources.levels import SLOWEST_S, levels_from
from meshwright.spec.cluster import Accelerator, Level

KEYS = ("name", "title", "level", "latency_s", "links", "efficiency", "cards", "slots_between", "source")
GENERATIONS = {"pcie-3": 15.75e9, "pcie-4": 31.5e9, "pcie-5": 63e9}
"""Bytes/s of 16 lanes, per direction (PCI-SIG, after line coding)."""
_NAMES = ("", "pix", "pxb", "phb", "node", "sys")
HOST_MEMORY = "host-memory"


def host_level(accelerator: Accelerator, reach: int, size: int, together: int, peer_to_peer: bool) -> Level:
    """The level of `size` GPUs whose worst path is of class `reach`; so many `together` share a link to the others.
    Without peer-to-peer copies it has the name of its class and carries what host memory does."""
    rate = min(accelerator.host_bytes_per_s, max(GENERATIONS.values()))
    generation = min(GENERATIONS, key=lambda name: (abs(GENERATIONS[name] - rate), name))
    named = _path(_NAMES[reach])
    path = named if peer_to_peer else _path(HOST_MEMORY)
    slots = path.not_negative("slots_between", 0.0)
    if "cards" in path:
        listed = path.inner("cards", tuple(GENERATIONS)).pairs(generation)
        share = next((share for cards, share in listed if cards >= size), listed[-1][1])
        like = Level("", "host", size, rate, path.not_negative("latency_s", most=SLOWEST_S), efficiency=share)
    else:
        like = _family(path, generation)
    return replace(
        like,
        name=named.text("level"),
        size=size,
        bytes_per_s=rate * (min(1.0, slots / together) if slots else 1.0),
        link_bytes_per_s=rate,
        # a share of the slots between the cards is what all of them have at once
        oversubscription=1.0 if slots else like.oversubscription,
        source=" ".join(filter(None, (path.text("source"), like.source))),
    )


def _family(path: Fields, generation: str) -> Level:
    """A level of the family of links that the path is like, with the path's own efficiency where it has one."""
    own = path.numbers("efficiency", tuple(GENERATIONS), most=1.0)
    named = {"name": "path", "size": 1, "link": path.inner("links", tuple(GENERATIONS)).text(generation)}
    given = named | ({"efficiency": own[generation]} if generation in own else {})
    (level,) = levels_from([Fields(path.where, given, LEVEL_KEYS)])
    return level


@cache
def _path(name: str) -> Fields:
    return Fields(str(CATALOG / "paths" / f"{name}.yaml"), load_entry("paths", name), KEYS)
