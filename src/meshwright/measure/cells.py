"""Cells of a row as numbers. A cell that can't be one says so by raising InputError, which costs its row alone."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from meshwright.sources.blueprint import MAX_LAYERS
from meshwright.sources.levels import MOST_ACCELERATORS
from meshwright.spec.errors import InputError

_MOST = 1e18
_RANKS = ("gpus_total", "gpus", "accelerators", "gpus_per_node", "tp", "pp", "cp", "ep", "dp", "vpp")
_MOST_WHOLE = {"layers": MAX_LAYERS} | dict.fromkeys(_RANKS, MOST_ACCELERATORS)
_MOST_ELSE = 10**9
"""No width, batch or sequence is longer; keeps a stray digit from filling the memory."""
_NOT_STATED = re.compile(r"\W*(not stated|not given|unknown|unspecified|n/?a|none given|\?+|-+)\b.*|[?-]+", re.DOTALL)


def number(cells: Mapping[str, str], column: str) -> float | None:
    """A number above 0; None where the cell is empty."""
    text = cells.get(column)
    if text is None:
        return None
    try:
        value = float(text.replace("_", ""))
    except ValueError:
        value = math.nan
    if not 0 < value < _MOST:
        raise InputError(f"{column} is {_shown(text)}, but it must be a number above 0", fix=_nearest(text, 0))
    return value


def stated(cells: Mapping[str, str], column: str) -> str:
    """The text of a cell; nothing where it says that the source doesn't tell: `(not stated; 8 GPUs)`."""
    text = cells.get(column, "")
    return "" if _NOT_STATED.fullmatch(text.lower()) else text


def whole(cells: Mapping[str, str], column: str, least: int = 1) -> int | None:
    """A whole number, `8` or `8.0`; None where the cell is empty."""
    text = cells.get(column)
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    most = _MOST_WHOLE.get(column, _MOST_ELSE)
    if not (least <= value <= most and value == int(value)):
        rule = f"a whole number from {least} to {most:,}"
        raise InputError(f"{column} is {_shown(text)}, but it must be {rule}", fix=_nearest(text, least, most))
    return int(value)


def flag(cells: Mapping[str, str], column: str) -> bool | None:
    """yes or no, in the usual spellings; None where the cell is empty."""
    text = cells.get(column)
    if text is None:
        return None
    known = {"yes": True, "true": True, "1": True, "on": True, "no": False, "false": False, "0": False, "off": False}
    value = known.get(text.lower())
    if value is None:
        raise InputError(f"{column} is {_shown(text)}, but it must be yes or no")
    return value


def words(cells: Mapping[str, str], *columns: str) -> str:
    """The cells of some columns in lower case, to look for words in."""
    return " ".join(cells.get(column, "") for column in columns).lower()


def year(cells: Mapping[str, str]) -> int | None:
    """The year in the `date` or `sw_version` cell: 2024-12, NeMo 24.07, 2023-05..07 table."""
    text = words(cells, "date", "sw_version")
    four = re.search(r"\b(20[12]\d)\b", text)
    if four:
        return int(four[1])
    two = re.search(r"\b([12]\d)\.(?:0[1-9]|1[0-2])\b", text)
    return 2000 + int(two[1]) if two else None


def _nearest(text: str, least: int, most: float = _MOST) -> str:
    """The nearest value that works, for `1,024`, `5,2` and the like; nothing where no number is meant or none is
    nearest."""
    plain = text.replace("_", "")
    if re.fullmatch(r"\d{1,3}(,\d{3})+(\.\d+)?", plain):
        plain = plain.replace(",", "")
    elif re.fullmatch(r"\d+,\d+", plain):
        plain = plain.replace(",", ".")
    elif unit := re.fullmatch(r"(\d+(?:\.\d+)?)\s*[a-zA-Z%/]+", plain):
        plain = unit[1]
    try:
        value = float(plain)
    except ValueError:
        return ""
    if math.isnan(value) or (not least and value <= 0):
        return ""
    near = min(max(value, least), most)
    return f"the nearest that works is {round(near) if least or near == int(near) else near}"


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "…")
