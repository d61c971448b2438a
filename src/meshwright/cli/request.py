"""What the options ask for, loaded and checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, TypeVar

import meshwright as mw
from meshwright.cli.options import JobOptions, PlanOptions
from meshwright.sources import checks
from meshwright.sources.accelerators import load_accelerator
from meshwright.sources.plan_fields import (
    MOST_PRICE,
    MOST_SEQUENCES,
    MOST_TOKENS,
    PLAN_FIELDS,
    check_together,
    number_from_text,
    plan_field_from_text,
    plan_from,
    whole_from_text,
)
from meshwright.sources.plans import PlanFile, is_plan_file, plan_values
from meshwright.spec.errors import InputError, near_names
from meshwright.spec.workload import DTYPES, OPTIMIZERS

_LONGEST_TEXT = 4096
Loaded = TypeVar("Loaded")


@dataclass(frozen=True)
class Request:
    """A model, a cluster and a job, with the plan fields that are pinned."""

    model: mw.Model
    cluster: mw.Cluster
    workload: mw.Training
    software: mw.Software
    pins: dict[str, Any]
    model_text: str


def read_request(model: str, job: JobOptions, plan: PlanOptions) -> Request:
    """Everything that the options name; a plan file stands for the model, cluster and job that it holds. Raises
    InputError for the first thing that can't be understood."""
    pins = read_pins(plan)
    if is_plan_file(model):
        return _saved_request(mw.load_plan(model), job, pins)
    loaded = _load("MODEL", model, mw.load_model)
    workload = _workload(job)
    cluster = read_cluster(job)
    software = read_software(job.software or "current")
    check_together(pins, workload.global_batch, cluster.accelerators)
    return Request(loaded, cluster, workload, software, pins, model)


def saved_plan(path: str, asked: Request) -> mw.Plan:
    """The plan of a plan file with the pinned fields changed."""
    plan = mw.load_plan(path).plan
    return _changed(plan, asked.pins, asked.workload.global_batch, asked.cluster.accelerators)


def read_cluster(job: JobOptions) -> mw.Cluster:
    """The cluster that --cluster names, at the price that is given."""
    if job.cluster is None:
        raise InputError(
            "--cluster is missing: it says what to train on",
            fix="name one, such as --cluster 4xdgx-h100 (`meshwright catalog clusters` lists the presets)",
        )
    accelerator, nics = job.accelerator or "", job.nics or ""
    if job.accelerator is not None:
        accelerator = _load("--accelerator", job.accelerator, load_accelerator).name
    if job.nics is not None and not nics.strip():
        raise InputError("--nics is empty", fix="name a file with the output of `ibstat`")
    return _priced(_load("--cluster", job.cluster, partial(mw.load_cluster, accelerator=accelerator, nics=nics)), job)


def read_software(text: str) -> mw.Software:
    """The profile that --software names."""
    return _load("--software", text, mw.load_software)


def read_pins(plan: PlanOptions) -> dict[str, Any]:
    """Pinned plan fields by their JSON names, from the options and from --fix. The same field twice must agree."""
    given: dict[str, tuple[str, Any]] = {}

    def pin(name: str, source: str, value: Any) -> None:
        if name in given and given[name][1] != value:
            raise InputError(f"{given[name][0]} and {source} contradict each other", fix="keep one of them")
        given[name] = (source, value)

    for field in fields(plan):
        value = getattr(plan, field.name)
        if value is None or value is False or field.name == "fix":
            continue
        option = f"--{field.name.replace('_', '-')}"
        if value is True:
            pin("sequence_parallel", option, field.name == "sequence_parallel")
        else:
            pin(field.name, f"{option} {value}", plan_field_from_text(field.name, value, option))
    for text in plan.fix or ():
        name, equals, value = text.partition("=")
        name = name.strip().lower().replace("-", "_")
        if not equals or not name or not value.strip():
            raise InputError(f"--fix is {checks.shown(text)}, but it must be FIELD=VALUE, such as tp=8")
        if name not in PLAN_FIELDS:
            raise _unknown_field(name)
        pin(name, f"--fix {name}={value}", plan_field_from_text(name, value, f"--fix {name}"))
    return {name: value for name, (_, value) in given.items()}


