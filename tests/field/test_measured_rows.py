"""Published rows: nearly all get a prediction, and FLOP conventions agree with the file's own second computation."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

from meshwright.measure.cells import words
from meshwright.measure.comparison import Comparison, Row
from meshwright.measure.files import read_rows
from meshwright.measure.measured import step_flops
from meshwright.measure.models import model_of
from meshwright.measure.predict import compare_rows
from meshwright.spec.workload import Training

pytestmark = pytest.mark.field


def rows_of(shared: Path, name: str) -> list[Row]:
    path = shared / "data" / "measured" / name
    if not path.is_file():
        pytest.skip(f"measured runs not found: {path}")
    return read_rows(path)


def test_conventions_agree_with_the_check_column(shared: Path) -> None:
    """check_model_tflops_full_attn of the file is (6 N + 12 L d s) tokens/s, computed without Meshwright."""
    judged = 0
    for row in rows_of(shared, "training.csv"):
        check, tokens = row.cells.get("check_model_tflops_full_attn"), row.cells.get("check_tokens_per_s_per_gpu")
        if not check or not tokens or float(check) < 20 or "hidden" not in row.cells:
            continue
        job = Training(1, int(float(row.cells["seq_len"])))
        flops, _ = step_flops("model", "", model_of(row)[0], job)
        assert flops / job.tokens_per_step * float(tokens) / 1e12 == pytest.approx(float(check), rel=0.01), row.row_id
        judged += 1
    assert judged > 500


def test_published_flops_give_the_published_step(shared: Path) -> None:
    """Where a table gives FLOP/s by Megatron's formula and the step time too, one follows from the other. Tables
    round, and leave the head out or in."""
    judged = 0
    for row in rows_of(shared, "training.csv"):
        stated = row.cells.get("step_time_s") or row.cells.get("derived_step_time_s")
        definition = words(row.cells, "tflops_def")
        if not stated or "96bslh" not in definition.replace(" ", "") or row.cells.get("flags"):
            continue
        job = Training(int(float(row.cells["global_batch_seqs"])), int(float(row.cells["seq_len"])))
        flops, _ = step_flops(definition, words(row.cells, "recompute"), model_of(row)[0], job)
        seconds = flops / (float(row.cells["tflops_per_gpu"]) * 1e12 * float(row.cells["gpus_total"]))
        assert seconds == pytest.approx(float(stated), rel=0.06), row.row_id
        judged += 1
    assert judged > 50


def share_predicted(found: list[Comparison]) -> dict[str, float]:
    by_source: dict[str, list[bool]] = defaultdict(list)
    for each in found:
        by_source[each.row.source].append(each.predicted is not None)
    every = [one for ones in by_source.values() for one in ones]
    return {name: sum(ones) / len(ones) for name, ones in by_source.items()} | {"": sum(every) / len(every)}


@pytest.mark.slow
def test_nearly_every_training_row_has_a_prediction(shared: Path) -> None:
    found = compare_rows(rows_of(shared, "training.csv"))
    assert share_predicted(found)[""] >= 0.95
    assert all(each.reason for each in found if each.predicted is None)
    assert not any(each.predicted for each in found if each.row.cells.get("task") == "lora")


@pytest.mark.slow
def test_nearly_every_memory_row_of_training_has_a_prediction(shared: Path) -> None:
    rows = [row for row in rows_of(shared, "memory.csv") if "inference" not in row.cells["kind"]]
    assert share_predicted(compare_rows(rows))[""] >= 0.95
