"""`meshwright explain`: why a plan, why not the others, what would change the answer."""

from __future__ import annotations

from typing import Annotated

import typer

from meshwright.cli.answer import ANSWERED, NO, answering, remark
from meshwright.cli.options import JobOptions, Model, PlanOptions, with_groups

Flips = Annotated[
    bool,
    typer.Option("--no-flips", metavar="", help="Don't search for what would change the choice, which takes longest."),
]


@with_groups
def explain(
    model: Model,
    job: JobOptions,
    pinned: PlanOptions,
    objective: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="What is looked for: throughput, latency, cost, memory or fewest accelerators."
        ),
    ] = "throughput",
    no_flips: Flips = False,
    as_json: Annotated[bool, typer.Option("--json", metavar="", help="Print one JSON document, in SI units.")] = False,
) -> None:
    """Say why a plan is the best: what crosses which link, what binds, why every other kind of layout loses.

    A plan file's own plan is explained, and compared with the best; without one the best plan is. The exit code is 1
    if nothing fits, or if the plan breaks a rule or does not fit.
    """
    with answering():
        raise typer.Exit(_explain(model, job, pinned, objective, not no_flips, as_json))


def _explain(model: str, job: JobOptions, pinned: PlanOptions, objective: str, flips: bool, as_json: bool) -> int:
    import meshwright as mw
    from meshwright.choose.objective import OBJECTIVES
    from meshwright.cli.memory import keep_freed_memory
    from meshwright.cli.progress import searching
    from meshwright.cli.request import read_request, saved_plan
    from meshwright.show.console import console
    from meshwright.show.document import to_json
    from meshwright.show.explanation import show_explanation
    from meshwright.show.explanation_document import explanation_document
    from meshwright.show.terminal import warnings_of
    from meshwright.sources import checks
    from meshwright.sources.plans import is_plan_file

    wanted = checks.choice("", "--objective", objective.lower(), OBJECTIVES)
    asked = read_request(model, job, pinned)
    given = saved_plan(model, asked) if is_plan_file(model) else None
    keep_freed_memory()
    with searching() as progress:
        said = mw.explain(
            asked.model, asked.cluster, asked.workload, given, asked.software,
            objective=wanted, fixed=None if given else asked.pins, flips=flips, progress=progress,
        )  # fmt: skip
    if as_json:
        remark(asked.model, warnings_of(asked.cluster, said.accelerators_used, said.estimate))
        typer.echo(to_json(explanation_document(said)))
    else:
        show_explanation(said, asked, console())
    found = said.estimate
    return ANSWERED if found is not None and found.valid and found.fits else NO
