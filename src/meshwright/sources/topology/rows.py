"""Lines → the rows of a topology table, whatever stands around them and however they were wrapped."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from meshwright.sources.topology.cells import (
    gpu_of,
    is_affinity,
    is_bus_address,
    is_cell,
    is_name,
    is_not_given,
    is_tail_word,
)

_NIC_LEGEND = re.compile(r"\s*(NIC\d+)\s*:\s*([\w.\-]+)\s*$", re.IGNORECASE)
_NIC = re.compile(r"NIC\d+|(mlx|bnxt|irdma|efa|hfi|rdma|roce|ib)\w*\d+", re.IGNORECASE)
_PEER_WORDS = ("OK", "NS", "CNS", "GNS", "TNS", "DR")
_PEER_REFUSED = ("NS", "CNS", "GNS", "TNS", "DR")


@dataclass
class Row:
    """One row as it was printed: its label and everything behind it."""

    label: str
    tokens: list[str]

    @property
    def cells(self) -> list[str]:
        """The tokens that stand for devices: up to the last that can only be a cell, and what is unreadable behind."""
        last = max((position for position, token in enumerate(self.tokens) if is_cell(token)), default=-1)
        end = last + 1
        while end < len(self.tokens) and not is_affinity(self.tokens[end]):
            end += 1
        return self.tokens[:end]

    @property
    def tail(self) -> list[str]:
        """Processors and NUMA nodes."""
        return self.tokens[len(self.cells) :]


@dataclass
class Table:
    """A printed table. `header` holds the names of its columns, as far as they were printed; `ended` says that the
    titles behind the last device were, too."""

    header: list[str] = field(default_factory=list)
    ended: bool = False
    has_numa: bool = False
    rows: list[Row] = field(default_factory=list)
    nic_names: dict[str, str] = field(default_factory=dict)
    peers_refused: bool = False
    """A table of `nvidia-smi topo -p2p` beside it says that peer-to-peer copies are refused."""
    peer_tables: int = 0


def read_rows(lines: list[str]) -> Table:
    """The table in the lines. Lines that belong to none are passed over; a row that can't be read whole stays in."""
    reader = _Reader()
    for line in lines:
        named = _NIC_LEGEND.fullmatch(line)
        if named:
            reader.table.nic_names[named[1].upper()] = named[2]
            reader.open = None
            continue
        tokens = line.split()
        if tokens:
            reader.line(tokens)
    return reader.table


