"""The catalog's accelerators carry the figures of their data sheets: dense, usable, and each with its source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from meshwright.sources.accelerators import GIB, KEYS, accelerator_content, accelerator_from, load_accelerator
from meshwright.sources.catalog import CATALOG, entry_names
from meshwright.sources.fields import Fields
from meshwright.sources.hardware_rows import catalog_rows
from meshwright.spec.cluster import Accelerator
from meshwright.spec.errors import InputError, UnknownName

NAMES = """
    v100-16g v100-32g a100-40g a100-80g a100-pcie-40g a100-pcie-80g a800 h100 h100-pcie h100-nvl h800 h20 h200 b200 b300
    gb200 gb300 a10 a10g l4 l40s l40 a6000 rtx-6000-ada 3090 4090 5090 rtx-pro-6000 t4 gh200 mi250x mi300x mi325x mi355x
    gaudi2 gaudi3 tpu-v4 tpu-v5e tpu-v5p tpu-v6e trn2 cpu
"""

# TFLOP/s without sparsity, as the vendors' documents print them (halved where they print the figure with sparsity)
PUBLISHED = [
    ("v100-32g", "fp16", 125),  # NVIDIA V100 data sheet, January 2020
    ("a100-80g", "bf16", 312),  # NVIDIA A100 data sheet, June 2021
    ("a100-80g", "tf32", 156),
    ("h100", "bf16", 989.4),  # NVIDIA H100 white paper v1.04, table 2; 1,978.9 is with sparsity
    ("h100", "fp8", 1978.9),  # 3,957.8 with sparsity
    ("h100-pcie", "bf16", 756),  # 1,513 with sparsity
    ("h100-nvl", "bf16", 835.5),  # NVIDIA H100 data sheet 2023: 1,671 with sparsity
    ("h200", "bf16", 989.4),  # NVIDIA H200 data sheet: 1,979 with sparsity
    ("h20", "bf16", 148),
    ("b200", "bf16", 2250),  # NVIDIA Blackwell data sheet, HGX B200: 4.5 PFLOP/s with sparsity
    ("b200", "fp8", 4500),
    ("b200", "fp4", 9000),
    ("gb200", "bf16", 2500),  # NVIDIA GB200 NVL72: 360 PFLOP/s with sparsity for 72
    ("gb200", "fp4", 10000),
    ("b300", "bf16", 2250),
    ("gb300", "fp4", 15000),  # NVIDIA GB300 NVL72: 1,080 PFLOP/s for 72
    ("l40s", "bf16", 362),  # NVIDIA L40S data sheet: 362 | 733 with sparsity
    ("l40", "bf16", 181),
    ("l4", "bf16", 121),  # 242 with sparsity
    ("a10", "bf16", 125),
    ("a10g", "bf16", 70),
    ("a6000", "bf16", 154.8),  # NVIDIA GA102 white paper v2
    ("3090", "bf16", 71),  # NVIDIA GA102 white paper v2, fp32 accumulate
    ("4090", "fp16", 165.2),  # NVIDIA Ada white paper v2.1, fp32 accumulate
    ("5090", "bf16", 209.5),  # NVIDIA RTX Blackwell white paper v1.1, fp32 accumulate
    ("t4", "fp16", 65),
    ("mi250x", "bf16", 191.5),  # one die of two: 383 per module, AMD MI250X data sheet
    ("mi300x", "bf16", 1307.4),  # AMD MI300X data sheet: 2,614.9 with sparsity
    ("mi325x", "bf16", 1307.4),
    ("mi355x", "bf16", 2516.6),  # AMD MI355X data sheet: 5.03 PFLOP/s with sparsity
    ("gaudi2", "bf16", 432),
    ("tpu-v4", "bf16", 275),  # Jouppi et al. 2023, table 4
    ("tpu-v5e", "bf16", 197),  # Google Cloud TPU documentation
    ("tpu-v5p", "bf16", 459),
    ("tpu-v6e", "bf16", 918),
]


def test_every_accelerator_that_others_rely_on_is_there() -> None:
    assert set(NAMES.split()) <= set(entry_names("accelerators"))


@pytest.mark.parametrize("name", entry_names("accelerators"))
def test_every_entry_loads_and_says_where_it_is_from(name: str) -> None:
    accelerator = load_accelerator(name)
    assert accelerator.name == name
    assert accelerator.source
    assert accelerator.title
    assert accelerator.family
    assert 2010 < accelerator.year < 2030
    assert set(accelerator.matmul_efficiency) >= set(accelerator.peak_flops_per_s)
    assert all(0.2 < share <= 1 for share in accelerator.matmul_efficiency.values())
    assert 2 * GIB <= accelerator.memory_bytes < 400 * GIB
    assert accelerator.memory_bytes_per_s > 1e9
    assert accelerator.host_bytes_per_s > 1e9


@pytest.mark.parametrize(("name", "dtype", "teraflops"), PUBLISHED, ids=[f"{n}-{d}" for n, d, _ in PUBLISHED])
def test_peaks_are_the_published_dense_ones(name: str, dtype: str, teraflops: float) -> None:
    assert load_accelerator(name).peak(dtype) == pytest.approx(teraflops * 1e12)


@pytest.mark.parametrize("name", ["v100-16g", "v100-32g", "t4"])
def test_volta_and_turing_have_no_bf16(name: str) -> None:
    assert {"bf16", "tf32", "fp8"}.isdisjoint(load_accelerator(name).peak_flops_per_s)


@pytest.mark.parametrize("name", entry_names("accelerators"))
def test_no_peak_is_the_one_with_sparsity(name: str) -> None:
    """From one width to half of it the dense rate at most doubles (data sheets round). Only fp4 may rise more:
    threefold on B300 and GB300, fourfold on GeForce, where fp4 isn't halved."""
    peaks = load_accelerator(name).peak_flops_per_s
    for wide, narrow in (("tf32", "bf16"), ("bf16", "fp8"), ("fp8", "fp4")):
        if wide in peaks and narrow in peaks:
            factor = 4.01 if narrow == "fp4" else 2.05
            assert peaks[narrow] <= factor * peaks[wide]


