"""Boxes with something odd about them: the hierarchy stays on the safe side, and a warning says what to do."""

from __future__ import annotations

from pathlib import Path

import pytest
from printed_topology import nested, renumbered, table

from meshwright.sources.clusters import load_cluster
from meshwright.spec.cluster import Cluster

Cells = list[list[str]]


def read(tmp_path: Path, text: str, accelerator: str) -> Cluster:
    (tmp_path / "box.txt").write_text(text)
    return load_cluster(f"topo:{tmp_path / 'box.txt'}", accelerator=accelerator)


def shape(cluster: Cluster) -> list[tuple[str, int]]:
    return [(level.name, level.size) for level in cluster.levels]


def says(cluster: Cluster, *pieces: str) -> bool:
    return any(all(piece in warning for piece in pieces) for warning in cluster.warnings)


def switched(count: int, links: int = 18) -> Cells:
    return nested([count], [f"NV{links}"])


def set_pair(cells: Cells, one: int, other: int, path: str) -> None:
    cells[one][other] = cells[other][one] = path


def without(cells: Cells, gpu: int, path: str = "NODE") -> Cells:
    """The same box with all NVLinks of one GPU down."""
    for other in range(len(cells)):
        if other != gpu:
            set_pair(cells, gpu, other, path)
    return cells


# -- NVLink


def test_nvlink_of_one_gpu_is_down(tmp_path: Path) -> None:
    cluster = read(tmp_path, table(without(switched(8), 5)), "h100")
    assert shape(cluster) == [("socket", 8)]
    assert says(cluster, "NVLink of GPU5 is down", "NODE", "NV18", "nvlink -s -i 5", "=0,1,2,3,4,6,7")


def test_what_the_warning_advises_works(tmp_path: Path) -> None:
    """The row and column of the broken GPU deleted from the text: seven on the switch, numbered as they are."""
    lines = [line.split("\t") for line in table(without(switched(8), 2)).splitlines()]
    kept = "\n".join(
        "\t".join(cell for place, cell in enumerate(row) if place != 3) for row in lines if row[0] != "GPU2"
    )
    cluster = read(tmp_path, kept, "h100")
    assert shape(cluster) == [("nvlink", 7)]
    assert cluster.devices == (0, 1, 3, 4, 5, 6, 7)
    assert says(cluster, "CUDA_VISIBLE_DEVICES=0,1,3,4,5,6,7")


def test_some_links_of_one_gpu_are_down(tmp_path: Path) -> None:
    cells = switched(8)
    for other in range(8):
        if other != 3:
            set_pair(cells, 3, other, "NV16")
    cluster = read(tmp_path, table(cells), "h100")
    assert cluster.levels[0].bytes_per_s == 16 * 25e9
    assert says(cluster, "GPU0-GPU3", "NV16", "others have NV18", "nvidia-smi nvlink -s")


def test_one_pair_behind_a_switch_has_no_nvlink(tmp_path: Path) -> None:
    cells = switched(4)
    set_pair(cells, 0, 1, "SYS")
    cluster = read(tmp_path, table(cells), "h100")
    assert shape(cluster) == [("host", 4)]
    assert says(cluster, "no NVLink between GPU0-GPU1", "nvidia-smi nvlink -s")


def test_unequal_pairs_are_planned_at_the_slower(tmp_path: Path) -> None:
    cells = nested([2, 2], ["NV4", "PHB"])
    set_pair(cells, 2, 3, "NV2")
    cluster = read(tmp_path, table(cells), "a6000")
    assert cluster.levels[0].bytes_per_s == 2 * 14.0625e9
    assert says(cluster, "GPU2-GPU3 has NV2", "others have NV4")


def test_fewer_links_than_the_accelerator_has(tmp_path: Path) -> None:
    """NV12 is an A100's, so a box that is called H100 has links down or holds something else."""
    cluster = read(tmp_path, table(switched(8, 12)), "h100")
    assert cluster.levels[0].bytes_per_s == 12 * 25e9
    assert says(cluster, "18 NVLinks of h100", "shows 12:")


