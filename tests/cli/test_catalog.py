"""`meshwright catalog`."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

KINDS = ("models", "clusters", "accelerators", "fabrics", "software")


def row(rows: list[dict], name: str) -> dict:
    return next(each for each in rows if each["name"] == name)


def test_models_are_listed_with_the_parameters_of_their_classes(answer, run) -> None:
    (rows,) = answer("catalog models").values()
    assert row(rows, "gpt2")["parameters"] == 124_439_808  # Hugging Face GPT2LMHeadModel
    assert row(rows, "llama-3.1-70b")["parameters"] == 70_553_706_496  # model.safetensors.index.json of the release
    assert row(rows, "mixtral-8x7b")["active_parameters"] < row(rows, "mixtral-8x7b")["parameters"]
    assert row(rows, "llama-3.1-70b")["kv_heads"] == 8  # Llama 3 herd of models, table 3
    text = run("catalog models").stdout
    assert "70,553,706,496" in text


def test_accelerators_are_listed_with_dense_peaks(answer, run) -> None:
    (rows,) = answer("catalog accelerators").values()
    assert row(rows, "a100-80g")["bf16_flops_per_s"] == 312e12  # NVIDIA A100 data sheet, without sparsity
    assert row(rows, "a100-80g")["memory_bytes_per_s"] == 2039e9
    line = next(line for line in run("catalog accelerators").stdout.splitlines() if line.startswith("a100-80g"))
    assert "312" in line.split()


def test_clusters_are_listed_with_their_links(answer, run) -> None:
    (rows,) = answer("catalog clusters").values()
    dgx = row(rows, "dgx-a100-80g")
    assert dgx["accelerators_per_node"] == 8
    assert dgx["levels"][0]["bytes_per_s"] == 300e9  # NVLink 3: 600 GB/s, both directions together
    assert "nvlink 8: 300 GB/s" in " ".join(run("catalog clusters", 140).stdout.split())


def test_fabrics_and_software_are_listed(answer) -> None:
    (fabrics,) = answer("catalog fabrics").values()
    assert row(fabrics, "infiniband-hdr")["port_bytes_per_s"] == 25e9  # 200 Gb/s
    (software,) = answer("catalog software").values()
    assert row(software, "current")["title"]


def test_without_a_kind_all_kinds_are_summed_up(answer, run) -> None:
    assert set(answer("catalog")) == set(KINDS)
    text = run("catalog").stdout
    assert all(kind in text for kind in KINDS)


@pytest.mark.parametrize("kind", ["", *KINDS])
@pytest.mark.parametrize("width", [80, 100, 140])
def test_tables_fit_the_width_and_cut_nothing_off(run, kind: str, width: int) -> None:
    done = run(f"catalog {kind}", width)
    assert done.exit_code == 0, done.stderr
    assert max(map(len, done.stdout.splitlines())) <= width
    assert "…" not in done.stdout


def test_all_models_are_listed_within_a_second(run) -> None:
    started = time.perf_counter()
    assert len(run("catalog models").stdout.splitlines()) > 100
    assert time.perf_counter() - started < 1


def test_a_reader_that_stops_early_is_no_error() -> None:
    command = [sys.executable, "-c", "from meshwright.cli import main; main()", "catalog", "models", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""


def test_the_version_is_printed(run) -> None:
    done = run("--version")
    assert done.exit_code == 0
    assert done.stdout.startswith("meshwright ")
