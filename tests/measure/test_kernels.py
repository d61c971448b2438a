"""The fit writes its constants into the catalog's entries and leaves everything else as it is."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml

from meshwright.measure.attention_table import AttentionFit, MemoryFit
from meshwright.measure.catalog_text import shown, with_number, with_numbers, with_prose
from meshwright.measure.kernels import KernelFits, fit_kernels, main, update_catalog
from meshwright.measure.least_absolute import Residual
from meshwright.measure.matmul_table import MatmulFit
from meshwright.sources.catalog import CATALOG

MEASURED = Path(__file__).parents[3] / "shared" / "data" / "measured"
FOUND = Residual(0.02, 0.09, 400)
FITS = KernelFits(
    matmuls=(
        MatmulFit("h100", "bf16", 0.8512, 0.0, 3e-6, FOUND, "some kernels"),
        MatmulFit("gb300", "bf16", 0.7, 0.0, 3e-6, FOUND),
        MatmulFit("gb300", "fp8", 0.65, 8.0, 3e-6, FOUND),
    ),
    memory=(MemoryFit("h100", 0.9, "some kernel", 12),),
    attention=(
        AttentionFit("h100", "hopper", "vllm", "fa3", 0.64, 1.5, 80.0, 1e-5, FOUND),
        AttentionFit("h100", "hopper", "vllm", "vllm_flash_attn_fa3", 0.66, 2.5, 90.0, 1e-5, FOUND),
        AttentionFit("h100", "hopper", "trtllm", "another", 0.5, 9.0, 10.0, 1e-5, FOUND),
    ),
)


@pytest.fixture
def catalog(tmp_path: Path) -> Path:
    for kind in ("accelerators", "attention"):
        shutil.copytree(CATALOG / kind, tmp_path / kind)
    return tmp_path


def read(path: Path) -> dict[str, object]:
    content = yaml.safe_load(path.read_text())
    assert isinstance(content, dict)
    return content


def test_only_fitted_constants_change(catalog: Path) -> None:
    before = read(catalog / "accelerators" / "h100.yaml")
    assert update_catalog(FITS, catalog) == ["gb300", "h100", "cudnn"]
    after = read(catalog / "accelerators" / "h100.yaml")
    shares = dict(before["matmul_efficiency"])  # type: ignore[call-overload]
    told = {"memory_efficiency", "matmul_efficiency", "measured"}
    assert {key for key in after if after[key] != before.get(key)} <= told
    assert after["memory_efficiency"] == 0.9
    assert after["matmul_efficiency"] == shares | {"bf16": 0.851, "fp16": 0.851, "tf32": 0.851}
    assert "some kernels, 400 rows, median error 2.0%, nine in ten within 9.0%" in str(after["measured"])
    assert (
        list(after)[: list(after).index("matmul_efficiency")] == list(before)[: list(before).index("matmul_efficiency")]
    )


def test_comments_stay(catalog: Path) -> None:
    update_catalog(FITS, catalog)
    assert "peak_flops_per_s:  # dense" in (catalog / "accelerators" / "h100.yaml").read_text()


def test_an_heir_with_figures_of_its_own_keeps_what_its_relative_sustains(catalog: Path) -> None:
    update_catalog(FITS, catalog)
    heir = read(catalog / "accelerators" / "gb300.yaml")
    assert heir["matmul_efficiency"] == {"tf32": 0.7, "bf16": 0.7, "fp16": 0.7, "fp8": 0.65}
    assert heir["sustained"] == read(catalog / "accelerators" / "gb200.yaml")["sustained"]


def test_a_kernels_shape_is_the_median_of_its_implementations(catalog: Path) -> None:
    before = read(catalog / "attention" / "cudnn.yaml")
    update_catalog(FITS, catalog)
    after = read(catalog / "attention" / "cudnn.yaml")
    assert after["operand_traffic"] == 2.0
    assert after["softmax_width"] == dict(before["softmax_width"]) | {"hopper": 85.0}  # type: ignore[call-overload]
    assert after["efficiency"] == before["efficiency"]


def test_a_second_time_changes_nothing(catalog: Path) -> None:
    update_catalog(FITS, catalog)
    texts = {path: path.read_text() for path in catalog.rglob("*.yaml")}
    assert update_catalog(FITS, catalog) == []
    assert texts == {path: path.read_text() for path in catalog.rglob("*.yaml")}


@pytest.mark.skipif(not MEASURED.is_dir(), reason="the tables of published kernel times aren't here")
def test_the_catalog_has_what_the_published_tables_tell(catalog: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fits = fit_kernels(MEASURED)
    assert len(fits.matmuls) >= 19
    for name in {fit.accelerator for fit in fits.matmuls}:
        text = (CATALOG / "accelerators" / f"{name}.yaml").read_text()
        assert "\nmeasured: >-" in text
    assert update_catalog(fits, catalog) == []
    assert main([str(MEASURED)], catalog) == 0
    assert "the catalog has these constants already" in capsys.readouterr().out


def test_a_folder_without_tables_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == 2
    assert "attention.csv: can't be read (No such file or directory)" in capsys.readouterr().err
    assert main([]) == 2


def test_texts_are_changed_key_by_key() -> None:
    text = "a: 1  # one\nb:\n  x: 0.5  # half\nsource: >-\n  old\n  words\nnotes: []\n"
    assert with_number(text, "a", 2.0, "b") == text.replace("a: 1 ", "a: 2.0 ")
    assert with_number(text, "c", 0.25, "source") == text.replace("source", "c: 0.25\nsource")
    assert with_numbers(text, "b", {"x": 0.75, "": 1.0}, "source") == text.replace(
        "  x: 0.5  # half\n", "  x: 0.75  # half\n  '': 1.0\n"
    )
    assert with_prose(text, "source", "new words", "notes") == text.replace("old\n  words", "new words")
    assert with_prose("a: 1\n", "source", "new", "notes") == "a: 1\nsource: >-\n  new\n"
    assert [shown(value) for value in (0.8512, 0.9, 135.0, 2.32)] == ["0.851", "0.9", "135.0", "2.32"]
