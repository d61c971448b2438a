"""`meshwright estimate`: what one given plan costs."""

from __future__ import annotations

from dataclasses import replace

import typer

from meshwright.cli.answer import ANSWERED, NO, answering, note, remark
from meshwright.cli.options import JobOptions, Model, OutputOptions, PlanOptions, with_groups


@with_groups
def estimate(
    model: Model,
    job: JobOptions,
    pinned: PlanOptions,
    output: OutputOptions,
) -> None:
    """Price one plan: time, memory and traffic.

    The exit code is 1 if the plan breaks a rule or does not fit; it is shown all the same.
    """
    with answering():
        raise typer.Exit(_estimate(model, job, pinned, output))


def _estimate(model: str, job: JobOptions, pinned: PlanOptions, output: OutputOptions) -> int:
    import meshwright as mw
    from meshwright.cli.completion import completed
    from meshwright.cli.request import read_request, saved_plan
    from meshwright.show.console import console
    from meshwright.show.document import estimate_document, to_json
    from meshwright.show.terminal import show_estimate, warnings_of
    from meshwright.sources.plans import is_plan_file
    from meshwright.sources.whole_files import check_writable

    if output.save is not None:
        check_writable(output.save, "--save")
    asked = read_request(model, job, pinned)
    if is_plan_file(model):
        plan = saved_plan(model, asked)
        found = mw.estimate(asked.model, asked.cluster, asked.workload, plan, asked.software)
    else:
        found = completed(asked)
    found = replace(found, cluster=asked.cluster)  # the planner prices the part that a plan uses
    if output.as_json:
        remark(found.model, warnings_of(found.cluster, found.plan.world_size, found))
        typer.echo(to_json(estimate_document(found)))
    else:
        show_estimate(found, console())
    if output.save is not None:
        mw.save_plan(found, output.save, asked.model_text)
        note("note", f"the plan is in {output.save}")
    return ANSWERED if found.valid and found.fits else NO
