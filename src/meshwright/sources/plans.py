"""Plan files: everything that one needs to know to estimate, run or export a plan, in one small YAML file.

    version: 0.1.0                    # of the Meshwright that wrote it
    model: {reference: llama-3.1-70b, parameters: 70553706496}
    cluster: 32xdgx-a100-80g          # or a cluster written out (see cluster_files.py)
    price_per_gpu_hour: 2.0           # optional; the cluster's own price otherwise
    software: current                 # or a profile written out
    workload: {global_batch: 1024, seq_len: 4096, dtype: bf16, optimizer: adamw, tokens: 15.0e12}
    plan: {tp: 8, pp: 4, dp: 8, …}    # fields as in the JSON
    prediction: {step_time_s: 13.6, …}

`load_plan` reads the description and ignores the prediction but for showing it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from meshwright.sources import checks
from meshwright.sources.attention_kernels import attention_kernel_content
from meshwright.sources.catalog import read_yaml, yaml_text
from meshwright.sources.cluster_files import cluster_content, cluster_from
from meshwright.sources.clusters import load_cluster
from meshwright.sources.fields import Fields
from meshwright.sources.models import load_model
from meshwright.sources.plan_fields import (
    MOST_PRICE,
    MOST_SEQUENCES,
    MOST_TOKENS,
    PLAN_FIELDS,
    check_together,
    plan_field,
    plan_from,
)
from meshwright.sources.software import PROFILE_KEYS, load_software, software_from
from meshwright.sources.whole_files import write_whole
from meshwright.spec.attention_kernel import AttentionKernel
from meshwright.spec.cluster import Cluster
from meshwright.spec.errors import InputError, MeshwrightError
from meshwright.spec.estimate import Estimate
from meshwright.spec.model import Model
from meshwright.spec.plan import Plan
from meshwright.spec.software import Software
from meshwright.spec.workload import DTYPES, OPTIMIZERS, Training

KEYS = ("version", "model", "cluster", "price_per_gpu_hour", "software", "workload", "plan", "prediction")
MODEL_KEYS = ("reference", "parameters")
WORKLOAD_KEYS = ("global_batch", "seq_len", "dtype", "optimizer", "tokens")


@dataclass(frozen=True)
class PlanFile:
    """What a plan file holds. The texts are references as they stand in it; the cluster's and the software's are empty
    where the file writes them out."""

    model: Model
    cluster: Cluster
    software: Software
    workload: Training
    plan: Plan
    model_text: str
    cluster_text: str = ""
    software_text: str = ""
    version: str = ""
    prediction: Mapping[str, Any] = field(default_factory=dict)


def is_plan_file(text: str) -> bool:
    """Whether a path names an existing YAML file that has a plan in it."""
    if not text.lower().endswith((".yaml", ".yml")) or not Path(text).is_file():
        return False
    content = read_yaml(Path(text))
    return "plan" in content and "model" in content


def load_plan(path: str | Path) -> PlanFile:
    """Read a plan file. A model's path is looked up from here, then from the folder of the file.

    Raises InputError that says which key is wrong, or that the model no longer is the one that the plan was made for.
    """
    where = str(path)
    content = Fields(where, read_yaml(Path(path)), KEYS)
    model, model_text = _model(content, Path(path))
    cluster, cluster_text = _cluster(content)
    software, software_text = _software(content)
    workload = _workload(content)
    return PlanFile(
        model=model,
        cluster=cluster,
        software=software,
        workload=workload,
        plan=_plan(content, workload, cluster),
        model_text=model_text,
        cluster_text=cluster_text,
        software_text=software_text,
        version=content.text("version", ""),
        prediction=checks.mapping(where, "prediction", content.raw("prediction", "a mapping"))
        if "prediction" in content
        else {},
    )


def save_plan(estimate: Estimate, path: str | Path, model_text: str = "") -> None:
    """Write a plan file for the estimate, complete or not at all.

    `model_text` is what `load_model` takes to find the model again; its name, where it is empty. Catalog clusters and
    software profiles are kept by name, any other is written out. Raises InputError where the file can't be written, or
    where the text names another model.
    """
    write_whole(path, yaml_text(plan_content(estimate, model_text)))


def plan_content(estimate: Estimate, model_text: str = "") -> dict[str, Any]:
    """The file's content."""
    from importlib.metadata import version

    model, cluster, workload = estimate.model, estimate.cluster, estimate.workload
    cluster_entry, same_price = _cluster_entry(cluster)
    content: dict[str, Any] = {
        "version": version("meshwright"),
        "model": {"reference": _reference(model, model_text), "parameters": model.num_parameters},
        "cluster": cluster_entry,
    }
    if not same_price:
        content["price_per_gpu_hour"] = float(cluster.price_per_accelerator_hour)
    content["software"] = _software_entry(estimate.software)
    content["workload"] = {key: getattr(workload, key) for key in WORKLOAD_KEYS if key != "tokens" or workload.tokens}
    plan = plan_values(estimate.plan, workload.global_batch)
    content["plan"] = {name: value for name, value in plan.items() if value != []}
    content["prediction"] = prediction(estimate)
    return content


def plan_values(plan: Plan, global_batch: int) -> dict[str, Any]:
    """A plan's fields as JSON and YAML hold them: lists, the number of micro-batches, and shard groups as ranks."""
    values = {
        **asdict(plan),
        "order": list(plan.order),
        "layers_per_stage": list(plan.layers_per_stage),
        "shard_group": plan.shard_group or plan.data_ranks,
        "num_micro_batches": plan.num_micro_batches(global_batch),
    }
    return {name: values[name] for name in PLAN_FIELDS}


