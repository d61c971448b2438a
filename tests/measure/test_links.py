"""Constants of links: found again where they are known, and held against curves that they were not fitted on."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from meshwright.measure.collectives_table import MIB, Call, read_calls
from meshwright.measure.links import FILE, fit_links
from meshwright.measure.links_fit import LIBRARY, Bench, LinkFit, benches, fit_benches
from meshwright.sources.catalog import CATALOG
from meshwright.spec.errors import InputError

A100, H100 = "A100-SXM4-80GB", "H100-SXM-80GB"
KNOWN = {
    ("nvlink4-nvswitch", "latency_s"): 1.1e-6,
    ("nvlink4-nvswitch", "start_s"): 2.5e-6,
    ("nvlink4-nvswitch", "efficiency"): 0.78,
    ("nvlink4-nvswitch", "sqrt_s_per_sqrt_byte"): 9e-9,
    ("nvlink4-nvswitch", "local_bytes_per_s"): 1.4e12,
    ("nvlink4-nvswitch", "in_switch_bandwidth_share"): 0.58,
}
SIZES = 2.0 ** np.arange(9, 30)


def made_up(folder: Path) -> Path:
    """A table with the curves of links whose constants are KNOWN, every seventh time a third too long."""
    blank = [
        Call("aiconfigurator", H100, kind, n, 1e6, 1.0) for kind in ("all_reduce", "all_gather") for n in (2, 4, 8)
    ]
    blank += [Call("aiconfigurator", H100, "all_to_all", n, 1e6, 1.0) for n in (2, 4, 8)]
    calls = [Call(c.source, c.gpu, c.collective, c.ranks, float(size), 1.0) for c in blank for size in SIZES]
    known = LinkFit(KNOWN, ())
    lines = ["source_id,gpu,gpus_total,nodes,collective,message_bytes,time_us"]
    for bench in benches(calls):
        seconds = known.predicted_s(bench) * np.where(np.arange(len(SIZES)) % 7 == 3, 4 / 3, 1.0)
        name, n = bench.series.collective, bench.series.ranks
        lines += [f"aiconfigurator,{H100},{n},1,{name},{s:g},{1e6 * t}" for s, t in zip(SIZES, seconds, strict=True)]
    (folder / FILE).write_text("\n".join(lines) + "\n")
    return folder


def catalog_copy(folder: Path) -> Path:
    for name in ("links", "collectives"):
        shutil.copytree(CATALOG / name, folder / name)
    return folder


def texts(folder: Path) -> dict[str, list[str]]:
    return {str(path.relative_to(folder)): path.read_text().splitlines() for path in sorted(folder.rglob("*.yaml"))}


def errors(fit: LinkFit, on: list[Bench], least: float, most: float = np.inf) -> np.ndarray:
    ratios = [fit.log_ratios(b)[(b.series.payload_bytes >= least) & (b.series.payload_bytes < most)] for b in on]
    return np.abs(np.expm1(np.concatenate(ratios)))


def test_known_constants_are_found_again_through_noise(tmp_path: Path) -> None:
    fit = fit_benches(benches(read_calls(made_up(tmp_path) / FILE)))
    # hops and local copies are a small part of most calls, so shrinkage holds them back;
    # one family alone can't tell its own start from the library's base, only their sum
    known = KNOWN | {("nvlink4-nvswitch", "start_s"): 2.5e-6 + LinkFit({}, ()).library.all_to_all_base_s}
    found = dict(fit.values)
    found["nvlink4-nvswitch", "start_s"] += fit.library.all_to_all_base_s
    for (link, key), value in known.items():
        assert found[link, key] == pytest.approx(
            value, rel=0.3 if key in ("latency_s", "local_bytes_per_s") else 0.1
        ), key
    assert np.median(errors(fit, list(fit.benches), 0)) < 0.05


def test_only_fitted_constants_and_residuals_of_the_files_change_and_a_second_fit_changes_nothing(
    tmp_path: Path,
) -> None:
    catalog = catalog_copy(tmp_path / "catalog")
    before = texts(catalog)
    fit = fit_links(made_up(tmp_path), catalog)
    after = texts(catalog)
    assert {name for name in after if after[name] != before[name]} == {
        "links/nvlink4-nvswitch.yaml",
        "collectives/nccl.yaml",
    }
    name = "links/nvlink4-nvswitch.yaml"
    changed = [new for old, new in zip(before[name], after[name], strict=True) if old != new]
    keys = [line.split(":")[0] for line in changed]
    assert set(keys) == {key for _, key in KNOWN} | {"residual"}
    written = dict(line.split(": ") for line in changed if not line.startswith("residual"))
    assert float(written["efficiency"]) == pytest.approx(fit.values["nvlink4-nvswitch", "efficiency"], rel=2e-3)
    fit_links(tmp_path, catalog)
    assert texts(catalog) == after
    assert not [path for path in catalog.rglob("*") if path.suffix == ".tmp"]


def test_nothing_is_written_where_a_file_has_no_place_for_a_constant(tmp_path: Path) -> None:
    catalog = catalog_copy(tmp_path / "catalog")
    odd = catalog / "links" / "nvlink4-nvswitch.yaml"
    odd.write_text(odd.read_text().replace("\nlocal_bytes_per_s:", "\n# local_bytes_per_s:"))
    before = texts(catalog)
    with pytest.raises(InputError, match="nvlink4-nvswitch.yaml: has no line for a fitted constant"):
        fit_links(made_up(tmp_path), catalog)
    assert texts(catalog) == before


# -- published curves


@pytest.fixture(scope="module")
def calls(shared: Path) -> tuple[Call, ...]:
    return read_calls(shared / "data" / "measured" / FILE)


@pytest.mark.field
def test_the_catalog_holds_on_large_messages_of_a_source_that_it_was_not_fitted_on(calls: tuple[Call, ...]) -> None:
    held_out = benches(calls, lambda curve: curve.held_out)
    assert {bench.series.gpu for bench in held_out} == {"A100-SXM", "H200-SXM-141GB", "B200-SXM"}
    large = errors(LinkFit({}, ()), held_out, 16 * MIB)
    assert np.median(large) < 0.04
    assert np.quantile(large, 0.9) < 0.25


@pytest.mark.field
@pytest.mark.slow
def test_links_fitted_on_a100_and_h100_predict_their_successors_from_the_data_sheet_alone(
    calls: tuple[Call, ...],
) -> None:
    everything = benches(calls)
    fit = fit_benches([bench for bench in everything if bench.series.gpu in (A100, H100)])
    # what scales with the links scales: twice the rate of a link, twice the rate of the copies that feed it
    twice = {("nvlink5-nvswitch", key): v for (link, key), v in fit.values.items() if link == "nvlink4-nvswitch"}
    twice["nvlink5-nvswitch", "local_bytes_per_s"] *= 2
    carried = LinkFit({**fit.values, **twice}, ())
    for gpu in ("H200-SXM-141GB", "B200-SXM"):
        large = errors(carried, [bench for bench in everything if bench.series.gpu == gpu], 16 * MIB)
        assert np.median(large) < 0.1, gpu
        assert np.quantile(large, 0.9) < 0.3, gpu


@pytest.mark.field
@pytest.mark.slow
def test_the_catalog_holds_what_the_fit_gives(calls: tuple[Call, ...]) -> None:
    fit = fit_benches(benches(calls))
    assert {owner for owner, _ in fit.values} >= {LIBRARY, "nvlink3-nvswitch", "pcie5-host-bridge"}
    catalog = LinkFit({}, ())
    for bench in fit.benches:
        assert fit.predicted_s(bench) == pytest.approx(catalog.predicted_s(bench), rel=0.02)
