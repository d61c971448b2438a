"""Cells as numbers, words and years; what isn't one costs its row alone."""

from __future__ import annotations

import pytest

from meshwright.measure.cells import flag, number, stated, whole, year
from meshwright.spec.errors import InputError


@pytest.mark.parametrize(("text", "value"), [("8", 8), ("8.0", 8), ("1e3", 1000)])
def test_a_whole_number_may_be_written_as_a_table_program_does(text: str, value: int) -> None:
    assert whole({"tp": text}, "tp") == value


def test_an_empty_cell_is_not_stated() -> None:
    assert whole({}, "tp") is None
    assert number({}, "step_time_s") is None
    assert flag({}, "sp") is None


@pytest.mark.parametrize(
    ("column", "text", "nearest"),
    [("tp", "0", "1"), ("tp", "-3", "1"), ("tp", "1.5", "2"), ("hidden", "4,096", "4096"), ("layers", "1e12", "10000"),
     ("gpus_total", "1e9", "1000000")],
)  # fmt: skip
def test_a_wrong_count_names_the_nearest_that_works(column: str, text: str, nearest: str) -> None:
    with pytest.raises(InputError, match=f"{column} is .*must be a whole number") as caught:
        whole({column: text}, column)
    assert caught.value.fix == f"the nearest that works is {nearest}"


@pytest.mark.parametrize("text", ["x", "nan", "inf", "0x10", "🙂", "1e400"])
def test_text_is_no_number(text: str) -> None:
    for read in (whole, number):
        with pytest.raises(InputError, match="hidden is"):
            read({"hidden": text}, "hidden")


@pytest.mark.parametrize("text", ["0", "-1", "1e30"])
def test_a_measured_number_is_above_0_and_of_this_world(text: str) -> None:
    with pytest.raises(InputError, match="above 0"):
        number({"step_time_s": text}, "step_time_s")


@pytest.mark.parametrize(("text", "value"), [("yes", True), ("TRUE", True), ("1", True), ("No", False), ("off", False)])
def test_yes_and_no(text: str, value: bool) -> None:
    assert flag({"sp": text}, "sp") is value


def test_a_flag_is_nothing_else() -> None:
    with pytest.raises(InputError, match="yes or no"):
        flag({"sp": "maybe"}, "sp")


@pytest.mark.parametrize(
    ("text", "value"),
    [("2024-12", 2024), ("NeMo 24.07", 2024), ("2023-05..07 table (torch 1.13/2.0-era)", 2023), ("24.13", None),
     ("", None)],
)  # fmt: skip
def test_the_year_of_a_measurement(text: str, value: int | None) -> None:
    assert year({"date": text}) == value


@pytest.mark.parametrize("text", ["(not stated; 8 GPUs)", "not stated (likely 3200Gbps/node)", "Unknown", "n/a", "?"])
def test_words_for_not_stated(text: str) -> None:
    assert stated({"gpu": text}, "gpu") == ""


def test_a_stated_text_is_kept() -> None:
    assert stated({"gpu": "A100-SXM-80GB"}, "gpu") == "A100-SXM-80GB"


@pytest.mark.parametrize(
    ("text", "nearest"),
    [("5,2", "5.2"), ("1,024.5", "1024.5"), ("1.2 s", "1.2"), ("42%", "42"), ("soon", ""), ("-3", "")],
)
def test_a_wrong_number_names_what_was_meant(text: str, nearest: str) -> None:
    with pytest.raises(InputError, match="must be a number above 0") as caught:
        number({"step_time_s": text}, "step_time_s")
    assert caught.value.fix == (f"the nearest that works is {nearest}" if nearest else "")
