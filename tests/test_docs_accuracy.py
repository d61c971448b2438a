"""The accuracy page is made of pure tables: each on rows made by hand, and the committed page on the published ones."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from measured import gpt2_estimate, rated, sized, timed

import meshwright as mw
from meshwright.measure import catalog
from meshwright.measure.catalog_constants import CONSTANTS
from meshwright.measure.catalog_fit import evidence, fit_comparisons
from meshwright.measure.errors import errors_by
from meshwright.measure.predict import compare
from meshwright.measure.ranges_fit import Left, coverage, held
from meshwright.measure.repricing import Run

MODULES = ("ablation", "choices", "constants", "evidence", "markdown", "memory", "page", "step_times", "weak")


@pytest.fixture
def page(repository: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    """The generator's modules that need no plotting library."""
    monkeypatch.syspath_prepend(str(repository / "docs"))
    import importlib

    yield SimpleNamespace(**{name: importlib.import_module(f"accuracy_page.{name}") for name in MODULES})
    for name in [name for name in sys.modules if name.partition(".")[0] == "accuracy_page"]:
        del sys.modules[name]


def rows_of(table: str) -> list[list[str]]:
    """The cells of a Markdown table without its two head lines."""
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


# -- predictions shifted to left-out ones


def test_a_shifted_prediction_is_off_by_what_was_left_out(page) -> None:
    time, rate = timed(10.0, 11.0), rated(100.0, 80.0)
    slower, faster = page.evidence.shifted([time, rate], np.array([math.log(1.5), math.log(0.8)]))
    assert slower.predicted == pytest.approx(15)
    assert slower.estimate.step_time_s == pytest.approx(15)
    assert (slower.low, slower.high) == pytest.approx((13.5, 16.5))
    assert faster.predicted == pytest.approx(125), "0.8 of the time is 1.25 of the rate"
    assert faster.time_ratio == pytest.approx(0.8)


def test_a_row_without_prediction_cannot_be_shifted(page) -> None:
    with pytest.raises(ValueError, match=r"file\.csv:2"):
        page.evidence.shifted([timed(10.0)], np.array([0.0]))


# -- what counts


def test_the_usual_job_is_16_bit_short_and_aligned(page) -> None:
    usual = page.evidence.usual
    assert usual(timed(1.0, 1.0))
    assert usual(timed(1.0, 1.0, estimate=gpt2_estimate(seq_len=8192)))
    assert not usual(timed(1.0, 1.0, estimate=gpt2_estimate(seq_len=16384)))
    assert not usual(timed(1.0, 1.0, estimate=gpt2_estimate(dtype="fp8", cluster="1xdgx-h100")))
    assert not usual(timed(1.0, 1.0, plan={"tp": 8, "dp": 1})), "768 / 8 is no multiple of 64"
    assert not usual(timed(1.0))


def test_a_whole_layout_assumes_none_of_its_parts(page) -> None:
    full = page.evidence.full_layout
    row = timed(1.0, 1.0)
    assert full(replace(row, assumed=("fabric=infiniband-hdr", "virtual_stages=2")))
    for setting in ("tp=2", "pp=1", "micro_batch=4", "global_batch=64", "recompute=none"):
        assert not full(replace(row, assumed=(setting,)))


def test_noise_floors_are_read_from_the_text(page) -> None:
    text = (
        "# Data\n\n## Noise floors\nmax/min - 1 by: some-docs median 1.8%, max 10% (18\nconfigs); other 5.7%, max "
        "9.4% (9); third-v100 6-10%,\nmax 80%. Errors\n\n## Advice\nfourth 1%, max 2%\n"
    )
    assert page.evidence.noise_floors(text) == {
        "some-docs": ("1.8", "10"), "other": ("5.7", "9.4"), "third-v100": ("6–10", "80"),
    }  # fmt: skip
    assert page.evidence.noise_floors("# Data\n") == {}


# -- tables


def test_the_headline_counts_each_source_once(page) -> None:
    many = [timed(10.0, 11.0, source="many", row_id=f"M{n}") for n in range(9)]
    one = timed(10.0, 13.0, source="one")
    unusual = timed(10.0, 30.0, source="long", estimate=gpt2_estimate(seq_len=16384))
    unknown = replace(timed(10.0, 20.0, source="unstated"), assumed=("tp=2",))
    found = page.step_times.headline([*many, one, unusual, unknown], [*many, one])
    assert [each.name for each in found.sources] == ["many", "one"]
    assert found.mean.median == pytest.approx(0.2)
    assert found.mean.covered == 10
    assert found.worst_bias.name == "one"
    assert found.every.median == pytest.approx((0.1 + 0.3 + 2.0 + 1.0) / 4)
    assert rows_of(page.step_times.headline_table(found))[0][1:4] == ["10", "2", "20.0 %"]


