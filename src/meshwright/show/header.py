"""What was asked: the model, the cluster level by level, the job."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from meshwright.show import units
from meshwright.spec.cluster import Cluster
from meshwright.spec.model import Model
from meshwright.spec.software import Software
from meshwright.spec.workload import Training

DOT = " · "


def header(
    model: Model,
    cluster: Cluster,
    workload: Training,
    software: Software,
    warnings: Sequence[str] = (),
    batch_per_replica: int = 0,
) -> Table:
    """Model, cluster and job, one labelled row each, what the reader of the model noted, and the warnings. With a batch
    per replica the workload's global batch means nothing."""
    table = labelled()
    table.add_row("Model", named(model.name, model_facts(model)))
    table.add_row("Cluster", named(cluster.name, cluster_facts(cluster, workload.dtype)))
    if cluster.levels:
        table.add_row("", _levels(cluster))
    table.add_row("Job", Text(DOT.join(job_facts(workload, software, batch_per_replica))))
    for note in model.notes:
        table.add_row("Note", Text(f"{model.name}: {note}"))
    for warning in warnings:
        table.add_row(Text("Warning", "yellow"), Text(warning, "yellow"))
    return table


def labelled() -> Table:
    """Two columns: a quiet label and what it labels."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="bright_black", no_wrap=True, min_width=8)
    table.add_column()
    return table


def named(name: str, facts: list[str]) -> Text:
    return Text.assemble((name, "bold"), DOT, DOT.join(facts))


def model_facts(model: Model) -> list[str]:
    """Parameters and shape."""
    facts = [f"{units.count(model.num_parameters)} parameters"]
    if model.is_moe:
        experts = next(kind.mlp for kind in model.kinds if kind.mlp.is_moe)
        facts.append(f"{units.count(model.active_parameters)} active, {experts.top_k} of {experts.experts} experts")
    facts += [f"{model.num_layers} layers", f"hidden {model.hidden:,}"]
    heads = next((kind.attention for kind in model.kinds if kind.attention.kind != "none"), None)
    if heads is not None:
        shared = f" ({heads.kv_heads} key/value)" if heads.kind == "full" and heads.kv_heads != heads.heads else ""
        facts.append(f"{heads.heads} heads{shared}")
    return facts


def cluster_facts(cluster: Cluster, dtype: str) -> list[str]:
    """Accelerators, their memory and their peak for the job's dtype."""
    accelerator = cluster.accelerator
    facts = [f"{cluster.accelerators:,} × {accelerator.name}", f"{units.gib(accelerator.memory_bytes)} each"]
    unit = accelerator.unit(dtype)
    return [*facts, f"{units.flops(accelerator.peak(unit))} {unit}"]


def job_facts(workload: Training, software: Software, batch_per_replica: int = 0) -> list[str]:
    """What one step trains on, and how."""
    batch = batch_text(workload, batch_per_replica)
    return [batch, workload.dtype, workload.optimizer, f"software {software.name}"]


def batch_text(workload: Training, per_replica: int = 0) -> str:
    """Sequences and tokens of a step."""
    if per_replica:
        return f"{per_replica:,} sequences × {workload.seq_len:,} tokens a step for each data-parallel replica"
    tokens = units.count(workload.tokens_per_step)
    return f"{workload.global_batch:,} sequences × {workload.seq_len:,} tokens = {tokens} a step"


def _levels(cluster: Cluster) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    for _ in range(3):
        table.add_column()
    inner = 1
    for level in cluster.levels:
        made_of = f" ({level.size // inner:,} × {inner:,})" if inner > 1 else ""
        joins = f"joins {level.size:,}{made_of}"
        table.add_row(Text(level.name, "cyan"), joins, f"{units.rate(level.bytes_per_s)} for each accelerator")
        inner = level.size
    return table
