"""What people type as a cluster, and the files they write."""

from __future__ import annotations

import os
import stat
import time
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from meshwright.sources.accelerators import load_accelerator
from meshwright.sources.catalog import entry_names, load_entry
from meshwright.sources.clusters import load_cluster, save_cluster
from meshwright.sources.fabrics import load_fabric
from meshwright.sources.hardware_rows import catalog_rows
from meshwright.sources.presets import load_preset
from meshwright.spec.cluster import Accelerator, Cluster, Level, LevelKind, NodeGroup
from meshwright.spec.errors import InputError, UnknownName

RULES = tuple(name for name in entry_names("clusters") if "pattern" in load_entry("clusters", name))
PRESETS = tuple(name for name in entry_names("clusters") if name not in RULES)


# -- the catalog


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_loads_alone_and_threefold(name: str) -> None:
    one, three = load_cluster(name), load_cluster(f"3x{name}")
    assert one.name == name
    assert one.nodes == 1
    assert three.accelerators == 3 * one.accelerators
    assert all(level.kind != "fabric" for level in one.levels)
    assert three.levels[:-1] == one.levels
    assert three.levels[-1].kind == "fabric"
    assert one.sources
    assert all(level.source for level in three.levels)
    rates = [level.bytes_per_s * level.efficiency for level in one.levels]
    assert rates == sorted(rates, reverse=True)


@pytest.mark.parametrize("name", entry_names("fabrics"))
def test_every_fabric_loads_and_says_where_it_is_from(name: str) -> None:
    fabric = load_fabric(name)
    assert fabric.name == name
    assert fabric.title
    assert fabric.source
    assert not fabric.in_switch_reduction
    digits = name.rsplit("-", 1)[-1]
    if digits.endswith("g") and digits[:-1].isdecimal():  # the name says the rate in Gb/s: of a port, or of a node
        ports = fabric.node_ports or 1
        assert ports * fabric.port_bytes_per_s == pytest.approx(int(digits[:-1]) * 1e9 / 8)


def test_names_that_others_rely_on_are_there() -> None:
    relied = (
        "dgx-a100-40g dgx-a100-80g dgx-h100 dgx-h200 dgx-b200 gb200-nvl72 dgx1-v100 a100-pcie-8 4090-pcie 4090-pcie-8"
    )
    assert set(relied.split()) <= set(PRESETS)
    fabrics = "ethernet-25g ethernet-100g infiniband-edr infiniband-hdr infiniband-ndr roce-400g efa-3200g"
    assert set(fabrics.split()) <= set(entry_names("fabrics"))


@pytest.mark.parametrize(
    ("preset", "gigabytes"),
    [
        ("dgx1-v100", 150),  # six NVLink 2 links of 25 GB/s (NVIDIA V100 white paper)
        ("dgx-a100-80g", 300),  # 600 GB/s both directions together (NVIDIA A100 data sheet)
        ("dgx-h100", 450),  # 900 GB/s
        ("dgx-b200", 900),  # 1.8 TB/s
        ("gb200-nvl72", 900),
        ("mi300x-8", 448),  # seven links of 64 GB/s (AMD MI300X data sheet: 896 GB/s both directions together)
        ("gaudi2-8", 262.5),  # 21 ports of 100 Gb/s
        ("tpu-v4-4x4x4", 300),  # six links of 50 GB/s (Jouppi et al. 2023, table 4)
    ],
)
def test_links_are_per_direction(preset: str, gigabytes: float) -> None:
    assert load_cluster(preset).levels[0].bytes_per_s == pytest.approx(gigabytes * 1e9)


