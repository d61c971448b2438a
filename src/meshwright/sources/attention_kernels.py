"""Attention kernels from the catalog and from software profiles that write one out.

An entry of `catalog/attention`, and an `attention:` written out in a profile, has the keys of `AttentionKernel`:

    name: cudnn
    efficiency: {hopper: 0.38, '': 0.30}   # by accelerator family, '' for any other; without it: unfused
    backward_ratio: 2.5                    # optional, as is the rest
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from functools import cache
from typing import Any

from meshwright.sources import checks
from meshwright.sources.catalog import CATALOG, entry_names, load_entry
from meshwright.sources.fields import Fields
from meshwright.spec.attention_kernel import AttentionKernel
from meshwright.spec.errors import InputError

KEYS = tuple(field.name for field in fields(AttentionKernel))
INLINE = {
    "attention_efficiency": "efficiency",
    "attention_backward_ratio": "backward_ratio",
    "unfused_forward_bytes_per_score": "forward_bytes_per_score",
    "unfused_backward_bytes_per_score": "backward_bytes_per_score",
    "unfused_traffic_factor": "traffic_factor",
}
"""Keys of a software profile that change one figure of its kernel."""
_NUMBERS = (
    "backward_ratio",
    "operand_traffic",
    "forward_bytes_per_score",
    "backward_bytes_per_score",
    "traffic_factor",
)


@cache
def load_attention_kernel(name: str) -> AttentionKernel:
    """The catalog's kernel `name` (`flash2`). Raises UnknownName, with near names, where there is none."""
    where = str(CATALOG / "attention" / f"{name.strip().lower()}.yaml")
    return attention_kernel_from(Fields(where, load_entry("attention", name), KEYS))


def attention_kernel_from(fields: Fields) -> AttentionKernel:
    """The kernel that a file writes out. Raises InputError with the key that is wrong."""
    return _changed(AttentionKernel(fields.text("name")), fields, {key: key for key in KEYS})


def profile_kernel(entry: Mapping[str, Any], where: str, default: AttentionKernel) -> AttentionKernel:
    """The kernel of a software profile: by its name under `attention`, or written out there, with what the profile's
    own `attention_efficiency`, `attention_backward_ratio` and `unfused_…` keys change."""
    named = entry.get("attention")
    inline = {key: value for key, value in entry.items() if key in INLINE}
    if isinstance(named, Mapping):
        kernel = attention_kernel_from(Fields(where, named, KEYS, "attention"))
    elif named is None:
        kernel = replace(default, name="own") if "attention_efficiency" in inline else default
    elif "attention_efficiency" in inline and str(named) not in entry_names("attention"):
        kernel = AttentionKernel(checks.text(where, "attention", named))
    else:
        kernel = _catalog_kernel(named, where)
    return _changed(kernel, Fields(where, inline, tuple(INLINE)), {value: key for key, value in INLINE.items()})


def attention_kernel_content(kernel: AttentionKernel) -> str | dict[str, Any]:
    """The kernel as a file holds it: its name where the catalog has just this one, else written out."""
    if kernel.name in entry_names("attention") and load_attention_kernel(kernel.name) == kernel:
        return kernel.name
    plain = AttentionKernel(kernel.name)
    content: dict[str, Any] = {"name": kernel.name} | {
        name: getattr(kernel, name) for name in KEYS if getattr(kernel, name) != getattr(plain, name)
    }
    for key, value in content.items():
        if isinstance(value, Mapping):
            content[key] = dict(value)
        elif isinstance(value, tuple):
            content[key] = list(value)
    return content


def _catalog_kernel(named: Any, where: str) -> AttentionKernel:
    names = entry_names("attention")
    return load_attention_kernel(checks.choice(where, "attention", named, names))


def _changed(kernel: AttentionKernel, given: Fields, keys: Mapping[str, str]) -> AttentionKernel:
    """The kernel with what the mapping says; `keys` says under which of its keys each figure of the kernel stands."""
    changes: dict[str, Any] = {name: given.not_negative(keys[name]) for name in _NUMBERS if keys.get(name, "") in given}
    for name in ("title", "source", "measured", "fitted"):
        if keys.get(name, "") in given:
            changes[name] = given.text(name)
    for name in ("notes", "kernels"):
        if keys.get(name, "") in given:
            changes[name] = given.texts(name)
    if keys.get("softmax_width", "") in given:
        widths = checks.mapping(given.where, given.key("softmax_width"), given.raw("softmax_width", ""))
        changes["softmax_width"] = given.numbers("softmax_width", list(widths))
    if keys.get("year", "") in given:
        changes["year"] = given.whole("year", least=1980, most=2100)
    if keys["efficiency"] in given:
        changes["efficiency"] = _shares(given, keys["efficiency"])
    return replace(kernel, **changes)


def _shares(given: Fields, key: str) -> dict[str, float]:
    rule = "a mapping of accelerator families to shares of the peak above 0 and up to 1, with '' for any other"
    shares = given.raw(key, rule)
    if not isinstance(shares, Mapping) or "" not in shares:
        raise InputError(f"{given.key(key)} must be {rule}", given.where)
    inner = Fields(given.where, shares, [str(family) for family in shares], given.key(key))
    return {str(family): inner.share(family) for family in shares}
