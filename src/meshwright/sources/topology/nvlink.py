"""The level that domains of NVLink or XGMI make: a switch, bridged pairs or a mesh of point-to-point links."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from meshwright.sources.catalog import entry_names, load_entry
from meshwright.sources.presets import Preset, load_preset, with_accelerator
from meshwright.sources.topology.cells import SYS, Path
from meshwright.sources.topology.domains import Groups, is_complete, is_even, is_switched, link_weights
from meshwright.sources.topology.matrix import Pair
from meshwright.sources.topology.paths import host_level
from meshwright.sources.topology.rings import Weights, pair_share, ring_links
from meshwright.spec.cluster import Accelerator, Level, LevelKind


def nvlink_levels(accelerator: Accelerator, groups: Groups, paths: dict[Pair, Path], amd: bool) -> tuple[Level, ...]:
    """The levels of domains that all have the same size; the slowest of them sets the rates."""
    weights = [link_weights(group, paths) for group in groups]
    size = len(groups[0])
    if amd and not accelerator.links and size > 2:
        known = _counted_box(accelerator.name, size)
        if known is not None:
            return known.levels
    kind = _kind(accelerator, weights)
    fewest = min(count for each in weights for row in each for count in row if count)
    level = replace(
        reference(accelerator.name, accelerator.family, kind),
        name="xgmi" if amd else "bridge" if kind == "bridge" else "nvlink",
        kind=kind,
        size=size,
        bytes_per_s=fewest * accelerator.link_bytes_per_s,
        link_bytes_per_s=0.0,
        group_bytes_per_s=(),
        oversubscription=1.0,
    )
    if kind == "mesh":
        level = _mesh(level, accelerator, weights, fewest, amd)
    return (replace(level, source=_source(level, accelerator, fewest)),)


def is_known_box(accelerator: Accelerator, size: int) -> str:
    """The preset that knows which devices of such a box are neighbours, where the accelerator's links aren't counted;
    else nothing."""
    known = _counted_box(accelerator.name, size) if not accelerator.links else None
    return known.name if known is not None else ""


def _kind(accelerator: Accelerator, weights: list[Weights]) -> LevelKind:
    if any(is_switched(each, accelerator.links) for each in weights):
        return "switch"
    if len(weights[0]) > 2:
        return "mesh"
    whole = 0 < accelerator.links <= min(each[0][1] for each in weights)  # all links of a pair lead to one another
    return "switch" if whole and _own_switch(accelerator.name) else "bridge"


def _mesh(level: Level, accelerator: Accelerator, weights: list[Weights], fewest: int, amd: bool) -> Level:
    link = accelerator.link_bytes_per_s
    size = level.size
    if all(is_complete(each) and is_even(each) for each in weights):
        peer = fewest * link
        # where links aren't counted, some pairs may have none of their own: one link is all that is sure
        whole = peer if amd and not accelerator.links else (size - 1) * peer
        return replace(level, bytes_per_s=whole, link_bytes_per_s=peer)
    sizes = [size]
    while sizes[-1] % 2 == 0 and sizes[-1] > 2:
        sizes.append(sizes[-1] // 2)
    reached = []
    for part in reversed(sizes):
        parts = [tuple(range(start, start + part)) for start in range(0, size, part)]
        rings = min(ring_links(each, members) for each in weights for members in parts)
        without = host_level(accelerator, SYS, part, 1, accelerator.peer_to_peer)
        over_host = without.bytes_per_s * without.efficiency / level.efficiency
        reached.append((part, rings * link if rings else over_host))
    whole = reached[-1][1]
    all_to_all = min((size - 1) * pair_share(each) for each in weights) * link
    return replace(
        level,
        bytes_per_s=whole,
        link_bytes_per_s=fewest * link,
        group_bytes_per_s=tuple(reached),
        oversubscription=max(1.0, whole / all_to_all),
    )


@cache
def reference(name: str, family: str, kind: LevelKind) -> Level:
    """A level of the catalog's presets whose latency and efficiency hold for NVLink or XGMI of this accelerator: of
    the same kind if there is one, with the same accelerator, then of its family, then of any."""
    presets = [load_preset(each) for each in _single_presets()]
    ranked = sorted(
        (level.kind != kind, preset.accelerator.name != name, preset.accelerator.family != family, preset.name)
        for preset in presets
        for level in preset.levels
        if level.kind in ("switch", "mesh", "bridge")
    )
    best = load_preset(ranked[0][3])
    return next(
        (level for level in best.levels if level.kind == kind),
        next(level for level in best.levels if level.kind in ("switch", "mesh", "bridge")),
    )


@cache
def _single_presets() -> tuple[str, ...]:
    return tuple(each for each in entry_names("clusters") if "pattern" not in load_entry("clusters", each))


def _own_switch(name: str) -> bool:
    return any(level.kind == "switch" for each in with_accelerator(name) for level in load_preset(each).levels)


@cache
def _counted_box(accelerator: str, size: int) -> Preset | None:
    boxes = [load_preset(each) for each in with_accelerator(accelerator)]
    return next((box for box in boxes if box.accelerators_per_node == size and box.levels), None)


def _source(level: Level, accelerator: Accelerator, fewest: int) -> str:
    per_link = f"{accelerator.link_bytes_per_s / 1e9:g} GB/s per link and direction of the {accelerator.name}"
    counted = "Rings over the links of the table" if level.group_bytes_per_s else f"{fewest} to each peer"
    return f"{counted}, {per_link}. Latency and efficiency from the catalog: {level.source}"