# -- the job


def _saved_request(saved: PlanFile, job: JobOptions, pins: dict[str, Any]) -> Request:
    if job.cluster is None and (job.accelerator or job.nics):
        option = "--accelerator" if job.accelerator else "--nics"
        raise InputError(f"{option} is given without --cluster", fix="name the topology, such as --cluster topo:FILE")
    cluster = read_cluster(job) if job.cluster is not None else _priced(saved.cluster, job)
    workload = replace(saved.workload, **_given_workload(job))
    software = saved.software if job.software is None else read_software(job.software)
    check_together(pins, workload.global_batch, cluster.accelerators)
    return Request(saved.model, cluster, workload, software, pins, saved.model_text)


def _workload(job: JobOptions) -> mw.Training:
    for value, option, what, example in (
        (job.global_batch, "--global-batch", "how many sequences one step trains on", 1024),
        (job.seq_len, "--seq-len", "how many tokens a sequence has", 4096),
    ):
        if value is None:
            raise InputError(f"{option} is missing: it says {what}", fix=f"give one, such as {option} {example}")
    return mw.Training(**_given_workload(job))


def _given_workload(job: JobOptions) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if job.global_batch is not None:
        given["global_batch"] = whole_from_text(job.global_batch, "--global-batch", MOST_SEQUENCES)
    if job.seq_len is not None:
        given["seq_len"] = whole_from_text(job.seq_len, "--seq-len", MOST_SEQUENCES)
    if job.dtype is not None:
        given["dtype"] = checks.choice("", "--dtype", job.dtype.lower(), DTYPES)
    if job.optimizer is not None:
        given["optimizer"] = checks.choice("", "--optimizer", job.optimizer.lower(), tuple(OPTIMIZERS))
    if job.tokens is not None:
        given["tokens"] = number_from_text(job.tokens, "--tokens", MOST_TOKENS, "15e12 or 15T")
    return given


def _priced(cluster: mw.Cluster, job: JobOptions) -> mw.Cluster:
    if job.price_per_gpu_hour is None:
        return cluster
    price = number_from_text(job.price_per_gpu_hour, "--price-per-gpu-hour", MOST_PRICE, "2.50")
    return replace(cluster, price_per_accelerator_hour=price)


def _load(option: str, text: str, load: Callable[[str], Loaded]) -> Loaded:
    """What `text` names; errors that don't say where they are from name the option."""
    if len(text) > _LONGEST_TEXT:
        raise InputError(f"{option} has {len(text):,} characters; at most {_LONGEST_TEXT:,} can be a name or a path")
    try:
        return load(text)
    except InputError as error:
        if error.where:
            raise
        raise InputError(error.message, option, error.fix) from error


# -- pins


def _unknown_field(name: str) -> InputError:
    if name in {field.name for field in fields(JobOptions)}:
        return InputError(f"--fix {name} is no field of a plan", fix=f"it has an option: --{name.replace('_', '-')}")
    near = near_names(name, PLAN_FIELDS)
    fix = f"did you mean {' or '.join(near)}?" if near else f"the fields are {', '.join(PLAN_FIELDS)}"
    return InputError(f"--fix {checks.shown(name)} is no field of a plan", fix=fix)


def _changed(plan: mw.Plan, changes: dict[str, Any], global_batch: int, accelerators: int) -> mw.Plan:
    """The plan with some fields changed; what only fitted the old ones is left to the defaults."""
    if not changes:
        return plan
    values = plan_values(plan, global_batch)
    del values["num_micro_batches"]
    if {"pp", "virtual_stages", "schedule"} & changes.keys() or not plan.layers_per_stage:
        values["layers_per_stage"] = ()
    if {"dp", "cp"} & changes.keys() or plan.shard_group == 0:
        values["shard_group"] = 0
    if "num_micro_batches" in changes:
        del values["micro_batch"]
    values |= changes
    check_together(values, global_batch, accelerators)
    values["order"], values["layers_per_stage"] = tuple(values["order"]), tuple(values["layers_per_stage"])
    return plan_from(values, global_batch)
