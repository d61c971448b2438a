"""Reading a file of measurements: what is understood, and what is refused with one clear message."""

from __future__ import annotations

from pathlib import Path

import pytest

from meshwright.measure.files import read_rows
from meshwright.spec.errors import InputError

TRAINING = "row_id,model,gpu,step_time_s\n"


def written(folder: Path, content: str | bytes) -> Path:
    path = folder / "runs.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_a_row_holds_its_filled_cells_and_the_line_it_starts_on(tmp_path: Path) -> None:
    text = '﻿Row_ID,model,gpu,step_time_s,notes\r\n a ,gpt2,,1.5,"two\r\nlines, one cell"\r\n\r\nb,gpt2,A100,,\r\n'
    first, second = read_rows(written(tmp_path, text))
    assert first.cells == {"row_id": "a", "model": "gpt2", "step_time_s": "1.5", "notes": "two  lines, one cell"}
    assert first.where.endswith("runs.csv:2")
    assert second.where.endswith("runs.csv:5"), "the quoted cell and the empty line count as lines"
    assert second.cells == {"row_id": "b", "model": "gpt2", "gpu": "A100"}


@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_what_spreadsheets_put_in_place_of_commas_is_understood(tmp_path: Path, delimiter: str) -> None:
    text = "\n".join(delimiter.join(cells) for cells in (("model", "step_time_s"), ("a, b", "1.5")))
    (row,) = read_rows(written(tmp_path, text))
    assert dict(row.cells) == {"model": "a, b", "step_time_s": "1.5"}


def test_cells_command_no_terminal(tmp_path: Path) -> None:
    (row,) = read_rows(written(tmp_path, "source,step_time_s\n\x1b[31mred\x1b[0m\u202e,1\n"))
    assert row.source.isprintable()
    assert "red" in row.source


def test_a_hundred_thousand_columns_are_read_at_once(tmp_path: Path) -> None:
    names = ",".join(f"c{number}" for number in range(100_000))
    (row,) = read_rows(written(tmp_path, f"{names},step_time_s\n{',' * 100_000}2\n"))
    assert dict(row.cells) == {"step_time_s": "2"}


def test_a_short_line_leaves_its_last_columns_unstated(tmp_path: Path) -> None:
    (row,) = read_rows(written(tmp_path, TRAINING + "a,gpt2\n"))
    assert dict(row.cells) == {"row_id": "a", "model": "gpt2"}


@pytest.mark.parametrize(
    ("header", "kind"),
    [("model,step_time_s", "training"), ("model,tokens_per_s_per_gpu,mem_gib", "training"), ("model,mem_gib", "memory"),
     ("model,mem_value,mem_unit", "memory"), ("model,oom", "memory")],
)  # fmt: skip
def test_the_header_says_what_the_file_holds(tmp_path: Path, header: str, kind: str) -> None:
    (row,) = read_rows(written(tmp_path, f"{header}\nx,1\n"))
    assert row.kind == kind


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is empty"),
        (TRAINING, "no rows"),
        (TRAINING + "a,gpt2,A100,1,2\n", r"line 2 has 5 cells, the header 4"),
        ("model,gpu,model,step_time_s\n", "column model is there twice"),
        ("model,gpu,ttft_ms,mem_gib\nx,y,1,2\n", "ttft_ms says that it holds serving"),
        ("op,m,n,k,time_us\nx,1,1,1,1\n", "time_us says that it holds kernel"),
        ("collective,message_bytes,busbw_gbps\nx,1,1\n", "message_bytes says that it holds kernel or collective"),
        ("model,gpu,seq_len\nx,y,1\n", "no column says what was measured"),
        (b"model,step_time_s\n\xff\xfe,1\n", "not UTF-8"),
        (b"model,step_time_s\n\0,1\n", "NUL byte"),
        ('model,step_time_s\n"' + "x" * 2_000_000 + '",1\n', "line 2 can't be read"),
    ],
)
def test_what_can_t_be_understood_is_refused_by_name(tmp_path: Path, content: str | bytes, said: str) -> None:
    path = written(tmp_path, content)
    with pytest.raises(InputError, match=said) as caught:
        read_rows(path)
    assert caught.value.where == str(path)


@pytest.mark.parametrize("name", ["missing.csv", ".", "a\0b"])
def test_a_path_that_can_t_be_read_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError):
        read_rows(f"{tmp_path}/{name}")
