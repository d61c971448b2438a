"""`meshwright plan`."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

import meshwright as mw

GPT2 = "plan gpt2 --cluster 1xdgx-a100-80g --global-batch 64 --seq-len 1024"


def without_seconds(document: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key != "seconds"}


def test_the_best_plan_is_the_first_ranked_and_works_through_the_batch_on_all_accelerators(answer) -> None:
    document = answer(GPT2)
    assert set(document) >= {"best", "ranked", "rejected", "considered", "seconds", "reasons", "by_layout", "objective"}
    assert document["best"] == document["ranked"][0]
    times = [each["step_time_s"] for each in document["ranked"]]
    assert times == sorted(times)
    plan = document["best"]["plan"]
    assert plan["tp"] * plan["cp"] * plan["dp"] * plan["pp"] == 8
    assert plan["dp"] * plan["micro_batch"] * plan["num_micro_batches"] == 64
    assert document["considered"] >= len(document["ranked"])


def test_by_layout_holds_each_set_of_degrees_once(answer) -> None:
    layouts = [
        tuple(each["plan"][axis] for axis in ("tp", "cp", "ep", "dp", "pp")) for each in answer(GPT2)["by_layout"]
    ]
    assert len(layouts) == len(set(layouts)) > 1


@pytest.mark.parametrize(
    ("option", "fix"),
    [
        ("--tp 2", "--fix tp=2"),
        ("--micro-batch 4 --recompute full", "--fix micro-batch=4 --fix recompute=full"),
        ("--no-sequence-parallel", "--fix sequence_parallel=false"),
        ("--order dp,tp,cp,pp --tp 2", "--fix order=dp,tp,cp,pp --fix tp=2"),
    ],
)
def test_a_plan_option_is_the_same_as_its_field_under_fix(answer, option: str, fix: str) -> None:
    assert without_seconds(answer(f"{GPT2} {option}")) == without_seconds(answer(f"{GPT2} {fix}"))


def test_the_same_pin_twice_is_no_contradiction(answer) -> None:
    assert answer(f"{GPT2} --tp 2 --fix tp=2")["best"]["plan"]["tp"] == 2


def test_a_pinned_number_of_micro_batches_is_kept(answer) -> None:
    plan = answer(f"{GPT2} --fix num_micro_batches=4")["best"]["plan"]
    assert plan["num_micro_batches"] == 4
    assert plan["dp"] * plan["micro_batch"] == 16


def test_top_limits_the_ranking(answer) -> None:
    assert len(answer(f"{GPT2} --top 3")["ranked"]) == 3


def test_nothing_fits_is_an_answer_with_exit_code_1(run, answer) -> None:
    command = "plan llama-3.1-405b --cluster 1x4090-pcie --global-batch 8 --seq-len 4096"  # 405 B parameters on 24 GB
    document = answer(command, exit_code=1)
    assert document["best"] is None
    assert document["ranked"] == []
    assert document["reasons"]
    text = run(command)
    assert text.exit_code == 1
    assert "No plan" in text.stdout


def test_a_pin_that_breaks_a_rule_is_answered_with_the_rule_and_the_nearest_value(run, answer) -> None:
    document = answer(f"{GPT2} --tp 5", exit_code=1)  # GPT-2 has 12 heads
    assert document["best"] is None
    assert any("tp 5 must divide the 12 attention heads" in reason for reason in document["reasons"])
    assert "nearest legal tp" in run(f"{GPT2} --tp 5").stdout


def test_idle_accelerators_are_said(run) -> None:
    command = (
        "plan gpt2 --cluster 1xdgx-a100-80g --global-batch 3 --seq-len 1023 --pp 1 --tp 1"  # 3 sequences, 8 replicas
    )
    done = run(f"{command} --json")
    document = json.loads(done.stdout)
    assert document["accelerators_used"] + document["idle_accelerators"] == 8
    assert document["idle_accelerators"] > 0
    assert "stay idle" in done.stderr
    text = run(command)
    assert "stay idle" in text.stdout
    assert text.stderr == ""


def test_the_run_takes_tokens_over_speed_and_costs_its_hours(run, answer) -> None:
    command = f"{GPT2} --tokens 300B --price-per-gpu-hour 2.50"
    days = 300e9 / answer(command)["best"]["tokens_per_s"] / 86400
    text = run(command).stdout
    line = next(line for line in text.splitlines() if line.split()[:1] == ["Run"])
    assert float(line.split()[1]) == pytest.approx(days, rel=0.005)
    line = next(line for line in text.splitlines() if line.split()[:1] == ["Cost"])
    assert float(line.split()[1].replace(",", "")) == pytest.approx(days * 24 * 8 * 2.5, rel=0.005)


@pytest.mark.parametrize("width", [80, 100, 140])
def test_text_fits_the_width_and_has_no_codes_when_it_is_piped(run, width: int) -> None:
    done = run("plan llama-3.1-70b --cluster 4xdgx-a100-80g --global-batch 64 --seq-len 4096 --tp 8", width)
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= width
    assert "\x1b" not in done.stdout
    assert all(line == line.rstrip() for line in lines)
    assert "--tp 8" in done.stdout
    for part in ("Best plan", "Why", "Time of a step", "Memory of", "Communication", "legal plans considered"):
        assert part in done.stdout


def test_a_saved_plan_is_read_back_and_estimates_to_the_same_numbers(answer, tmp_path: Path) -> None:
    file = tmp_path / "plan.yaml"
    best = answer(f"{GPT2} --save {file}")["best"]
    assert [path.name for path in tmp_path.iterdir()] == ["plan.yaml"]
    assert mw.load_plan(file).prediction["step_time_s"] == best["step_time_s"]
    assert answer(f"estimate {file}") == best


def test_nothing_is_saved_where_nothing_fits(run, tmp_path: Path) -> None:
    file = tmp_path / "plan.yaml"
    done = run(f"{GPT2} --tp 5 --save {file}")
    assert done.exit_code == 1
    assert "is not written" in done.stderr
    assert not file.exists()


def test_json_has_neither_nan_nor_infinity(run) -> None:
    def refuse(name: str) -> None:
        raise AssertionError(name)

    document = json.loads(run(f"{GPT2} --json").stdout, parse_constant=refuse)
    assert math.isfinite(document["best"]["step_time_s"])


def test_an_interrupt_ends_with_130_and_no_traceback(run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(mw, "choose", interrupted)
    done = run(GPT2)
    assert done.exit_code == 130
    assert "Traceback" not in done.stdout + done.stderr


def test_a_sequence_beyond_the_models_context_is_pointed_out(run) -> None:
    done = run("plan llama-2-7b --cluster 1xdgx-h100 --global-batch 8 --seq-len 8192 --json")
    assert "8,192 tokens exceeds the 4,096" in done.stderr  # Touvron et al. 2023 (Llama 2), table 1
    assert "exceeds" not in run("plan llama-2-7b --cluster 1xdgx-h100 --global-batch 8 --seq-len 4096 --json").stderr
