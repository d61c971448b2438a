"""How a command ends: exit code 0 for an answer, 1 for the answer "no", 2 for input that can't be understood."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from meshwright.spec.model import Model

ANSWERED, NO, MISUNDERSTOOD = 0, 1, 2
INTERRUPTED = 128 + 2
PIPE_CLOSED = 128 + 13


@contextmanager
def answering() -> Iterator[None]:
    """Turn what can go wrong into one message on standard error and an exit code, never a traceback."""
    from meshwright.spec.errors import MeshwrightError

    try:
        try:
            yield
        finally:
            _flush()
    except MeshwrightError as error:
        raise _misunderstood(str(error)) from error
    except BrokenPipeError as error:
        raise typer.Exit(_closed_pipe()) from error
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        raise _misunderstood(f"{place}{error.strerror or error}") from error
    except KeyboardInterrupt as error:
        raise typer.Exit(INTERRUPTED) from error


def _flush() -> None:
    """Write out what was answered while a failure to do so can still be told."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        _drop_output()
        raise OSError(error.errno, f"the answer can't be written: {error.strerror}") from error


def note(kind: str, text: str) -> None:
    """A line on standard error beside the answer."""
    typer.echo(f"{kind}: {text}", err=True)


def remark(model: Model, warnings: Sequence[str]) -> None:
    """What the header of a text shows, for those who read the answer as JSON."""
    for noted in model.notes:
        note("note", f"{model.name}: {noted}")
    for warning in warnings:
        note("warning", warning)


def _misunderstood(message: str) -> typer.Exit:
    note("error", " ".join(message.split()) if "\n" in message else message)
    return typer.Exit(MISUNDERSTOOD)


def _closed_pipe() -> int:
    _drop_output()
    return PIPE_CLOSED


def _drop_output() -> None:
    """Nobody reads on: keep the interpreter from complaining about it when it flushes."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
