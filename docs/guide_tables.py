"""Write the small tables of guide.md, whose figures come from more than one command.

    python docs/guide_tables.py

A place is a comment that names the table, followed by the table itself, which is replaced:

    <!-- table: tensor-or-pipeline -->
    | … |
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import meshwright as mw
from meshwright.cost.network import Network
from meshwright.program.placement import placement
from meshwright.show import units

GUIDE = Path(__file__).resolve().parent / "guide.md"
PLACE = re.compile(r"^(<!-- table: (?P<name>[\w-]+) -->\n)(?:\n?(?:\|.*\n)+)?\n*", re.MULTILINE)
A100, PCIE = "dgx-a100-80g", "a100-pcie-8"
JOB_70B = mw.Training(1024, 4096)
Rows = Iterator[list[str]]


def best(model: str, cluster: str, job: mw.Training, **fixed: Any) -> mw.Estimate:
    """The fastest plan with these fields pinned; SystemExit where none fits, for then the guide's text is wrong."""
    found = mw.choose(model, cluster, job, top=1, fixed=fixed).best
    if found is None:
        raise SystemExit(f"{model} on {cluster} with {fixed}: nothing fits")
    return found


def degrees(plan: mw.Plan) -> str:
    """The degrees above 1, such as `tp 2 pp 4 dp 16`, broken between lines only where a new one starts."""
    return " ".join(
        f"{axis}&nbsp;{getattr(plan, axis)}" for axis in ("tp", "cp", "pp", "dp") if getattr(plan, axis) > 1
    )


def slower(found: mw.Estimate, than: mw.Estimate) -> str:
    ratio = found.step_time_s / than.step_time_s
    return f"{ratio:.1f}×" if ratio >= 2 else f"+{100 * (ratio - 1):.0f}%"


# -- one function for each table: its header first


def states() -> Rows:
    """What 7B takes on one 80 GB card."""
    yield ["one A100 80 GB holds Llama 2 7B with", "weights", "gradients", "optimizer", "all", "fits"]
    cases = [
        ("adamw", mw.Plan(recompute="full"), "AdamW"),
        ("adamw-8bit", mw.Plan(recompute="full"), "8-bit AdamW"),
        ("adamw-bf16", mw.Plan(recompute="full"), "AdamW in 16 bits, no master weights"),
        ("adafactor", mw.Plan(recompute="full"), "Adafactor"),
        ("adamw", mw.Plan(recompute="full", offload="optimizer"), "AdamW, optimizer in host memory"),
        ("adamw", mw.Plan(recompute="full", sharding="optimizer", dp=2), "AdamW, optimizer sharded over 2"),
        ("adamw", mw.Plan(recompute="full", sharding="gradients", dp=2), "the same and gradients sharded over 2"),
        ("adamw", mw.Plan(recompute="full", sharding="optimizer", dp=8), "AdamW, optimizer sharded over 8"),
        ("adamw", mw.Plan(recompute="full", sharding="parameters", dp=8), "AdamW, everything sharded over 8"),
    ]
    for optimizer, plan, what in cases:
        found = mw.estimate("llama-2-7b", A100, mw.Training(plan.dp, 4096, optimizer=optimizer), plan)
        parts = [found.memory_bytes[part] for part in ("weights", "gradients", "optimizer")]
        yield [what, *map(units.gib, parts), units.gib(found.memory_total_bytes), "yes" if found.fits else "no"]


def nvlink() -> Rows:
    """5 GB of activations over NVLink 3."""
    (level,) = mw.load_cluster(A100).levels
    payload = 5e9
    network = Network.of(mw.load_cluster(A100))
    measured = network.collective_s(
        "all_reduce", payload, network.route(placement(network.levels, mw.Plan(tp=8).table()).tensor)
    )
    yield ["5 GB over NVLink 3", "arithmetic", "time"]
    yield ["at the rate of both ways together", "5 / 600", units.seconds(payload / (2 * level.bytes_per_s))]
    yield ["one way", "5 / 300", units.seconds(payload / level.bytes_per_s)]
    yield ["an all-reduce over 8, ideal links", "2 · 7/8 · 5 / 300", units.seconds(1.75 * payload / level.bytes_per_s)]
    yield ["the same as links do it", f"{level.efficiency:g} of the rate and less", units.seconds(float(measured))]


def classics() -> Rows:
    """Where the textbook layouts stand."""
    yield ["model", "layout", "rank among layouts", "step", "against the best", "tensor parallel, exposed"]
    for model, cluster, job, classic in (
        ("llama-3.1-70b", f"32x{A100}", JOB_70B, (8, 1, 8, 4)),
        ("gpt3-175b", f"64x{A100}", mw.Training(1536, 2048), (8, 1, 16, 4)),
    ):
        layouts = mw.choose(model, cluster, job, top=100).by_layout
        for rank, found in enumerate(layouts, 1):
            plan = found.plan
            if rank == 1 or (plan.tp, plan.cp, plan.pp, plan.dp) == classic:
                share = units.percent(found.time_s["tensor_parallel"] / found.step_time_s)
                behind = "best" if rank == 1 else slower(found, layouts[0])
                yield [model, degrees(plan), str(rank), units.seconds(found.step_time_s), behind, share]


