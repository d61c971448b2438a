"""A model from what a user types: a catalog name, a Hub id, a config.json, or a YAML file in the catalog's form."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from meshwright.sources import checks
from meshwright.sources.blueprint import build
from meshwright.sources.catalog import entry_names, load_entry, read_yaml
from meshwright.sources.hub import catalog_name, hub_names
from meshwright.sources.huggingface import model_from_config, read_config
from meshwright.sources.model_entry import blueprint_from_entry
from meshwright.spec.errors import InputError, UnknownName, near_names
from meshwright.spec.model import Model

CONFIG_ENTRY_KEYS = ("name", "hub", "architecture", "source", "parameters", "config")
HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")


def model_names() -> list[str]:
    """Names of all models in the catalog."""
    return list(entry_names("models"))


def load_model(text: str) -> Model:
    """The model that `text` names.

    That is a catalog name (`llama-3.1-70b`), a path (a config.json, a folder that holds one, or a YAML file in the form
    of the catalog's entries), or a Hub id that the catalog knows, in any case. They are tried in this order.

    Raises UnknownName with near names, or InputError that says what is wrong with the file.
    """
    wanted = text.strip()
    if not wanted:
        raise InputError("no model is given", "model", "give a name such as llama-3.1-8b, or a path to a config.json")
    if wanted.lower() in entry_names("models"):
        return load_model_entry(wanted)
    path = _on_disk(wanted)
    if path is not None:
        return _load_file(path)
    known = catalog_name(wanted)
    if known is not None:
        return load_model_entry(known)
    raise _unknown(wanted)


def load_model_entry(name: str) -> Model:
    """The catalog's model `name`; opens that entry's file only."""
    entry = load_entry("models", name)
    return _from_entry(entry, f"catalog entry {entry.get('name', name)}")


def _on_disk(text: str) -> Path | None:
    """The path, where there is one; text that can't be a path (too long, a null byte, no home) is none."""
    try:
        path = Path(text).expanduser()
        return path if path.exists() else None
    except (OSError, ValueError, RuntimeError):
        return None


def _load_file(path: Path) -> Model:
    if path.suffix.lower() in (".yaml", ".yml"):
        return _from_entry({"name": path.stem} | read_yaml(path), str(path))
    return read_config(path)


def _from_entry(entry: dict[str, Any], where: str) -> Model:
    model = build(blueprint_from_entry(entry, where)) if entry.get("config") is None else _from_keys(entry, where)
    stated = entry.get("parameters")
    if stated is not None and checks.whole(where, "parameters", stated) != model.num_parameters:
        message = f"parameters is {stated:,}, but the shape counts {model.num_parameters:,}"
        raise InputError(message, where, "correct the shape, or leave parameters out")
    return model


def _from_keys(entry: dict[str, Any], where: str) -> Model:
    """An entry that gives its shape in the keys of a config.json: structures that the flat form has no words for."""
    checks.known_keys(where, entry, CONFIG_ENTRY_KEYS)
    config = checks.mapping(where, "config", entry["config"])
    texts: dict[str, Any] = {
        key: checks.text(where, key, entry[key]) for key in ("name", "architecture", "source") if key in entry
    }
    hub = [checks.text(where, "hub", value) for value in checks.listed(where, "hub", entry.get("hub") or [])]
    return replace(model_from_config(config, where), **texts, hub_ids=tuple(hub))


def _unknown(text: str) -> InputError:
    if text.lower().endswith((".json", ".yaml", ".yml")) or text.startswith(("/", "./", "../", "~")):
        return InputError("there is no such file or folder", text)
    names = model_names()
    if not HUB_ID.fullmatch(text):
        return UnknownName("model", text, names)
    near = near_names(text, hub_names()) or near_names(text.split("/")[1], names)
    fix = "the Hub is not asked; download its config.json and pass the path"
    return UnknownName("model", text, (), fix=f"did you mean {' or '.join(near)}? Otherwise, {fix}" if near else fix)
