"""Collectives against formulas written out here.

Ring and all-to-all factors: Thakur, Rabenseifner and Gropp 2005, "Optimization of collective communication operations
in MPICH", sections 4.1 (all-gather), 4.4 (reduce-scatter) and 4.5 (all-reduce): with n ranks, α per message and β per
byte, a ring all-gather of S bytes in all takes (n-1) α + (n-1)/n S β, an all-reduce twice that. The choice between ring
and tree and their protocols: NCCL, src/graph/tuning.cc.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from small_jobs import card

from meshwright.cost.network import Network
from meshwright.program.placement import placement
from meshwright.sources.clusters import load_cluster
from meshwright.sources.links import link_curves, link_names
from meshwright.spec.cluster import Cluster, Level, NodeGroup
from meshwright.spec.collectives import CollectiveLibrary, Protocol
from meshwright.spec.plan import Plan

S = 4e9
FAST, SLOW, HOP = 2e11, 2.5e10, 3e-6
INNER = Level("switch", "switch", 8, FAST, HOP)
ALONE = (INNER,)
"""Eight accelerators on one switch."""


def nodes(ports: int, count: int = 2) -> tuple[Level, ...]:
    """Nodes of eight with so many ports of SLOW bytes/s each."""
    return (
        INNER,
        Level("fabric", "fabric", 8 * count, SLOW * ports / 8, 10 * HOP, ports_per_node=ports, port_bytes_per_s=SLOW),
    )


def seconds(
    collective: Any,
    payload: float,
    levels: tuple[Level, ...],
    plan: Plan,
    group: str = "data",
    library: CollectiveLibrary | None = None,
) -> float:
    size = levels[-1].size if levels else 1
    cluster = Cluster("test", (NodeGroup(card(), 1, size),), levels, library=library)
    network = Network.of(cluster)
    route = network.route(getattr(placement(levels, plan.table()), group))
    return float(network.collective_s(collective, payload, route))


# -- one switch


@pytest.mark.parametrize("n", [2, 4, 8])
def test_a_ring_on_one_switch_takes_the_time_of_thakur_et_al(n: int) -> None:
    gather_s = (n - 1) * HOP + (n - 1) / n * S / FAST
    assert seconds("all_gather", S, ALONE, Plan(dp=n)) == pytest.approx(gather_s, rel=1e-12)
    assert seconds("reduce_scatter", S, ALONE, Plan(dp=n)) == pytest.approx(gather_s, rel=1e-12)
    assert seconds("all_reduce", S, ALONE, Plan(dp=n)) == pytest.approx(2 * gather_s, rel=1e-12)


def test_only_the_efficient_share_of_a_link_is_reached() -> None:
    half = (replace(INNER, efficiency=0.5, latency_s=0.0),)
    assert seconds("all_reduce", S, half, Plan(dp=8)) == pytest.approx(2 * 7 / 8 * S / (FAST / 2), rel=1e-12)


def test_a_measured_curve_adds_the_root_of_the_bytes_on_the_wire() -> None:
    curved = (replace(INNER, sqrt_s_per_sqrt_byte=1e-9),)
    more_s = seconds("all_gather", S, curved, Plan(dp=8)) - seconds("all_gather", S, ALONE, Plan(dp=8))
    assert more_s == pytest.approx(1e-9 * np.sqrt(7 / 8 * S), rel=1e-9)


@pytest.mark.parametrize("n", [2, 4, 8])
@pytest.mark.parametrize("collective", ["all_reduce", "all_gather", "reduce_scatter", "all_to_all"])
def test_a_rank_copies_its_own_part_once(collective: str, n: int) -> None:
    """NCCL's kernels take each chunk through n steps of which n-1 cross a link (all_gather.h, all_reduce.h)."""
    copies = (replace(INNER, local_bytes_per_s=4e11),)
    more_s = seconds(collective, S, copies, Plan(dp=n)) - seconds(collective, S, ALONE, Plan(dp=n))
    assert more_s == pytest.approx(S / n / 4e11, rel=1e-9)


@pytest.mark.parametrize("collective", ["all_reduce", "all_gather", "reduce_scatter", "all_to_all"])
def test_starting_takes_once_what_the_slowest_level_to_start_takes(collective: str) -> None:
    levels = (replace(INNER, start_s=3e-6), replace(nodes(8)[1], start_s=5e-6))
    for plan, start_s in ((Plan(dp=8), 3e-6), (Plan(dp=16), 5e-6), (Plan(tp=8, dp=2), 5e-6)):
        more_s = seconds(collective, S, levels, plan) - seconds(collective, S, nodes(8), plan)
        assert more_s == pytest.approx(start_s, rel=1e-6)


