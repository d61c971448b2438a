"""What the catalog knows, as tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.table import Table

from meshwright.show import units
from meshwright.show.sheet import LEFT, PROSE, RIGHT, Column, Sheet, fitted

Row = Mapping[str, Any]
Cell = tuple[str, str, Callable[[Row], str]]
"""Title, side, and what to write of a row."""
_WIDE = 116


def catalog_table(kind: str, rows: Sequence[Row], width: int) -> Table:
    """All entries of a kind, one row each."""
    cells = (*_COLUMNS[kind], *(_ALSO.get(kind, ()) if width >= _WIDE else ()))
    columns = [Column(title, side, "" if position else "bold") for position, (title, side, _) in enumerate(cells)]
    return fitted(width, [Sheet(columns, [[write(row) for _, _, write in cells] for row in rows])])


def catalog_summary(rows: Mapping[str, Sequence[Row]], width: int) -> Table:
    """How many entries each kind has, and some of their names."""
    columns = [Column("catalog", style="bold"), Column("entries", RIGHT), Column("such as", PROSE)]
    return fitted(width, [Sheet(columns, [(kind, str(len(each)), _some(each)) for kind, each in rows.items()])])


def _some(entries: Sequence[Row]) -> str:
    step = max(1, len(entries) // 5)
    return ", ".join(str(row["name"]) for row in entries[step // 2 :: step][:5])


# -- columns


def _plain(key: str) -> Callable[[Row], str]:
    return lambda row: "" if row[key] is None else str(row[key])


def _whole(key: str) -> Callable[[Row], str]:
    return lambda row: "" if row[key] is None else units.whole(row[key])


def _scaled(key: str, unit: float, places: int = 0) -> Callable[[Row], str]:
    return lambda row: "" if row[key] is None else f"{row[key] / unit:,.{places}f}"


def _tera(dtype: str) -> Cell:
    def write(row: Row) -> str:
        value = row[f"{dtype}_flops_per_s"]
        return "" if value is None else units.digits(value / 1e12)

    return (dtype, RIGHT, write)


def _active(row: Row) -> str:
    same = row["active_parameters"] == row["parameters"]
    return "" if same else units.count(row["active_parameters"])


def _levels(row: Row) -> str:
    if row["levels"] is None:
        return "write NAME with a size"
    inner = [f"{level['name']} {level['size']}: {units.rate(level['bytes_per_s'])}" for level in row["levels"]]
    return ", ".join(inner) or "one accelerator"


def _fabric(row: Row) -> str:
    rate = row["node_fabric_bytes_per_s"]
    return str(row["fabric"]) if rate is None else f"{row['fabric']}, {units.rate(rate)}"


_DTYPES = ("fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp4")
_COLUMNS: dict[str, tuple[Cell, ...]] = {
    "models": (
        ("model", LEFT, _plain("name")),
        ("layers", RIGHT, _plain("layers")),
        ("hidden", RIGHT, _whole("hidden")),
        ("heads", RIGHT, _plain("heads")),
        ("kv", RIGHT, _plain("kv_heads")),
        ("parameters", RIGHT, _whole("parameters")),
        ("", RIGHT, lambda row: units.count(row["parameters"])),
        ("active", RIGHT, _active),
    ),
    "accelerators": (
        ("accelerator", LEFT, _plain("name")),
        ("GiB", RIGHT, _scaled("memory_gib", 1, 1)),
        ("GB/s", RIGHT, _scaled("memory_bytes_per_s", 1e9)),
        *(_tera(dtype) for dtype in _DTYPES),
    ),
    "clusters": (
        ("preset", LEFT, _plain("name")),
        ("accelerators", LEFT, lambda row: f"{row['accelerators_per_node'] or 'N'} × {row['accelerator']}"),
        ("links, per accelerator", PROSE, _levels),
        ("fabric, per node", PROSE, _fabric),
    ),
    "fabrics": (
        ("fabric", LEFT, _plain("name")),
        ("Gb/s", RIGHT, _scaled("port_bytes_per_s", 1e9 / 8)),
        ("ports of a node", LEFT, _plain("ports_per_node")),
        ("reached", RIGHT, lambda row: units.percent(row["efficiency"])),
        ("latency", RIGHT, lambda row: units.seconds(row["latency_s"])),
        ("", PROSE, _plain("title")),
    ),
    "software": (
        ("software", LEFT, _plain("name")),
        ("year", RIGHT, lambda row: str(row["year"] or "")),
        ("", PROSE, _plain("title")),
    ),
}
_ALSO: dict[str, tuple[Cell, ...]] = {
    "models": (("context", RIGHT, _whole("context_length")),),
    "accelerators": (("(peaks: dense TFLOP/s)", PROSE, _plain("title")),),
    "clusters": (("", PROSE, _plain("title")),),
}
