"""The catalog: one YAML file per entry, found by its name and opened one at a time.

Also the one way in which Meshwright reads and writes YAML, for the catalog and for files that people write.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from meshwright.spec.errors import InputError, UnknownName

CATALOG = Path(__file__).resolve().parent.parent / "spec" / "catalog"
KINDS = {
    "models": "model",
    "accelerators": "accelerator",
    "clusters": "cluster",
    "fabrics": "fabric",
    "software": "software profile",
    "attention": "attention kernel",
    "collectives": "collective library",
    "paths": "path through a host",
    "links": "family of links",
    "accuracy": "table of accuracy",
}
"""Each folder of the catalog and what one entry of it is called."""

MAX_YAML_BYTES = 1_000_000
MAX_YAML_DEPTH = 32


@cache
def entry_names(kind: str) -> tuple[str, ...]:
    """Names of all entries of a kind (`models`, `accelerators`, `clusters`, `fabrics`, `software`), sorted."""
    return tuple(sorted(path.stem for path in _folder(kind).glob("*.yaml")))


def load_entry(kind: str, name: str) -> dict[str, Any]:
    """The entry `name` as it stands in its file. Opens that one file; a wrong name raises UnknownName."""
    wanted = name.strip().lower()
    path = _folder(kind) / f"{wanted}.yaml"
    if not re.fullmatch(r"[a-z0-9][a-z0-9._+-]{0,99}", wanted) or not path.is_file():
        raise UnknownName(KINDS[kind], name, entry_names(kind))
    return read_yaml(path)


def read_yaml(path: Path) -> dict[str, Any]:
    """One YAML file as a dict. Raises InputError with file and line for anything that isn't one mapping."""
    where = str(path)
    if path.exists() and not path.is_file():
        raise InputError("can't be read (not an ordinary file)", where)
    try:
        size = path.stat().st_size
        if size > MAX_YAML_BYTES:
            fix = "pass the description only"
            raise InputError(f"the file holds {size:,} bytes; at most {MAX_YAML_BYTES:,} are read", where, fix)
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"can't be read ({error.strerror})", where) from error
    except UnicodeDecodeError as error:
        raise InputError(f"is not UTF-8 text (byte {error.start})", where) from error
    return parse_yaml(text, where)


def parse_yaml(text: str, where: str) -> dict[str, Any]:
    """YAML text as a dict: plain values, no repeated key, no alias, a bounded depth. `where` names it in errors."""
    try:
        if not where.startswith(str(CATALOG)):
            _refuse_pathological(text, where)
        content = yaml.load(text, _Loader)
    except yaml.YAMLError as error:
        raise InputError(f"is not valid YAML: {_explain(error)}", where) from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"holds a value that can't be read: {error}", where) from error
    if not isinstance(content, dict):
        found = "nothing" if content is None else f"a {type(content).__name__}"
        raise InputError(f"must hold one mapping of keys to values, but holds {found}", where)
    if not all(isinstance(key, str) for key in content):
        odd = next(key for key in content if not isinstance(key, str))
        raise InputError(f"key {odd!r} must be text", where, f'write "{odd}"')
    return content


def yaml_text(content: dict[str, Any]) -> str:
    """The text of a YAML file that `read_yaml` reads back unchanged."""
    return yaml.dump(content, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)


def _folder(kind: str) -> Path:
    if kind not in KINDS:
        raise UnknownName("kind of catalog entry", kind, KINDS)
    return CATALOG / kind


def _refuse_pathological(text: str, where: str) -> None:
    """Events come one at a time, so an alias bomb or a tower of brackets is seen before anything is built from it."""
    depth = 0
    for event in yaml.parse(text, _BaseLoader):
        if isinstance(event, yaml.AliasEvent):
            line = _line(event)
            raise InputError(f"line {line}: YAML aliases (*{event.anchor}) are not read", where, "write the value out")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_YAML_DEPTH:
                line = _line(event)
                raise InputError(f"line {line}: nested more than {MAX_YAML_DEPTH} deep", where)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark is not None else 0


def _explain(error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        return f"line {mark.line + 1}, column {mark.column + 1}: {error.problem}"
    return str(error).splitlines()[0]


_BaseLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_BaseLoader):  # type: ignore[misc]
    """The safe loader, with two changes: a repeated key is an error, and 300e9 is a number (as in YAML 1.2)."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Hashable] = set()
        for key_node, _ in node.value:
            key = key_node.value
            if isinstance(key, str):
                if key in seen:
                    raise yaml.MarkedYAMLError(problem=f"key {key!r} is given twice", problem_mark=key_node.start_mark)
                seen.add(key)
        mapping: dict[Hashable, Any] = super().construct_mapping(node, deep=deep)
        return mapping


class _Dumper(yaml.SafeDumper):
    """Writes every value out (the reader takes no aliases) and quotes what the reader would take for a number."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


_NUMBER = re.compile(r"[-+]?[0-9][0-9_]*(\.[0-9]*)?[eE][-+]?[0-9]+$")
for _class in (_Loader, _Dumper):
    _class.add_implicit_resolver("tag:yaml.org,2002:float", _NUMBER, list("-+0123456789"))