def test_an_all_to_all_keeps_its_own_share_at_home() -> None:
    large_s = seconds("all_to_all", S, ALONE, Plan(dp=8)) - seconds("all_to_all", S / 2, ALONE, Plan(dp=8))
    assert large_s == pytest.approx(7 / 8 * S / 2 / FAST, rel=1e-9)


def test_a_send_crosses_one_link_once() -> None:
    assert seconds("send", S, ALONE, Plan(pp=8), "pipeline") == pytest.approx(HOP + S / FAST, rel=1e-12)


@pytest.mark.parametrize("collective", ["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send"])
def test_groups_of_one_and_empty_payloads_cost_nothing(collective: str) -> None:
    assert seconds(collective, S, ALONE, Plan(tp=8)) == 0
    assert seconds(collective, 0.0, ALONE, Plan(dp=8)) == 0
    assert seconds(collective, S, (), Plan()) == 0


# -- nodes and ports


@pytest.mark.parametrize("ports", [1, 2, 8])
def test_a_ring_through_nodes_goes_as_fast_as_all_ports_of_a_node_together(ports: int) -> None:
    pace = min(FAST, ports * SLOW)
    large_s = seconds("all_reduce", S, nodes(ports), Plan(dp=16))
    # 14 hops inside the nodes and one between them, each way
    assert large_s == pytest.approx(2 * (15 / 16 * S / pace + 14 * HOP + 10 * HOP), rel=1e-12)


@pytest.mark.parametrize("ports", [1, 2, 8])
def test_eight_groups_between_two_nodes_share_the_ports(ports: int) -> None:
    # tensor parallel fills the node, so each of the eight data-parallel pairs gets an eighth of its ports
    each_s = seconds("all_reduce", S, nodes(ports), Plan(tp=8, dp=2))
    assert each_s == pytest.approx(2 * (S / 2 / (ports * SLOW / 8) + 10 * HOP), rel=1e-12)


def test_four_members_inside_a_node_share_their_four_links_outward() -> None:
    # groups of 2 nodes x 4: half of the node's 8 ports carry one of its two rings
    large_s = seconds("all_gather", S, nodes(8), Plan(tp=2, dp=8))
    assert large_s == pytest.approx(7 / 8 * S / (4 * SLOW) + 6 * HOP + 10 * HOP, rel=1e-12)


def test_an_all_to_all_between_nodes_sends_out_what_is_not_for_the_node() -> None:
    difference_s = seconds("all_to_all", 2 * S, nodes(8), Plan(dp=16)) - seconds("all_to_all", S, nodes(8), Plan(dp=16))
    assert difference_s == pytest.approx(8 / 16 * S / SLOW, rel=1e-9)


def test_a_pipeline_send_between_nodes_uses_one_port_or_shares_it() -> None:
    # eight tensor ranks of a stage send at once: each its own port of eight, or an eighth of the only one
    own_s = seconds("send", S, nodes(8), Plan(tp=8, pp=2), "pipeline")
    shared_s = seconds("send", S, nodes(1), Plan(tp=8, pp=2), "pipeline")
    assert own_s == pytest.approx(10 * HOP + S / SLOW, rel=1e-12)
    assert shared_s == pytest.approx(10 * HOP + S / (SLOW / 8), rel=1e-12)
    # all eight stages of a node in a row: only the last sends outward, through a whole port, not through all eight
    alone_s = seconds("send", S, nodes(8), Plan(pp=16), "pipeline")
    assert alone_s == pytest.approx(10 * HOP + S / SLOW, rel=1e-12)


def test_a_group_inside_a_node_does_not_see_the_fabric() -> None:
    assert seconds("all_reduce", S, nodes(1), Plan(tp=8, dp=2), "tensor") == seconds("all_reduce", S, ALONE, Plan(dp=8))


# -- other links


def mesh(**changes: Any) -> tuple[Level, ...]:
    return (Level("mesh", "mesh", 8, 7 * 1e10, 0.0, link_bytes_per_s=1e10, **changes),)


@pytest.mark.parametrize("n", [2, 4, 8])
def test_a_small_group_of_a_full_mesh_reaches_only_the_links_among_its_members(n: int) -> None:
    rate = (n - 1) * 1e10
    assert seconds("all_gather", S, mesh(), Plan(dp=n)) == pytest.approx((n - 1) / n * S / rate, rel=1e-12)


