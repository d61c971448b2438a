"""Checks of the data: each finds what it is for, and leaves sound rows alone."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from measured import gpt2_estimate, rows_of_file, sized, timed

from meshwright.measure.comparison import Row
from meshwright.measure.data_checks import (
    KINDS,
    batches,
    check_data,
    degrees,
    duplicates,
    flagged,
    too_much_memory,
)
from meshwright.measure.files import read_rows
from meshwright.measure.finding import number, numbers, published_times_s
from meshwright.measure.predict import compare_rows
from meshwright.measure.published_values import contradictions, conventions, impossible_speeds

JOB = {"model": "gpt2", "seq_len": "1024", "gpus_total": "8", "tp": "2", "pp": "1", "dp": "4", "micro_batch": "2",
       "grad_accum": "8", "global_batch_seqs": "64", "step_time_s": "10"}  # fmt: skip


def row(**cells: str) -> Row:
    return Row("file.csv:2", "training", {name: text for name, text in {**JOB, **cells}.items() if text})


# -- reading cells


@pytest.mark.parametrize("text", ["", "nan", "inf", "-1", "0", "many", "1e300", "1e-300"])
def test_a_cell_that_is_no_number_above_zero_is_none(text: str) -> None:
    assert number({"tp": text}, "tp") is None
    assert numbers({"tp": text, "pp": "2"}, "tp", "pp") is None


def test_step_times_by_the_columns_that_state_them() -> None:
    """64 sequences of 1,024 tokens at 819.2 tokens/s on each of 8, or at 6.4 sequences/s, take 10 s."""
    cells = {**JOB, "tokens_per_s_per_gpu": "819.2", "samples_per_s": "6.4"}
    assert published_times_s(cells) == pytest.approx(
        {"step_time_s": 10, "tokens_per_s_per_gpu": 10, "samples_per_s": 10}
    )


# -- rows


def test_the_same_job_with_the_same_value_is_a_duplicate_and_with_another_value_a_repeat() -> None:
    first = row(row_id="R1", notes="from the README")
    (found,) = duplicates([first, row(row_id="R2", notes="from the blog"), row(row_id="R3", step_time_s="11")])
    assert found.rows == ("R1", "R2")
    assert not list(duplicates([first, row(row_id="R2", tp="4", dp="2")]))
    assert not list(duplicates([row(step_time_s=""), row(step_time_s="")]))  # nothing was measured


def test_degrees_that_do_not_multiply_to_the_accelerators() -> None:
    assert not list(degrees([row(), row(cp="2", dp="2"), row(tp=""), row(gpus_total="many")]))
    assert not list(degrees([row(cp="2")]))  # dp counts the context-parallel ranks
    (found,) = degrees([row(pp="2", row_id="R7")])
    assert found.rows == ("R7",)
    assert "tp 2 × pp 2 × dp 4 is 16, gpus_total is 8" in found.message


def test_a_batch_that_is_not_the_product_of_its_parts() -> None:
    assert not list(batches([row(), row(grad_accum="")]))
    (found,) = batches([row(global_batch_seqs="128")])
    assert "dp 4 × micro_batch 2 × grad_accum 8 is 64, global_batch_seqs is 128" in found.message


def test_more_memory_than_the_accelerator_has() -> None:
    """The A100 has 80 GiB by name, and 79.2 by its driver."""
    fine = [sized(79, 60), sized(79.8, 60, gpu_mem_gb="80"), sized(None, 60, oom=True)]
    assert not list(too_much_memory(fine))
    (found,) = too_much_memory([*fine, sized(88, 60)])
    assert "the peak is 88 GiB" in found.message


def test_flagged_rows_are_counted_and_named() -> None:
    found = list(flagged([row(flags="noisy", row_id="R1"), row(), row(flags="noisy; slow", row_id="R3"),
                          row(flags="noisy", row_id="R4")]))  # fmt: skip
    assert [(each.message, each.rows) for each in found] == [("noisy", ("R1", "R4")), ("noisy; slow", ("R3",))]


# -- values against one another


def step_of_mfu(mfu: float) -> float:
    """Seconds in which 8 A100s of 312 TFLOP/s train 64 × 1,024 tokens of GPT-2 at this MFU, attention counted causally.

    GPT-2: 12 layers of 12 × 768², LM head 50257 × 768; causal attention takes 6 × (s + 1) × 768 a layer and token.
    """
    flops = 6 * (12 * 12 * 768**2 + 50257 * 768) + 12 * 6 * 1025 * 768
    return 64 * 1024 * flops / (8 * 312e12 * mfu)


@pytest.mark.parametrize(
    ("mfu", "kind"),
    [(0.5, None), (0.74, None), (0.76, "suspicious-mfu"), (0.99, "suspicious-mfu"), (1.02, "impossible-mfu")],
)
def test_speeds_beyond_what_the_accelerator_can_do(mfu: float, kind: str | None) -> None:
    found = list(impossible_speeds([timed(step_of_mfu(mfu), 1.0)]))
    assert [each.kind for each in found] == ([kind] if kind else [])


def test_a_published_share_of_the_peak_is_judged_where_there_is_no_prediction() -> None:
    kinds = [each.kind for share in ("45", "80", "120") for each in impossible_speeds([timed(1.0, mfu_pct=share)])]
    assert kinds == ["suspicious-mfu", "impossible-mfu"]


def test_a_rate_that_contradicts_the_step_time() -> None:
    assert not list(contradictions([timed(10, 10, **{**JOB, "tokens_per_s_per_gpu": "820"})]))
    (found,) = contradictions([timed(10, 10, **{**JOB, "tokens_per_s_per_gpu": "409.6"})])
    assert "step_time_s makes a step of 10 s, tokens_per_s_per_gpu one of 20 s" in found.message


def test_flops_are_counted_from_the_fewest_to_the_most_conventional_ones() -> None:
    """GPT-2 without recomputation: 6 FLOPs for each of 12 × 12 × 768² weights and of their biases and norms up to 6
    for all of 124,439,808 parameters and 12 s h L for attention; with recomputation a third more."""
    fewest, most = conventions(gpt2_estimate(), 8)
    tokens = 64 * 1024 / 8
    blocks = 12 * (12 * 768**2 + 13 * 768)
    attention = 12 * 1024 * 768 * 12
    assert fewest / tokens == pytest.approx(6 * blocks)
    assert most / tokens == pytest.approx(6 * 124_439_808 + attention)
    again = timed(1, 1, plan={"recompute": "full"}).estimate
    assert again is not None
    assert conventions(again, 8)[1] / tokens == pytest.approx((6 * 124_439_808 + attention) * 4 / 3)


@pytest.mark.parametrize(
    ("share", "recompute", "contradicts"),
    [
        (0.55, "none", True),
        (0.7, "none", False),
        (1.1, "none", False),
        (1.2, "none", True),
        (1.4, "full", False),
        (1.6, "full", True),
    ],
)
def test_tflops_that_no_way_of_counting_makes_of_the_step_time(share: float, recompute: str, contradicts: bool) -> None:
    """Half of the peak, 156 TFLOP/s, is 798 MFLOP a token by the causal count. The fewest (test above) are 511, 0.64
    of that; the most 860, 1.08 of that, and 1,147, 1.44 of that, with recomputation. A twentieth more is let pass."""
    step = step_of_mfu(0.5)
    for cells in ({"tflops_per_gpu": f"{156 * share}"}, {"mfu_pct": f"{50 * share}"}):
        row = timed(step, step, plan={"recompute": recompute}, step_time_s=f"{step}", **cells)
        assert bool(list(contradictions([row]))) == contradicts


def test_speeds_are_those_of_the_accelerators_that_the_row_states() -> None:
    """Degrees that multiply to 8 on 4 accelerators: half of the peak on 8 is all of it on 4."""
    assert not list(impossible_speeds([timed(step_of_mfu(0.5), 1.0, gpus_total="8")]))
    assert len(list(impossible_speeds([timed(step_of_mfu(0.51), 1.0, gpus_total="4")]))) == 1


def test_every_kind_of_finding_is_explained_and_findings_come_in_that_order() -> None:
    comparisons = [
        timed(10, 10, **{**JOB, "pp": "2", "flags": "noisy"}),
        timed(10, 10, **{**JOB, "pp": "2", "flags": "noisy"}),
        sized(120, 60),
        timed(step_of_mfu(1.2), 1.0),
    ]
    kinds = list(dict.fromkeys(each.kind for each in check_data(comparisons)))
    assert kinds == ["duplicate", "degrees", "impossible-mfu", "memory", "flagged"]
    assert kinds == [kind for kind in KINDS if kind in kinds]


# -- published rows


@pytest.mark.field
def test_the_parallel_products_that_the_data_flags_are_the_ones_found(shared: Path) -> None:
    """Whoever put the rows together multiplied the degrees as well and wrote what is wrong into `flags`."""
    rows = rows_of_file(shared / "data" / "measured" / "training.csv")
    found = {name for each in degrees(rows) for name in each.rows}
    assert found == {each.row_id for each in rows if "tp*pp*cp*dp=" in each.cells.get("flags", "")}
    assert len(found) == 19
    assert not list(batches(rows))


@pytest.mark.field
def test_flagged_rows_of_published_tables_are_all_named(shared: Path) -> None:
    rows = rows_of_file(shared / "data" / "measured" / "training.csv")
    counted = Counter(each.source for each in rows if each.cells.get("flags"))
    named = Counter(dict.fromkeys(counted, 0))
    for each in flagged(rows):
        named[each.source] += len(each.rows)
    assert named == counted


@pytest.mark.field
def test_the_published_rate_that_its_authors_call_invalid_is_found(shared: Path) -> None:
    """Four rows of this source are of a model smaller than its heading says: "FFN_HIDDEN_SIZE was wrong". Three of
    their rates are what the larger model's would be with recomputation; the fourth can't be had from its step time."""
    rows = read_rows(shared / "data" / "measured" / "training.csv")
    smaller = [each for each in rows if "FFN_HIDDEN_SIZE was wrong" in each.cells.get("flags", "")]
    others = [each for each in rows if each.source == smaller[0].source and "flags" not in each.cells]
    assert len(smaller) == 4
    assert others
    assert {each.rows for each in contradictions(compare_rows([*smaller, *others]))} == {("T02052",)}