def test_choices_are_shown_without_and_with_the_lone_row(page) -> None:
    """dp 8 is predicted fastest and is measured 20 % slower than tp 2, unless the lone row is asked too."""
    sweep = [
        timed(12.0, 10.0, row_id="A"),
        timed(10.0, 11.0, row_id="B", plan={"tp": 2, "dp": 4}),
        timed(20.0, 12.0, row_id="C", plan={"tp": 4, "dp": 2}),
        timed(30.0, 9.0, row_id=page.choices.LONE, plan={"pp": 2, "dp": 4}),
    ]
    source, mean, every, lone = rows_of(page.choices.choice_table(sweep))
    assert source[:3] == ["a", "1", "1.200"]
    assert (mean[2], every[2], lone[2]) == ("1.200", "1.200", "3.000")
    assert rows_of(page.choices.sweep_table(sweep))[0][3:6] == ["B", "A", "1.200"]


def test_peaks_stand_by_source_and_counter(page) -> None:
    rows = [
        sized(50, 55, source="a", mem_def="torch max allocated", row_id="A"),
        sized(50, 45, source="a", mem_def="nvidia-smi", row_id="B"),
        sized(40, 80, source="b", mem_def="peak", flags="layout contradicts", row_id="C"),
        sized(200, 55, source="a", mem_def="nvidia-smi", row_id="D"),
        sized(50, 55, source="c", kind="inference peak", row_id="E"),
    ]
    allocated, smi, flagged, mean = rows_of(page.memory.peak_table(rows))
    assert allocated[:5] == ["a", "allocated", "1", "1", "10.0 %"]
    assert smi[:2] + smi[6:] == ["a", "nvidia-smi", "−10.0 %"], "no accelerator has 200 GiB, so D is left out"
    assert flagged[:2] == ["b †", "not stated"]
    assert mean[4] == "10.0 %", "what contradicts itself is not in the mean"


def test_a_bar_is_held_at_its_limit_and_missed_beyond(page) -> None:
    bar, shown = page.weak.bar, page.markdown.percent
    assert bar("error", 0.07, 0.07, shown).held
    assert not bar("error", 0.0701, 0.07, shown).held
    assert bar("share", 0.85, 0.85, shown, least=True).held
    assert not bar("share", 0.84, 0.85, shown, least=True).held
    assert not bar("nothing known", None, 0.07, shown).held


def test_weak_spots_come_worst_first_and_once(page) -> None:
    """All rows of a source are one accelerator, one layout, one size: one weak spot, not three."""
    poor = [timed(10.0, 15.0, source="poor", row_id=f"P{n}") for n in range(8)]
    good = [timed(10.0, 10.5, source="good", row_id=f"G{n}") for n in range(8)]
    few = [timed(10.0, 30.0, source="few", row_id=f"F{n}") for n in range(7)]
    found = page.weak.slices([*good, *poor, *few])
    assert [each.name.partition(":")[0] for each in found] == ["poor", "good"]
    assert found[0].errors.median == pytest.approx(0.5)


def test_the_rows_inside_their_range_make_up_the_coverage() -> None:
    rows = [timed(10.0, 10.0 + n % 7 / 10, source=source, row_id=f"{source}{n}") for source in "abc" for n in range(9)]
    ratios = np.array([each.log_ratio for each in rows])
    ratios[:3] = 1.0
    left = Left(tuple(rows), ratios)
    inside, shares = held(left), coverage(left)
    assert not inside[:3].any(), "off by e, with the others off by less than a tenth"
    assert shares["a"] == pytest.approx(inside[:9].mean())
    assert shares["all"] == pytest.approx(inside.mean())


# -- terms switched off


def priced(model: str, cluster: str, job: mw.Training, **plan: int) -> Run:
    found = mw.estimate(model, cluster, job, mw.Plan(**plan))
    return Run.of(found, found.step_time_s, "a")


def test_what_a_term_says_is_gone_without_it(page) -> None:
    """Each is a time that is added, so that a job which has it is predicted faster without."""
    terms = {term.title: term for term in page.ablation.TERMS}
    job = priced("gpt3-1.3b", "dgx-a100-80g", mw.Training(16, 2048), tp=8)
    for title in ("last wave of tiles", "small matmuls", "shape of attention", "root of bytes"):
        assert terms[title].without(job).step_s() < job.step_s(), title


def test_only_who_has_a_habit_loses_it(page) -> None:
    terms = {term.title: term for term in page.ablation.TERMS}
    run = priced("gpt3-1.3b", "dgx-a100-80g", mw.Training(16, 2048), dp=8)
    for title, field in (
        ("owners of whole tensors", "shards_whole_tensors"),
        ("stopping early", "checkpoint_stops_early"),
    ):
        without = terms[title].without
        having = replace(run, software=replace(run.software, **{field: True}))
        assert not getattr(without(having).software, field)
        lacking = replace(run, software=replace(run.software, **{field: False}))
        assert without(lacking) == lacking


