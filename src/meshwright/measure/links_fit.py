"""The constants of links and of the library that drives them, fitted on published curves of collectives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np

from meshwright.measure.collectives_table import MIB, Call, Series, group_of, predicted_s, series_of
from meshwright.measure.robust_fit import Constant, fit_logs
from meshwright.program.placement import Group
from meshwright.sources.catalog import load_entry
from meshwright.sources.clusters import load_cluster
from meshwright.sources.collectives import load_library
from meshwright.sources.links import Curve, link_curves, link_names
from meshwright.spec.cluster import Level
from meshwright.spec.collectives import CollectiveLibrary
from meshwright.spec.plan import Array

LIBRARY = "nccl"
_SMALL_WEIGHT = 0.4
"""Training sends mostly more than 1 MiB; what is below counts less."""
_POINT_WEIGHT = 0.3
"""Neighbours on a curve err alike, so each point is less than one piece of evidence."""

LIBRARY_CONSTANTS = (
    Constant("LL.base_s", 6.6e-6, 0.3),
    Constant("LL128.base_s", 6.6e-6, 0.3),
    Constant("Simple.base_s", 6.6e-6, 0.3),
    Constant("LL128.hop_factor", 1.5, 0.3, least=1.0),
    Constant("Simple.hop_factor", 2.0, 0.3, least=1.0),
    Constant("in_switch_base_s", 20e-6, 0.5),
    Constant("all_to_all_base_s", 6.6e-6, 0.3),
)
_HOP = Constant("latency_s", 0.8e-6, 0.3)
_SWITCH_CONSTANTS = (
    _HOP,
    Constant("start_s", 1e-6, 1.0),
    Constant("efficiency", 0.85, 0.15, most=1.0),
    Constant("sqrt_s_per_sqrt_byte", 6e-9, 0.7),
    Constant("local_bytes_per_s", 900e9, 0.5),
    Constant("in_switch_bandwidth_share", 0.65, 0.2, most=1.0),
)
_HOST_CONSTANTS = (
    _HOP,
    Constant("efficiency", 0.5, 1.0, most=1.0),
    Constant("sqrt_s_per_sqrt_byte", 3e-8, 1.0),
    Constant("oversubscription", 1.2, 0.5, least=1.0),
)


@dataclass(frozen=True)
class Bench:
    """A series of calls and what it ran on. `links` names the family of each level."""

    series: Series
    levels: tuple[Level, ...]
    links: tuple[str, ...]
    group: Group
    weight: Array


@dataclass(frozen=True)
class LinkFit:
    """Values of the fitted constants by (family or library, name), and what they were fitted on."""

    values: Mapping[tuple[str, str], float]
    benches: tuple[Bench, ...]

    def levels(self, bench: Bench) -> tuple[Level, ...]:
        """The levels of a bench with the fitted constants."""
        return tuple(replace(level, **self._of(link)) for level, link in zip(bench.levels, bench.links, strict=True))

    @cached_property
    def library(self) -> CollectiveLibrary:
        """The library with the fitted constants."""
        return _library(self._of(LIBRARY))

    def _of(self, owner: str) -> dict[str, Any]:
        return {key: value for (of, key), value in self.values.items() if of == owner}

    def log_ratios(self, bench: Bench) -> Array:
        """ln(predicted / measured) of each call."""
        return np.asarray(np.log(self.predicted_s(bench) / bench.series.seconds))

    def predicted_s(self, bench: Bench) -> Array:
        return predicted_s(bench.series, self.levels(bench), bench.group, self.library)


def benches(calls: Sequence[Call], wanted: Callable[[Curve], bool] = lambda curve: not curve.held_out) -> list[Bench]:
    """The calls that the catalog's families of links are fitted on, each series on the preset that it ran on."""
    curves = dict.fromkeys(curve for name in link_names() for curve in link_curves(name) if wanted(curve))
    found = []
    for curve in curves:
        cluster = load_cluster(curve.preset)
        named = [str(level.get("link", "")) for level in load_entry("clusters", curve.preset)["levels"]]
        for series in series_of(call for call in calls if (call.source, call.gpu) == (curve.source, curve.gpu)):
            if cluster.accelerators % series.ranks:
                continue
            levels = cluster.part(series.ranks).levels
            kept = [link for level, link in zip(cluster.levels, named, strict=True) if level.size <= series.ranks]
            links = (*kept, *named[len(kept) :][: len(levels) - len(kept)])
            weight = np.where(series.payload_bytes >= MIB, 1.0, _SMALL_WEIGHT) * _POINT_WEIGHT
            found.append(Bench(series, levels, links, group_of(levels, series.ranks), weight))
    return found


def fit_benches(found: Sequence[Bench]) -> LinkFit:
    """Constants of the library and of every family of links that the benches touch."""
    owned = [(LIBRARY, constant) for constant in LIBRARY_CONSTANTS]
    for link in sorted({link for bench in found for link in bench.links if link}):
        level = next(bench.levels[bench.links.index(link)] for bench in found if link in bench.links)
        owned += [(link, constant) for constant in _constants(level)]
    keys = [(owner, constant.name) for owner, constant in owned]
    touched = [[owner in (LIBRARY, *bench.links) for bench in found] for owner, _ in owned]

    def rest(fit: LinkFit, bench: Bench) -> Array:
        return np.asarray(np.sqrt(bench.weight) * fit.log_ratios(bench))

    ends = np.cumsum([len(bench.weight) for bench in found])

    def residuals(values: Array) -> Array:
        fit = LinkFit(dict(zip(keys, values, strict=True)), tuple(found))
        return np.concatenate([rest(fit, bench) for bench in found])

    def moved(values: Array, index: int, before: Array) -> Array:
        fit = LinkFit(dict(zip(keys, values, strict=True)), tuple(found))
        parts = zip(found, touched[index], np.split(before, ends[:-1]), strict=True)
        return np.concatenate([rest(fit, bench) if hit else old for bench, hit, old in parts])

    values = fit_logs([constant for _, constant in owned], residuals, moved)
    return LinkFit(dict(zip(keys, map(float, values), strict=True)), tuple(found))


def _constants(level: Level) -> tuple[Constant, ...]:
    if level.kind == "host":
        return _HOST_CONSTANTS
    return tuple(c for c in _SWITCH_CONSTANTS if level.in_switch_reduction or c.name != "in_switch_bandwidth_share")


_catalog_library = cache(load_library)


def _library(values: Mapping[str, Any]) -> CollectiveLibrary:
    library = _catalog_library(LIBRARY)
    protocols = tuple(
        replace(
            protocol,
            ring_base_s=values.get(f"{protocol.name}.base_s", protocol.ring_base_s),
            tree_base_s=values.get(f"{protocol.name}.base_s", protocol.tree_base_s),
            hop_factor=values.get(f"{protocol.name}.hop_factor", protocol.hop_factor),
        )
        for protocol in library.protocols
    )
    own = {key: value for key, value in values.items() if "." not in key}
    return replace(library, protocols=protocols, **own)