@pytest.mark.parametrize(
    ("name", "nameplate_gib"),
    [("a100-80g", 80), ("a100-40g", 40), ("h100", 80), ("v100-32g", 32), ("4090", 24), ("mi300x", 192), ("tpu-v4", 32)],
)
def test_memory_is_what_the_driver_shows_a_little_less_than_the_nameplate(name: str, nameplate_gib: int) -> None:
    shown = load_accelerator(name).memory_bytes / GIB
    assert 0.95 * nameplate_gib < shown < nameplate_gib


def test_memory_bandwidths_are_the_published_ones() -> None:
    published = {  # TB/s, data sheets named in the entries
        "v100-32g": 0.9, "a100-40g": 1.555, "a100-80g": 2.039, "h100": 3.35, "h200": 4.8, "gb200": 8.0, "mi300x": 5.3,
        "4090": 1.008, "l40s": 0.864,
    }  # fmt: skip
    for name, terabytes in published.items():
        assert load_accelerator(name).memory_bytes_per_s == pytest.approx(terabytes * 1e12)


def test_a_relative_lends_its_matmul_shares_for_every_unit() -> None:
    h100, h800 = load_accelerator("h100"), load_accelerator("h800")
    assert h800.inherits == "h100"
    assert h800.matmul_efficiency == h100.matmul_efficiency
    assert (h800.sustained, h800.memory_efficiency) == (h100.sustained, h100.memory_efficiency)
    heir = load_accelerator("5090")  # its relative has no fp8 unit: the share in 16 bits stands in
    assert heir.matmul_efficiency["fp8"] == load_accelerator(heir.inherits).matmul_efficiency["bf16"]


def accelerator(**change: Any) -> Accelerator:
    return accelerator_from(Fields("mine.yaml", GOOD | change, KEYS))


def test_training_reaches_the_share_of_a_kernel_that_it_sustains() -> None:
    assert accelerator().matmul_share("bf16") == 0.7
    assert accelerator(sustained=0.8).matmul_share("bf16") == pytest.approx(0.56)


def test_an_heir_keeps_its_own_share_of_power_and_borrows_the_kernels() -> None:
    h100, slower = load_accelerator("h100"), load_accelerator("h100-96g")  # limited to 500 W of 700
    assert slower.matmul_efficiency == h100.matmul_efficiency
    assert slower.sustained == pytest.approx(h100.sustained * (500 / 700) ** 0.5, rel=1e-3)


def test_shares_of_an_heirs_own_are_what_training_reaches() -> None:
    """Files written before `sustained` had a key of its own."""
    h100 = load_accelerator("h100")
    own = accelerator(inherits="h100", peak_flops_per_s={"bf16": 3e14, "fp8": 6e14})
    assert own.matmul_share("bf16") == 0.7
    assert own.matmul_share("fp8") == pytest.approx(h100.matmul_share("fp8"))


