"""Freed arrays kept for the next ones, for the length of one command."""

from __future__ import annotations

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # glibc's malloc.h
_KEEP_BYTES = 1 << 29


def keep_freed_memory() -> None:
    """Let the allocator keep what the search frees instead of handing pages back and faulting them in again, which
    costs a quarter of a cold search. Only a command does this to its own process; without glibc nothing happens."""
    import ctypes

    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return
    mallopt(_M_MMAP_THRESHOLD, _KEEP_BYTES)
    mallopt(_M_TRIM_THRESHOLD, _KEEP_BYTES)
