"""Every kind of catalog entry as plain rows: what `meshwright catalog` lists."""

from __future__ import annotations

from typing import Any

from meshwright.sources import hardware_rows
from meshwright.sources.catalog import entry_names
from meshwright.sources.models import load_model_entry, model_names
from meshwright.sources.software import load_software
from meshwright.spec.errors import UnknownName

KINDS = ("models", "clusters", "accelerators", "fabrics", "software")


def all_rows(kind: str) -> list[dict[str, Any]]:
    """One row of plain facts per entry of `kind`, sorted by name; all rows of a kind have the same keys."""
    if kind == "models":
        return [_model_row(name) for name in model_names()]
    if kind == "software":
        return [_software_row(name) for name in entry_names("software")]
    if kind not in KINDS:
        raise UnknownName("kind of catalog entry", kind, KINDS)
    return hardware_rows.catalog_rows(kind)


def _model_row(name: str) -> dict[str, Any]:
    model = load_model_entry(name)
    attention = next((kind.attention for kind in model.kinds if kind.attention.kind != "none"), None)
    return {
        "name": model.name,
        "layers": model.num_layers,
        "hidden": model.hidden,
        "heads": attention.heads if attention else None,
        "kv_heads": attention.kv_heads if attention else None,
        "vocab": model.vocab,
        "context_length": model.context_length or model.max_positions or None,
        "parameters": model.num_parameters,
        "active_parameters": model.active_parameters,
        "hub_ids": list(model.hub_ids),
        "source": model.source,
    }


def _software_row(name: str) -> dict[str, Any]:
    software = load_software(name)
    return {
        "name": software.name,
        "title": software.title,
        "year": software.year,
        "attention": software.attention.name,
        "schedules": list(software.schedules) or None,
        "source": software.source,
    }
