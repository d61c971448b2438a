"""Tables of kernel measurements: their rows as text cells, and the catalog's accelerator that a row was measured on."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from meshwright.sources.accelerators import load_accelerator
from meshwright.sources.catalog import entry_names
from meshwright.spec.cluster import Accelerator
from meshwright.spec.errors import InputError

Cells = dict[str, str]


def read_rows(path: Path, needed: Sequence[str]) -> list[Cells]:
    """Every line of a CSV file as its cells by column. Raises InputError where it can't be read or a needed column is
    missing."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            missing = [name for name in needed if name not in (reader.fieldnames or ())]
            if missing:
                raise InputError(f"has no column {missing[0]!r}", str(path), f"it needs {', '.join(needed)}")
            return [{key: (value or "").strip() for key, value in row.items() if key} for row in reader]
    except OSError as error:
        raise InputError(f"can't be read ({error.strerror})", str(path)) from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"is not a CSV file: {error}", str(path)) from error


def numbers(path: Path, row: Cells, names: Sequence[str]) -> list[float]:
    """The cells as numbers above 0. Raises InputError with row, column and value for any that isn't one."""
    found = []
    for name in names:
        try:
            value = float(row[name])
        except ValueError:
            value = float("nan")
        if not 0 < value < float("inf"):
            where = f"{path}: row {row['row_id']}" if row.get("row_id") else str(path)
            raise InputError(f"{name} is {row[name]!r}, but it must be a number above 0", where)
        found.append(value)
    return found


@cache
def accelerator_called(text: str) -> Accelerator | None:
    """The catalog's accelerator for a device as tables write it (`H100-SXM-80GB`): the one whose name's words, memory
    included, all stand in the text; None where none or more than one does equally well."""
    words = _words(text)
    matches = [(len(_words(name)), name) for name in entry_names("accelerators") if _words(name) <= words]
    best = [name for size, name in matches if size == max(matches)[0]]
    return load_accelerator(best[0]) if len(best) == 1 else None


def _words(text: str) -> frozenset[str]:
    return frozenset(re.sub(r"^(\d+)gb$", r"\1g", word) for word in re.split(r"[-_\s]+", text.lower()) if word)
