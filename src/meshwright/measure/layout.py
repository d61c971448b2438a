"""The plan of a row: its stated degrees and settings; what it doesn't state is chosen as the planner would."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from meshwright.choose import choose
from meshwright.measure.cells import flag, whole, words
from meshwright.measure.comparison import Row
from meshwright.spec.cluster import Cluster
from meshwright.spec.errors import InputError
from meshwright.spec.model import Model
from meshwright.spec.plan import AXES, RECOMPUTE, SHARDING, Plan
from meshwright.spec.software import Software
from meshwright.spec.workload import Training

Pins = dict[str, Any]
_TOKENS_PER_STEP = 2**22
"""Of a row that doesn't state its batch: about what large models are trained with (Brown et al. 2020, table 2.1)."""
_TOKENS_PER_MICRO_BATCH = 2**13


def degrees(row: Row) -> tuple[Pins, int, tuple[str, ...]]:
    """(stated degrees, accelerators, what was assumed). A data-parallel degree that contradicts the number of
    accelerators gives way."""
    cells = row.cells
    pins: Pins = {name: whole(cells, name) for name in ("tp", "pp", "cp", "ep", "dp")}
    pins = {name: value for name, value in pins.items() if value is not None}
    total = whole(cells, "gpus_total")
    inner = pins.get("tp", 1) * pins.get("pp", 1) * pins.get("cp", 1)
    if total is None:
        if "dp" not in pins and inner == 1:
            raise InputError("gpus_total is not stated, nor degrees that give it")
        return pins | {"dp": pins.get("dp", 1)}, inner * pins.get("dp", 1), ()
    if "tp" not in pins and "pp" not in pins and "dp" not in pins:
        return pins, total, ()
    if inner > total:
        return (
            pins | {"dp": pins.get("dp", 1)},
            inner * pins.get("dp", 1),
            (f"accelerators={inner * pins.get('dp', 1)}",),
        )
    # a last part of a node that the degrees can't fill stays idle
    filled = total // inner
    batch = whole(cells, "global_batch_seqs")
    if "dp" in pins and pins["dp"] < filled and batch and batch % filled:
        # more replicas than sequences: the row's own degrees are all that ran
        return pins, inner * pins["dp"], (f"accelerators={inner * pins['dp']}",)
    if pins.get("dp") not in (None, filled) or filled * inner != total:
        return pins | {"dp": filled}, filled * inner, (f"dp={filled}",)
    return pins | {"dp": filled}, total, () if "dp" in pins else (f"dp={filled}",)


