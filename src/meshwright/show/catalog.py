"""What the catalog knows, as tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from meshwright.show import units

Row = Mapping[str, Any]
Column = tuple[str, str, Callable[[Row], str]]
"""Title, side, and what to write of a row."""
_ROOMY = 110


def catalog_table(kind: str, rows: Sequence[Row], width: int) -> Table:
    """All entries of a kind, one row each."""
    columns = list(_COLUMNS[kind])
    if width >= _ROOMY and kind in _WIDE:
        columns += _WIDE[kind]
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0), pad_edge=False, collapse_padding=True)
    for position, (title, side, _) in enumerate(columns):
        table.add_column(
            title,
            justify="right" if side == "right" else "left",
            no_wrap=side != "text",
            style="bold" if position == 0 else "",
            header_style="bright_black",
            overflow="ellipsis" if side == "right" else "fold",
        )
    for row in rows:
        table.add_row(*(Text(write(row)) for _, _, write in columns))
    return table


def catalog_summary(rows: Mapping[str, Sequence[Row]]) -> Table:
    """How many entries each kind has, and some of their names."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0), pad_edge=False)
    for title in ("catalog", "entries", "such as"):
        table.add_column(title, header_style="bright_black", justify="right" if title == "entries" else "left")
    for kind, entries in rows.items():
        step = max(1, len(entries) // 5)
        names = ", ".join(str(row["name"]) for row in entries[step // 2 :: step][:5])
        table.add_row(Text(kind, "bold"), str(len(entries)), names)
    return table


# -- columns


def _plain(key: str) -> Callable[[Row], str]:
    return lambda row: "" if row[key] is None else str(row[key])


def _whole(key: str) -> Callable[[Row], str]:
    return lambda row: "" if row[key] is None else units.whole(row[key])


def _scaled(key: str, unit: float, places: int = 0) -> Callable[[Row], str]:
    return lambda row: "" if row[key] is None else f"{row[key] / unit:,.{places}f}"


def _tera(dtype: str) -> Column:
    def write(row: Row) -> str:
        value = row[f"{dtype}_flops_per_s"]
        return "" if value is None else units.digits(value / 1e12)

    return (dtype, "right", write)


def _active(row: Row) -> str:
    same = row["active_parameters"] == row["parameters"]
    return "" if same else units.count(row["active_parameters"])


def _levels(row: Row) -> str:
    if row["levels"] is None:
        return "write NAME with a size"
    inner = [f"{level['name']} {level['size']} at {units.rate(level['bytes_per_s'])}" for level in row["levels"]]
    return ", ".join(inner) or "one accelerator"


def _fabric(row: Row) -> str:
    rate = row["node_fabric_bytes_per_s"]
    return str(row["fabric"]) if rate is None else f"{row['fabric']}, {units.rate(rate)}"


_DTYPES = ("fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp4")
_COLUMNS: dict[str, tuple[Column, ...]] = {
    "models": (
        ("model", "left", _plain("name")),
        ("layers", "right", _plain("layers")),
        ("hidden", "right", _whole("hidden")),
        ("heads", "right", _plain("heads")),
        ("kv", "right", _plain("kv_heads")),
        ("parameters", "right", _whole("parameters")),
        ("", "right", lambda row: units.count(row["parameters"])),
        ("active", "right", _active),
    ),
    "accelerators": (
        ("accelerator", "left", _plain("name")),
        ("GiB", "right", _scaled("memory_gib", 1, 1)),
        ("GB/s", "right", _scaled("memory_bytes_per_s", 1e9)),
        *(_tera(dtype) for dtype in _DTYPES),
    ),
    "clusters": (
        ("preset", "left", _plain("name")),
        ("accelerators", "left", lambda row: f"{row['accelerators_per_node'] or 'N'} × {row['accelerator']}"),
        ("inside a node, per accelerator", "text", _levels),
        ("between nodes, per node", "text", _fabric),
    ),
    "fabrics": (
        ("fabric", "left", _plain("name")),
        ("Gb/s", "right", _scaled("port_bytes_per_s", 1e9 / 8)),
        ("ports of a node", "left", _plain("ports_per_node")),
        ("reached", "right", lambda row: units.percent(row["efficiency"])),
        ("latency", "right", lambda row: units.seconds(row["latency_s"])),
        ("", "text", _plain("title")),
    ),
    "software": (
        ("software", "left", _plain("name")),
        ("year", "right", lambda row: str(row["year"] or "")),
        ("", "text", _plain("title")),
    ),
}
_WIDE: dict[str, tuple[Column, ...]] = {
    "models": (("context", "right", _whole("context_length")),),
    "accelerators": (("peaks in dense TFLOP/s", "text", _plain("title")),),
    "clusters": (("", "text", _plain("title")),),
}
