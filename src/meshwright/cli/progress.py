"""What a long search is at, on standard error, where somebody sees it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def searching() -> Iterator[Callable[[str], None] | None]:
    """A status line to tell what is being searched; None where standard error is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console

    console = Console(stderr=True, highlight=False, emoji=False)
    with console.status("searching") as status:
        yield lambda text: status.update(text)
