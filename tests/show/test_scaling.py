"""A sweep in words: what its sentences claim holds for its points."""

from __future__ import annotations

import re

import meshwright as mw
from meshwright.choose.scaling import Scaling
from meshwright.show.scaling import findings


def sweep(model: str, cluster: str, batch: int, **options: object) -> Scaling:
    job = mw.Training(global_batch=batch, seq_len=1024)
    return mw.scale(mw.load_model(model), mw.load_cluster(cluster), job, **options)  # type: ignore[arg-type]


def sentence(scaling: Scaling, start: str) -> str:
    (found,) = [each for each in findings(scaling) if each.startswith(start)]
    return found


def test_where_the_largest_count_is_cheapest_nothing_is_said_of_the_smaller() -> None:
    # 70 B parameters on 8 accelerators: so short of memory that twice as many do far more than twice the work
    scaling = sweep("llama-3.1-70b", "2xdgx-a100-80g", 4, batch_per_replica=4, counts=[8, 16], threshold=0.95)
    small, large = scaling.found
    assert large.tokens_per_s / 16 > small.tokens_per_s / 8 / 0.95
    assert sentence(scaling, "No knee") == "No knee: the largest count is the cheapest."


def test_a_range_without_a_knee_holds_only_counts_at_or_above_the_threshold() -> None:
    scaling = sweep("llama-2-7b", "2xdgx-a100-80g", 64, threshold=0.9)
    said = sentence(scaling, "No knee")
    claimed = re.fullmatch(r"No knee from (\d+) to (\d+) accelerators: efficiency is nowhere below 90%.", said)
    assert claimed is not None, said
    first, last = int(claimed[1]), int(claimed[2])
    best = max(each.tokens_per_s / each.accelerators for each in scaling.found)
    shares = {each.accelerators: each.tokens_per_s / each.accelerators / best for each in scaling.found}
    assert min(shares.values()) < 0.9, "a count below the threshold must be there, or the range proves nothing"
    assert all(share >= 0.9 for count, share in shares.items() if first <= count <= last)


def test_accelerators_that_pins_leave_idle_are_not_put_down_to_the_batch() -> None:
    # 64 sequences would fill 8 accelerators; 3 pinned replicas times powers of two never do
    scaling = sweep("gpt2", "1xdgx-h100", 64, batch_per_replica=4, fixed={"dp": 3}, counts=[4])
    (point,) = scaling.found
    assert point.accelerators_used == 3
    assert "No legal plan fills 4 accelerators: 3 are used. Those that stay idle count as paid for." in findings(
        scaling
    )