def test_a_wrong_name_brings_near_names() -> None:
    with pytest.raises(UnknownName, match=r"a100-8og.*a100-80g"):
        load_accelerator("a100-8og")
    with pytest.raises(UnknownName):
        load_accelerator("../../../etc/passwd")


@pytest.mark.parametrize("name", entry_names("accelerators"))
def test_an_accelerator_written_out_reads_back_unchanged(name: str) -> None:
    accelerator = load_accelerator(name)
    content = yaml.safe_load(yaml.safe_dump(accelerator_content(accelerator)))
    assert accelerator_from(Fields("x.yaml", content, KEYS)) == accelerator


GOOD: dict[str, Any] = {
    "name": "mine",
    "memory_gib": 80,
    "memory_bytes_per_s": 2e12,
    "peak_flops_per_s": {"bf16": 3e14},
    "matmul_efficiency": {"bf16": 0.7},
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"memory_gib": -80}, r"mine\.yaml: memory_gib is -80.*nearest value that works is 80"),
        ({"memory_gib": "80 GB"}, "memory_gib is '80 GB', but it must be a number"),
        ({"memory_gib": True}, "memory_gib is true"),
        ({"memory_bytes": 8e10}, "memory_gib and memory_bytes are both given; keep one"),
        ({"memory_bytes_per_s": 0}, "memory_bytes_per_s is 0, but it must be a number above 0"),
        ({"memory_bytes_per_s": float("nan")}, "memory_bytes_per_s is nan"),
        ({"memory_bytes_per_s": "2e12"}, r"nearest value that works is 2000000000000\.0"),
        ({"peak_flops_per_s": {}}, "peak_flops_per_s is missing"),
        ({"peak_flops_per_s": {"bf17": 3e14}}, r"peak_flops_per_s: key 'bf17' is not known; did you mean bf16\?"),
        ({"peak_flops_per_s": {"bf16": float("inf")}}, r"peak_flops_per_s\.bf16 is inf"),
        ({"peak_flops_per_s": 3e14}, "peak_flops_per_s is 3e\\+?14|peak_flops_per_s is 300000000000000.0"),
        ({"matmul_efficiency": {"bf16": 70}}, r"matmul_efficiency\.bf16 is 70.*works is 1\.0"),
        ({"sustained": 72}, r"sustained is 72.*works is 1\.0"),
        ({"sustained": 0}, "sustained is 0, but it must be a share"),
        ({"matmul_efficiency": None}, "matmul_efficiency is missing"),
        ({"inherits": "h1000"}, "inherits is 'h1000', but it must be one of"),
        ({"memory": 80}, r"mine\.yaml: key 'memory' is not known; did you mean memory_gib"),
        ({"name": None}, "name is missing"),
        ({"year": 20}, "year is 20.*nearest value that works is 1980"),
    ],
)
def test_a_wrong_value_is_named_with_its_rule(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        accelerator_from(Fields("mine.yaml", GOOD | change, KEYS))


def test_rows_for_the_catalog_command_hold_plain_facts() -> None:
    rows = catalog_rows("accelerators")
    assert [row["name"] for row in rows] == list(entry_names("accelerators"))
    assert len({tuple(row) for row in rows}) == 1
    h100 = next(row for row in rows if row["name"] == "h100")
    assert h100["bf16_flops_per_s"] == pytest.approx(989.4e12)
    assert h100["fp4_flops_per_s"] is None


def test_no_file_is_left_without_its_own_name() -> None:
    for path in Path(CATALOG / "accelerators").glob("*.yaml"):
        assert str(yaml.safe_load(path.read_text())["name"]) == path.stem


@pytest.mark.parametrize(
    ("name", "both_directions"),
    [  # GB/s of all links of one accelerator, both directions together, as the data sheets print them
        ("v100-32g", 300),
        ("a100-80g", 600),
        ("a800", 400),
        ("h100", 900),
        ("h100-nvl", 600),
        ("h800", 400),
        ("b200", 1800),
        ("a6000", 112.5),
        ("3090", 112.5),
        ("mi300x", 896),
        ("mi355x", 1075.2),
    ],
)
def test_links_add_up_to_the_published_bandwidth(name: str, both_directions: float) -> None:
    accelerator = load_accelerator(name)
    assert 2 * accelerator.links * accelerator.link_bytes_per_s == pytest.approx(both_directions * 1e9)
