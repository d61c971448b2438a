"""Real configs with one key dropped or replaced: read, or refused with one clear error, never a traceback."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from meshwright.sources.huggingface import model_from_config
from meshwright.spec.errors import InputError

pytestmark = pytest.mark.field

WRONG: tuple[Any, ...] = (None, "x", -1, 0, 1.5, 10**30, True, [], [[1]], {}, {"x": [None]})
"""Values that no reader may trust, whatever the key."""

_DROPPED = "<dropped>"


@pytest.fixture(scope="module")
def configs(shared: Path) -> Path:
    folder = shared / "data" / "field" / "configs"
    if not folder.is_dir():
        pytest.skip(f"field configs not found: {folder}")
    return folder


def _altered(values: dict[str, Any]) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """Every key, of nested configs too, dropped and replaced by each wrong value."""
    for key, value in values.items():
        rest = {name: other for name, other in values.items() if name != key}
        yield key, _DROPPED, rest
        for wrong in WRONG:
            yield key, wrong, {**rest, key: wrong}
        if isinstance(value, dict):
            for inner, wrong, changed in _altered(value):
                yield f"{key}.{inner}", wrong, {**rest, key: changed}


def test_an_altered_config_is_read_or_refused_with_an_input_error(configs: Path) -> None:
    crashed, tried = [], 0
    for path in sorted(configs.glob("*.json")):
        for key, wrong, changed in _altered(json.loads(path.read_text(encoding="utf-8"))):
            tried += 1
            try:
                assert model_from_config(changed, path.name).num_parameters > 0
            except InputError:
                continue
            except Exception as error:
                crashed.append((path.stem, key, wrong, repr(error)))
    assert not crashed, crashed[:20]
    assert tried > 20_000