@pytest.mark.parametrize(
    ("name", "ports", "per_accelerator"),
    [
        ("2xdgx-a100-80g", 8, 25e9),  # eight HDR adapters of 200 Gb/s for eight GPUs
        ("2xdgx-a100-80g@ethernet-100g", 1, 12.5e9 / 8),
        ("2xdgx-a100-80g@ethernet-100g:8", 8, 12.5e9),
        ("2xdgx-a100-80g@infiniband-ndr", 8, 50e9),
        ("48xdgx-a100-80g@omni-path-100g:4", 4, 6.25e9),  # the nodes that trained BLOOM
        ("2xdgx1-v100", 4, 6.25e9),
        ("2x4090-pcie", 1, 1.25e9),
        ("2x4090-pcie-8", 1, 25e9 / 8 / 8),
        ("2xaws-p4d", 4, 6.25e9),  # 400 Gb/s per node
        ("2xaws-p5", 32, 50e9),  # 3,200 Gb/s per node
        ("2xdgx-h100@efa-3200g", 32, 50e9),
        ("2xgcp-a2-highgpu-8g", 1, 12.5e9 / 8),
        ("2xgcp-a3-mega", 8, 25e9),
        ("2xoci-a100", 16, 25e9),  # 1,600 Gb/s per node
        ("2xgaudi2-8", 24, 37.5e9),  # three ports of 100 Gb/s per accelerator
        ("2xgb200-nvl72", 72, 50e9),
        ("2xgb200-nvl72@ethernet-100g", 18, 12.5e9 / 4),  # one port for each of the 18 trays
        ("2xtpu-v5p-4x4x4", 16, 6.25e9),  # the Scaling Book's 6.25 GB/s per chip
        ("2xtpu-v5e-16x16", 32, 3.125e9),
        ("2xtpu-v6e-16x16", 128, 12.5e9),
        ("2xcpu-8", 1, 1.25e9 / 8),
    ],
)
def test_the_ports_of_a_node_are_shared_by_its_accelerators(name: str, ports: int, per_accelerator: float) -> None:
    fabric = load_cluster(name).levels[-1]
    assert fabric.kind == "fabric"
    assert fabric.ports_per_node == ports
    assert fabric.bytes_per_s == pytest.approx(per_accelerator)
    assert fabric.size == load_cluster(name).accelerators


def test_two_one_card_hosts_are_joined_by_the_network_alone() -> None:
    cluster = load_cluster("2x4090-pcie")
    assert [level.name for level in cluster.levels] == ["ethernet-10g"]
    assert load_cluster("4090-pcie").levels == ()


def test_only_nvlink_switches_since_hopper_add() -> None:
    adding = {name for name in PRESETS if any(level.in_switch_reduction for level in load_cluster(name).levels)}
    assert "dgx-h100" in adding
    families = {load_accelerator(str(load_entry("clusters", name)["accelerator"])).family for name in adding}
    assert families == {"hopper", "blackwell"}


def test_a_mesh_says_what_its_groups_reach() -> None:
    cube = load_cluster("dgx1-v100").levels[0]
    assert cube.group_bytes_per_s == ((2, 50e9), (4, 100e9), (8, 150e9))
    full = load_cluster("mi300x-8").levels[0]
    assert full.bytes_per_s == pytest.approx((full.size - 1) * full.link_bytes_per_s)


# -- sizes that follow a rule


@pytest.mark.parametrize(
    ("name", "chips", "wrapped", "gigabytes"),
    [
        ("tpu-v4-2x2x1", 4, False, 100),
        ("tpu-v4-2x2x4", 16, False, 150),
        ("tpu-v4-4x4x4", 64, True, 300),
        ("tpu-v4-4x4x8", 128, True, 300),
        ("tpu-v4-16x16x16", 4096, True, 300),
        ("tpu-v5p-8x8x16", 1024, True, 600),
        ("tpu-v5e-4x8", 32, False, 100),
        ("tpu-v5e-8x16", 128, False, 100),
        ("tpu-v6e-16x16", 256, True, 400),
    ],
)
def test_slices_wrap_where_they_are_whole(name: str, chips: int, wrapped: bool, gigabytes: float) -> None:
    cluster = load_cluster(name)
    torus = cluster.levels[0]
    assert cluster.accelerators == torus.size == chips
    assert torus.kind == "torus"
    assert "x".join(map(str, torus.dims)) == name.split("-")[-1]
    assert torus.wrapped is wrapped
    assert torus.bytes_per_s == pytest.approx(gigabytes * 1e9)


def test_a_machine_has_any_number_of_ranks() -> None:
    assert load_cluster("cpu-1").levels == ()
    assert load_cluster("cpu-12").accelerators == 12
    assert load_cluster("4xcpu-2").accelerators == 8


