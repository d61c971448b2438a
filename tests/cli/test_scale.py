"""`meshwright scale`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

JOB = "--cluster 4xdgx-a100-80g --seq-len 2048"
LLAMA = f"scale llama-2-7b {JOB} --global-batch 64"
POINT = {
    "accelerators", "nodes", "accelerators_used", "global_batch", "reason", "estimate", "step_time_s", "speedup",
    "efficiency", "tokens_per_s", "tokens_per_s_per_gpu", "mfu", "communication_share", "bubble_share", "waiting_share",
    "cost_per_billion_tokens", "days", "cost_total",
}  # fmt: skip


def test_the_document_has_a_point_for_every_count(answer) -> None:
    document = answer(LLAMA)
    assert document["batch"] == {"kind": "fixed", "value": 64}
    assert [point["accelerators"] for point in document["points"]] == [1, 2, 4, 8, 16, 32]
    for point in document["points"]:
        assert set(point) == POINT
        assert point["global_batch"] == 64
        assert point["tokens_per_s"] == pytest.approx(64 * 2048 / point["estimate"]["step_time_s"])
        assert point["days"] is None
        assert point["cost_total"] is None


def test_the_last_point_is_the_plan_of_the_whole_cluster(answer) -> None:
    whole = answer(f"plan llama-2-7b {JOB} --global-batch 64")["best"]
    assert answer(LLAMA)["points"][-1]["estimate"]["plan"] == whole["plan"]


def test_a_growing_batch_is_of_the_replicas(answer) -> None:
    document = answer(f"scale llama-2-7b {JOB} --batch-per-replica 4 --counts 8,32")
    assert document["batch"] == {"kind": "per_replica", "value": 4}
    for point in document["points"]:
        assert point["global_batch"] == 4 * point["estimate"]["plan"]["dp"]


def test_a_pinned_number_of_replicas_keeps_its_micro_batches(answer) -> None:
    pins = "--dp 8 --fix num_micro_batches=2 --counts 8"
    (point,) = answer(f"scale llama-2-7b {JOB} --batch-per-replica 4 {pins}")["points"]
    assert point["estimate"]["plan"]["micro_batch"] == 2
    assert point["global_batch"] == 32


def test_money_and_days_of_the_whole_run(answer) -> None:
    (point,) = answer(f"{LLAMA} --tokens 1T --price-per-gpu-hour 2 --counts 8")["points"]
    assert point["days"] == pytest.approx(1e12 / point["tokens_per_s"] / 86400)
    assert point["cost_total"] == pytest.approx(point["days"] * 24 * 8 * 2)


def test_a_plan_file_names_the_job(answer, run, tmp_path: Path) -> None:
    saved = tmp_path / "plan.yaml"
    assert run(f"plan llama-2-7b {JOB} --global-batch 64 --save {saved}").exit_code == 0
    assert answer(f"scale {saved} --counts 16,32")["points"] == answer(f"{LLAMA} --counts 16,32")["points"]


def test_the_picture_is_whole_or_not_there(run, tmp_path: Path) -> None:
    drawn = tmp_path / "scale.svg"
    assert run(f"{LLAMA} --svg {drawn}").exit_code == 0
    picture = ElementTree.fromstring(drawn.read_text(encoding="utf-8"))
    dots = [each for each in picture.iter() if each.tag.endswith("circle") and "a" in each.get("class", "").split()]
    assert len(dots) == 2 * 6  # throughput and efficiency, six counts
    missing = tmp_path / "none.svg"
    done = run(f"scale llama-3.1-405b --cluster dgx-h100 --seq-len 2048 --global-batch 64 --svg {missing}")
    assert done.exit_code == 1
    assert "not written" in done.stderr
    assert not missing.exists()


def test_where_nothing_fits_the_answer_is_no(answer) -> None:
    document = answer("scale llama-3.1-405b --cluster dgx-h100 --seq-len 2048 --global-batch 64", exit_code=1)
    assert document["knee"] is None
    assert all(point["estimate"] is None and point["reason"] for point in document["points"])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--global-batch 64 --batch-per-replica 4", "contradict"),
        ("", "--global-batch is missing"),
        ("--batch-per-replica 0", "at least 1|from 1 to"),
        ("--batch-per-replica x", "--batch-per-replica is 'x'"),
        ("--global-batch 64 --counts 8,11", "nearest that works is 8"),
        ("--global-batch 64 --counts 8,", "--counts"),
        ("--global-batch 64 --counts 64", "nearest that works is 32"),
        ("--global-batch 64 --threshold 0", "--threshold"),
        ("--global-batch 64 --threshold 2", "nearest value that works is 1"),
        ("--global-batch 64 --svg /nowhere/at/all.svg", "no folder"),
        ("--global-batch 64 --fix tq=4", "tp"),
    ],
)
def test_bad_input_is_one_message(run, options: str, said: str) -> None:
    done = run(f"scale llama-2-7b {JOB} {options}")
    assert done.exit_code == 2
    assert re.search(said, done.stderr)
    assert len(done.stderr.strip().splitlines()) == 1
    assert not done.stdout


@pytest.mark.parametrize("width", [80, 100, 140])
@pytest.mark.parametrize("more", ["", " --tokens 1T --price-per-gpu-hour 2 --batch-per-replica 4"])
def test_the_text_keeps_to_the_terminal(run, width: int, more: str) -> None:
    batch = "" if "replica" in more else " --global-batch 64"
    done = run(f"scale llama-2-7b {JOB}{batch}{more}", width)
    assert done.exit_code == 0
    assert max(len(line) for line in done.stdout.splitlines()) <= width
    assert "…" not in done.stdout.split("Tokens per second")[0].split("best plan on each")[1]


def test_a_terminal_without_these_characters_gets_plain_ones() -> None:
    environment = {**os.environ, "LC_ALL": "C", "PYTHONIOENCODING": "ascii", "COLUMNS": "80"}
    command = [sys.executable, "-c", "from meshwright.cli import main; main()", *f"{LLAMA} --counts 8,16,32".split()]
    done = subprocess.run(command, env=environment, capture_output=True, timeout=100, check=True)
    curve = done.stdout.decode("ascii").split("Tokens per second")[1]
    assert curve.count("o") >= 3
    assert "?" not in curve