def test_stated_rates_of_group_sizes_stand_in_for_the_links() -> None:
    levels = mesh(group_bytes_per_s=((2, 2e10), (4, 3e10), (8, 5e10)))
    for n, rate in ((2, 2e10), (4, 3e10), (8, 5e10)):
        assert seconds("all_gather", S, levels, Plan(dp=n)) == pytest.approx((n - 1) / n * S / rate, rel=1e-12)


def test_a_send_on_a_mesh_takes_the_links_between_a_pair() -> None:
    assert seconds("send", S, mesh(), Plan(pp=8), "pipeline") == pytest.approx(S / 1e10, rel=1e-12)
    double = mesh(group_bytes_per_s=((2, 2e10), (8, 5e10)))
    assert seconds("send", S, double, Plan(pp=8), "pipeline") == pytest.approx(S / 2e10, rel=1e-12)


@pytest.mark.parametrize(
    ("name", "pair"), [("dgx1-v100", 0.85 * 50e9), ("mi300x-8", 0.7 * 64e9), ("gaudi2-8", 0.85 * 37.5e9)]
)
def test_two_accelerators_of_a_known_mesh_exchange_over_their_own_links(name: str, pair: float) -> None:
    levels = load_cluster(name).levels
    more_s = seconds("send", 2 * S, levels, Plan(pp=8), "pipeline") - seconds("send", S, levels, Plan(pp=8), "pipeline")
    assert S / more_s == pytest.approx(pair, rel=1e-9)


LINKS = np.array(
    [
        [0, 1, 1, 2, 2, 0, 0, 0],
        [1, 0, 2, 1, 0, 2, 0, 0],
        [1, 2, 0, 2, 0, 0, 1, 0],
        [2, 1, 2, 0, 0, 0, 0, 1],
        [2, 0, 0, 0, 0, 1, 1, 2],
        [0, 2, 0, 0, 1, 0, 2, 1],
        [0, 0, 1, 0, 1, 2, 0, 2],
        [0, 0, 0, 1, 2, 1, 2, 0],
    ]
)
"""Links between each two GPUs of a DGX-1 with V100 (Li et al. 2019, arXiv 1903.04611: the hybrid cube mesh)."""


def test_the_halves_of_a_dgx_1_bound_its_all_to_all() -> None:
    assert np.array_equal(LINKS, LINKS.T)
    assert [*LINKS.sum(axis=0), *(LINKS > 0).sum(axis=0)] == [6] * 8 + [4] * 8
    halves = [list(half) for size in range(1, 5) for half in itertools.combinations(range(8), size)]
    narrowest = min(
        LINKS[np.ix_(half, rest)].sum() / (len(half) * len(rest))
        for half in halves
        for rest in [[gpu for gpu in range(8) if gpu not in half]]
    )
    levels = load_cluster("dgx1-v100").levels
    more_s = seconds("all_to_all", 2 * S, levels, Plan(dp=8)) - seconds("all_to_all", S, levels, Plan(dp=8))
    assert S / 8 / more_s == pytest.approx(narrowest * 0.85 * 25e9, rel=1e-3)
    # a group of four has its links for itself
    four_s = seconds("all_to_all", 2 * S, levels, Plan(dp=4)) - seconds("all_to_all", S, levels, Plan(dp=4))
    assert S / 4 / four_s == pytest.approx(4 / 3 * 0.85 * 25e9, rel=1e-9)


def torus(*dims: int, wrapped: bool = True) -> tuple[Level, ...]:
    size = int(np.prod(dims))
    return (
        Level("torus", "torus", size, 2 * len(dims) * 1e10, 0.0, dims=dims, link_bytes_per_s=1e10, wrapped=wrapped),
    )


def test_whole_wrapped_dimensions_give_rings_both_ways_that_work_at_once() -> None:
    # Jouppi et al. 2023 (TPU v4): six links of 3 dimensions; a line of a dimension uses one link
    def rate(levels: tuple[Level, ...], plan: Plan, group: str = "data") -> float:
        n = plan.dp
        return (n - 1) / n * S / seconds("all_gather", S, levels, plan, group)

    assert rate(torus(4, 4, 4), Plan(dp=64)) == pytest.approx(6e10)
    assert rate(torus(4, 4, 4), Plan(dp=16)) == pytest.approx(4e10)
    assert rate(torus(4, 4, 4), Plan(dp=4)) == pytest.approx(2e10)
    assert rate(torus(4, 4, 4), Plan(dp=2)) == pytest.approx(1e10)
    assert rate(torus(4, 4, 4, wrapped=False), Plan(dp=64)) == pytest.approx(3e10)
    assert rate(torus(8, 4), Plan(dp=4)) == pytest.approx(1e10)  # half of a dimension of eight is a line
    assert rate(torus(4, 4, 4), Plan(tp=4, dp=16)) == pytest.approx(4e10)  # the second and third dimension


