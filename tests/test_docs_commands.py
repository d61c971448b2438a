"""Every `meshwright` command in the documentation runs."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from meshwright.cli import app

REPOSITORY = Path(__file__).resolve().parents[1]
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
GENERATED = {"commands.md", "catalog.md", "topologies.md"}
FENCE = re.compile(r"^```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)

FILES_OF_THE_READER = {"plan.yaml", "runs.csv", "FOLDER/training.csv", "topo:box.txt", "4xtopo:box.txt"}
"""Files that a page speaks of and that nobody has: their commands are not run."""
BLANKS = {"MODEL", "CLUSTER", "FILE.csv", "…"}
"""What a page leaves for the reader to fill in."""


def shown() -> Iterator[tuple[str, str]]:
    """(page, command) for each line of a fenced block that starts with meshwright, after a prompt or not."""
    for page in PAGES:
        if page.name in GENERATED:
            continue
        for block in FENCE.findall(page.read_text(encoding="utf-8")):
            for line in block.replace("\\\n", " ").splitlines():
                command = line.removeprefix("$ ")
                if command.startswith("meshwright "):
                    yield page.name, command


def as_typed() -> list[str]:
    """The distinct commands that anyone can run as they stand."""
    commands = dict.fromkeys(command for _, command in shown())
    return [each for each in commands if not (FILES_OF_THE_READER | BLANKS) & set(words(each))]


def words(command: str) -> list[str]:
    return shlex.split(command, comments=True)


@pytest.mark.slow
@pytest.mark.parametrize("command", as_typed())
def test_a_command_of_the_documentation_runs(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is answered, with yes (0) or no (1); an exception of the program would be in the result."""
    monkeypatch.chdir(REPOSITORY)
    monkeypatch.setenv("COLUMNS", "110")
    done = CliRunner().invoke(app, words(command)[1:])
    assert done.exit_code in (0, 1), done.output
    assert done.exception is None or isinstance(done.exception, SystemExit), done.output
    assert "Traceback" not in done.output
    assert len(done.stdout.splitlines()) > 5


def test_every_page_that_shows_commands_is_read() -> None:
    pages = {page for page, _ in shown()}
    assert {
        "README.md",
        "guide.md",
        "index.md",
        "explain.md",
        "scale.md",
        "topology.md",
        "validate.md",
        "calibrate.md",
    } <= pages
    assert len(as_typed()) >= 15


def test_only_the_files_of_the_reader_are_left_out() -> None:
    """A name on the list that no page speaks of any more, or that exists, is taken off it."""
    spoken_of = {word for _, command in shown() for word in words(command)}
    assert spoken_of >= FILES_OF_THE_READER
    for name in FILES_OF_THE_READER:
        assert not (REPOSITORY / name.rpartition("topo:")[2]).exists()
