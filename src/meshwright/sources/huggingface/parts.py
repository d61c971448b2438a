"""One part of a multimodal config (a tower, a perceiver), read with its class's defaults, and the shapes that recur."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from meshwright.sources import checks


@dataclass(frozen=True)
class Part:
    """The values of one part; `name` is its key in the file (empty: the file itself), `where` names the file."""

    values: Mapping[str, Any]
    where: str
    name: str = ""

    def key(self, key: str) -> str:
        return f"{self.name}.{key}" if self.name else key

    def size(self, key: str, default: int, least: int = 1) -> int:
        value = self.values.get(key)
        return default if value is None else checks.whole(self.where, self.key(key), value, least)

    def flag(self, key: str, default: bool) -> bool:
        value = self.values.get(key)
        return default if value is None else checks.flag(self.where, self.key(key), value)

    def listed(self, key: str, default: list[Any]) -> list[Any]:
        value = self.values.get(key)
        return default if value is None else checks.listed(self.where, self.key(key), value)

    def sides(self, key: str, default: int) -> tuple[int, int]:
        """Height and width of an image or a patch: one number for both, or two."""
        value = self.values.get(key)
        if not isinstance(value, list):
            side = self.size(key, default)
            return side, side
        if len(value) != 2:
            raise checks.wrong(self.where, self.key(key), value, "a number, or a height and a width")
        return checks.whole(self.where, self.key(key), value[0]), checks.whole(self.where, self.key(key), value[1])

    def inside(self, key: str, defaults: Mapping[str, Any] | None = None) -> Part:
        """A part of this part; where the file has none, the wrapper's `defaults`."""
        value = self.values.get(key)
        return Part(dict(defaults or {}) if value is None else checks.mapping(self.where, key, value), self.where, key)


def linear(width: int, out: int, bias: bool = True) -> int:
    return width * out + (out if bias else 0)


def norm(width: int) -> int:
    """A layer norm: a weight and a bias per channel."""
    return 2 * width


def block(width: int, ffn: int) -> int:
    """A plain transformer block with biases everywhere and two layer norms."""
    return 4 * linear(width, width) + linear(width, ffn) + linear(ffn, width) + 2 * norm(width)


def gated(width: int, ffn: int, bias: bool = False) -> int:
    """An MLP with a gate."""
    return 2 * linear(width, ffn, bias) + linear(ffn, width, bias)


def patches(part: Part, width: int, patch: int, channels: str = "num_channels") -> int:
    """The matrix that takes the pixels of a patch to the width of a tower."""
    high, wide = part.sides("patch_size", patch)
    return width * part.size(channels, 3) * high * wide


def grid(part: Part, image: int, patch: int) -> int:
    """Patches of one image."""
    high, wide = part.sides("image_size", image)
    patch_high, patch_wide = part.sides("patch_size", patch)
    return (high // patch_high) * (wide // patch_wide)
