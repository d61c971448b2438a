"""Input that can't be understood: exit code 2, one message on standard error, nothing on standard output.

Each case is a command and pieces that its message must have: what was given, the rule, what would work.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

JOB = "--cluster 1xdgx-a100-80g --global-batch 64 --seq-len 1024"
GPT2 = f"plan gpt2 {JOB}"

OPTIONS = [
    # numbers
    ("--tp 0", ["--tp is 0", "whole number from 1", "works is 1"]),
    ("--tp -3", ["--tp is -3", "works is 1"]),
    ("--pp 1.5", ["--pp is '1.5'", "in digits", "works is 2"]),
    ("--dp nan", ["--dp is 'nan'", "whole number"]),
    ("--cp inf", ["--cp is 'inf'"]),
    ("--ep abc", ["--ep is 'abc'"]),
    ("--tp ''", ["--tp is ''"]),
    ("--tp 99999999999999999999", ["--tp is", "works is 1000000"]),
    ("--micro-batch 0", ["--micro-batch is 0"]),
    ("--virtual-stages 1000000", ["--virtual-stages is 1000000", "10,000"]),
    ("--shard-group 0", ["--shard-group is 0"]),
    ("--global-batch 1e3", ["--global-batch is '1e3'", "in digits", "works is 1000"]),
    ("--global-batch 1,024", ["works is 1024"]),
    ("--global-batch 0", ["--global-batch is 0"]),
    ("--global-batch 2000000000000", ["1,000,000,000"]),
    ("--seq-len -1", ["--seq-len is -1"]),
    ("--seq-len 4k", ["--seq-len is '4k'"]),
    ("--seq-len ４０９６", ["--seq-len is"]),
    ("--top 0", ["--top is 0", "works is 1"]),
    ("--top many", ["--top is 'many'"]),
    ("--tokens -1", ["--tokens is '-1'", "above 0", "15T"]),
    ("--tokens 0", ["--tokens is '0'"]),
    ("--tokens nan", ["--tokens is 'nan'"]),
    ("--tokens 1e300", ["--tokens is '1e300'", "works is 1e+18"]),
    ("--price-per-gpu-hour 0", ["--price-per-gpu-hour is '0'", "above 0"]),
    ("--price-per-gpu-hour inf", ["--price-per-gpu-hour is 'inf'"]),
    ("--price-per-gpu-hour cheap", ["--price-per-gpu-hour is 'cheap'"]),
    # names
    ("--dtype bf61", ["--dtype is 'bf61'", "bf16, fp16, fp8, fp32", "works is 'bf16'"]),
    ("--dtype fp8", ["--dtype", "a100-80g", "bf16"]),  # Ampere has no fp8 unit
    ("--optimizer adam", ["--optimizer is 'adam'", "works is 'adamw'"]),
    ("--schedule 1f1", ["--schedule is '1f1'", "works is '1f1b'"]),
    ("--recompute ful", ["works is 'full'"]),
    ("--sharding zero3", ["--sharding is 'zero3'", "parameters"]),
    ("--offload cpu", ["--offload is 'cpu'", "activations"]),
    ("--objective throughputt", ["--objective is 'throughputt'", "works is 'throughput'"]),
    ("--software curent", ["--software", "'curent'", "did you mean current?"]),
    ("--software absent.yaml", ["absent.yaml"]),
    # lists
    ("--order tp,dp,pp", ["--order is 'tp,dp,pp'", "tp, cp, dp, pp once", "such as tp,cp,dp,pp"]),
    ("--order tp,tp,dp,pp", ["--order is 'tp,tp,dp,pp'"]),
    ("--order ''", ["--order is ''"]),
    ("--layers-per-stage 6,x", ["--layers-per-stage[1] is 'x'", "whole number"]),
    ("--layers-per-stage 6,,6", ["--layers-per-stage[1] is ''"]),
    ("--layers-per-stage 12,0", ["--layers-per-stage[1] is 0", "works is 1"]),
    # pins
    ("--fix tp", ["--fix is 'tp'", "FIELD=VALUE", "tp=8"]),
    ("--fix tp=", ["FIELD=VALUE"]),
    ("--fix =8", ["FIELD=VALUE"]),
    ("--fix tpp=8", ["'tpp'", "no field of a plan", "did you mean tp"]),
    ("--fix zzzz=8", ["the fields are tp, cp"]),
    ("--fix global_batch=8", ["it has an option: --global-batch"]),
    ("--fix tp=abc", ["--fix tp is 'abc'"]),
    ("--fix sequence_parallel=maybe", ["--fix sequence_parallel is 'maybe'", "true or false"]),
    ("--tp 8 --fix tp=4", ["--tp 8 and --fix tp=4 contradict each other"]),
    ("--fix tp=8 --fix tp=4", ["--fix tp=8 and --fix tp=4 contradict each other"]),
    ("--sequence-parallel --no-sequence-parallel", ["contradict each other"]),
    ("--sequence-parallel --fix sequence_parallel=false", ["contradict each other"]),
    ("--fix num_micro_batches=7", ["num_micro_batches 7", "64", "works is 8"]),
    ("--fix num_micro_batches=8 --micro-batch 4 --dp 4", ["128", "64"]),
    ("--tp 1000000 --pp 1000000", ["1,000,000,000,000 accelerators"]),
    # clusters
    ("--cluster ''", ["--cluster", "NxPRESET"]),
    ("--cluster 0xdgx-a100-80g", ["0 nodes", "works is 1xdgx-a100-80g"]),
    ("--cluster 2xdgx-a100-80", ["dgx-a100-80g"]),
    ("--cluster h100", ["is an accelerator", "dgx-h100"]),
    ("--cluster 2xdgx-h100@infiniband-nd", ["infiniband-ndr"]),
    ("--cluster absent.yaml", ["absent.yaml"]),
    # files to write
    ("--save .", ["--save is '.'", "folder"]),
    ("--save absent/plan.yaml", ["--save is 'absent/plan.yaml'", "no folder"]),
    # the command line itself
    ("--nonsense 4", ["--nonsense"]),
    ("--tp", ["--tp"]),
]


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def refused(done, pieces: list[str]) -> None:
    assert done.exit_code == 2, done.stdout
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    for piece in pieces:
        assert piece in done.stderr, done.stderr


@pytest.mark.parametrize(("options", "pieces"), OPTIONS, ids=[options for options, _ in OPTIONS])
def test_an_option_that_cannot_be_understood_is_named_with_its_rule(run, options: str, pieces: list[str]) -> None:
    done = run(f"{GPT2} {options}", 200)
    refused(done, pieces)
    if "error:" in done.stderr:
        assert done.stderr.startswith("error: ")
        assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("missing", ["--cluster", "--global-batch", "--seq-len"])
def test_a_missing_option_is_named_with_an_example(run, missing: str) -> None:
    given = {"--cluster": "1xdgx-a100-80g", "--global-batch": "64", "--seq-len": "1024"}
    del given[missing]
    rest = " ".join(f"{option} {value}" for option, value in given.items())
    refused(run(f"plan gpt2 {rest}"), [f"{missing} is missing", f"such as {missing}"])


MODELS = [
    ("lama-3-8b", ["'lama-3-8b'", "did you mean llama-3-8b"]),
    ("''", ["no model is given"]),
    ("meta-llama/Llama-9", ["meta-llama/Llama-9", "the Hub is not asked"]),
    ("absent.json", ["absent.json", "no such file"]),
    ("folder", ["folder", "config.json"]),
    ("broken.json", ["broken.json", "line 1", "not valid JSON"]),
    ("list.json", ["list.json", "holds a list"]),
    ("deep.json", ["deep.json", "nested too deeply"]),
    ("broken.yaml", ["broken.yaml", "not valid YAML", "line"]),
    ("binary.yaml", ["binary.yaml", "not UTF-8"]),
    ("alias.yaml", ["alias.yaml", "line 2", "aliases"]),
    ("huge.yaml", ["huge.yaml", "at most"]),
    ("folder.yaml", ["folder.yaml"]),
    ("x" * 5000, ["5,000 characters"]),
]
FILES = {
    "broken.json": b'{"hidden_size": 4096,',
    "list.json": b"[1, 2]",
    "deep.json": b"[" * 100_000,
    "broken.yaml": b"a: [1, 2",
    "binary.yaml": b"\xff\xfe\x00\x80",
    "alias.yaml": b"a: &a [x]\nb: *a\n",
    "huge.yaml": b"a: " + b"x" * 2_000_000,
}


@pytest.fixture
def files(tmp_path: Path) -> None:
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder.yaml").mkdir()


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(("model", "pieces"), MODELS, ids=[model[:20] for model, _ in MODELS])
def test_a_model_that_cannot_be_read_is_named(run, model: str, pieces: list[str]) -> None:
    refused(run(f"plan {model} {JOB}"), pieces)


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("file", ["broken.yaml", "binary.yaml", "alias.yaml", "huge.yaml", "folder.yaml"])
@pytest.mark.parametrize("option", ["--cluster", "--software"])
def test_a_file_that_cannot_be_read_is_named(run, option: str, file: str) -> None:
    refused(run(f"{GPT2} {option} {file}"), [file])


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
def test_a_file_without_permission_is_named(run, tmp_path: Path) -> None:
    (tmp_path / "secret.yaml").touch(0o000)
    refused(run(f"{GPT2} --cluster secret.yaml"), ["secret.yaml", "ermission"])


PLAN_FILE = """\
model: {reference: gpt2}
cluster: 1xdgx-a100-80g
software: current
workload: {global_batch: 64, seq_len: 1024}
plan: {tp: 1, dp: 8}
"""


def test_a_plan_file_needs_nothing_else(run, tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(PLAN_FILE)
    assert run("estimate plan.yaml").exit_code == 0


@pytest.mark.parametrize(
    ("old", "new", "pieces"),
    [
        ("tp: 1", "tp: 0", ["plan.tp is 0", "works is 1"]),
        ("tp: 1", "tpp: 1", ["plan: key 'tpp'", "did you mean tp"]),
        ("dp: 8", "schedule: 1f1", ["plan.schedule is '1f1'", "'1f1b'"]),
        ("{reference: gpt2}", "{reference: gpt2, parameters: 5}", ["model.parameters is 5", "124,439,808"]),
        ("{reference: gpt2}", "{reference: gtp2}", ["model.reference", "did you mean gpt2"]),
        ("1xdgx-a100-80g", "dgx-a100-80", ["cluster", "dgx-a100-80g"]),
        ("1xdgx-a100-80g", "{name: x}", ["cluster", "is missing"]),
        ("software: current", "software: {1: 2}", ["software: key 1 must be text"]),
        ("software: current", "software: {year: many}", ["software", "year"]),
        ("global_batch: 64", "global_batch: 1e9999", ["workload.global_batch"]),
        ("seq_len: 1024", "seq_len: '1024'", ["workload.seq_len is '1024'", "works is 1024"]),
        ("workload: {global_batch: 64, seq_len: 1024}\n", "", ["workload is missing"]),
        ("workload:", "wrkload:", ["'wrkload'", "did you mean workload"]),
    ],
)
def test_a_wrong_value_in_a_plan_file_is_named(run, tmp_path: Path, old: str, new: str, pieces: list[str]) -> None:
    assert old in PLAN_FILE
    (tmp_path / "plan.yaml").write_text(PLAN_FILE.replace(old, new))
    refused(run("estimate plan.yaml"), ["plan.yaml", *pieces])


@pytest.mark.parametrize(
    ("command", "pieces"),
    [
        ("plan", ["MODEL"]),
        ("nope", ["nope"]),
        ("catalog modles", ["'modles'", "did you mean models?"]),
        ("catalog models clusters", ["clusters"]),
        ("estimate absent.yaml", ["absent.yaml", "no such file"]),
        ("explain absent.yaml", ["absent.yaml", "no such file"]),
        ("explain gpt2", ["--global-batch is missing"]),
        (f"estimate absent.yaml {JOB}", ["absent.yaml", "no such file"]),
        ("plan gpt2 --cluster 1xdgx1-v100 --global-batch 8 --seq-len 1024", ["--dtype", "v100-32g", "fp16"]),
    ],
)
def test_other_commands_refuse_alike(run, command: str, pieces: list[str]) -> None:
    refused(run(command), pieces)


@pytest.mark.parametrize("command", ["plan", "estimate", "explain"])
def test_json_prints_nothing_on_standard_output_when_it_refuses(run, command: str) -> None:
    refused(run(f"{command} gpt2 {JOB} --tp 0 --json"), ["--tp is 0"])


@pytest.mark.parametrize("command", ["plan", "estimate", "explain --no-flips", "scale"])
def test_a_model_that_is_counted_only_is_refused_by_every_command(run, tmp_path: Path, command: str) -> None:
    sizes = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 256}
    config = {"model_type": "albert", "embedding_size": 32, "vocab_size": 96, **sizes}
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    done = run(f"{command} {path} --cluster dgx-h100 --global-batch 8 --seq-len 64")
    assert done.exit_code == 2
    assert "its layers share their weights" in done.stderr
    assert not done.stdout
