"""The options that commands share.

A group of options is a frozen dataclass; a command that takes one as a parameter gets all its options (`with_groups`).
Values arrive as text and are checked in one place (`request`), so that every message names the option, the value, the
rule and the nearest value that works.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from typing import Annotated, Any, get_type_hints

import typer

_JOB = "Training job"
_PLAN = "Plan: an option that is left out is chosen by the planner"
_OUTPUT = "Output"


def _job(name: str, metavar: str, text: str) -> Any:
    return typer.Option(name, metavar=metavar, help=text, rich_help_panel=_JOB)


def _plan(name: str, metavar: str, text: str) -> Any:
    return typer.Option(name, metavar=metavar, help=text, rich_help_panel=_PLAN)


_MODEL = (
    "A catalog name (llama-3.1-70b), a Hub id that the catalog knows, a Hugging Face config.json or a folder that "
    "holds one, a YAML file, or a plan file that --save wrote, which names cluster and job as well."
)
Model = Annotated[str, typer.Argument(metavar="MODEL", help=_MODEL, show_default=False)]


@dataclass(frozen=True)
class JobOptions:
    """What is trained, on what."""

    cluster: Annotated[
        str | None,
        _job(
            "--cluster",
            "CLUSTER",
            "NODESxPRESET[@FABRIC[:PORTS]], such as 32xdgx-a100-80g or 2xdgx-h100@ethernet-100g, a YAML file, or "
            "topo:FILE, what `nvidia-smi topo -m` or `rocm-smi --showtopo` printed (topo:- reads standard input).",
        ),
    ] = None
    accelerator: Annotated[
        str | None,
        _job(
            "--accelerator", "NAME", "With topo:FILE: which accelerator it is of (`meshwright catalog accelerators`)."
        ),
    ] = None
    nics: Annotated[
        str | None,
        _job("--nics", "FILE", "With NODESxtopo:FILE: what `ibstat` printed on a node, which says the fabric."),
    ] = None
    global_batch: Annotated[str | None, _job("--global-batch", "N", "Sequences of one optimizer step.")] = None
    seq_len: Annotated[str | None, _job("--seq-len", "N", "Tokens of one sequence.")] = None
    dtype: Annotated[
        str | None, _job("--dtype", "FORMAT", "Number format: bf16, fp16, fp8 or fp32 (default: bf16).")
    ] = None
    optimizer: Annotated[
        str | None,
        _job(
            "--optimizer",
            "NAME",
            "adamw, adamw-8bit, adamw-bf16, lion, muon, adafactor, sgd or sgd-momentum (default: adamw).",
        ),
    ] = None
    software: Annotated[
        str | None,
        _job(
            "--software", "NAME", "Software profile (`meshwright catalog software`) or a YAML file (default: current)."
        ),
    ] = None
    tokens: Annotated[
        str | None, _job("--tokens", "N", "Tokens of the whole run, such as 15T: says how many days it takes.")
    ] = None
    price_per_gpu_hour: Annotated[
        str | None, _job("--price-per-gpu-hour", "PRICE", "Says what the run costs; the cluster's own price otherwise.")
    ] = None


@dataclass(frozen=True)
class PlanOptions:
    """Fields of a plan, each named like the plan's JSON field."""

    tp: Annotated[str | None, _plan("--tp", "N", "Tensor parallel ranks.")] = None
    pp: Annotated[str | None, _plan("--pp", "N", "Pipeline stages.")] = None
    dp: Annotated[str | None, _plan("--dp", "N", "Data parallel replicas.")] = None
    cp: Annotated[str | None, _plan("--cp", "N", "Context parallel ranks.")] = None
    ep: Annotated[str | None, _plan("--ep", "N", "Expert parallel ranks, taken from the data-parallel ones.")] = None
    micro_batch: Annotated[str | None, _plan("--micro-batch", "N", "Sequences that a replica works on at a time.")] = (
        None
    )
    virtual_stages: Annotated[
        str | None, _plan("--virtual-stages", "N", "Stages on each pipeline rank (interleaved: at least 2).")
    ] = None
    schedule: Annotated[
        str | None, _plan("--schedule", "NAME", "gpipe, 1f1b, interleaved, zero-bubble-v or dualpipe-v.")
    ] = None
    recompute: Annotated[
        str | None,
        _plan("--recompute", "WHAT", "none, selective or full: activations to compute again in the backward pass."),
    ] = None
    sharding: Annotated[
        str | None, _plan("--sharding", "WHAT", "none, optimizer, gradients or parameters over dp × cp: ZeRO 0 to 3.")
    ] = None
    shard_group: Annotated[
        str | None, _plan("--shard-group", "N", "Data-parallel ranks that share one sharded copy (default: all).")
    ] = None
    sequence_parallel: Annotated[
        bool, _plan("--sequence-parallel", "", "Divide what tensor parallelism leaves whole along the sequence.")
    ] = False
    no_sequence_parallel: Annotated[bool, _plan("--no-sequence-parallel", "", "Leave it whole.")] = False
    order: Annotated[
        str | None, _plan("--order", "A,A,A,A", "Rank order, innermost axis (adjacent ranks) first: tp,cp,dp,pp.")
    ] = None
    layers_per_stage: Annotated[
        str | None, _plan("--layers-per-stage", "N,N,…", "pp × virtual stages numbers, in the order the layers run.")
    ] = None
    offload: Annotated[
        str | None, _plan("--offload", "WHAT", "none, optimizer or activations: what goes to host memory.")
    ] = None
    fix: Annotated[
        list[str] | None,
        _plan("--fix", "FIELD=VALUE", "Pin any field by its JSON name (tp=8, num_micro_batches=64); repeatable."),
    ] = None


@dataclass(frozen=True)
class OutputOptions:
    """Where the answer goes."""

    save: Annotated[
        str | None,
        typer.Option("--save", metavar="FILE", help="Write the plan to a YAML file.", rich_help_panel=_OUTPUT),
    ] = None
    as_json: Annotated[
        bool, typer.Option("--json", metavar="", help="Print one JSON document, in SI units.", rich_help_panel=_OUTPUT)
    ] = False


def with_groups(function: Callable[..., None]) -> Callable[..., None]:
    """The command with each parameter whose type is a group of options replaced by those options."""
    groups: dict[str, tuple[type, list[str]]] = {}
    flat: list[inspect.Parameter] = []
    for parameter in inspect.signature(function, eval_str=True).parameters.values():
        group = parameter.annotation
        if not is_dataclass(group):
            flat.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        assert isinstance(group, type)
        hints = get_type_hints(group, include_extras=True)
        groups[parameter.name] = (group, [field.name for field in fields(group)])
        flat += [_parameter(field.name, hints[field.name], field.default) for field in fields(group)]

    @wraps(function)
    def command(**values: Any) -> None:
        for name, (group, members) in groups.items():
            values[name] = group(**{member: values.pop(member) for member in members})
        function(**values)

    command.__signature__ = inspect.Signature(flat)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in flat}
    return command


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    empty = inspect.Parameter.empty
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=empty if default is MISSING else default,
        annotation=annotation,
    )