class _Reader:
    def __init__(self) -> None:
        self.table = Table()
        self.open: Row | str | None = None
        """What the next line may continue: a row, the header, or nothing."""

    def line(self, tokens: list[str]) -> None:
        starts = [i for i in range(len(tokens) - 1) if self._starts_row(tokens, i)]
        if not starts and self._is_damaged_row(tokens):
            starts = [0]
        head = tokens[: starts[0]] if starts else tokens
        if head:
            self._beside_rows(head, starts != [])
        for start, end in zip(starts, [*starts[1:], len(tokens)], strict=False):
            self._row(tokens[start], tokens[start + 1 : end])

    def _starts_row(self, tokens: list[str], i: int) -> bool:
        token, following = tokens[i], tokens[i + 1]
        if _names_gpu(token):
            return is_cell(following)
        known = token in self.table.header or _NIC.fullmatch(token) is not None
        return known and is_cell(following)

    def _is_damaged_row(self, tokens: list[str]) -> bool:
        """A row whose first cell can't be read: its label, then cells for the most part, or, right behind another row,
        nothing like prose."""
        if gpu_of(tokens[0]) is None or any(gpu_of(token) is not None for token in tokens[1:2]):
            return False
        follows = isinstance(self.open, Row) and all(token == token.upper() for token in tokens)
        return follows or 2 * sum(map(is_cell, tokens[1:])) >= max(len(tokens) - 1, 1)

    def _row(self, label: str, tokens: list[str]) -> None:
        words = {token.upper() for token in tokens}
        if words & set(_PEER_WORDS):
            self.table.peer_tables += 1
            self.table.peers_refused |= bool(words & set(_PEER_REFUSED))
            self.open = None
            return
        row = Row(label, tokens)
        self.table.rows.append(row)
        self.open = row

    def _beside_rows(self, tokens: list[str], row_follows: bool) -> None:
        if isinstance(self.open, Row):
            if self._continues_row(self.open, tokens):
                return
        elif self.open == "header" and self._continues_header(tokens):
            return
        self.open = None
        first = next((position for position, token in enumerate(tokens) if _names_gpu(token)), 0)
        if self._is_header(tokens[first:], row_follows):
            self._take_header(tokens[first:])

    # -- the header

    def _is_header(self, tokens: list[str], row_follows: bool) -> bool:
        """GPUs, then adapters, then titles, and nothing else."""
        gpus = [_names_gpu(token) for token in tokens]
        if not gpus or not gpus[0] or self.table.rows:
            return False
        count = gpus.index(False) if False in gpus else len(gpus)
        rest = tokens[count:]
        if any(gpus[count:]) or not all(is_name(token) or is_tail_word(token) or token == "GPU" for token in rest):
            return False
        return count > 1 or not rest or rest[0] == "CPU" or row_follows

    def _take_header(self, tokens: list[str]) -> None:
        self.table.header = []
        self.table.ended = False
        self.open = "header"
        self._add_titles(tokens)

    def _add_titles(self, tokens: list[str]) -> None:
        for position, token in enumerate(tokens):
            behind = tokens[position + 1 :] or [""]
            if is_tail_word(token) or (token == "GPU" and behind[0].upper() in ("NUMA", "")):
                self.table.ended |= is_tail_word(token)
                self.table.has_numa |= token.upper() == "NUMA"
            elif not self.table.ended:
                self.table.header.append(token)

    def _continues_header(self, tokens: list[str]) -> bool:
        header = self.table.header
        if is_cell(tokens[0]) and header and not self.table.ended:  # what looked like a header's end is a row's label
            row = Row(header.pop(), [])
            self.table.rows.append(row)
            self.open = row
            return self._continues_row(row, tokens)
        if self.table.ended:
            words = [token for token in tokens if is_tail_word(token) or token == "GPU"]
            self.table.has_numa |= "NUMA" in (word.upper() for word in words)
            return bool(words)
        joined = f"{header[-1]}{tokens[0]}" if header else ""
        whole = gpu_of(tokens[0]) is not None or _NIC.fullmatch(tokens[0]) is not None or is_tail_word(tokens[0])
        if not whole and (gpu_of(joined) is not None or _NIC.fullmatch(joined)):
            header[-1], tokens = joined, tokens[1:]
        if not all(is_name(t) or is_bus_address(t) or is_tail_word(t) or t == "GPU" for t in tokens):
            return False
        self._add_titles(tokens)
        return True

    # -- rows that were wrapped

    def _continues_row(self, row: Row, tokens: list[str]) -> bool:
        first = tokens[0]
        cut = bool(row.tokens) and not (is_cell(first) and _fits(row.tokens[-1]))
        if cut and (is_cell(row.tokens[-1] + first) or is_not_given(row.tokens[-1] + first)):
            full = bool(self.table.header) and len(row.cells) >= len(self.table.header)
            if not (full and is_affinity(first)):
                joined = row.tokens[-1] + first
                if all(_fits(token) for token in tokens[1:]):
                    row.tokens[-1:] = [joined, *tokens[1:]]
                    return True
        fitting = sum(map(_fits, tokens))
        if fitting == len(tokens) or (fitting > len(tokens) / 2 and any(map(is_cell, tokens))):
            row.tokens += tokens
            return True
        return False


def _names_gpu(token: str) -> bool:
    return gpu_of(token) is not None or is_bus_address(token)


def _fits(token: str) -> bool:
    return is_cell(token) or is_affinity(token) or is_not_given(token)
