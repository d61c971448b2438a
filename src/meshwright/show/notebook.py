"""Answers in a notebook: what the terminal shows, as HTML with the notebook's own text colour."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console, RenderableType

from meshwright.show.calibration import calibration_view
from meshwright.show.explanation import explanation_view
from meshwright.show.scaling import scaling_view
from meshwright.show.terminal import estimate_view, ranking_view
from meshwright.show.validation import validation_view

WIDTH = 116
_TOP = 10
_PAGE = '<pre style="line-height: 1.15; overflow-x: auto">{code}</pre>'


def register(shell: Any) -> None:
    """Teach an IPython shell to show estimates, rankings, explanations, sweeps, validations and calibrations."""
    formatters = shell.display_formatter.formatters
    for module, name, view in (
        ("meshwright.spec.estimate", "Estimate", _estimate),
        ("meshwright.choose.ranking", "Ranking", _ranking),
        ("meshwright.choose.explain.facts", "Explanation", _explanation),
        ("meshwright.choose.scaling", "Scaling", _scaling),
        ("meshwright.measure.report", "Validation", _validation),
        ("meshwright.measure.calibration", "Calibration", _calibration),
    ):
        formatters["text/html"].for_type_by_name(module, name, _to_html(view))
        formatters["text/plain"].for_type_by_name(module, name, _to_text(view))


def _estimate(estimate: Any) -> RenderableType:
    return estimate_view(estimate, WIDTH)


def _ranking(ranking: Any) -> RenderableType:
    if ranking.best is None:
        return "\n".join(ranking.reasons)
    return ranking_view(ranking, ranking.best, _TOP, WIDTH)


def _explanation(said: Any) -> RenderableType:
    if said.estimate is None:
        return str(said)
    return explanation_view(said, said.estimate, WIDTH)


def _scaling(scaling: Any) -> RenderableType:
    return scaling_view(scaling, WIDTH)


def _validation(validation: Any) -> RenderableType:
    return validation_view(validation, WIDTH)


def _calibration(calibration: Any) -> RenderableType:
    return calibration_view(calibration, WIDTH)


def _to_html(view: Any) -> Any:
    def html(answer: Any) -> str:
        console = Console(width=WIDTH, file=io.StringIO(), record=True, highlight=False, emoji=False)
        console.print(view(answer))
        return console.export_html(code_format=_PAGE, inline_styles=True)

    return html


def _to_text(view: Any) -> Any:
    def text(answer: Any, printer: Any, cycle: bool) -> None:
        console = Console(width=WIDTH, file=io.StringIO(), highlight=False, emoji=False)
        with console.capture() as captured:
            console.print(view(answer))
        printer.text("\n".join(line.rstrip() for line in captured.get().splitlines()))

    return text
