"""Families of links: what all levels of one kind of link have in common, fitted once on published curves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from meshwright.sources.catalog import CATALOG, entry_names, load_entry
from meshwright.sources.fields import Fields
from meshwright.spec.errors import InputError, UnknownName

_OWN_KEYS = ("name", "title", "residual", "curves")
_CURVE_KEYS = ("source", "gpu", "preset", "held_out")
_LEVEL_KEYS = (
    "kind", "bytes_per_s", "link_bytes_per_s", "latency_s", "start_s", "efficiency", "sqrt_s_per_sqrt_byte",
    "local_bytes_per_s", "in_switch_reduction", "in_switch_bandwidth_share", "oversubscription", "source",
)  # fmt: skip


@dataclass(frozen=True)
class Curve:
    """Published measurements of a family: those that a table holds from a `source` for a `gpu`, as it writes them,
    whose links are the ones of a `preset`. What is held out tests the fit and doesn't enter it."""

    source: str
    gpu: str
    preset: str
    held_out: bool = False


def link_names() -> tuple[str, ...]:
    """Names of the families in the catalog."""
    return entry_names("links")


def link_defaults(name: str, where: str, key: str) -> dict[str, Any]:
    """What a level that names the family takes from it, by the level's keys. Raises UnknownName where there is none;
    `where` and `key` say who names it."""
    try:
        content = load_entry("links", name)
    except UnknownName as error:
        raise InputError(f"{key}: {error.message}", where, error.fix) from error
    taken = {key: content[key] for key in _LEVEL_KEYS if key in content}
    described = (content.get("source", ""), content.get("residual", ""))
    return taken | {"source": " ".join(text.strip() for text in described if text)}


def link_curves(name: str) -> tuple[Curve, ...]:
    """The curves that the family's constants are fitted on or tested on."""
    fields = Fields(str(CATALOG / "links" / f"{name}.yaml"), load_entry("links", name), (*_OWN_KEYS, *_LEVEL_KEYS))
    return tuple(
        Curve(item.text("source"), item.text("gpu"), item.text("preset"), item.flag("held_out", False))
        for item in fields.items("curves", _CURVE_KEYS)
    )
