"""`meshwright calibrate`: a cluster's own constants from runs that were measured on it."""

from __future__ import annotations

from typing import Annotated

import typer

from meshwright.cli.answer import ANSWERED, NO, answering, note


def calibrate(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE.csv…", help="Runs measured on the cluster, one row each.", show_default=False),
    ],
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="CLUSTER", help="What they ran on, all or a part of it: as for `meshwright plan`, or a YAML file."
        ),
    ] = None,
    accelerator: Annotated[str | None, typer.Option(metavar="NAME", help="With topo:FILE: which accelerator.")] = None,
    nics: Annotated[
        str | None, typer.Option(metavar="FILE", help="With NODESxtopo:FILE: what `ibstat` printed on a node.")
    ] = None,
    software: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Software profile or YAML file (default: what each row says it ran)."),
    ] = None,
    source: Annotated[
        str | None, typer.Option(metavar="NAME", help="Keep to the rows of this source (column source_id).")
    ] = None,
    save: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Write the calibrated cluster to a YAML file.", rich_help_panel="Output"),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", metavar="", help="Print one JSON document, in SI units.", rich_help_panel="Output")
    ] = False,
) -> None:
    """Fit the few constants of your cluster that your own runs can tell.

    Matmul and memory efficiency, the efficiency of each link and the speed of the hosts, held near the values that the
    cluster has. The exit code is 1, and nothing is written, if left-out runs are predicted no better than before.
    """
    with answering():
        raise typer.Exit(_calibrate(files, cluster, accelerator, nics, software, source, save, as_json))


def _calibrate(
    files: list[str],
    cluster: str | None,
    accelerator: str | None,
    nics: str | None,
    software: str | None,
    source: str | None,
    save: str | None,
    as_json: bool,
) -> int:
    import meshwright as mw
    from meshwright.cli.options import JobOptions
    from meshwright.cli.progress import searching
    from meshwright.cli.request import read_cluster, read_software
    from meshwright.show.calibration import show_calibration
    from meshwright.show.calibration_document import calibration_document
    from meshwright.show.console import console
    from meshwright.show.document import to_json
    from meshwright.sources.whole_files import check_writable

    if save is not None:
        check_writable(save, "--save", files)
    ran_on = read_cluster(JobOptions(cluster=cluster, accelerator=accelerator, nics=nics))
    profile = None if software is None else read_software(software)
    with searching() as progress:
        found = mw.calibrate(files, ran_on, profile, source=source, progress=progress)
    wanted = found.better is not False and found.changed
    if save is not None and wanted:
        mw.save_cluster(found.cluster, save)  # before the answer: what can't be written is no answer
    if as_json:
        typer.echo(to_json(calibration_document(found)))
    else:
        show_calibration(found, console())
    if save is not None:
        said = f"the cluster is in {save}" if wanted else f"{save} is not written: {ran_on.name} is as good as it is"
        note("note", said)
    return ANSWERED if wanted else NO
