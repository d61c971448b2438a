"""The tables of the guide are written by its script, not by hand."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def tables(repository: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(repository / "docs"))
    monkeypatch.delitem(sys.modules, "guide_tables", raising=False)
    import guide_tables

    return guide_tables


def test_every_table_has_its_place_and_every_place_its_table(tables) -> None:
    places = [place["name"] for place in tables.PLACE.finditer(tables.GUIDE.read_text(encoding="utf-8"))]
    assert sorted(places) == sorted(tables.TABLES)


def test_a_table_is_replaced_and_the_text_around_it_kept(tables, monkeypatch: pytest.MonkeyPatch) -> None:
    def rows() -> Iterator[list[str]]:
        yield ["a", "b"]
        yield ["1", "2"]

    monkeypatch.setitem(tables.TABLES, "small", rows)
    expected = "Before.\n\n<!-- table: small -->\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n\nAfter.\n"
    for written in ("", "\n", "\n| old |\n|---|\n| row |\n\n"):
        assert tables.refresh(f"Before.\n\n<!-- table: small -->\n{written}After.\n") == expected
    assert tables.refresh(expected) == expected


def test_the_table_of_nvlink_says_what_the_arithmetic_says(tables) -> None:
    """5 GB at 600 and at 300 GB/s, and 1.75 times as much at 300."""
    _, both, one, ideal, _ = tables.nvlink()
    assert [row[-1] for row in (both, one, ideal)] == ["8.33 ms", "16.7 ms", "29.2 ms"]


def test_the_table_of_states_says_what_fits(tables) -> None:
    """Bytes per parameter by hand: 18, 12, 10, 10, 6 (and the host's), 12, 2 + 16 / 2, 6 + 12 / 8 and 18 / 8, of 6.74e9
    parameters; 80 GB hold about 11 of them beside the activations."""
    _, *rows = tables.states()
    assert [row[-1] for row in rows] == ["no", "no", "yes", "yes", "yes", "no", "yes", "yes", "yes"]
