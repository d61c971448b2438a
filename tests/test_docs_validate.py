"""The example of docs/validate.md: its figures are published ones, and the page says what the program warns of."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from meshwright.measure.data_checks import KINDS

SAME = ("seq_len", "gpu", "gpus_total", "tp", "pp", "dp", "zero_stage", "micro_batch", "global_batch_seqs", "recompute")


def lines(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.field
def test_the_figures_of_the_example_are_the_published_ones(repository: Path, shared: Path) -> None:
    """Each row names the line of the published table that it was taken from."""
    published = {
        line["source"].removeprefix("FlagOpen/FlagPerf training/nvidia/"): line
        for line in lines(shared / "data" / "measured" / "training.csv")
        if line["source_id"] == "flagperf-paddle"
    }
    example = lines(repository / "docs" / "runs.csv")
    assert len(example) == 12
    for row in example:
        original = published[row["notes"]]
        assert [row[column] for column in SAME] == [original[column] for column in SAME]
        assert float(row["tokens_per_s_per_gpu"]) == float(original["tokens_per_s_per_gpu"])
        assert float(row["mem_gib"]) == float(original["mem_per_gpu"])


def test_the_page_explains_every_warning(repository: Path) -> None:
    page = (repository / "docs" / "validate.md").read_text(encoding="utf-8")
    for explained in KINDS.values():
        assert f"| {explained} |" in page
