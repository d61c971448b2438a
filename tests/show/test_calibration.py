"""A calibration as text, at the widths that terminals have."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

import meshwright as mw
from meshwright.measure.calibration import Calibration
from meshwright.show.calibration import calibration_view, verdict

ROWS = Path(__file__).parents[2] / "docs" / "calibrate-runs.csv"


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Calibration:
    """Four of the documented runs and one that can't be used."""
    header, *lines = ROWS.read_text().splitlines()
    kept = [line for line in lines if line.split(",")[0] in ("dp-8", "dp-256", "dp-1024", "tp2-64")]
    other = lines[0].replace("dp-8", "other", 1).replace("A100-SXM-80GB", "H100-SXM-80GB")
    path = tmp_path_factory.mktemp("runs") / "few.csv"
    path.write_text("\n".join([header, *kept, other]) + "\n")
    return mw.calibrate(path, "128xdgx-a100-80g@roce-100g:4")


def text(calibration: Calibration, width: int) -> str:
    console = Console(width=width, file=io.StringIO(), record=True)
    console.print(calibration_view(calibration, width))
    return console.export_text()


@pytest.mark.parametrize("width", [72, 80, 100, 140])
def test_every_width_holds_every_figure(found: Calibration, width: int) -> None:
    shown = text(found, width)
    assert max(map(len, shown.splitlines())) <= width
    flat = " ".join(shown.split())
    for figure in ("4 runs of 4 jobs and layouts, 1 row not used", "it ran on h100", "(other)", "cluster as given"):
        assert figure in flat
    assert "…" not in shown
    for constant in found.constants:
        assert constant.name in shown


def test_the_verdict_follows_from_the_left_out_runs(found: Calibration) -> None:
    assert found.cross_validated is not None
    better = replace(found, cross_validated=replace(found.cross_validated, mean=0.5 * (found.before.mean or 0)))
    worse = replace(found, cross_validated=replace(found.cross_validated, mean=2 * (found.before.mean or 0)))
    unknown = replace(found, cross_validated=None, jobs=2)
    untouched = replace(found, constants=tuple(replace(each, kept="no run depends on it") for each in found.constants))
    assert better.better is True
    assert "predicted better" in verdict(better)[0]
    assert worse.better is False
    assert "Keep it as it is" in verdict(worse)[0]
    assert unknown.better is None
    assert "2 jobs can't be left out" in verdict(unknown)[0]
    assert "tell too little about any constant" in verdict(untouched)[0]
