"""Families of links, and levels that name one."""

from __future__ import annotations

from pathlib import Path

import pytest

from meshwright.sources.catalog import entry_names, load_entry
from meshwright.sources.clusters import load_cluster, save_cluster
from meshwright.sources.links import link_curves, link_names
from meshwright.sources.presets import load_preset
from meshwright.spec.errors import InputError

FILE = """
name: lab
accelerator: h100
accelerators_per_node: 8
levels:
  - {{name: nvlink, size: 8, {}}}
"""


def cluster_file(folder: Path, rest: str) -> Path:
    path = folder / "lab.yaml"
    path.write_text(FILE.format(rest))
    return path


def named_links(preset: str) -> list[str]:
    return [level.get("link", "") for level in load_entry("clusters", preset).get("levels", [])]


def test_a_level_takes_from_its_family_what_it_does_not_say() -> None:
    """H800: NVLink 4 with eight links of 25 GB/s in place of eighteen (NVIDIA data sheets)."""
    (full,) = load_preset("dgx-h100").levels
    (cut,) = load_preset("hgx-h800").levels
    assert (full.bytes_per_s, cut.bytes_per_s) == (450e9, 200e9)
    for key in ("kind", "size", "latency_s", "efficiency", "local_bytes_per_s", "in_switch_bandwidth_share"):
        assert getattr(cut, key) == getattr(full, key), key
    assert "H800 was not measured" in cut.source
    assert "nccl-tests curves" in full.source
    assert "90th percentile" in full.source


def test_presets_of_one_family_agree() -> None:
    for link in link_names():
        presets = [name for name in entry_names("clusters") if link in named_links(name)]
        for curve in link_curves(link):
            assert curve.preset in presets, (link, curve)
    eight = [load_preset(name).levels[0] for name in ("dgx-a100-40g", "dgx-a100-80g", "aws-p4d", "oci-a100")]
    assert len(set(eight)) == 1


def test_a_cluster_file_may_name_a_family_and_is_saved_written_out(tmp_path: Path) -> None:
    cluster = load_cluster(cluster_file(tmp_path, "link: nvlink4-nvswitch, in_switch_reduction: false"))
    (level,) = cluster.levels
    (known,) = load_preset("dgx-h100").levels
    assert (level.efficiency, level.start_s) == (known.efficiency, known.start_s)
    assert not level.in_switch_reduction
    assert not any("efficiency is not given" in warning for warning in cluster.warnings)
    save_cluster(cluster, tmp_path / "saved.yaml")
    assert "link:" not in (tmp_path / "saved.yaml").read_text()
    assert load_cluster(tmp_path / "saved.yaml") == cluster


def test_a_family_that_is_not_there_is_named_with_its_key_and_the_nearest(tmp_path: Path) -> None:
    path = cluster_file(tmp_path, "link: nvlink4-nvswich")
    with pytest.raises(InputError) as caught:
        load_cluster(path)
    text = str(caught.value)
    assert text.startswith(f"{path}: levels[0].link: no family of links is called 'nvlink4-nvswich'")
    assert "did you mean nvlink4-nvswitch" in text
