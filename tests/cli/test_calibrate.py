"""`meshwright calibrate`: what it prints, what it writes, and with which exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import meshwright as mw
from meshwright.cli import app

ROWS = Path(__file__).parents[2] / "docs" / "calibrate-runs.csv"
SERVER = ROWS.with_name("calibrate-server.csv")
CLUSTER = "128xdgx-a100-80g@roce-100g:4"
RUNNER = CliRunner()


def run(*arguments: str) -> tuple[int, str, str]:
    result = RUNNER.invoke(app, ["calibrate", *arguments])
    return result.exit_code, result.stdout, result.stderr


def few(folder: Path, *rows: str) -> str:
    """A file with the header and some rows of the documented one."""
    header, *lines = ROWS.read_text().splitlines()
    kept = [line for line in lines if line.split(",")[0] in rows]
    assert len(kept) == len(rows)
    path = folder / "few.csv"
    path.write_text("\n".join([header, *kept]) + "\n")
    return str(path)


def test_the_documented_server_makes_a_cluster_that_plans(tmp_path: Path) -> None:
    """Four published layouts on a server that is slower than the catalog's under all of them: its matmuls are."""
    saved = tmp_path / "cluster.yaml"
    code, out, err = run(str(SERVER), "--cluster", "dgx-a100-40g", "--save", str(saved))
    assert code == 0
    assert f"the cluster is in {saved}" in err
    assert "Runs that the fit hasn't seen are predicted better" in out
    cluster, given = mw.load_cluster(saved), mw.load_cluster("dgx-a100-40g")
    assert cluster.accelerator.matmul_share("fp16") < 0.95 * given.accelerator.matmul_share("fp16")
    planned = RUNNER.invoke(
        app, ["plan", "llama-7b", "--cluster", str(saved), "--global-batch", "1024", "--seq-len", "2048", "--json"]
    )
    assert planned.exit_code == 0
    assert json.loads(planned.stdout)["best"]["cluster"]["name"] == "dgx-a100-40g-calibrated"


def test_runs_that_the_catalog_predicts_well_make_no_cluster(tmp_path: Path) -> None:
    """Published steps of InternEvo, which the catalog's constants know: left out, they are predicted no better."""
    saved = tmp_path / "cluster.yaml"
    code, out, _ = run(str(ROWS), "--cluster", CLUSTER, "--save", str(saved))
    assert code == 1
    assert "Keep it as it is" in out
    assert not saved.exists()


def test_the_json_has_the_constants_and_the_errors(tmp_path: Path) -> None:
    code, out, _ = run(few(tmp_path, "dp-8", "dp-256", "dp-1024", "tp2-64"), "--cluster", CLUSTER, "--json")
    document = json.loads(out)
    assert code in (0, 1)
    assert set(document) == {
        "files", "cluster", "runs", "jobs", "constants", "errors", "folds", "better", "not_used", "calibrated",
    }  # fmt: skip
    assert (document["runs"], document["jobs"], document["folds"]) == (4, 4, 4)
    assert document["better"] is (code == 0)
    names = [each["name"] for each in document["constants"]]
    assert names == [
        "matmul_efficiency.bf16+fp16", "memory_efficiency", "levels.nvlink.efficiency", "levels.roce-100g.efficiency",
        "host_overhead_factor",
    ]  # fmt: skip
    assert all((each["value"] == each["before"]) for each in document["constants"] if each["kept"])
    assert set(document["errors"]) == {"before", "after", "left_out"}
    level = document["calibrated"]["levels"][-1]
    fitted = next(each["value"] for each in document["constants"] if each["name"].startswith("levels.roce"))
    assert level["efficiency"] == pytest.approx(fitted, rel=1e-3)


def test_one_run_is_not_judged_and_says_so(tmp_path: Path) -> None:
    saved = tmp_path / "cluster.yaml"
    code, out, _ = run(few(tmp_path, "dp-1024"), "--cluster", CLUSTER, "--save", str(saved))
    assert code == 0
    assert "1 job can't be left out one by one" in " ".join(out.split())
    assert saved.exists()


def test_runs_that_a_cluster_predicts_well_are_a_no_and_nothing_is_written(tmp_path: Path) -> None:
    given = mw.load_cluster("1xdgx-a100-80g")
    lines = ["row_id,model,gpus_total,tp,dp,micro_batch,global_batch_seqs,seq_len,recompute,zero_stage,step_time_s"]
    for number, batch in enumerate((32, 64, 128, 256)):
        plan = mw.Plan(dp=8, micro_batch=4, sharding="none")
        step_s = mw.estimate("gpt3-1.3b", given, mw.Training(batch, 2048), plan).step_time_s
        step_s *= 1.01 if number % 2 else 0.99
        lines.append(f"R{number},gpt3-1.3b,8,1,8,4,{batch},2048,none,0,{step_s!r}")
    path, saved = tmp_path / "runs.csv", tmp_path / "cluster.yaml"
    path.write_text("\n".join(lines) + "\n")
    code, out, err = run(str(path), "--cluster", "1xdgx-a100-80g", "--save", str(saved))
    assert code == 1
    assert "predicted no better" in out
    assert "is not written" in err
    assert not saved.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([str(ROWS)], "--cluster is missing"),
        ([str(ROWS), "--cluster", "nonsense"], "nonsense"),
        (["missing.csv", "--cluster", CLUSTER], "missing.csv: can't be read"),
        ([str(ROWS), "--cluster", CLUSTER, "--software", "megatrom-2021"], "did you mean megatron-2021"),
        ([str(ROWS), "--cluster", CLUSTER, "--save", "no/such/folder/c.yaml"], "--save is"),
        ([str(ROWS), "--cluster", CLUSTER, "--source", "mine"], "no source is called 'mine'"),
        ([str(ROWS), "--cluster", "8xdgx-h100"], "it ran on a100-80g; 8xdgx-h100 has h100"),
        ([str(ROWS), "--cluster", CLUSTER, "--accelerator", "a100-80g"], "says what it holds"),
    ],
)  # fmt: skip
def test_what_cannot_be_understood_is_said_in_one_line(arguments: list[str], message: str) -> None:
    code, out, err = run(*arguments)
    assert code == 2
    assert out == ""
    assert message in err
    assert err.count("\n") == 1
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("row_id,model\nR1,gpt2\n", "no column says what was measured"),
        ("row_id,model,step_time_s\n", "has a header but no rows"),
        ("model,gpus_total,seq_len,global_batch_seqs,step_time_s\ngpt2,8,1024,64,-3\n", "step_time_s is '-3'"),
        ("model,gpus_total,seq_len,global_batch_seqs,step_time_s\ngpt2,eight,1024,64,3\n", "gpus_total is 'eight'"),
        ("model,gpus_total,seq_len,global_batch_seqs,step_time_s\ngpt99,8,1024,64,3\n", "gpt99"),
        ("model,gpus_total,seq_len,global_batch_seqs,step_time_s\ngpt2,8,1024,64,nan\n", "step_time_s is 'nan'"),
    ],
)
def test_a_file_without_a_usable_run_is_an_error(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "odd.csv"
    path.write_text(text)
    code, _, err = run(str(path), "--cluster", CLUSTER)
    assert code == 2
    assert message in err
    assert "Traceback" not in err
