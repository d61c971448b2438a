"""Bars in text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshwright.show.bars import EMPTY, bar, gauge


@pytest.mark.parametrize(("share", "length"), [(0, 0), (1e-9, 1), (0.5, 20), (1, 40), (1.5, 40)])
def test_a_bar_is_as_long_as_its_share_and_whatever_is_above_0_shows(share: float, length: int) -> None:
    assert len(bar(share, 40, "")) == length


@given(st.lists(st.floats(0, 1e12), max_size=9), st.floats(1, 1e12), st.integers(1, 100))
def test_a_gauge_is_always_as_wide_as_it_is_told(parts: list[float], whole: float, width: int) -> None:
    assert len(gauge([(part, "") for part in parts], whole, width)) == width


def test_a_gauge_leaves_empty_what_is_free() -> None:
    assert gauge([(30, ""), (20, "")], 100, 10).plain.count(EMPTY) == 5
