"""Numbers as people read them."""

from __future__ import annotations

import pytest

from meshwright.show import units


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.012345, "0.0123"),
        (1.357, "1.36"),
        (13.57, "13.6"),
        (135.7, "136"),
        (9.999, "10.0"),
        (12345.6, "12,346"),
    ],
)
def test_three_digits_and_never_fewer_than_the_whole_part(value: float, text: str) -> None:
    assert units.digits(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 s"),
        (13.57, "13.6 s"),
        (0.9999, "1.00 s"),
        (0.04567, "45.7 ms"),
        (4.5e-6, "4.50 µs"),
        (3e-9, "3.00 ns"),
        (150_039, "41.7 h"),
    ],
)
def test_a_time_has_the_unit_that_suits_it(value: float, text: str) -> None:
    assert units.seconds(value) == text


def test_times_below_one_another_have_one_unit() -> None:
    write = units.common_seconds(12.3)
    assert [write(value) for value in (12.3, 0.5, 0.001, 0)] == ["12.30 s", "0.50 s", "<0.01 s", "0.00 s"]
    assert units.common_seconds(0.018)(0.0004) == "0.40 ms"


def test_a_range_has_its_unit_once() -> None:
    assert units.seconds_range(11.6, 17.0) == "11.6 to 17.0 s"
    assert units.seconds_range(0.9, 1.1) == "900 ms to 1.10 s"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (70_553_706_496, "70.6 B"),
        (124_439_808, "124 M"),
        (15e12, "15 T"),
        (4096, "4,096"),
        (41_000, "41 k"),
        (0.5, "0.500"),
    ],
)
def test_a_count_has_the_letter_of_its_size(value: float, text: str) -> None:
    assert units.count(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(86400.0 * 12.34, "12.3 days"), (86400.0, "1.00 day"), (3600 * 5.0, "5.00 hours"), (86400 * 800.0, "2.19 years"),
     (90.0, "1.50 minutes"), (30.0, "30.0 s")],
)  # fmt: skip
def test_a_run_has_the_unit_that_suits_it(value: float, text: str) -> None:
    assert units.duration(value) == text


def test_memory_is_in_powers_of_two_and_traffic_in_powers_of_ten() -> None:
    assert units.gib(80 * 2**30) == "80.0 GiB"
    assert units.gib(45 * 2**20) == "45 MiB"
    assert units.traffic(67_108_864) == "67.1 MB"
    assert units.rate(300e9) == "300 GB/s"
    assert units.rate(1.5625e9) == "1.56 GB/s"
    assert units.flops(312e12) == "312 TFLOP/s"


@pytest.mark.parametrize(
    ("share", "text"), [(0, "0%"), (0.0001, "<0.1%"), (0.016, "1.6%"), (0.456, "46%"), (1, "100%"), (52.2, "52×")]
)
def test_a_share_has_tenths_below_ten_percent(share: float, text: str) -> None:
    assert units.percent(share) == text
