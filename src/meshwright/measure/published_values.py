"""Published values of a row against one another and against what the accelerator can do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations

from meshwright.measure.comparison import Comparison
from meshwright.measure.errors import step_times
from meshwright.measure.finding import Finding, number, published_times_s
from meshwright.measure.sweeps import measured_time_s
from meshwright.spec.estimate import Estimate

SUSPICIOUS_MFU = 0.75
"""Share of the dense peak that large training runs do not reach; the best published ones are between 0.5 and 0.65."""
AGREE = 0.05
"""Values of one row that differ by less are taken for rounding and averaging."""
RECOMPUTED = 4 / 3
"""FLOPs of a step with full recomputation over those without: 8 in place of 6 per weight and token."""


def impossible_speeds(comparisons: Iterable[Comparison]) -> Iterator[Finding]:
    """Rows whose model FLOP/s exceed the accelerator's dense peak, or come nearer to it than runs do. Attention counts
    the pairs of tokens that a causal mask leaves, which is the least that has to be computed."""
    for each in step_times(comparisons):
        published = _published_mfu(each.row.cells)
        if each.estimate is not None and each.measured is not None:
            flops_per_s = _model_flops_per_s(each, each.estimate)
            mfu, of = flops_per_s / _peak(each.estimate), f"{flops_per_s / 1e12:,.0f} TFLOP/s of the model are"
        elif published is not None:
            mfu, of = published, "the published MFU is"
        else:
            continue
        if mfu > 1:
            yield _finding("impossible-mfu", each, f"{of} {mfu:.0%} of the accelerator's dense peak")
        elif mfu > SUSPICIOUS_MFU:
            yield _finding("suspicious-mfu", each, f"{of} {mfu:.0%} of the accelerator's dense peak")


def contradictions(comparisons: Iterable[Comparison]) -> Iterator[Finding]:
    """Rows whose published values can't all be true: rates against step times, TFLOP/s against the model's FLOPs."""
    for each in step_times(comparisons):
        times = published_times_s(each.row.cells)
        for (name, time_s), (other, other_s) in combinations(times.items(), 2):
            if abs(other_s / time_s - 1) > AGREE:
                yield _finding(
                    "contradiction", each, f"{name} makes a step of {time_s:.4g} s, {other} one of {other_s:.4g} s"
                )
        if times and each.estimate is not None:
            yield from _rates(each, each.estimate, *next(iter(times.items())))


def conventions(estimate: Estimate, accelerators: float) -> tuple[float, float]:
    """Fewest and most FLOPs of a step on each accelerator, by the usual ways of counting: with the embeddings or
    without; without attention, with half or with all of it; with what is computed again or without."""
    model, seq_len = estimate.model, estimate.workload.seq_len
    weights = 6.0 * model.active_parameters
    attention = model.flops_per_token(seq_len) - 6.0 * model.matmul_parameters
    fewest = weights - 6.0 * (model.embedding_parameters + model.head_parameters)
    most = max(weights, 6.0 * model.matmul_parameters) + attention
    again = 1.0 if estimate.plan.recompute == "none" else RECOMPUTED
    tokens = estimate.workload.tokens_per_step / accelerators
    return fewest * tokens, most * again * tokens


def _rates(each: Comparison, estimate: Estimate, timed_by: str, time_s: float) -> Iterator[Finding]:
    """Published FLOP/s, or shares of a peak, that no way of counting makes of the step time."""
    fewest, most = (flops / time_s for flops in conventions(estimate, _accelerators(each, estimate)))
    for stated, readings in _stated_rates(each.row.cells, estimate):
        if not any(fewest * (1 - AGREE) <= reading <= most * (1 + AGREE) for reading in readings):
            yield _finding(
                "contradiction",
                each,
                f"{stated}, but by {timed_by} the model's FLOPs make {fewest / 1e12:,.4g} to {most / 1e12:,.4g} "
                f"TFLOP/s, whichever way they are counted",
            )


def _stated_rates(cells: Mapping[str, str], estimate: Estimate) -> Iterator[tuple[str, list[float]]]:
    """What a row states, and the FLOP/s that it may stand for: a share of the peak of the dtype or of 16 bits."""
    tflops = number(cells, "tflops_per_gpu")
    if tflops is not None:
        yield f"tflops_per_gpu is {tflops:g}", [tflops * 1e12]
    table = estimate.cluster.accelerator.peak_flops_per_s
    peaks = dict.fromkeys([_peak(estimate), *(table[unit] for unit in ("bf16", "fp16") if unit in table)])
    for column in ("mfu_pct", "hfu_pct"):
        percent = number(cells, column)
        if percent is not None:
            readings = [percent / 100 * peak for peak in peaks]
            yield f"{column} {percent:g} is {readings[0] / 1e12:,.4g} TFLOP/s", readings


def _model_flops_per_s(each: Comparison, estimate: Estimate) -> float:
    """Of one accelerator, from the measured time."""
    tokens = estimate.workload.tokens_per_step / _accelerators(each, estimate)
    flops = estimate.model.flops_per_token(estimate.workload.seq_len, causal=True) * tokens
    return flops / measured_time_s(each, estimate)


def _accelerators(each: Comparison, estimate: Estimate) -> float:
    """As the row states them, which may contradict its degrees."""
    return number(each.row.cells, "gpus_total") or estimate.plan.world_size


def _peak(estimate: Estimate) -> float:
    accelerator = estimate.cluster.accelerator
    return accelerator.peak(accelerator.unit(estimate.workload.dtype))


def _published_mfu(cells: Mapping[str, str]) -> float | None:
    percent = number(cells, "mfu_pct")
    return None if percent is None else percent / 100


def _finding(kind: str, each: Comparison, message: str) -> Finding:
    return Finding(kind, each.row.source, (each.row.row_id,), message)
