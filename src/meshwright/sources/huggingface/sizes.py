"""Typed access to a config whose class has key names of its own: encoders and encoder-decoders."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from meshwright.sources import checks
from meshwright.spec.errors import UnsupportedModel

MAX_LAYERS = 10_000


class Sizes:
    """The values of one config. A key may have several names, parted by spaces: the first that is given counts."""

    def __init__(self, values: Mapping[str, Any], where: str, architecture: str) -> None:
        self.values = values
        self.where = where
        self.architecture = architecture
        self.assumed: dict[str, int] = {}

    def key(self, names: str) -> str:
        """The name that the config uses, the first one where it uses none."""
        options = names.split()
        return next((name for name in options if self.values.get(name) is not None), options[0])

    def need(self, names: str, most: int = checks.MOST) -> int:
        """A size that the model can't be described without. Raises UnsupportedModel where it is missing."""
        key = self.key(names)
        value = self.values.get(key)
        if value is None:
            raise self.refuse(key)
        return checks.whole(self.where, key, value, 1, most)

    def size(self, names: str, default: int, least: int = 1) -> int:
        """A size, or the class's default, which is noted."""
        key = self.key(names)
        value = self.values.get(key)
        if value is None:
            self.assumed[key] = default
            return default
        return checks.whole(self.where, key, value, least)

    def flag(self, name: str, default: bool) -> bool:
        """A switch, or the class's default."""
        value = self.values.get(name)
        return default if value is None else checks.flag(self.where, name, value)

    def head_dim(self, hidden: int, heads: str, hidden_key: str) -> int:
        """Width of a head where it is `hidden` over the heads, which must divide it."""
        count = self.need(heads)
        if hidden % count:
            rule = f"a divisor of {hidden_key} ({hidden})"
            raise checks.wrong(self.where, self.key(heads), count, rule, checks.nearest_divisor(hidden, count))
        return hidden // count

    def dropout(self, names: str, default: bool) -> bool:
        """Whether any of the named probabilities is above zero."""
        given = [checks.share(self.where, key, value) for key in names.split() if (value := self.values.get(key))]
        said = any(self.values.get(key) is not None for key in names.split())
        return bool(given) if said else default

    def labels(self) -> int:
        """Classes of a classification head: `id2label` where it is given, else `num_labels`, else 2."""
        names = self.values.get("id2label")
        if names is not None:
            return len(checks.mapping(self.where, "id2label", names))
        value = self.values.get("num_labels")
        return 2 if value is None else checks.whole(self.where, "num_labels", value)

    def refuse(self, *missing: str) -> UnsupportedModel:
        """The error for facts that neither the file nor the class gives."""
        return UnsupportedModel(self.architecture, missing, self.where)

    def notes(self) -> tuple[str, ...]:
        """What was filled in from the class, in words."""
        text = ", ".join(f"{key} {value}" for key, value in self.assumed.items())
        return (f"not in the file, so the class's default: {text}",) if text else ()


def linear(width: int, out: int, bias: bool = True) -> int:
    """Parameters of one matrix and its bias."""
    return width * out + (out if bias else 0)
