"""Files of measurements: CSV with a header, one measurement a line; what a file holds is told by its header.

Spreadsheets that write semicolons or tabs in place of commas are understood; numbers have a decimal point.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from pathlib import Path

from meshwright.measure.comparison import Row
from meshwright.spec.errors import InputError

TIME_COLUMNS = (
    "step_time_s", "derived_step_time_s", "tokens_per_s_per_gpu", "samples_per_s", "tflops_per_gpu", "mfu_pct",
)  # fmt: skip
"""Any one of them makes a row of a training run, the first that is filled counts (`measured`)."""
MEMORY_COLUMNS = ("mem_gib", "mem_value", "mem_per_gpu")
SYNONYMS = {"gpus": "gpus_total", "accelerators": "gpus_total", "global_batch": "global_batch_seqs"}
"""Other names of a column, for where the column's own isn't there."""
_OTHERS = {
    "serving measurements": ("ttft_ms", "tpot_ms", "batch_or_concurrency"),
    "kernel or collective timings": ("latency_us", "time_us", "message_bytes"),
}
_MOST_BYTES = 1 << 28
_MOST_CELL = 1 << 20


def read_rows(path: str | Path) -> list[Row]:
    """The rows of a CSV file, in order; empty lines are left out and empty cells are not in `cells`.

    Raises InputError for a file that can't be read, has no rows, or holds something other than training runs.
    """
    where = str(path)
    lines = list(_lines(_text(Path(path).expanduser(), where), where))
    if not lines:
        raise InputError("is empty", where, "write a header and a line for each run")
    written = [_plain(name).lower() for name in lines[0][1]]
    header = [SYNONYMS[name] if SYNONYMS.get(name, name) not in written else name for name in written]
    twice = next((name for name, times in Counter(header).items() if name and times > 1), "")
    if twice:
        raise InputError(f"column {twice} is there twice", where, "keep one")
    kind = _kind(header, where)
    rows = []
    for line, values in lines[1:]:
        if len(values) > len(header) and any(value.strip() for value in values[len(header) :]):
            raise InputError(
                f"line {line} has {len(values)} cells, the header {len(header)}",
                where,
                "put cells that hold the delimiter into double quotes",
            )
        cells = {name: text for name, value in zip(header, values, strict=False) if name and (text := _plain(value))}
        if cells:
            rows.append(Row(f"{where}:{line}", kind, cells))
    if not rows:
        raise InputError("has a header but no rows", where, "write a line for each run")
    return rows


def _text(path: Path, where: str) -> str:
    try:
        if path.is_dir():
            raise InputError("is a folder", where, "name a CSV file")
        if path.stat().st_size > _MOST_BYTES:
            raise InputError("is larger than 256 MiB", where, "name a CSV file of measurements")
        return path.read_bytes().decode("utf-8-sig")
    except (OSError, ValueError) as error:
        if isinstance(error, UnicodeDecodeError):
            raise InputError("is not UTF-8 text", where, "save it as CSV in UTF-8") from None
        reason = getattr(error, "strerror", None) or "it can't be the name of a file"
        raise InputError(f"can't be read: {reason}", where) from None


def _lines(text: str, where: str) -> list[tuple[int, list[str]]]:
    """(line number, cells) of every line with something on it."""
    if "\0" in text:
        raise InputError("holds a NUL byte: it is not a CSV file", where)
    previous = csv.field_size_limit(_MOST_CELL)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(text))
    found = []
    try:
        start = 1
        for values in reader:
            if any(value.strip() for value in values):
                found.append((start, values))
            start = reader.line_num + 1
    except csv.Error as error:
        raise InputError(f"line {reader.line_num} can't be read: {error}", where) from None
    finally:
        csv.field_size_limit(previous)
    return found


def _delimiter(text: str) -> str:
    """A comma; where the first line has none, what spreadsheets put in its place."""
    first = text.lstrip("\r\n").split("\n", 1)[0]
    return "," if "," in first else max(";\t", key=first.count) if set(";\t") & set(first) else ","


def _plain(cell: str) -> str:
    """The cell without spaces around it and without characters that would command a terminal."""
    return "".join(character if character.isprintable() else " " for character in cell).strip()


def _kind(header: list[str], where: str) -> str:
    """training or memory, by the columns."""
    for what, columns in _OTHERS.items():
        there = [name for name in columns if name in header]
        if there:
            raise InputError(
                f"column {there[0]} says that it holds {what}",
                where,
                f"a file of training runs has one of {', '.join(TIME_COLUMNS[:3])}, one of peak memory has mem_gib",
            )
    if any(name in header for name in TIME_COLUMNS):
        return "training"
    if any(name in header for name in (*MEMORY_COLUMNS, "oom")):
        return "memory"
    raise InputError(
        f"no column says what was measured (its columns: {', '.join(name for name in header if name)[:200]})",
        where,
        f"name one {', '.join(TIME_COLUMNS)} or mem_gib",
    )
