"""`meshwright validate`: from files of measurements to the answer, whole."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path

import pytest

import meshwright as mw

COLUMNS = ("row_id", "metric", "predicted", "low", "high", "measured", "error", "reason")
OWN = {
    "row_id": "mine", "model": "gpt2", "seq_len": "1024", "gpu": "A100-SXM-80GB", "gpus_total": "8", "tp": "1",
    "pp": "1", "dp": "8", "micro_batch": "8", "global_batch_seqs": "512", "dtype": "bf16", "step_time_s": "1.5",
}  # fmt: skip


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(*rows: dict[str, str], name: str = "runs.csv") -> str:
    """A file of rows that have the same columns, each OWN with what is given here."""
    lines = [OWN | row for row in rows]
    with Path(name).open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, list(dict.fromkeys(column for line in lines for column in line)))
        table.writeheader()
        table.writerows(lines)
    return name


def read(name: str) -> list[dict[str, str]]:
    with Path(name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_a_run_of_ones_own_is_predicted_as_estimate_predicts_its_plan(run, answer) -> None:
    """The command and the API that prices a plan must not differ."""
    file = write({})
    (row,) = [each for each in answer(f"validate {file}")["comparisons"] if each["metric"] == "step_time_s"]
    assert row["row_id"] == "mine"
    assert row["measured"] == 1.5
    assert row["predicted"] > 0
    assert row["low"] < row["predicted"] < row["high"]
    assert row["error"] == pytest.approx(row["predicted"] / 1.5 - 1)
    (same,) = [each for each in mw.validate(file).comparisons if each.metric == "step_time_s"]
    assert same.estimate is not None
    plan, model = same.estimate.plan, same.estimate.model
    assert (plan.dp, plan.tp, plan.micro_batch) == (8, 1, 8)
    assert model.num_parameters == mw.load_model("gpt2").num_parameters
    again = mw.estimate(model, same.estimate.cluster, same.estimate.workload, plan, same.estimate.software)
    assert row["predicted"] == pytest.approx(again.step_time_s)
    assert row["dominating"] == again.binding


def test_the_rows_are_written_with_the_columns_of_the_contract(run) -> None:
    """A model shape that nobody knows has no prediction, and its row says why."""
    file = write({}, {"row_id": "odd", "model": "nobody-knows-13b"})
    done = run(f"validate {file} --out rows.csv")
    assert done.exit_code == 0, done.stderr
    assert "the rows are in rows.csv" in done.stderr
    rows = {row["row_id"]: row for row in read("rows.csv") if row["metric"] == "step_time_s"}
    assert tuple(next(iter(rows.values())))[:8] == COLUMNS
    mine, odd = rows["mine"], rows["odd"]
    assert float(mine["error"]) == pytest.approx(float(mine["predicted"]) / float(mine["measured"]) - 1, abs=1e-6)
    assert mine["reason"] == ""
    assert odd["predicted"] == odd["low"] == odd["high"] == odd["error"] == ""
    assert "nobody-knows-13b" in odd["reason"]
    assert float(odd["measured"]) == 1.5


def test_rows_that_cannot_be_predicted_lower_the_coverage(answer) -> None:
    """Their measured value needs no prediction to be read, whether it is a time or a rate."""
    rate = {"model": "nobody-knows-13b", "step_time_s": "", "tokens_per_s_per_gpu": "1000"}
    file = write({}, {"row_id": "b", "model": "nobody-knows-13b"}, {"row_id": "c", **rate})
    document = answer(f"validate {file}")
    assert document["step_time"]["all_rows"]["coverage"] == pytest.approx(1 / 3)
    assert [(row["metric"], row["measured"]) for row in document["comparisons"][1:]] == [
        ("step_time_s", 1.5), ("tokens_per_s_per_gpu", 1000)
    ]  # fmt: skip


def test_names_of_any_length_and_content_stay_in_the_table(run) -> None:
    file = write({"source_id": "s" * 300, "row_id": "[red]r[/red]"}, {"source_id": "two [bold]", "flags": "[/]"})
    for width in (80, 140):
        done = run(f"validate {file}", width)
        assert done.exit_code == 0, done.output
        assert max(map(len, done.stdout.splitlines())) <= width
        assert done.stdout.replace("\n", "").replace(" ", "").count("s" * 40)
        assert "[red]r[/red]" in done.stdout
        assert "two [bold]" in done.stdout


def test_a_text_of_any_length_is_cut_on_the_screen_and_whole_in_the_document(run, answer) -> None:
    file = write({"flags": "f" * 50_000})
    assert len(run(f"validate {file}").stdout) < 5_000
    assert answer(f"validate {file}")["warnings"][0]["message"] == "f" * 50_000


def test_columns_may_have_their_other_names(answer) -> None:
    """In the checks of the data as well."""
    first = answer(f"validate {write({'grad_accum': '2'})}")
    text = Path("runs.csv").read_text()
    Path("other.csv").write_text(text.replace("gpus_total", "GPUs").replace("global_batch_seqs", "global_batch"))
    second = answer("validate other.csv")
    assert first["comparisons"] == second["comparisons"]
    assert [each["kind"] for each in second["warnings"]] == ["batch"]  # 8 × 8 × 2 is not 512


def test_every_row_is_answered_for(run) -> None:
    """One line for each row and metric, and no row lost, whatever is wrong with it."""
    odd = [{"row_id": f"r{n}", **cells} for n, cells in enumerate(
        [{}, {"tp": "3"}, {"gpu": "abacus"}, {"micro_batch": ""}, {"dp": ""}, {"seq_len": ""}, {"step_time_s": ""}]
    )]  # fmt: skip
    done = run(f"validate {write(*odd)} --out rows.csv")
    assert done.exit_code == 0, done.stderr
    rows = read("rows.csv")
    assert {row["row_id"] for row in rows} == {row["row_id"] for row in odd}
    assert len({(row["row_id"], row["metric"]) for row in rows}) == len(rows)
    for row in rows:
        assert bool(row["predicted"]) != bool(row["reason"]), row


def test_a_choice_between_layouts_is_judged(answer) -> None:
    """Three layouts of one job: the prediction ranks them, and the regret is that of the one it puts first."""
    layouts = [("1", "8"), ("2", "4"), ("4", "2")]
    file = write(*({"row_id": f"tp{tp}", "tp": tp, "dp": dp, "step_time_s": f"{1.5 * int(tp)}"} for tp, dp in layouts))
    document = answer(f"validate {file}")
    (sweep,) = document["choices"]["sweeps"]
    predicted = {row["row_id"]: row["predicted"] for row in document["comparisons"] if row["metric"] == "step_time_s"}
    fastest = min(predicted, key=predicted.__getitem__)
    assert sweep["chosen"]["rows"] == [fastest]
    assert sweep["regret"] == pytest.approx(int(fastest.removeprefix("tp")))


def test_one_source_can_be_kept(answer, run) -> None:
    file = write({"source_id": "first"}, {"source_id": "second"})
    document = answer(f"validate {file} --source second")
    assert {row["source"] for row in document["comparisons"]} == {"second"}
    done = run(f"validate {file} --source secund")
    assert done.exit_code == 2
    assert "did you mean second?" in done.stderr


def test_several_files_are_judged_together(answer) -> None:
    first, second = write({"source_id": "a"}, name="a.csv"), write({"source_id": "b"}, name="b.csv")
    assert [each["name"] for each in answer(f"validate {first} {second}")["step_time"]["sources"]] == ["a", "b"]


def test_warnings_do_not_withhold_a_prediction(answer, run) -> None:
    """Sixteen accelerators of which the degrees fill eight; 10 ms for a step that must take longer by the peak."""
    file = write({"row_id": "fast", "step_time_s": "0.01", "flags": "typed by hand"})
    document = answer(f"validate {file}")
    assert {each["kind"] for each in document["warnings"]} == {"impossible-mfu", "flagged"}
    assert all(row["predicted"] for row in document["comparisons"] if row["metric"] == "step_time_s")
    assert "typed by hand (fast)" in run(f"validate {file}").stdout


BAD = [
    ("", "validate absent.csv", ["absent.csv"]),
    ("", "validate folder", ["folder"]),
    ("", "validate", ["FILE.csv"]),
    ("empty.csv", "validate empty.csv", ["empty.csv"]),
    ("header.csv", "validate header.csv", ["header.csv"]),
    ("binary.csv", "validate binary.csv", ["binary.csv"]),
    ("zeros.csv", "validate zeros.csv", ["zeros.csv"]),
    ("huge.csv", "validate huge.csv", ["huge.csv"]),
    ("other.csv", "validate other.csv", ["other.csv"]),
    ("runs.csv", "validate runs.csv absent.csv", ["absent.csv"]),
    ("runs.csv", "validate runs.csv runs.csv", ["runs.csv", "named twice"]),
    ("runs.csv", "validate runs.csv --out pipe", ["--out is 'pipe'", "no ordinary file"]),
    ("runs.csv", "validate runs.csv --out .", ["--out is '.'", "folder"]),
    ("runs.csv", "validate runs.csv --out absent/rows.csv", ["--out is 'absent/rows.csv'", "no folder"]),
    ("runs.csv", "validate runs.csv --source ''", ["source"]),
]
FILES = {
    "empty.csv": b"",
    "header.csv": b"model,seq_len,step_time_s\n",
    "binary.csv": b"\xff\xfe\x00\x80,\x00\n\x01,\x02\n",
    "zeros.csv": b"\x00" * 1000,
    "huge.csv": b"model,step_time_s\n" + b"x" * 2_000_000 + b",1\n",
    "other.csv": b"city,river\nParis,Seine\n",
}


@pytest.mark.parametrize(("name", "command", "pieces"), BAD, ids=[command for _, command, _ in BAD])
@pytest.mark.parametrize("option", ["", " --json"])
def test_what_cannot_be_read_is_refused_with_one_message(
    run, name: str, command: str, pieces: list[str], option: str
) -> None:
    Path("folder").mkdir()
    os.mkfifo("pipe")
    write({})
    if name in FILES:
        Path(name).write_bytes(FILES[name])
    done = run(command + option, 200)
    assert done.exit_code == 2, done.stdout
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    for piece in pieces:
        assert piece in done.stderr
    if "error:" in done.stderr:
        assert done.stderr.startswith("error: ")
        assert done.stderr.count("\n") == 1
        assert len(done.stderr) < 1000


@pytest.mark.parametrize("value", ["nan", "inf", "-1.5", "0", "fast", "1e999"])
@pytest.mark.parametrize("column", ["step_time_s", "tp", "seq_len", "gpus_total"])
def test_a_number_that_is_none_costs_its_row_and_nothing_else(run, column: str, value: str) -> None:
    """Rows are read one by one: a cell that makes no sense is named, and the rest of the file is judged."""
    file = write({"row_id": "good"}, {"row_id": "bad", column: value})
    done = run(f"validate {file} --out rows.csv")
    assert done.exit_code in (0, 2), done.stderr
    assert "Traceback" not in done.stderr
    if done.exit_code == 2:
        assert column in done.stderr
        assert not Path("rows.csv").exists()
        return
    rows = {row["row_id"]: row for row in read("rows.csv")}
    assert rows["good"]["predicted"]
    assert not rows["bad"]["predicted"] or not rows["bad"]["measured"]


def test_a_file_that_is_refused_leaves_the_old_rows_alone(run) -> None:
    Path("rows.csv").write_text("old")
    Path("other.csv").write_bytes(FILES["other.csv"])
    assert run("validate other.csv --out rows.csv").exit_code == 2
    assert Path("rows.csv").read_text() == "old"
    assert sorted(each.name for each in Path().iterdir()) == ["other.csv", "rows.csv"]


@pytest.mark.field
@pytest.mark.slow
def test_published_rows_are_nearly_all_predicted_and_every_one_is_answered_for(answer, shared: Path) -> None:
    """Every row with a measured value has a line; 95 % of the rows of training have a prediction."""
    file = shared / "data" / "measured" / "training.csv"
    with file.open(encoding="utf-8", newline="") as lines:
        names = {line["row_id"] for line in csv.DictReader(lines)}
    document = answer(f"validate {file}")
    assert {row["row_id"] for row in document["comparisons"]} == names
    step_time = document["step_time"]["all_rows"]
    assert step_time["covered"] / step_time["rows"] >= 0.95
    assert [each["source"] for each in document["warnings"] if each["kind"] == "too-linear"] == ["vtrain-single"]
    assert json.dumps(document, allow_nan=False)
