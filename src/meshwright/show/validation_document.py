"""Predictions judged by measurements, as JSON. The field names are a contract: SI units, with the unit in the name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from meshwright.measure.comparison import Comparison
from meshwright.measure.errors import TIME_METRICS, Errors, ratio
from meshwright.measure.finding import rows_of
from meshwright.measure.memory_table import MemoryCalls
from meshwright.measure.sweeps import Choices, Sweep, Tried
from meshwright.show.document import Document
from meshwright.show.units import GIB
from meshwright.sources.plans import plan_values

if TYPE_CHECKING:
    from meshwright.measure.report import Validation

_GIB = "_gib"


def validation_document(validation: Validation) -> Document:
    """The whole judgement. Errors are shares of the measured value; what can't be said is null."""
    return {
        "files": list(validation.files),
        "rows": len(rows_of(validation.comparisons)),
        "values": len(validation.comparisons),
        "predicted": sum(each.predicted is not None for each in validation.comparisons),
        "step_time": {
            "sources": [errors_document(each) for each in validation.step_time_by_source],
            "all_rows": errors_document(validation.step_time),
            "mean_over_sources": errors_document(validation.step_time_over_sources),
            "groups": {
                name: [errors_document(each) for each in groups]
                for name, groups in validation.step_time_by_group.items()
            },
        },
        "peak_memory": {
            "sources": [errors_document(each) for each in validation.peak_by_source],
            "all_rows": errors_document(validation.peak),
            "mean_over_sources": errors_document(validation.peak_over_sources),
        },
        "possible": {
            "sources": [_calls(each) for each in validation.memory_calls_by_source],
            "all_runs": _calls(validation.memory_calls),
        },
        "choices": {
            "sources": [_choices(each) for each in validation.choices_by_source],
            "all_sweeps": _choices(validation.choices),
            "mean_over_sources": _choices(validation.choices_over_sources),
            "sweeps": [_sweep(each) for each in validation.sweeps],
        },
        "warnings": [
            {"kind": each.kind, "source": each.source, "rows": list(each.rows), "message": each.message}
            for each in validation.findings
        ],
        "assumed": [{"setting": setting, "values": count} for setting, count in validation.assumed],
        "not_predicted": [{"reason": reason, "values": count} for reason, count in validation.reasons],
        "comparisons": [_comparison(each) for each in validation.comparisons],
    }


def errors_document(each: Errors) -> Document:
    """Errors of a group of rows."""
    return {
        "name": each.name,
        "rows": each.rows,
        "covered": each.covered,
        "coverage": each.coverage,
        "median_error": each.median,
        "mean_error": each.mean,
        "p90_error": each.p90,
        "bias": each.bias,
        "within_range": each.within_range,
    }


def _calls(each: MemoryCalls) -> Document:
    return {
        "name": each.name,
        "ran_possible": each.ran_possible,
        "ran_impossible": each.ran_impossible,
        "oom_possible": each.oom_possible,
        "oom_impossible": each.oom_impossible,
        "ran_called_possible": each.ran_called_possible,
        "oom_called_impossible": each.oom_called_impossible,
    }


def _choices(each: Choices) -> Document:
    return {
        "name": each.name,
        "sweeps": each.sweeps,
        "mean_regret": each.mean_regret,
        "p90_regret": each.p90_regret,
        "max_regret": each.max_regret,
        "best_found": each.best_found,
        "pairs": each.pairs,
        "pairs_in_order": each.pairs_in_order,
    }


def _sweep(sweep: Sweep) -> Document:
    pairs, in_order = sweep.pairs
    return {
        "source": sweep.source,
        "job": sweep.job,
        "regret": sweep.regret,
        "pairs": pairs,
        "pairs_in_order": in_order / pairs if pairs else None,
        "chosen": _tried(sweep.chosen, sweep),
        "best": _tried(sweep.best, sweep),
        "layouts": [_tried(each, sweep) for each in sweep.tried],
    }


def _tried(each: Tried, sweep: Sweep) -> Document:
    return {
        "plan": plan_values(each.plan, sweep.global_batch),
        "measured_step_time_s": each.measured_s,
        "predicted_step_time_s": each.predicted_s,
        "rows": list(each.row_ids),
    }


def _comparison(each: Comparison) -> Document:
    """Values in the unit that the metric's name ends with; memory in bytes."""
    in_bytes = each.metric.endswith(_GIB)
    values = {"predicted": each.predicted, "low": each.low, "high": each.high, "measured": each.measured}
    found = ratio(each) if each.metric in TIME_METRICS else None
    return {
        "row_id": each.row.row_id,
        "source": each.row.source,
        "metric": each.metric.removesuffix(_GIB) + "_bytes" if in_bytes else each.metric,
        **{name: value * GIB if in_bytes and value is not None else value for name, value in values.items()},
        "error": each.error,
        "step_time_error": None if found is None else found - 1,
        "measured_from": each.how,
        "out_of_memory": each.out_of_memory,
        "fits": None if each.estimate is None else each.estimate.fits,
        "reason": each.reason,
        "assumed": list(each.assumed),
        "dominating": each.dominating,
    }
