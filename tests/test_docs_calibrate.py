"""The example of docs/calibrate.md: its figures are published ones, and the page says how far constants may move."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from meshwright.measure import user_constants

SAME = ("model", "gpu", "gpus_total", "tp", "dp", "micro_batch", "global_batch_seqs", "seq_len", "recompute", "dtype")


def lines(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.field
def test_the_figures_of_the_example_are_the_published_ones(repository: Path, shared: Path) -> None:
    published = [
        line
        for line in lines(shared / "data" / "measured" / "training.csv")
        if line["source_id"] == "internevo" and line["zero_stage"] == "1 (global)"
    ]
    example = lines(repository / "docs" / "calibrate-runs.csv")
    assert len(example) == 12
    for row in example:
        same = [line for line in published if [line[column] for column in SAME] == [row[column] for column in SAME]]
        assert [float(line["tokens_per_s_per_gpu"]) for line in same] == [float(row["tokens_per_s_per_gpu"])]


@pytest.mark.field
def test_the_figures_of_the_server_are_the_published_ones(repository: Path, shared: Path) -> None:
    published = [
        float(line["tokens_per_s_per_gpu"])
        for line in lines(shared / "data" / "measured" / "training.csv")
        if line["source_id"] == "flagperf-paddle" and line["gpu_mem_gb"] == "40"
    ]
    example = lines(repository / "docs" / "calibrate-server.csv")
    assert [float(row["tokens_per_s_per_gpu"]) for row in example] == published


def test_the_page_says_how_far_constants_may_move(repository: Path) -> None:
    page = (repository / "docs" / "calibrate.md").read_text(encoding="utf-8")
    for spread in (
        user_constants.MATMUL_SPREAD,
        user_constants.MEMORY_SPREAD,
        user_constants.LINK_SPREAD,
        user_constants.NETWORK_SPREAD,
        user_constants.HOST_SPREAD,
    ):
        assert f"| {spread:.0%} |" in page
