"""`meshwright plan`: the best plan for a job."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from meshwright.cli.answer import ANSWERED, NO, answering, note, remark
from meshwright.cli.explain import Flips
from meshwright.cli.options import JobOptions, Model, OutputOptions, PlanOptions, with_groups


@with_groups
def plan(
    model: Model,
    job: JobOptions,
    pinned: PlanOptions,
    output: OutputOptions,
    objective: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="What to look for: throughput, latency, cost, memory or fewest accelerators."
        ),
    ] = "throughput",
    top: Annotated[str, typer.Option(metavar="K", help="How many plans to rank.")] = "10",
    explain: Annotated[
        bool,
        typer.Option("--explain", metavar="", help="Say why, why not the others, and what would change the choice."),
    ] = False,
    no_flips: Flips = False,
) -> None:
    """Find the layout that is fastest and fits.

    The exit code is 1 if nothing fits or if what is pinned breaks a rule.
    """
    with answering():
        how = None if not explain else "briefly" if no_flips else "fully"
        raise typer.Exit(_plan(model, job, objective, top, pinned, output, how))


def _plan(
    model: str,
    job: JobOptions,
    objective: str,
    top: str,
    pinned: PlanOptions,
    output: OutputOptions,
    explained: str | None,
) -> int:
    import meshwright as mw
    from meshwright.choose.objective import OBJECTIVES
    from meshwright.cli.memory import keep_freed_memory
    from meshwright.cli.progress import searching
    from meshwright.cli.request import read_request
    from meshwright.show.console import console
    from meshwright.show.document import ranking_document, to_json
    from meshwright.show.explanation import show_sections
    from meshwright.show.explanation_document import explanation_document
    from meshwright.show.terminal import show_ranking, warnings_of
    from meshwright.sources import checks
    from meshwright.sources.plan_fields import whole_from_text
    from meshwright.sources.whole_files import check_writable

    wanted = checks.choice("", "--objective", objective.lower(), OBJECTIVES)
    count = whole_from_text(top, "--top", 1000)
    if output.save is not None:
        check_writable(output.save, "--save")
    asked = read_request(model, job, pinned)
    keep_freed_memory()
    ranking = mw.choose(
        asked.model, asked.cluster, asked.workload, asked.software, objective=wanted, top=count, fixed=asked.pins
    )
    said = None
    if explained is not None:
        with searching() as progress:
            said = ranking.explain(flips=explained == "fully", progress=progress)
    if output.as_json:
        remark(asked.model, warnings_of(asked.cluster, ranking.accelerators_used, ranking.best))
        document = ranking_document(ranking)
        if said is not None:
            document["explanation"] = explanation_document(said)
        typer.echo(to_json(document))
    else:
        show_ranking(ranking, asked, count, console())
        if said is not None:
            show_sections(said, console())
    if ranking.best is None:
        if output.save is not None:
            note("note", f"{output.save} is not written: there is no plan")
        return NO
    if output.save is not None:
        mw.save_plan(replace(ranking.best, cluster=asked.cluster), output.save, asked.model_text)
        note("note", f"the plan is in {output.save}")
    return ANSWERED
