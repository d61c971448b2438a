"""The fields of a plan and of a training job, checked one by one.

Plan options, `--fix` and plan files hold the same values: typed in a file, as text on a command line. Both end here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from meshwright.sources import checks
from meshwright.sources.levels import MOST_ACCELERATORS
from meshwright.spec.errors import InputError
from meshwright.spec.plan import AXES, OFFLOAD, RECOMPUTE, SCHEDULES, SHARDING, Plan

MOST_SEQUENCES = 10**9
"""No global batch, micro-batch or sequence is larger."""
MOST_TOKENS = 1e18
MOST_PRICE = 1e6
MOST_STAGES = 10_000
ORDER_EXAMPLE = ",".join(AXES)

Check = Callable[[str, str, Any], Any]
"""(file, key, value) → the value as `Plan` holds it. Raises InputError."""


def _whole(most: int) -> Check:
    return lambda where, key, value: checks.whole(where, key, value, 1, most)


def _choice(options: tuple[str, ...]) -> Check:
    return lambda where, key, value: checks.choice(where, key, value, options)


def _order(where: str, key: str, value: Any) -> tuple[str, ...]:
    rule = f"each of {', '.join(AXES)} once, innermost (adjacent ranks) first, such as {ORDER_EXAMPLE}"
    names = [str(name) for name in value if name != "ep"] if isinstance(value, list | tuple) else []
    if sorted(names) != sorted(AXES):
        shown = ",".join(map(str, value)) if isinstance(value, list | tuple) else value
        raise checks.wrong(where, key, shown, rule)
    return tuple(names)


def _layers(where: str, key: str, value: Any) -> tuple[int, ...]:
    items = checks.listed(where, key, list(value) if isinstance(value, tuple) else value)
    if not 1 <= len(items) <= MOST_STAGES:
        raise InputError(f"{key} has {len(items):,} entries, but it must have 1 to {MOST_STAGES:,}", where)
    return tuple(checks.whole(where, f"{key}[{index}]", item, 1, MOST_STAGES) for index, item in enumerate(items))


_CHECKS: Mapping[str, Check] = MappingProxyType(
    {
        "tp": _whole(MOST_ACCELERATORS),
        "cp": _whole(MOST_ACCELERATORS),
        "ep": _whole(MOST_ACCELERATORS),
        "dp": _whole(MOST_ACCELERATORS),
        "pp": _whole(MOST_ACCELERATORS),
        "order": _order,
        "micro_batch": _whole(MOST_SEQUENCES),
        "num_micro_batches": _whole(MOST_SEQUENCES),
        "virtual_stages": _whole(MOST_STAGES),
        "schedule": _choice(SCHEDULES),
        "layers_per_stage": _layers,
        "recompute": _choice(RECOMPUTE),
        "sharding": _choice(SHARDING),
        "shard_group": _whole(MOST_ACCELERATORS),
        "sequence_parallel": checks.flag,
        "offload": _choice(OFFLOAD),
    }
)
PLAN_FIELDS = tuple(_CHECKS)
"""Names that a plan's JSON and `--fix` use, in the order of the JSON."""
_LISTS = ("order", "layers_per_stage")
_WHOLE = ("tp", "cp", "ep", "dp", "pp", "micro_batch", "num_micro_batches", "virtual_stages", "shard_group")
_FLAGS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}


def plan_field(name: str, value: Any, where: str = "", key: str = "") -> Any:
    """The value of one plan field as `Plan` holds it. `where` and `key` are what errors call its place."""
    return _CHECKS[name](where, key or name, value)


def plan_field_from_text(name: str, text: str, key: str) -> Any:
    """The same from the text of an option called `key`."""
    text = text.strip()
    if name in _LISTS:
        parts = [part.strip() for part in text.split(",")]
        value: Any = [_number_or_text(part) for part in parts] if name == "layers_per_stage" else parts
    elif name in _WHOLE:
        return whole_from_text(text, key, MOST_STAGES if name == "virtual_stages" else _most(name))
    elif name == "sequence_parallel":
        value = _FLAGS.get(text.lower(), text)
    else:
        value = text.lower() if text.lower() in (*SCHEDULES, *RECOMPUTE, *SHARDING, *OFFLOAD) else text
    return plan_field(name, value, key=key)


