"""Tables of rocm-smi and amd-smi."""

from __future__ import annotations

from pathlib import Path

import pytest
from printed_topology import MANGLES

from meshwright.sources.clusters import load_cluster
from meshwright.spec.cluster import Cluster
from meshwright.spec.errors import InputError


def block(title: str, cells: list[list[str]], names: list[str]) -> str:
    lines = [f"{f' {title} ':=^90}", "       " + "         ".join(names)]
    lines += [f"{name}   " + "            ".join(row) for name, row in zip(names, cells, strict=True)]
    return "\n".join(lines) + "\n"


def rocm(count: int, hive: int, numa: list[int] | None = None, types: bool = True) -> str:
    """All sections of `rocm-smi --showtopo`, in the order in which it prints them."""
    names = [f"GPU{number}" for number in range(count)]

    def cells(near: str, far: str) -> list[list[str]]:
        return [
            ["0" if a == b else near if a // hive == b // hive else far for b in range(count)] for a in range(count)
        ]

    text = f"{' ROCm System Management Interface ':=^90}\n" + block("Weight between two GPUs", cells("15", "40"), names)
    text += block("Hops between two GPUs", cells("1", "2"), names)
    if types:
        text += block("Link Type between two GPUs", cells("XGMI", "PCIE"), names)
    if numa is not None:
        text += f"{' Numa Nodes ':=^90}\n"
        for gpu, node in enumerate(numa):
            text += f"GPU[{gpu}]\t\t: (Topology) Numa Node: {node}\nGPU[{gpu}]\t\t: (Topology) Numa Affinity: {node}\n"
    return text + f"{' End of ROCm SMI Log ':=^90}\n"


def read(tmp_path: Path, text: str, accelerator: str) -> Cluster:
    (tmp_path / "box.txt").write_text(text)
    return load_cluster(f"topo:{tmp_path / 'box.txt'}", accelerator=accelerator)


@pytest.mark.parametrize(("accelerator", "preset"), [("mi300x", "mi300x-8"), ("mi355x", "mi355x-8")])
def test_eight_that_reach_each_other_over_xgmi_are_the_preset(tmp_path: Path, accelerator: str, preset: str) -> None:
    cluster = read(tmp_path, rocm(8, 8, numa=[0] * 4 + [1] * 4), accelerator)
    (level,) = cluster.levels
    (known,) = load_cluster(preset).levels
    for field in ("name", "kind", "size", "bytes_per_s", "link_bytes_per_s", "latency_s", "efficiency"):
        assert getattr(level, field) == pytest.approx(getattr(known, field)), field
    assert cluster.warnings == ()


def test_dies_whose_links_the_table_does_not_count_are_taken_from_the_preset(tmp_path: Path) -> None:
    """MI250X prints XGMI for neighbours and others alike (ROCm/rocm-systems issue 5763)."""
    cluster = read(tmp_path, rocm(8, 8), "mi250x")
    assert cluster.levels == load_cluster("mi250x-4").levels
    assert any("mi250x-4" in warning for warning in cluster.warnings)


def test_numa_nodes_below_the_table_tell_pcie_inside_one_from_pcie_across(tmp_path: Path) -> None:
    unknown = read(tmp_path, rocm(8, 2), "mi300x")
    assert [(level.name, level.size) for level in unknown.levels] == [("xgmi", 2), ("host", 8)]
    assert any("showtoponuma" in warning for warning in unknown.warnings)
    known = read(tmp_path, rocm(8, 2, numa=[0] * 4 + [1] * 4), "mi300x")
    assert [(level.name, level.size) for level in known.levels] == [("xgmi", 2), ("socket", 4), ("host", 8)]


@pytest.mark.parametrize("mangle", MANGLES)
def test_all_sections_read_alike_after_mail_chat_and_terminal(tmp_path: Path, mangle: str) -> None:
    text = rocm(8, 2, numa=[0] * 4 + [1] * 4)
    assert read(tmp_path, MANGLES[mangle](text), "mi300x") == read(tmp_path, text, "mi300x")


def test_amd_smi_names_gpus_by_bus_address(tmp_path: Path) -> None:
    names = [f"0000:{bus}:00.0" for bus in ("0c", "22", "38", "5c")]
    types = [["SELF" if a == b else "XGMI" for b in range(4)] for a in range(4)]
    enabled = [["ENABLED"] * 4 for _ in range(4)]

    def section(title: str, cells: list[list[str]]) -> str:
        rows = "\n".join(f"{name} {' '.join(row)}" for name, row in zip(names, cells, strict=True))
        return f"{title}:\n             {' '.join(names)}\n{rows}\n\n"

    text = section("ACCESS TABLE", enabled) + section("LINK TYPE TABLE", types) + section("NUMA BW TABLE", enabled)
    cluster = read(tmp_path, text, "mi300x")
    assert [(level.name, level.kind, level.size) for level in cluster.levels] == [("xgmi", "mesh", 4)]
    assert cluster.levels[0].bytes_per_s == 3 * 64e9  # one link to each of the three others (AMD MI300X data sheet)


def test_weights_and_hops_alone_do_not_say_what_joins_the_gpus(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="weight and hops of links, not their kinds.*--showtopotype"):
        read(tmp_path, rocm(8, 8, types=False), "mi300x")


def test_a_table_of_one_vendor_is_not_of_the_other_s_accelerator(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="rocm-smi, but the accelerator is h100"):
        read(tmp_path, rocm(8, 8), "h100")
