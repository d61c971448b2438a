"""How many consecutive layers each pipeline stage gets, so that the slowest rank is as fast as it can be."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from heapq import heapify, heapreplace
from itertools import accumulate, pairwise
from math import inf

ROUNDING = 1e-9  # relative; weights closer than this are equal, for sums of floats come in any order


def partition(
    weights: Sequence[float], chunks: int, *, first_extra: float = 0.0, last_extra: float = 0.0
) -> tuple[int, ...]:
    """Layers per chunk, in order, each at least 1, with the smallest possible maximum of the chunk weights. Exact.

    weights: one per layer, in any unit (seconds, FLOPs); first_extra and last_extra: what the first chunk (embedding)
        and the last (head) carry beside their layers, in the same unit.

    Ties: from the first chunk to the last, each takes the layers that fit into an even share of the weight that is
    left, rounded down; it takes more only if the chunks behind it could not stay within the optimum otherwise. So
    chunks are as even as the optimum allows and the earlier are the lighter ones, which under 1F1B hold the most
    activations: 126 equal layers in 4 chunks are (31, 31, 32, 32).

    Raises ``ValueError`` if there are fewer layers than chunks, or a negative weight. Source: the optimum by
    parametric search between bounds that are themselves sums of consecutive weights (Pinar and Aykanat 2004, "Fast
    optimal load balancing algorithms for 1D partitioning", sec. 4); O(chunks log layers) per probe.
    """
    _check(weights, chunks, first_extra, last_extra)
    line = _Line(weights, _extras(chunks, first_extra, last_extra))
    earliest = line.earliest_starts(line.smallest_limit())
    cuts = [0]
    for chunk in range(chunks - 1):
        wanted = line.furthest(cuts[-1], line.share(cuts[-1], chunk), chunk)
        cuts.append(max(wanted, cuts[-1] + 1, earliest[chunk + 1]))
    return tuple(end - start for start, end in pairwise([*cuts, line.layers]))


def partition_ranks(
    weights: Sequence[float],
    pp: int,
    virtual_stages: int,
    *,
    v_shape: bool = False,
    first_extra: float = 0.0,
    last_extra: float = 0.0,
) -> tuple[int, ...]:
    """Layers of each of the pp * virtual_stages chunks, in order, with a small maximum of the rank weights.

    Arguments as in ``partition``. A rank holds chunks rank, rank + pp, …; with v_shape, chunks rank and
    2 pp - 1 - rank (``program.schedules.rank_of_stage``).

    Exact if all layers weigh the same, and for one chunk per rank. Otherwise a local search from the best partition by
    chunks and from the even one, so never worse than the former: it moves a layer's weight out of the heaviest rank,
    along any run of neighbouring cuts, as long as that helps. Against brute force on 2,400 unequal cases (4 to 12
    layers, 2 or 3 ranks) it found the optimum in 66 % (random weights) to 92 % (a few lighter first layers) of them and
    was 0.6 to 1.1 % above it on average; the best partition by chunks had it in 31 to 58 % and was 4.5 to 8.8 % above.

    Ties: the chunks of a rank are as even as possible, and earlier ranks and chunks are the lighter ones.
    """
    chunks = pp * virtual_stages
    _check(weights, chunks, first_extra, last_extra)
    if v_shape and virtual_stages != 2:
        raise ValueError(f"a V has 2 virtual stages per rank, but virtual_stages is {virtual_stages}; use 2")
    if virtual_stages == 1:
        return partition(weights, chunks, first_extra=first_extra, last_extra=last_extra)
    rank_of = [min(c, 2 * pp - 1 - c) if v_shape else c % pp for c in range(chunks)]
    extra = _extras(chunks, first_extra, last_extra)
    even = _even_counts(len(weights), sum(weights) / len(weights), rank_of, extra)
    if max(weights) <= min(weights) * (1 + ROUNDING):
        return even
    by_chunk = partition(weights, chunks, first_extra=first_extra, last_extra=last_extra)
    found = [_Exchange(weights, start, rank_of, extra).improved() for start in (by_chunk, even)]
    return min(found, key=lambda exchange: exchange.cost()).counts()


def _check(weights: Sequence[float], chunks: int, first_extra: float, last_extra: float) -> None:
    if not 1 <= chunks <= len(weights):
        raise ValueError(f"{len(weights)} layers can't fill {chunks} chunks; use 1 to {len(weights)} chunks")
    if min(*weights, first_extra, last_extra) < 0:
        raise ValueError(f"weights must not be negative, but the smallest is {min(*weights, first_extra, last_extra)}")


def _extras(chunks: int, first_extra: float, last_extra: float) -> list[float]:
    extra = [0.0] * chunks
    extra[0] += first_extra
    extra[-1] += last_extra
    return extra


class _Line:
    """The layers in a row, with prefix sums to weigh any run of them."""

    def __init__(self, weights: Sequence[float], extra: Sequence[float]) -> None:
        self.layers, self.chunks, self.extra = len(weights), len(extra), extra
        self.sums = list(accumulate(weights, initial=0.0))
        self.heaviest_layer = max(weights)

    def share(self, start: int, chunk: int) -> float:
        """Weight from layer start on, divided evenly over this chunk and those behind it."""
        return (self.sums[-1] - self.sums[start] + sum(self.extra[chunk:])) / (self.chunks - chunk)

    def furthest(self, start: int, limit: float, chunk: int) -> int:
        """Where a chunk from start ends at the latest within the limit, leaving a layer to each chunk behind it."""
        end = bisect_right(self.sums, self.sums[start] + limit * (1 + ROUNDING) - self.extra[chunk]) - 1
        return min(end, self.layers - (self.chunks - 1 - chunk))

    def earliest_starts(self, limit: float) -> list[int]:
        """For each chunk the first layer from which it and all behind it stay within the limit."""
        starts = [0] * self.chunks
        end = self.layers
        for chunk in range(self.chunks - 1, 0, -1):
            start = bisect_left(self.sums, self.sums[end] - limit * (1 + ROUNDING) + self.extra[chunk])
            end = starts[chunk] = max(start, chunk)
        return starts

    def smallest_limit(self) -> float:
        """The optimum: the smallest maximum of the chunk weights."""
        low, high = max(self.share(0, 0), self.heaviest_layer), self.sums[-1] + sum(self.extra)
        while low < high * (1 - ROUNDING):
            fits, bound = self.probe(low)
            if fits:
                return bound
            low = bound
            middle = (low + high) / 2
            fits, bound = self.probe(middle)
            if fits:
                high = min(high, bound)
            else:
                low = bound
        return high

    def probe(self, limit: float) -> tuple[bool, float]:
        """Fill chunk after chunk up to the limit. If all fit: True, the heaviest; else False, the next limit to try."""
        start, heaviest, next_limit = 0, 0.0, inf
        for chunk, extra in enumerate(self.extra[:-1]):
            end = self.furthest(start, limit, chunk)
            if end < self.layers - (self.chunks - 1 - chunk):
                next_limit = min(next_limit, self.sums[max(end, start) + 1] - self.sums[start] + extra)
            if end <= start:
                return False, next_limit
            heaviest = max(heaviest, self.sums[end] - self.sums[start] + extra)
            start = end
        rest = self.sums[-1] - self.sums[start] + self.extra[-1]
        fits = rest <= limit * (1 + ROUNDING)
        return fits, max(heaviest, rest) if fits else min(next_limit, rest)


def _even_counts(layers: int, layer_weight: float, rank_of: Sequence[int], extra: Sequence[float]) -> tuple[int, ...]:
    """Equal layers over ranks and then over each rank's chunks: always to the lightest, the last of several."""
    unit = layer_weight or 1.0
    chunks_of: list[list[int]] = [[] for _ in range(max(rank_of) + 1)]
    for chunk, rank in enumerate(rank_of):
        chunks_of[rank].append(chunk)
    per_rank = _fill(layers, [len(own) for own in chunks_of], [sum(extra[c] for c in own) / unit for own in chunks_of])
    counts = [0] * len(rank_of)
    for own, total in zip(chunks_of, per_rank, strict=True):
        for chunk, count in zip(own, _fill(total, [1] * len(own), [extra[c] / unit for c in own]), strict=True):
            counts[chunk] = count
    return tuple(counts)


def _fill(layers: int, at_least: Sequence[int], extra: Sequence[float]) -> list[int]:
    counts = list(at_least)
    lightest = [(round(more + count, 9), -place) for place, (count, more) in enumerate(zip(counts, extra, strict=True))]
    heapify(lightest)
    for _ in range(layers - sum(counts)):
        _, place = lightest[0]
        counts[-place] += 1
        heapreplace(lightest, (round(extra[-place] + counts[-place], 9), place))
    return counts


class _Exchange:
    """Local search over the cuts: shift runs of neighbouring cuts by one layer while that relieves the heaviest rank.

    Such a shift moves one layer's weight out of the chunk at one end of the run into the chunk at the other end.
    """

    def __init__(
        self, weights: Sequence[float], counts: Sequence[int], rank_of: Sequence[int], extra: Sequence[float]
    ) -> None:
        self.weights, self.rank_of = weights, rank_of
        self.cuts = list(accumulate(counts, initial=0))
        self.load = [0.0] * (max(rank_of) + 1)
        for rank, (start, end), more in zip(rank_of, pairwise(self.cuts), extra, strict=True):
            self.load[rank] += sum(weights[start:end]) + more

    def counts(self) -> tuple[int, ...]:
        return tuple(end - start for start, end in pairwise(self.cuts))

    def cost(self) -> tuple[float, int]:
        return max(self.load), sum(count * count for count in self.counts())

    def improved(self) -> "_Exchange":
        for _ in range(4 * len(self.weights)):  # far more than it takes; rounding must not keep it going
            shift = self._best_shift()
            if shift is None:
                break
            self._apply(*shift)
        return self

    def _best_shift(self) -> tuple[list[int], int] | None:
        heaviest = self.load.index(max(self.load))
        squares_now = sum(x * x for x in self.load)
        best, found = (max(self.load), squares_now * (1 - ROUNDING)), None
        for chunk in (c for c, rank in enumerate(self.rank_of) if rank == heaviest):
            if self.cuts[chunk + 1] - self.cuts[chunk] < 2:
                continue
            for step in (1, -1):  # out at the front: cuts from here to the left move right; at the back: the reverse
                load = list(self.load)
                cut = chunk if step == 1 else chunk + 1
                run: list[int] = []
                squares = squares_now
                while 0 < cut < len(self.rank_of):
                    moved = self.weights[self.cuts[cut]] if step == 1 else self.weights[self.cuts[cut] - 1]
                    giver, taker = (cut, cut - 1) if step == 1 else (cut - 1, cut)
                    gives, takes = self.rank_of[giver], self.rank_of[taker]
                    if gives != takes:
                        squares += 2 * moved * (load[takes] - load[gives] + moved)
                        load[gives] -= moved
                        load[takes] += moved
                    run.append(cut)
                    # looking for the heaviest is what costs: only where the one that took is not too heavy itself
                    if load[takes] <= best[0] and (after := (max(load), squares)) < best:
                        best, found = after, (list(run), step)
                    cut -= step
        return found

    def _apply(self, run: list[int], step: int) -> None:
        for cut in run:
            moved = self.weights[self.cuts[cut] - (step == -1)]
            giver, taker = (cut, cut - 1) if step == 1 else (cut - 1, cut)
            self.load[self.rank_of[giver]] -= moved
            self.load[self.rank_of[taker]] += moved
            self.cuts[cut] += step