# -- what can't be understood


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0xdgx-h100", r"'0xdgx-h100' has 0 nodes, but it must be a whole number .* 1xdgx-h100"),
        ("-1xdgx-h100", "-1 nodes.*1xdgx-h100"),
        ("3.5xdgx-h100", r"3\.5 nodes.*4xdgx-h100"),
        ("1e3xdgx-h100", "1000xdgx-h100"),
        ("xdgx-h100", "no cluster is called 'xdgx-h100'; did you mean dgx-h100"),
        ("2xdgxh100", "no cluster is called 'dgxh100'; did you mean dgx-h100"),
        ("8xh100", "h100 is an accelerator; servers that hold it: .*dgx-h100"),
        ("trn2", "describe its server in a YAML file"),
        ("dgx-h100x4", "the count comes first: 4xdgx-h100"),
        ("2xdgx-h100@infiniband-nrd", "no fabric is called 'infiniband-nrd'; did you mean infiniband-ndr"),
        ("2xdgx-h100@", r"write NxPRESET\[@FABRIC\[:PORTS\]\]"),
        ("2xdgx-h100@ethernet-100g:", "write NxPRESET"),
        ("2xdgx-h100@ethernet-100g:0", "has 0 ports per node, .*nearest that works is :1"),
        ("2xdgx-h100@ethernet-100g:-2", "has -2 ports per node"),
        ("2xdgx-h100@ethernet-100g:1.5", r"has 1\.5 ports per node.*:2"),
        ("2xdgx-h100@ethernet-100g:99999", "nearest that works is :1024"),
        ("2xdgx-h100@efa-3200g:4", "efa-3200g is a rate per node"),
        ("2xgb200-nvl72@infiniband-ndr:8", "gb200-nvl72 is made of 18 hosts.*72 ports"),
        ("125001xdgx-h100", "nearest that works is 125000xdgx-h100"),
        ("9" * 100 + "xdgx-h100", "nearest that works is 125000xdgx-h100"),
        ("topo:FILE", "the accelerator is missing; name it, such as"),
        ("", "can't be understood"),
        ("   ", "can't be understood"),
        ("2x", "names no preset"),
        ("x" * 5000, "can't be understood"),
        ("dgx h100", "can't be understood"),
        ("tpu-v4", "'tpu-v4' needs a size; write tpu-v4-4x4x4"),
        ("tpu-v4-4x4", "must be 3 whole numbers.*tpu-v4-4x4x4"),
        ("tpu-v4-4x4x6", "'tpu-v4-4x4x6' is no slice.*nearest is tpu-v4-4x4x[48]"),
        ("tpu-v4-0x4x4", "is no slice"),
        ("tpu-v4-64x64x64", "262,144 chips, but at most 4,096.*tpu-v4-16x16x16"),
        ("tpu-v5e-32x32", "the largest is tpu-v5e-16x16"),
        ("cpu-0", "whole number from 1 to 1024; write cpu-1"),
        ("cpu-99999", "write cpu-1024"),
        ("cpu", "needs a size; write cpu-8"),
        ("absent.yaml", r"absent\.yaml: can't be read \(No such file or directory\)"),
        ("/", "can't be read"),
        ("a\0b.yaml", "can't be the name of a file"),
    ],
)
def test_a_malformed_name_gets_one_clear_message(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_cluster(text)


def cluster_or_none(text: str) -> Cluster | None:
    """None where the text is refused in the one way that is allowed."""
    try:
        return load_cluster(text)
    except InputError:
        return None


@given(st.text(max_size=40))
def test_any_text_is_a_cluster_or_an_input_error(text: str) -> None:
    cluster = cluster_or_none(text)
    assert cluster is None or cluster.accelerators >= 1


@given(
    st.from_regex(
        r"[0-9]{0,3}x?(tpu-v4|tpu-v5e|cpu|dgx-h100|gb200-nvl72)[-0-9x]{0,9}(@[a-z0-9:-]{0,20})?", fullmatch=True
    )
)
def test_anything_near_a_cluster_is_one_or_an_input_error(text: str) -> None:
    cluster = cluster_or_none(text)
    assert cluster is None or cluster.accelerators >= 1


def test_capitals_and_blanks_around_don_t_matter() -> None:
    assert load_cluster(" 2xDGX-H100 ") == load_cluster("2xdgx-h100")


def test_a_fabric_for_one_node_is_said_to_be_unused() -> None:
    cluster = load_cluster("dgx-h100@ethernet-100g")
    assert len(cluster.levels) == 1
    assert "ethernet-100g is not used" in cluster.warnings[0]


def test_thousands_of_nodes_load_at_once() -> None:
    load_cluster("2xdgx-h100")
    start = time.perf_counter()
    cluster = load_cluster("2048xdgx-h100")
    assert time.perf_counter() - start < 0.05
    assert cluster.accelerators == 16_384


# -- files

LAB = """
name: our-lab
accelerator: a100-80g
nodes: 4
accelerators_per_node: 8
host_memory_gib: 1024
levels:
  - {name: nvlink, kind: switch, size: 8, bytes_per_s: 300e9, latency_s: 1e-6, efficiency: 0.77}
fabric: infiniband-hdr
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "lab.yaml"
    path.write_text(text)
    return path


def test_a_file_that_people_write_is_read(tmp_path: Path) -> None:
    cluster = load_cluster(str(write(tmp_path, LAB)))
    assert cluster.name == "our-lab"
    assert cluster.accelerators == 32
    assert cluster.accelerator == load_accelerator("a100-80g")
    assert [level.bytes_per_s for level in cluster.levels] == [300e9, 25e9]  # one HDR port per accelerator by default
    assert cluster.groups[0].host_memory_bytes == 1024 * 2**30
    assert cluster.library is not None
    assert cluster.warnings == ()


def test_ports_and_oversubscription_set_the_fabric_rate(tmp_path: Path) -> None:
    cluster = load_cluster(write(tmp_path, LAB + "ports_per_node: 4\noversubscription: 2\n"))
    assert cluster.levels[-1].bytes_per_s == 4 * 25e9 / 8 / 2
    assert cluster.levels[-1].oversubscription == 2


def test_an_accelerator_and_a_fabric_may_be_written_out(tmp_path: Path) -> None:
    text = LAB.replace(
        "accelerator: a100-80g",
        "accelerator: {name: 4091, memory_gib: 47, memory_bytes_per_s: 1e12, inherits: 4090, "
        "peak_flops_per_s: {bf16: 1e14}}",
    ).replace(
        "fabric: infiniband-hdr", "fabric: {name: lab-net, port_bits_per_s: 50e9, latency_s: 5e-6, efficiency: 0.7}"
    )
    cluster = load_cluster(write(tmp_path, text))
    assert cluster.accelerator.name == "4091"
    assert cluster.accelerator.matmul_efficiency == {"bf16": load_accelerator("4090").matmul_efficiency["bf16"]}
    assert cluster.levels[-1].port_bytes_per_s == 50e9 / 8


def test_a_missing_efficiency_is_said(tmp_path: Path) -> None:
    cluster = load_cluster(write(tmp_path, LAB.replace(", efficiency: 0.77", "")))
    assert cluster.warnings == ("levels[0].efficiency is not given: collectives are taken to reach all of bytes_per_s",)


def test_nodes_of_several_kinds_are_listed_as_groups(tmp_path: Path) -> None:
    text = """
    groups:
      - {accelerator: h100, nodes: 2, accelerators_per_node: 8}
      - {accelerator: a100-80g, nodes: 1, accelerators_per_node: 8}
    levels:
      - {name: nvlink, kind: switch, size: 8, bytes_per_s: 300e9, latency_s: 1e-6, efficiency: 0.77}
      - {name: net, kind: fabric, size: 24, bytes_per_s: 25e9, latency_s: 3e-6, efficiency: 0.6}
    """
    cluster = load_cluster(write(tmp_path, text))
    assert [group.accelerator.name for group in cluster.groups] == ["h100", "a100-80g"]
    assert cluster.accelerators == 24
    assert cluster.name == "lab"


BOMB = 'a: &a ["x"]\n' + "\n".join(f"b{i}: &b{i} [{', '.join(['*a'] * 9)}]" for i in range(9)) + "\n"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("300e9", "-300e9", r"lab\.yaml: levels\[0\]\.bytes_per_s is -3.*nearest value that works is 3"),
        ("300e9", "0", r"levels\[0\]\.bytes_per_s is 0, but it must be a number above 0"),
        ("300e9", ".nan", r"levels\[0\]\.bytes_per_s is nan"),
        ("300e9", ".inf", r"levels\[0\]\.bytes_per_s is inf"),
        ("300e9", "1e300", r"levels\[0\]\.bytes_per_s is 1e\+300"),
        ("300e9", '"300e9"', r"is '300e9'.*nearest value that works is 300000000000\.0"),
        ("300e9", "300 GB/s", r"levels\[0\]\.bytes_per_s is '300 GB/s', but it must be a number"),
        ("bytes_per_s", "bandwidth", r"levels\[0\]: key 'bandwidth' is not known"),
        ("latency_s: 1e-6, ", "", r"levels\[0\]\.latency_s is missing"),
        ("latency_s: 1e-6", "latency_s: 60", r"latency_s is 60.*from 0 to 10.*10"),
        ("0.77", "77", r"levels\[0\]\.efficiency is 77.*works is 1\.0"),
        ("switch", "swich", r"kind is 'swich', but it must be one of .*'switch'"),
        ("kind: switch", "kind: torus", r"levels\[0\]\.dims is missing"),
        ("size: 8", "size: 8.5", r"levels\[0\]\.size is 8\.5"),
        ("size: 8", "size: 4", "levels span 4 accelerators, but the node has 8; add a level with size: 8"),
        ("size: 8", "size: 64", r"levels\[0\]\.size is 64, .* at most the 32 accelerators"),
        ("accelerators_per_node: 8", "accelerators_per_node: 6", "levels span 8 accelerators, but the node has 6"),
        ("nodes: 4", "nodes: 0", "nodes is 0, .*nearest value that works is 1"),
        ("nodes: 4", "nodes: four", "nodes is 'four'"),
        ("nodes: 4", "nodes: 1000000", "describes 8,000,000 accelerators; at most 1,000,000"),
        ("nodes: 4", "nodes: 4\nnode: 4", r"key 'node' is not known; did you mean nodes\?"),
        ("nodes: 4", "nodes: 4\nnodes: 5", "key 'nodes' is given twice"),
        ("a100-80g", "a100-8Og", r"lab\.yaml: accelerator: no accelerator is called .* did you mean a100-80g"),
        ("accelerator: a100-80g\n", "", "accelerator is missing"),
        ("infiniband-hdr", "infiniband-hrd", "fabric: no fabric is called .* did you mean infiniband-hdr"),
        ("fabric: infiniband-hdr", "", "fabric is missing: it must be what joins the nodes"),
        ("infiniband-hdr", "efa-3200g\nports_per_node: 4", "ports_per_node is 4, .*efa-3200g is a rate per node"),
        ("infiniband-hdr", "infiniband-hdr\nports_per_node: 0", "ports_per_node is 0"),
        ("infiniband-hdr", "infiniband-hdr\ndevices: [0, 1]", r"devices is \[0, 1\].* the 8 accelerators .*each once"),
        ("infiniband-hdr", "infiniband-hdr\ndevices: [0, 0, 1, 2, 3, 4, 5, 6]", "devices is .*each once"),
        ("infiniband-hdr", "infiniband-hdr\ndevices: [-1]", r"devices\[0\] is -1"),
        ("infiniband-hdr", "infiniband-hdr\noversubscription: 0.5", "oversubscription is 0.5, .*at least 1"),
        ("infiniband-hdr", "infiniband-hdr\nlibrary: ncll", "no collective library .* did you mean nccl"),
        ("infiniband-hdr", "infiniband-hdr\ngroups: []", "accelerator and groups are both given"),
        ("host_memory_gib: 1024", "host_memory_gib: -1", "host_memory_gib is -1"),
        ("host_memory_gib: 1024", "host_memory_gib: 1\nhost_memory_bytes: 1", "both given"),
        ("host_memory_gib: 1024", "host_overhead_factor: 0", "host_overhead_factor is 0, .*at least 0.1 .*is 0.1"),
        ("host_memory_gib: 1024", "host_overhead_factor: 1e9", "host_overhead_factor is 1000000000.0, .*works is 100"),
        ("levels:", "levels: 7\nextra:", "levels is 7, but it must be a list"),
        (LAB, "- 1", "must hold one mapping"),
        (LAB, "", "holds nothing"),
        (LAB, "{", "is not valid YAML: line"),
        (LAB, BOMB, "aliases .* are not read"),
        (LAB, "x: " + "[" * 500 + "]" * 500, "nested more than"),
        (LAB, "x: " + "y" * 2_000_000, "the file holds 2,000,003 bytes"),
        (LAB, "accelerator: !!python/object/apply:os.system [ls]", "is not valid YAML"),
        (LAB, "groups: []", "groups is empty"),
    ],
)  # fmt: skip
def test_a_malformed_file_names_key_value_and_rule(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in LAB
    path = write(tmp_path, LAB.replace(old, new, 1))
    with pytest.raises(InputError, match=message) as caught:
        load_cluster(str(path))
    assert "lab.yaml" in str(caught.value) or isinstance(caught.value, UnknownName)


def test_sizes_that_don_t_divide_are_refused_with_the_nearest(tmp_path: Path) -> None:
    three = (
        "  - {name: pair, kind: bridge, size: 3, bytes_per_s: 50e9, latency_s: 1e-6, efficiency: 1}\n  - {name: nvlink"
    )
    with pytest.raises(InputError, match=r"levels\[1\]\.size is 8, .* multiple of the 3 .*'pair'.* works is 9"):
        load_cluster(write(tmp_path, LAB.replace("  - {name: nvlink", three)))


def test_levels_that_span_all_nodes_need_no_fabric(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="fabric is given, but levels already span all 32"):
        load_cluster(write(tmp_path, LAB.replace("size: 8", "size: 32")))
    cluster = load_cluster(write(tmp_path, LAB.replace("size: 8", "size: 32").replace("fabric: infiniband-hdr", "")))
    assert [level.size for level in cluster.levels] == [32]


# -- save and read back


@pytest.mark.parametrize("name", [*PRESETS, "tpu-v4-4x4x8", "tpu-v5e-4x8", "cpu-1", "cpu-8"])
@pytest.mark.parametrize("nodes", [1, 3])
def test_every_preset_saved_reads_back_unchanged(tmp_path: Path, name: str, nodes: int) -> None:
    cluster = load_cluster(f"{nodes}x{name}")
    path = tmp_path / "saved.yaml"
    save_cluster(cluster, path)
    assert load_cluster(str(path)) == cluster


def floats(least: float, most: float) -> st.SearchStrategy[float]:
    return st.floats(least, most, allow_nan=False, allow_infinity=False)


WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=20)
NAMES = WORDS.filter(bool)


KINDS: tuple[LevelKind, ...] = get_args(LevelKind)


@st.composite
def any_cluster(draw: st.DrawFn) -> Cluster:
    accelerator = Accelerator(
        name=draw(NAMES),
        peak_flops_per_s=draw(st.dictionaries(st.sampled_from(["bf16", "fp32", "fp8"]), floats(1.0, 1e18), min_size=1)),
        memory_bytes=draw(floats(2.0**20, 2.0**45)),
        memory_bytes_per_s=draw(floats(1.0, 1e15)),
        matmul_efficiency={"bf16": draw(floats(0.01, 1.0))},
        memory_efficiency=draw(floats(0.01, 1.0)),
        host_bytes_per_s=draw(floats(0.0, 1e12)),
        title=draw(WORDS),
        notes=tuple(draw(st.lists(WORDS, max_size=2))),
        links=draw(st.integers(0, 32)),
        link_bytes_per_s=draw(floats(0.0, 1e12)),
        peer_to_peer=draw(st.booleans()),
    )
    sizes = [1]
    levels = []
    for factor in draw(st.lists(st.integers(2, 5), min_size=1, max_size=4)):
        size = sizes[-1] * factor
        kind = draw(st.sampled_from(KINDS))
        levels.append(
            Level(
                name=draw(NAMES),
                kind=kind,
                size=size,
                bytes_per_s=draw(floats(1.0, 1e13)),
                latency_s=draw(floats(0.0, 1.0)),
                dims=(size,) if kind == "torus" else (),
                link_bytes_per_s=draw(floats(1.0, 1e12)) if kind in ("torus", "mesh") else 0.0,
                group_bytes_per_s=((2, draw(floats(1.0, 1e12))), (size, 1e9)) if kind == "mesh" and size > 2 else (),
                wrapped=draw(st.booleans()),
                ports_per_node=draw(st.integers(0, 64)),
                port_bytes_per_s=draw(floats(0.0, 1e12)),
                oversubscription=draw(floats(1.0, 10.0)),
                in_switch_reduction=draw(st.booleans()),
                efficiency=draw(floats(0.01, 1.0)),
                sqrt_s_per_sqrt_byte=draw(floats(0.0, 1e-3)),
                source=draw(WORDS),
            )
        )
        sizes.append(size)
    per_node = draw(st.sampled_from(sizes))
    group = NodeGroup(accelerator, sizes[-1] // per_node, per_node, draw(floats(0.0, 1e13)))
    return Cluster(
        name=draw(NAMES),
        groups=(group,),
        levels=tuple(levels),
        warnings=tuple(dict.fromkeys(draw(st.lists(WORDS, max_size=2)))),
        price_per_accelerator_hour=draw(floats(0.0, 100.0)),
        sources=tuple(draw(st.lists(WORDS, max_size=2))),
        extra=draw(st.dictionaries(NAMES, WORDS, max_size=2)),
        devices=tuple(draw(st.permutations(range(per_node)))) if per_node < 20 and draw(st.booleans()) else (),
    )


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(cluster=any_cluster())
def test_any_cluster_saved_reads_back_unchanged(tmp_path: Path, cluster: Cluster) -> None:
    path = tmp_path / "any.yaml"
    save_cluster(cluster, path)
    assert load_cluster(path) == cluster


def test_a_changed_library_is_written_out(tmp_path: Path) -> None:
    cluster = load_cluster("2xdgx-h100")
    assert cluster.library is not None
    changed = replace(cluster, library=replace(cluster.library, tree_bandwidth_share=0.5))
    save_cluster(changed, tmp_path / "c.yaml")
    library = load_cluster(tmp_path / "c.yaml").library
    assert library is not None
    assert library.tree_bandwidth_share == 0.5
    assert library.protocols[0].ring_base_s == pytest.approx(cluster.library.protocols[0].ring_base_s)


def test_a_save_leaves_nothing_beside_its_file_and_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("old")
    path.chmod(0o640)
    save_cluster(load_cluster("dgx-h100"), path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["c.yaml"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert load_cluster(path).name == "dgx-h100"


def test_a_failed_save_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("old")

    def refuse(source: str, target: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(InputError, match=r"c\.yaml: can't be written \(No space left on device\)"):
        save_cluster(load_cluster("dgx-h100"), path)
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["c.yaml"]


def test_a_save_into_no_folder_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="can't be written"):
        save_cluster(load_cluster("dgx-h100"), tmp_path / "absent" / "c.yaml")


# -- rows


def test_rows_for_the_catalog_command_hold_plain_facts() -> None:
    rows = {row["name"]: row for row in catalog_rows("clusters")}
    assert len(rows) == len(entry_names("clusters"))
    assert len({tuple(row) for row in rows.values()}) == 1
    assert rows["dgx-h100"]["node_fabric_bytes_per_s"] == 8 * 50e9
    assert rows["tpu-v4-AxBxC"]["accelerator"] == "tpu-v4"
    assert rows["cpu-N"]["accelerators_per_node"] is None
    assert {row["name"] for row in catalog_rows("fabrics")} == set(entry_names("fabrics"))
    with pytest.raises(UnknownName):
        catalog_rows("models")


def test_a_preset_is_one_node() -> None:
    assert load_preset("gb200-nvl72").hosts == 18
    assert load_preset("dgx-h100").accelerators_per_node == 8
