"""Numbers as people read them: three digits and a unit."""

from __future__ import annotations

from collections.abc import Callable

GIB = 2**30
_HOUR_S = 3600.0
_DAY_S = 24 * _HOUR_S
_YEAR_S = 365.25 * _DAY_S


def digits(value: float, most: int = 3) -> str:
    """A number with three significant digits, but never fewer than its whole part has: 0.0123, 1.36, 13.6, 1,360."""
    if value == 0 or not abs(value) < 1e21:
        return "0" if value == 0 else str(value)
    rounded = float(f"{value:.{most - 1}e}")
    places = most - 1 - _exponent(rounded)
    return f"{rounded:.{places}f}" if places > 0 else f"{value:,.0f}"


def gib(size_bytes: float) -> str:
    """Bytes in GiB; in MiB where that is less than a tenth, in TiB where it is a thousand or more."""
    if size_bytes >= 999.95 * GIB:
        return f"{digits(size_bytes / 2**40)} TiB"
    if size_bytes == 0 or size_bytes >= 0.1 * GIB:
        return f"{size_bytes / GIB:,.1f} GiB"
    return f"{size_bytes / 2**20:,.0f} MiB" if size_bytes >= 2**20 else f"{size_bytes / 2**10:,.1f} KiB"


def traffic(size_bytes: float) -> str:
    """Bytes on a wire, in powers of 1000 as rates are."""
    return _scaled(size_bytes, "B")


def rate(bytes_per_s: float) -> str:
    """A data rate; GB/s wherever that is at least a tenth."""
    return f"{_trimmed(digits(bytes_per_s / 1e9))} GB/s" if bytes_per_s >= 1e8 else _scaled(bytes_per_s, "B/s")


def quantity(value: float, unit: str) -> str:
    """A value that may be changed: a rate, a size of memory or a whole number of things."""
    if unit == "bytes_per_s":
        return rate(value)
    return gib(value) if unit == "bytes" else whole(value)


def flops(flops_per_s: float) -> str:
    """A rate of floating-point operations."""
    return _scaled(flops_per_s, "FLOP/s")


def seconds(time_s: float) -> str:
    """A time of a step or of a part of it."""
    if time_s == 0:
        return "0 s"
    unit, size = _unit_of(time_s)
    return f"{digits(time_s / size)} {unit}"


def seconds_range(low_s: float, high_s: float) -> str:
    """Two times with the unit written once where it is the same."""
    low, high = seconds(low_s), seconds(high_s)
    same = low.split(" ")[1] == high.split(" ")[1]
    return f"{low.split(' ')[0] if same else low} to {high}"


def common_seconds(longest_s: float) -> Callable[[float], str]:
    """How to write several times one below the other: in the unit and with the decimals that suit the longest."""
    unit, size = _unit_of(longest_s)
    places = 2 if longest_s / size < 99.95 else 1 if longest_s / size < 999.5 else 0

    def write(time_s: float) -> str:
        text = f"{time_s / size:,.{places}f}"
        return (
            f"<{10**-places:.{places}f} {unit}"
            if time_s > 0 and float(text.replace(",", "")) == 0
            else f"{text} {unit}"
        )

    return write


def _unit_of(time_s: float) -> tuple[str, float]:
    """Hours only where seconds are too many to read."""
    if time_s >= 10 * _HOUR_S:
        return "h", _HOUR_S
    return next((pair for pair in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)) if time_s >= 0.9995 * pair[1]), ("ns", 1e-9))


def duration(time_s: float) -> str:
    """A time of a whole training run."""
    for unit, size in (("years", _YEAR_S), ("days", _DAY_S), ("hours", _HOUR_S), ("minutes", 60.0)):
        if time_s >= (2 * size if unit == "years" else size):
            value = digits(time_s / size)
            return f"{value} {unit.removesuffix('s') if value in ('1.00', '1') else unit}"
    return seconds(time_s)


def count(value: float) -> str:
    """A large number of things: 4.19 M, 70.6 B, 15 T."""
    for unit, size in (("T", 1e12), ("B", 1e9), ("M", 1e6), ("k", 1e4)):
        if value >= size:
            return f"{_trimmed(digits(value / (1e3 if unit == 'k' else size)))} {unit}"
    return f"{value:,.0f}" if value == int(value) or value >= 1000 else digits(value)


def whole(value: float) -> str:
    """A whole number with its thousands apart."""
    return f"{value:,.0f}"


def percent(share: float) -> str:
    """A share of one; tenths below ten percent, a multiple from ten on."""
    value = 100 * share
    if share >= 10:
        return f"{digits(share, 2)}×"
    if value == 0:
        return "0%"
    if abs(value) < 0.05:
        return "<0.1%"
    return f"{value:.1f}%" if abs(value) < 9.95 else f"{value:.0f}%"


def _scaled(value: float, unit: str) -> str:
    for prefix, size in (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= 0.9995 * size:
            return f"{digits(value / size)} {prefix}{unit}"
    return f"{digits(value)} {unit}"


def _trimmed(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def _exponent(value: float) -> int:
    return int(f"{value:e}".split("e")[1])
