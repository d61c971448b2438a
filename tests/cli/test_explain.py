"""`meshwright explain` and `plan --explain`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import meshwright as mw
from meshwright.spec.estimate import COMMUNICATION_PARTS

GPT2 = "gpt2 --cluster 1xdgx-a100-80g --global-batch 64 --seq-len 1024"
PCIE = "llama-3.1-8b --cluster 1xa100-pcie-8 --global-batch 128 --seq-len 4096"
TOO_LARGE = "llama-3.1-405b --cluster 1x4090-pcie-8 --global-batch 8 --seq-len 4096"
KEYS = {
    "plan", "best", "is_best", "objective", "accelerators_used", "layouts_ahead", "against_best", "pinned",
    "without_pins", "no_plan", "memory", "links", "moves", "bubble", "binding", "runner_up", "families", "slogan",
    "flips", "to_fit", "text",
}  # fmt: skip


def test_the_document_holds_the_whole_explanation(answer) -> None:
    document = answer(f"explain {GPT2}")
    assert set(document) == KEYS
    assert document["is_best"]
    assert document["plan"] == document["best"] == answer(f"plan {GPT2}")["best"]
    assert document["to_fit"] is None
    assert {flip["name"] for flip in document["flips"]} == {"link_speed", "memory", "global_batch", "seq_len"}
    assert document["text"]


def test_links_add_up_to_the_exposed_communication_of_the_plan(answer) -> None:
    document = answer(f"explain {PCIE} --no-flips")
    exposed = sum(document["plan"]["time_s"][part] for part in COMMUNICATION_PARTS)
    assert sum(link["exposed_s"] for link in document["links"]) == pytest.approx(exposed)
    sent = sum(row["wire_bytes_per_step"] for row in document["plan"]["traffic"])
    assert sum(link["wire_bytes_per_step"] for link in document["links"]) == pytest.approx(sent)
    assert document["flips"] is None


def test_pure_tensor_parallelism_loses_on_a_pcie_server_by_its_exposed_collectives(answer) -> None:
    document = answer(f"explain {PCIE} --no-flips")
    tensor = next(family for family in document["families"] if family["name"] == "tensor")
    assert tensor["plan"]["tp"] == 8
    assert tensor["verdict"] == "lost"
    assert tensor["behind"] == pytest.approx(tensor["step_time_s"] / document["best"]["step_time_s"] - 1)
    first = tensor["differences"][0]
    assert first["part"] == "tensor_parallel"
    assert first["seconds"] > 0.5 * (tensor["step_time_s"] - document["best"]["step_time_s"])
    fixed = answer(f"plan {PCIE} --tp 8 --pp 1 --dp 1 --cp 1")["best"]
    assert fixed["step_time_s"] == pytest.approx(tensor["step_time_s"])


def test_where_everything_fits_one_device_data_parallelism_wins_by_numbers(answer) -> None:
    document = answer(f"explain {GPT2} --no-flips")
    assert document["memory"][0]["fits"]
    chosen = [family["name"] for family in document["families"] if family["verdict"] == "chosen"]
    assert chosen in (["data"], ["sharded-data"])
    assert all(family["behind"] >= 0 for family in document["families"] if family["plan"])


def test_a_saved_best_plan_is_explained_as_the_best(run, answer, tmp_path: Path) -> None:
    file = tmp_path / "plan.yaml"
    best = answer(f"plan {PCIE} --save {file}")["best"]
    document = answer(f"explain {file} --no-flips")
    assert document["is_best"]
    assert document["against_best"] is None
    assert document["plan"]["step_time_s"] == pytest.approx(best["step_time_s"])
    assert "is the best plan found" in run(f"explain {file} --no-flips").stdout


def test_a_plan_that_is_not_the_best_is_held_against_it(answer, tmp_path: Path) -> None:
    file = tmp_path / "plan.yaml"
    given = answer(f"plan {PCIE} --tp 2 --dp 4 --pp 1 --cp 1 --save {file}")["best"]
    document = answer(f"explain {file} --no-flips")
    assert not document["is_best"]
    assert document["plan"]["plan"]["tp"] == 2
    gap = document["against_best"]
    assert gap["behind"] == pytest.approx(given["step_time_s"] / document["best"]["step_time_s"] - 1)
    assert sum(each["seconds"] for each in gap["differences"]) == pytest.approx(
        given["step_time_s"] - document["best"]["step_time_s"]
    )
    assert document["layouts_ahead"] >= 1
    assert [family["name"] for family in document["families"] if family["given"]] == ["tensor-data"]


def test_the_best_plan_with_its_layers_moved_is_another_plan(answer, tmp_path: Path) -> None:
    file = tmp_path / "plan.yaml"
    best = answer(f"plan {PCIE} --save {file}")["best"]
    layers = best["plan"]["layers_per_stage"]
    moved = ",".join(map(str, [layers[0] - 4, layers[1] + 4, *layers[2:]]))
    slower = answer(f"estimate {file} --layers-per-stage {moved}")
    assert slower["step_time_s"] > 1.1 * best["step_time_s"]
    document = answer(f"explain {file} --layers-per-stage {moved} --no-flips")
    assert not document["is_best"]
    gap = document["against_best"]
    assert gap["behind"] == pytest.approx(slower["step_time_s"] / best["step_time_s"] - 1)
    assert sum(each["seconds"] for each in gap["differences"]) == pytest.approx(
        slower["step_time_s"] - best["step_time_s"]
    )
    plans = answer(f"plan {PCIE} --top 1000")["by_layout"]
    faster = {
        tuple(each["plan"][axis] for axis in ("tp", "cp", "ep", "dp", "pp"))
        for each in plans
        if each["step_time_s"] < slower["step_time_s"]
    }
    own = tuple(best["plan"][axis] for axis in ("tp", "cp", "ep", "dp", "pp"))
    assert document["layouts_ahead"] == len(faster - {own})


def test_where_memory_counts_differences_of_time_are_called_so(run, answer) -> None:
    command = f"explain {GPT2} --objective memory --no-flips"
    document = answer(command)
    lost = [family for family in document["families"] if family["verdict"] == "lost"]
    best = document["best"]["memory_bytes"]["total"]
    assert lost
    for family in lost:
        assert family["behind"] == pytest.approx(family["memory_bytes"] / best - 1)
        said = next(line for line in document["text"] if line.lower().startswith(f"{family['title']}:"))
        assert "more memory" in said or "is as good" in said
        assert "(in time " in said
    assert "in time " in run(command).stdout


def test_a_plan_that_breaks_a_rule_is_answered_with_the_fix_and_exit_code_1(run, answer, tmp_path: Path) -> None:
    file = tmp_path / "plan.yaml"
    answer(f"plan {GPT2} --tp 1 --save {file}")
    document = answer(f"explain {file} --tp 5 --no-flips", exit_code=1)  # GPT-2 has 12 heads
    assert any("12 attention heads" in problem["message"] for problem in document["plan"]["problems"])
    assert document["best"] is not None
    assert "nearest legal tp" in run(f"explain {file} --tp 5 --no-flips").stdout


def test_where_nothing_fits_the_smallest_changes_are_said_with_exit_code_1(run, answer) -> None:
    document = answer(f"explain {TOO_LARGE}", exit_code=1)
    assert document["plan"] is None
    assert document["best"] is None
    kinds = {change["kind"]: change for change in document["to_fit"]}
    assert mw.choose(
        "llama-3.1-405b", f"{kinds['nodes']['value']}x4090-pcie-8", mw.Training(8, 4096), top=1
    ).best is not None  # fmt: skip
    text = run(f"explain {TOO_LARGE}")
    assert text.exit_code == 1
    assert "No plan fits" in text.stdout
    assert "more of the same nodes" in text.stdout
    assert answer(f"explain {TOO_LARGE} --no-flips", exit_code=1)["to_fit"] is None


def test_plan_explain_adds_the_explanation_to_the_plan(run, answer) -> None:
    document = answer(f"plan {GPT2} --explain --no-flips")
    assert set(document["explanation"]) == KEYS
    assert document["explanation"]["best"] == document["best"]
    assert "explanation" not in answer(f"plan {GPT2}")
    text = run(f"plan {GPT2} --explain --no-flips").stdout
    assert "What crosses which link" in text
    assert text.count("Model ") == 1


def test_pins_of_plan_hold_for_the_explanation(answer) -> None:
    document = answer(f"plan {PCIE} --tp 2 --explain --no-flips")["explanation"]
    assert document["pinned"] == {"tp": 2}
    assert document["best"]["plan"]["tp"] == 2
    assert document["without_pins"]["behind"] < 0
    assert any(family["verdict"] == "excluded" for family in document["families"])


@pytest.mark.parametrize("width", [80, 100, 140])
@pytest.mark.parametrize("command", [f"explain {PCIE}", f"explain {TOO_LARGE}"])
def test_text_fits_the_width(run, width: int, command: str) -> None:
    done = run(command, width)
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= width
    assert "…" not in done.stdout
    assert "\x1b" not in done.stdout
    assert all(line == line.rstrip() for line in lines)
    assert done.stderr == ""


def test_progress_never_reaches_a_document_or_a_pipe(run) -> None:
    done = run(f"explain {GPT2} --json")
    json.loads(done.stdout)
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("explain nowhere.yaml", ["nowhere.yaml"]),
        (f"explain {GPT2} --objective speed", ["--objective", "throughput"]),
        (f"explain {GPT2} --tp eight", ["--tp", "eight"]),
        ("explain gpt2 --global-batch 8 --seq-len 8", ["--cluster"]),
    ],
)
def test_bad_input_is_one_message_and_exit_code_2(run, command: str, words: list[str]) -> None:
    done = run(command)
    assert done.exit_code == 2
    assert all(word in done.stderr for word in words)
    assert "Traceback" not in done.stdout + done.stderr


def test_the_objective_is_what_alternatives_are_measured_by(answer) -> None:
    document = answer(f"explain {GPT2} --objective memory --no-flips")
    for family in document["families"]:
        if family["plan"]:
            ratio = family["memory_bytes"] / document["best"]["memory_bytes"]["total"]
            assert family["behind"] == pytest.approx(ratio - 1)
            assert ratio >= 1 - 1e-9


@pytest.mark.parametrize(
    "options",
    [
        "--pp 64", "--pp 8 --virtual-stages 3", "--dp 8 --sharding optimizer --shard-group 3", "--dp 1024 --tp 8",
        "--ep 3", "--pp 4 --layers-per-stage 1,2,3", "--pp 2 --schedule zero-bubble-v --virtual-stages 3",
        "--micro-batch 100", "--tp 5 --cp 3 --dp 7 --pp 3",
    ],
)  # fmt: skip
def test_any_broken_plan_is_still_explained(run, answer, tmp_path: Path, options: str) -> None:
    file = tmp_path / "plan.yaml"
    answer(f"plan {GPT2} --dp 8 --save {file}")
    document = answer(f"explain {file} {options} --no-flips", exit_code=1)
    assert document["plan"]["problems"] == answer(f"estimate {file} {options}", exit_code=1)["problems"]
    assert document["against_best"]["verdict"] in ("illegal", "too large")
    assert document["best"]["valid"]
    exposed = sum(link["exposed_s"] for link in document["links"])
    assert exposed == pytest.approx(sum(document["plan"]["time_s"][part] for part in COMMUNICATION_PARTS), abs=1e-12)
