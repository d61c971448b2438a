"""Predictions judged by measurements, as text, as JSON and as rows."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import pytest
from measured import rated, sized, timed
from rich.console import Console

from meshwright.measure.comparison import Comparison
from meshwright.measure.report import Validation, judged
from meshwright.show.document import to_json
from meshwright.show.validation import signed, validation_view
from meshwright.show.validation_document import validation_document
from meshwright.show.validation_rows import COLUMNS, rows_csv
from meshwright.spec.errors import InputError

ROWS: list[Comparison] = [
    timed(10, 11, source="first", row_id="T1", plan={"micro_batch": 1}),
    timed(20, 16, source="first", row_id="T2", plan={"micro_batch": 2}, flags="noisy, by its authors"),
    timed(40, 60, source="first", row_id="T3", plan={"micro_batch": 4}),
    timed(30, source="first", row_id="T4"),
    timed(10, 13, source="second", row_id="T5", plan={"micro_batch": 8}, tp="1"),
    sized(40, 50, source="second"),
    sized(None, 90, oom=True, source="second"),
]


@pytest.fixture
def validation() -> Validation:
    return judged(ROWS, ["file.csv"])


def text_of(validation: Validation, width: int = 100) -> str:
    console = Console(width=width, file=io.StringIO(), record=True, highlight=False, emoji=False)
    console.print(validation_view(validation, width))
    return console.export_text()


def line_of(text: str, section: str, start: str) -> list[str]:
    """The words of the first line below a section's title that starts so."""
    below = text.partition(section)[2].splitlines()
    return next(line.split() for line in below if line.strip().startswith(start))


def test_each_source_has_its_line_and_all_of_them_have_two(validation: Validation) -> None:
    """Errors of the first: 10 %, 20 %, 50 %; of the second: 30 %. Measured in range: only 10 in 9.9 to 12.1."""
    text = text_of(validation)
    step = "Step time, predicted against measured"
    # source, rows, predicted, median, mean, 90th percentile (20 + 0.8 × 30), bias, in range
    assert line_of(text, step, "first") == ["first", "4", "3", "20%", "27%", "44%", "+10%", "33%"]
    assert line_of(text, step, "second") == ["second", "1", "1", "30%", "30%", "30%", "+30%", "0%"]
    assert line_of(text, step, "all rows")[2:5] == ["5", "4", "25%"]
    assert line_of(text, step, "mean over sources")[3:] == ["5", "4", "25%", "28%", "37%", "±20%", "17%"]


def test_choices_memory_and_rows_are_told(validation: Validation) -> None:
    text = text_of(validation)
    # one job of three layouts, the fastest is found; all three pairs are far apart and in order
    assert line_of(text, "Choices between layouts", "first") == ["first", "1", "0%", "0%", "0%", "100%", "3", "100%"]
    assert line_of(text, "Peak memory", "second") == ["second", "1", "1", "25%", "25%", "25%", "+25%"]
    assert line_of(text, "Does it fit", "second") == ["second", "2", "2", "100%", "1", "1", "100%"]
    worst = line_of(text, "Furthest off", "T3")
    assert worst[-2:] == ["+50%", "compute"]
    assert worst[-6:-2] == ["40.0", "s", "60.0", "s"]
    assert "the layout is not stated: 1 value" in text
    assert "first: noisy, by its authors (T2)" in text


