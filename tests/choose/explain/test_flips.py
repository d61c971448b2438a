"""Thresholds of the choice, held to whole searches on both sides and to a scan from the present value outward."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest
import small_jobs as small
from small_jobs import job

import meshwright as mw
from meshwright.choose import choose
from meshwright.choose.explain import explain, variations
from meshwright.choose.explain.facts import Flip
from meshwright.choose.explain.flips import FARTHEST, whole_steps
from meshwright.sources.models import load_model
from meshwright.sources.software import load_software
from meshwright.spec.plan import Plan
from meshwright.spec.rules import Job

MEMORY_MB, INNER, OUTER = 45.0, 4e9, 5e8


def at(
    *, memory_mb: float = MEMORY_MB, inner: float = INNER, outer: float = OUTER, batch: int = 8, seq_len: int = 128
) -> Job:
    return job(
        cluster=small.switches(2, 2, memory_mb=memory_mb, inner=inner, outer=outer), batch=batch, seq_len=seq_len
    )


def ports(count: float) -> Job:
    cluster = small.switches(2, 2, memory_mb=MEMORY_MB)
    fabric = replace(
        cluster.levels[1], ports_per_node=int(count), bytes_per_s=count * OUTER / 2
    )  # two cards share them
    return job(cluster=replace(cluster, levels=(cluster.levels[0], fabric)))


CHANGED: dict[str, Callable[[float], Job]] = {
    "switch speed": lambda value: at(inner=value),
    "fabric speed": lambda value: at(outer=value),
    "fabric ports": ports,
    "accelerator memory": lambda value: at(memory_mb=value / small.MB),
    "global batch": lambda value: at(batch=int(value)),
    "sequence length": lambda value: at(seq_len=int(value)),
}
"""The same job, described anew with another value."""


def degrees(plan: Plan) -> dict[str, int]:
    return {axis: getattr(plan, axis) for axis in ("tp", "cp", "ep", "dp", "pp")}


@cache
def best(title: str, value: float) -> tuple[tuple[str, int], ...] | None:
    of_job = CHANGED[title](value)
    found = choose(of_job.model, of_job.cluster, of_job.workload, of_job.software, top=1).best
    return None if found is None else tuple(degrees(found.plan).items())


@cache
def flips_of(outer: float = OUTER) -> tuple[Flip, ...]:
    of_job = at(outer=outer)
    found = explain(of_job.model, of_job.cluster, of_job.workload, of_job.software).flips
    assert found is not None
    return found


def known(of_plan: object) -> object:
    return None if of_plan is None else tuple(dict(of_plan).items())  # type: ignore[call-overload]


@pytest.mark.parametrize("title", CHANGED)
def test_both_sides_of_a_flip_are_what_a_search_finds_there(title: str) -> None:
    now = best("fabric speed", OUTER)
    found = [flip for flip in flips_of() if flip.title == title]
    assert {flip.direction for flip in found} == {"down", "up"}
    for flip in found:
        assert best(title, flip.keeps.value) == known(flip.keeps.plan) == now
        if flip.flips is not None:
            assert best(title, flip.flips.value) == known(flip.flips.plan) != now
        else:
            factor = max(flip.keeps.value / flip.now, flip.now / flip.keeps.value)
            assert factor == pytest.approx(FARTHEST, rel=0.01) or title == "fabric ports"


@pytest.mark.parametrize("title", CHANGED)
def test_a_scan_outward_meets_no_other_choice_before_the_flip(title: str) -> None:
    now = best("fabric speed", OUTER)
    for flip in flips_of():
        if flip.title != title:
            continue
        reach = max(flip.keeps.value / flip.now, flip.now / flip.keeps.value)
        for step in range(1, 9):
            factor = reach ** (step / 9)
            value = flip.now * factor if flip.direction == "up" else flip.now / factor
            if flip.unit.startswith("bytes"):
                assert best(title, value) == now, (title, flip.direction, value)


def test_the_sides_of_a_flip_are_close() -> None:
    for flip in flips_of():
        if flip.flips is not None and flip.unit.startswith("bytes"):
            ratio = max(flip.flips.value / flip.keeps.value, flip.keeps.value / flip.flips.value)
            assert 1 < ratio < 1.035  # 2.2 %, and three digits


def test_a_threshold_does_not_depend_on_where_one_starts() -> None:
    """A link that is slower already meets the same flip further down, and the same one further up."""
    slower = flips_of(OUTER * 0.8)
    for direction in ("down", "up"):
        here, there = (
            next(flip for flip in found if (flip.title, flip.direction) == ("fabric speed", direction))
            for found in (flips_of(), slower)
        )
        if here.flips is not None:
            assert there.flips is not None
            assert there.flips.value == pytest.approx(here.flips.value, rel=0.05)
            assert there.flips.plan == here.flips.plan


def test_memory_alone_does_not_care_for_links() -> None:
    of_job = at()
    found = explain(of_job.model, of_job.cluster, of_job.workload, of_job.software, objective="memory").flips
    assert found is not None
    assert {flip.name for flip in found} == {"memory", "global_batch", "seq_len"}


def test_a_sequence_is_not_lengthened_beyond_learned_positions() -> None:
    of_job = job(small.model(*[small.dense_layer()] * 4, max_positions=160), small.switches(2, 2, memory_mb=45))
    found = explain(of_job.model, of_job.cluster, of_job.workload, of_job.software).flips
    assert found is not None
    up = [flip for flip in found if (flip.name, flip.direction) == ("seq_len", "up")]
    assert all(flip.keeps.value <= 160 for flip in up)


def test_whole_values_step_by_quarters_of_a_doubling() -> None:
    assert whole_steps(1024, up=True)[:5] == (1280, 1536, 1792, 2048, 2560)
    assert whole_steps(1024, up=False)[:5] == (896, 768, 640, 512, 448)
    assert whole_steps(3, up=True) == (6, 9, 12, 15, 18, 21, 24, 30, 36, 42, 48)
    assert whole_steps(1, up=False) == ()
    assert whole_steps(1024, up=False)[-1] == 64


def test_progress_names_what_is_searched() -> None:
    told: list[str] = []
    of_job = at()
    explain(of_job.model, of_job.cluster, of_job.workload, of_job.software, progress=told.append)
    assert len(told) == len(set(told)) == len(flips_of())
    assert any("fabric speed, down" in text for text in told)


@pytest.mark.slow
def test_flips_of_a_70b_model_on_256_accelerators_are_what_whole_searches_find() -> None:
    model, software, training = load_model("llama-3.1-70b"), load_software(), mw.Training(1024, 4096)
    of_job = Job(model, mw.load_cluster("32xdgx-a100-80g"), software, training)
    said = mw.explain(model, of_job.cluster, training)
    assert said.flips is not None
    assert said.best is not None
    flipped = [flip for flip in said.flips if flip.flips is not None]
    assert len(flipped) > 6
    for flip in flipped:
        number = next((n for n, level in enumerate(of_job.cluster.levels) if flip.title.startswith(level.name)), 0)
        for side in (flip.keeps, flip.flips):
            assert side is not None
            changed = {
                "link_speed": lambda value, n=number, now=flip.now: variations.with_link_speed(of_job, n, value / now),
                "ports_per_node": lambda value, n=number: variations.with_ports(of_job, n, int(value)),
                "memory": lambda value, now=flip.now: variations.with_memory(of_job, value / now),
                "global_batch": lambda value: variations.with_batch(of_job, int(value)),
                "seq_len": lambda value: variations.with_seq_len(of_job, int(value)),
            }[flip.name](side.value)
            found = choose(changed.model, changed.cluster, changed.workload, changed.software, top=1).best
            assert found is not None
            assert degrees(found.plan) == side.plan
            assert (degrees(found.plan) == degrees(said.best.plan)) == (side is flip.keeps)
