"""How matmul tiles fall on an accelerator's multiprocessors, from its description.

    waves:
      multiprocessors: 108
      share: 0.6                     # of the idle last wave that is really lost; 1 by default
      tiles: [[256, 128, 1.0], [128, 128, 0.9]]    # rows, columns, rate over that of the largest

An heir that writes its own `multiprocessors` takes the rest from its relative.
"""

from __future__ import annotations

from typing import Any

from meshwright.sources import checks
from meshwright.sources.fields import Fields
from meshwright.spec.cluster import Waves

_KEYS = ("multiprocessors", "share", "tiles")
_MOST_TILE = 4096
_MOST_MULTIPROCESSORS = 10**6


def read_waves(fields: Fields, relative: Waves | None) -> Waves | None:
    """The `waves` of an accelerator; `relative` is that of the entry that it inherits from, if it does."""
    if "waves" not in fields:
        return relative
    inner = fields.inner("waves", _KEYS)
    tiles = _tiles(inner) or (relative.tiles if relative else ())
    if not tiles:
        inner.raw("tiles", "a list of tiles such as [256, 128, 1.0]")
    return Waves(
        multiprocessors=inner.whole(
            "multiprocessors", relative.multiprocessors if relative else None, 1, _MOST_MULTIPROCESSORS
        ),
        tiles=tiles,
        share=inner.share("share", relative.share if relative else 1.0),
    )


def waves_content(waves: Waves) -> dict[str, Any]:
    """As a file holds it."""
    return {
        "multiprocessors": waves.multiprocessors,
        "share": waves.share,
        "tiles": [list(tile) for tile in waves.tiles],
    }


def _tiles(fields: Fields) -> tuple[tuple[int, int, float], ...]:
    if "tiles" not in fields:
        return ()
    found = []
    where, name = fields.where, fields.key("tiles")
    for i, item in enumerate(checks.listed(where, name, fields.raw("tiles", "a list of tiles"))):
        key = f"{name}[{i}]"
        if not isinstance(item, list) or len(item) != 3:
            raise checks.wrong(where, key, item, "rows, columns and a rate such as [256, 128, 1.0]")
        rows, columns = (checks.whole(where, f"{key}[{j}]", item[j], 1, _MOST_TILE) for j in (0, 1))
        rate = checks.share(where, f"{key}[2]", item[2])
        if not rate:
            raise checks.wrong(where, f"{key}[2]", item[2], "a share: above 0, at most 1")
        found.append((rows, columns, rate))
    return tuple(found)
