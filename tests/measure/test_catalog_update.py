"""Fitted constants in the catalog's files: just their keys change, and writing them twice changes nothing."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import yaml

from meshwright.measure.catalog_constants import CONSTANTS, Known
from meshwright.measure.catalog_update import update_catalog, write_accuracy
from meshwright.measure.places import AcceleratorNumber, LevelNumber, Only, SoftwareNumber
from meshwright.sources.catalog import CATALOG
from meshwright.spec.accuracy import Accuracy, Spread


def fitted(known: tuple[Known, ...], factor: float) -> Any:
    """What the writer reads of a fit."""
    return SimpleNamespace(
        known=known,
        factors={each.name: factor for each in known},
        values={each.name: each.prior for each in known},
        full=SimpleNamespace(standard_errors=np.full(len(known), 0.05)),
        spread=lambda name: (0.7, 0.8),
        informing=lambda name: (12, ("a", "b")),
    )


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return Path(shutil.copytree(CATALOG, tmp_path / "catalog"))


KNOWN = (
    Known("card", AcceleratorNumber("sustained", Only.of(("h100",))), 0.7, 0.1, "what a step keeps", "assumed"),
    Known("net", LevelNumber("efficiency", names=frozenset({"roce-100g"})), 0.5, 0.1, "what the network reaches", "-"),
    Known("odd", SoftwareNumber(("misaligned_64_factor",)), 1.3, 0.1, "what odd widths cost", "-"),
)


def test_only_the_constants_and_their_evidence_change(copy: Path) -> None:
    changed = update_catalog(fitted(KNOWN, 1.1), copy)
    assert changed == ["accelerators/h100", "fabrics/roce-100g", "habits/common"]
    for entry, key in zip(changed, ("sustained", "efficiency", "misaligned_64_factor"), strict=True):
        old, new = (yaml.safe_load((folder / f"{entry}.yaml").read_text()) for folder in (CATALOG, copy))
        assert new[key] == pytest.approx(1.1 * old[key], rel=5e-3)
        assert "12 steps of 2 sources" in new["fitted"]
        assert {name for name in new if new[name] != old.get(name)} <= {key, "fitted"}


def test_writing_the_same_constants_again_changes_nothing(copy: Path) -> None:
    found = fitted(KNOWN, 1.1)
    assert update_catalog(found, copy)
    assert update_catalog(found, copy) == []


def test_every_constant_of_the_catalog_has_a_place_in_a_file(copy: Path) -> None:
    changed = set(update_catalog(fitted(CONSTANTS, 0.9), copy))
    assert {"accelerators/h100", "attention/flash2", "attention/unfused", "software/torchtitan-2025"} <= changed
    assert {"fabrics/infiniband-ndr", "habits/common"} <= changed


def test_ranges_are_written_as_they_are_read(copy: Path) -> None:
    long = {"long": Spread(0.8, 1.1, 9, 2)}
    accuracy = Accuracy(Spread(0.9, 1.2, 100, 5), long, frozenset({"h100"}), frozenset({"x"}))
    write_accuracy(accuracy, "some runs", copy)
    content = yaml.safe_load((copy / "accuracy" / "training.yaml").read_text())
    assert content["overall"] == {"low": 0.9, "high": 1.2, "rows": 100, "sources": 5}
    assert content["regimes"] == [{"name": "long", "low": 0.8, "high": 1.1, "rows": 9, "sources": 2}]
    assert (content["accelerators"], content["profiles"]) == (["h100"], ["x"])
