"""The fast path from a measured run to its predicted step time, over and over under changed constants."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from meshwright.cost import training
from meshwright.cost.estimate import computable, used_part, without_solved_layers
from meshwright.cost.states import states
from meshwright.measure.comparison import Comparison
from meshwright.measure.constants import Constant, Factors, apply
from meshwright.spec import rules
from meshwright.spec.cluster import Cluster
from meshwright.spec.estimate import Estimate
from meshwright.spec.model import Model
from meshwright.spec.plan import Array, PlanTable
from meshwright.spec.rules import Job
from meshwright.spec.software import Software
from meshwright.spec.workload import Training


@dataclass(frozen=True, slots=True)
class Run:
    """A measured run, as it is priced: the accelerators it used, and its plan with what can't be computed mended."""

    model: Model
    cluster: Cluster
    software: Software
    workload: Training
    table: PlanTable
    measured_s: float
    """Seconds of a step."""
    group: str = ""
    """What it is counted under: its source."""
    name: str = ""

    @classmethod
    def of(cls, found: Estimate, measured_s: float, group: str = "", name: str = "") -> Run:
        """The run that `found` predicts, on all of its cluster that it used."""
        model, software, workload = found.model, found.software, found.workload
        job = Job(model, used_part(found.cluster, found.plan), software, workload)
        problems = rules.problems(Job(model, found.cluster, software, workload), found.plan)
        plan = computable(job, found.plan, problems) if problems else without_solved_layers(job, found.plan)
        return cls(model, job.cluster, software, workload, plan.table(), measured_s, group, name)

    def step_s(self, constants: Sequence[Constant] = (), factors: Factors = ()) -> float:
        """Predicted seconds of a step with every constant times its factor: those that `estimate` gives."""
        cluster, software = apply(constants, factors, self.cluster, self.software)
        return step_s(self.model, cluster, software, self.workload, self.table)


def runs_of(comparisons: Iterable[Comparison]) -> list[Run]:
    """The runs that have a measured step time (or tokens per second) and a prediction."""
    return [
        Run.of(each.estimate, each.estimate.step_time_s / ratio, each.row.source, each.row.row_id)
        for each in comparisons
        if each.estimate is not None and (ratio := each.time_ratio) is not None and ratio > 0
    ]


def step_s(model: Model, cluster: Cluster, software: Software, workload: Training, table: PlanTable) -> float:
    """Seconds of a step of one plan, without its parts, memory and traffic."""
    setting = training.settle(model, cluster, software, workload, table)
    step, held = training.base(setting), states(setting)
    return float(training.step_time_s(software, step, step.lower_bound_s(), held, table.sharding))


def log_ratios(runs: Sequence[Run], constants: Sequence[Constant] = (), factors: Factors = ()) -> Array:
    """ln(predicted / measured) of each run, with every constant times its factor."""
    return np.array([math.log(run.step_s(constants, factors) / run.measured_s) for run in runs])
