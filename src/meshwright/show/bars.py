"""Bars in text: eighths of a character wide."""

from __future__ import annotations

from rich.text import Text

_EIGHTHS = " ▏▎▍▌▋▊▉"
FULL = "█"
EMPTY = "░"


def bar(share: float, width: int, style: str) -> Text:
    """`share` of `width` characters filled; whatever is above 0 shows."""
    eighths = min(round(max(share, 0.0) * width * 8), width * 8)
    if share > 0:
        eighths = max(eighths, 1)
    text = FULL * (eighths // 8) + (_EIGHTHS[eighths % 8] if eighths % 8 else "")
    return Text(text, style)


def gauge(parts: list[tuple[float, str]], whole: float, width: int) -> Text:
    """Parts side by side against a whole: coloured segments, then what is left of it. A segment ends where the running
    sum says, so that rounding doesn't add up."""
    scale = max(whole, sum(size for size, _ in parts))
    text, done, running = Text(), 0, 0.0
    for size, style in parts:
        running += size
        end = round(running / scale * width) if scale else 0
        text.append(FULL * (end - done), style)
        done = end
    return text.append(EMPTY * (width - done), "bright_black")
