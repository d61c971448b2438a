"""`meshwright scale`: the best plan on more and more accelerators."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from meshwright.cli.answer import ANSWERED, NO, answering, note, remark
from meshwright.cli.options import JobOptions, Model, PlanOptions, with_groups

_SWEEP = "Sweep"


@with_groups
def scale(
    model: Model,
    job: JobOptions,
    pinned: PlanOptions,
    counts: Annotated[
        str | None,
        typer.Option(
            metavar="N,N,…",
            help="Numbers of accelerators (default: powers of two within and over whole nodes, and all).",
            rich_help_panel=_SWEEP,
        ),
    ] = None,
    batch_per_replica: Annotated[
        str | None,
        typer.Option(
            metavar="B",
            help="Let the global batch grow: B sequences for each data-parallel replica (in place of --global-batch).",
            rich_help_panel=_SWEEP,
        ),
    ] = None,
    threshold: Annotated[
        str,
        typer.Option(
            metavar="SHARE",
            help="The knee is where throughput per accelerator falls below this share of its best.",
            rich_help_panel=_SWEEP,
        ),
    ] = "0.8",
    svg: Annotated[
        str | None, typer.Option(metavar="FILE", help="Draw the curves into an SVG file.", rich_help_panel="Output")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", metavar="", help="Print one JSON document, in SI units.", rich_help_panel="Output")
    ] = False,
) -> None:
    """Find out where more accelerators stop paying.

    The best plan is searched on parts of the cluster, at a fixed batch or at one that grows with the replicas. The exit
    code is 1 if nothing fits on any of them.
    """
    with answering():
        raise typer.Exit(_scale(model, job, pinned, counts, batch_per_replica, threshold, svg, as_json))


def _scale(
    model: str,
    job: JobOptions,
    pinned: PlanOptions,
    counts: str | None,
    batch_per_replica: str | None,
    threshold: str,
    svg: str | None,
    as_json: bool,
) -> int:
    import meshwright as mw
    from meshwright.cli.memory import keep_freed_memory
    from meshwright.cli.progress import searching
    from meshwright.cli.request import read_pins, read_request
    from meshwright.show.console import console
    from meshwright.show.document import to_json
    from meshwright.show.scaling import show_scaling, warnings_of_sweep
    from meshwright.show.scaling_document import scaling_document
    from meshwright.show.scaling_svg import scaling_svg
    from meshwright.sources.plan_fields import MOST_SEQUENCES, number_from_text, whole_from_text
    from meshwright.sources.plans import is_plan_file
    from meshwright.sources.whole_files import check_writable, write_whole
    from meshwright.spec.errors import InputError

    below = number_from_text(threshold, "--threshold", 1, "0.8")
    tried = None if counts is None else [whole_from_text(each, "--counts") for each in counts.split(",")]
    growing = None
    if batch_per_replica is not None:
        growing = whole_from_text(batch_per_replica, "--batch-per-replica", MOST_SEQUENCES)
        if job.global_batch is not None:
            raise InputError(
                f"--batch-per-replica {batch_per_replica} and --global-batch {job.global_batch} contradict each other",
                fix="keep --global-batch for one batch everywhere, or --batch-per-replica for one that grows",
            )
        job = replace(job, global_batch=str(growing * read_pins(pinned).get("dp", 1)))
    elif job.global_batch is None and not is_plan_file(model):
        raise InputError(
            "--global-batch is missing: it says how many sequences one step trains on",
            fix="give it, or --batch-per-replica for a batch that grows with the data-parallel replicas",
        )
    if svg is not None:
        check_writable(svg, "--svg")
    asked = read_request(model, job, pinned)
    keep_freed_memory()
    with searching() as progress:
        found = mw.scale(
            asked.model, asked.cluster, asked.workload, asked.software,
            counts=tried, batch_per_replica=growing, threshold=below, fixed=asked.pins, progress=progress,
        )  # fmt: skip
    drawn = svg is not None and bool(found.found)
    if svg is not None and drawn:
        write_whole(svg, scaling_svg(found))  # before the answer: what can't be written is no answer
    if as_json:
        remark(asked.model, warnings_of_sweep(found))
        typer.echo(to_json(scaling_document(found)))
    else:
        show_scaling(found, console())
    if svg is not None:
        note("note", f"the curves are in {svg}" if drawn else f"{svg} is not written: there is no plan")
    return ANSWERED if found.found else NO