@pytest.mark.slow
def test_an_ablation_finds_what_a_term_explains(page) -> None:
    """Steps that follow the model exactly: without the last wave they can't be explained, with it they are."""
    rows = [
        timed(1.0, 1.0, source=source, row_id=f"{source}{batch}", estimate=found)
        for source, model in (("a", "gpt3-1.3b"), ("b", "gpt3-2.7b"))
        for batch in (8, 16, 32)
        for found in (mw.estimate(model, "dgx-a100-80g", mw.Training(batch, 1024), mw.Plan(tp=8)),)
    ]
    exact = [
        replace(each, measured=found.step_time_s, predicted=found.step_time_s, estimate=found)
        for each in rows
        for found in (mw.estimate(each.estimate.model, "dgx-a100-80g", each.estimate.workload, each.estimate.plan),)
    ]
    known = [replace(each, prior=each.prior) for each in CONSTANTS[:1]]
    fit = fit_comparisons(exact, known=known)
    term = page.ablation.TERMS[0]
    found = page.ablation.ablate(fit, term)
    assert found.moved.all()
    assert np.abs(found.left_out).mean() > np.abs(fit.folds.left_out).mean()


# -- one command that rewrites the catalog


def test_every_step_of_a_calibration_runs_in_order_and_stops_at_a_failure(tmp_path: Path, capsys) -> None:
    for name in ("collectives.csv", "gemm.csv", "attention.csv", "training.csv"):
        (tmp_path / name).touch()
    ran: list[str] = []

    def run(module: str, folder: str) -> int:
        assert folder == str(tmp_path)
        ran.append(module.rpartition(".")[2])
        return 0

    assert catalog.main([str(tmp_path)], run) == 0
    assert ran == ["links", "kernels", "catalog_training"]
    assert catalog.main([str(tmp_path)], lambda module, folder: 2) == 2
    (tmp_path / "gemm.csv").unlink()
    assert catalog.main([str(tmp_path)], run) == 2
    assert "has no gemm.csv" in capsys.readouterr().err
    assert ran == ["links", "kernels", "catalog_training"], "nothing runs where a file is missing"


# -- the committed page


def test_the_readme_has_one_place_for_the_headline(repository: Path, page) -> None:
    import accuracy

    readme = (repository / "README.md").read_text(encoding="utf-8")
    changed = accuracy.with_block(readme, "New.")
    assert "<!-- accuracy -->\nNew.\n<!-- /accuracy -->" in changed
    assert accuracy.with_block(changed, accuracy.PLACE.search(readme)[0].rstrip("\n")) == readme
    with pytest.raises(ValueError, match="README"):
        accuracy.with_block("No place.", "New.")


def test_a_folder_without_measurements_is_refused(tmp_path: Path, page, capsys) -> None:
    import accuracy

    assert accuracy.main([str(tmp_path)]) == 2
    assert "has no training.csv, no memory.csv" in capsys.readouterr().err
    assert accuracy.main([]) == 2


def test_the_page_shows_pictures_that_are_there(repository: Path) -> None:
    text = (repository / "docs" / "accuracy.md").read_text(encoding="utf-8")
    shown = re.findall(r"!\[[^\]]+\]\((images/accuracy-[\w-]+\.svg)\)", text)
    assert len(shown) == 6
    for name in shown:
        picture = (repository / "docs" / name).read_text(encoding="utf-8")
        assert "<text" in picture
        assert "<dc:date" not in picture


def test_the_same_rows_draw_the_same_picture(page) -> None:
    pytest.importorskip("matplotlib")
    from accuracy_page.pictures import pictures

    rows = [timed(10.0 + n, 11.0, source=source, row_id=f"{source}{n}") for source in "ab" for n in range(3)]
    first, second = pictures(rows), pictures(rows)
    assert first == second
    assert "a (3)" in first["accuracy-scatter.svg"]


@pytest.mark.slow
@pytest.mark.field
@pytest.mark.timeout(900)
def test_the_committed_page_says_what_the_catalog_predicts_today(repository: Path, shared: Path) -> None:
    """The in-sample columns of the table of sources; left-out ones would need the fit, which takes minutes."""
    text = (repository / "docs" / "accuracy.md").read_text(encoding="utf-8")
    section = text.partition("## By source\n")[2]
    rows = [line for line in section.partition("\n## ")[0].splitlines() if line.startswith("| ")]
    committed = {cells[0].removesuffix(" †"): cells for cells in rows_of("\n".join(rows))}
    today = evidence(compare(shared / "data" / "measured" / "training.csv"))
    for each in errors_by(today, lambda each: each.row.source):
        cells = committed[each.name]
        assert int(cells[3].replace(",", "")) == each.covered
        assert share(cells[9]) == pytest.approx(each.median, abs=0.005)
        assert share(cells[10]) == pytest.approx(each.p90, abs=0.01)
        assert share(cells[11]) == pytest.approx(each.bias, abs=0.005)


def share(text: str) -> float:
    """`−1.2 %` as a number."""
    return float(text.removesuffix(" %").replace("−", "-")) / 100
