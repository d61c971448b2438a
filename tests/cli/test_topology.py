"""A pasted topology on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from printed_topology import nested, renumbered, table
from typer.testing import CliRunner

import meshwright as mw
from meshwright.cli import app

PAIRS = table(nested([2, 2, 2], ["NV4", "NODE", "SYS"]), [["SYS"] * 4 + ["PHB"] * 4])
IBSTAT = (
    "CA 'mlx5_0'\n\tPort 1:\n\t\tState: Active\n\t\tPhysical state: LinkUp\n\t\tRate: 200\n\t\tLink layer: InfiniBand\n"
)
JOB = "--global-batch 64 --seq-len 1024"


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "box.txt").write_text(PAIRS)
    (tmp_path / "b@x.txt").write_text(PAIRS)
    (tmp_path / "ports.txt").write_text(IBSTAT)
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "folder").mkdir()


def test_the_estimate_echoes_the_hierarchy_and_the_warnings(answer) -> None:
    cluster = answer(f"estimate gpt2 --cluster topo:box.txt --accelerator a6000 {JOB} --dp 8")["cluster"]
    assert cluster["name"] == "topo:box.txt"
    assert cluster["accelerators"] == 8
    assert [(level["name"], level["kind"], level["size"]) for level in cluster["levels"]] == [
        ("bridge", "bridge", 2),
        ("socket", "host", 4),
        ("host", "host", 8),
    ]
    assert cluster["devices"] == []
    assert any("GPU0 to GPU3" in warning and "NIC0" in warning for warning in cluster["warnings"])


def test_standard_input_is_read_like_a_file(answer) -> None:
    command = ["estimate", "gpt2", "--cluster", "topo:-", "--accelerator", "a6000", *JOB.split(), "--dp", "8", "--json"]
    done = CliRunner().invoke(app, command, input=PAIRS)
    assert done.exit_code == 0, done.stderr
    piped = json.loads(done.stdout)
    filed = answer(f"estimate gpt2 --cluster topo:box.txt --accelerator a6000 {JOB} --dp 8")
    assert piped["cluster"]["levels"] == filed["cluster"]["levels"]
    assert piped["step_time_s"] == filed["step_time_s"]


def test_the_terminal_shows_the_warnings(run) -> None:
    done = run(f"estimate gpt2 --cluster topo:box.txt --accelerator a6000 {JOB} --dp 8", 120)
    assert done.exit_code == 0
    assert "Warning" in done.stdout
    assert "GPU0 to GPU3 reach" in done.stdout


@pytest.mark.parametrize(
    ("cluster", "ports", "port"),
    [
        ("4xtopo:box.txt@infiniband-ndr:8", 8, 50e9),
        ("4xtopo:box.txt@infiniband-ndr", 1, 50e9),  # the table shows one adapter
        ("4xTOPO:box.txt@ethernet-100g", 1, 12.5e9),
        ("4xtopo:b@x.txt@infiniband-hdr:2", 2, 25e9),
        ("4xtopo:box.txt --nics ports.txt", 1, 25e9),
    ],
)
def test_several_nodes_are_joined_by_the_fabric_that_is_named(answer, cluster: str, ports: int, port: float) -> None:
    document = answer(f"estimate gpt2 --cluster {cluster} --accelerator a6000 {JOB} --dp 32")
    fabric = document["cluster"]["levels"][-1]
    assert (fabric["kind"], fabric["size"]) == ("fabric", 32)
    assert fabric["bytes_per_s"] == ports * port / 8


@pytest.mark.parametrize("fabric", ["@infiniband-ndr", " --nics ports.txt"])
def test_one_node_is_told_that_its_fabric_is_not_used(answer, fabric: str) -> None:
    cluster = answer(f"estimate gpt2 --cluster topo:box.txt{fabric} --accelerator a6000 {JOB} --dp 8")["cluster"]
    assert any("one node only" in warning for warning in cluster["warnings"])
    assert len(cluster["levels"]) == 3


def test_a_saved_plan_holds_the_topology(answer, tmp_path: Path) -> None:
    first = answer(f"plan gpt2 --cluster topo:box.txt --accelerator a6000 {JOB} --save plan.yaml")["best"]
    (tmp_path / "box.txt").unlink()
    again = answer("estimate plan.yaml")
    assert again["cluster"] == first["cluster"]
    assert again["step_time_s"] == pytest.approx(first["step_time_s"])


@pytest.mark.parametrize(
    ("options", "pieces"),
    [
        ("--cluster topo:box.txt", ["--cluster", "accelerator is missing", "--accelerator a100-80g"]),
        ("--cluster topo:box.txt --accelerator a600", ["--accelerator", "'a600'", "did you mean a6000"]),
        ("--cluster topo:box.txt --accelerator ''", ["--accelerator", "no accelerator is called ''"]),
        ("--cluster topo:box.txt --accelerator 4090", ["box.txt", "NV4", "4090 has no such links"]),
        ("--cluster dgx-h100 --accelerator h100", ["'h100'", "dgx-h100", "topo:FILE"]),
        ("--cluster dgx-h100 --nics ports.txt", ["'ports.txt'", "dgx-h100", "topo:FILE"]),
        ("--cluster topo:absent.txt --accelerator a6000", ["absent.txt", "No such file"]),
        ("--cluster topo:folder --accelerator a6000", ["folder", "not an ordinary file"]),
        ("--cluster topo:empty.txt --accelerator a6000", ["empty.txt", "is empty", "nvidia-smi topo -m"]),
        ("--cluster topo:ports.txt --accelerator a6000", ["ports.txt", "looks like ibstat", "--nics FILE"]),
        ("--cluster topo: --accelerator a6000", ["topo:FILE"]),
        ("--cluster topo:box.txt@ --accelerator a6000", ["topo:FILE"]),
        ("--cluster topo:box.txt@infiniband-ndr: --accelerator a6000", ["topo:FILE"]),
        ("--cluster 0xtopo:box.txt --accelerator a6000", ["0 nodes", "1xtopo:box.txt"]),
        ("--cluster 4xtopo:box.txt --accelerator a6000", ["joins the 4 nodes", "@infiniband-ndr", "--nics"]),
        ("--cluster 4xtopo:box.txt@infiniband-nd --accelerator a6000", ["infiniband-ndr"]),
        ("--cluster 4xtopo:box.txt@infiniband-ndr:0 --accelerator a6000", ["0 ports", ":1"]),
        ("--cluster 4xtopo:box.txt@efa-3200g:4 --accelerator a6000", ["efa-3200g", "rate per node"]),
        ("--cluster 999999xtopo:box.txt@infiniband-ndr --accelerator a6000", ["1,000,000", "125000xtopo:box.txt"]),
        ("--cluster 4xtopo:box.txt@infiniband-ndr --accelerator a6000 --nics ports.txt", ["both", "keep one"]),
        ("--cluster 4xtopo:box.txt --accelerator a6000 --nics box.txt", ["box.txt", "no port of ibstat"]),
        ("--cluster 4xtopo:box.txt --accelerator a6000 --nics absent.txt", ["absent.txt"]),
        ("--cluster 4xtopo:box.txt --accelerator a6000 --nics ''", ["--nics is empty"]),
        ("--cluster 4xtopo:- --accelerator a6000 --nics -", ["standard input"]),
    ],
)
def test_what_can_not_be_understood_is_said_in_one_message(run, options: str, pieces: list[str]) -> None:
    done = run(f"plan gpt2 {options} {JOB}", 200)
    assert done.exit_code == 2, done.stdout
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    for piece in pieces:
        assert piece in done.stderr, done.stderr


def test_the_api_takes_the_same(tmp_path: Path) -> None:
    cluster = mw.load_cluster("2xtopo:box.txt", accelerator="a6000", nics="ports.txt")
    assert cluster.accelerators == 16
    assert cluster.levels[-1].name == "infiniband-hdr"
    with pytest.raises(mw.InputError, match="accelerator is missing"):
        mw.load_cluster("topo:box.txt")


def test_the_order_of_devices_is_saved_and_read_back(tmp_path: Path) -> None:
    (tmp_path / "box.txt").write_text(table(renumbered(nested([2, 2], ["NV4", "SYS"]), [0, 2, 1, 3])))
    cluster = mw.load_cluster("topo:box.txt", accelerator="a6000")
    mw.save_cluster(cluster, "saved.yaml")
    assert mw.load_cluster("saved.yaml") == cluster
    text = (tmp_path / "saved.yaml").read_text()
    assert "devices" in text
    (tmp_path / "saved.yaml").write_text(text.replace("devices:\n- 0\n", "devices:\n- 1\n"))
    with pytest.raises(mw.InputError, match="devices is .* each once"):
        mw.load_cluster("saved.yaml")
