"""Tables that were pasted through mail, chats and terminals come back as what was printed."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from printed_topology import MANGLES, NEAREST_FIRST, nested, renumbered, table

from meshwright.sources.accelerators import load_accelerator
from meshwright.sources.topology.hierarchy import Hierarchy, build_hierarchy
from meshwright.sources.topology.printout import read_printout
from meshwright.spec.errors import InputError

A100 = load_accelerator("a100-80g")
NAMES = {"PIX": "pcie-switch", "PXB": "pcie-switches", "PHB": "host-bridge", "NODE": "socket", "SYS": "host"}


@st.composite
def hierarchies(draw: st.DrawFn) -> tuple[list[int], list[str]]:
    """(factors, classes) of nested domains, innermost first: 2 to 16 GPUs."""
    classes = [each for each in NEAREST_FIRST if draw(st.booleans())]
    if not classes or draw(st.booleans()):
        classes.insert(0, "NV12")
    factors: list[int] = []
    for _ in classes:
        total = 1
        for factor in factors:
            total *= factor
        if total * 2 > 16:
            break
        factors.append(draw(st.integers(2, min(4, 16 // total))))
    return factors, classes[: len(factors)]


def read(text: str) -> Hierarchy:
    return build_hierarchy(read_printout(text, "paste"), A100, "paste")


def read_or_refused(text: str) -> Hierarchy | InputError:
    try:
        return read(text)
    except InputError as error:
        return error


def shape(hierarchy: Hierarchy) -> list[tuple[str, str, int]]:
    return [(level.name, level.kind, level.size) for level in hierarchy.levels]


def expected(factors: list[int], classes: list[str]) -> list[tuple[str, str, int]]:
    found, size = [], 1
    for factor, each in zip(factors, classes, strict=True):
        size *= factor
        found.append(("nvlink", "switch", size) if each == "NV12" else (NAMES[each], "host", size))
    return found


@pytest.mark.parametrize("mangle", MANGLES)
@settings(max_examples=25, deadline=None)
@given(hierarchy=hierarchies(), adapters=st.integers(0, 3), affinity=st.booleans())
def test_a_mangled_table_reads_as_the_hierarchy_that_was_printed(
    mangle: str, hierarchy: tuple[list[int], list[str]], adapters: int, affinity: bool
) -> None:
    factors, classes = hierarchy
    cells = nested(factors, classes)
    text = table(cells, [["NODE"] * len(cells)] * adapters, affinity)
    built = read(MANGLES[mangle](text))
    assert shape(built) == expected(factors, classes)
    assert built.rank_order == tuple(range(len(cells)))


@settings(deadline=None)
@given(hierarchy=hierarchies(), seed=st.integers(0, 2**16), mangle=st.sampled_from(sorted(MANGLES)))
def test_neighbours_are_found_whatever_their_numbers(
    hierarchy: tuple[list[int], list[str]], seed: int, mangle: str
) -> None:
    factors, classes = hierarchy
    order = list(range(len(nested(factors, classes))))
    random.Random(seed).shuffle(order)
    built = read(MANGLES[mangle](table(renumbered(nested(factors, classes), order))))
    assert shape(built) == expected(factors, classes)
    # in rank order, the table is the nested one again
    place = [order[gpu] for gpu in built.rank_order]
    assert renumbered(nested(factors, classes), place) == nested(factors, classes)


@settings(deadline=None)
@given(hierarchy=hierarchies(), data=st.data())
def test_a_row_that_is_missing_is_read_from_its_mirror_image(
    hierarchy: tuple[list[int], list[str]], data: st.DataObject
) -> None:
    factors, classes = hierarchy
    cells = nested(factors, classes)
    lines = table(cells).splitlines()
    del lines[data.draw(st.integers(1, len(cells)))]
    built = read("\n".join(lines))
    assert shape(built) == expected(factors, classes)


@settings(deadline=None)
@given(hierarchy=hierarchies(), width=st.integers(8, 160))
def test_a_table_whose_right_side_was_cut_off_is_read_from_what_is_left(
    hierarchy: tuple[list[int], list[str]], width: int
) -> None:
    """Half the table is enough, since the other half mirrors it; where less is left, the answer is an error or the
    same."""
    factors, classes = hierarchy
    text = "\n".join(line.expandtabs(8)[:width] for line in table(nested(factors, classes)).splitlines())
    found = read_or_refused(text)
    assert isinstance(found, InputError) or shape(found) == expected(factors, classes)


@settings(max_examples=300, deadline=None)
@given(hierarchy=hierarchies(), data=st.data(), affinity=st.booleans(), header=st.booleans())
def test_damage_is_mended_from_the_rest_or_refused_by_name_and_never_guessed(
    hierarchy: tuple[list[int], list[str]], data: st.DataObject, affinity: bool, header: bool
) -> None:
    factors, classes = hierarchy
    cells = nested(factors, classes)
    count = len(cells)
    rows = [line.split() for line in table(cells, affinity=affinity, header=header).splitlines()]
    first = len(rows) - count
    contradicted = data.draw(st.booleans())  # a wrong cell is told from a right one by its mirror image only
    for _ in range(1 if contradicted else data.draw(st.integers(1, 3))):
        row = rows[first + data.draw(st.integers(0, count - 1))]
        place = data.draw(st.integers(1, count))
        if place >= len(row):
            continue
        if contradicted:
            row[place] = row[place] if row[place] == "X" else data.draw(st.sampled_from(["PIX", "SYS", "NV12"]))
        elif data.draw(st.booleans()):
            del row[place]
        else:
            row[place] = "N?"
    text = "\n".join(" ".join(row) for row in rows)
    found = read_or_refused(text)
    if isinstance(found, InputError):
        assert "GPU" in str(found)  # it says where
    else:
        assert shape(found) == expected(factors, classes)
