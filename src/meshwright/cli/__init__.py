"""The command line: one thin file per command, each a client of the public API.

Nothing heavy is imported before a command runs.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from meshwright.cli.answer import INTERRUPTED
from meshwright.cli.calibrate import calibrate
from meshwright.cli.catalog import catalog
from meshwright.cli.estimate import estimate
from meshwright.cli.explain import explain
from meshwright.cli.plan import plan
from meshwright.cli.scale import scale
from meshwright.cli.validate import validate

__all__ = ["app", "main"]

app = typer.Typer(
    name="meshwright",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (plan, estimate, explain, scale, validate, calibrate, catalog):
    app.command()(command)


def _version(wanted: bool) -> None:
    if wanted:
        import meshwright

        typer.echo(f"meshwright {meshwright.__version__}")
        raise typer.Exit


@app.callback()
def meshwright(
    version: Annotated[
        bool, typer.Option("--version", metavar="", help="Print the version.", is_eager=True, callback=_version)
    ] = False,
) -> None:
    """Find the parallel layout that makes a transformer training run fastest on the cluster you have, and see why."""


def main() -> None:
    """Run the command line."""
    from meshwright.show.console import prepare_streams

    prepare_streams()
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
