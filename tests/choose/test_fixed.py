"""Pins are checked before anything is searched."""

from __future__ import annotations

from typing import Any

import pytest

from meshwright.choose import FIELDS
from meshwright.choose.fixed import checked
from meshwright.spec.errors import InputError, UnknownName
from meshwright.spec.plan import Plan


def test_what_can_be_pinned_are_the_fields_of_a_plan_and_the_number_of_micro_batches() -> None:
    assert set(FIELDS) == {*Plan.__dataclass_fields__, "num_micro_batches"}


def test_good_pins_pass() -> None:
    pins = {
        "tp": 8,
        "schedule": "gpipe",
        "order": "tp,cp,dp,pp",
        "sequence_parallel": False,
        "layers_per_stage": [3, 4],
    }
    assert checked(pins) == {**pins, "order": ("tp", "cp", "dp", "pp"), "layers_per_stage": (3, 4)}


def test_an_unset_pin_is_no_pin() -> None:
    assert checked({"tp": None, "pp": 2}) == {"pp": 2}


def test_expert_ranks_may_stand_in_the_order() -> None:
    assert checked({"order": "tp,ep,cp,dp,pp"}) == {"order": ("tp", "cp", "dp", "pp")}


@pytest.mark.parametrize(
    ("field", "value", "rule"),
    [
        ("tp", 0, "at least 1"), ("tp", -1, "at least 1"), ("pp", 1.5, "whole number"), ("dp", True, "whole number"),
        ("cp", "2", "whole number"), ("shard_group", -1, "at least 0"), ("sequence_parallel", 1, "true or false"),
        ("order", "tp,dp,pp", "once each"), ("order", "tp,tp,dp,pp", "once each"), ("order", 3, "once each"),
        ("order", ("tp", "cp", "dp", "ep"), "once each"), ("order", [1, 2, 3, 4], "once each"),
        ("layers_per_stage", 3, "must list whole numbers"), ("layers_per_stage", (), "must list whole numbers"),
        ("layers_per_stage", (1, 0), "at least 1"), ("layers_per_stage", "3,4", "must list whole numbers"),
        ("schedule", "2f2b", "use one of gpipe"), ("recompute", "some", "use one of none"),
        ("offload", 1, "use one of"),
    ],
)  # fmt: skip
def test_a_bad_pin_is_refused_with_its_rule(field: str, value: Any, rule: str) -> None:
    with pytest.raises(InputError, match=rule) as refused:
        checked({field: value})
    assert field in str(refused.value)


def test_an_unknown_field_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(UnknownName, match="micro_batch"):
        checked({"microbatch": 2})
