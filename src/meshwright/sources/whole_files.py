"""Files that are complete or not there at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from meshwright.spec.errors import InputError

_FIX = "name a file in a folder you may write"


def write_whole(path: str | Path, text: str) -> None:
    """Write the text beside its place and move it into it. Raises InputError where that can't be done, and for a device
    or a pipe, whose place a file would take."""
    target = Path(path)
    try:
        target = target.resolve()
        if _is_special(target):
            raise InputError("is no ordinary file", str(path), _FIX)
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent)
        try:
            with open(handle, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(temporary, _mode(target))
            os.replace(temporary, target)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)
            raise
    except OSError as error:
        raise InputError(f"can't be written ({error.strerror})", str(path), _FIX) from error


def check_writable(path: str | Path, key: str, inputs: Iterable[str | Path] = ()) -> None:
    """Raise InputError, before any work is done, if no file can be written at `path`, the value of option `key`, or if
    that would overwrite one of the `inputs`."""
    try:
        target = Path(path).resolve()
        if target.is_dir():
            raise InputError(f"{key} is {str(path)!r}, which is a folder", fix="name a file in it")
        if _is_special(target):
            raise InputError(f"{key} is {str(path)!r}, which is no ordinary file", fix=_FIX)
        if any(Path(each).exists() and target.exists() and target.samefile(each) for each in inputs):
            raise InputError(f"{key} is {str(path)!r}, which is what is read", fix="name another file")
        if not target.parent.is_dir():
            raise InputError(f"{key} is {str(path)!r}, but there is no folder {target.parent}", fix=_FIX)
    except (OSError, ValueError) as error:
        raise InputError(f"{key} is {str(path)[:80]!r}, which can't be the name of a file", fix=_FIX) from error


def _is_special(target: Path) -> bool:
    """A device, a pipe or a socket."""
    return target.exists() and not target.is_file() and not target.is_dir()


def _mode(target: Path) -> int:
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
