"""A config.json on disk as a dict, or an error that says where it stops being one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from meshwright.sources.checks import shown
from meshwright.spec.errors import InputError

CONFIG_NAME = "config.json"
MAX_CONFIG_BYTES = 10_000_000


def read_json(path: Path) -> dict[str, Any]:
    """The object in a config.json, or in the folder that holds one. Raises InputError with line and column."""
    path = find_config(path)
    where = str(path)
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_CONFIG_BYTES + 1)
    except OSError as error:
        raise InputError(f"can't be read ({error.strerror})", where) from error
    if len(raw) > MAX_CONFIG_BYTES:
        fix = "pass the config.json, not the weights or the tokenizer"
        raise InputError(f"holds more than {MAX_CONFIG_BYTES // 10**6} MB, too much for a model config", where, fix)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"is not UTF-8 text (byte {error.start})", where, "save it as UTF-8") from error
    return parse_json(text, where)


def find_config(path: Path) -> Path:
    """The path itself, or the config.json in it where it is a folder."""
    if path.is_dir():
        inside = path / CONFIG_NAME
        if not inside.is_file():
            raise InputError(f"the folder holds no {CONFIG_NAME}", str(path), f"pass a folder with a {CONFIG_NAME}")
        return inside
    if not path.exists():
        raise InputError("there is no such file", str(path))
    if not path.is_file():
        raise InputError("is not an ordinary file", str(path))
    return path


def parse_json(text: str, where: str) -> dict[str, Any]:
    """JSON text as a dict. A key that is given twice with different values is an error: readers disagree on it."""
    if not text.strip():
        raise InputError("the file is empty", where)
    try:
        content = json.loads(text, object_pairs_hook=_Pairs(where))
    except json.JSONDecodeError as error:
        raise InputError(f"line {error.lineno}, column {error.colno}: not valid JSON ({error.msg})", where) from error
    except RecursionError as error:
        raise InputError("is nested too deeply for a model config", where) from error
    except ValueError as error:
        raise InputError(f"holds a number that can't be read ({error})", where) from error
    if not isinstance(content, dict):
        raise InputError(f"must hold one JSON object, but holds a {type(content).__name__}", where)
    return content


class _Pairs:
    """The object hook of the parser: pairs to a dict, with a look for contradictions."""

    def __init__(self, where: str) -> None:
        self.where = where

    def __call__(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key, value in pairs:
            if key in values and values[key] != value:
                both = f"{shown(values[key])} and {shown(value)}"
                raise InputError(f"{key} is given twice: {both}", self.where, "keep one of them")
            values[key] = value
        return values
