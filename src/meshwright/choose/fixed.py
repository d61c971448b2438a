"""Pinned plan fields, checked: an unknown field, a wrong type or a value that no plan can have is refused by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from meshwright.choose.space import Fixed
from meshwright.spec.errors import InputError, UnknownName
from meshwright.spec.plan import AXES, OFFLOAD, RECOMPUTE, SCHEDULES, SHARDING

_NAMES = {"schedule": SCHEDULES, "recompute": RECOMPUTE, "sharding": SHARDING, "offload": OFFLOAD}
_COUNTS = ("tp", "cp", "ep", "dp", "pp", "micro_batch", "virtual_stages", "shard_group", "num_micro_batches")
FIELDS = (*_COUNTS, *_NAMES, "order", "sequence_parallel", "layers_per_stage")
"""What can be pinned."""


def checked(fixed: Mapping[str, Any]) -> Fixed:
    """The pins as the search reads them. Raises InputError for what can't be understood."""
    pins = {name: _value(name, value) for name, value in fixed.items() if value is not None}
    if pins.get("shard_group") == 0:
        del pins["shard_group"]
    if "shard_group" in pins and pins.get("sharding") == "none":
        raise InputError(
            f"shard_group is {pins['shard_group']}, but sharding is none: there is nothing to share",
            "--shard-group",
            "leave one of the two out",
        )
    return pins


def _value(name: str, value: Any) -> Any:
    where = f"--fix {name}"
    if name not in FIELDS:
        raise UnknownName("plan field", name, FIELDS, "--fix")
    if name in _NAMES:
        if value not in _NAMES[name]:
            raise UnknownName(name, str(value), _NAMES[name], where, f"use one of {', '.join(_NAMES[name])}")
        return value
    if name == "order":
        return _order(value, where)
    if name == "sequence_parallel":
        if not isinstance(value, bool):
            raise InputError(f"is {value!r}; it must be true or false", where)
        return value
    if name == "layers_per_stage":
        counts = tuple(value) if isinstance(value, list | tuple) else ()
        if not counts or any(isinstance(count, bool) or not isinstance(count, int) or count < 1 for count in counts):
            raise InputError(
                f"is {value!r}; it must list whole numbers of at least 1", where, "for example 20,20,20,20"
            )
        return counts
    least = 0 if name == "shard_group" else 1
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InputError(f"is {value!r}; it must be a whole number of at least {least}", where, f"the least is {least}")
    return value


def _order(value: Any, where: str) -> tuple[str, ...]:
    """The four mesh axes, innermost first; `ep` may stand among them and is dropped: expert ranks lie inside dp ×
    cp."""
    if not isinstance(value, str | list | tuple):
        value = (value,)
    names = tuple(value.split(",") if isinstance(value, str) else map(str, value))
    axes = tuple(name for name in names if name != "ep")
    if sorted(axes) != sorted(AXES) or len(names) - len(axes) > 1:
        raise InputError(
            f"is {','.join(names)}; it must list {', '.join(AXES)} once each, innermost first",
            where,
            f"for example {','.join(AXES)}",
        )
    return axes
