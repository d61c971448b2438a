"""Rings over point-to-point links."""

from __future__ import annotations

import pytest

from meshwright.sources.topology.rings import grouped, pair_share, ring_links, split


def complete(count: int, links: int = 1) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(0 if a == b else links for b in range(count)) for a in range(count))


def ring(count: int) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(int((a - b) % count in (1, count - 1)) for b in range(count)) for a in range(count))


@pytest.mark.parametrize("count", [3, 4, 5, 6, 7, 8])
def test_a_complete_graph_holds_half_as_many_cycles_as_each_member_has_neighbours(count: int) -> None:
    """Walecki's construction (Lucas, Récréations mathématiques, 1892): (n - 1) // 2 cycles that share no edge."""
    assert ring_links(complete(count), tuple(range(count))) == 2 * ((count - 1) // 2)


def test_two_gpus_use_all_links_between_them() -> None:
    assert ring_links(complete(2, 12), (0, 1)) == 12


def test_twice_the_links_carry_twice_the_rings() -> None:
    assert ring_links(complete(4, 2), (0, 1, 2, 3)) == 2 * 3  # six links at each GPU make three cycles


def test_a_chain_has_no_ring() -> None:
    chain = ((0, 1, 0), (1, 0, 1), (0, 1, 0))
    assert ring_links(chain, (0, 1, 2)) == 0


CUBE = (  # the hybrid cube mesh of a DGX-1 with V100 (Li et al. 2019, arXiv 1903.04611), as one real machine prints it
    (0, 1, 1, 2, 2, 0, 0, 0),
    (1, 0, 2, 1, 0, 2, 0, 0),
    (1, 2, 0, 2, 0, 0, 1, 0),
    (2, 1, 2, 0, 0, 0, 0, 1),
    (2, 0, 0, 0, 0, 1, 1, 2),
    (0, 2, 0, 0, 1, 0, 2, 1),
    (0, 0, 1, 0, 1, 2, 0, 2),
    (0, 0, 0, 1, 2, 1, 2, 0),
)


def test_the_cube_mesh_carries_six_rings_over_all_eight_and_four_over_a_group_of_four() -> None:
    """NCCL's rings reach 150 GB/s on a DGX-1 with V100: six links of 25 GB/s (NVIDIA, 2018)."""
    assert ring_links(CUBE, tuple(range(8))) == 6
    assert ring_links(CUBE, (0, 1, 2, 3)) == 4
    assert ring_links(CUBE, (4, 5, 6, 7)) == 4


def test_the_two_groups_of_four_of_the_cube_mesh_are_its_halves_and_double_links_its_pairs() -> None:
    order = grouped(CUBE, tuple(range(8)))
    assert {frozenset(order[:4]), frozenset(order[4:])} == {frozenset({0, 1, 2, 3}), frozenset({4, 5, 6, 7})}
    assert all(CUBE[order[i]][order[i + 1]] == 2 for i in range(0, 8, 2))


def test_neighbours_by_number_win_a_tie() -> None:
    assert split(complete(4), (0, 1, 2, 3), 2) == ((0, 1), (2, 3))
    assert grouped(complete(8), tuple(range(8))) == tuple(range(8))


def test_the_tightest_cut_shares_its_links_among_the_pairs_across_it() -> None:
    assert pair_share(complete(6, 3)) == 3
    assert pair_share(ring(8)) == 2 / 16
    assert pair_share(CUBE) == 6 / 16  # six links between the groups of four
