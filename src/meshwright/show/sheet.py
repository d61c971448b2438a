"""Tables of short texts that fit the width they are given."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from rich import box
from rich.table import Table
from rich.text import Text

LEFT, RIGHT, PROSE = "left", "right", "prose"
"""How a column is set. Prose wraps; the others keep to one line."""


@dataclass(frozen=True)
class Column:
    title: str
    side: str = LEFT
    style: str = ""


@dataclass(frozen=True)
class Sheet:
    """A table before it is drawn. The row at `strong` is set in bold."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]
    strong: int = -1

    def width(self, gap: int) -> int:
        """Columns of text that it takes without prose."""
        widths = [
            max((len(text) for text in (column.title, *(row[position] for row in self.rows))), default=0)
            for position, column in enumerate(self.columns)
            if column.side != PROSE
        ]
        return sum(widths) + gap * (len(self.columns) - 1)

    def without(self, title: str) -> Sheet:
        """The same without a column."""
        kept = [position for position, column in enumerate(self.columns) if column.title != title]
        rows = [[row[position] for position in kept] for row in self.rows]
        return replace(self, columns=[self.columns[position] for position in kept], rows=rows)

    def wrapping(self, title: str) -> Sheet:
        """The same with a column that takes what the others leave it."""
        columns = [replace(column, side=PROSE) if column.title == title else column for column in self.columns]
        return replace(self, columns=columns)

    def drawn(self, gap: int) -> Table:
        table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, gap - 1, 0, 0), pad_edge=False)
        for column in self.columns:
            table.add_column(
                column.title,
                justify="right" if column.side == RIGHT else "left",
                no_wrap=column.side != PROSE,
                style=column.style,
                header_style="bright_black",
                overflow="fold" if column.side == PROSE else "ellipsis",
            )
        for number, row in enumerate(self.rows):
            table.add_row(*map(Text, row), style="bold" if number == self.strong else "")
        return table


def fitted(width: int, sheets: Iterable[Sheet]) -> Table:
    """The first sheet that fits, with wide gaps if possible; the last one, with narrow gaps, if none does."""
    last = None
    for sheet in sheets:
        last = sheet
        for gap in (3, 2, 1):
            if sheet.width(gap) <= width:
                return sheet.drawn(gap)
    assert last is not None
    return last.drawn(1)