def workload_of(row: Row, pins: Pins) -> tuple[Training, bool, tuple[str, ...]]:
    """(the workload, whether the row states its batch, what was assumed)."""
    seq_len = whole(row.cells, "seq_len")
    if seq_len is None:
        raise InputError("seq_len is not stated")
    dtype, assumed = _dtype(row)
    batch = whole(row.cells, "global_batch_seqs")
    micro, accumulated, dp = whole(row.cells, "micro_batch"), whole(row.cells, "grad_accum"), pins.get("dp")
    if batch is None and micro and accumulated and dp:
        batch = micro * accumulated * dp
    if batch is None and dp:
        local = re.search(r"(?:local batch|batch size per dp)\D{0,3}(\d+)", words(row.cells, "extra"))
        batch = int(local[1]) * dp if local else None
    stated = batch is not None
    if batch is None:
        ranks = dp or 1
        if accumulated:
            batch = ranks * accumulated * (micro or max(1, _TOKENS_PER_MICRO_BATCH // seq_len))
        else:
            batch = ranks * (micro or 1) * max(1, round(_TOKENS_PER_STEP / seq_len / ranks / (micro or 1)))
        assumed = (*assumed, f"global_batch={batch}")
    return Training(batch, seq_len, dtype), stated, assumed


def plan_of(
    row: Row, pins: Pins, model: Model, cluster: Cluster, software: Software, workload: Training
) -> tuple[Plan, tuple[str, ...]]:
    """(the plan, what was chosen for it). Where nothing that fits has the stated settings, what is missing takes the
    simplest value."""
    stated = pins | _settings(row, pins, workload, software)
    stated |= _stages(row, stated, model, software)
    missing = [name for name in _WANTED if name not in stated and _matters(name, stated)]
    if not missing:
        return Plan(**_fields(stated)), ()
    found = choose(model, cluster, workload, software, fixed=_fixed(stated), top=1).best
    chosen = found.plan if found is not None else _simplest(stated, cluster.accelerators)
    taken = {name: getattr(chosen, name) for name in missing}
    plan = Plan(**_fields(taken | stated))
    return plan, tuple(f"{name}={value}" for name, value in taken.items())


_WANTED = ("tp", "pp", "cp", "dp", "micro_batch", "virtual_stages", "recompute", "sharding", "sequence_parallel")


def _matters(name: str, stated: Mapping[str, Any]) -> bool:
    """Whether leaving a setting open leaves anything to choose."""
    if name == "sequence_parallel":
        return stated.get("tp") != 1
    if name == "virtual_stages":
        return stated.get("pp") != 1
    if name == "cp":
        return "tp" not in stated
    if name == "sharding":
        return stated.get("dp") != 1 or stated.get("cp", 1) != 1
    return True


def _settings(row: Row, pins: Pins, workload: Training, software: Software) -> Pins:
    """Stated settings other than degrees, by their JSON names, and those that the framework sets unless it is told."""
    found: Pins = {}
    micro, accumulated = whole(row.cells, "micro_batch"), whole(row.cells, "grad_accum")
    dp = pins.get("dp")
    if micro is None and accumulated and dp and workload.global_batch % (dp * accumulated) == 0:
        micro = workload.global_batch // (dp * accumulated)
    stages = software.micro_batches_per_stage * pins.get("pp", 1)
    if micro is None and dp and stages and pins.get("pp", 1) > 1 and workload.global_batch % (dp * stages) == 0:
        micro = workload.global_batch // (dp * stages)
    if micro is not None:
        found["micro_batch"] = micro
    recompute = _recompute(words(row.cells, "recompute"))
    if recompute:
        found["recompute"] = recompute
    found |= _sharding(row, pins, software)
    parallel = flag(row.cells, "sp")
    if parallel is not None and pins.get("tp", 2) > 1:
        found["sequence_parallel"] = parallel
    elif not software.sequence_parallel:
        found["sequence_parallel"] = False
    return found


def _recompute(text: str) -> str:
    if not text:
        return ""
    for mode in RECOMPUTE:
        if text.startswith(mode):
            return mode
    if text in ("no", "off", "false", "0"):
        return "none"
    if text in ("yes", "on", "true", "1", "uniform", "block"):
        return "full"
    return "selective"


def _sharding(row: Row, pins: Pins, software: Software) -> Pins:
    """sharding and shard_group from `1 (within 8)`, FULL_SHARD, HYBRID_SHARD; else what the framework usually does."""
    stage, fsdp = words(row.cells, "zero_stage"), words(row.cells, "fsdp")
    number = re.match(r"\s*(?:zero-?)?([0-3])(?!\d)", stage)
    if number:
        found: Pins = {"sharding": SHARDING[int(number[1])]}
    elif re.search(r"grad_op|zero-?2", fsdp):
        found = {"sharding": "gradients"}
    elif fsdp and fsdp not in ("no", "none", "no_shard"):
        found = {"sharding": "parameters"}
    elif software.usual_sharding:
        found = {"sharding": software.usual_sharding}
    else:
        return {}
    group = re.search(r"within\s+(\d+)", stage)
    ranks = pins.get("dp", 1) * pins.get("cp", 1)
    if group and 1 < int(group[1]) < ranks and ranks % int(group[1]) == 0:
        found["shard_group"] = int(group[1])
    return found


def _stages(row: Row, stated: Pins, model: Model, software: Software) -> Pins:
    """Virtual stages, schedule and layers per stage, as far as they are stated or follow."""
    pp, schedule = stated.get("pp"), words(row.cells, "schedule")
    if pp is None:
        return {}
    if pp == 1:
        return {"virtual_stages": 1, "schedule": "1f1b"}
    virtual = whole(row.cells, "vpp")
    if virtual is None and schedule and "interleaved" not in schedule:
        virtual = 1
    if virtual is None and "interleaved" in schedule:
        virtual = software.interleaved_stages or None
    if virtual is None:
        return {}
    if virtual == 1:
        name = "gpipe" if "gpipe" in schedule else "1f1b"
        return {"virtual_stages": 1, "schedule": name} | _with_ends(model.num_layers, pp)
    return {"virtual_stages": virtual, "schedule": "interleaved"}


def _with_ends(layers: int, pp: int) -> Pins:
    """Where layers only divide with embedding and head counted as one each, the ends hold one fewer (Scao et al. 2022,
    BLOOM: pp-partition type:transformer|embedding)."""
    if layers % pp == 0 or (layers + 2) % pp:
        return {}
    each = (layers + 2) // pp
    return {"layers_per_stage": (each - 1, *[each] * (pp - 2), each - 1)}


def _dtype(row: Row) -> tuple[str, tuple[str, ...]]:
    text = words(row.cells, "dtype")
    for name, pattern in (("fp8", r"fp8|float8"), ("fp16", r"fp16|float16|half"), ("bf16", r"bf16|bfloat16")):
        if re.search(pattern, text):
            return name, ()
    if re.search(r"fp32|float32|tf32", text):
        return "fp32", ()
    return "bf16", ("dtype=bf16",)


def _fixed(stated: Pins) -> Pins:
    """The settings as the planner takes pins: a schedule of one stage is no choice of its own. Offload and an unusual
    order of ranks are said where they are used."""
    fixed = {"offload": "none", "order": AXES} | dict(stated)
    if fixed.get("pp") == 1:
        fixed.pop("schedule", None)
        fixed.pop("virtual_stages", None)
    if fixed.get("sharding") == "none":
        fixed.pop("shard_group", None)
    return fixed


def _fields(settings: Pins) -> Pins:
    """Arguments of `Plan`."""
    fields = dict(settings)
    if fields.get("pp", 1) == 1:
        fields |= {"schedule": "1f1b", "virtual_stages": 1, "layers_per_stage": ()}
    elif fields.get("virtual_stages", 1) > 1:
        fields["schedule"] = "interleaved"
    if fields.get("tp", 1) == 1:
        fields["sequence_parallel"] = False
    if fields.get("sharding", "none") == "none":
        fields.pop("shard_group", None)
    return fields


def _simplest(stated: Pins, accelerators: int) -> Plan:
    """The stated settings, with tensor parallelism off and everything else plain."""
    inner = stated.get("tp", 1) * stated.get("pp", 1) * stated.get("cp", 1)
    return Plan(**_fields({"dp": max(1, accelerators // inner)} | stated))
