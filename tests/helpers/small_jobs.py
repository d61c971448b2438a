"""Jobs small enough to price every plan of, and the plain loops that list every plan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any

import numpy as np

from meshwright.cost import training
from meshwright.cost.states import states
from meshwright.sources.software import load_software
from meshwright.spec import rules
from meshwright.spec.attention_kernel import AttentionKernel
from meshwright.spec.cluster import Accelerator, Cluster, Level, NodeGroup
from meshwright.spec.collectives import CollectiveLibrary, Protocol
from meshwright.spec.layers import MLP, Attention, Layer
from meshwright.spec.model import Model
from meshwright.spec.plan import Plan, PlanTable
from meshwright.spec.rules import Job
from meshwright.spec.software import Software
from meshwright.spec.workload import Training

MB = 1e6
HIDDEN, HEADS, VOCAB = 256, 8, 2048

_SHARED = (
    "misaligned_64_factor", "misaligned_8_factor", "matmul_rows_overhead", "matmul_depth_overhead",
    "elementwise_backward_ratio", "launch_backward_ratio", "overlap_contention", "optimizer_traffic_factor",
)  # fmt: skip
SOFTWARE = Software(
    "plain",
    **{name: getattr(load_software(), name) for name in _SHARED},
    attention=AttentionKernel("plain", efficiency={"": 0.5}),
    step_overhead_s=1e-4,
    launch_s_per_layer=2e-5,
    runtime_bytes=1 * MB,
    host_update_bytes_per_s=2e9,
)
LIBRARY = CollectiveLibrary(
    "plain",
    (Protocol("fast", 0.5, 1.0, 2e-6, 3e-6), Protocol("simple", 1.0, 4.0, 6e-6, 8e-6)),
    tree_bandwidth_share=0.9,
    all_to_all_base_s=5e-6,
    send_base_s=2e-6,
)


# -- models


def dense_layer(width: int = 512, window: int = 0, kv_heads: int = 4) -> Layer:
    return Layer(Attention(HEADS, kv_heads, 32, window=window), MLP(width), norm_parameters=2 * HIDDEN)


def expert_layer(experts: int = 4) -> Layer:
    return Layer(Attention(HEADS, 4, 32), MLP(experts=experts, top_k=2, expert_width=256), norm_parameters=2 * HIDDEN)


def model(*layers: Layer, tied: bool = False, vocab: int = VOCAB, **more: Any) -> Model:
    return Model("small", HIDDEN, vocab, layers, tied_embeddings=tied, final_norm_parameters=HIDDEN, **more)


DENSE = model(*[dense_layer()] * 4)
DENSE_7 = model(*[dense_layer()] * 7)
TIED = model(*[dense_layer()] * 6, tied=True, vocab=8192)
EXPERTS = model(*[expert_layer()] * 4)
DENSE_THEN_EXPERTS = model(dense_layer(1024), *[expert_layer()] * 4)
WINDOWS = model(*[dense_layer(window=32), dense_layer()] * 3)


# -- clusters


def card(memory_mb: float = 60.0, host_bytes_per_s: float = 1e9, **more: Any) -> Accelerator:
    values: dict[str, Any] = {
        "peak_flops_per_s": {"bf16": 2e12, "fp32": 2e11},
        "memory_bytes_per_s": 5e10,
        "matmul_efficiency": {"bf16": 0.7},
        **more,
    }
    return Accelerator("card", memory_bytes=memory_mb * MB, host_bytes_per_s=host_bytes_per_s, **values)


def switches(
    nodes: int, per_node: int, *, inner: float = 4e9, outer: float = 5e8, host_memory: float = 0.0, **of_card: Any
) -> Cluster:
    """Nodes with a switch inside, joined by a fabric."""
    levels = [Level("switch", "switch", per_node, inner, 2e-6)] if per_node > 1 else []
    if nodes > 1:
        levels.append(
            Level("fabric", "fabric", nodes * per_node, outer, 1e-5, ports_per_node=per_node, port_bytes_per_s=outer)
        )
    group = NodeGroup(card(**of_card), nodes, per_node, host_memory)
    return Cluster(f"{nodes}x{per_node}", (group,), tuple(levels), library=LIBRARY)


def torus(*dims: int, wrapped: bool = True, link: float = 5e8, **of_card: Any) -> Cluster:
    size = int(np.prod(dims))
    rate = 2 * len(dims) * link
    level = Level("torus", "torus", size, rate, 2e-6, dims=dims, link_bytes_per_s=link, wrapped=wrapped)
    return Cluster("torus", (NodeGroup(card(**of_card), 1, size),), (level,), library=LIBRARY)


def pcie_pairs(**of_card: Any) -> Cluster:
    """One host with four cards, bridged in pairs."""
    levels = (
        Level("bridge", "bridge", 2, 4e9, 2e-6, link_bytes_per_s=4e9),
        Level("host", "host", 4, 4e8, 1e-5, link_bytes_per_s=8e8),
    )
    return Cluster("pairs", (NodeGroup(card(**of_card), 1, 4),), levels, library=LIBRARY)


# -- every plan, by plain loops

FIELDS = (
    "tp", "cp", "ep", "dp", "pp", "order", "micro_batch", "virtual_stages", "schedule", "recompute", "sharding",
    "shard_group", "sequence_parallel", "offload",
)  # fmt: skip


def dividing(number: int) -> list[int]:
    return [value for value in range(1, number + 1) if number % value == 0]


def every_plan(job: Job, accelerators: int, **only: Any) -> np.ndarray:
    """Rows of coded plan fields (FIELDS) for every value of every field, legal or not. `only` keeps to some values."""
    batch, layers = job.workload.global_batch, job.model.num_layers
    experts = max((kind.mlp.experts for kind in job.model.kinds), default=0) or 1
    rows = []
    for tp, cp, dp, pp in _degrees(accelerators):
        stages = [(0, 1), (1, 1), (3, 2), (4, 2), *((2, v) for v in range(2, layers // pp + 1))]
        shards = [(0, dp * cp), *((mode, group) for mode in (1, 2, 3) for group in dividing(dp * cp))]
        for ep in dividing(experts):
            for micro_batch in dividing(batch):
                for schedule, v in stages:
                    for sharding, group in shards:
                        for parallel in (0, 1):
                            rows.append((tp, cp, ep, dp, pp, micro_batch, v, schedule, sharding, group, parallel))
    few = np.array(rows, dtype=np.int64)
    few = few[rules.legal(job, _table_of_few(few))]
    rest = [
        (order, recompute, offload)
        for order in only.get("order", range(24))
        for recompute in only.get("recompute", range(3))
        for offload in only.get("offload", range(3))
    ]
    whole = np.repeat(few, len(rest), axis=0)
    more = np.tile(np.array(rest, dtype=np.int64), (len(few), 1))
    tp, cp, ep, dp, pp, micro_batch, v, schedule, sharding, group, parallel = whole.T
    columns = {
        "tp": tp, "cp": cp, "ep": ep, "dp": dp, "pp": pp, "order": more[:, 0], "micro_batch": micro_batch,
        "virtual_stages": v, "schedule": schedule, "recompute": more[:, 1], "sharding": sharding, "shard_group": group,
        "sequence_parallel": parallel, "offload": more[:, 2],
    }  # fmt: skip
    table = np.stack([columns[name] for name in FIELDS], axis=-1)
    return table[rules.legal(job, table_of(table))]


def _degrees(accelerators: int) -> Iterator[tuple[int, int, int, int]]:
    for tp in dividing(accelerators):
        for cp in dividing(accelerators // tp):
            for dp in dividing(accelerators // tp // cp):
                yield tp, cp, dp, accelerators // tp // cp // dp


def _table_of_few(few: np.ndarray) -> PlanTable:
    tp, cp, ep, dp, pp, micro_batch, v, schedule, sharding, group, parallel = few.T
    zero = np.zeros_like(tp)
    return PlanTable(
        tp=tp, cp=cp, ep=ep, dp=dp, pp=pp, order=zero, micro_batch=micro_batch, virtual_stages=v, schedule=schedule,
        recompute=zero, sharding=sharding, shard_group=group, sequence_parallel=parallel.astype(bool), offload=zero,
    )  # fmt: skip


def table_of(rows: np.ndarray) -> PlanTable:
    columns = {name: rows[:, position] for position, name in enumerate(FIELDS)}
    columns["sequence_parallel"] = columns["sequence_parallel"].astype(bool)
    return PlanTable(**columns)


def plan_of(row: Any) -> Plan:
    return table_of(np.asarray(row)[None, :]).take((0,))


def priced(job: Job, plans: PlanTable) -> tuple[np.ndarray, np.ndarray]:
    """(seconds, bytes on the fullest rank) of every plan of a table."""
    setting = training.settle(job.model, job.cluster, job.software, job.workload, plans)
    step, held = training.base(setting), states(setting)
    seconds = training.step_time_s(job.software, step, step.lower_bound_s(), held, plans.sharding)
    kept = [training.add_up(parts.values()) for parts in step.kept]
    memory = training.memory_bytes(job.software, step, kept, held)
    return np.broadcast_to(seconds, plans.shape), np.broadcast_to(memory, plans.shape)


@dataclass(frozen=True)
class Everything:
    """Every legal plan of a job with its price."""

    rows: np.ndarray
    seconds: np.ndarray
    bytes: np.ndarray
    capacity_bytes: float

    @property
    def fits(self) -> np.ndarray:
        return self.bytes <= self.capacity_bytes

    def column(self, name: str) -> np.ndarray:
        return self.rows[:, FIELDS.index(name)]

    def where(self, mask: np.ndarray) -> Everything:
        return replace(self, rows=self.rows[mask], seconds=self.seconds[mask], bytes=self.bytes[mask])


def everything(job: Job, accelerators: int = 0, **only: Any) -> Everything:
    accelerators = accelerators or job.cluster.accelerators
    job = replace(job, cluster=job.cluster.part(accelerators))
    rows = every_plan(job, accelerators, **only)
    parts = [priced(job, table_of(rows[start : start + 50_000])) for start in range(0, len(rows), 50_000)]
    seconds, memory = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Everything(rows.astype(np.int16), seconds, memory, job.cluster.accelerator.memory_bytes)


def random_plans(job: Job, count: int, seed: int, *, legal: bool = True) -> list[Plan]:
    """Plans of up to all accelerators with every field drawn; legal ones only, unless told otherwise."""
    random = np.random.default_rng(seed)
    draw = random.choice
    accelerators, layers = job.cluster.accelerators, job.model.num_layers
    orders = list(permutations(("tp", "cp", "dp", "pp")))
    found: list[Plan] = []
    while len(found) < count:
        tp = int(draw(dividing(accelerators)))
        cp = int(draw(dividing(accelerators // tp)))
        dp = int(draw(dividing(accelerators // tp // cp)))
        pp = accelerators // tp // cp // dp
        schedule = str(draw(["gpipe", "1f1b", "interleaved", "zero-bubble-v", "dualpipe-v"]))
        v = {"gpipe": 1, "1f1b": 1, "interleaved": int(random.integers(2, 4))}.get(schedule, 2)
        sharding = str(draw(["none", "optimizer", "gradients", "parameters"]))
        plan = Plan(
            tp=tp, cp=cp, ep=int(draw([1, 2, 4])), dp=dp, pp=pp, order=orders[int(random.integers(24))],
            micro_batch=int(draw(dividing(job.workload.global_batch))), virtual_stages=v, schedule=schedule,
            recompute=str(draw(["none", "selective", "full"])), sharding=sharding,
            shard_group=int(draw([0, *dividing(dp * cp)])) if sharding != "none" else 0,
            sequence_parallel=bool(draw([True, False])),
            offload=str(draw(["none", "none", "optimizer", "activations"])),
        )  # fmt: skip
        if not legal:
            plan = plan.with_(
                tp=int(draw([1, 2, 3, 5, 16])), virtual_stages=int(draw([1, 2, 3])), dp=int(draw([1, 3, 4]))
            )
        if pp * v <= layers and (not legal or not rules.problems(job, plan)):
            found.append(plan)
    return found


def job(
    of_model: Model = DENSE,
    cluster: Cluster | None = None,
    *,
    batch: int = 8,
    seq_len: int = 128,
    software: Software = SOFTWARE,
    **workload: Any,
) -> Job:
    return Job(of_model, cluster or switches(2, 2), software, Training(batch, seq_len, **workload))