def test_one_link_of_a_cube_mesh_is_down(tmp_path: Path) -> None:
    """A DGX-1 with V100 has six links at each GPU (NVIDIA DGX-1 system guide)."""
    cells = [["X"] * 8 for _ in range(8)]
    cube = ["01122000", "10210200", "12020010", "21200001", "20000112", "02001021", "00101202", "00012120"]
    for one, row in enumerate(cube):
        for other, links in enumerate(row):
            if one != other:
                cells[one][other] = f"NV{links}" if links != "0" else "SYS"
    whole = read(tmp_path, table(cells), "v100-32g")
    assert whole.levels[0].bytes_per_s == 150e9
    assert not says(whole, "NVLinks of v100-32g")
    set_pair(cells, 0, 4, "NV1")
    broken = read(tmp_path, table(cells), "v100-32g")
    assert broken.levels[0].bytes_per_s == 100e9  # five links make two cycles only
    assert says(broken, "6 NVLinks of v100-32g", "5 for GPU0 and GPU4")


def test_groups_of_unequal_size_are_planned_as_their_common_part(tmp_path: Path) -> None:
    cells = nested([2, 2, 2], ["NV4", "NV4", "SYS"])
    for one in (4, 5):
        for other in (6, 7):
            set_pair(cells, one, other, "PHB")
    cluster = read(tmp_path, table(cells), "a100-80g")
    assert shape(cluster) == [("bridge", 2), ("host-bridge", 4), ("host", 8)]
    assert says(cluster, "groups of 4, 2 and 2", "groups of 2 are planned")


def test_four_joined_by_direct_links_are_a_mesh(tmp_path: Path) -> None:
    """HGX A100 with four GPUs: four links from each to each, twelve in all (NVIDIA HGX A100 data sheet)."""
    (level,) = read(tmp_path, table(nested([4], ["NV4"])), "a100-80g").levels
    (known,) = load_cluster("hgx-a100-80g-4gpu").levels
    for field in ("kind", "size", "bytes_per_s", "link_bytes_per_s", "group_bytes_per_s", "efficiency", "latency_s"):
        assert getattr(level, field) == getattr(known, field), field


@pytest.mark.parametrize(
    ("count", "links", "accelerator", "preset"),
    [(16, 6, "v100-32g", "dgx2-v100"), (8, 12, "a100-80g", "dgx-a100-80g"), (8, 18, "b200", "dgx-b200")],
)
def test_a_switched_box_is_its_preset(tmp_path: Path, count: int, links: int, accelerator: str, preset: str) -> None:
    (level,) = read(tmp_path, table(switched(count, links)), accelerator).levels
    (known,) = load_cluster(preset).levels
    for field in ("name", "kind", "size", "bytes_per_s", "efficiency", "latency_s", "sqrt_s_per_sqrt_byte"):
        assert getattr(level, field) == getattr(known, field), field
    assert level.in_switch_reduction == known.in_switch_reduction


def test_bridged_pairs_that_are_not_neighbours_by_number_set_the_order_of_devices(tmp_path: Path) -> None:
    cells = renumbered(nested([2, 2], ["NV4", "SYS"]), [0, 2, 1, 3])  # bridges join 0-2 and 1-3
    cluster = read(tmp_path, table(cells), "a6000")
    assert shape(cluster) == [("bridge", 2), ("host", 4)]
    assert cluster.devices == (0, 2, 1, 3)
    assert says(cluster, "CUDA_VISIBLE_DEVICES=0,2,1,3")


def test_no_nvlink_at_all_on_an_accelerator_that_has_it(tmp_path: Path) -> None:
    text = table(nested([4, 2], ["NODE", "SYS"]))
    assert says(read(tmp_path, text, "h100"), "no NVLink in the table", "h100", "fabricmanager")
    assert not read(tmp_path, text, "h100-pcie").warnings  # cards may be bridged or not


def test_a_tray_of_a_rack_is_told_of_the_rack(tmp_path: Path) -> None:
    assert says(read(tmp_path, table(switched(4)), "gb200"), "all 72", "gb200-nvl72")


# -- PCIe


def test_a_level_on_which_domains_differ_in_size_is_left_out(tmp_path: Path) -> None:
    cells = nested([2, 3], ["PIX", "SYS"])
    set_pair(cells, 0, 2, "PIX")
    set_pair(cells, 1, 2, "PIX")
    cluster = read(tmp_path, table(cells), "a100-pcie-80g")
    assert shape(cluster) == [("host", 6)]
    assert says(cluster, "share a PCIe switch", "4 and 2")


