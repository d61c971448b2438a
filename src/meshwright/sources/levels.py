"""Levels of a bandwidth hierarchy as files hold them: one mapping per level, innermost first.

- name: nvlink
  kind: switch               # switch, mesh, bridge, torus, host or fabric
  size: 8                    # accelerators that it joins
  bytes_per_s: 450e9         # per accelerator and direction when all of them talk
  latency_s: 0.6e-6          # one hop
  efficiency: 0.73           # share of bytes_per_s that large collectives reach
  sqrt_s_per_sqrt_byte: 1.8e-9                      # optional from here on
  in_switch_reduction: true
  in_switch_bandwidth_share: 0.67
  link_bytes_per_s: 25e9                            # mesh and torus: one link; host: one path
  group_bytes_per_s: [[2, 50e9], [4, 100e9]]        # mesh: what a ring of so many reaches
  dims: [4, 4, 4]                                   # torus
  wrapped: true                                     # torus
  ports_per_node: 8                                 # fabric
  port_bytes_per_s: 50e9                            # fabric
  oversubscription: 1                               # fabric; mesh and host: of an all-to-all
  local_bytes_per_s: 650e9                          # a rank's copy of its own part, once per collective
  start_s: 1e-6                                     # of a collective, beyond its library's base latency
  source: where the numbers are from

`link: nvlink4-nvswitch` names a family of links of the catalog, which stands in for all keys but name and size that the
level doesn't give.
"""

from __future__ import annotations

from math import prod
from typing import Any, cast, get_args

from meshwright.sources import checks
from meshwright.sources.fields import Fields
from meshwright.sources.links import link_defaults
from meshwright.spec.cluster import Level, LevelKind
from meshwright.spec.errors import InputError

KINDS: tuple[str, ...] = get_args(LevelKind)
KEYS = (
    "name", "kind", "size", "bytes_per_s", "latency_s", "efficiency", "sqrt_s_per_sqrt_byte", "in_switch_reduction",
    "in_switch_bandwidth_share", "link_bytes_per_s", "group_bytes_per_s", "dims", "wrapped", "ports_per_node",
    "port_bytes_per_s", "oversubscription", "local_bytes_per_s", "start_s", "source",
    "link",
)  # fmt: skip
_OPTIONAL = KEYS[6:-1]
MOST_ACCELERATORS = 1_000_000
SLOWEST_S = 10.0
"""No hop takes longer."""


def levels_from(listed: list[Fields]) -> tuple[Level, ...]:
    """The levels that a file lists. Raises InputError where a value is wrong or a size doesn't divide the next one."""
    levels: list[Level] = []
    inner = 1
    for fields in listed:
        level = _level_from(_with_link(fields))
        if level.size % inner:
            rule = f"a multiple of the {inner} accelerators of level {levels[-1].name!r} inside it"
            nearest = max(1, round(level.size / inner)) * inner
            raise checks.wrong(fields.where, fields.key("size"), level.size, rule, nearest)
        inner = level.size
        levels.append(level)
    return tuple(levels)


def level_content(level: Level) -> dict[str, Any]:
    """The level as a cluster file holds it; `levels_from` reads it back unchanged."""
    content = {key: getattr(level, key) for key in KEYS[:6]}
    for key in _OPTIONAL:
        value = getattr(level, key)
        if value != getattr(_PLAIN, key):
            content[key] = _plain(value)
    return content


def _with_link(fields: Fields) -> Fields:
    """The level with what it doesn't say itself from the family of links that it names."""
    if "link" not in fields:
        return fields
    return fields.over(link_defaults(fields.text("link"), fields.where, fields.key("link")), KEYS)


def _level_from(fields: Fields) -> Level:
    kind = cast(LevelKind, fields.choice("kind", KINDS))
    size = fields.whole("size", most=MOST_ACCELERATORS)
    dims = fields.wholes("dims", most=MOST_ACCELERATORS)
    link = fields.positive("link_bytes_per_s", 0.0)
    if kind == "torus":
        if not dims or not link:
            missing = "dims" if not dims else "link_bytes_per_s"
            raise InputError(f"{fields.key(missing)} is missing: a torus needs it", fields.where)
        if prod(dims) != size:
            raise checks.wrong(fields.where, fields.key("size"), size, f"the product of dims {list(dims)}", prod(dims))
    return Level(
        name=fields.text("name"),
        kind=kind,
        size=size,
        bytes_per_s=fields.positive("bytes_per_s"),
        latency_s=fields.not_negative("latency_s", most=SLOWEST_S),
        dims=dims,
        link_bytes_per_s=link,
        group_bytes_per_s=fields.pairs("group_bytes_per_s"),
        wrapped=fields.flag("wrapped", True),
        ports_per_node=fields.whole("ports_per_node", 0, 0, MOST_ACCELERATORS),
        port_bytes_per_s=fields.not_negative("port_bytes_per_s", 0.0),
        oversubscription=fields.positive("oversubscription", 1.0, least=1.0, most=1e6),
        in_switch_reduction=fields.flag("in_switch_reduction", False),
        efficiency=fields.share("efficiency", 1.0),
        sqrt_s_per_sqrt_byte=fields.not_negative("sqrt_s_per_sqrt_byte", 0.0, most=1.0),
        source=fields.text("source", ""),
        in_switch_bandwidth_share=fields.not_negative("in_switch_bandwidth_share", 0.0, most=1.0),
        local_bytes_per_s=fields.positive("local_bytes_per_s", 0.0),
        start_s=fields.not_negative("start_s", 0.0, most=SLOWEST_S),
    )


_PLAIN = Level("", "switch", 1, 1.0, 0.0)


def _plain(value: Any) -> Any:
    return [_plain(item) for item in value] if isinstance(value, tuple) else value