@pytest.mark.parametrize("width", [80, 100, 140])
def test_no_line_is_wider_than_the_screen(validation: Validation, width: int) -> None:
    text = text_of(validation, width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text


def test_one_source_needs_no_line_for_all_of_them() -> None:
    text = text_of(judged(ROWS[:4], ["file.csv"]))
    assert "mean over sources" not in text
    assert "all rows" not in text
    assert "Peak memory" not in text


def test_columns_without_any_figure_are_left_out() -> None:
    """No range of memory is stated, and no run was out of memory."""
    text = text_of(judged([sized(40, 50)], ["file.csv"]))
    assert "in range" not in text
    assert "out of memory" not in text
    assert line_of(text, "Does it fit", "a") == ["a", "1", "1", "100%"]


def test_a_bias_has_its_sign() -> None:
    assert [signed(0.051), signed(-0.2), signed(None)] == ["+5.1%", "-20%", "-"]


def test_the_document_holds_the_same_figures_in_si_units(validation: Validation) -> None:
    document = json.loads(to_json(validation_document(validation)))
    assert (document["rows"], document["values"], document["predicted"]) == (7, 7, 6)
    first, second = document["step_time"]["sources"]
    assert (first["rows"], first["covered"], first["coverage"]) == (4, 3, 0.75)
    assert first["median_error"] == pytest.approx(0.2)
    assert second["bias"] == pytest.approx(0.3)
    assert document["step_time"]["mean_over_sources"]["bias"] == pytest.approx(0.2)
    assert document["possible"]["all_runs"] | {"name": ""} == {
        "name": "", "ran_possible": 5, "ran_impossible": 0, "oom_possible": 0, "oom_impossible": 1,
        "ran_called_possible": 1, "oom_called_impossible": 1,
    }  # fmt: skip
    (sweep,) = document["choices"]["sweeps"]
    assert sweep["chosen"]["plan"]["micro_batch"] == sweep["best"]["plan"]["micro_batch"] == 1
    assert [layout["measured_step_time_s"] for layout in sweep["layouts"]] == [10, 20, 40]
    memory = document["comparisons"][5]
    assert memory["metric"] == "peak_bytes"
    assert (memory["measured"], memory["predicted"]) == (40 * 2**30, 50 * 2**30)
    assert document["comparisons"][3]["reason"] == "the layout is not stated"
    assert document["comparisons"][3]["predicted"] is None
    assert document["warnings"] == [
        {"kind": "flagged", "source": "first", "rows": ["T2"], "message": "noisy, by its authors"}
    ]
    assert document["not_predicted"] == [{"reason": "the layout is not stated", "values": 1}]


def test_the_error_of_a_rate_is_also_given_as_that_of_the_time() -> None:
    document = validation_document(judged([rated(1000, 1250)], ["file.csv"]))
    (row,) = document["comparisons"]
    assert row["metric"] == "tokens_per_s_per_gpu"
    assert row["error"] == pytest.approx(0.25)
    assert row["step_time_error"] == pytest.approx(-0.2)


def test_any_memory_is_in_bytes() -> None:
    states = replace(sized(2, 3), metric="model_states_gib")
    row = validation_document(judged([states], ["file.csv"]))["comparisons"][0]
    assert (row["metric"], row["measured"], row["step_time_error"]) == ("model_states_bytes", 2 * 2**30, None)


def test_the_rows_have_the_columns_of_the_contract(validation: Validation) -> None:
    assert COLUMNS[:8] == ("row_id", "metric", "predicted", "low", "high", "measured", "error", "reason")
    lines = list(csv.DictReader(io.StringIO(rows_csv(validation))))
    assert len(lines) == 7
    assert tuple(lines[0]) == COLUMNS
    assert lines[0]["row_id"] == "T1"
    assert [float(lines[0][name]) for name in COLUMNS[2:7]] == pytest.approx([11, 9.9, 12.1, 10, 0.1])
    assert lines[0]["dominating"] == "compute"
    assert [lines[3][name] for name in COLUMNS[1:8]] == [
        "step_time_s", "", "", "", "30", "", "the layout is not stated"
    ]  # fmt: skip
    assert [lines[5][name] for name in ("metric", "measured", "predicted")] == ["peak_gib", "40", "50"]


def test_texts_with_commas_and_quotes_stay_in_their_cell() -> None:
    odd = replace(ROWS[3], reason='tp is "two", or\n2')
    lines = list(csv.DictReader(io.StringIO(rows_csv(judged([ROWS[0], odd], ["file.csv"])))))
    assert lines[1]["reason"] == 'tp is "two", or\n2'


def test_nothing_to_judge_is_an_input_error() -> None:
    with pytest.raises(
        InputError, match="file.csv: none of its 1 values can be predicted; 1 of them: the layout is not"
    ):
        judged([timed(30)], ["file.csv"])
    with pytest.raises(InputError, match="file.csv: there is no measurement in it"):
        judged([], ["file.csv"])


def test_one_source_can_be_kept(validation: Validation) -> None:
    assert {each.row.source for each in judged(ROWS, ["file.csv"], "second").comparisons} == {"second"}
    with pytest.raises(InputError, match="no source is called 'secund'; did you mean second?"):
        judged(ROWS, ["file.csv"], "secund")
    with pytest.raises(InputError, match="the sources are first, second"):
        judged(ROWS, ["file.csv"], "zzz")


def test_a_validation_says_what_it_is(validation: Validation) -> None:
    assert repr(validation) == "<Validation of file.csv: 4 of 5 rows, median error 25.0%>"
