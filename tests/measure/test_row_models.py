"""The model of a row: shapes from the columns, the rest from what its name says."""

from __future__ import annotations

from pathlib import Path

import pytest

import meshwright as mw
from meshwright.measure.comparison import Row
from meshwright.measure.models import model_of
from meshwright.spec.errors import InputError

GPT = {"model": "gpt-1.7B", "layers": "24", "hidden": "2304", "heads": "24", "ffn_hidden": "9216", "gated_mlp": "no",
       "vocab": "51200", "seq_len": "2048", "date": "2021-04"}  # fmt: skip


def row(**cells: str) -> Row:
    return Row(f"{Path('runs.csv')}:2", "training", {name: text for name, text in cells.items() if text})


@pytest.mark.parametrize(
    ("text", "name"),
    [("llama3-8b", "llama-3-8b"), ("LLaMA-2 70B", "llama-2-70b"), ("llama1-7b", "llama-7b"), ("gpt3-175b", "gpt3-175b"),
     ("nemotron4-340b", "nemotron-4-340b"), ("llama3-405b", "llama-3.1-405b"), ("Mixtral 8x7B", "mixtral-8x7b"),
     ("meta-llama/Llama-3.1-8B", "llama-3.1-8b")],
)  # fmt: skip
def test_a_name_is_found_in_the_forms_that_tables_use(text: str, name: str) -> None:
    model, assumed = model_of(row(model=text))
    assert model == mw.load_model(name)
    assert assumed == ()


def test_a_gpt_by_its_columns_counts_what_its_paper_says() -> None:
    """Narayanan et al. 2021, table 1: 1.7 billion parameters; the catalog's entry has the same shape."""
    model, _ = model_of(row(**GPT))
    assert model.num_parameters == mw.load_model("megatron-1.7b").num_parameters
    assert (model.position, model.norm, model.tied_embeddings, model.dropout) == ("learned", "layer", True, True)


def test_dropout_went_out_of_use() -> None:
    assert not model_of(row(**GPT | {"date": "2024"}))[0].dropout


def test_a_gated_mlp_makes_a_llama_of_an_unknown_name() -> None:
    cells = {"model": "ours", "layers": "32", "hidden": "4096", "heads": "32", "kv_heads": "8", "ffn_hidden": "14336",
             "gated_mlp": "yes", "vocab": "128256"}  # fmt: skip
    model, assumed = model_of(row(**cells))
    assert model.num_parameters == mw.load_model("llama-3-8b").num_parameters == 8_030_261_248
    assert assumed == ()


def test_a_mixture_of_experts_counts_as_the_catalog_does() -> None:
    cells = {"model": "ours", "layers": "32", "hidden": "4096", "heads": "32", "kv_heads": "8", "ffn_hidden": "14336",
             "gated_mlp": "yes", "vocab": "32000", "n_experts": "8", "moe_topk": "2"}  # fmt: skip
    mixtral = mw.load_model("mixtral-8x7b")
    model, _ = model_of(row(**cells))
    assert (model.num_parameters, model.active_parameters) == (mixtral.num_parameters, mixtral.active_parameters)


def test_a_truncated_model_has_the_layers_that_the_row_says() -> None:
    whole, cut = mw.load_model("llama-2-7b"), model_of(row(model="llama2-7b", layers="2", hidden="4096"))[0]
    assert cut.num_layers == 2
    assert whole.num_parameters - cut.num_parameters == 30 * whole.layers[0].num_parameters(4096)


def test_what_is_not_stated_is_said_to_be_assumed() -> None:
    _, assumed = model_of(row(layers="4", hidden="1024", gated_mlp="no"))
    assert assumed == ("heads=8", "ffn_hidden=4096", "vocab=50257")


@pytest.mark.parametrize(
    "cells",
    [{"model": "gpt-24B"}, {"model": "gpt-24B", "layers": "4"}, {}, GPT | {"layers": "1e12"}, GPT | {"hidden": "x"}],
)
def test_a_row_without_a_shape_says_so(cells: dict[str, str]) -> None:
    with pytest.raises(InputError, match="layers|hidden"):
        model_of(row(**cells))
