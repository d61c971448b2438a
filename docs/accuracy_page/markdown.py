"""Numbers and tables as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

NONE = "–"


def table(header: Sequence[str], rows: Iterable[Sequence[str]], numbers_from: int = 1) -> str:
    """A table; columns from `numbers_from` on are right-aligned."""
    marks = ["---" if column < numbers_from else "---:" for column in range(len(header))]
    lines = [header, marks, *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def percent(share: float | None) -> str:
    """A share of one, with tenths."""
    return NONE if share is None else f"{100 * share:.1f} %"


def whole_percent(share: float | None) -> str:
    return NONE if share is None else f"{100 * share:.0f} %"


def signed(share: float | None) -> str:
    """A share of one with its sign."""
    return NONE if share is None else f"{100 * share:+.1f} %".replace("-", "−")


def figure(value: float | None, digits: int = 3) -> str:
    return NONE if value is None else f"{value:.{digits}g}"


def regret(value: float | None) -> str:
    """A ratio of times: three digits behind the point."""
    return NONE if value is None else f"{value:.3f}"


def cell(text: str) -> str:
    """Text as one cell."""
    return " ".join(text.split()).replace("|", "\\|")


def counted(number: int, one: str, many: str = "") -> str:
    """A number with its noun."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def names(parts: Iterable[str]) -> str:
    """Names as a list in a sentence; `none` without any."""
    every = list(parts)
    if not every:
        return "none"
    return every[0] if len(every) == 1 else f"{', '.join(every[:-1])} and {every[-1]}"
