"""Texts that are no topology, or one that can't be read: one error that says which row, or what to paste instead."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from printed_topology import LEGEND, nested, table

from meshwright.sources.clusters import load_cluster
from meshwright.sources.topology.printout import read_printout
from meshwright.spec.errors import InputError

EIGHT = table(nested([8], ["NV18"]))
ROWS = EIGHT.splitlines()

WRONG: dict[str, tuple[str | bytes, list[str]]] = {
    "empty": ("", ["is empty", "nvidia-smi topo -m"]),
    "blank": ("\n \n\t\n", ["is empty"]),
    "binary": (b"\x7fELF\x02\x01\x01\x00\x00\x00", ["is not text"]),
    "huge": (b"GPU0 X\n" * 200_000, ["1,000,000 bytes", "pass the table only"]),
    "lscpu": ("Architecture: x86_64\nCPU(s): 112\nSocket(s): 2\n", ["looks like lscpu", "nvidia-smi topo -m"]),
    "ibstat": ("CA 'mlx5_0'\n\tCA type: MT4123\n\tPort 1:\n", ["looks like ibstat", "--nics FILE"]),
    "nvidia-smi": ("| NVIDIA-SMI 550.54  Driver Version: 550.54 |", ["looks like nvidia-smi without topo -m"]),
    "nvidia-smi -L": ("GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-5d0a)", ["looks like nvidia-smi -L"]),
    "peers": (table(nested([4], ["OK"])), ["topo -p2p", "nvidia-smi topo -m"]),
    "no gpu": ("No devices were found\n", ["no GPU"]),
    "no command": ("bash: nvidia-smi: command not found\n", ["error message", "GPUs and their driver"]),
    "legend": (LEGEND, ["legend", "not the table"]),
    "cluster file": ("name: lab\naccelerator: h100\nlevels: []\n", ["cluster file", "without topo:"]),
    "letter": ("Dear all,\nthe box is slow.\n", ["no row", "'Dear all,'", "GPU0 X"]),
    "header alone": (ROWS[0], ["GPU0 to GPU7", "no row that can be read"]),
    "two rows missing": ("\n".join(ROWS[:7]), ["GPU6 and GPU7", "row GPU6 is not there", "every row whole"]),
    "unreadable": (
        "\n".join(table(nested([2], ["NV?"])).splitlines()),
        ["GPU0 and GPU1", "row GPU0 reads 'NV?' in column GPU1", "row GPU1 reads 'NV?'"],
    ),
    "contradiction": (
        EIGHT.replace("GPU0\t X \tNV18", "GPU0\t X \tSYS"),
        ["row GPU0 reads SYS", "row GPU1 reads NV18"],
    ),
    "two nodes": (EIGHT + EIGHT.replace("NV18", "NV12"), ["row GPU0 stands there twice", "one node"]),
    "no header": (
        "\n".join(table(nested([2, 3], ["PIX", "SYS"]), affinity=False, header=False).splitlines()[:2]),
        ["columns 3 to 6", "GPUs or network adapters", "line above row GPU0"],
    ),
    "name lost": (EIGHT.replace("GPU3\t", "", 1), ["row GPU3"]),
    "no such accelerator links": (EIGHT.replace("NV18", "NV24"), ["NV24", "h100 has 18 links"]),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_text_that_is_no_table_is_called_what_it_is(tmp_path: Path, name: str) -> None:
    content, pieces = WRONG[name]
    path = tmp_path / "paste.txt"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError) as caught:
        load_cluster(f"topo:{path}", accelerator="h100")
    for piece in ("paste.txt", *pieces):
        assert piece in str(caught.value)


@pytest.mark.parametrize(
    ("accelerator", "pieces"),
    [
        ("4090", ["NV18", "4090 has no such links", "h100"]),
        ("a100-80g", ["NV18", "a100-80g has 12 links", "h100"]),
        ("mi300x", ["nvidia-smi", "mi300x", "another vendor"]),
        ("tpu-v4", ["nvidia-smi", "tpu-v4"]),
        ("h10", ["no accelerator is called 'h10'", "h100"]),
        ("", ["the accelerator is missing", "--accelerator"]),
    ],
)
def test_the_accelerator_must_be_able_to_have_those_links(tmp_path: Path, accelerator: str, pieces: list[str]) -> None:
    (tmp_path / "box.txt").write_text(EIGHT)
    with pytest.raises(InputError) as caught:
        load_cluster(f"topo:{tmp_path / 'box.txt'}", accelerator=accelerator)
    for piece in pieces:
        assert piece in str(caught.value)


def test_windows_saves_it_in_sixteen_bits(tmp_path: Path) -> None:
    (tmp_path / "box.txt").write_bytes(EIGHT.encode("utf-16"))
    assert load_cluster(f"topo:{tmp_path / 'box.txt'}", accelerator="h100").levels[0].size == 8


def gpus_or_error(text: str) -> tuple[int, ...] | str:
    try:
        return read_printout(text, "paste").gpus
    except InputError as error:
        return str(error)


@given(st.text(max_size=200) | st.text("GPU0123NVXSYPIH \t\n>|", max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    found = gpus_or_error(text)
    assert "paste" in found if isinstance(found, str) else found
