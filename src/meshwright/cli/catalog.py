"""`meshwright catalog`: what is known by name."""

from __future__ import annotations

from typing import Annotated

import typer

from meshwright.cli.answer import answering


def catalog(
    kind: Annotated[
        str | None,
        typer.Argument(
            metavar="[KIND]", help="models, clusters, accelerators, fabrics or software; a summary without."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", metavar="", help="Print one JSON document, in SI units.")] = False,
) -> None:
    """List the models, clusters, accelerators, fabrics and software profiles that are known by name."""
    with answering():
        _catalog(kind, as_json)


def _catalog(kind: str | None, as_json: bool) -> None:
    from meshwright.show.catalog import catalog_summary, catalog_table
    from meshwright.show.console import console, write
    from meshwright.show.document import to_json
    from meshwright.sources.catalog_rows import KINDS, all_rows
    from meshwright.spec.errors import UnknownName

    wanted = kind.lower() if kind is not None else None
    if wanted is not None and wanted not in KINDS:
        raise UnknownName("kind of catalog entry", str(kind), KINDS)
    rows = {each: all_rows(each) for each in ((wanted,) if wanted else KINDS)}
    if as_json:
        typer.echo(to_json(rows))
        return
    screen = console()
    write(catalog_table(wanted, rows[wanted], screen.width) if wanted else catalog_summary(rows, screen.width), screen)
