"""Memory of a row: units, counters, components, and what has no prediction."""

from __future__ import annotations

import pytest

from meshwright.measure.comparison import PEAK, Comparison, Row
from meshwright.measure.peaks import peak_gib
from meshwright.measure.predict import compare_rows
from meshwright.spec.errors import InputError
from meshwright.spec.estimate import Estimate

RUN = {"model": "llama2-7b", "seq_len": "2048", "gpu": "A100-SXM-80GB", "gpus_total": "8", "gpus_per_node": "8",
       "tp": "1", "pp": "1", "dp": "8", "cp": "1", "zero_stage": "3", "micro_batch": "1", "global_batch_seqs": "8",
       "recompute": "none", "dtype": "bf16", "framework": "FSDP", "mem_gib": "40"}  # fmt: skip


def compared(**changes: str) -> Comparison:
    cells = {name: text for name, text in (RUN | changes).items() if text}
    (found,) = compare_rows([Row("r:2", "memory", cells)])
    return found


@pytest.mark.parametrize(
    ("cells", "gib"),
    [
        ({"mem_gib": "40.5"}, 40.5),
        ({"mem_value": "1024", "mem_unit": "MiB"}, 1.0),
        ({"mem_value": "1024", "mem_unit": "MB"}, 1.0),
        ({"mem_per_gpu": "70.09", "mem_unit": "GB (doc says GiB)"}, 70.09),
        ({"mem_value": str(2**31), "mem_unit": "bytes"}, 2.0),
        ({}, None),
    ],
)
def test_units(cells: dict[str, str], gib: float | None) -> None:
    assert peak_gib(Row("r:2", "memory", cells)) == gib


def test_an_unknown_unit_is_refused() -> None:
    with pytest.raises(InputError, match="mem_unit is 'bananas'"):
        peak_gib(Row("r:2", "memory", {"mem_value": "3", "mem_unit": "bananas"}))


def test_every_counter_sees_its_parts() -> None:
    """torch's allocated < reserved < all that the driver shows, apart by what the profile says."""
    process, reserved, allocated = (
        compared(mem_def=words) for words in ("nvidia-smi rounded", "peak reserved/active", "torch max allocated")
    )
    found = process.estimate
    assert isinstance(found, Estimate)
    assert process.predicted is not None
    assert reserved.predicted is not None
    assert allocated.predicted is not None
    assert process.predicted * 2**30 == pytest.approx(found.memory_total_bytes)
    assert (process.predicted - reserved.predicted) * 2**30 == pytest.approx(found.software.runtime_bytes)
    assert reserved.predicted / allocated.predicted == pytest.approx(1 + found.software.fragmentation)


def test_model_states_of_fully_sharded_training_are_sixteen_bytes_a_parameter() -> None:
    """Rajbhandari et al. 2020 (ZeRO), section 3.1: 16 bytes a parameter, over the ranks at stage 3. FSDP has the
    fp32 weight as its master: 4 + 4 + 8."""
    found = compared(kind="training component", mem_component="model states")
    assert found.estimate is not None
    expected = 16 * found.estimate.model.num_parameters / 8 / 2**30
    assert found.metric == "model_states_gib"
    assert found.predicted == pytest.approx(expected, rel=0.01)


def test_what_forward_keeps_is_part_of_the_most_that_is_held() -> None:
    kept = compared(kind="training component", mem_component="activations retained")
    most = compared(kind="training component", mem_component="activations peak")
    assert (kept.metric, most.metric) == ("activations_gib", "activations_peak_gib")
    assert kept.estimate is not None
    assert kept.predicted is not None
    assert most.predicted is not None
    extra = kept.estimate.software.logit_peak_bytes * 2048 * kept.estimate.model.vocab
    # the part of the loss also holds the input and output of the last norm, shared out in proportion
    assert (most.predicted - kept.predicted) * 2**30 == pytest.approx(extra, rel=0.05)


def test_serving_has_no_prediction_and_says_so() -> None:
    found = compared(kind="inference peak", task="inference ISL 60 OSL 20")
    assert (found.metric, found.measured, found.predicted) == (PEAK, 40.0, None)
    assert "serving" in found.reason


def test_a_run_that_was_out_of_memory() -> None:
    found = compared(mem_gib="", oom="yes")
    assert (found.measured, found.out_of_memory) == (None, True)
    assert found.predicted is not None
    assert found.error is None


def test_a_row_without_memory_says_so() -> None:
    assert "states no memory" in compared(mem_gib="").reason
