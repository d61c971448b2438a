"""Runs whose measured time is predicted with constants that a test chose."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

import meshwright as mw
from meshwright.measure.constants import Constant
from meshwright.measure.repricing import Run

JOBS: tuple[tuple[str, int, int, dict[str, int | str]], ...] = (
    ("gpt3-1.3b", 64, 2048, {"dp": 32}),
    ("gpt3-1.3b", 512, 2048, {"dp": 32, "micro_batch": 4, "recompute": "full"}),
    ("gpt3-1.3b", 128, 1024, {"dp": 32, "micro_batch": 4}),
    ("gpt3-1.3b", 32, 2048, {"dp": 8, "micro_batch": 4}),
    ("gpt3-1.3b", 64, 2048, {"tp": 8, "dp": 4, "micro_batch": 4}),
    ("gpt3-350m", 32, 1024, {"dp": 32}),
    ("gpt3-350m", 64, 512, {"dp": 32, "micro_batch": 2}),
    ("gpt3-350m", 1024, 2048, {"dp": 32, "micro_batch": 8}),
    ("llama-2-7b", 128, 4096, {"tp": 8, "dp": 4, "recompute": "full"}),
    ("llama-2-7b", 64, 4096, {"tp": 4, "pp": 2, "dp": 4}),
    ("llama-2-7b", 256, 2048, {"tp": 2, "pp": 4, "dp": 4, "micro_batch": 2}),
    ("llama-2-7b", 32, 4096, {"tp": 8, "dp": 1}),
)


@cache
def made_runs(cluster: str = "4xdgx-a100-80g", software: str = "current") -> tuple[Run, ...]:
    """A run of each job, measured to be just what is predicted."""
    whole, profile = mw.load_cluster(cluster), mw.load_software(software)
    runs = []
    for number, (model, batch, seq_len, fields) in enumerate(JOBS):
        degrees = {"tp": 1, "pp": 1, "dp": 1, **fields}
        plan = mw.Plan(**degrees)  # type: ignore[arg-type]
        part = whole.part(plan.world_size)
        found = mw.estimate(model, part, mw.Training(batch, seq_len), plan, profile)
        runs.append(Run.of(found, found.step_time_s, "made", f"R{number:02d}"))
    return tuple(runs)


def measured_with(
    runs: tuple[Run, ...], constants: tuple[Constant, ...], factors: list[float], noise: float = 0.0, seed: int = 0
) -> tuple[Run, ...]:
    """The runs measured where the constants are that many times the catalog's, with log-normal noise."""
    shaken = np.random.default_rng(seed).normal(0.0, noise, len(runs)) if noise else np.zeros(len(runs))
    times = [run.step_s(constants, factors) * float(np.exp(shake)) for run, shake in zip(runs, shaken, strict=True)]
    return tuple(replace(run, measured_s=time) for run, time in zip(runs, times, strict=True))
