"""Which column of the table belongs to which device, with the header or without it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from meshwright.sources.topology.cells import NVLINK, gpu_of, is_self, path_of
from meshwright.sources.topology.rows import Row, Table
from meshwright.spec.errors import InputError

MOST_GPUS = 64
"""No table of one operating system has more."""


@dataclass(frozen=True)
class Columns:
    """GPUs come first, network adapters behind them."""

    gpus: tuple[int, ...]
    nics: tuple[str, ...]
    notes: tuple[str, ...] = ()
    all_cut: bool = False
    """Every row ends before the last GPU: the right-hand side was cut off."""

    def position(self, gpu: int) -> int:
        return self.gpus.index(gpu)

    @classmethod
    def of(cls, table: Table, rows: dict[int, Row], where: str) -> Columns:
        """Raises InputError where it can't be told how many GPUs there are."""
        named = [gpu for gpu in map(gpu_of, table.header) if gpu is not None]
        nics = [name for name in table.header if gpu_of(name) is None]
        if len(set(named)) < len(named):
            twice = next(gpu for gpu, count in Counter(named).items() if count > 1)
            raise InputError(f"the header names GPU{twice} twice", where, "paste one table")
        width = max((len(row.cells) for row in rows.values()), default=0)
        ended = table.ended or bool(nics) or (len(named) == width and set(rows) <= set(named))
        if ended and named:
            columns = cls._with_header(named, nics, rows, width, where)
        else:
            columns = cls._without_header(named, table, rows, width, where)
        if len(columns.gpus) > MOST_GPUS:
            raise InputError(f"has {len(columns.gpus)} GPUs; at most {MOST_GPUS} are read from a table", where)
        return columns

    @classmethod
    def _with_header(cls, named: list[int], nics: list[str], rows: dict[int, Row], width: int, where: str) -> Columns:
        beyond = [gpu for gpu in rows if gpu not in named]
        if beyond:
            listed = ", ".join(f"GPU{gpu}" for gpu in named)
            raise InputError(f"has a row GPU{beyond[0]}, but its header names {listed} only", where)
        if width > len(named) + len(nics):
            over = [f"GPU{gpu}" for gpu, row in rows.items() if len(row.cells) > len(named) + len(nics)]
            if len(over) > len(rows) / 2:
                raise InputError(
                    f"the header names {len(named) + len(nics)} devices, but row {over[0]} holds {width} cells: "
                    "a name is missing in the header",
                    where,
                    "paste the table again, header line included",
                )
        cut = bool(rows) and width < len(named) and not any(row.tail for row in rows.values())
        return cls(tuple(named), tuple(nics), all_cut=cut)

    @classmethod
    def _without_header(cls, named: list[int], table: Table, rows: dict[int, Row], width: int, where: str) -> Columns:
        """The header is missing, or cut off before its end. Rows say which column is theirs (X), NV# stands between
        GPUs only, and adapters come last."""
        gpus = list(named)
        sure = max([-1, *rows, *map(_last_nvlink, rows.values())])
        if gpus and gpus != list(range(len(gpus))) and sure >= len(gpus):
            raise InputError("its header doesn't name every GPU that has a row", where, "paste the whole header line")
        gpus += list(range(len(gpus), sure + 1))
        for gpu, row in rows.items():
            own = _own_column(row)
            if own != gpus.index(gpu) and (own is not None or len(row.cells) > gpus.index(gpu)):
                raise InputError(
                    f"row GPU{gpu} has {'no X' if own is None else f'its X in column {own + 1}'} where column "
                    f"{gpus.index(gpu) + 1} is its own, and no header line says how many GPUs there are",
                    where,
                    "paste the table again, header line included",
                )
        adapters = [_own_column(row) for row in table.rows if gpu_of(row.label) is None]
        first_adapter = min((column for column in adapters if column is not None), default=None)
        left = width - len(gpus)
        if left <= 0:
            return cls(tuple(gpus), (), all_cut=left < 0 and not any(row.tail for row in rows.values()))
        if first_adapter is not None and first_adapter == len(gpus):
            return cls(tuple(gpus), _unnamed(left))
        columns = _listed(range(len(gpus) + 1, width + 1))
        if first_adapter is None and _is_switched(gpus, rows):
            note = (
                f"the header line is missing, and {columns} hold no NV# in any row there is: they are taken for "
                "network adapters; paste the header, too, if they are GPUs"
            )
            return cls(tuple(gpus), _unnamed(left), (note,))
        raise InputError(
            f"the header line is missing, and {columns} may be GPUs or network adapters",
            where,
            "paste the line above row GPU0, too",
        )


def _last_nvlink(row: Row) -> int:
    found = [i for i, token in enumerate(row.cells) if (path := path_of(token)) is not None and path.reach == NVLINK]
    return max(found, default=-1)


def _own_column(row: Row) -> int | None:
    found = [i for i, token in enumerate(row.cells) if is_self(token)]
    return found[0] if len(found) == 1 else None


def _is_switched(gpus: list[int], rows: dict[int, Row]) -> bool:
    """Whether most GPUs reach most others over NVLink, as behind an NVSwitch: there, no GPU is without it unless it is
    broken."""
    linked = 0
    for row in rows.values():
        paths = [path_of(token) for token in row.cells[: len(gpus)]]
        linked += sum(path is not None and path.reach == NVLINK for path in paths) > (len(gpus) - 1) / 2
    return len(gpus) > 2 and linked > len(rows) / 2


def _unnamed(count: int) -> tuple[str, ...]:
    return tuple(f"NIC{number}" for number in range(count))


def _listed(numbers: range) -> str:
    if len(numbers) == 1:
        return f"column {numbers[0]}"
    return f"columns {numbers[0]} {'and' if len(numbers) == 2 else 'to'} {numbers[-1]}"