def prediction(estimate: Estimate) -> dict[str, Any]:
    """What the file says the plan will do."""
    return {
        "step_time_s": float(estimate.step_time_s),
        "step_time_low_s": float(estimate.step_time_low_s),
        "step_time_high_s": float(estimate.step_time_high_s),
        "tokens_per_s": float(estimate.tokens_per_s),
        "mfu": float(estimate.mfu),
        "memory_bytes": float(estimate.memory_total_bytes),
        "capacity_bytes": float(estimate.capacity_bytes),
    }


# -- reading


def _model(content: Fields, path: Path) -> tuple[Model, str]:
    inner = content.inner("model", MODEL_KEYS, "a mapping such as {reference: llama-3.1-70b}")
    text = inner.text("reference")
    beside = path.parent / text
    try:
        model = load_model(str(beside) if not Path(text).exists() and beside.exists() else text)
    except InputError as error:
        raise _inside(error, content.where, "model.reference") from error
    stated = inner.whole("parameters", model.num_parameters)
    if stated != model.num_parameters:
        raise InputError(
            f"model.parameters is {stated:,}, but {text} has {model.num_parameters:,}: it is not the model that the "
            "plan was made for",
            content.where,
            "plan again, or correct model.reference",
        )
    return model, text


def _cluster(content: Fields) -> tuple[Cluster, str]:
    value = content.raw("cluster", "a name such as 32xdgx-a100-80g, or a cluster written out")
    text = "" if isinstance(value, dict) else content.text("cluster")
    try:
        cluster = load_cluster(text) if text else cluster_from(value, f"{content.where}: cluster")
    except InputError as error:
        raise (_inside(error, content.where, "cluster") if text else error) from error
    if "price_per_gpu_hour" in content:
        price = content.not_negative("price_per_gpu_hour", most=MOST_PRICE)
        cluster = replace(cluster, price_per_accelerator_hour=price)
    return cluster, text


def _software(content: Fields) -> tuple[Software, str]:
    value = content.raw("software", "a name such as current, or a profile written out")
    if isinstance(value, dict):
        content.inner("software", PROFILE_KEYS)
        return software_from({"name": "written out", **value}, f"{content.where}: software"), ""
    text = content.text("software")
    try:
        return load_software(text), text
    except InputError as error:
        raise _inside(error, content.where, "software") from error


def _workload(content: Fields) -> Training:
    inner = content.inner("workload", WORKLOAD_KEYS)
    return Training(
        global_batch=inner.whole("global_batch", most=MOST_SEQUENCES),
        seq_len=inner.whole("seq_len", most=MOST_SEQUENCES),
        dtype=inner.choice("dtype", DTYPES, "bf16"),
        optimizer=inner.choice("optimizer", tuple(OPTIMIZERS), "adamw"),
        tokens=inner.not_negative("tokens", 0.0, MOST_TOKENS),
    )


def _plan(content: Fields, workload: Training, cluster: Cluster) -> Plan:
    inner = content.inner("plan", PLAN_FIELDS)
    pins = {
        name: plan_field(name, inner.raw(name, ""), content.where, inner.key(name))
        for name in PLAN_FIELDS
        if name in inner
    }
    try:
        check_together(pins, workload.global_batch, cluster.accelerators)
    except InputError as error:
        raise _inside(error, content.where, "plan") from error
    return plan_from(pins, workload.global_batch)


def _inside(error: InputError, where: str, key: str) -> InputError:
    """The same error, with the place in this file before it."""
    place = f"{where}: {key}: {error.where}" if error.where else f"{where}: {key}"
    return InputError(error.message, place, error.fix)


# -- writing


def _reference(model: Model, text: str) -> str:
    reference = text or model.name
    try:
        found = load_model(reference)
    except MeshwrightError as error:
        raise InputError(
            f"the model {model.name!r} can't be found again by {reference!r}",
            "save_plan",
            "pass model_text: a catalog name or the path that it was loaded from",
        ) from error
    if found.num_parameters != model.num_parameters:
        raise InputError(
            f"{reference!r} is a model of {found.num_parameters:,} parameters, but the plan's has "
            f"{model.num_parameters:,}",
            "save_plan",
        )
    return reference


def _cluster_entry(cluster: Cluster) -> tuple[Any, bool]:
    """(name or description, whether the price comes with it)."""
    try:
        named = load_cluster(cluster.name)
    except (MeshwrightError, OSError, ValueError):
        return cluster_content(cluster), True
    price = cluster.price_per_accelerator_hour
    if replace(named, price_per_accelerator_hour=price) != cluster:
        return cluster_content(cluster), True
    return cluster.name, named.price_per_accelerator_hour == price


def _software_entry(software: Software) -> Any:
    try:
        if load_software(software.name) == software:
            return software.name
    except (MeshwrightError, OSError, ValueError):
        pass
    return {
        item.name: _plain(getattr(software, item.name))
        for item in fields(software)
        if item.default is MISSING or getattr(software, item.name) != item.default
    }


def _plain(value: Any) -> Any:
    if isinstance(value, AttentionKernel):
        return attention_kernel_content(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, tuple) and value and isinstance(value[0], tuple):
        return {dtype: habits._asdict() for dtype, habits in value}
    return list(value) if isinstance(value, tuple) else value