def ways(one: int, other: int, length: int, ring: bool) -> list[list[int]]:
    """The shortest ways from one position of a ring or a line to another, as the positions they pass."""
    up = [(one + i) % length for i in range((other - one) % length + 1)]
    down = [(one - i) % length for i in range((one - other) % length + 1)]
    if not ring:
        return [up if other >= one else down]
    return [way for way in (up, down) if len(way) == min(len(up), len(down))]


def busiest_link(dims: tuple[int, ...], sends: Any, ring: bool) -> float:
    """Bytes on the busiest link, one direction, when each of `sends` (from, to, bytes) goes the shortest way through
    one dimension after the other, half of it each way round where both are as long."""
    load: dict[Any, float] = {}
    for one, other, sent in sends:
        for axis, length in enumerate(dims):
            found = ways(one[axis], other[axis], length, ring)
            for way in found:
                at = [(*other[:axis], position, *one[axis + 1 :]) for position in way]
                for link in zip(at, at[1:], strict=False):
                    load[link] = load.get(link, 0.0) + sent / len(found)
    return max(load.values())


def everyone(dims: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The positions of a torus by rank: the first dimension varies fastest."""
    return [tuple(reversed(position)) for position in itertools.product(*(range(length) for length in reversed(dims)))]


def swap(dims: tuple[int, ...]) -> list[Any]:
    """An all-to-all of everyone, S bytes per rank with its own share."""
    ranks = everyone(dims)
    return [(one, other, S / len(ranks)) for one in ranks for other in ranks if one != other]


@pytest.mark.parametrize("wrapped", [True, False])
@pytest.mark.parametrize("dims", [(2,), (3,), (4,), (5,), (8,), (9,), (4, 4), (8, 2), (2, 6), (4, 3, 5), (4, 4, 8)])
def test_an_all_to_all_on_a_torus_takes_as_long_as_its_busiest_link(dims: tuple[int, ...], wrapped: bool) -> None:
    plan = Plan(dp=int(np.prod(dims)))
    counted_s = busiest_link(dims, swap(dims), wrapped) / 1e10
    assert seconds("all_to_all", S, torus(*dims, wrapped=wrapped), plan) == pytest.approx(counted_s, rel=1e-12)


def test_an_all_to_all_on_a_part_of_a_torus_uses_the_links_of_that_part() -> None:
    line_s, ring_s = (busiest_link((4,), swap((4,)), ring) / 1e10 for ring in (False, True))
    assert line_s == 2 * ring_s
    assert seconds("all_to_all", S, torus(8, 4), Plan(dp=4)) == pytest.approx(line_s, rel=1e-12)
    assert seconds("all_to_all", S, torus(4, 4), Plan(dp=4)) == pytest.approx(ring_s, rel=1e-12)
    assert seconds("all_to_all", S, torus(8, 4), Plan(tp=8, dp=4)) == pytest.approx(ring_s, rel=1e-12)
    # a ring of four and a line of two of the second dimension
    assert seconds("all_to_all", S, torus(4, 4), Plan(dp=8)) == pytest.approx(
        max(ring_s, busiest_link((2,), swap((2,)), False) / 1e10), rel=1e-12
    )


@pytest.mark.parametrize(
    ("dims", "stride", "wrapped"),
    [((8,), 1, True), ((8,), 2, True), ((8,), 2, False), ((8,), 4, False), ((8, 4), 2, True), ((4, 4), 2, False),
     ((4, 4), 4, True), ((4, 4), 8, False), ((4, 8), 8, True)],
)  # fmt: skip
def test_a_send_on_a_torus_shares_the_links_that_it_passes(dims: tuple[int, ...], stride: int, wrapped: bool) -> None:
    # every rank sends to the next of its context group, `stride` ranks on
    ranks = everyone(dims)
    sends = [(one, ranks[(rank + stride) % len(ranks)], S) for rank, one in enumerate(ranks)]
    plan = Plan(tp=stride, cp=len(ranks) // stride)
    counted_s = busiest_link(dims, sends, wrapped) / 1e10
    assert seconds("send", S, torus(*dims, wrapped=wrapped), plan, "context") == pytest.approx(counted_s, rel=1e-12)


def test_a_ring_crosses_a_host_bridge_once_through_one_path() -> None:
    levels = (
        Level("bridge", "bridge", 2, 5e10, 0.0),
        Level("host", "host", 8, 5e9, 0.0, link_bytes_per_s=1.2e10),
    )
    assert seconds("all_gather", S, levels, Plan(dp=8)) == pytest.approx(7 / 8 * S / 1e10, rel=1e-12)
    narrow = (levels[0], replace(levels[1], link_bytes_per_s=8e9))
    assert seconds("all_gather", S, narrow, Plan(dp=8)) == pytest.approx(7 / 8 * S / 8e9, rel=1e-12)


def test_cards_that_all_send_to_all_meet_at_the_host_bridge() -> None:
    alone = (Level("host", "host", 8, 1e10, 0.0),)
    shared = (replace(alone[0], oversubscription=1.6),)
    assert seconds("all_to_all", S, shared, Plan(dp=8)) == pytest.approx(7 / 8 * S / (1e10 / 1.6), rel=1e-12)
    assert seconds("all_gather", S, shared, Plan(dp=8)) == seconds("all_gather", S, alone, Plan(dp=8))


# -- the links of the catalog

LINKED = sorted({preset for link in link_names() for preset in [curve.preset for curve in link_curves(link)]})
"""Presets whose links were fitted on published curves."""
PAYLOADS = [2.0**power for power in range(6, 36)]


def on_preset(collective: str, payload: float, preset: str, n: int) -> float:
    cluster = load_cluster(preset).part(n)
    return seconds(collective, payload, cluster.levels, Plan(dp=n), library=cluster.library)


@pytest.mark.parametrize("preset", LINKED)
def test_more_bytes_are_never_faster(preset: str) -> None:
    for collective, n in itertools.product(("all_reduce", "all_gather", "reduce_scatter", "all_to_all"), (2, 4, 8)):
        times = [on_preset(collective, payload, preset, n) for payload in PAYLOADS]
        assert times == sorted(times), (collective, n)


@pytest.mark.parametrize("preset", LINKED)
def test_larger_groups_are_never_faster_where_no_switch_adds(preset: str) -> None:
    """A switch that adds is left out: it takes 1 + 1/n of the payload, less in larger groups."""
    for collective, payload in itertools.product(("all_gather", "reduce_scatter", "all_to_all"), PAYLOADS):
        times = [on_preset(collective, payload, preset, n) for n in (2, 4, 8)]
        assert times == sorted(times), (collective, payload)


@pytest.mark.parametrize("preset", LINKED)
def test_an_all_reduce_is_no_faster_than_the_reduce_scatter_in_it(preset: str) -> None:
    for payload, n in itertools.product(PAYLOADS, (2, 4, 8)):
        assert on_preset("all_reduce", payload, preset, n) >= on_preset("reduce_scatter", payload, preset, n)


# -- the library


def test_hops_between_nodes_have_their_own_factor() -> None:
    inside = Protocol("P", 1.0, 2.0, 0.0, 0.0)
    between = replace(inside, network_hop_factor=7.0)
    for protocol, factor in ((inside, 2.0), (between, 7.0)):
        library = CollectiveLibrary("one", (protocol,))
        gather_s = seconds("all_gather", S, nodes(8), Plan(dp=16), library=library)
        assert gather_s == pytest.approx(15 / 16 * S / FAST + 2 * 14 * HOP + factor * 10 * HOP, rel=1e-9)


LL = Protocol("LL", 0.5, 1.0, 6.6e-6, 6.8e-6)
SIMPLE = Protocol("Simple", 1.0, 5.0, 8.4e-6, 14e-6)
NCCL = CollectiveLibrary("nccl", (LL, SIMPLE), tree_bandwidth_share=0.9)


@pytest.mark.parametrize("payload", [8.0, 1e4, 1e6, 1e8, 1e10])
@pytest.mark.parametrize("n", [16, 64, 512])
def test_an_all_reduce_takes_the_fastest_of_ring_and_tree_over_all_protocols(n: int, payload: float) -> None:
    levels = nodes(8, count=64)
    plan = Plan(dp=n)
    domains = n // 8
    hops_s = 2 * ((n - domains) * HOP + (domains - 1) * 10 * HOP)
    depth_s = 2 * (7 * HOP + np.log2(domains) * 10 * HOP)
    rate = min(FAST, 8 * SLOW)
    ways = []
    for protocol in (LL, SIMPLE):
        ring = 2 * (n - 1) / n * payload / (rate * protocol.bandwidth_share)
        ways.append(protocol.ring_base_s + protocol.hop_factor * hops_s + ring)
        tree = 2 * payload / (rate * protocol.bandwidth_share * 0.9)
        ways.append(protocol.tree_base_s + protocol.hop_factor * depth_s + tree)
    assert seconds("all_reduce", payload, levels, plan, library=NCCL) == pytest.approx(min(ways), rel=1e-12)


def test_a_tree_is_a_chain_through_the_domains_of_one_node() -> None:
    """No faster than the ring there: 26 us on eight RTX PRO 6000 for 1 KiB, twice the 15 us of half the hops
    (aiconfigurator, NCCL 2.29, 2025)."""
    levels = (replace(INNER, size=2), Level("host", "host", 8, SLOW, 3 * HOP))
    ring_only = replace(NCCL, tree_bandwidth_share=0.0)
    low = replace(NCCL, protocols=(replace(LL, tree_base_s=LL.ring_base_s),))
    once = replace(ring_only, protocols=low.protocols)
    for payload in (8.0, 1e6):
        times = [seconds("all_reduce", payload, levels, Plan(dp=8), library=each) for each in (low, once)]
        assert times[0] == times[1]


def test_trees_win_small_messages_on_many_ranks_and_rings_large_ones_on_few() -> None:
    ring_only = replace(NCCL, tree_bandwidth_share=0.0)
    levels = nodes(8, count=64)
    small_s = [seconds("all_reduce", 1e4, levels, Plan(dp=512), library=each) for each in (NCCL, ring_only)]
    assert small_s[0] < small_s[1] / 5
    large_s = [seconds("all_reduce", 1e10, levels, Plan(dp=16), library=each) for each in (NCCL, ring_only)]
    assert large_s[0] == large_s[1]


def test_a_switch_that_adds_carries_the_data_once() -> None:
    adds = (replace(INNER, in_switch_reduction=True, in_switch_bandwidth_share=0.8),)
    large_s = seconds("all_reduce", S, adds, Plan(dp=8)) - seconds("all_reduce", S / 2, adds, Plan(dp=8))
    # each rank sends all of it once and receives the sum, and reduces its eighth: 9/8 instead of 2 x 7/8
    assert large_s == pytest.approx(9 / 8 * S / 2 / (0.8 * FAST), rel=1e-9)
    assert seconds("all_gather", S, adds, Plan(dp=8)) == seconds("all_gather", S, ALONE, Plan(dp=8))


def test_a_switch_adds_for_a_group_that_sits_in_it_alone_only() -> None:
    inner = replace(INNER, in_switch_reduction=True, in_switch_bandwidth_share=1.0)
    levels = (inner, nodes(8)[1])
    assert seconds("all_reduce", S, levels, Plan(dp=16)) == seconds("all_reduce", S, nodes(8), Plan(dp=16))


def test_of_a_pair_of_ranks_a_switch_that_adds_saves_nothing() -> None:
    adds = (replace(INNER, in_switch_reduction=True, in_switch_bandwidth_share=1.0),)
    assert seconds("all_reduce", S, adds, Plan(dp=2)) == seconds("all_reduce", S, ALONE, Plan(dp=2))


def test_a_faster_level_or_a_lower_latency_is_never_slower() -> None:
    random = np.random.default_rng(5)
    for _ in range(200):
        plan = Plan(tp=int(random.choice([1, 2, 8])), dp=2)
        plan = plan.with_(dp=16 // plan.tp)
        collective = str(random.choice(["all_reduce", "all_gather", "all_to_all"]))
        payload = float(10 ** random.uniform(1, 9))
        levels = list(nodes(int(random.choice([1, 8]))))
        before_s = seconds(collective, payload, tuple(levels), plan, library=NCCL)
        index = int(random.integers(2))
        level = levels[index]
        levels[index] = replace(level, bytes_per_s=level.bytes_per_s * 1.5, latency_s=level.latency_s / 2)
        assert seconds(collective, payload, tuple(levels), plan, library=NCCL) <= before_s * (1 + 1e-12)