def across() -> Rows:
    """Tensor parallel over two nodes."""
    yield ["between the nodes", "best plan", "step", "tp 8, in the node", "tp 16, across two nodes"]
    for what, fabric in (
        ("eight 200 Gb/s InfiniBand ports", "infiniband-hdr"),
        ("eight 100 Gb/s Ethernet ports", "ethernet-100g:8"),
        ("one 100 Gb/s Ethernet port", "ethernet-100g"),
    ):
        cluster = f"32x{A100}@{fabric}"
        winner = best("llama-3.1-70b", cluster, JOB_70B)
        rest = [slower(best("llama-3.1-70b", cluster, JOB_70B, tp=tp), winner) for tp in (8, 16)]
        yield [what, degrees(winner.plan), units.seconds(winner.step_time_s), *rest]


def tensor_or_pipeline() -> Rows:
    """13B on the 8 GPUs of one DGX A100."""
    yield ["sequences a step", "tp 8", "pp 8, 1F1B", "its efficiency", "pp 8, best schedule", "faster"]
    for batch in (1, 2, 4, 8, 16, 32, 64):
        job = mw.Training(batch, 4096)
        tensor = best("llama-2-13b", A100, job, tp=8, cp=1, pp=1, dp=1)
        plain = best("llama-2-13b", A100, job, tp=1, cp=1, pp=8, dp=1, schedule="1f1b", micro_batch=1)
        pipeline = best("llama-2-13b", A100, job, tp=1, cp=1, pp=8, dp=1)
        times = [units.seconds(each.step_time_s) for each in (tensor, plain, pipeline)]
        faster = "tensor" if tensor.step_time_s < pipeline.step_time_s else "pipeline"
        yield [str(batch), *times[:2], units.percent(plain.pipeline_efficiency), times[2], faster]


def boxes() -> Rows:
    """13B in a box with and without NVLink."""
    yield ["13B, 64 sequences", "with NVLink", "PCIe only"]
    job = mw.Training(64, 4096)
    pins: list[tuple[str, dict[str, Any]]] = [
        ("tensor parallel, tp 8", {"tp": 8}),
        ("tensor parallel, tp 2", {"tp": 2}),
        ("sharded data parallel, dp 8", {"dp": 8}),
        ("pipeline, no tensor parallel", {"tp": 1, "cp": 1, "pp": 4}),
    ]
    for what, fixed in pins:
        yield [what, *(units.seconds(best("llama-2-13b", box, job, **fixed).step_time_s) for box in (A100, PCIE))]


def knees() -> Rows:
    """What doubling tensor parallel gains."""
    tps = (2, 4, 8, 16, 32, 64)
    yield ["tensor parallel only", *(f"tp {tp}" for tp in tps)]
    for what, preset, per_node in (
        ("DGX A100", A100, 8),
        ("DGX H100", "dgx-h100", 8),
        ("DGX B200", "dgx-b200", 8),
        ("GB200 NVL72", "gb200-nvl72", 72),
    ):
        steps = [
            mw.estimate(
                "llama-3.1-70b", f"{max(1, tp // per_node)}x{preset}", mw.Training(1, 4096),
                mw.Plan(tp=tp, sequence_parallel=True),
            ).step_time_s
            for tp in tps
        ]  # fmt: skip
        gains = [f" (÷{before / after:.2f})" for before, after in zip(steps, steps[1:], strict=False)]
        yield [what, *(units.seconds(step) + gain for step, gain in zip(steps, ["", *gains], strict=True))]


TABLES: dict[str, Callable[[], Rows]] = {
    "states": states,
    "nvlink": nvlink,
    "classics": classics,
    "across": across,
    "tensor-or-pipeline": tensor_or_pipeline,
    "boxes": boxes,
    "knees": knees,
}


def written(name: str) -> str:
    """The table in Markdown."""
    header, *rows = TABLES[name]()
    return "\n".join(f"| {' | '.join(line)} |" for line in [header, ["---"] * len(header), *rows]) + "\n"


def refresh(text: str) -> str:
    """The text with every table written anew."""
    return PLACE.sub(lambda place: f"{place[1]}\n{written(place['name'])}\n", text)


def main() -> None:
    GUIDE.write_text(refresh(GUIDE.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"{GUIDE.name}: {len(TABLES)} tables")


if __name__ == "__main__":
    main()