def test_cards_whose_driver_refuses_copies_go_through_host_memory(tmp_path: Path) -> None:
    text = table(nested([2, 2], ["PIX", "SYS"]))
    direct, through = read(tmp_path, text, "a6000"), read(tmp_path, text, "4090")
    assert shape(direct) == shape(through)
    assert not says(direct, "peer-to-peer")
    assert says(through, "no peer-to-peer", "4090", "topo -p2p r")
    for fast, slow in zip(direct.levels, through.levels, strict=True):
        assert slow.bytes_per_s * slow.efficiency < fast.bytes_per_s * fast.efficiency


def test_a_table_of_refused_copies_beside_it_counts(tmp_path: Path) -> None:
    text = table(nested([4], ["PHB"]), affinity=False)
    peers = "\n$ nvidia-smi topo -p2p r\n" + text.replace("PHB", "CNS") + "\nLegend:\n  CNS = Chipset not supported\n"
    assert says(read(tmp_path, text + peers, "a6000"), "peer-to-peer table", "refused")
    assert not read(tmp_path, text + peers.replace("CNS", "OK"), "a6000").warnings


def test_cards_of_one_socket_share_the_link_to_the_other(tmp_path: Path) -> None:
    """About two slots' worth joins two sockets, so eight cards of each get a quarter of a slot."""
    for inside, share in ((2, 1.0), (4, 0.5), (8, 0.25)):
        host = read(tmp_path, table(nested([inside, 2], ["PHB", "SYS"])), "a100-pcie-80g").levels[-1]
        assert host.bytes_per_s == share * 31.5e9
        assert host.link_bytes_per_s == 31.5e9


def test_gpus_of_one_numa_node_share_its_link_even_where_all_read_sys(tmp_path: Path) -> None:
    text = table(nested([8], ["SYS"]), affinity=False)
    rows = text.replace("GPU7\n", "GPU7\tCPU Affinity\tNUMA Affinity\n", 1).splitlines()
    rows[1:] = [f"{row}\t0-63\t{number // 4}" for number, row in enumerate(rows[1:])]
    alone, shared = read(tmp_path, text, "a6000"), read(tmp_path, "\n".join(rows), "a6000")
    assert alone.levels[0].bytes_per_s == 31.5e9
    assert shared.levels[0].bytes_per_s == 2 / 4 * 31.5e9


def test_one_gpu_needs_no_links(tmp_path: Path) -> None:
    cluster = read(tmp_path, "\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \t0-15\t0\t\tN/A\n", "h100")
    assert (cluster.accelerators, cluster.levels) == (1, ())


# -- adapters


def test_adapters_on_the_other_side_are_named_with_the_ones_to_use(tmp_path: Path) -> None:
    cells = switched(2, 12)
    text = table(cells, [["SYS", "SYS"], ["PXB", "PXB"]]) + "\nNIC Legend:\n\n  NIC0: mlx5_0\n  NIC1: mlx5_1\n"
    assert says(read(tmp_path, text, "a100-80g"), "mlx5_0 is across the sockets", "NCCL_IB_HCA=mlx5_1")


def test_no_adapter_is_near(tmp_path: Path) -> None:
    assert says(read(tmp_path, table(switched(4), [["SYS"] * 4]), "h100"), "no network adapter is near a GPU", "NIC0")


# -- cells that are not there


def test_an_unread_cell_on_which_nothing_depends_is_named(tmp_path: Path) -> None:
    lines = table(without(switched(8), 0, "SYS")).splitlines()[:7]  # GPU6 and GPU7 are not there
    cluster = read(tmp_path, "\n".join(lines), "h100")
    assert shape(cluster) == [("host", 8)]
    assert says(cluster, "GPU6 and GPU7", "row GPU6 is not there", "the same whatever")


def test_two_cells_that_contradict_each_other_are_named(tmp_path: Path) -> None:
    cells = without(switched(8), 0)
    cells[3][4] = "NV16"
    cluster = read(tmp_path, table(cells), "h100")
    assert says(cluster, "row GPU3 reads NV16 for GPU4, row GPU4 reads NV18 for GPU3")
