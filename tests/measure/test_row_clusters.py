"""The cluster of a row: its accelerator, its node, and above all the rate that it states."""

from __future__ import annotations

import pytest

from meshwright.measure.clusters import accelerator_name, cluster_of
from meshwright.measure.comparison import Row
from meshwright.spec.errors import InputError


@pytest.mark.parametrize(
    ("text", "memory_gb", "name"),
    [
        ("A100-SXM-80GB", None, "a100-80g"),
        ("A100-SXM-40GB", 40, "a100-40g"),
        ("NVIDIA A100-PCIE-40GB", None, "a100-pcie-40g"),
        ("V100-SXM2-16GB", 16, "v100-16g"),
        ("V100-SXM2-32GB", None, "v100-32g"),
        ("H100-SXM-80GB", 80, "h100"),
        ("H100-SXM-96GB(HBM2e,500W)", 96, "h100-96g"),
        ("H100 PCIe", None, "h100-pcie"),
        ("H200-SXM-141GB", 141, "h200"),
        ("B200-SXM-180GB", 180, "b200"),
        ("A800-SXM-80GB", 80, "a800"),
        ("MI300X", None, "mi300x"),
    ],
)
def test_the_accelerator_that_a_table_means(text: str, memory_gb: float | None, name: str) -> None:
    assert accelerator_name(text, memory_gb) == name


def test_an_unknown_accelerator_is_refused_by_name() -> None:
    with pytest.raises(InputError, match="'Foo9000'"):
        cluster_of(Row("runs.csv:2", "training", {"gpu": "Foo9000"}), 8)


def test_a_gpu_that_the_source_does_not_tell_is_assumed_for_memory_and_missing_for_time() -> None:
    cells = {"gpu": "(not stated; 8 GPUs)", "gpus_per_node": "8"}
    assert cluster_of(Row("runs.csv:2", "memory", cells), 8)[1] == ("gpu=a100-80g",)
    with pytest.raises(InputError, match="gpu is not stated"):
        cluster_of(Row("runs.csv:2", "training", cells), 8)


@pytest.mark.parametrize(
    ("link", "gbps", "kind"),
    [
        ("4x100Gb RoCE", "50", "roce"),
        ("4x Omni-Path 100Gb/node", "50", "omni-path"),
        ("8x HDR IB 200Gb", "200", "infiniband"),
        ("RDMA 400Gb/s per GPU", "400", "roce"),
        ("EFA", "37.5", "efa"),
        ("", "123", "infiniband"),
    ],
)
def test_the_stated_rate_is_kept_whatever_the_preset_has(link: str, gbps: str, kind: str) -> None:
    cells = {"gpu": "A100-SXM-80GB", "gpus_per_node": "8", "inter_node_gbps_per_gpu": gbps}
    cells |= {"inter_node_link": link} if link else {}
    cluster, assumed = cluster_of(Row("runs.csv:2", "training", cells), 64)
    outer = cluster.levels[-1]
    assert cluster.accelerators == outer.size == 64
    assert outer.bytes_per_s == pytest.approx(float(gbps) * 1e9 / 8)
    assert outer.ports_per_node * outer.port_bytes_per_s == pytest.approx(8 * outer.bytes_per_s)
    assert outer.name.startswith(kind)
    assert not any(each.startswith("fabric") for each in assumed)


def test_a_rate_that_is_not_stated_is_the_presets_and_assumed() -> None:
    cluster, assumed = cluster_of(Row("r:2", "training", {"gpu": "H100-SXM-80GB", "gpus_per_node": "8"}), 16)
    assert cluster.levels[-1].bytes_per_s == pytest.approx(400e9 / 8), "one NDR port for each GPU of a DGX H100"
    assert assumed == ("fabric=infiniband-ndr",)


def test_four_gpus_a_node() -> None:
    cluster, _ = cluster_of(Row("r:2", "training", {"gpu": "V100-SXM2-32GB", "gpus_per_node": "4"}), 16)
    assert (cluster.accelerators_per_node, cluster.nodes) == (4, 4)


def test_fewer_gpus_than_a_node_has() -> None:
    cluster, _ = cluster_of(Row("r:2", "training", {"gpu": "A100-SXM-80GB", "gpus_per_node": "8"}), 2)
    assert (cluster.accelerators, cluster.nodes) == (2, 1)
