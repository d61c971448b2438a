"""Tables of measured collectives, as their columns say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from meshwright.measure.collectives_table import group_of, predicted_s, read_calls, series_of
from meshwright.sources.clusters import load_cluster
from meshwright.spec.collectives import CollectiveLibrary, Protocol
from meshwright.spec.errors import InputError

HEAD = "source_id,gpu,gpus_total,nodes,collective,message_bytes,time_us\n"


def table(folder: Path, *rows: str, head: str = HEAD) -> Path:
    path = folder / "collectives.csv"
    path.write_text(head + "\n".join(rows) + "\n")
    return path


def test_calls_on_one_node_are_read_and_others_left_out(tmp_path: Path) -> None:
    calls = read_calls(
        table(
            tmp_path,
            "a,H100,8,1,all_reduce,1048576,25.4",
            "a,H100,4,,alltoall,512,6.7",
            "a,H100,16,2,all_reduce,1048576,90",  # two nodes
            "a,H100,2,1,p2p_unidir,1048576,9",  # no collective
            "a,H100,8,1,all_reduce,,25",  # no size
            "a,H100,8,1,all_gather,1024,",  # no time
        )
    )
    assert [(call.collective, call.ranks, call.payload_bytes) for call in calls] == [
        ("all_reduce", 8, 1048576.0),
        ("all_to_all", 4, 512.0),
    ]
    assert [call.seconds for call in calls] == pytest.approx([25.4e-6, 6.7e-6])


def test_repeated_sizes_become_their_geometric_mean(tmp_path: Path) -> None:
    rows = ["a,H100,8,1,all_reduce,2048,8", "a,H100,8,1,all_reduce,1024,4", "a,H100,8,1,all_reduce,2048,18"]
    (series,) = series_of(read_calls(table(tmp_path, *rows)))
    assert series.payload_bytes.tolist() == [1024.0, 2048.0]
    assert series.seconds == pytest.approx([4e-6, 12e-6])


def test_a_series_is_predicted_at_each_of_its_sizes(tmp_path: Path) -> None:
    """The ring of Thakur et al. 2005 on links without losses: 2 (n-1)/n S / rate."""
    (series,) = series_of(read_calls(table(tmp_path, *(f"a,x,8,1,all_reduce,{size},1" for size in (1e6, 2e6)))))
    levels = load_cluster("dgx2-v100").part(8).levels
    ideal = CollectiveLibrary("plain", (Protocol("plain", 1.0, 0.0, 0.0, 0.0),))
    found = predicted_s(series, levels, group_of(levels, 8), ideal)
    assert found == pytest.approx(2 * 7 / 8 * np.array([1e6, 2e6]) / (0.85 * 150e9))


@pytest.mark.parametrize("value", ["fast", "-3", "nan", "inf"])
def test_a_value_that_is_no_number_is_named_with_its_line(tmp_path: Path, value: str) -> None:
    path = table(tmp_path, "a,H100,8,1,all_reduce,1024,4", f"a,H100,8,1,all_reduce,1024,{value}")
    with pytest.raises(InputError) as caught:
        read_calls(path)
    assert str(caught.value).startswith(f"{path}:3: time_us is '{value}'")


def test_a_file_that_is_no_such_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no table of collectives: it has no column message_bytes"):
        read_calls(table(tmp_path, "1", head="gpu,gpus_total,collective,time_us\n"))
    with pytest.raises(InputError, match="can't be read"):
        read_calls(tmp_path / "absent.csv")
