"""Runs commands in this process."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from typing import Any

import pytest
from typer.testing import CliRunner

from meshwright.cli import app

Run = Callable[..., Any]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run one command line, at `width` columns; the result has exit_code, stdout and stderr."""

    def go(command: str, width: int = 80) -> Any:
        monkeypatch.setenv("COLUMNS", str(width))
        monkeypatch.setenv("LINES", "50")
        return CliRunner().invoke(app, shlex.split(command))

    return go


@pytest.fixture
def answer(run: Run) -> Run:
    """Run one command line with --json; the document that it prints, after checking that it prints nothing else."""

    def go(command: str, exit_code: int = 0) -> Any:
        done = run(f"{command} --json")
        assert done.exit_code == exit_code, done.stderr or done.stdout
        return json.loads(done.stdout)

    return go