def check_together(pins: Mapping[str, Any], global_batch: int, accelerators: int) -> None:
    """Raise InputError where pinned fields can't hold at the same time, whatever the rest of the plan is.

    A plan that breaks a rule is an answer and is not refused here, unless its size is beyond all clusters.
    """
    ranks = math.prod(pins.get(axis, 1) for axis in AXES)
    if ranks > MOST_ACCELERATORS:
        product = " x ".join(f"{axis} {pins[axis]}" for axis in AXES if axis in pins)
        raise InputError(
            f"{product} is a plan for {ranks:,} accelerators; at most {MOST_ACCELERATORS:,} are planned for",
            fix=f"the cluster has {accelerators:,}",
        )
    count = pins.get("num_micro_batches")
    if count is None:
        return
    share = global_batch // pins.get("dp", 1)
    if "micro_batch" in pins and "dp" in pins and count * pins["micro_batch"] * pins["dp"] != global_batch:
        product = f"{count} micro-batches of {pins['micro_batch']} on dp {pins['dp']}"
        raise InputError(
            f"{product} are {count * pins['micro_batch'] * pins['dp']:,} sequences, but the global batch has "
            f"{global_batch:,}",
            fix="leave out num_micro_batches: it follows from the global batch, dp and micro_batch",
        )
    if share < 1 or global_batch % (count * pins.get("dp", 1) * pins.get("micro_batch", 1)):
        rest = "".join(f" on {name} {pins[name]}" for name in ("dp", "micro_batch") if name in pins)
        nearest = checks.nearest_divisor(max(1, share // pins.get("micro_batch", 1)), count)
        raise InputError(
            f"num_micro_batches {count}{rest} does not divide the global batch of {global_batch:,} sequences",
            fix=f"the nearest that works is {nearest}",
        )


def plan_from(values: Mapping[str, Any], global_batch: int) -> Plan:
    """A plan from checked fields; missing ones take the defaults of `Plan`. A number of micro-batches becomes the
    micro-batch that gives it; a shard group of all data-parallel ranks becomes 0."""
    fields = dict(values)
    count = fields.pop("num_micro_batches", None)
    if count is not None and "micro_batch" not in fields:
        fields["micro_batch"] = max(1, global_batch // (fields.get("dp", 1) * count))
    plan = Plan(**fields)
    return plan.with_(shard_group=0) if plan.shard_group == plan.data_ranks else plan


# -- numbers as people type them


def whole_from_text(text: str, key: str, most: int = MOST_SEQUENCES) -> int:
    """A whole number of at least 1, written in digits."""
    if re.fullmatch(r"-?[0-9]{1,18}", text.strip()):
        return checks.whole("", key, int(text), 1, most)
    number = None if text.strip()[-1:].isalpha() else _float(text)  # who writes 4k may mean 4000 or 4096
    nearest = None if number is None else int(min(max(round(number), 1), most))
    raise checks.wrong("", key, text, f"a whole number from 1 to {most:,}, in digits", nearest)


def number_from_text(text: str, key: str, most: float, example: str) -> float:
    """A number above 0; K, M, B and T stand for thousands, millions, billions and trillions."""
    number = _float(text)
    if number is None or not 0 < number <= most:
        nearest = None if number is None or number <= 0 else f"{most:g}"
        fix = "" if nearest is None else f"the nearest value that works is {nearest}"
        raise InputError(
            f"{key} is {checks.shown(text)}, but it must be a number above 0 and at most {most:g}, such as {example}",
            fix=fix,
        )
    return number


_SCALES = {"": 1.0, "k": 1e3, "m": 1e6, "b": 1e9, "t": 1e12}


def _float(text: str) -> float | None:
    plain = text.strip().lower().replace(",", "").replace("_", "")
    match = re.fullmatch(r"([-+]?(?:[0-9]{1,40}\.?[0-9]{0,40}|\.[0-9]{1,40})(?:e[-+]?[0-9]{1,3})?)([kmbt]?)", plain)
    if match is None:
        return None
    number = float(match[1]) * _SCALES[match[2]]
    return number if math.isfinite(number) else None


def _number_or_text(text: str) -> int | str:
    return int(text) if re.fullmatch(r"-?[0-9]{1,18}", text) else text


def _most(name: str) -> int:
    return MOST_SEQUENCES if name in ("micro_batch", "num_micro_batches") else MOST_ACCELERATORS
