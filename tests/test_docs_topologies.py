"""The examples of the topology page."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest


@pytest.fixture
def topologies(repository: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(repository / "docs"))
    monkeypatch.delitem(sys.modules, "topologies", raising=False)
    import topologies

    return topologies


# levels that a reader sees in each file, or the reason why it is refused
EXPECTED = {
    "switched": ["nvlink switch of 4, 450 GB/s"],
    "bridged-pairs": ["bridge of 2", "host of 4"],
    "crossed-pairs": ["bridge of 2", "host of 4", "devices 0, 2, 1, 3"],
    "link-down-in-a-mail": ["socket of 4", "NVLink of GPU3 is down", "CUDA_VISIBLE_DEVICES=0,1,2"],
    "pair-and-one": ["host-bridge of 3", "GPU0 has no NVLink", "CUDA_VISIBLE_DEVICES=1,2"],
    "switches-and-sockets": ["pcie-switch of 2", "host of 4", "GPU2 and GPU3 reach mlx5_0"],
    "no-peer-to-peer": ["host-bridge of 4", "no peer-to-peer"],
    "half-a-cube-mesh": ["nvlink mesh of 4, 100 GB/s", "devices 0, 3, 1, 2"],
    "three-and-two": ["host of 5", "3 and 2", "CUDA_VISIBLE_DEVICES=0,1,3,4"],
    "two-hives": ["xgmi bridge of 2, 64 GB/s", "host of 4"],
    "rows-missing": ["refused", "GPU2 and GPU3", "row GPU2 is not there"],
    "another-tool": ["refused", "looks like lscpu"],
}


def test_the_table_says_what_a_reader_sees_in_each_example(topologies, repository: Path) -> None:
    rows = dict(zip(topologies.EXAMPLES, topologies.examples_table().splitlines()[2:], strict=True))
    assert set(rows) == set(EXPECTED) == {path.stem for path in (repository / "docs" / "topologies").glob("*.txt")}
    for name, pieces in EXPECTED.items():
        assert rows[name].startswith(f"| `{name}` |")
        for piece in pieces:
            assert piece in rows[name], (name, rows[name])


def test_no_warning_of_the_examples_advises_against_another(topologies) -> None:
    """At most one way to leave GPUs out of one box."""
    for row in topologies.examples_table().splitlines()[2:]:
        advised = {part.split()[0].rstrip(";.") for part in row.split("CUDA_VISIBLE_DEVICES=")[1:]}
        assert len(advised) <= 1, row
