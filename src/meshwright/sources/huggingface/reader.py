"""A Hugging Face config.json, or its contents, as a Model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from meshwright.sources import checks
from meshwright.sources.blueprint import build
from meshwright.sources.huggingface.decoder import blueprint
from meshwright.sources.huggingface.defaults import DEFAULTS
from meshwright.sources.huggingface.encoder import encoder, encoder_row
from meshwright.sources.huggingface.encoder_decoder import encoder_decoder, pair_row
from meshwright.sources.huggingface.file import find_config, read_json
from meshwright.sources.huggingface.keys import Keys
from meshwright.sources.huggingface.lookup import architecture_of, model_type_of, row_of
from meshwright.sources.huggingface.multimodal import beside_parameters, parts_of, tied
from meshwright.sources.huggingface.refused import refuse_other_files, refuse_other_kinds
from meshwright.sources.huggingface.table import TABLE
from meshwright.spec.model import Model


def read_config(path: Path) -> Model:
    """The model that a config.json (or the folder with one) describes, counted as the class of that config counts it.

    Raises InputError for a file that can't be read or values that can't be, and UnsupportedModel, naming the missing
    facts, for an architecture that can't be counted exactly.
    """
    found = find_config(path)
    return model_from_config(read_json(found), str(found), _name(found))


def model_from_config(values: Mapping[str, Any], where: str = "config.json", name: str = "") -> Model:
    """The model that the contents of a config.json describe. `where` names the source in errors."""
    model_type = model_type_of(values, where)
    architecture = architecture_of(values, where) or model_type
    row = encoder_row(values, model_type, architecture)
    if row:
        refuse_other_files(values, where)
        found = encoder(values, where, row, architecture, name)
        return replace(found, notes=(*found.notes, *_quantised(values, where)))
    pair = pair_row(model_type, architecture)
    if pair:
        refuse_other_files(values, where)
        found = encoder_decoder(values, where, pair, architecture, name)
        return replace(found, notes=(*found.notes, *_quantised(values, where)))
    refuse_other_kinds(values, where, architecture)
    parts = parts_of(values, where, model_type, architecture)
    text = parts.text
    inner = model_type_of(text, where)
    # a text stack without a name of its own, or with one that only says which wrapper it is for
    if parts.model_type and inner not in TABLE and (text is values or inner.startswith(model_type) or not inner):
        text = {**text, "model_type": parts.model_type}
    row, notes = row_of(text, where, architecture if parts.text is not values else "")
    family = TABLE[row]
    keys = Keys(text, where, architecture or family.architecture, DEFAULTS.get(row, {}), parts.whole)
    facts = blueprint(keys, family, name or architecture)
    beside = beside_parameters(parts, values, where, facts.hidden, keys.architecture)
    if beside:
        notes = (*notes, f"{beside:,} parameters beside the text stack are counted, but not planned")
    return build(
        replace(
            facts,
            tied=tied(parts, values, where, facts.tied),
            extra=beside,
            notes=(*notes, *_quantised(values, where), *facts.notes),
        )
    )


def _quantised(values: Mapping[str, Any], where: str) -> tuple[str, ...]:
    given = values.get("quantization_config")
    if given is None:
        return ()
    config = checks.mapping(where, "quantization_config", given)
    method = config.get("quant_method") or config.get("quant_algo") or "unnamed method"
    return (f"the stored weights are quantised ({method}); parameters are counted unpacked",)


def _name(path: Path) -> str:
    """A config.json is called like its folder, any other file by its own name."""
    return path.resolve().parent.name if path.name == "config.json" else path.stem
