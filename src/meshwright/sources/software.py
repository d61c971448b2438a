"""Software profiles from the catalog or a YAML file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from functools import cache
from pathlib import Path
from typing import Any

from meshwright.sources.attention_kernels import INLINE, profile_kernel
from meshwright.sources.catalog import load_entry, read_yaml
from meshwright.spec.errors import InputError, near_names
from meshwright.spec.plan import SCHEDULES, SHARDING
from meshwright.spec.software import GradientHabits, Software
from meshwright.spec.workload import DTYPES

DEFAULT_SOFTWARE = "current"


def load_software(text: str = DEFAULT_SOFTWARE) -> Software:
    """A profile by catalog name, or from a YAML file of the same form (keys of `Software`; `base: NAME` starts from a
    catalog entry)."""
    path = Path(text)
    if path.suffix in (".yaml", ".yml"):
        entry = read_yaml(path)
        base = entry.pop("base", None)
        if base is not None:
            entry = {**load_entry("software", str(base)), "name": path.stem, **entry}
        entry.setdefault("name", path.stem)
        return software_from(entry, str(path))
    return _catalog_software(text.strip().lower())


@cache
def _catalog_software(name: str) -> Software:
    return software_from(load_entry("software", name), f"software {name}")


_KNOWN = {field.name: field for field in fields(Software)}
KERNEL_KEYS = ("attention", *INLINE)
PROFILE_KEYS = tuple(dict.fromkeys((*_KNOWN, *KERNEL_KEYS)))
"""Keys of a profile."""
_CHOICES: dict[str, tuple[str, ...]] = {
    "pipeline_sharding": SHARDING,
    "usual_sharding": ("", *SHARDING),
    "context_parallel": ("ring", "gather"),
    "column_inputs": ("sharded", "gathered", "copied"),
    "selective": ("attention", "elementwise", "alternate"),
}
_SHARES = (
    "tensor_overlap",
    "data_exposed_floor",
    "overlap_contention",
    "expert_overlap",
    "fragmentation",
    "host_link_efficiency",
    "host_memory_share",
)


@cache
def _common() -> Mapping[str, Any]:
    """The numbers that all profiles share."""
    entry = load_entry("habits", "common")
    return {key: value for key, value in entry.items() if key not in _ABOUT}


_ABOUT = ("name", "title", "source", "fitted")


def software_from(entry: Mapping[str, Any], where: str) -> Software:
    values: dict[str, Any] = {"attention": profile_kernel(entry, where, Software.attention)}
    for key, value in {**_common(), **entry}.items():
        if key not in PROFILE_KEYS:
            near = near_names(key, PROFILE_KEYS)
            raise InputError(f"unknown key {key!r}", where, f"did you mean {near[0]}?" if near else "")
        if key not in KERNEL_KEYS:
            values[key] = _checked(key, value, where)
    if isinstance(entry.get("by_dtype"), Mapping):
        values["by_dtype"] = _by_dtype(entry["by_dtype"], values, where)
    return Software(**values)


def _by_dtype(
    entry: Mapping[str, Any], values: Mapping[str, Any], where: str
) -> tuple[tuple[str, GradientHabits], ...]:
    """Gradient habits of each number format named; what one leaves out is as for the others."""
    found = {}
    for dtype, given in entry.items():
        inside = f"{where}: by_dtype: {dtype}"
        if dtype not in DTYPES:
            raise InputError(f"unknown dtype {dtype!r}", f"{where}: by_dtype", f"use one of {', '.join(DTYPES)}")
        if not isinstance(given, Mapping):
            raise InputError(f"it is {given!r}", inside, "write keys and values, such as gradient_bytes: 4")
        for key in given:
            if key not in GradientHabits._fields:
                raise InputError(f"unknown key {key!r}", inside, f"use {', '.join(GradientHabits._fields)}")
        others = {key: values.get(key, _KNOWN[key].default) for key in GradientHabits._fields}
        found[dtype] = GradientHabits(**{**others, **{key: _checked(key, given[key], inside) for key in given}})
    return tuple(found.items())


def _checked(key: str, value: Any, where: str) -> Any:
    field = _KNOWN[key]
    default = field.default
    if key in _CHOICES:
        if value not in _CHOICES[key]:
            raise InputError(f"{key} is {value!r}", where, f"use one of {', '.join(_CHOICES[key])}")
        return value
    if key == "schedules":
        unknown = [name for name in value if name not in SCHEDULES] if isinstance(value, list) else [value]
        if unknown:
            raise InputError(f"schedules holds {unknown[0]!r}", where, f"use a list of {', '.join(SCHEDULES)}")
        return tuple(value)
    if key in ("notes", "frameworks"):
        return tuple(str(each) for each in value) if isinstance(value, list) else (str(value),)
    if key == "by_dtype":
        if not isinstance(value, Mapping):
            raise InputError(
                f"by_dtype is {value!r}", where, "write a dtype and its keys, such as bf16: {gradient_bytes: 4}"
            )
        return ()
    if isinstance(default, bool):
        if not isinstance(value, bool):
            raise InputError(f"{key} is {value!r}; it must be true or false", where)
        return value
    if isinstance(default, int | float):
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
            raise InputError(f"{key} is {value!r}; it must be a number of at least 0", where)
        if key in _SHARES and value > 1:
            raise InputError(f"{key} is {value!r}; it must be a share from 0 to 1", where)
        if isinstance(default, int) and value != int(value):
            raise InputError(f"{key} is {value!r}; it must be a whole number", where, f"use {round(value)}")
        return type(default)(value)
    if default is MISSING or isinstance(default, str):
        return str(value)
    return value
