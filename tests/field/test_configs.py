"""Model configs as they are found: counted to the last parameter, or refused by name."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest

from meshwright.sources.huggingface import model_from_config, read_config
from meshwright.spec.errors import UnsupportedModel

pytestmark = pytest.mark.field

REFUSED = {
    "stepfun-ai__Step-3.7-Flash": "Step3p7FlashForCausalLM",
}
"""Configs of more than attention and MLP, and the architecture that the refusal must name."""

PUBLISHED = {
    # Classes outside transformers: the counts of the published checkpoints, quantised ones unpacked.
    "baichuan-inc__Baichuan": 7_505_973_248,
    "huggyllama__llama-30b": 32_528_943_616,
    "huggyllama__llama-65b": 65_285_660_672,
    "internlm__internlm2_5-7b": 7_737_708_544,
    "microsoft__phi-1_5": 1_418_270_720,
    "moonshotai__Kimi-K2-Instruct": 1_026_408_209_408,
    "nvidia__Llama-3_3-Nemotron-Super-49B-v1": 49_867_145_216,
    "Qwen__Qwen-1": 1_836_828_672,
    "THUDM__chatglm3-preset": 6_243_584_000,
}


@pytest.fixture(scope="module")
def configs(shared: Path) -> Path:
    folder = shared / "data" / "field" / "configs"
    if not folder.is_dir():
        pytest.skip(f"field configs not found: {folder}")
    return folder


@pytest.fixture(scope="module")
def rows(configs: Path) -> list[dict[str, str]]:
    with (configs / "manifest.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_every_config_that_is_read_counts_exactly(configs: Path, rows: list[dict[str, str]]) -> None:
    wrong, counted = [], 0
    for row in rows:
        if row["name"] in REFUSED or not row["total_params_exact"]:
            continue
        model = read_config(configs / f"{row['name']}.json")
        counted += 1
        if model.num_parameters != int(row["total_params_exact"]):
            wrong.append((row["name"], model.num_parameters, int(row["total_params_exact"])))
        if row["active_params_computed"] and model.active_parameters != int(row["active_params_computed"]):
            wrong.append((row["name"], "active", model.active_parameters))
    assert not wrong
    assert counted >= 53


def test_configs_of_classes_outside_transformers_count_as_published(configs: Path) -> None:
    counts = {name: read_config(configs / f"{name}.json").num_parameters for name in PUBLISHED}
    assert counts == PUBLISHED


def test_classes_outside_transformers_lie_within_a_percent_of_their_model_cards(
    configs: Path, rows: list[dict[str, str]]
) -> None:
    far, compared = [], 0
    for row in rows:
        published = re.match(r"([\d.]+)([TBM]) ?", row["published"])
        if row["name"] in REFUSED or row["total_params_exact"] or published is None:
            continue
        model = read_config(configs / f"{row['name']}.json")
        # MiniCPM's cards leave the embeddings out (arXiv 2404.06395).
        embedded = model.embedding_parameters if model.architecture == "MiniCPMForCausalLM" else 0
        figure = float(published[1]) * {"T": 1e12, "B": 1e9, "M": 1e6}[published[2]]
        compared += 1
        if abs(model.num_parameters - embedded - figure) > 0.01 * figure:
            far.append((row["name"], model.num_parameters, row["published"]))
    assert not far
    assert compared >= 7


def test_what_can_not_be_counted_is_refused_by_name(configs: Path) -> None:
    for name, architecture in REFUSED.items():
        with pytest.raises(UnsupportedModel, match=architecture) as caught:
            read_config(configs / f"{name}.json")
        assert caught.value.architecture == architecture
        assert caught.value.missing


def test_phi_3_vision_with_another_tower_is_refused_by_the_key_that_differs(configs: Path) -> None:
    values = json.loads((configs / "microsoft__Phi-3.5-vision.json").read_text(encoding="utf-8"))
    values["img_processor"]["model_name"] = "openai/clip-vit-base-patch32"
    with pytest.raises(UnsupportedModel, match=r"Phi3VForCausalLM.*img_processor\.model_name"):
        model_from_config(values)


def test_every_config_is_counted_or_refused(configs: Path, rows: list[dict[str, str]]) -> None:
    for row in rows:
        try:
            assert read_config(configs / f"{row['name']}.json").num_parameters > 0
        except UnsupportedModel:
            assert row["name"] in REFUSED
