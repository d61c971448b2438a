"""Known constants come back from tables of products made with them; the published tables give what they print."""

from __future__ import annotations

import csv
from itertools import product
from pathlib import Path

import pytest

from meshwright.cost.compute import last_wave
from meshwright.measure.kernel_rows import accelerator_called
from meshwright.measure.matmul_table import fit_matmuls
from meshwright.sources.accelerators import load_accelerator
from meshwright.sources.software import load_software
from meshwright.spec.errors import InputError

MEASURED = Path(__file__).parents[3] / "shared" / "data" / "measured"
SIZES = (1024, 2048, 4096, 8192, 16384)


def table(folder: Path, gpu: str, dtype: str, share: float, cast_bytes: float, launch_s: float) -> Path:
    """A table of products that take what the law of `matmul_table` says; one in ten takes four times as long."""
    card = accelerator_called(gpu)
    assert card is not None
    unit = {"bfloat16": "bf16", "fp8": "fp8"}[dtype]
    software = load_software()
    path = folder / "gemm.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["row_id", "gpu", "op", "dtype", "m", "n", "k", "time_us"])
        for index, (m, n, k) in enumerate(product((1, 256, 1024, 4096, 8192), SIZES, SIZES)):
            seconds = 2 * m * n * k / (card.peak(unit) * share)
            seconds *= 1 + software.matmul_rows_overhead / m + software.matmul_depth_overhead / k
            seconds *= last_wave(card.waves, m, n)
            seconds += m * k * cast_bytes / (card.memory_bytes_per_s * 0.9) + launch_s
            writer.writerow([f"G{index}", gpu, "gemm", dtype, m, n, k, seconds * 1e6 * (4 if index % 10 == 3 else 1)])
    return path


@pytest.mark.parametrize(
    ("gpu", "name", "dtype", "share", "cast_bytes"),
    [("H100-SXM-80GB", "h100", "bfloat16", 0.81, 0.0), ("B200-SXM", "b200", "fp8", 0.66, 7.0)],
)
def test_known_constants_are_recovered(
    tmp_path: Path, gpu: str, name: str, dtype: str, share: float, cast_bytes: float
) -> None:
    (fit,) = fit_matmuls(table(tmp_path, gpu, dtype, share, cast_bytes, 5e-6), {name: 0.9})
    assert fit.accelerator == name
    assert fit.share == pytest.approx(share, rel=2e-3)
    assert fit.launch_s == pytest.approx(5e-6, rel=0.05)
    assert fit.cast_bytes == pytest.approx(cast_bytes, rel=0.02)
    assert fit.residual.median < 0.01


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("A100-SXM4-80GB", "a100-80g"),
        ("H100-SXM-80GB", "h100"),
        ("H200-SXM-141GB", "h200"),
        ("RTX-PRO-6000-Server", "rtx-pro-6000"),
        ("L40S-48GB", "l40s"),
        ("GB200", "gb200"),
        ("H100 SXM 96GB", "h100-96g"),
        ("NVIDIA A100 PCIe", None),  # of two memories; it doesn't say which
        ("Cerebras WSE-3", None),
    ],
)
def test_accelerators_are_found_by_the_words_of_their_names(text: str, name: str | None) -> None:
    found = accelerator_called(text)
    assert (found and found.name) == name


def test_bad_tables_are_refused_with_row_and_column(tmp_path: Path) -> None:
    path = tmp_path / "gemm.csv"
    with pytest.raises(InputError, match=r"gemm\.csv: can't be read"):
        fit_matmuls(path)
    path.write_text("gpu,op,dtype,m,n\n")
    with pytest.raises(InputError, match=r"has no column 'k'"):
        fit_matmuls(path)
    path.write_text("row_id,gpu,op,dtype,m,n,k,time_us\nG7,H100-SXM-80GB,gemm,bfloat16,1,1,1,soon\n")
    with pytest.raises(InputError, match="row G7: time_us is 'soon', but it must be a number above 0"):
        fit_matmuls(path)


@pytest.mark.skipif(not MEASURED.is_dir(), reason="the table of published kernel times isn't here")
def test_published_products_reach_what_others_found() -> None:
    fits = {(fit.accelerator, fit.dtype): fit for fit in fit_matmuls(MEASURED / "gemm.csv")}
    # the best shapes that ml-engineering found (2025, torch): H100 794.5 and A100 271.2 TFLOP/s in bf16
    assert fits["h100", "bf16"].share == pytest.approx(794.5 / 989.4, rel=0.06)
    # (the share is without the loss of the last wave, so no shape passes it)
    assert 271.2 / 312 < fits["a100-80g", "bf16"].share < 1.08 * 271.2 / 312
    # H200's matrix units are those of the H100
    assert fits["h200", "bf16"].share == pytest.approx(fits["h100", "bf16"].share, rel=0.02)
    # to cast 16 to 8 bits takes at least a reading of 2 bytes and a writing of 1
    assert all(fits[name, "fp8"].cast_bytes > 2 for name in ("h100", "h200", "b200", "l40s"))
    assert max(fit.residual.median for fit in fits.values()) < 0.11


@pytest.mark.skipif(not MEASURED.is_dir(), reason="the table of published kernel times isn't here")
def test_the_catalog_has_the_fitted_shares() -> None:
    for fit in fit_matmuls(MEASURED / "gemm.csv", {}):
        found = load_accelerator(fit.accelerator).matmul_efficiency[fit.dtype]
        assert found == pytest.approx(fit.share, abs=0.02)
