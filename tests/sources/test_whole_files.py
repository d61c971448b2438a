"""Files are written whole or not at all, and only in the place of ordinary files."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from meshwright.sources.whole_files import check_writable, write_whole
from meshwright.spec.errors import InputError


def test_a_file_is_replaced_and_keeps_its_mode(tmp_path: Path) -> None:
    target = tmp_path / "answer.csv"
    target.write_text("old")
    target.chmod(0o640)
    write_whole(target, "new")
    assert target.read_text() == "new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert list(tmp_path.iterdir()) == [target]


def test_a_pipe_or_a_device_is_not_replaced(tmp_path: Path) -> None:
    """A file moved to its place would take it away from every other program."""
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    for place in (pipe, link):
        with pytest.raises(InputError, match="no ordinary file"):
            write_whole(place, "new")
        with pytest.raises(InputError, match="--out is .* no ordinary file"):
            check_writable(place, "--out")
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["link", "pipe"]
    with pytest.raises(InputError, match="no ordinary file"):
        check_writable("/dev/null", "--out")


def test_a_folder_is_not_replaced(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="folder"):
        check_writable(tmp_path, "--out")
    with pytest.raises(InputError, match="can't be written"):
        write_whole(tmp_path, "new")
    assert tmp_path.is_dir()


def test_what_is_read_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("model,step_time_s\n")
    link = tmp_path / "link.csv"
    link.symlink_to(path)
    for target in (path, link):
        with pytest.raises(InputError, match="--out is .*, which is what is read"):
            check_writable(target, "--out", [path])
    check_writable(tmp_path / "rows.csv", "--out", [path])
