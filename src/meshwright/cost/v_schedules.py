"""Idle time of the V-shaped schedules: the longest of the paths through their order of operations."""

from collections.abc import Sequence
from functools import reduce

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Count = NDArray[np.int64]
Path = tuple[Count | int, Count | int, Count | int, Count | int]  # how many f, i, w and t


def count(value: ArrayLike) -> Count:
    """As whole numbers."""
    return np.asarray(value, dtype=np.int64)


def seconds(value: ArrayLike) -> Array:
    """As seconds."""
    return np.asarray(value, dtype=np.float64)


def zero_bubble_v(p: Count, m: Count, f: Array, i: Array, w: Array, t: Array) -> Array:
    """The longest of these paths, less one rank's work 2 m (f + i + w). All are real paths, so none is too long.

    n: ranks after the first; turned: micro-batches beyond p until the pipe is full; missing: micro-batches that it
    lacks to be full. From m = 2p - 1 on, turned = n and missing = 0.
    """
    n = p - 1
    filled = np.minimum(m, 2 * p - 1)
    turned, missing = filled - p, 2 * p - 1 - filled
    few, after_two = np.maximum(p - m, 0), np.maximum(m - 2, 0)
    slow = _slow_link_turns(p, m)
    always: list[Path] = [
        (2 * few, 2 * n, -2 * np.maximum(turned, 0), 4 * n + 2 * np.maximum(turned - 1, 0)),
        (missing, missing, 0, 2 * np.maximum(missing, n)),
    ]
    up_to_p: list[Path] = [
        (2 * few, 2 * n, -2 * after_two, 4 * n + 2 * after_two),
        (missing, missing, -(2 * after_two + 1) * (m > 1), 4 * n + 2 * after_two),
        (2 * n, 2 * few, -2 * (m - 1), 4 * n),
    ]
    beyond_p: list[Path] = [
        (0, n + missing, -missing, 5 * n - 2 - missing),
        (0, missing + 1, turned - 1, 3 * n),
        (missing + 1, 0, turned - 1, 3 * n - 2 - 2 * missing),
        (filled - 2, 1 - turned, 0, 3 * n - 2 - 2 * missing),
        (filled - 2, missing + 1, -2 * turned, 2 * filled - 4),
        (filled - 1, -turned, -1, 3 * n - 2 * missing),
        (2 * n, 0, -2 * n - 1, 4 * n),
        # Only while the pipe is not full:
        (0, 2 * missing, 0, 2 * n + 2 * missing),
        (filled - 2, missing + 1 - turned, -missing, 3 * n - 2 - missing),
        (filled - 1, missing - turned, -turned, 2 * n),
        # Only if transfers take time:
        (0, 2 * n, -2 * n - 1, 6 * n),
        (n, n, -2 * n - 1, 6 * n),
        (0, n, -missing - 1, 5 * n - 2 * missing),
        (turned, 2 * missing, -turned, 4 * n),
        (turned, 2 * missing, -missing - 1, 5 * n - missing),
        (turned, 2 * n - turned, -2 * turned - 1, 4 * n + 2 * turned),
        (turned - 1, missing + 1, 0, 5 * n - 2 - 2 * missing),
        (turned - 1, 2 * missing + 1, -missing, 5 * n - 2 - missing),
        (turned - 1, 2 * n - turned + 1, -2 * turned, 4 * n + 2 * turned - 2),
        (0, 2 * n, -2 * turned - 1, 4 * n + 2 * turned),
        # Only if a transfer outlasts f + w, or i + w:
        (-slow, 2 * n, -2 * n - 1 - slow, 6 * n + slow),
        (n, n - slow, -2 * n - 1 - slow, 6 * n + slow),
        (turned, 2 * missing - slow, -missing - 1 - slow, 5 * n - missing + slow),
    ]
    steps = (f, i, w, t)
    more = np.where(m > p, _longest(beyond_p, *steps), _longest(up_to_p, *steps))
    return np.where(p > 1, np.maximum(_longest(always, *steps), more), 0.0)


def dualpipe_v(p: Count, m: Count, f: Array, i: Array, w: Array, t: Array) -> Array:
    """As ``zero_bubble_v``."""
    n = p - 1
    slow = _slow_link_turns(p, m)
    paths: list[Path] = [
        (n, 0, 0, 3 * n),
        (n, n, -n, 4 * n),
        (-1, 2 * n, -n, 6 * n),
        (-1, n, 0, 5 * n),
        (2 * n, 0, -2 * n, 4 * n),
        (2 * n, -n, -n, 3 * n),
        # Only if transfers take time; then if one outlasts f, or i + w:
        (n - 1, n, -2 * n, 6 * n),
        (-1 - slow, 2 * n, -n, 6 * n + slow),
        (n - 1, n - slow, -2 * n - slow, 6 * n + slow),
    ]
    return np.where(p > 1, _longest(paths, f, i, w, t), 0.0)


def _slow_link_turns(p: Count, m: Count) -> Count:
    turns = count(np.maximum(m - p - 2, 0))
    return 2 * (turns - turns // p)


def _longest(paths: Sequence[Path], f: Array, i: Array, w: Array, t: Array) -> Array:
    return reduce(np.maximum, (nf * f + ni * i + nw * w + nt * t for nf, ni, nw, nt in paths))
