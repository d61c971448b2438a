"""Single values from outside, checked: an error names file, key, value, the rule and the nearest value that works."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from meshwright.spec.errors import InputError, near_names

MOST = 10**15
"""No count in a description of a model or machine is larger; keeps a stray 1e300 from doing harm."""


def wrong(where: str, key: str, value: object, rule: str, nearest: object = None) -> InputError:
    """The error for `key: value`, which breaks `rule`."""
    fix = "" if nearest is None else f"the nearest value that works is {shown(nearest)}"
    return InputError(f"{key} is {shown(value)}, but it must be {rule}", where, fix)


def shown(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    try:
        text = repr(value)
    except ValueError:  # an integer of more digits than Python prints
        return "a number of thousands of digits"
    return text if len(text) <= 60 else text[:57] + "…"


def whole(where: str, key: str, value: Any, least: int = 1, most: int = MOST) -> int:
    """A whole number from `least` to `most`."""
    rule = f"a whole number from {least:,} to {most:,}" if most < MOST else f"a whole number of at least {least:,}"
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise wrong(where, key, value, rule, _whole_in_text(value, least, most))
    if isinstance(value, float) and not value.is_integer():
        nearest = min(max(round(value), least), most) if math.isfinite(value) else None
        raise wrong(where, key, value, rule, nearest)
    number = int(value)
    if not least <= number <= most:
        raise wrong(where, key, value, rule, min(max(number, least), most))
    return number


def flag(where: str, key: str, value: Any) -> bool:
    """true or false, and nothing that only looks like it."""
    if not isinstance(value, bool):
        looks = {"0": False, "1": True, "false": False, "true": True, "'false'": False, "'true'": True, "'yes'": True}
        raise wrong(where, key, value, "true or false", looks.get(shown(value).lower()))
    return value


def share(where: str, key: str, value: Any) -> float:
    """A number from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        nearest = min(max(value, 0), 1) if isinstance(value, int | float) and value == value else None
        raise wrong(where, key, value, "a number from 0 to 1", nearest)
    return float(value)


def text(where: str, key: str, value: Any) -> str:
    """A piece of text."""
    if not isinstance(value, str):
        raise wrong(where, key, value, "text")
    return value


def choice(where: str, key: str, value: Any, options: Sequence[str]) -> str:
    """One of the `options`."""
    if not isinstance(value, str) or value not in options:
        near = near_names(value, options) if isinstance(value, str) else ()
        raise wrong(where, key, value, f"one of {', '.join(options)}", near[0] if near else None)
    return value


def mapping(where: str, key: str, value: Any) -> dict[str, Any]:
    """A mapping of keys to values."""
    if not isinstance(value, dict):
        raise wrong(where, key, value, "a mapping of keys to values")
    return value


def listed(where: str, key: str, value: Any) -> list[Any]:
    """A list."""
    if not isinstance(value, list):
        raise wrong(where, key, value, "a list")
    return value


def known_keys(where: str, given: Iterable[str], known: Sequence[str]) -> None:
    """No key but the `known` ones."""
    for key in given:
        if key not in known:
            near = near_names(key, known)
            fix = f"did you mean {near[0]}?" if near else f"known keys: {', '.join(known)}"
            raise InputError(f"key {shown(key)} is not known", where, fix)


def nearest_divisor(number: int, near: int) -> int:
    """The divisor of `number` that is nearest to `near`."""
    root = math.isqrt(number)
    small = [divisor for divisor in range(1, min(root, 10**6) + 1) if number % divisor == 0]
    return min((*small, *(number // divisor for divisor in small)), key=lambda divisor: (abs(divisor - near), divisor))


def _whole_in_text(value: Any, least: int, most: int) -> int | None:
    if isinstance(value, str) and value.strip().lstrip("-").isdecimal() and len(value) < 16:
        return min(max(int(value), least), most)
    return None
