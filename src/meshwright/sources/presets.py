"""Presets of the catalog: one node (or rack, or slice of a torus) with its accelerators, links and default fabric.

Most are one file each. Two kinds follow a rule, so that one file stands for all sizes: slices of a torus
(`tpu-v4-4x4x8`) and an ordinary machine with any number of ranks (`cpu-8`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import ceil, prod

from meshwright.sources import checks
from meshwright.sources.accelerators import GIB, load_accelerator
from meshwright.sources.catalog import CATALOG, entry_names, load_entry
from meshwright.sources.fabrics import MOST_PORTS
from meshwright.sources.fields import Fields
from meshwright.sources.levels import KEYS as LEVEL_KEYS
from meshwright.sources.levels import MOST_ACCELERATORS, SLOWEST_S, levels_from
from meshwright.spec.cluster import Accelerator, Level
from meshwright.spec.errors import InputError, UnknownName

KEYS = (
    "name", "title", "pattern", "accelerator", "accelerators_per_node", "hosts", "host_memory_gib", "levels", "slice",
    "ranks", "fabric", "adapters", "warnings", "price_per_accelerator_hour", "source",
)  # fmt: skip
SLICE_KEYS = (
    "dims", "small_shapes", "multiple_of", "wraps_at_multiple_of", "most_chips", "chips_per_host", "link_bytes_per_s",
    "latency_s", "efficiency", "source",
)  # fmt: skip
RANK_KEYS = ("most", "bytes_per_s", "latency_s", "efficiency", "source")


@dataclass(frozen=True)
class Preset:
    """One node. `hosts` above 1 says that it is made of several (a rack, a slice); `adapters` counts per host."""

    name: str
    accelerator: Accelerator
    accelerators_per_node: int
    levels: tuple[Level, ...]
    fabric: str
    adapters: int
    hosts: int = 1
    host_memory_bytes: float = 0.0
    title: str = ""
    warnings: tuple[str, ...] = ()
    price_per_accelerator_hour: float = 0.0
    source: str = ""


def load_preset(name: str) -> Preset:
    """The preset `name`. Raises UnknownName, with near names, where there is none; InputError for a size that its rule
    does not allow."""
    wanted = name.strip().lower()
    if wanted in entry_names("clusters"):
        fields = _entry(wanted)
        if "pattern" in fields:
            raise InputError(f"{name!r} needs a size", "", f"write {_example(fields)}")
        return _single(fields)
    stem = max((entry for entry in entry_names("clusters") if wanted.startswith(f"{entry}-")), key=len, default="")
    if stem:
        fields = _entry(stem)
        size = wanted.removeprefix(f"{stem}-")
        if "slice" in fields:
            return _slice(fields, wanted, size)
        if "ranks" in fields:
            return _machine(fields, wanted, size)
    raise _unknown(name)


def with_accelerator(name: str) -> tuple[str, ...]:
    """Presets that hold the accelerator `name`, smallest name first."""
    names = entry_names("clusters")
    return tuple(sorted((n for n in names if str(load_entry("clusters", n).get("accelerator")) == name), key=len))


def _entry(name: str) -> Fields:
    return Fields(str(CATALOG / "clusters" / f"{name}.yaml"), load_entry("clusters", name), KEYS)


def _single(fields: Fields) -> Preset:
    levels = levels_from(fields.items("levels", LEVEL_KEYS))
    return _preset(
        fields,
        name=fields.text("name"),
        count=fields.whole("accelerators_per_node", most=MOST_ACCELERATORS),
        levels=levels,
        hosts=fields.whole("hosts", 1, 1, MOST_ACCELERATORS),
        memory_hosts=1,
        title=fields.text("title", ""),
    )


def _preset(
    fields: Fields, name: str, count: int, levels: tuple[Level, ...], hosts: int, memory_hosts: int, title: str
) -> Preset:
    return Preset(
        name=name,
        accelerator=load_accelerator(fields.text("accelerator")),
        accelerators_per_node=count,
        levels=levels,
        fabric=fields.text("fabric"),
        adapters=fields.whole("adapters", 1, 1, MOST_PORTS),
        hosts=hosts,
        host_memory_bytes=fields.not_negative("host_memory_gib", 0.0) * GIB * memory_hosts,
        title=title,
        warnings=fields.texts("warnings"),
        price_per_accelerator_hour=fields.not_negative("price_per_accelerator_hour", 0.0),
        source=fields.text("source", ""),
    )


# -- slices of a torus


def _slice(fields: Fields, name: str, size: str) -> Preset:
    rule = fields.inner("slice", SLICE_KEYS)
    dims = _dims(fields, rule, name, size)
    wrap = rule.whole("wraps_at_multiple_of")
    wrapped = all(length % wrap == 0 for length in dims if length > 1)
    link = rule.positive("link_bytes_per_s")
    chips = prod(dims)
    torus = Level(
        name="ici",
        kind="torus",
        size=chips,
        bytes_per_s=link * sum(2 if wrapped and length > 2 else 1 for length in dims if length > 1),
        latency_s=rule.not_negative("latency_s", most=SLOWEST_S),
        dims=dims,
        link_bytes_per_s=link,
        wrapped=wrapped,
        efficiency=rule.share("efficiency"),
        source=rule.text("source", ""),
    )
    hosts = ceil(chips / rule.whole("chips_per_host"))
    title = f"{fields.text('title')} {'x'.join(map(str, dims))}"
    return _preset(fields, name, chips, (torus,) if chips > 1 else (), hosts, hosts, title)


def _dims(fields: Fields, rule: Fields, name: str, size: str) -> tuple[int, ...]:
    count = rule.whole("dims")
    if not re.fullmatch(r"[0-9]{1,5}(x[0-9]{1,5})*", size) or size.count("x") != count - 1:
        raise InputError(
            f"{name!r} has size {size!r}, but it must be {count} whole numbers with x between them", "", _write(fields)
        )
    dims = tuple(map(int, size.split("x")))
    shapes = {
        tuple(checks.whole(rule.where, rule.key("small_shapes"), length) for length in shape)
        for shape in checks.listed(rule.where, rule.key("small_shapes"), rule.raw("small_shapes", "a list of shapes"))
    }
    step = rule.whole("multiple_of", 0, 0)
    most = rule.whole("most_chips")
    large = step and all(length and length % step == 0 for length in dims)
    if prod(dims) > most:
        largest = _largest(most, count, step) if step else max(shapes, key=prod)
        fix = f"the largest is {_named(fields, largest)}"
        raise InputError(f"{name!r} has {prod(dims):,} chips, but at most {most:,} make one slice", "", fix)
    if tuple(sorted(dims)) not in shapes and not large:
        legal = ", ".join("x".join(map(str, shape)) for shape in sorted(shapes, key=prod))
        also = f" (in any order), or only multiples of {step}" if step else " (in any order)"
        fix = f"the nearest is {_named(fields, _nearest(dims, shapes, step))}"
        raise InputError(f"{name!r} is no slice: its size must be one of {legal}{also}", "", fix)
    return dims


def _nearest(dims: tuple[int, ...], shapes: set[tuple[int, ...]], step: int) -> tuple[int, ...]:
    options = {tuple(sorted(shape)) for shape in shapes}
    if step:
        options.add(tuple(max(1, round(length / step)) * step for length in dims))
    wanted = sorted(dims)
    return min(options, key=lambda shape: (sum(abs(a - b) for a, b in zip(sorted(shape), wanted, strict=True)), shape))


def _largest(most: int, count: int, step: int) -> tuple[int, ...]:
    cube = step
    while (cube + step) ** count <= most:
        cube += step
    return (cube,) * count


def _named(fields: Fields, dims: tuple[int, ...]) -> str:
    return f"{fields.text('name')}-{'x'.join(map(str, dims))}"


def _write(fields: Fields) -> str:
    return f"write {_example(fields)}"


def _example(fields: Fields) -> str:
    if "slice" not in fields:
        return f"{fields.text('name')}-8"
    return _named(fields, (4,) * fields.inner("slice", SLICE_KEYS).whole("dims"))


# -- an ordinary machine with any number of ranks


def _machine(fields: Fields, name: str, size: str) -> Preset:
    rule = fields.inner("ranks", RANK_KEYS)
    most = rule.whole("most")
    ranks = int(size) if re.fullmatch(r"[0-9]{1,6}", size) else 0
    if not 1 <= ranks <= most:
        raise InputError(
            f"{name!r} has {size!r} ranks, but it must be a whole number from 1 to {most}",
            "",
            f"write {fields.text('name')}-{most if ranks > most else 1}",
        )
    shared = Level(
        name="host",
        kind="host",
        size=ranks,
        bytes_per_s=rule.positive("bytes_per_s"),
        latency_s=rule.not_negative("latency_s", most=SLOWEST_S),
        efficiency=rule.share("efficiency"),
        source=rule.text("source", ""),
    )
    return _preset(fields, name, ranks, (shared,) if ranks > 1 else (), 1, 1, fields.text("title"))


# -- names that aren't there


def _unknown(name: str) -> UnknownName:
    known = entry_names("clusters")
    accelerator = name.strip().lower()
    if accelerator in entry_names("accelerators"):
        servers = with_accelerator(accelerator)
        if servers:
            fix = f"{accelerator} is an accelerator; servers that hold it: {', '.join(servers[:4])}"
            return UnknownName("cluster", name, known, fix=fix)
        fix = f"{accelerator} is an accelerator without a preset; describe its server in a YAML file"
        return UnknownName("cluster", name, known, fix=fix)
    turned = re.fullmatch(r"(.+)x([0-9]+)", accelerator)
    if turned and turned[1] in known:
        return UnknownName("cluster", name, known, fix=f"the count comes first: {turned[2]}x{turned[1]}")
    error = UnknownName("cluster", name, known)
    if error.fix:
        return error
    return UnknownName("cluster", name, known, fix="`meshwright catalog clusters` lists them; a YAML file works too")
