from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meshwright.cost.partition import partition, partition_ranks
from meshwright.program.schedules import rank_of_stage

WEIGHT = st.one_of(st.floats(0, 3), st.sampled_from([0.4, 1.0]))
EXTRA = st.one_of(st.just(0.0), st.floats(0, 4))


def chunk_weights(weights, counts, first_extra, last_extra):
    ends = np.cumsum(counts)
    sums = [sum(weights[end - count : end]) for count, end in zip(counts, ends, strict=True)]
    sums[0] += first_extra
    sums[-1] += last_extra
    return sums


def rank_weights(weights, counts, holder, first_extra, last_extra):
    return np.bincount(holder, chunk_weights(weights, counts, first_extra, last_extra))


def all_partitions(layers, chunks):
    for cuts in combinations(range(1, layers), chunks - 1):
        yield tuple(end - start for start, end in pairwise((0, *cuts, layers)))


@given(st.data(), st.lists(WEIGHT, min_size=1, max_size=9), EXTRA, EXTRA)
@settings(max_examples=150, deadline=None)
def test_the_heaviest_chunk_is_as_light_as_brute_force_can_make_it(data, weights, first_extra, last_extra):
    chunks = data.draw(st.integers(1, len(weights)))
    counts = partition(weights, chunks, first_extra=first_extra, last_extra=last_extra)
    assert len(counts) == chunks
    assert sum(counts) == len(weights)
    assert min(counts) >= 1
    best = min(
        max(chunk_weights(weights, other, first_extra, last_extra)) for other in all_partitions(len(weights), chunks)
    )
    assert max(chunk_weights(weights, counts, first_extra, last_extra)) == pytest.approx(best, rel=1e-8)


def test_weights_that_differ_by_no_more_than_rounding_end_the_search():
    assert sorted(partition([1e-9, 1e-9, 1.0, 1.0, 1e-9, 0.0, 0.0, 0.0], 4)) == [1, 1, 2, 4]


def test_the_heaviest_chunk_of_a_long_model_is_the_one_of_dynamic_programming():
    random = np.random.default_rng(1)
    for chunks in (2, 7, 16, 40):
        weights = random.random(80).tolist()
        sums = np.concatenate([[0.0], np.cumsum(weights)])
        best = sums.copy()  # best[j]: smallest maximum for the first j layers
        for _ in range(chunks - 1):
            best = np.array(
                [min((max(best[i], sums[j] - sums[i]) for i in range(j)), default=np.inf) for j in range(81)]
            )
        assert max(chunk_weights(weights, partition(weights, chunks), 0, 0)) == pytest.approx(best[80])


@pytest.mark.parametrize(
    ("layers", "chunks", "extras", "counts"),
    [
        (126, 4, (0, 0), (31, 31, 32, 32)),
        (7, 2, (0, 0), (3, 4)),
        (8, 4, (0, 0), (2, 2, 2, 2)),
        (32, 4, (0, 2), (8, 8, 9, 7)),
        (32, 4, (2, 0), (6, 8, 9, 9)),
        (126, 16, (1, 1), (7, *[8] * 14, 7)),  # Llama 3 405B: one layer fewer on the first and the last stage
    ],
)
def test_equal_layers_are_spread_evenly_and_the_earlier_chunks_are_the_lighter(layers, chunks, extras, counts):
    assert partition([1.0] * layers, chunks, first_extra=extras[0], last_extra=extras[1]) == counts


@given(st.data(), st.integers(1, 3), st.integers(2, 3), st.integers(0, 6), EXTRA, EXTRA)
@settings(max_examples=80, deadline=None)
def test_equal_layers_over_ranks_are_as_good_as_brute_force(data, pp, v, more, first_extra, last_extra):
    v_shape = v == 2 and data.draw(st.booleans())
    holder = rank_of_stage("zero-bubble-v" if v_shape else "interleaved", pp, v)
    layers = min(pp * v + more, 12)
    weights, extras = [0.7] * layers, (first_extra, last_extra)
    counts = partition_ranks(weights, pp, v, v_shape=v_shape, first_extra=first_extra, last_extra=last_extra)
    best = min(max(rank_weights(weights, other, holder, *extras)) for other in all_partitions(layers, pp * v))
    assert max(rank_weights(weights, counts, holder, *extras)) == pytest.approx(best)
    assert sum(counts) == layers
    assert min(counts) >= 1


@given(st.data(), st.lists(st.floats(0.1, 3), min_size=4, max_size=10), EXTRA, EXTRA)
@settings(max_examples=80, deadline=None)
def test_unequal_layers_over_ranks_are_at_least_as_good_as_the_best_chunks(data, weights, first_extra, last_extra):
    v_shape, extras = data.draw(st.booleans()), (first_extra, last_extra)
    holder = rank_of_stage("zero-bubble-v" if v_shape else "interleaved", 2, 2)
    counts = partition_ranks(weights, 2, 2, v_shape=v_shape, first_extra=first_extra, last_extra=last_extra)
    by_chunk = partition(weights, 4, first_extra=first_extra, last_extra=last_extra)
    found, chunkwise = (max(rank_weights(weights, other, holder, *extras)) for other in (counts, by_chunk))
    assert found <= chunkwise * (1 + 1e-9)
    assert sum(counts) == len(weights)
    assert min(counts) >= 1


def test_unequal_layers_over_ranks_are_near_the_optimum_of_brute_force():
    random = np.random.default_rng(2)
    excess = []
    for _ in range(150):
        weights = random.uniform(0.8, 1.2, int(random.integers(6, 13))).tolist()
        counts = partition_ranks(weights, 3, 2, last_extra=0.5)
        holder = rank_of_stage("interleaved", 3, 2)
        best = min(max(rank_weights(weights, other, holder, 0, 0.5)) for other in all_partitions(len(weights), 6))
        excess.append(max(rank_weights(weights, counts, holder, 0, 0.5)) / best - 1)
    assert np.mean(excess) < 0.015
    assert np.mean(np.array(excess) < 1e-9) > 0.5


def test_the_chunks_of_a_rank_are_even():
    assert partition_ranks([1.0] * 126, 4, 2) == (15, 15, 16, 16, 16, 16, 16, 16)
    assert partition_ranks([1.0] * 16, 2, 2, v_shape=True, first_extra=1, last_extra=1) == (3, 4, 5, 4)


def test_one_chunk_per_rank_is_the_partition_by_chunks():
    weights = np.random.default_rng(3).random(20).tolist()
    assert partition_ranks(weights, 5, 1, last_extra=0.3) == partition(weights, 5, last_extra=0.3)


def test_impossible_requests_say_what_works():
    with pytest.raises(ValueError, match="3 layers can't fill 4 chunks; use 1 to 3 chunks"):
        partition([1.0] * 3, 4)
    with pytest.raises(ValueError, match="3 layers can't fill 4 chunks"):
        partition_ranks([1.0] * 3, 2, 2)
    with pytest.raises(ValueError, match="negative, but the smallest is -1"):
        partition([1.0, -1.0], 2)
    with pytest.raises(ValueError, match="virtual_stages is 3; use 2"):
        partition_ranks([1.0] * 9, 2, 3, v_shape=True)
