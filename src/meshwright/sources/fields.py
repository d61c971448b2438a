"""One mapping of a file, read key by key: every value comes out checked, errors name file, key, value and rule."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from meshwright.sources import checks
from meshwright.spec.errors import InputError

MOST = 1e21
"""No rate or size of a machine is larger; keeps a stray 1e300 from doing harm."""


class Fields:
    """The keys of one mapping. `where` is the file, `path` the way to the mapping inside it (`levels[1]`).

    Raises InputError at once for a key that isn't among `known`. A method without a default asks for its key.
    """

    def __init__(self, where: str, content: object, known: Sequence[str], path: str = "") -> None:
        self.where = where
        self.path = path
        self._content = checks.mapping(where, path or "the file", content)
        place = f"{where}: {path}" if path else where
        for key in self._content:
            if not isinstance(key, str):
                raise InputError(f"key {checks.shown(key)} must be text", place, f'write "{key}"')
        checks.known_keys(place, self._content, known)

    def __contains__(self, key: str) -> bool:
        return self._content.get(key) is not None

    def key(self, key: str) -> str:
        """How errors name a key."""
        return f"{self.path}.{key}" if self.path else key

    def raw(self, key: str, rule: str) -> Any:
        """The value as it stands; `rule` says what it must be if it is missing."""
        if key not in self:
            raise InputError(f"{self.key(key)} is missing: it must be {rule}", self.where)
        return self._content[key]

    def over(self, defaults: Mapping[str, Any], known: Sequence[str]) -> Fields:
        """The same mapping with the values of `defaults` for keys that it doesn't give."""
        given = {key: value for key, value in self._content.items() if value is not None}
        return Fields(self.where, {**defaults, **given}, known, self.path)

    def positive(self, key: str, default: float | None = None, least: float = 0.0, most: float = MOST) -> float:
        """A number above zero (or of at least `least`)."""
        rule = "a number above 0" if least == 0 else f"a number of at least {least:g}"
        rule = rule if most >= MOST else f"{rule} and at most {most:g}"
        if default is not None and key not in self:
            return default
        return self._number(key, self.raw(key, rule), rule, least or 5e-324, most, least or None)

    def not_negative(self, key: str, default: float | None = None, most: float = MOST) -> float:
        """A number of at least 0."""
        rule = "a number of at least 0" if most >= MOST else f"a number from 0 to {most:g}"
        if default is not None and key not in self:
            return default
        return self._number(key, self.raw(key, rule), rule, 0.0, most, 0.0)

    def share(self, key: str, default: float | None = None) -> float:
        """A number above 0, at most 1."""
        rule = "a share: above 0, at most 1"
        if default is not None and key not in self:
            return default
        return self._number(key, self.raw(key, rule), rule, 5e-324, 1.0, None)

    def whole(self, key: str, default: int | None = None, least: int = 1, most: int = checks.MOST) -> int:
        """A whole number."""
        if default is not None and key not in self:
            return default
        rule = f"a whole number of at least {least}"
        return checks.whole(self.where, self.key(key), self.raw(key, rule), least, most)

    def text(self, key: str, default: str | None = None) -> str:
        """Text; a bare number counts as text, since some accelerators are called like one (4090)."""
        if default is not None and key not in self:
            return default
        value = self.raw(key, "text")
        if isinstance(value, int) and not isinstance(value, bool):
            value = str(value)
        return checks.text(self.where, self.key(key), value)

    def flag(self, key: str, default: bool) -> bool:
        """true or false."""
        return checks.flag(self.where, self.key(key), self._content[key]) if key in self else default

    def choice(self, key: str, options: Sequence[str], default: str | None = None) -> str:
        """One of the options."""
        if default is not None and key not in self:
            return default
        value = self.raw(key, f"one of {', '.join(options)}")
        return checks.choice(self.where, self.key(key), value, options)

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of text; empty where the key is missing."""
        if key not in self:
            return ()
        items = checks.listed(self.where, self.key(key), self._content[key])
        return tuple(checks.text(self.where, f"{self.key(key)}[{i}]", item) for i, item in enumerate(items))

    def wholes(self, key: str, least: int = 1, most: int = checks.MOST) -> tuple[int, ...]:
        """A list of whole numbers; empty where the key is missing."""
        if key not in self:
            return ()
        name = self.key(key)
        items = checks.listed(self.where, name, self._content[key])
        return tuple(checks.whole(self.where, f"{name}[{i}]", item, least, most) for i, item in enumerate(items))

    def numbers(self, key: str, known: Sequence[str], most: float = MOST) -> dict[str, float]:
        """A mapping from some of the `known` names to numbers above 0; empty where the key is missing."""
        if key not in self:
            return {}
        inner = Fields(self.where, self._content[key], known, self.key(key))
        return {name: inner.positive(name, most=most) for name in inner._content}

    def labels(self, key: str) -> dict[str, str]:
        """A mapping from text to text; empty where the key is missing."""
        if key not in self:
            return {}
        content: Mapping[Any, Any] = checks.mapping(self.where, self.key(key), self._content[key])
        return {str(name): checks.text(self.where, f"{self.key(key)}.{name}", value) for name, value in content.items()}

    def inner(self, key: str, known: Sequence[str], rule: str = "a mapping of keys to values") -> Fields:
        """The mapping under a key."""
        return Fields(self.where, self.raw(key, rule), known, self.key(key))

    def items(self, key: str, known: Sequence[str]) -> list[Fields]:
        """The mappings listed under a key; none where the key is missing."""
        if key not in self:
            return []
        listed = checks.listed(self.where, self.key(key), self._content[key])
        return [Fields(self.where, item, known, f"{self.key(key)}[{i}]") for i, item in enumerate(listed)]

    def pairs(self, key: str) -> tuple[tuple[int, float], ...]:
        """A list of [whole number, number above 0], the first ones rising; empty where the key is missing."""
        if key not in self:
            return ()
        pairs: list[tuple[int, float]] = []
        for i, item in enumerate(checks.listed(self.where, self.key(key), self._content[key])):
            name = f"{self.key(key)}[{i}]"
            if not isinstance(item, list) or len(item) != 2:
                raise checks.wrong(self.where, name, item, "a pair such as [2, 50e9]")
            least = pairs[-1][0] + 1 if pairs else 1
            size = checks.whole(self.where, f"{name}[0]", item[0], least)
            rule = "a number above 0"
            pairs.append((size, self._number(f"{key}[{i}][1]", item[1], rule, 5e-324, MOST, None)))
        return tuple(pairs)

    def _number(self, key: str, value: Any, rule: str, least: float, most: float, nearest: float | None) -> float:
        if isinstance(value, str):
            raise checks.wrong(self.where, self.key(key), value, rule, _number_in_text(value, least, most))
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise checks.wrong(self.where, self.key(key), value, rule)
        if isinstance(value, float) and not math.isfinite(value):
            raise checks.wrong(self.where, self.key(key), value, rule, most if value > 0 and most < MOST else None)
        if not least <= value <= most:
            if value < 0 and least <= -value <= most:
                nearest = -value
            raise checks.wrong(self.where, self.key(key), value, rule, most if value > most else nearest)
        return float(value)


def _number_in_text(value: str, least: float, most: float) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return number if least <= number <= most else None
