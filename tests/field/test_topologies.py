"""Every topology printout from real people: the hierarchy, written by hand from reading the file, and the warnings; or
the one error."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from printed_topology import MANGLES

from meshwright.sources.clusters import load_cluster
from meshwright.spec.cluster import Cluster
from meshwright.spec.errors import InputError

pytestmark = pytest.mark.field

# file → (an accelerator that such a box holds, levels as (name, kind, size, GB/s), what the warnings must say)
READ: dict[str, tuple[str, list[tuple[str, str, int, float]], list[list[str]]]] = {
    "a100_container_2x_nv12_nonuma_nics_half": (
        "a100-80g",
        [("nvlink", "switch", 2, 300)],
        [["NUMA", "container"], ["NIC0", "SYS", "NIC6 and NIC7"]],
    ),
    "a6000_8x_nv4_bridge_pairs": (
        "a6000",
        [("bridge", "bridge", 2, 56.25), ("socket", "host", 4, 31.5), ("host", "host", 8, 15.75)],
        [["GPU0 to GPU3", "across the sockets", "use GPU4 to GPU7"]],
    ),
    "b200_8x_one_gpu_nvlink_down_partial": (
        "b200",
        [("host", "host", 8, 31.5)],  # four GPUs of a socket share two slots' worth to the other
        [
            ["NVLink of GPU2 is down", "nvidia-smi nvlink -s -i 2", "CUDA_VISIBLE_DEVICES=0,1,3,4,5,6,7"],
            ["GPU6 and GPU7", "row GPU6 is not there", "the same whatever"],
            ["columns 9 to 20", "no NV#", "network adapters"],
        ],
    ),
    "cloud_vm_4x_nv18_8nics_phb": (
        "h100",
        [("nvlink", "switch", 4, 450)],
        [["8 network adapters", "PHB", "virtual machine", "NCCL_TOPO_FILE"]],
    ),
    "consumer_2x_phb": (
        "4090",
        [("host-bridge", "host", 2, 31.5)],
        [["no peer-to-peer", "4090", "host memory"], ["NUMA"]],
    ),
    "consumer_4090_8x_all_sys_nic_phb": (
        "4090",
        [("host", "host", 8, 31.5)],
        [
            ["no peer-to-peer", "4090", "host memory"],
            ["SYS", "GPU0 to GPU3 on node 0", "GPU4 to GPU7 on node 1"],
            ["GPU0 to GPU5 and GPU7", "across the sockets", "use GPU6"],
        ],
    ),
    "h100_hgx_8x_nv18_numa": ("h100", [("nvlink", "switch", 8, 450)], []),
    "hgx_7x_nv18_one_gpu_missing_odd_even_cpus": (
        "h100",
        [("nvlink", "switch", 7, 450)],
        [["7 GPUs", "odd", "nvidia-smi -L", "CUDA_VISIBLE_DEVICES=0,1,2,3,4,5"]],
    ),
    "old_7x_pix_phb_legacy_SOC_legend": (
        "t4",
        [("host-bridge", "host", 7, 15.75)],
        [["3 and 4", "GPU0 to GPU2; GPU3 to GPU6", "CUDA_VISIBLE_DEVICES=0,1,2,3,4,5"], ["7 GPUs", "odd"]],
    ),
    "pcie_3x_nv4_pair_plus_one": (
        "a6000",
        [("socket", "host", 3, 31.5)],
        [["GPU2 has no NVLink", "GPU0 and GPU1", "NV4", "CUDA_VISIBLE_DEVICES=0,1"], ["3 GPUs", "odd"]],
    ),
    "pcie_4x_nv1_pairs_sys": (
        "v100-32g",
        [("bridge", "bridge", 2, 25), ("host", "host", 4, 15.75)],
        [["6 NVLinks of v100-32g", "shows 1:"]],
    ),
    "pcie_4x_phb": ("l40s", [("host-bridge", "host", 4, 31.5)], []),
    "pcie_8x_5060ti_phb_node_single_socket": (
        "5060-ti",  # eight lanes of PCIe 5
        [("host-bridge", "host", 2, 31.5), ("socket", "host", 8, 31.5)],
        [["no peer-to-peer", "host memory"]],
    ),
    "pcie_8x_pix_phb_sys": (
        "a100-pcie-80g",
        [("pcie-switch", "host", 2, 31.5), ("host-bridge", "host", 4, 31.5), ("host", "host", 8, 15.75)],
        [["GPU4 to GPU7", "NIC0", "across the sockets"]],
    ),
    "rocm_showtopo_8x_two_xgmi_hives": (
        "mi300x",  # three links of 64 GB/s to the three others of a hive
        [("xgmi", "mesh", 4, 192), ("host", "host", 8, 31.5)],
        [["PCIE", "showtoponuma"]],
    ),
    "titanx_4x_phb_sys_mlx4": (
        "t4",  # stands in for another card on PCIe 3
        [("host-bridge", "host", 2, 15.75), ("host", "host", 4, 15.75)],
        [],
    ),
    "v100_sxm2_8x_hybrid_cube_mesh": (
        "v100-16g",
        [("nvlink", "mesh", 8, 150)],
        [["CUDA_VISIBLE_DEVICES=0,3,1,2,4,7,5,6"], ["GPU4 to GPU7", "mlx5_0", "across the sockets"]],
    ),
}
REFUSED: dict[str, list[str]] = {
    "gh200_lscpu_numa": ["looks like lscpu", "nvidia-smi topo -m"],
    "lscpu_h100_host_xeon8462": ["looks like lscpu", "nvidia-smi topo -m"],
    "ibstat_two_ports_mixed_rate": ["looks like ibstat", "--nics FILE", "nvidia-smi topo -m"],
}


@pytest.fixture(scope="module")
def printouts(shared: Path) -> Path:
    folder = shared / "data" / "field" / "topo"
    if not folder.is_dir():
        pytest.skip(f"field printouts not found: {folder}")
    return folder


def read(printouts: Path, name: str, accelerator: str) -> Cluster:
    return load_cluster(f"topo:{printouts / name}.txt", accelerator=accelerator)


def test_every_printout_of_the_folder_is_judged_here(printouts: Path) -> None:
    with (printouts / "manifest.csv").open(encoding="utf-8", newline="") as file:
        listed = {row["file"].removesuffix(".txt") for row in csv.DictReader(file)}
    assert listed == set(READ) | set(REFUSED)


@pytest.mark.parametrize("name", READ)
def test_a_printout_becomes_the_hierarchy_that_a_reader_sees(printouts: Path, name: str) -> None:
    accelerator, levels, _ = READ[name]
    cluster = read(printouts, name, accelerator)
    found = [(level.name, level.kind, level.size, level.bytes_per_s / 1e9) for level in cluster.levels]
    assert found == levels
    assert cluster.accelerators == levels[-1][2]
    assert all(level.source for level in cluster.levels)
    reached = [level.bytes_per_s * level.efficiency for level in cluster.levels]
    assert reached == sorted(reached, reverse=True)


@pytest.mark.parametrize("name", READ)
def test_what_is_odd_about_it_is_said_once_with_what_to_do(printouts: Path, name: str) -> None:
    accelerator, _, expected = READ[name]
    warnings = read(printouts, name, accelerator).warnings
    assert len(warnings) == len(expected), warnings
    for pieces in expected:
        assert any(all(piece in warning for piece in pieces) for warning in warnings), (pieces, warnings)


@pytest.mark.parametrize("name", REFUSED)
def test_another_tool_s_output_is_called_by_its_name(printouts: Path, name: str) -> None:
    with pytest.raises(InputError) as caught:
        read(printouts, name, "h100")
    for piece in (name, *REFUSED[name]):
        assert piece in str(caught.value)


def test_the_cube_mesh_and_the_bridged_pairs_are_the_presets_that_describe_such_boxes(printouts: Path) -> None:
    cube = read(printouts, "v100_sxm2_8x_hybrid_cube_mesh", "v100-16g").levels[0]
    preset = load_cluster("dgx1-v100-16g").levels[0]
    assert cube.group_bytes_per_s == preset.group_bytes_per_s
    assert cube.oversubscription == pytest.approx(preset.oversubscription, abs=1e-3)
    for field in ("kind", "size", "bytes_per_s", "link_bytes_per_s", "latency_s", "efficiency"):
        assert getattr(cube, field) == getattr(preset, field)

    pairs = read(printouts, "a6000_8x_nv4_bridge_pairs", "a6000").levels
    for level, known in zip(pairs, load_cluster("a6000-pcie-8-nvlink-pairs").levels, strict=True):
        for field in ("name", "kind", "size", "bytes_per_s", "link_bytes_per_s", "latency_s", "efficiency"):
            assert getattr(level, field) == getattr(known, field), (level.name, field)


@pytest.mark.parametrize(
    ("name", "accelerator", "preset"),
    [
        ("h100_hgx_8x_nv18_numa", "h100", "dgx-h100"),
        ("consumer_4090_8x_all_sys_nic_phb", "4090", "4090-pcie-8"),
        ("consumer_2x_phb", "4090", "4090-pcie-2"),
    ],
)
def test_an_ordinary_box_is_priced_as_its_preset(printouts: Path, name: str, accelerator: str, preset: str) -> None:
    (level,) = read(printouts, name, accelerator).levels
    (known,) = load_cluster(preset).levels
    for field in ("kind", "size", "bytes_per_s", "latency_s", "efficiency", "sqrt_s_per_sqrt_byte"):
        assert getattr(level, field) == getattr(known, field), field
    assert level.in_switch_reduction == known.in_switch_reduction


def test_the_two_mixed_ports_make_a_fabric_at_the_slower_rate(printouts: Path) -> None:
    """56 and 40 Gb/s: twice 40 is more than 56 alone."""
    cluster = load_cluster(
        f"2xtopo:{printouts / 'titanx_4x_phb_sys_mlx4.txt'}",
        accelerator="t4",
        nics=printouts / "ibstat_two_ports_mixed_rate.txt",
    )
    fabric = cluster.levels[-1]
    assert (fabric.kind, fabric.size, fabric.ports_per_node) == ("fabric", 8, 2)
    assert fabric.port_bytes_per_s == 40e9 / 8
    assert fabric.bytes_per_s == 2 * 40e9 / 8 / 4
    assert any("56" in warning and "40" in warning for warning in cluster.warnings)


@pytest.mark.parametrize("mangle", MANGLES)
def test_every_printout_reads_alike_after_mail_chat_and_terminal(printouts: Path, tmp_path: Path, mangle: str) -> None:
    for name, (accelerator, _, _) in READ.items():
        plain = read(printouts, name, accelerator)
        text = (printouts / f"{name}.txt").read_text(encoding="utf-8")
        (tmp_path / f"{name}.txt").write_bytes(MANGLES[mangle](text).encode())
        mangled = read(tmp_path, name, accelerator)
        assert mangled.levels == plain.levels, name
        assert mangled.devices == plain.devices, name
        assert mangled.warnings == plain.warnings, name
