"""The search: every block of the space priced, the best plans kept.

A block is priced in three steps: a lower bound of the time of each row; what doesn't depend on sharding for every
cell (row, schedule, recompute), which bounds its time and memory; and every way of sharding for the cells that
remain. What is left out on the way, by name, and why it loses nothing:

- `never-fits`: the cell doesn't fit even if every state were sharded as far as it goes.
- `slower-than-its-layout`: the bound of the row or cell is already slower than a finished plan of the same degrees
  and than every plan ranked so far.
- `offload-if-needed`: offload makes no plan faster, so it is tried last, and only for plans that don't fit without it
  and could still be ranked.

Ties are broken by the plan itself (`keeper.KEYS`), so the ranking doesn't depend on how the space is cut.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from meshwright.choose.keeper import SHOWN_TIMES, Candidate, Keeper, Layout, Priced, TooLarge
from meshwright.choose.space import ROW, Fixed, blocks
from meshwright.cost.stages import StageClass, distinct_rows
from meshwright.cost.states import States, map_pieces, states
from meshwright.cost.training import Base, add_up, base, memory_bytes, row_bound_s, settle, step_time_s
from meshwright.spec import rules
from meshwright.spec.plan import (
    OFFLOAD_ACTIVATIONS,
    OFFLOAD_NONE,
    OFFLOAD_OPTIMIZER,
    ONE_F_ONE_B,
    RECOMPUTE_NONE,
    SHARD_NONE,
    Array,
    PlanTable,
)
from meshwright.spec.rules import Job

_CELLS_AT_ONCE = 60_000
_WAYS_AT_ONCE = 100_000
_ROWS_AT_ONCE = 10_000


@dataclass(frozen=True, slots=True)
class Found:
    """`ranked`: the best plans that fit; `by_layout`: the best that fits for each set of degrees, as far as it is
    not too far behind the best of all; `too_large`: sets of degrees of which nothing that was tried fits;
    `considered`: legal plans priced, memory included. Offload is tried only where it could be ranked."""

    ranked: list[Candidate]
    by_layout: list[Candidate]
    too_large: list[TooLarge]
    considered: int


def search(
    job: Job,
    accelerators: int,
    fixed: Fixed,
    objective: str,
    top: int,
    within: float = SHOWN_TIMES,
    reached: float = np.inf,
) -> Found:
    """Price every legal plan on `accelerators` of the job's cluster and keep the best, and the best of each set of
    degrees that is at most `within` times worse. That some plan reaches the score `reached` saves work. Raises KeyError
    for a dtype that the accelerator has no unit for."""
    job = replace(job, cluster=job.cluster.part(accelerators))
    keep = Keeper(objective, accelerators, job.cluster.accelerator.memory_bytes, top, within, reached)
    may_offload = "offload" not in fixed and job.cluster.accelerator.host_bytes_per_s > 0
    later: list[_Cells] = []
    for block, bounds in _by_promise(job, list(blocks(job, accelerators, fixed)), keep):
        for piece in _pieces(block, bounds, keep):
            cells = _price(job, piece, keep)
            if may_offload and cells is not None:
                later.append(cells)
    if later:
        _price_offloaded(job, later, keep)
    return Found(keep.ranked(), keep.by_layout(), keep.too_large(), keep.considered)


def fillable(job: Job, accelerators: int, fixed: Fixed) -> bool:
    """Whether any legal plan uses just so many accelerators."""
    job = replace(job, cluster=job.cluster.part(accelerators))
    return any(bool(np.any(rules.legal(job, block))) for block in blocks(job, accelerators, fixed))


def _by_promise(job: Job, found: list[PlanTable], keep: Keeper) -> list[tuple[PlanTable, Array]]:
    """(block, lower bound of the score of each row), the block with the lowest bound first: good plans found early rule
    more out."""
    sizes = [block.shape[0] for block in found]
    if keep.objective == "memory" or not found:
        return [(block, np.zeros(size)) for block, size in zip(found, sizes, strict=True)]
    rows: dict[str, Any] = {
        name: np.concatenate(
            [
                np.broadcast_to(getattr(block, name), (size, 1, 1, 1)).reshape(size)
                for block, size in zip(found, sizes, strict=True)
            ]
        )
        for name in (*ROW, "tp", "pp")
    }
    fewest = {
        "schedule": ONE_F_ONE_B, "virtual_stages": 1, "recompute": RECOMPUTE_NONE, "sharding": SHARD_NONE,
        "shard_group": 1, "offload": OFFLOAD_NONE,
    }  # fmt: skip
    rows |= {name: np.asarray(value) for name, value in fewest.items()}
    bare = PlanTable(**rows)
    bounds = keep.score(row_bound_s(settle(job.model, job.cluster, job.software, job.workload, bare)), 0.0)
    parts = np.split(bounds, np.cumsum(sizes)[:-1])
    return sorted(zip(found, parts, strict=True), key=lambda pair: float(pair[1].min()))


def _pieces(block: PlanTable, bounds: Array, keep: Keeper) -> Iterator[PlanTable]:
    """The block in pieces along its rows, so that memory stays bounded, without the rows that can't be kept."""
    _, schedules, recompute, _ = block.shape
    step = max(1, _CELLS_AT_ONCE // (schedules * recompute))
    layouts, layout = _layouts(block, len(bounds))
    left = np.argsort(bounds, kind="stable")
    while len(left):
        left = left[bounds[left] <= keep.layout_bounds(layouts)[layout[left]]]
        if len(left):
            yield _rows_of(block, np.sort(left[:step]))
        left = left[step:]


def _rows_of(block: PlanTable, rows: Array) -> PlanTable:
    arrays: dict[str, Any] = {
        name: array[rows] for name, array in block.arrays().items() if array.ndim == 4 and array.shape[0] > 1
    }
    return replace(block, **arrays)


# -- one piece of a block: axes (row, schedule, recompute, sharding)


@dataclass(frozen=True, slots=True)
class _Cells:
    """Legal plans of a piece that may be worth offloading, with their time before data-parallel communication."""

    plans: PlanTable
    legal: Array
    lower_bound_s: Array


@dataclass(frozen=True, slots=True)
class _Priced:
    """A piece without its ways of sharding."""

    job: Job
    plans: PlanTable
    legal: Array
    step: Base
    kept: list[Any]
    held: States
    held_row: Array
    """For each row of the piece, its row in `held`: states don't depend on the micro-batch, so many rows share them."""

    def least_bytes(self) -> Array:
        """Bytes of the fullest rank under the sharding that leaves it least of each state."""

        def of_rows(array: Any) -> Any:
            if np.ndim(array) < 4:
                return array
            lowest = np.min(array, axis=3, keepdims=True)
            return lowest[self.held_row] if lowest.shape[0] > 1 else lowest

        least = map_pieces(self.held, of_rows)
        return memory_bytes(self.job.software, self.step, self.kept, least)

    def sharded(self, index: tuple[Array, ...]) -> tuple[Array, Array]:
        """(seconds, bytes) of every way of sharding for the cells at `index`: axes (cell, sharding)."""
        picker = _Picker(index)
        slim = _pick_base(self.step, picker)
        held = map_pieces(self.held, _Picker((self.held_row[index[0]], *index[1:])), joined=True)
        time_s = step_time_s(
            self.job.software, slim, picker(self.step.lower_bound_s()), held, picker(self.plans.sharding)
        )
        memory = memory_bytes(self.job.software, slim, [picker(each) for each in self.kept], held)
        shape = (len(index[0]), self.plans.shape[3])
        return np.broadcast_to(time_s, shape), np.broadcast_to(memory, shape)


def _price(job: Job, plans: PlanTable, keep: Keeper, legal: Array | None = None) -> _Cells | None:
    legal = np.broadcast_to(rules.legal(job, plans) if legal is None else legal, plans.shape)
    cells = legal.any(axis=3)
    if not cells.any():
        return None
    piece = _without_states(job, plans, legal)
    lower_bound = _of_cells(piece.step.lower_bound_s(), cells.shape)
    least_bytes = _of_cells(piece.least_bytes(), cells.shape)
    possible = cells & (least_bytes <= keep.capacity_bytes)
    _offer_unfit(plans, np.asarray(cells), lower_bound, least_bytes, keep)
    remaining = possible & _promising(plans, lower_bound, keep)
    if remaining.any():
        _offer(piece, remaining, keep)
    return _Cells(plans, legal, lower_bound)


def _without_states(job: Job, plans: PlanTable, legal: Array) -> _Priced:
    setting = settle(job.model, job.cluster, job.software, job.workload, plans)
    step = base(setting)
    held, held_row = _states_of_rows(job, plans)
    return _Priced(job, plans, legal, step, [add_up(parts.values()) for parts in step.kept], held, held_row)


def _states_of_rows(job: Job, plans: PlanTable) -> tuple[States, Array]:
    """(states of the rows that differ in what states depend on, for each row which of them are its)."""
    rows = plans.shape[0]
    columns = [getattr(plans, name) for name in ("tp", "cp", "ep", "dp", "pp", "order")]
    table = np.stack([np.broadcast_to(column, (rows, 1, 1, 1)).reshape(rows) for column in columns], axis=-1)
    first, row = distinct_rows(table)
    # rows with these degrees have the same ways of sharding, in a block and among cells alike
    few = _rows_of(plans, first)
    return states(settle(job.model, job.cluster, job.software, job.workload, few)), row


def _of_cells(array: Array, shape: tuple[int, ...]) -> Array:
    return np.broadcast_to(array[..., 0] if array.ndim == 4 else array, shape)


def _promising(plans: PlanTable, lower_bound: Array, keep: Keeper) -> Array:
    """Mask of the cells that may still beat what is kept."""
    if keep.objective == "memory":
        return np.ones(lower_bound.shape, dtype=bool)
    layouts, layout = _layouts(plans, lower_bound.shape[0])
    return np.asarray(keep.score(lower_bound, 0.0) <= keep.layout_bounds(layouts)[layout][:, None, None])


def _offer_unfit(plans: PlanTable, cells: Array, lower_bound: Array, least_bytes: Array, keep: Keeper) -> None:
    """Note the least seconds and bytes of each set of degrees among the legal cells."""
    rows = cells.shape[0]
    seconds = np.where(cells, lower_bound, np.inf).reshape(rows, -1).min(axis=1)
    sizes = np.where(cells, least_bytes, np.inf).reshape(rows, -1)
    position = sizes.argmin(axis=1)
    smallest = sizes[np.arange(rows), position]
    layouts, layout = _layouts(plans, rows)
    for number, degrees in enumerate(layouts):
        its = np.nonzero(layout == number)[0]
        row = int(its[smallest[its].argmin()])
        if np.isfinite(smallest[row]):
            schedule, recompute = np.unravel_index(int(position[row]), cells.shape[1:])
            where = (row, int(schedule), int(recompute), plans.shape[3] - 1)
            take = partial(plans.take, where)
            keep.offer_unfit(degrees, float(seconds[its].min()), float(smallest[row]), take)


def _layouts(plans: PlanTable, rows: int) -> tuple[list[Layout], Array]:
    """(sets of degrees in the table, index of each row's set)."""
    columns = [np.broadcast_to(np.asarray(degree).reshape(-1), rows) for degree in _degrees(plans)]
    table = np.stack(columns, axis=-1)
    first, inverse = distinct_rows(table)
    return [tuple(row) for row in table[first].tolist()], inverse


def _degrees(plans: PlanTable) -> tuple[Array, ...]:
    return plans.tp, plans.cp, plans.ep, plans.dp, plans.pp


def _offer(piece: _Priced, cells: Array, keep: Keeper) -> None:
    """Every way of sharding for the cells of a mask, few enough at a time to stay in the processor's cache."""
    layouts, layout = _layouts(piece.plans, cells.shape[0])
    index = np.nonzero(cells)
    step = max(1, _WAYS_AT_ONCE // piece.plans.shape[3])
    for start in range(0, len(index[0]), step):
        _offer_cells(piece, tuple(axis[start : start + step] for axis in index), layouts, layout, keep)


def _offer_cells(piece: _Priced, index: tuple[Array, ...], layouts: list[Layout], layout: Array, keep: Keeper) -> None:
    plans = piece.plans
    shape, ways = plans.shape, plans.shape[3]
    time_s, memory = piece.sharded(index)

    def columns(positions: Array) -> dict[str, Array]:
        cell, way = np.divmod(positions, ways)
        where = (*(axis[cell] for axis in index), way)
        return {name: np.broadcast_to(array, shape)[where] for name, array in plans.arrays().items()}

    keep.offer(
        Priced(
            columns=columns,
            layers_per_stage=plans.layers_per_stage,
            layout=np.repeat(layout[index[0]], ways),
            layouts=layouts,
            time_s=time_s.ravel(),
            memory_bytes=memory.ravel(),
            legal=piece.legal[index].ravel(),
        )
    )


@dataclass(frozen=True, slots=True)
class _Picker:
    """Takes the cells at `index` out of arrays on the axes (row, schedule, recompute, sharding) → (cell, sharding)."""

    index: tuple[Array, ...]

    def __call__(self, array: Any) -> Any:
        array = np.asarray(array)
        if array.size == 1:
            return array.reshape(())
        array = array.reshape((1,) * (4 - array.ndim) + array.shape)
        where = tuple(
            axis if size > 1 else np.zeros(1, dtype=np.intp)
            for axis, size in zip(self.index, array.shape, strict=False)
        )
        return array[where]


def _pick_base(step: Base, picker: _Picker) -> Base:
    def picked(stage: StageClass) -> StageClass:
        return StageClass(
            tuple(picker(count) for count in stage.layers),
            picker(stage.embedding),
            picker(stage.head),
            picker(stage.rank),
            picker(stage.present),
        )

    return replace(
        step,
        classes=tuple(picked(stage) for stage in step.classes),
        micro_batches=picker(step.micro_batches),
        forward_s=picker(step.forward_s),
        input_s=picker(step.input_s),
        weight_s=picker(step.weight_s),
        beside_s=picker(step.beside_s),
        fixed_communication_s=picker(step.fixed_communication_s),
    )


# -- offload


def _price_offloaded(job: Job, later: list[_Cells], keep: Keeper) -> None:
    """Try both kinds of offload on the plans that don't fit without it and could still be ranked, the fastest first."""
    for plans, legal, fastest_s in _could_win(later, keep):
        if keep.objective != "memory":
            if keep.score(fastest_s, 0.0) > keep.bound():
                return
            legal = legal & _needs_offload(job, plans, legal, keep)
        for mode in (OFFLOAD_OPTIMIZER, OFFLOAD_ACTIVATIONS):
            _price(job, replace(plans, offload=np.asarray(mode)), keep, legal)


def _needs_offload(job: Job, plans: PlanTable, legal: Array, keep: Keeper) -> Array:
    """Mask of the plans that don't fit without offload and could be ranked if they did."""
    piece = _without_states(job, plans, legal)
    time_s, memory = piece.sharded(np.nonzero(np.ones(plans.shape[:3], dtype=bool)))
    needed = (memory > keep.capacity_bytes) & (keep.score(time_s, 0.0) <= keep.bound())
    return np.asarray(needed[:, None, None, :])


def _could_win(later: list[_Cells], keep: Keeper) -> Iterator[tuple[PlanTable, Array, float]]:
    """(plans, legal ones, their lowest bound) of the cells whose bound is not behind what is ranked, lowest bound
    first. Cells are rows now; as blocks differ in their ways of sharding, each row has its own, padded with illegal
    ones."""
    width = max(cells.plans.shape[3] for cells in later)
    columns: dict[str, list[Array]] = {name: [] for name in (*later[0].plans.arrays(), "legal", "bound")}
    for cells in later:
        near = np.ones(cells.legal.shape[:3], dtype=bool)
        if keep.objective != "memory":
            near = keep.score(cells.lower_bound_s, 0.0) <= keep.bound()
        index = np.nonzero(near & cells.legal.any(axis=3))
        arrays = {**cells.plans.arrays(), "legal": cells.legal, "bound": cells.lower_bound_s[..., None]}
        for name, array in arrays.items():
            varies = name in ("sharding", "shard_group", "legal")
            picked = np.broadcast_to(array, (*near.shape, cells.plans.shape[3] if varies else 1))[index]
            missing = width - picked.shape[1] if varies else 0
            filler = 1 if name == "shard_group" else 0
            columns[name].append(np.pad(picked, ((0, 0), (0, missing)), constant_values=filler))
    table = {name: np.concatenate(parts)[:, None, None, :] for name, parts in columns.items()}
    bound, legal = table.pop("bound"), table.pop("legal")
    order = np.argsort(bound[:, 0, 0, 0], kind="stable")
    for start in range(0, len(order), _ROWS_AT_ONCE):
        rows = order[start : start + _ROWS_AT_ONCE]
        part: dict[str, Any] = {name: array[rows] for name, array in table.items()}
        given = later[0].plans.layers_per_stage
        yield PlanTable(**part, layers_per_stage=given), legal[rows], float(bound[rows[0], 0, 0, 0])
