"""Where text goes: a console as wide as the terminal, and characters that its encoding has."""

from __future__ import annotations

import codecs
import sys
from typing import TextIO

from rich.console import Console, RenderableType

WIDEST = 140
"""Text doesn't get easier to read on wider screens."""
_PLAIN = {
    "█": "#", "▉": "#", "▊": "#", "▋": "#", "▌": "#", "▍": "-", "▎": "-", "▏": "-", "░": ".", "─": "-", "━": "-",
    "·": "|", "×": "x", "–": "-", "…": "...", "→": "->", "•": "*", "µ": "u", "✗": "x", "✓": "+", "÷": "/",
    "│": "|", "┤": "+", "└": "+", "●": "o",
}  # fmt: skip


def console(file: TextIO | None = None) -> Console:
    """A console for answers. It wraps at the terminal's width, or at COLUMNS, up to WIDEST."""
    made = Console(file=file, highlight=False, soft_wrap=False, emoji=False)
    if made.width > WIDEST:
        made.width = WIDEST
    return made


def write(content: RenderableType, console: Console) -> None:
    """Print to the console; without blanks at the ends of lines where it is a file or a pipe."""
    if console.is_terminal:
        console.print(content)
        return
    with console.capture() as captured:
        console.print(content)
    console.file.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))
    console.file.flush()


def prepare_streams() -> None:
    """Let standard output and error take any text: what their encoding lacks is written plainly."""
    codecs.register_error("plain", _plain)
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="plain")


def _plain(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join(_PLAIN.get(character, "?") for character in lacking), error.end
