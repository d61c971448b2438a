"""`meshwright validate`: predicted against measured."""

from __future__ import annotations

from typing import Annotated

import typer

from meshwright.cli.answer import ANSWERED, answering, note


def validate(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE.csv", help="Measured runs, one row each: published tables or your own.", show_default=False
        ),
    ],
    source: Annotated[
        str | None, typer.Option(metavar="NAME", help="Keep to the rows of this source (column source_id).")
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Write every row with its prediction to a CSV file.", rich_help_panel="Output"
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", metavar="", help="Print one JSON document, in SI units.", rich_help_panel="Output")
    ] = False,
) -> None:
    """Hold predictions against measured runs.

    Errors of step time and memory by source, how well the predictions choose between layouts that were measured side by
    side, and warnings about the data. The exit code is 2 if no row can be predicted.
    """
    with answering():
        raise typer.Exit(_validate(files, source, out, as_json))


def _validate(files: list[str], source: str | None, out: str | None, as_json: bool) -> int:
    import meshwright as mw
    from meshwright.cli.progress import searching
    from meshwright.show.console import console
    from meshwright.show.document import to_json
    from meshwright.show.validation import show_validation
    from meshwright.show.validation_document import validation_document
    from meshwright.show.validation_rows import rows_csv
    from meshwright.sources.whole_files import check_writable, write_whole

    if out is not None:
        check_writable(out, "--out", files)
    with searching() as progress:
        found = mw.validate(files, source=source, progress=progress)
    if out is not None:
        write_whole(out, rows_csv(found))  # before the answer: what can't be written is no answer
    if as_json:
        typer.echo(to_json(validation_document(found)))
    else:
        show_validation(found, console())
    if out is not None:
        note("note", f"the rows are in {out}")
    return ANSWERED
