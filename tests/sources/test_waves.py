"""How matmul tiles fall on multiprocessors, as a file says it: read, inherited, refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import meshwright as mw
from meshwright.cost.compute import last_wave
from meshwright.sources.fields import Fields
from meshwright.sources.waves import read_waves, waves_content
from meshwright.spec.cluster import Waves
from meshwright.spec.errors import InputError

A100 = Waves(108, ((256, 128, 1.0), (128, 128, 0.9)), 0.5)


def read(content: Any, relative: Waves | None = None) -> Waves | None:
    return read_waves(Fields("card.yaml", content, ("waves",)), relative)


def test_a_description_is_read_back() -> None:
    assert read({"waves": waves_content(A100)}) == A100


def test_an_heir_says_its_own_multiprocessors_and_takes_the_rest() -> None:
    assert read({"waves": {"multiprocessors": 82}}, A100) == Waves(82, A100.tiles, 0.5)
    assert read({}, A100) == A100
    assert read({}) is None


@pytest.mark.parametrize(
    ("waves", "message"),
    [
        ({"multiprocessors": 108}, "waves.tiles is missing"),
        ({"multiprocessors": 0, "tiles": [[256, 128, 1.0]]}, "multiprocessors is 0"),
        ({"multiprocessors": 108, "tiles": [[256, 128]]}, r"tiles\[0\] is \[256, 128\]"),
        ({"multiprocessors": 108, "tiles": [[0, 128, 1.0]]}, r"tiles\[0\]\[0\] is 0"),
        ({"multiprocessors": 108, "tiles": [[256, 128, 0]]}, r"tiles\[0\]\[2\] is 0"),
        ({"multiprocessors": 108, "tiles": [[256, 128, 1.5]]}, r"tiles\[0\]\[2\] is 1.5"),
        ({"multiprocessors": 108, "share": 2, "tiles": [[256, 128, 1.0]]}, "share is 2"),
        ({"multiprocesors": 108}, "multiprocesors"),
    ],
)
def test_what_is_wrong_is_named(waves: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read({"waves": waves})


def test_the_last_wave_by_hand() -> None:
    """2,048 x 7,168 outputs are 8 x 56 = 448 tiles of 256 x 128: 4.15 waves on 108 multiprocessors, so that the fifth
    runs 16 tiles. Half of the loss of 5 / 4.148 counts."""
    one = Waves(108, ((256, 128, 1.0),), 0.5)
    assert last_wave(one, 2048, 7168) == pytest.approx(1 + 0.5 * (5 / (448 / 108) - 1))
    assert last_wave(one, 2048 * 27, 7168) == pytest.approx(1)  # 112 full waves
    assert last_wave(None, 2048, 7168) == 1


def test_a_cluster_file_keeps_them(tmp_path: Path) -> None:
    cluster = mw.load_cluster("dgx-a100-80g")
    mw.save_cluster(cluster, tmp_path / "c.yaml")
    assert mw.load_cluster(tmp_path / "c.yaml").accelerator.waves == cluster.accelerator.waves is not None
