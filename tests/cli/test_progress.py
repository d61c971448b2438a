"""What a long search tells of itself: on a terminal's standard error only."""

from __future__ import annotations

import io

import pytest

from meshwright.cli.progress import searching


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_sees_what_is_searched(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    with searching() as progress:
        assert progress is not None
        progress("what would flip the choice: nvlink speed")
    assert "nvlink speed" in screen.getvalue()
    assert capsys.readouterr().out == ""


def test_a_pipe_sees_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", io.StringIO())
    with searching() as progress:
        assert progress is None
